//! Applies the write policy in force to writes of items.
//!
//! The policy is asked under the stripe locks of the item, after its condition has been checked and
//! before anything is staged. What it adds (an expiry, entries of the index of persons) is staged
//! with the item, in the same commit. When the locks turn out to be too few and the work is done
//! again, it is asked again; it hears of the commit once.
//!
//! An item's expiry is an attribute that its owner can read. So the life that a policy gives an
//! item is written into the attribute by which its table expires, and a table that has none refuses
//! an item that must end: an item that goes without notice looks like a loss.
//!
//! The tables whose names begin with `kstone.` are the database's own, and no policy is asked about
//! them. The default table has no name that a pattern could have, so nothing of it is declared: the
//! policy only says whether such a key may be written at all.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use kstone_core::sync::RwLock;
use kstone_core::{Durability, Key, KeyRef, TableId, WriteBatch};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::ops::is_too_large;
use crate::policy::{
    Admitted, Counted, Effect, Expiry, IndexEntry, ItemRemoval, ItemWrite, KeySize, PatternId,
    RequestedTtl, SUBJECTS_TABLE, WritePolicy,
};
use crate::staging::{Cause, Staged, Stored};
use crate::table::catalog::SYSTEM;
use crate::table::live::Table;
use crate::table::{KeyAttribute, KeySchema, KeyType, TableSpec};
use crate::value::{ItemBuilder, ItemBytes, Number, NumberRef, ValueRef};

/// What the names of the database's own tables begin with.
const OWN_PREFIX: &str = "kstone.";

/// The partition of [`SYSTEM`] that is there if anything was written that no policy has seen.
const UNRULED: &[u8] = b"unruled";

/// Whether a table of this name is the database's own.
pub(crate) fn is_own(table: &str) -> bool {
    table.starts_with(OWN_PREFIX)
}

/// The policy in force, if any. Without one, asking for it is one load.
#[derive(Debug, Default)]
pub(crate) struct ActivePolicy {
    /// The number of the policy in force; 0 if there is none.
    number: AtomicU64,
    /// How many policies there have been.
    count: AtomicU64,
    rules: RwLock<Option<Arc<Rules>>>,
    /// Whether it is noted that there are writes which no policy has seen, or need not be.
    is_unruled_noted: AtomicBool,
}

/// A policy, and where its index of persons is.
#[derive(Debug)]
pub(crate) struct Rules {
    pub policy: Arc<dyn WritePolicy>,
    subjects: TableId,
}

impl ActivePolicy {
    /// Whether a write that no policy sees needs no more notes.
    pub fn is_unruled_noted(&self) -> bool {
        self.is_unruled_noted.load(Ordering::Relaxed)
    }

    pub fn rules(&self) -> Option<Arc<Rules>> {
        if self.number.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.rules.read().clone()
    }

    fn begin(&self, rules: Rules) {
        let mut current = self.rules.write();
        *current = Some(Arc::new(rules));
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.number.store(number, Ordering::Release);
    }

    /// Lets go of the policy, when the database is closed.
    pub fn end(&self) {
        // What comes then is noted anew, whatever was noted before.
        self.is_unruled_noted.store(false, Ordering::Relaxed);
        let mut current = self.rules.write();
        let ended = current.take();
        self.number.store(0, Ordering::Release);
        drop((current, ended));
    }
}

impl Database {
    /// Puts a policy in force, for all writes to this open database, in place of the one
    /// that is. When this returns, every write that the policy has not seen is committed.
    ///
    /// The database holds the policy until it is closed. So a policy that wants to reach the
    /// database holds an [`internal`](Database::internal) handle; with any other, or with a layer
    /// that holds one, neither would ever be let go of.
    pub fn govern(&self, policy: Arc<dyn WritePolicy>) -> Result<()> {
        let internal = self.internal();
        let pair = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
        let spec = TableSpec { name: SUBJECTS_TABLE.to_owned(), key: pair, ..TableSpec::default() };
        internal.require_now(&spec, None)?;
        let subjects = internal.table_for_items(SUBJECTS_TABLE)?.id();
        self.inner().policy.begin(Rules { policy, subjects });
        self.settle_now()
    }

    /// Puts no policy in force any more, and lets go of the one that was.
    pub fn ungovern(&self) {
        self.inner().policy.end();
    }

