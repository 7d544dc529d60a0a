//! Ports to the catalogue: the data of one person, and the number of keys. Implemented by the
//! process that has the catalogue in force.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use kstone_keyspace::erasure::{
    Eraser, ErasureError, PersonalDataLocation, Progress, SignedReceipt,
};
use kstone_keyspace::{Governor, Subject};
use serde_json::Value as Json;

use super::error::Error;
use crate::time::Moment;

/// What every call of [`Persons`] returns: a boxed future, because it is used as a trait object.
pub type PersonsFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ErasureError>> + Send + 'a>>;

/// Lists, exports and erases the data of one person in all systems.
pub trait Persons: Debug + Send + Sync {
    /// Every key and item that holds data of the person.
    fn list<'a>(&'a self, person: &'a Subject) -> PersonsFuture<'a, Vec<PersonalDataLocation>>;

    /// The same with values, as JSON that people can read.
    fn export<'a>(&'a self, person: &'a Subject, now: Moment) -> PersonsFuture<'a, Json>;

    /// Removes all of it for good, and refuses writes about them from now on.
    fn erase<'a>(
        &'a self,
        person: &'a Subject,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> PersonsFuture<'a, SignedReceipt>;

    /// Whether writes about the person are refused.
    fn is_erased(&self, person: &Subject) -> bool;

    /// Lets writes about them happen again; answers whether they were refused.
    fn admit<'a>(&'a self, person: &'a Subject) -> PersonsFuture<'a, bool>;
}

/// Counts keys by metric.
pub trait KeyCounts: Debug + Send + Sync {
    /// Keys by the name of their metric: `daily_snapshots`.
    fn keys_by_metric(&self) -> BTreeMap<String, u64>;
}

/// The persons in a database of this process.
#[derive(Debug, Clone)]
pub struct LocalPersons {
    /// Who lists, exports and erases.
    pub eraser: Arc<Eraser>,
    /// What is in force.
    pub governor: Arc<Governor>,
}

impl Persons for LocalPersons {
    fn list<'a>(&'a self, person: &'a Subject) -> PersonsFuture<'a, Vec<PersonalDataLocation>> {
        Box::pin(async move { self.eraser.stores().holdings(person).await })
    }

    fn export<'a>(&'a self, person: &'a Subject, now: Moment) -> PersonsFuture<'a, Json> {
        Box::pin(async move { self.eraser.stores().export(person, now.epoch_ms()).await })
    }

    fn erase<'a>(
        &'a self,
        person: &'a Subject,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> PersonsFuture<'a, SignedReceipt> {
        Box::pin(async move { self.eraser.erase(person, progress).await })
    }

    fn is_erased(&self, person: &Subject) -> bool {
        self.governor.is_erased(person)
    }

    fn admit<'a>(&'a self, person: &'a Subject) -> PersonsFuture<'a, bool> {
        Box::pin(async move { Ok(self.governor.admit_again(person).await?) })
    }
}

impl KeyCounts for Governor {
    fn keys_by_metric(&self) -> BTreeMap<String, u64> {
        let metrics = self.metrics();
        metrics.keys_by_metric().into_iter().map(|(name, keys)| (name.to_owned(), keys)).collect()
    }
}

impl From<ErasureError> for Error {
    fn from(error: ErasureError) -> Error {
        match error {
            ErasureError::Store(error) => error.into(),
            ErasureError::Unreadable(problem) => {
                Error::Unreadable { key: "index of persons".to_owned(), problem }
            }
            error @ (ErasureError::Running
            | ErasureError::Busy(_)
            | ErasureError::Unfinished(_)) => Error::Unavailable(error.to_string()),
        }
    }
}
