//! Rules for writes that a layer above declares: which keys there are, how long they live, what they
//! may hold, and whose data they are.
//!
//! The database knows no patterns. The layer that does implements [`WritePolicy`] and puts it in force with
//! `Database::govern`. From then on every write to an item and to a key of
//! Redis, whichever door it came through, is shown to the policy under the locks of what it writes,
//! before anything is staged. The policy refuses it, or says what else belongs to it: an expiry, and
//! entries in the index of persons, which become part of the same commit. After the commit it hears
//! what changed, for its counts.
//!
//! A policy answers in nanoseconds and reads nothing: it is called under locks.

use std::fmt;

use crate::value::ItemRef;

/// The table in which the index of persons is kept: an item for each key that holds data of a
/// person, with the person as `pk` and the key as `sk`. It is a table like any other, so that it is
/// read through the `Items` port; only the database itself writes to it.
pub const SUBJECTS_TABLE: &str = "kstone.subjects";

/// What a layer above demands of writes. See the module.
pub trait WritePolicy: fmt::Debug + Send + Sync {
    /// An item is about to be put in place of what is stored under its key.
    fn admit_item(&self, write: &ItemWrite<'_>) -> Result<Admitted, Refused>;

    /// An item is about to be deleted, or its time is over. This cannot be refused.
    fn release_item(&self, removal: &ItemRemoval<'_>) -> Admitted;

    /// A key of Redis is about to be made or changed.
    fn admit_key(&self, write: &KeyWrite<'_>) -> Result<Admitted, Refused>;

    /// A key of Redis is about to be removed, or its time is over. This cannot be refused.
    fn release_key(&self, removal: &KeyRemoval<'_>) -> Admitted;

    /// These were committed. Called right after the commit, on the thread that made it.
    fn committed(&self, changes: &[Counted]);

    /// All keys of one database of Redis are gone at once.
    fn emptied(&self, db: u8);

    /// Two databases of Redis have changed places.
    fn swapped(&self, one: u8, other: u8);

    /// All items of a table are gone at once, and the table with them.
    fn dropped(&self, table: &str);
}

/// An item that is about to be put.
#[derive(Debug, Clone, Copy)]
pub struct ItemWrite<'w> {
    /// The table's name.
    pub table: &'w str,
    /// The partition key's bytes: of a string its text, of a number its decimal digits.
    pub pk: &'w [u8],
    /// The sort key's bytes, if the table has one.
    pub sk: Option<&'w [u8]>,
    /// The item as it will be.
    pub item: ItemRef<'w>,
    /// The item as it is, unless there is none or its time is over.
    pub old: Option<ItemRef<'w>>,
    /// What the stored record takes, if there is one, even one whose time is over.
    pub before: Option<KeySize>,
    /// Whether all of the item is replaced (put), or attributes of it are changed (update).
    pub effect: Effect,
    /// What the write says about the item's life, by the attribute that the table expires by.
    pub asked: RequestedTtl,
    /// The name of the attribute that the table expires by, if it has one.
    pub ttl_attribute: Option<&'w str>,
    /// The one `now` of the whole operation.
    pub now_ms: u64,
}

/// An item that is about to go.
#[derive(Debug, Clone, Copy)]
pub struct ItemRemoval<'w> {
    /// The table's name.
    pub table: &'w str,
    /// The partition key's bytes.
    pub pk: &'w [u8],
    /// The sort key's bytes, if the table has one.
    pub sk: Option<&'w [u8]>,
    /// The item as it was.
    pub old: ItemRef<'w>,
    /// What it took.
    pub before: KeySize,
}

/// A key of Redis that is about to be made or changed, as one command leaves it.
#[derive(Debug, Clone, Copy)]
pub struct KeyWrite<'w> {
    /// The logical database.
    pub db: u8,
    /// The key.
    pub key: &'w [u8],
    /// What it holds.
    pub kind: KeyKind,
    /// Whether the command makes the key or replaces all of it, or changes what is there.
    pub effect: Effect,
    /// What the command says about the key's life.
    pub asked: RequestedTtl,
    /// The pattern that this policy itself said for this key before, if that is known: it need not be
    /// looked for again.
    pub pattern: Option<PatternId>,
    /// The whole value of a string that the command wrote at least a part of, unless it is very long
    /// and the command changed only a part.
    pub value: Option<&'w [u8]>,
    /// How long that value is; known even where the value is not shown.
    pub value_len: Option<u64>,
    /// The fields of a hash, or of one entry of a stream, that the command wrote.
    pub fields: &'w [(&'w [u8], &'w [u8])],
    /// The members that the command added to a list, a set or a sorted set.
    pub members: &'w [&'w [u8]],
    /// The fields or members that the command took away.
    pub removed: &'w [&'w [u8]],
    /// How many members a collection has afterwards.
    pub members_after: Option<u64>,
    /// What it took before, if it was there, even if its time was over.
    pub before: Option<KeySize>,
    /// The one `now` of the whole command.
    pub now_ms: u64,
}

