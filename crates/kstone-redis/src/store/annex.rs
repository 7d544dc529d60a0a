//! Staging area for keys too large for one commit: filled first, made visible by the commit that writes
//! the head.
//!
//! A key whose parts are more than one batch holds (a copy of a large set, a restored stream) gets
//! an *annex*: a partition of a table that the slot has for this, named by a number. The parts go
//! there before the transaction commits. Nothing refers to them until the commit writes the key's
//! head, which names the annex, so nobody ever sees half a key, and what the key was before stays
//! until then. A head that names its annex has the [`ANNEXED`] bit in its first byte and the number
//! behind it.
//!
//! Before anything is written to an annex, a note in the catalogue says that it is being filled;
//! the commit removes the note. What a crash leaves behind is found by its note and dropped when
//! the database is opened.

use bytes::Bytes;
use kstone_core::{Durability, Engine, Key, KeyRef, TableId, WriteBatch};

use crate::fault::Result;
use crate::store::databases::Databases;

/// The bit of a head's first byte that says that the number of an annex follows.
pub(super) const ANNEXED: u8 = 0x80;
/// Most bytes of a key's parts that are held back for the commit; beyond that they go to an annex.
/// Three such keys and some more fit into one batch.
pub(super) const HELD_BACK_LEN_MAX: usize = 16 << 20;
/// How many bytes go into an annex at a time.
const PIECE_LEN: usize = 4 << 20;

/// The number of an annex. No number is ever used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnnexId(pub(super) u64);

impl AnnexId {
    /// The partition that it is.
    pub(super) fn partition(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// Splits a stored head into its annex and the head as the layers above know it.
pub(super) fn split(value: Bytes) -> (Option<AnnexId>, Bytes) {
    let [first, rest @ ..] = value.as_ref() else { return (None, value) };
    let (true, Some((id, body))) = (first & ANNEXED != 0, rest.split_first_chunk()) else {
        return (None, value);
    };
    let mut head = Vec::with_capacity(body.len() + 1);
    head.push(first & !ANNEXED);
    head.extend_from_slice(body);
    (Some(AnnexId(u64::from_be_bytes(*id))), head.into())
}

/// The head's body, behind what it is and where its annex is.
pub(super) fn body_of(value: &[u8]) -> &[u8] {
    let is_annexed = value.first().is_some_and(|first| first & ANNEXED != 0);
    value.get(if is_annexed { 9 } else { 1 }..).unwrap_or_default()
}

/// The other way around.
pub(super) fn join(id: AnnexId, value: &[u8]) -> Vec<u8> {
    let (first, body) = value.split_first().unwrap_or((&0, &[]));
    let mut head = Vec::with_capacity(value.len() + 8);
    head.push(first | ANNEXED);
    head.extend_from_slice(&id.partition());
    head.extend_from_slice(body);
    head
}

/// The key in the catalogue of the note that an annex is being filled.
pub(super) fn note_key(slot: u8, id: AnnexId) -> Key {
    let mut sk = vec![slot];
    sk.extend_from_slice(&id.partition());
    Key::with_sk(NOTES.to_vec(), sk)
}

/// The partition of the catalogue that has the notes.
pub(super) const NOTES: &[u8] = b"annexes";

/// Reads the key of a note.
pub(super) fn read_note(sk: &[u8]) -> Option<(u8, AnnexId)> {
    let (slot, id) = sk.split_first()?;
    Some((*slot, AnnexId(u64::from_be_bytes(id.try_into().ok()?))))
}

/// The annexes that one transaction fills. What was not handed over when it ends is dropped.
#[derive(Debug)]
pub(super) struct Filling<'s> {
    engine: &'s Engine,
    databases: &'s Databases,
    filled: Vec<(u8, TableId, AnnexId)>,
}

impl<'s> Filling<'s> {
    pub(super) fn new(engine: &'s Engine, databases: &'s Databases) -> Filling<'s> {
        Filling { engine, databases, filled: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// Whether this transaction has begun the annex.
    pub(super) fn has(&self, id: AnnexId) -> bool {
        self.filled.iter().any(|(_, _, have)| *have == id)
    }

    /// The annexes that this transaction has begun.
    pub(super) fn ids(&self) -> impl Iterator<Item = AnnexId> {
        self.filled.iter().map(|(_, _, id)| *id)
    }

    /// Begins another annex.
    pub(super) fn begin(&mut self, slot: u8) -> Result<AnnexId> {
        let table = self.databases.annex_table_for_writes(slot)?;
        // The note is a commit behind the one whose number this is, and stays in the log if
        // anything of the annex does: no annex that comes later, not even after a crash, gets this
        // number.
        let _numbering = self.databases.numbering.lock();
        let id = AnnexId(self.engine.applied_seq());
        let mut batch = WriteBatch::new();
        batch.put(self.databases.catalog(), &note_key(slot, id), b"")?;
        self.write(&batch)?;
        self.filled.push((slot, table, id));
        Ok(id)
    }

    /// Writes parts to an annex that this transaction has begun.
    pub(super) fn fill<'p>(
        &self,
        id: AnnexId,
        parts: impl Iterator<Item = (&'p Vec<u8>, &'p Option<Bytes>)>,
    ) -> Result<()> {
        let Some((_, table, _)) = self.filled.iter().find(|(_, _, have)| *have == id) else {
            return Ok(());
        };
        let pk = id.partition();
        let mut batch = WriteBatch::new();
        for (sk, value) in parts {
            let at = KeyRef { pk: &pk, sk: Some(sk) };
            match value {
                Some(value) => batch.put(*table, at, value)?,
                None => batch.delete(*table, at)?,
            }
            if batch.encoded_len() >= PIECE_LEN {
                self.write(&batch)?;
                batch = WriteBatch::new();
            }
        }
        self.write(&batch)
    }

