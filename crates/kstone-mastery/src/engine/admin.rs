//! Operator functions: all stored data of a learner, key metrics, export and erasure.

use std::collections::BTreeMap;
use std::sync::Arc;

use kstone_keyspace::Subject;
use kstone_keyspace::erasure::{Progress, SignedReceipt};
use kstone_keyspace::keys::mastery::StudentId;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use kstone_base::persons::Persons;
use kstone_base::time::Moment;

use super::{Error, MasteryEngine, Result, student};

/// The six counts that are asked for by name.
const METRICS: [&str; 6] = [
    "current_mastery",
    "daily_snapshots",
    "processed_events",
    "activity_data",
    "predictions",
    "paths",
];

/// A key with its value and TTL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredKey {
    /// The key.
    pub key: String,
    /// What it holds; of what others share, only this learner's part.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub value: Json,
    /// Seconds until it ends; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
}

impl MasteryEngine {
    /// Every key that holds something of a learner, with its value and how long it lives.
    pub async fn debug_student_state(&self, student_id: &str) -> Result<Vec<StoredKey>> {
        let now = self.now();
        let export = self.persons()?.export(&person(student_id)?, now).await?;
        let data = export.get("data").and_then(Json::as_array).cloned().unwrap_or_default();
        let mut kept: Vec<StoredKey> =
            data.into_iter().filter_map(|it| stored_key(it, now)).collect();
        kept.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(kept)
    }

    /// How many keys there are, by name: six counts.
    pub fn get_key_metrics(&self) -> Result<BTreeMap<String, u64>> {
        let missing = || Error::Unavailable("no catalogue is in force that counts keys".to_owned());
        let all = self.inner.counts.as_ref().ok_or_else(missing)?.keys_by_metric();
        let count = |name: &str| (name.to_owned(), all.get(name).copied().unwrap_or_default());
        Ok(METRICS.into_iter().map(count).collect())
    }

    /// Everything about a learner, for them to keep.
    pub async fn export(&self, student_id: &str) -> Result<Json> {
        Ok(self.persons()?.export(&person(student_id)?, self.now()).await?)
    }

    /// Removes everything about a learner, from every key and every file, and answers with the
    /// receipt. Nothing is written about them from then on, until they are admitted again.
    pub async fn delete_student_data(
        &self,
        student_id: &str,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        let student = student(student_id)?;
        let person = person(student_id)?;
        let persons = self.persons()?;
        // Before it, so that nobody who has read something keeps it; after it, because what was
        // written meanwhile is not to outlive it.
        self.forget_learner(&student).await;
        let receipt = persons.erase(&person, progress).await;
        self.forget_learner(&student).await;
        Ok(receipt?)
    }

    /// Drops a learner from the memory and caches of every process. For callers that erase by
    /// another way than through the engine: to be called before and after, so that memory does not
    /// outlive the stored data.
    ///
    /// # Errors
    /// If the id cannot be a learner's; then nothing is at hand of them.
    pub async fn forget(&self, student_id: &str) -> Result<()> {
        self.forget_learner(&student(student_id)?).await;
        Ok(())
    }

    async fn forget_learner(&self, student: &StudentId) {
        self.inner.learners.forget(student);
        self.inner.cache.forget(student).await;
    }

    /// Drops all learners from the memory of this process: for an erasure that a restart has
    /// interrupted, of which it is not known whom it was about.
    pub fn forget_all(&self) {
        self.inner.learners.forget_all();
        self.inner.cache.forget_all();
    }

    /// Lets data about a learner who was erased be written again; answers whether they had been.
    pub async fn admit(&self, student_id: &str) -> Result<bool> {
        Ok(self.persons()?.admit(&person(student_id)?).await?)
    }

    fn persons(&self) -> Result<&Arc<dyn Persons>> {
        let missing =
            || Error::Unavailable("no catalogue is in force that knows persons".to_owned());
        self.inner.persons.as_ref().ok_or_else(missing)
    }
}

fn person(student_id: &str) -> Result<Subject> {
    Ok(Subject::canonical(student(student_id)?.as_str(), None))
}

fn stored_key(entry: Json, now: Moment) -> Option<StoredKey> {
    let key = entry.get("key")?.as_str()?.to_owned();
    let ends: Option<Moment> = entry.get("expires_at").and_then(|it| it.as_str()?.parse().ok());
    let ttl_s = ends.map(|ends| ends.since(now).as_secs());
    Some(StoredKey { key, value: entry.get("value").cloned().unwrap_or_default(), ttl_s })
}
