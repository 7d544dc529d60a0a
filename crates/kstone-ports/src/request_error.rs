//! [`RequestError`]: a value or an expression that cannot be used.

use crate::value::{Corrupt, NumberError};

/// The result of building or evaluating a value or an expression.
pub type Result<T, E = RequestError> = std::result::Result<T, E>;

/// Why a value or an expression cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// It is wrong as it stands: the message is the one that Amazon DynamoDB gives.
    #[error("{0}")]
    Invalid(String),
    /// A stored item that it is applied to cannot be read.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

impl RequestError {
    /// Wrong as it stands.
    pub fn invalid(message: impl Into<String>) -> RequestError {
        RequestError::Invalid(message.into())
    }
}

impl From<NumberError> for RequestError {
    fn from(error: NumberError) -> RequestError {
        RequestError::Invalid(error.to_string())
    }
}
