//! The durable state of a governor: rows of the public table `kstone.keyspace`, and the secret of
//! the database, which no door shows.
//!
//! | `pk` | `sk` | what it is |
//! |---|---|---|
//! | `keyspace` | `patterns` | the fingerprint of the patterns by which was counted and indexed |
//! | `catalogue` | number | a catalogue that is in force: its file's name and text |
//! | `keyspace` | `rules` | what becomes of keys that no pattern declares |
//! | `keyspace` | `metrics` | the current [`Metrics`], for readers of the table |
//! | `keyspace` | `dropped` | there if a table was dropped whose items are still in the index |
//! | `keyspace` | `counted` | up to which of the engine's sequence numbers the counts are right |
//! | `counts` | pattern and place | keys, bytes, members, writes |
//! | `expiring` and pattern and place | day | how many keys end in each five minutes of it |
//! | `erased` | token | a person about whom nothing may be written |
//!
//! Counts are saved about once a second, not with each write. After a crash, the sequence number tells
//! how many changes they may lack.

use kstone::ops::{BatchWrite, DeleteItem, GetItem, KeyCondition, PutItem, Query, WriteRequest};
use kstone::policy::PatternId;
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Durability, Error, Item, Result, Value, placeholders};
use kstone_core::env::Random;
use kstone_core::{Key, Seq, WriteBatch};
use sha2::{Digest, Sha256};

use super::counts::{Figures, TallyScope};
use super::erased::Token;
use super::metrics::Metrics;
use super::{Governor, UnknownKeys, UnknownSeen};
use crate::catalogue::Catalogue;
use crate::keyspace::Keyspace;
use crate::pattern::Store;

/// The table with the governor's own rows.
pub(super) const TABLE: &str = "kstone.keyspace";
/// What DynamoDB takes at a time.
const BATCH: usize = 25;
const KEYSPACE: &str = "keyspace";
const PATTERNS: &str = "patterns";
const COUNTED: &str = "counted";
const METRICS: &str = "metrics";
const DROPPED: &str = "dropped";
const COUNTS: &str = "counts";
const ERASED: &str = "erased";
const CATALOGUE: &str = "catalogue";
const RULES: &str = "rules";

/// How far the stored counts are up to date.
#[derive(Debug, Default)]
pub(super) struct SaveState {
    /// Whether what is there was counted and indexed by these patterns.
    pub(super) is_counted: bool,
    /// How many changes the counts may lack.
    pub(super) off_by: u64,
    /// How many changes had been counted when they were last saved.
    changes: Option<u64>,
    /// What was last shown.
    shown: Metrics,
    /// The engine's sequence number when counts were last looked at: every change up to it has been
    /// counted since.
    looked_at: Seq,
    /// Up to where the database itself says that the counts are right.
    noted: Seq,
}

/// While nothing changes, what is shown is looked at this often: keys come closer to their end, and
/// the mean of writes goes down.
const IDLE_MS: u64 = 60_000;

/// The secret of this database; made when it is first asked for. It is in a table of the engine
/// that no door shows.
pub(super) fn secret(db: &Database, random: &dyn Random) -> Result<[u8; 32]> {
    let table = db.side_catalog("keyspace")?;
    let key = Key::new(b"secret".to_vec());
    if let Some(record) = db.engine().get(table, &key)?
        && let Ok(secret) = <[u8; 32]>::try_from(record.value.as_ref())
    {
        return Ok(secret);
    }
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    let mut batch = WriteBatch::new();
    batch.put(table, &key, &secret)?;
    db.engine().write(&batch, Durability::Sync)?.wait()?;
    Ok(secret)
}

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn number(item: &Item, name: &str) -> i64 {
    match item.get(name) {
        Some(Value::N(number)) => number.to_i64().unwrap_or(0),
        _ => 0,
    }
}

fn text<'i>(item: &'i Item, name: &str) -> &'i str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// All rows of a partition.
fn rows(db: &Database, pk: &str) -> Result<Vec<Item>> {
    let mut rows = Vec::new();
    let mut start = None;
    loop {
        let query = Query {
            table: TABLE.to_owned(),
            key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
            placeholders: placeholders([(":pk", pk)]),
            start,
            ..Query::default()
        };
        let page = db.query_items(&query).wait()?;
        for item in page.items.unwrap_or_default() {
            rows.push(item.decode()?);
        }
        start = page.next;
        if start.is_none() {
            return Ok(rows);
        }
    }
}

fn row(db: &Database, sk: &str) -> Result<Option<Item>> {
    let get = GetItem { table: TABLE.to_owned(), key: key(KEYSPACE, sk), ..GetItem::default() };
    let found = db.get_item(&get).wait()?.item;
    Ok(found.map(|item| item.decode()).transpose()?)
}

