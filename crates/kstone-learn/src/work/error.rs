//! What can go wrong with work.

use kstone_keyspace::PartError;

use crate::field::Invalid;

/// What asking for work comes to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something about work could not be done.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field is not as it must be; it is named.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// There is no such thing, or it is gone by now.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The items could not be asked, or refused.
    #[error(transparent)]
    Store(#[from] kstone::Error),
    /// What is stored is not what was stored.
    #[error("what is stored under `{key}` cannot be read: {problem}")]
    Unreadable {
        /// Its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl From<PartError> for Error {
    fn from(error: PartError) -> Error {
        let PartError { placeholder, expected, found } = error;
        Invalid::value(&placeholder, expected, format!("`{found}`")).into()
    }
}