    /// The log keeps the order of all writes, so none of these has to be durable before the commit
    /// that refers to them is.
    fn write(&self, batch: &WriteBatch) -> Result<()> {
        if !batch.is_empty() {
            drop(self.engine.write(batch, Durability::Os)?);
        }
        Ok(())
    }

    /// Adds to a batch what ends the filling: the notes go, and the annexes that `is_wanted` does
    /// not want. `is_emptied` says whether a slot's tables are dropped as a whole.
    pub(super) fn finish(
        &self,
        batch: &mut WriteBatch,
        is_wanted: impl Fn(u8, AnnexId) -> bool,
        is_emptied: impl Fn(u8) -> bool,
    ) -> Result<()> {
        for &(slot, table, id) in &self.filled {
            batch.delete(self.databases.catalog(), &note_key(slot, id))?;
            if !is_emptied(slot) && !is_wanted(slot, id) {
                batch.drop_partition(table, &id.partition())?;
            }
        }
        Ok(())
    }

    /// The commit has succeeded.
    pub(super) fn handed_over(&mut self) {
        self.filled.clear();
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if self.filled.is_empty() {
            return;
        }
        let mut batch = WriteBatch::new();
        let made = self.finish(&mut batch, |_, _| false, |_| false);
        // If this fails, the notes are still there when the database is opened the next time.
        let _ = made.and_then(|()| self.write(&batch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kstone::Database;

    #[test]
    fn a_head_says_where_its_annex_is() {
        let head = join(AnnexId(7), b"\x05body");
        assert_eq!(split(head.into()), (Some(AnnexId(7)), Bytes::from_static(b"\x05body")));
        assert_eq!(split(Bytes::from_static(b"\x05body")).0, None);
    }

    #[test]
    fn what_a_crash_leaves_in_an_annex_is_dropped_when_the_database_is_opened() {
        let database = Database::memory().unwrap();
        let engine = database.engine();
        let records = |table: TableId, pk: &[u8]| {
            engine.partition(table, Bytes::copy_from_slice(pk)).iter().unwrap().count()
        };
        let databases = Databases::open(&database).unwrap();
        let mut filling = Filling::new(engine, &databases);
        let id = filling.begin(3).unwrap();
        let part = (b"part".to_vec(), Some(Bytes::from_static(b"value")));
        filling.fill(id, [(&part.0, &part.1)].into_iter()).unwrap();
        let table = databases.annex_table(3).unwrap();
        assert_eq!(records(table, &id.partition()), 1);
        assert_eq!(records(databases.catalog(), NOTES), 1);
        // The machine stops here.
        std::mem::forget(filling);
        let databases = Databases::open(&database).unwrap();
        assert_eq!(records(table, &id.partition()), 0);
        assert_eq!(records(databases.catalog(), NOTES), 0);
        let mut filling = Filling::new(engine, &databases);
        let (one, other) = (filling.begin(3).unwrap(), filling.begin(3).unwrap());
        assert!(id.0 < one.0 && one.0 < other.0);
    }
}
