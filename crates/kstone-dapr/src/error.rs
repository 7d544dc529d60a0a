//! The errors of operations on state, with their Dapr error codes and HTTP statuses.

use http::StatusCode;

/// The result of an operation on state.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. Nothing was written then, with two exceptions: a save of
/// several keys writes those whose ETags match even if others do not, and a save of more than 100
/// keys is several transactions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No store has this name.
    #[error("state store {0} is not found")]
    NoSuchStore(String),

    /// The request does not follow Dapr's API. Sending it again does not help.
    #[error("{0}")]
    Malformed(String),

    /// The request is more than the door accepts at once, or than an item may hold. Send less.
    #[error("{0}")]
    TooLarge(String),

    /// Other requests take up the memory. Send it again later.
    #[error("{0}")]
    Unavailable(String),

    /// An operation of a transaction is neither an upsert nor a delete.
    #[error("operation type {0} not supported")]
    UnsupportedOperation(String),

    /// The ETag does not have the form of this store's ETags.
    #[error("invalid etag value: `{etag}` for key {key}")]
    BadEtag {
        /// The key.
        key: String,
        /// The ETag as the client sent it.
        etag: String,
    },

    /// The key was written or deleted in between. Read it again, and decide anew.
    #[error("possible etag mismatch: key {key} is not as it was read")]
    EtagMismatch {
        /// The key.
        key: String,
    },

    /// A rule of the catalogue forbids the write.
    #[error("key {key}: {refusal}")]
    Refused {
        /// The key.
        key: String,
        /// The pattern, and the rule of it that is broken.
        refusal: String,
    },

    /// The database refused the request or failed.
    #[error(transparent)]
    Items(#[from] kstone_ports::Error),
}

/// The kind of a request, on which the code of an error depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
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

    /// Dapr's error code.
    pub(crate) fn code(&self, kind: RequestKind) -> &'static str {
        match self {
            Error::NoSuchStore(_) => "ERR_STATE_STORE_NOT_FOUND",
            Error::Malformed(_) => "ERR_MALFORMED_REQUEST",
            Error::UnsupportedOperation(_) => "ERR_NOT_SUPPORTED_STATE_OPERATION",
            _ => match kind {
                RequestKind::Get => "ERR_STATE_GET",
                RequestKind::BulkGet => "ERR_STATE_BULK_GET",
                RequestKind::Save => "ERR_STATE_SAVE",
                RequestKind::Delete => "ERR_STATE_DELETE",
                RequestKind::Transaction => "ERR_STATE_TRANSACTION",
                RequestKind::Query => "ERR_STATE_QUERY",
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

    /// Whether the fault is the server's, so that a client can do nothing about it.
    pub(crate) fn is_servers_fault(&self) -> bool {
        matches!(self, Error::Items(error) if !matches!(error, kstone_ports::Error::Invalid(_) | kstone_ports::Error::Refused(_)))
    }
}
