//! What can be wrong with a request, or go wrong with it, and how Dapr says so.

use http::StatusCode;

/// The result of an operation on state.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. Nothing was written when one of these comes back, except
/// that a save of several keys writes those that are as expected also when others are not, and that
/// a save of more than 100 keys is several transactions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No store has this name. Ask for one that there is.
    #[error("state store {0} is not found")]
    NoSuchStore(String),

    /// The request is not what Dapr's API says. Sending it again cannot help.
    #[error("{0}")]
    Malformed(String),

    /// More than the door takes at once, or than an item may hold. Send less.
    #[error("{0}")]
    TooLarge(String),

    /// Other requests take up the memory. Send it again later.
    #[error("{0}")]
    Unavailable(String),

    /// A transaction with something that is neither an upsert nor a delete.
    #[error("operation type {0} not supported")]
    UnsupportedOperation(String),

    /// The ETag is none that this store ever gave.
    #[error("invalid etag value: `{etag}` for key {key}")]
    BadEtag {
        /// The key.
        key: String,
        /// What was given.
        etag: String,
    },

    /// The key was changed, made or deleted in between. Read it again and decide anew.
    #[error("possible etag mismatch: key {key} is not as it was read")]
    EtagMismatch {
        /// The key.
        key: String,
    },

    /// A rule that is in force says that such a key cannot hold this.
    #[error("key {key}: {refusal}")]
    Refused {
        /// The key.
        key: String,
        /// Which rule of which pattern.
        refusal: String,
    },

    /// The database refused the request or failed.
    #[error(transparent)]
    Items(#[from] kstone::Error),
}

/// What was being done, for the code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Get,
    BulkGet,
    Save,
    Delete,
    Transaction,
    Query,
}

impl Error {
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Error::Malformed(message.into())
    }

    /// Dapr's name for it.
    pub(crate) fn code(&self, doing: Doing) -> &'static str {
        match self {
            Error::NoSuchStore(_) => "ERR_STATE_STORE_NOT_FOUND",
            Error::Malformed(_) => "ERR_MALFORMED_REQUEST",
            Error::UnsupportedOperation(_) => "ERR_NOT_SUPPORTED_STATE_OPERATION",
            _ => match doing {
                Doing::Get => "ERR_STATE_GET",
                Doing::BulkGet => "ERR_STATE_BULK_GET",
                Doing::Save => "ERR_STATE_SAVE",
                Doing::Delete => "ERR_STATE_DELETE",
                Doing::Transaction => "ERR_STATE_TRANSACTION",
                Doing::Query => "ERR_STATE_QUERY",
            },
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Error::EtagMismatch { .. } => StatusCode::CONFLICT,
            Error::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Error::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            error if error.is_servers_fault() => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Whether the client can do nothing about it.
    pub(crate) fn is_servers_fault(&self) -> bool {
        matches!(self, Error::Items(error) if !matches!(error, kstone::Error::Validation(_) | kstone::Error::Refused(_)))
    }
}
