//! [`MasteryEngine`]: stores and serves the mastery domain through the two ports.
//!
//! What a learner's events come to is one item, the state, which every change writes anew together
//! with everything that is derived from it, in one transaction. Its version is the condition of that
//! transaction: of several writers who started from the same version one wins, and the others read
//! again. So nothing is locked across processes, and nothing is half written.
//!
//! | module | what it does |
//! |---|---|
//! | `change` | one event becomes one transaction; the state that is kept at hand for the next |
//! | `ingest` | events, exactly once; assessments; optimistic versions |
//! | `reading` | current mastery, history, trends, activity, skills, struggles |
//! | `history` | the views of a learner's whole history, and what is put aside for them |
//! | `insight` | predictions, paths, recommendations |
//! | `events` | the event log; rebuilding from a snapshot and what came after |
//! | `batch` | many learners at once, with progress |
//! | `follow_up_jobs` | the jobs that follow from a change |
//! | `profile` | who learners are, what they agreed to |
//! | `school` | classes, rosters, aggregates, comparisons |
//! | `admin` | debug, metrics, export, erasure |
//! | `cache`, `update_batcher` | the current mastery in two levels; its updates of Redis in batches |
//! | [`keys`] | keys as text, the short forms included |
//!
//! Calls only the ports, the pure domain, the typed keys and the outbox. It is called by the
//! platform, REST, the console and the demo.

mod admin;
mod batch;
mod cache;
mod change;
mod events;
mod follow_up_jobs;
mod history;
mod ingest;
mod insight;
pub mod keys;
mod profile;
mod reading;
mod school;
mod update_batcher;

use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::{Clock, Random};
use kstone_keyspace::keys::mastery::{ItemRating, StudentId};
use kstone_ports::capabilities::Capability;
use kstone_ports::items::Items;
use kstone_ports::items::{KeyAttribute, KeySchema, TableSpec};
use kstone_ports::keys::Keys;
use quick_cache::sync::Cache;

use kstone_base::store::Store;
use kstone_base::time::Moment;
use kstone_base::work::Outbox;

pub use admin::StoredKey;
pub use batch::BatchRequest;
pub use cache::{CacheOptions, CacheStats};
pub use follow_up_jobs::{AGGREGATE, QUEUE, RUN_BATCH, STRUGGLE, StruggleBegun};
pub use history::{ComponentsDay, MasteryDay};
pub use ingest::Ingested;
pub use kstone_base::page::{Page, PageRequest};
pub use kstone_base::persons::{KeyCounts, Persons};
pub use kstone_base::{Error, Result};
pub use school::{ClassRow, ClassSummary, ClassView};

/// The mastery engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MasteryEngine {
    inner: Arc<Inner>,
}

/// The parts that an engine is built from.
#[derive(Debug, Clone)]
pub struct EngineParts {
    /// Where learners' state is.
    pub items: Arc<dyn Items>,
    /// Where it is cached.
    pub keys: Arc<dyn Keys>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of batches, recommendations and audit entries.
    pub random: Arc<dyn Random>,
    /// Where changes ask for work that follows from them. Without it nothing follows.
    pub work: Option<Outbox>,
    /// Everything about one person, for export and erasure. Without it those are refused.
    pub persons: Option<Arc<dyn Persons>>,
    /// How many keys there are. Without it metrics are refused.
    pub counts: Option<Arc<dyn KeyCounts>>,
    /// How the current mastery is cached.
    pub cache: CacheOptions,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    work: Option<follow_up_jobs::FollowUpJobs>,
    persons: Option<Arc<dyn Persons>>,
    counts: Option<Arc<dyn KeyCounts>>,
    cache: cache::TwoLevelCache,
    learners: change::RecentLearners,
    /// How hard questions are, and when that was read.
    difficulties: Cache<ItemRating, (Option<f64>, Duration)>,
}

/// How many questions' difficulties are remembered.
const QUESTIONS_MAX: usize = 10_000;
/// The table that learners' state is in, as the catalogue says.
const TABLE: &str = "state";

impl MasteryEngine {
    /// An engine of these parts. Nothing is asked of them yet; see [`prepare`](Self::prepare).
    pub fn new(parts: EngineParts) -> MasteryEngine {
        let EngineParts { items, keys, clock, random, work, persons, counts, cache } = parts;
        let inner = Inner {
            store: Store::new(Arc::clone(&items)),
            cache: cache::TwoLevelCache::new(keys, Arc::clone(&clock), Arc::clone(&random), cache),
            learners: change::RecentLearners::new(),
            difficulties: Cache::new(QUESTIONS_MAX),
            work: work.map(follow_up_jobs::FollowUpJobs::new),
            items,
            clock,
            random,
            persons,
            counts,
        };
        MasteryEngine { inner: Arc::new(inner) }
    }

    /// Makes the tables if they are missing.
    pub async fn prepare(&self) -> Result<()> {
        let items = &self.inner.items;
        items
            .capabilities()
            .require("the mastery engine", &items.name(), &[Capability::Transactions])
            .map_err(|missing| Error::Unavailable(missing.to_string()))?;
        let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
        let spec = TableSpec { name: TABLE.to_owned(), key, ..TableSpec::default() };
        self.inner.items.require_table(&spec, Some("ttl")).await?;
        self.inner.cache.prepare().await;
        kstone_base::work::require_table(&*self.inner.items).await
    }

    /// The time.
    pub fn now(&self) -> Moment {
        Moment::from_epoch_ms(self.inner.clock.now_ms())
    }

    /// Hits and misses of the cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.cache.stats()
    }

    fn store(&self) -> &Store {
        &self.inner.store
    }

    /// A new unique id, which sorts by time.
    fn new_id(&self, now: Moment) -> String {
        format!("{}-{:016x}", now.millis(), self.inner.random.next_u64())
    }
}

/// Validates a learner's id.
fn student(student_id: &str) -> Result<StudentId> {
    Ok(StudentId::new(student_id)?)
}