    /// Notes, durably, that something is about to be written which no policy sees: a policy that governs
    /// this database next has to look at everything. Noted once, and only where a policy was ever
    /// in force. For a layer that has a commit of its own.
    pub fn note_unruled(&self) -> Result<()> {
        let policy = &self.inner().policy;
        if policy.is_unruled_noted() {
            return Ok(());
        }
        if self.table_for_items(SUBJECTS_TABLE).is_ok() && !self.has_unruled()? {
            let mut batch = WriteBatch::new();
            batch.put(SYSTEM, &Key::new(UNRULED.to_vec()), b"")?;
            self.engine().write(&batch, Durability::Sync)?.wait()?;
        }
        policy.is_unruled_noted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether anything was written that no policy has seen, since
    /// [`forget_unruled`](Database::forget_unruled).
    pub fn has_unruled(&self) -> Result<bool> {
        Ok(self.engine().get(SYSTEM, &Key::new(UNRULED.to_vec()))?.is_some())
    }

    /// Takes the note back, once it has been noted elsewhere that everything has to be looked at.
    /// Only while a policy is in force.
    pub fn forget_unruled(&self) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(SYSTEM, &Key::new(UNRULED.to_vec()))?;
        Ok(self.engine().write(&batch, Durability::Sync)?.wait()?)
    }

    /// The policy that is in force.
    pub fn policy(&self) -> Option<Arc<dyn WritePolicy>> {
        let policy = &self.inner().policy;
        if policy.number.load(Ordering::Acquire) == 0 {
            return None;
        }
        policy.rules.read().as_ref().map(|rules| Arc::clone(&rules.policy))
    }

    /// Which policy is in force: 0 for none, and another number for each that ever was. One load:
    /// who writes again and again keeps the policy, and asks for it anew when this has changed.
    pub fn policy_number(&self) -> u64 {
        self.inner().policy.number.load(Ordering::Acquire)
    }

    /// The record that an entry of the index of persons is stored as: for a layer that has a commit
    /// of its own, to put into it or to delete with it.
    pub fn subject_record(&self, entry: &IndexEntry) -> Result<(TableId, Key, Bytes)> {
        let rules = self.inner().policy.rules().ok_or_else(|| {
            Error::validation("no policy is in force, so there is no index of persons")
        })?;
        Ok((rules.subjects, entry.key(), entry.item().into_bytes()))
    }

    /// Refuses what would write to one of the database's own tables from outside.
    pub(crate) fn check_may_write(&self, table: &str) -> Result<()> {
        if self.is_internal() || !is_own(table) {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "table {table} is written by the database alone: names that begin with {OWN_PREFIX} \
             are its own"
        )))
    }

    /// Returns once every write that began before is committed and seen by readers.
    pub(crate) fn settle_now(&self) -> Result<()> {
        self.engine().fence();
        let none = kstone_core::StripeSet::EMPTY;
        drop(self.engine().lock_stripes(none)?.snapshot()?);
        Ok(())
    }

    /// Commits a write to the default table if the policy has nothing against such keys.
    pub(crate) fn put_ruled(
        &self,
        key: KeyRef<'_>,
        item: &ItemBytes,
        batch: &WriteBatch,
    ) -> Result<()> {
        let locked = self.engine().lock_stripes([key.stripe()].into_iter().collect())?;
        if let Some(policy) = self.policy() {
            policy.admit_item(&ItemWrite {
                table: "",
                pk: key.pk,
                sk: key.sk,
                item: item.as_ref(),
                old: None,
                before: None,
                effect: Effect::Makes,
                asked: RequestedTtl::Unsaid,
                ttl_attribute: None,
                now_ms: locked.now_ms(),
            })?;
        }
        Ok(locked.commit(batch, self.durability())?.wait()?)
    }
}

impl IndexEntry {
    fn key(&self) -> Key {
        Key::with_sk(self.pk.as_bytes().to_vec(), self.sk.as_bytes().to_vec())
    }

    fn item(&self) -> ItemBytes {
        let mut item = ItemBuilder::with_capacity(self.pk.len() + self.sk.len() + 16);
        item.push("pk", ValueRef::S(&self.pk));
        item.push("sk", ValueRef::S(&self.sk));
        item.finish()
    }
}

