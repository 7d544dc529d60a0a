//! What can go wrong in the embedded database. The messages are the ones that Amazon DynamoDB
//! gives, so that a program sees the same words here, at the door and in the cloud.

use crate::value::{Corrupt, ItemBytes};

/// The result of a database operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused. Nothing was written when one of these comes back.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is wrong as it stands: the message names what. Sending it again cannot help.
    #[error("{0}")]
    Validation(String),

    /// A rule that is in force refuses the write: the message names the rule. Sending it again
    /// cannot help while the rule is in force.
    #[error("{0}")]
    Refused(String),

    /// The item did not meet the condition. Read it again and decide anew.
    #[error("The conditional request failed")]
    ConditionFailed {
        /// The item as it was, when the request asked for it.
        item: Option<ItemBytes>,
    },

    /// The table, index or stream does not exist.
    #[error("{0}")]
    NotFound(String),

    /// The table exists already, or is being changed: wait until it is active.
    #[error("{0}")]
    InUse(String),

    /// A limit on tables, indexes or streams. Wait for running changes to end.
    #[error("{0}")]
    LimitExceeded(String),

    /// A transaction did nothing, for the reasons given, one for each of its actions.
    #[error("{}", canceled_message(reasons))]
    TransactionCanceled {
        /// One reason for each action, in order.
        reasons: Vec<CancellationReason>,
    },

    /// The token was used for a different transaction in the last ten minutes.
    #[error("{0}")]
    IdempotentParameterMismatch(String),

    /// PartiQL: an item with this key exists.
    #[error("Duplicate primary key exists in table")]
    DuplicateItem,

    /// The shard iterator is too old. Get a new one.
    #[error("{0}")]
    ExpiredIterator(String),

    /// The stream records asked for are older than the retention of 24 hours.
    #[error("{0}")]
    TrimmedData(String),

    /// A stored item is not what was stored. Check the database with `kstone verify`.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),

    /// A newer version stored this. Nothing is lost: open the database with that version.
    #[error(
        "the stored {what} has format version {found}, this build knows {known}; open the database with a newer kstone"
    )]
    UnknownVersion {
        /// The kind of record.
        what: &'static str,
        /// The version that it names.
        found: u8,
        /// The version that this build reads and writes.
        known: u8,
    },

    /// The storage engine failed; its message says what to do.
    #[error(transparent)]
    Engine(#[from] kstone_core::Error),
}

impl Error {
    /// A request that is wrong as it stands.
    pub fn validation(message: impl Into<String>) -> Self {
        Error::Validation(message.into())
    }
}

impl From<crate::policy::Refused> for Error {
    fn from(refused: crate::policy::Refused) -> Self {
        Error::Refused(refused.0)
    }
}

/// An engine table that is gone is a table that was dropped after it was looked up.
pub(crate) fn table_gone(error: kstone_core::Error) -> Error {
    match error {
        kstone_core::Error::NoSuchTable { .. } => {
            Error::NotFound("Requested resource not found".to_owned())
        }
        other => Error::Engine(other),
    }
}

/// Why one action of a transaction did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancellationReason {
    /// What kind of reason.
    pub code: CancellationCode,
    /// What DynamoDB says of it; `None` when this action was fine.
    pub message: Option<String>,
    /// The item as it was, when the action asked for it.
    pub item: Option<ItemBytes>,
}

impl CancellationReason {
    /// An action that was fine.
    pub fn none() -> Self {
        CancellationReason { code: CancellationCode::None, message: None, item: None }
    }
}

/// The kinds of reasons in [`CancellationReason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancellationCode {
    /// The action was fine.
    None,
    /// Its condition did not hold.
    ConditionalCheckFailed,
    /// Another request works on the item.
    TransactionConflict,
    /// The action is wrong as it stands.
    ValidationError,
    /// PartiQL: an item with this key exists.
    DuplicateItem,
}

impl CancellationCode {
    /// The name that DynamoDB gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            CancellationCode::None => "None",
            CancellationCode::ConditionalCheckFailed => "ConditionalCheckFailed",
            CancellationCode::TransactionConflict => "TransactionConflict",
            CancellationCode::ValidationError => "ValidationError",
            CancellationCode::DuplicateItem => "DuplicateItem",
        }
    }
}

fn canceled_message(reasons: &[CancellationReason]) -> String {
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
    format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    )
}