fn put(db: &Database, item: Item) -> Result<()> {
    let put = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
    db.put_item(&put).wait().map(drop)
}

fn delete(db: &Database, key: Item) -> Result<()> {
    let delete = DeleteItem { table: TABLE.to_owned(), key, ..DeleteItem::default() };
    db.delete_item(&delete).wait().map(drop)
}

/// The rules that last governed a database.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    /// The catalogues: names of files, and their texts.
    pub(super) files: Vec<(String, String)>,
    pub(super) unknown_keys: UnknownKeys,
}

pub(super) fn remembered(db: &Database) -> Result<Option<Remembered>> {
    if db.describe_table(TABLE).is_err() {
        return Ok(None);
    }
    let Some(rules) = row(db, RULES)? else { return Ok(None) };
    let unknown_keys = text(&rules, "unknown_keys").parse().unwrap_or_default();
    let file = |row: &Item| (text(row, "file").to_owned(), text(row, "text").to_owned());
    let files = rows(db, CATALOGUE)?.iter().map(file).collect();
    Ok(Some(Remembered { files, unknown_keys }))
}

/// Records that no rules are in force: what is written from now on is neither counted nor indexed,
/// so a recount is due later.
pub(super) fn forget(db: &Database) -> Result<bool> {
    if db.describe_table(TABLE).is_err() || row(db, RULES)?.is_none() {
        return Ok(false);
    }
    let db = db.internal();
    let was_counted = row(&db, PATTERNS)?.is_some();
    delete(&db, key(KEYSPACE, PATTERNS))?;
    Ok(was_counted)
}

/// A hash of everything in the patterns that counting and indexing depend on.
fn fingerprint(keyspace: &Keyspace) -> String {
    let mut hash = Sha256::new();
    for it in keyspace.patterns() {
        let (name, segments) = (it.full_name(), &it.segments);
        let what = (name, segments, it.partition_segments, &it.store, &it.subject, it.tenant);
        hash.update(format!("{what:?}\n"));
    }
    hex::encode(hash.finalize())
}

impl Governor {
    pub(super) fn load_state(&self) -> Result<()> {
        let pair = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
        let spec = TableSpec { name: TABLE.to_owned(), key: pair, ..TableSpec::default() };
        match self.db.describe_table(TABLE) {
            Err(Error::NotFound(_)) => drop(self.db.create_table(&spec)?),
            known => drop(known?),
        }
        self.remember()?;
        for row in rows(&self.db, ERASED)? {
            if let Some(token) = Token::parse(text(&row, "sk")) {
                self.erased.insert(token);
            }
        }
        let known = self.row(PATTERNS)?;
        let mut saving = self.saving.lock();
        saving.is_counted = known
            .as_ref()
            .is_some_and(|row| text(row, "fingerprint") == fingerprint(&self.keyspace));
        if !saving.is_counted {
            // What is written from now on is not indexed by those patterns: should they come back
            // before these have looked at everything, they have to look at it again.
            if known.is_some() {
                delete(&self.db, key(KEYSPACE, PATTERNS))?;
            }
            return Ok(());
        }
        for row in rows(&self.db, COUNTS)? {
            self.load_tally(&row)?;
        }
        if let Some(counted) = self.row(COUNTED)? {
            let unsigned = |name: &str| u64::try_from(number(&counted, name)).unwrap_or(0);
            // What was written since: the rows themselves, and whatever a crash kept from them.
            let known = unsigned("seq") + unsigned("rows");
            let since = self.db.engine().applied_seq().saturating_sub(known);
            saving.off_by = unsigned("off_by") + since;
        }
        Ok(())
    }

    /// Detects writes that no governor has seen; then a recount is due. To be called once this
    /// governor is in force.
    pub(super) fn detect_ungoverned_writes(&self) -> Result<()> {
        if !self.db.has_unruled()? {
            return Ok(());
        }
        self.saving.lock().is_counted = false;
        delete(&self.db, key(KEYSPACE, PATTERNS))?;
        self.db.forget_unruled()
    }

    fn row(&self, sk: &str) -> Result<Option<Item>> {
        let get = GetItem { table: TABLE.to_owned(), key: key(KEYSPACE, sk), ..GetItem::default() };
        let found = self.db.get_item(&get).wait()?.item;
        Ok(found.map(|item| item.decode()).transpose()?)
    }

    /// Removes what the index of persons says of tables that were dropped since this was last
    /// called, as [`prune`](Governor::prune) does, if there were any.
    pub fn prune_if_due(&self) -> Result<u64> {
        if self.row(DROPPED)?.is_none() {
            return Ok(0);
        }
        let removed = self.prune()?;
        delete(&self.db, key(KEYSPACE, DROPPED))?;
        Ok(removed)
    }

