//! Errors of the platform, shared by all its systems.

use kstone_keyspace::PartError;
use kstone_ports::{CancellationCode, Error as PortError};

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
    /// The storage refused, for a reason that is none of the others.
    #[error(transparent)]
    Store(PortError),
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

impl From<PortError> for Error {
    fn from(error: PortError) -> Error {
        if let Some(why) = refusal(&error) {
            return Error::Refused { why };
        }
        match error {
            PortError::Unavailable(why)
            | PortError::Throttled(why)
            | PortError::OutcomeUnknown(why) => Error::Unavailable(why),
            error => Error::Store(error),
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
fn refusal(error: &PortError) -> Option<String> {
    match error {
        PortError::Refused(why) => Some(why.clone()),
        PortError::TransactionCanceled { reasons } => {
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
