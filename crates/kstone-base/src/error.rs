//! Errors of the platform, shared by all its systems.

use kstone::CancellationCode;
use kstone_keyspace::PartError;
use kstone_redis::port::Error as KeysError;

use crate::field::Invalid;

/// The result of a call to a system of the platform.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a call to a system of the platform. Nothing was written, except with
/// [`Error::Unavailable`], after which the outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field is not as it must be; it is named. Asking the same again cannot help.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// [`Error::NotFound`] for this thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for: `batch b-1`.
        what: String,
    },
    /// Somebody else was quicker. Read it again and decide anew.
    #[error("{what} has been changed by somebody else")]
    Conflict {
        /// What has been changed.
        what: String,
        /// The version that it has now, where it has one.
        current: Option<u64>,
    },
    /// It may not be done: consent is missing, or the learner was erased.
    #[error("{why}")]
    Refused {
        /// Why not, and what would change that.
        why: String,
    },
    /// Too little is known yet. Later it can be done.
    #[error("{why}")]
    TooEarly {
        /// What is missing.
        why: String,
    },
    /// The store cannot be used now, or this system was started without a part that is needed.
    #[error("{0}")]
    Unavailable(String),
    /// Something that is stored cannot be read.
    #[error("what is stored under `{key}` cannot be read: {problem}")]
    Unreadable {
        /// Its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The items could not be asked, or refused.
    #[error(transparent)]
    Store(kstone::Error),
    /// The keys of Redis could not be asked, or refused.
    #[error(transparent)]
    Keys(KeysError),
}

impl Error {
    /// [`Error::NotFound`] for this thing.
    pub fn not_found(what: impl Into<String>) -> Error {
        Error::NotFound { what: what.into() }
    }

    /// [`Error::Refused`] for this reason.
    pub fn refused(why: impl Into<String>) -> Error {
        Error::Refused { why: why.into() }
    }
}

impl From<kstone::Error> for Error {
    fn from(error: kstone::Error) -> Error {
        match refusal(&error) {
            Some(why) => Error::Refused { why },
            None => Error::Store(error),
        }
    }
}

impl From<KeysError> for Error {
    fn from(error: KeysError) -> Error {
        match error {
            KeysError::Unavailable(why) => Error::Unavailable(why),
            error => Error::Keys(error),
        }
    }
}

impl From<PartError> for Error {
    fn from(error: PartError) -> Error {
        let PartError { placeholder, expected, found } = error;
        Invalid::value(&placeholder, expected, format!("`{found}`")).into()
    }
}

/// Why a write was refused by the rules, if that is what happened: alone, or within a transaction
/// about somebody who was erased.
fn refusal(error: &kstone::Error) -> Option<String> {
    match error {
        kstone::Error::Refused(why) => Some(why.clone()),
        kstone::Error::TransactionCanceled { reasons } => {
            let erased = reasons.iter().any(|reason| {
                reason.code == CancellationCode::ValidationError
                    && reason.message.as_deref().is_some_and(|it| it.contains("was erased"))
            });
            erased.then(|| ERASED.to_owned())
        }
        _ => None,
    }
}

/// Said in place of the rules' own words, which name a pattern.
const ERASED: &str =
    "the learner was erased; nothing is written about them until they are admitted again";