    /// Stores the catalogues for the next start.
    fn remember(&self) -> Result<()> {
        let catalogues = self.keyspace.catalogues();
        let file = |it: &Catalogue| (it.at.file.to_string(), it.source.to_string());
        let files = catalogues.iter().map(file).collect();
        let governed = Remembered { files, unknown_keys: self.unknown.rule() };
        let known = remembered(&self.db)?;
        if known.as_ref() == Some(&governed) {
            return Ok(());
        }
        let Remembered { files, unknown_keys } = governed;
        let before = known.map_or(0, |known| known.files.len());
        for at in files.len()..before {
            delete(&self.db, key(CATALOGUE, &format!("{at:04}")))?;
        }
        for (at, (file, text)) in files.into_iter().enumerate() {
            put(
                &self.db,
                key(CATALOGUE, &format!("{at:04}")).with("file", file).with("text", text),
            )?;
        }
        put(&self.db, key(KEYSPACE, RULES).with("unknown_keys", unknown_keys.to_string()))
    }

    fn load_tally(&self, row: &Item) -> Result<()> {
        let sk = text(row, "sk");
        let Some((id, db)) = self.tally_of(sk) else { return Ok(()) };
        let figures = Figures {
            keys: number(row, "keys"),
            bytes: number(row, "bytes"),
            members: number(row, "members"),
            members_written: number(row, "members_written").unsigned_abs(),
            member_bytes_written: number(row, "member_bytes_written").unsigned_abs(),
            writes: number(row, "writes").unsigned_abs(),
        };
        let days = rows(&self.db, &expiring(sk))?;
        self.counts.load(id, db, |tally| {
            tally.figures = figures;
            for day in &days {
                if let (Ok(number), Some(Value::B(counts))) =
                    (text(day, "sk").parse(), day.get("counts"))
                {
                    // Counts that cannot be read are as good as none: a recount makes them again.
                    let _ = tally.expiries.load(number, counts);
                }
            }
        });
        Ok(())
    }

    /// Which tally a row is of: `mastery.daily_mastery|table state`.
    fn tally_of(&self, sk: &str) -> Option<(PatternId, u8)> {
        let (name, place) = sk.split_once('|')?;
        let mut patterns = (0..).zip(self.keyspace.patterns());
        let (index, pattern) = patterns.find(|(_, it)| it.full_name() == name)?;
        match (&pattern.store, place.split_once(' ')?) {
            (Store::Redis, ("db", db)) => Some((PatternId(index), db.parse().ok()?)),
            (Store::Table(_), ("table", table)) => Some((self.counts.id_of_item(index, table), 0)),
            _ => None,
        }
    }

    /// Whether everything that is there was counted and indexed by these patterns. If not, a
    /// [`recount`](Governor::recount) is due.
    pub fn is_counted(&self) -> bool {
        self.saving.lock().is_counted
    }

    /// Writes to keys that no pattern declares, if they are counted.
    pub fn unknown(&self) -> UnknownSeen {
        self.unknown.seen()
    }

    /// The metrics of all declared keys, now. Reads nothing from disk.
    pub fn metrics(&self) -> Metrics {
        let off_by = self.saving.lock().off_by;
        self.metrics_at(self.db.engine().now_ms(), off_by)
    }

    fn metrics_at(&self, at_ms: u64, off_by_changes_max: u64) -> Metrics {
        let patterns = self.counts.metrics(&self.keyspace, at_ms);
        Metrics { at_ms, patterns, off_by_changes_max, unknown: self.unknown.seen() }
    }

    /// The key of the item of the table `kstone.keyspace` that shows what there is, as of the last
    /// [`save`](Governor::save): for those who only reach the database by a door. It is read by
    /// [`Metrics::of_item`].
    pub fn metrics_key() -> Item {
        key(KEYSPACE, METRICS)
    }

    /// Saves changed counts; returns whether there were any. To be called about once a second, and
    /// [`close`](Governor::close) at the end: counts that are not saved have to be recounted.
    pub fn save(&self) -> Result<bool> {
        let mut saving = self.saving.lock();
        self.note_dropped()?;
        // A change is counted a moment after it is committed: what was committed when this was last
        // called is in the counts for sure.
        let seq = std::mem::replace(&mut saving.looked_at, self.db.engine().applied_seq());
        self.save_now(&mut saving, seq)
    }

    /// Saves the counts before the database is closed.
    pub fn close(&self) -> Result<()> {
        let mut saving = self.saving.lock();
        self.note_dropped()?;
        let seq = self.db.engine().applied_seq();
        self.save_now(&mut saving, seq).map(drop)
    }

