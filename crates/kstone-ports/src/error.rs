//! [`Error`]: why a port did not do what it was asked, by what the caller can do about it.

use crate::keys::ErrorReply;
use crate::request_error::RequestError;
use crate::value::{Corrupt, ItemBytes};

/// The result of a call of a port.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a port did not do what it was asked.
///
/// Nothing was written when one of these comes back, except after [`Error::OutcomeUnknown`], and except
/// by calls that can be asked again whatever happened before: `purge`, `require_table`, and batches,
/// whose parts are independent of each other.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is wrong as it stands: the message names what. Sending it again cannot help.
    #[error("{0}")]
    Invalid(String),
    /// A rule that is in force refuses it, of a catalogue, of a tenant or of the port: the message
    /// names the rule. Sending it again cannot help while the rule is in force.
    #[error("{0}")]
    Refused(String),
    /// The table, index or key does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The item did not meet the condition. Read it again and decide anew.
    #[error("The conditional request failed")]
    ConditionFailed {
        /// The item as it was, when the request asked for it.
        item: Option<ItemBytes>,
    },
    /// A transaction did nothing, for the reasons given, one for each of its actions.
    #[error("{}", canceled_message(reasons))]
    TransactionCanceled {
        /// One reason for each action, in order.
        reasons: Vec<CancellationReason>,
    },
    /// The token was used for a different transaction in the last ten minutes.
    #[error("{0}")]
    TokenReused(String),
    /// Somebody else is changing the same items or the same table. Try again.
    #[error("{0}")]
    Conflict(String),
    /// More was asked than the store has capacity for. Wait, then try again.
    #[error("{0}")]
    Throttled(String),
    /// The store cannot be reached, or cannot be used now. Try again later, or mend it.
    #[error("{0}")]
    Unavailable(String),
    /// The request was sent and no answer came: it was carried out, or it was not. Settle it by its
    /// token or its condition before anything else is decided.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// The request, an item or the answer is larger than the store takes. Split it.
    #[error("{0}")]
    TooLarge(String),
    /// This store cannot do this; [`capabilities`](crate::capabilities) says so before the start.
    #[error("{0}")]
    Unsupported(String),
    /// What is stored cannot be read: it is damaged, or a newer version wrote it.
    #[error("{0}")]
    Unreadable(String),
    /// The command of Redis answered with an error: a wrong type, an index out of range.
    #[error(transparent)]
    Reply(#[from] ErrorReply),
}

impl Error {
    /// Wrong as it stands.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid(message.into())
    }

    /// Whether the same request may succeed a little later, and was certainly not carried out.
    pub fn may_be_retried(&self) -> bool {
        match self {
            Error::Conflict(_) | Error::Throttled(_) | Error::Unavailable(_) => true,
            Error::TransactionCanceled { reasons } => {
                let code = |reason: &CancellationReason| reason.code;
                let of = |wanted: CancellationCode| reasons.iter().map(code).any(|it| it == wanted);
                let busy =
                    of(CancellationCode::TransactionConflict) || of(CancellationCode::Throttled);
                busy && !of(CancellationCode::ConditionalCheckFailed)
                    && !of(CancellationCode::ValidationError)
            }
            _ => false,
        }
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Error {
        match error {
            RequestError::Invalid(message) => Error::Invalid(message),
            RequestError::Corrupt(damage) => damage.into(),
        }
    }
}

impl From<Corrupt> for Error {
    fn from(damage: Corrupt) -> Error {
        Error::Unreadable(damage.to_string())
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
    /// The table or index has no capacity left. Only of a remote store.
    Throttled,
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
            CancellationCode::Throttled => "ThrottlingError",
            CancellationCode::ValidationError => "ValidationError",
            CancellationCode::DuplicateItem => "DuplicateItem",
        }
    }
}

/// What DynamoDB says of a transaction that did nothing.
pub fn canceled_message(reasons: &[CancellationReason]) -> String {
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
    format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    )
}
