//! [`Governor`]: enforces a keyspace on an open database. Every write, whichever door it came
//! through, is shown to it; it refuses the write, or answers with the expiry and the index entries
//! that go with it.
//!
//! | module | what it does |
//! |---|---|
//! | `keys`, `items` | from a write to the rules of its pattern, and to whose data it is |
//! | `unknown` | keys that no pattern declares |
//! | `erased` | persons about whom nothing may be written |
//! | `exempt` | places that the eraser edits, where nothing is refused meanwhile |
//! | `counts`, `expiring`, `metrics` | keys, bytes and writes per pattern, counted as they change |
//! | `recount` | a pass over everything, for what was written before or beside this |
//! | `sweep` | removes entries of the index of persons that have come to say too much |
//! | `durable` | what of this outlives the process, in the table `kstone.keyspace` |
//!
//! The database calls this under its locks. So nothing here reads or waits, and a write to a declared
//! key that is there already allocates nothing.

mod counts;
mod durable;
mod erased;
mod exempt;
mod expiring;
mod items;
mod keys;
mod metrics;
mod recount;
mod sweep;
mod unknown;

use std::sync::Arc;

use kstone::policy::{
    Admitted, Counted, ItemRemoval, ItemWrite, KeyRemoval, KeyWrite, Refused, WritePolicy,
};
use kstone::{Database, Durability, Error, Result};
use kstone_core::env::{Random, SystemRandom};
use kstone_core::sync::Mutex;

use crate::catalogue::Catalogue;
use crate::index::{Location, pk_via, pk_via_key};
use crate::keyspace::Keyspace;
use crate::pattern::{Pattern, Store, SubjectSource};
use crate::problem::Problems;
use crate::rules::Refusal;
use crate::subject::Subject;

pub use metrics::{Expiring, Metrics, PatternMetrics};
pub use recount::Recount;
pub use sweep::SweepReport;
pub use unknown::{UnknownKeys, UnknownSeen};

use counts::Counts;
use erased::Erased;
use exempt::Exempt;
use sweep::Sweep;
use unknown::Unknown;

/// A keyspace in force for one open database.
#[derive(Debug)]
pub struct Governor {
    keyspace: Arc<Keyspace>,
    /// A handle that does not keep the database open.
    db: Database,
    plans: Vec<Plan>,
    unknown: Unknown,
    erased: Erased,
    exempt: Exempt,
    counts: Counts,
    sweep: Sweep,
    /// Held while the counts are being written, or counted anew.
    saving: Mutex<durable::SaveState>,
}

/// Options of a governor.
#[derive(Debug, Clone)]
pub struct GovernorOptions {
    /// What becomes of writes to keys that no pattern declares.
    pub unknown_keys: UnknownKeys,
    /// Where the database's secret comes from, when it has none yet.
    pub random: Arc<dyn Random>,
}

impl Default for GovernorOptions {
    fn default() -> Self {
        GovernorOptions { unknown_keys: UnknownKeys::Allow, random: Arc::new(SystemRandom) }
    }
}

/// Precomputed facts about a pattern.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Whether other keys belong to whomever a key of this pattern belongs to.
    is_link_key: bool,
}

impl Governor {
    /// Puts a keyspace in force. Once this returns, every write to the database is checked.
    ///
    /// What was written before is neither checked nor given an expiry. It is counted and indexed
    /// by [`recount`](Governor::recount), which [`is_counted`](Governor::is_counted) says is due.
    pub fn govern(
        db: &Database,
        keyspace: Arc<Keyspace>,
        options: GovernorOptions,
    ) -> Result<Arc<Governor>> {
        let governor = Arc::new(Governor::load(db, keyspace, options)?);
        db.govern(Arc::clone(&governor) as Arc<dyn WritePolicy>)?;
        governor.detect_ungoverned_writes()?;
        Ok(governor)
    }

    /// Puts the keyspace in force that this database was last governed by; `None` if it never was.
    ///
    /// # Errors
    /// Also if its catalogues cannot be read by this version any more.
    pub fn resume(db: &Database) -> Result<Option<Arc<Governor>>> {
        let Some((keyspace, unknown_keys)) = Governor::remembered(db)? else { return Ok(None) };
        let options = GovernorOptions { unknown_keys, ..GovernorOptions::default() };
        Governor::govern(db, Arc::new(keyspace), options).map(Some)
    }

    /// The keyspace that this database was last governed by, if it ever was, and what became of
    /// keys outside it.
    pub fn remembered(db: &Database) -> Result<Option<(Keyspace, UnknownKeys)>> {
        let Some(durable::Remembered { files, unknown_keys }) = durable::remembered(db)? else {
            return Ok(None);
        };
        let catalogues: std::result::Result<Vec<Catalogue>, Problems> =
            files.iter().map(|(file, text)| Catalogue::parse(file, text)).collect();
        let keyspace = catalogues.and_then(Keyspace::new).map_err(|problems| {
            Error::validation(format!(
                "the catalogues that this database was governed by cannot be read: {problems}"
            ))
        })?;
        Ok(Some((keyspace, unknown_keys)))
    }