/// A key of Redis that is about to go.
#[derive(Debug, Clone, Copy)]
pub struct KeyRemoval<'w> {
    /// The logical database.
    pub db: u8,
    /// The key.
    pub key: &'w [u8],
    /// What it took.
    pub before: KeySize,
}

/// What a stored key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySize {
    /// Bytes of key and value. Of a collection of Redis: without its members, whose sizes nobody
    /// keeps.
    pub bytes: u64,
    /// How many members a collection of Redis has.
    pub members: u64,
    /// When it ends.
    pub expires_at_ms: Option<u64>,
}

/// What a key of Redis holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// Bytes.
    String,
    /// Fields with bytes.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A set in the order of scores.
    Zset,
    /// A log of entries.
    Stream,
}

/// What a write does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It makes the key, or replaces all that it held.
    Makes,
    /// It changes a key that is there and leaves the rest of it.
    Changes,
}

/// What a write says about the key's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedTtl {
    /// Nothing.
    Unsaid,
    /// So many milliseconds from now.
    Ms(u64),
    /// What the key had before, as Redis's `KEEPTTL`.
    Keep,
    /// For good, as Redis's `PERSIST` and Dapr's `-1`.
    Never,
}

/// What becomes of the key's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// So many milliseconds from now.
    InMs(u64),
    /// It stays as it was, or as the write itself says.
    Keep,
    /// There is none.
    Never,
}

/// A write may happen; what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The pattern under which it is counted; `None` if it is outside all of them.
    pub pattern: Option<PatternId>,
    /// What becomes of the expiry.
    pub expiry: Expiry,
    /// To how many members the collection is to be trimmed in the same commit: a list at the end
    /// away from where it was pushed, a stream and a sorted set at the low end.
    pub trim_to: Option<u64>,
    /// Entries of the index of persons that are written in the same commit.
    pub index: Vec<IndexEntry>,
    /// Entries of the index of persons that are deleted in the same commit.
    pub unindex: Vec<IndexEntry>,
}

impl Admitted {
    /// Nothing belongs to it.
    pub const AS_IT_IS: Admitted = Admitted {
        pattern: None,
        expiry: Expiry::Keep,
        trim_to: None,
        index: Vec::new(),
        unindex: Vec::new(),
    };
}

/// The number of a pattern, as the policy counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(pub u32);

/// An item of [`SUBJECTS_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The person, or the key through which persons are found.
    pub pk: String,
    /// Where the data is.
    pub sk: String,
}

/// What a commit changed in one key, for those who count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The pattern.
    pub pattern: PatternId,
    /// The logical database of a key of Redis; 0 for items.
    pub db: u8,
    /// What it took before; `None` if it was not there.
    pub before: Option<KeySize>,
    /// What it takes now; `None` if it is gone.
    pub after: Option<KeySize>,
    /// How many members of a collection were written, and their bytes: from this the size of all is
    /// estimated.
    pub members_written: u32,
    /// The bytes of those members.
    pub member_bytes_written: u64,
    /// Whether a client wrote it: what only expired was not written.
    pub is_write: bool,
}

/// What a commit changed in all its keys. It is nearly always one, and then nothing is allocated.
#[derive(Debug, Clone, Default)]
pub struct CommitChanges {
    first: Option<Counted>,
    others: Vec<Counted>,
}

impl CommitChanges {
    /// Adds what was changed in a key.
    pub fn push(&mut self, counted: Counted) {
        match self.first {
            None => self.first = Some(counted),
            Some(_) => self.others.push(counted),
        }
    }

    /// All of it in its order, in up to two pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[Counted]> {
        [self.first.as_slice(), &self.others].into_iter().filter(|piece| !piece.is_empty())
    }
}

/// A write breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
