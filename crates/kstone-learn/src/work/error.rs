//! What can go wrong with work.

use kstone::CancellationCode;
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
    /// It may not be written: the person it is about was erased, or a rule of the catalogue forbids
    /// it. Asking the same again cannot help.
    #[error("{why}")]
    Refused {
        /// Why not, and what would change that.
        why: String,
    },
    /// The items could not be asked, or refused.
    #[error(transparent)]
    Store(kstone::Error),
    /// What is stored is not what was stored.
    #[error("what is stored under `{key}` cannot be read: {problem}")]
    Unreadable {
        /// Its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl From<kstone::Error> for Error {
    fn from(error: kstone::Error) -> Error {
        match refusal(&error) {
            Some(why) => Error::Refused { why },
            None => Error::Store(error),
        }
    }
}

/// Why a write was refused by the rules, if that is what happened: alone, or within a transaction
/// about somebody who was erased.
pub(crate) fn refusal(error: &kstone::Error) -> Option<String> {
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

impl From<PartError> for Error {
    fn from(error: PartError) -> Error {
        let PartError { placeholder, expected, found } = error;
        Invalid::value(&placeholder, expected, format!("`{found}`")).into()
    }
}
