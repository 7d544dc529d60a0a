//! What can go wrong in the embedded database. The messages are the ones that Amazon DynamoDB
//! gives, so that a program sees the same words here, at the door and in the cloud.

use kstone_ports::{RequestError, canceled_message};

use crate::value::{Corrupt, ItemBytes, NumberError};

pub use kstone_ports::{CancellationCode, CancellationReason};

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

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Invalid(message) => Error::Validation(message),
            RequestError::Corrupt(damage) => Error::Corrupt(damage),
        }
    }
}

impl From<NumberError> for Error {
    fn from(error: NumberError) -> Self {
        RequestError::from(error).into()
    }
}

impl From<Error> for kstone_ports::Error {
    fn from(error: Error) -> Self {
        use kstone_ports::Error as PortError;
        match error {
            Error::Refused(rule) => PortError::Refused(rule),
            Error::ConditionFailed { item } => PortError::ConditionFailed { item },
            Error::NotFound(message) => PortError::NotFound(message),
            Error::InUse(message) | Error::LimitExceeded(message) => PortError::Conflict(message),
            Error::TransactionCanceled { reasons } => PortError::TransactionCanceled { reasons },
            Error::IdempotentParameterMismatch(message) => PortError::TokenReused(message),
            Error::Corrupt(_) | Error::UnknownVersion { .. } => {
                PortError::Unreadable(error.to_string())
            }
            Error::Engine(error) => engine_error(&error),
            Error::Validation(_)
            | Error::DuplicateItem
            | Error::ExpiredIterator(_)
            | Error::TrimmedData(_) => PortError::Invalid(error.to_string()),
        }
    }
}

fn engine_error(error: &kstone_core::Error) -> kstone_ports::Error {
    use kstone_core::Error as EngineError;
    let message = error.to_string();
    match error {
        EngineError::Corruption { .. } | EngineError::Version { .. } => {
            kstone_ports::Error::Unreadable(message)
        }
        EngineError::KeyTooLong { .. }
        | EngineError::ValueTooLong { .. }
        | EngineError::BatchTooLarge { .. } => kstone_ports::Error::TooLarge(message),
        EngineError::NoSuchTable { .. } => kstone_ports::Error::NotFound(message),
        EngineError::Invalid { .. } => kstone_ports::Error::Invalid(message),
        _ => kstone_ports::Error::Unavailable(message),
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