impl Staged<'_> {
    /// Whether writes to this table are shown to a policy: then what is stored has to be read.
    pub fn is_ruled(&self, table: &Table) -> bool {
        self.rules.is_some() && !is_own(table.name())
    }

    /// Shows an item that is about to be put to the policy, and stages what else belongs to it.
    /// Gives the item that is to be put instead, if the policy says so, and when it ends.
    pub fn admit(
        &mut self,
        table: &Table,
        key: &Key,
        old: Option<&Stored>,
        new: &ItemBytes,
        effect: Effect,
    ) -> Result<(Option<ItemBytes>, Option<u64>)> {
        let now_ms = self.locked.now_ms();
        let Some(rules) = &self.rules else {
            return Ok((None, table.expiry_ms(new.as_ref(), now_ms)));
        };
        let live = old.and_then(Stored::live);
        let (pk, sk) = key_text(table, key);
        let before = old.map(|old| key_size(key, &old.item, old.expires_at_ms));
        // Looked for once: an item has its attributes in a row.
        let said = table.ttl_attribute().and_then(|attribute| new.as_ref().get(attribute));
        let at_ms = said.and_then(|_| table.expiry_ms(new.as_ref(), now_ms));
        let admitted = rules.policy.admit_item(&ItemWrite {
            table: table.name(),
            pk: &pk,
            sk: sk.as_deref(),
            item: new.as_ref(),
            old: live.map(ItemBytes::as_ref),
            before,
            effect,
            asked: asked(table, live, said, effect, at_ms, now_ms),
            ttl_attribute: table.ttl_attribute(),
            now_ms,
        })?;
        let is_null = matches!(said, Some(ValueRef::Null));
        let ruled = with_expiry(table, new, admitted.expiry, at_ms, is_null, now_ms)?;
        rules.index(&mut self.batch, &admitted)?;
        let ends_at_ms = match &ruled {
            None => at_ms,
            Some(item) => table.expiry_ms(item.as_ref(), now_ms),
        };
        let after = key_size(key, ruled.as_ref().unwrap_or(new), ends_at_ms);
        self.count(admitted.pattern, before, Some(after), true);
        Ok((ruled, ends_at_ms))
    }

    /// Tells the policy of an item that is about to go, and stages what else goes with it.
    pub fn release(&mut self, table: &Table, key: &Key, old: &Stored, cause: Cause) -> Result<()> {
        let before = key_size(key, &old.item, old.expires_at_ms);
        let Some(released) = self.released(table, key, old, before) else { return Ok(()) };
        if let Some(rules) = &self.rules {
            rules.index(&mut self.batch, &released)?;
        }
        self.count(released.pattern, Some(before), None, cause == Cause::User && !old.expired);
        Ok(())
    }

    /// Tells the policy of an item that stays, and ends at another time because its table has begun
    /// or ceased to expire its items.
    pub fn restamp(&mut self, table: &Table, key: &Key, old: &Stored, expires_at_ms: Option<u64>) {
        let before = key_size(key, &old.item, old.expires_at_ms);
        // The pattern that counts it is given for an item that goes, too. It does not go, so
        // nothing else of the answer counts.
        if let Some(released) = self.released(table, key, old, before) {
            self.count(
                released.pattern,
                Some(before),
                Some(KeySize { expires_at_ms, ..before }),
                false,
            );
        }
    }

    fn released(
        &self,
        table: &Table,
        key: &Key,
        old: &Stored,
        before: KeySize,
    ) -> Option<Admitted> {
        let rules = self.rules.as_ref().filter(|_| self.is_ruled(table))?;
        let (pk, sk) = key_text(table, key);
        Some(rules.policy.release_item(&ItemRemoval {
            table: table.name(),
            pk: &pk,
            sk: sk.as_deref(),
            old: old.item.as_ref(),
            before,
        }))
    }

    /// Notes what the policy is to hear once this is committed.
    fn count(
        &mut self,
        pattern: Option<PatternId>,
        before: Option<KeySize>,
        after: Option<KeySize>,
        is_write: bool,
    ) {
        let Some(pattern) = pattern else { return };
        let (members_written, member_bytes_written) = (0, 0);
        self.counted.push(Counted {
            pattern,
            db: 0,
            before,
            after,
            members_written,
            member_bytes_written,
            is_write,
        });
    }
}

impl Rules {
    /// Adds the entries of the index of persons to a commit.
    fn index(&self, batch: &mut WriteBatch, admitted: &Admitted) -> Result<()> {
        for entry in &admitted.unindex {
            batch.delete(self.subjects, &entry.key())?;
        }
        for entry in &admitted.index {
            batch.put(self.subjects, &entry.key(), entry.item().as_slice())?;
        }
        Ok(())
    }
}