    /// Notes that a database is about to be written to without its keyspace, so that everything is
    /// counted and indexed when it is next in force. Answers whether it had been.
    pub fn suspend(db: &Database) -> Result<bool> {
        durable::forget(db)
    }

    fn load(db: &Database, keyspace: Arc<Keyspace>, options: GovernorOptions) -> Result<Governor> {
        let db = db.internal().with_durability(Durability::Sync);
        let secret = durable::secret(&db, &*options.random)?;
        let plan = |pattern: &Pattern| Plan {
            is_link_key: keyspace.patterns().iter().any(|it| {
                it.application == pattern.application
                    && matches!(&it.subject, SubjectSource::Through(name) if *name == pattern.name)
            }),
        };
        let governor = Governor {
            plans: keyspace.patterns().iter().map(plan).collect(),
            unknown: Unknown::new(options.unknown_keys),
            erased: Erased::new(secret),
            exempt: Exempt::default(),
            counts: Counts::new(&keyspace, db.engine().now_ms()),
            sweep: Sweep::default(),
            saving: Mutex::new(durable::SaveState::default()),
            keyspace,
            db,
        };
        governor.load_state()?;
        Ok(governor)
    }

    /// The declared keys.
    pub fn keyspace(&self) -> &Arc<Keyspace> {
        &self.keyspace
    }

    /// Refuses writes about a person from now on, in one tenant or (without one) in all. Durable
    /// when this returns; writes under way are over after the ports' `settle`.
    pub async fn mark_erased(&self, subject: &Subject) -> Result<()> {
        self.mark(self.erased.token(subject)).await
    }

    /// Refuses writes to keys that belonged to the owner of this Redis key: of patterns whose
    /// subject is found through another key.
    pub async fn mark_key_erased(&self, db: u8, key: &[u8]) -> Result<()> {
        self.mark(self.erased.token_via(&pk_via_key(db, key))).await
    }

    /// The same for a key or item.
    pub(crate) async fn mark_place_erased(&self, place: &Location) -> Result<()> {
        self.mark(self.erased.token_via(&pk_via(place))).await
    }

    async fn mark(&self, token: erased::Token) -> Result<()> {
        // In force at once, and again after a restart: between the two the database is open.
        self.erased.insert(token);
        self.keep_token(token).await
    }

    /// Lets writes about a person happen again. Answers whether they were refused. Who was erased
    /// everywhere is admitted everywhere, and who was erased in a tenant is admitted there.
    pub async fn admit_again(&self, subject: &Subject) -> Result<bool> {
        let token = self.erased.token(subject);
        self.forget_token(token).await?;
        Ok(self.erased.remove(token))
    }

    /// Whether writes about a person are refused because they were erased.
    pub fn is_erased(&self, subject: &Subject) -> bool {
        self.erased.has(&subject.id, subject.tenant.as_deref())
    }
}

impl Erased {
    /// Refuses what is of an erased person.
    fn check(
        &self,
        pattern: &Pattern,
        id: &str,
        tenant: Option<&str>,
    ) -> std::result::Result<(), Refused> {
        match self.has(id, tenant) {
            false => Ok(()),
            true => Err(erased_refusal(pattern)),
        }
    }
}

/// The message names no id: it may end up in a log, and the person was erased.
fn erased_refusal(pattern: &Pattern) -> Refused {
    Refused(format!(
        "{}: subject: was erased; admit it again with `kstone subject admit`",
        pattern.full_name()
    ))
}

fn refused(refusal: Box<Refusal>) -> Refused {
    Refused(refusal.to_string())
}

impl WritePolicy for Governor {
    fn admit_item(&self, write: &ItemWrite<'_>) -> std::result::Result<Admitted, Refused> {
        self.item(write)
    }

    fn release_item(&self, removal: &ItemRemoval<'_>) -> Admitted {
        self.item_goes(removal)
    }

    fn admit_key(&self, write: &KeyWrite<'_>) -> std::result::Result<Admitted, Refused> {
        self.key(write)
    }

    fn release_key(&self, removal: &KeyRemoval<'_>) -> Admitted {
        self.key_goes(removal)
    }

    fn committed(&self, changes: &[Counted]) {
        self.counts.add(changes);
    }

    fn emptied(&self, db: u8) {
        self.counts.clear_db(db);
        self.sweep.note();
    }

    fn swapped(&self, one: u8, other: u8) {
        self.counts.swap_dbs(one, other);
        self.sweep.note();
    }

    fn dropped(&self, table: &str) {
        self.sweep.note_dropped();
        let of_table = |pattern: &Pattern| match &pattern.store {
            Store::Table(name) => name.accepts(table.as_bytes()),
            Store::Redis => false,
        };
        self.counts.clear_table(table, |index| {
            self.keyspace.patterns().get(index as usize).is_some_and(of_table)
        });
    }
}