    fn note_dropped(&self) -> Result<()> {
        match self.sweep.take_dropped() {
            true => put(&self.db.with_durability(Durability::Os), key(KEYSPACE, DROPPED)),
            false => Ok(()),
        }
    }

    pub(super) fn save_now(&self, saving: &mut SaveState, seq: Seq) -> Result<bool> {
        let now_ms = self.db.engine().now_ms();
        let changes = self.counts.changes();
        let is_idle = saving.changes == Some(changes);
        if is_idle && now_ms < saving.shown.at_ms.saturating_add(IDLE_MS) {
            self.counts.each(|_, _, tally| tally.tick(now_ms));
            return self.note_seq(saving, seq, 0, now_ms).map(|()| false);
        }
        let shown = self.metrics_at(now_ms, saving.off_by);
        if is_idle && shown.is_like(&saving.shown) {
            saving.shown.at_ms = now_ms;
            return self.note_seq(saving, seq, 0, now_ms).map(|()| false);
        }
        let mut requests = Vec::new();
        self.counts.each(|pattern, place, tally| {
            tally.tick(now_ms);
            if !std::mem::take(&mut tally.is_changed) {
                return;
            }
            let Some(pattern) = self.keyspace.patterns().get(pattern as usize) else { return };
            let sk = format!("{}|{place}", pattern.full_name());
            let kept = tally.expiries.take_changed();
            requests.extend(kept.into_iter().map(|(day, counts)| {
                let row = key(&expiring(&sk), &format!("{day:06}"));
                match counts {
                    Some(counts) => WriteRequest::Put(row.with("counts", Value::B(counts.into()))),
                    None => WriteRequest::Delete(row),
                }
            }));
            requests.push(WriteRequest::Put(tally_row(&sk, place, &tally.figures)));
        });
        requests.push(WriteRequest::Put(shown.row(key(KEYSPACE, METRICS))));
        saving.shown = shown;
        let db = self.db.with_durability(Durability::Os);
        for batch in requests.chunks(BATCH) {
            let tables = vec![(TABLE.to_owned(), batch.to_vec())];
            db.batch_write(&BatchWrite { tables, ..BatchWrite::default() }).wait()?;
        }
        saving.changes = Some(changes);
        self.note_seq(saving, seq, requests.len() as u64, now_ms)?;
        Ok(true)
    }

    /// Notes that the counts are right up to a sequence number. `rows` were written after it.
    fn note_seq(&self, saving: &mut SaveState, seq: Seq, rows: u64, now_ms: u64) -> Result<()> {
        if saving.noted >= seq && rows == 0 {
            return Ok(());
        }
        let counted = key(KEYSPACE, COUNTED)
            .with("seq", seq)
            .with("rows", rows + 1)
            .with("off_by", saving.off_by)
            .with("at", now_ms);
        put(&self.db.with_durability(Durability::Os), counted)?;
        saving.noted = seq + rows + 1;
        Ok(())
    }

    /// Notes that everything was counted by these patterns.
    pub(super) fn note_patterns(&self, saving: &mut SaveState, off_by: u64) -> Result<()> {
        saving.off_by = off_by;
        saving.changes = None;
        put(&self.db, key(KEYSPACE, PATTERNS).with("fingerprint", fingerprint(&self.keyspace)))?;
        let seq = self.db.engine().applied_seq();
        self.save_now(saving, seq)?;
        saving.is_counted = true;
        Ok(())
    }

    pub(super) async fn keep_token(&self, token: Token) -> Result<()> {
        let item = key(ERASED, &token.to_text()).with("at", self.db.engine().now_ms());
        let put = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
        self.db.put_item(&put).await.map(drop)
    }

    pub(super) async fn forget_token(&self, token: Token) -> Result<()> {
        let key = key(ERASED, &token.to_text());
        let delete = DeleteItem { table: TABLE.to_owned(), key, ..DeleteItem::default() };
        self.db.delete_item(&delete).await.map(drop)
    }
}

fn expiring(sk: &str) -> String {
    format!("expiring|{sk}")
}

fn tally_row(sk: &str, place: TallyScope<'_>, figures: &Figures) -> Item {
    let row = key(COUNTS, sk)
        .with("keys", figures.keys.max(0))
        .with("bytes", figures.bytes)
        .with("writes", figures.writes);
    match place {
        TallyScope::Table(_) => row,
        TallyScope::Db(_) => row
            .with("members", figures.members)
            .with("members_written", figures.members_written)
            .with("member_bytes_written", figures.member_bytes_written),
    }
}