/// What an item takes: its engine key and its bytes as they are stored.
fn key_size(key: &Key, item: &ItemBytes, expires_at_ms: Option<u64>) -> KeySize {
    let key_len = key.pk.len() + key.sk.as_ref().map_or(0, Bytes::len);
    let bytes = (key_len + item.as_slice().len()) as u64;
    KeySize { bytes, members: 0, expires_at_ms }
}

/// The key as a policy reads it.
pub(crate) fn key_text<'k>(table: &Table, key: &'k Key) -> (Cow<'k, [u8]>, Option<Cow<'k, [u8]>>) {
    let text = |attribute: Option<&KeyAttribute>, bytes: &'k [u8]| {
        if attribute.is_some_and(|attribute| attribute.kind == KeyType::N)
            && let Some(number) = NumberRef::read(bytes)
        {
            return Cow::Owned(number.decimal().as_bytes().to_vec());
        }
        Cow::Borrowed(bytes)
    };
    let schema = table.key();
    let sk = key.sk.as_ref().map(|sk| text(schema.range.first(), sk));
    (text(schema.hash.first(), &key.pk), sk)
}

/// What a write says about the item's life.
fn asked(
    table: &Table,
    live: Option<&ItemBytes>,
    has: Option<ValueRef<'_>>,
    effect: Effect,
    at_ms: Option<u64>,
    now_ms: u64,
) -> RequestedTtl {
    let Some(attribute) = table.ttl_attribute() else { return RequestedTtl::Unsaid };
    let had =
        live.filter(|_| effect == Effect::Changes).and_then(|old| old.as_ref().get(attribute));
    match (had, has) {
        (Some(_), None) => RequestedTtl::Never,
        (Some(had), Some(has)) if had.eq_value(has) => RequestedTtl::Unsaid,
        (_, Some(ValueRef::Null)) => RequestedTtl::Never,
        // A value that the table does not expire by says nothing.
        _ => match at_ms {
            Some(at_ms) => RequestedTtl::Ms(at_ms.saturating_sub(now_ms)),
            None => RequestedTtl::Unsaid,
        },
    }
}

/// The item with the expiry that the policy says; `None` if it has that already. A put that says that
/// the item shall not end says so by null: without the attribute it leaves it to the policy.
fn with_expiry(
    table: &Table,
    item: &ItemBytes,
    expiry: Expiry,
    at_ms: Option<u64>,
    is_null: bool,
    now_ms: u64,
) -> Result<Option<ItemBytes>> {
    let ruled = match (expiry, table.ttl_attribute()) {
        (Expiry::Keep, _) | (Expiry::Never, None) => return Ok(None),
        (Expiry::Never, Some(_)) if at_ms.is_none() && !is_null => return Ok(None),
        (Expiry::Never, Some(attribute)) => item.as_ref().filter(|name| name != attribute),
        (Expiry::InMs(_), None) => {
            return Err(Error::Refused(format!(
                "the item must end, and table {} has no attribute to expire by: switch on its \
                 time to live first (UpdateTimeToLive)",
                table.name()
            )));
        }
        (Expiry::InMs(ms), Some(attribute)) => {
            // An item never ends early: what is left of a second belongs to it.
            let second = now_ms.saturating_add(ms).div_ceil(1000);
            if at_ms == Some(second.saturating_mul(1000)) {
                return Ok(None);
            }
            with_number(item, attribute, Number::from(second))
        }
    };
    if is_too_large(&ruled) {
        return Err(Error::validation("Item size has exceeded the maximum allowed size"));
    }
    table.check_index_keys(ruled.as_ref())?;
    Ok(Some(ruled))
}

/// The item with a number in place of whatever the attribute was; nothing else is decoded.
fn with_number(item: &ItemBytes, attribute: &str, number: Number) -> ItemBytes {
    let mut ruled = ItemBuilder::with_capacity(item.as_slice().len() + attribute.len() + 24);
    let mut is_set = false;
    let number = ValueRef::N(number.as_number_ref());
    for (name, value) in item.as_ref().iter() {
        if !is_set && name >= attribute {
            ruled.push(attribute, number);
            is_set = true;
        }
        if name != attribute {
            ruled.push(name, value);
        }
    }
    if !is_set {
        ruled.push(attribute, number);
    }
    ruled.finish()
}
