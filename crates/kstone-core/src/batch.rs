//! A batch of writes, kept in the very bytes that go into the log.
//!
//! Encoding a batch does all the work that needs no lock; committing it is then one copy into the
//! log's buffer and one pass over the operations to insert them into memtables. Recovery decodes
//! the same bytes again.
//!
//! ```text
//! op      = tag u8 | body
//! Put     = 1 | stripe u8 | key (varint length, bytes) | value (varint length, bytes)
//! PutTtl  = 2 | stripe u8 | key | expires_at_ms varint | value
//! Delete  = 3 | stripe u8 | key
//! Drop    = 4 | stripe u8 | mark key           all of one partition
//! Create  = 5 | table u32                      a table
//! DropTab = 6 | table u32
//! Nop     = 7                                  takes a sequence number (bulk ingest)
//! ```
//! Every operation takes one sequence number, in order.

use crate::codec::{Reader, put_varint};
use crate::entry::{EntryRef, Kind};
use crate::error::{Error, Result};
use crate::key::internal::{self, StoredKey};
use crate::key::{KeyRef, stripe_of};
use crate::stripes::StripeSet;
use crate::table::TableId;

/// The longest value, in bytes. Longer ones are split by the layers above.
pub const VALUE_LEN_MAX: usize = 16 * 1024 * 1024;

/// The largest batch, in encoded bytes.
///
/// Why not smaller: DynamoDB's largest transaction (100 items of 400 KB) and one value of the
/// longest kind must fit. Why not larger: a batch is held in memory, in the log's buffer and in
/// one chunk of the log at the same time.
pub const BATCH_LEN_MAX: usize = 64 * 1024 * 1024;

const PUT: u8 = 1;
const PUT_TTL: u8 = 2;
const DELETE: u8 = 3;
const DROP_PARTITION: u8 = 4;
const CREATE_TABLE: u8 = 5;
const DROP_TABLE: u8 = 6;
const NOP: u8 = 7;

/// Writes that become visible and durable together, or not at all.
///
/// ```
/// use kstone_core::{Key, TableId, WriteBatch};
///
/// let mut batch = WriteBatch::new();
/// batch.put(TableId::DEFAULT, &Key::new("user#1"), b"Ada")?;
/// batch.delete(TableId::DEFAULT, &Key::new("user#2"))?;
/// assert_eq!(batch.len(), 2);
/// # Ok::<(), kstone_core::Error>(())
/// ```
///
/// Of two writes to one key, the later one wins.
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    ops: Vec<u8>,
    count: u32,
    stripes: StripeSet,
    /// The distinct tables written to, without the default one, which is always there. A batch
    /// rarely has more than a handful.
    tables: Vec<TableId>,
    /// It creates or drops a table.
    changes_tables: bool,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        WriteBatch::default()
    }

    /// Sets `key` to `value`.
    pub fn put<'k>(
        &mut self,
        table: TableId,
        key: impl Into<KeyRef<'k>>,
        value: &[u8],
    ) -> Result<()> {
        let key = key.into();
        self.push_put(table, key.pk, key.sk, value, 0)
    }

    /// Sets `key` to `value`, absent again from `expires_at_ms` (milliseconds since 1970) on.
    pub fn put_expiring<'k>(
        &mut self,
        table: TableId,
        key: impl Into<KeyRef<'k>>,
        value: &[u8],
        expires_at_ms: u64,
    ) -> Result<()> {
        let key = key.into();
        self.push_put(table, key.pk, key.sk, value, expires_at_ms.max(1))
    }

    /// Removes `key`; fine if it is absent.
    pub fn delete<'k>(&mut self, table: TableId, key: impl Into<KeyRef<'k>>) -> Result<()> {
        let key = key.into();
        internal::check_len(key.pk, key.sk)?;
        self.push_delete(key.stripe(), table, &StoredKey::new(table, key))
    }

    /// Removes every record of the partition, in constant time.
    pub fn drop_partition(&mut self, table: TableId, pk: &[u8]) -> Result<()> {
        internal::check_len(pk, None)?;
        let key = internal::partition_mark(table, pk);
        self.begin_keyed(DROP_PARTITION, stripe_of(pk), table, &key, 0)?;
        self.end_op();
        Ok(())
    }

    /// Removes a table with everything in it, in constant time. Its id is never used again.
    pub fn drop_table(&mut self, table: TableId) -> Result<()> {
        if table == TableId::DEFAULT || table == TableId::EXPIRY {
            return Err(Error::invalid(format!("table {} cannot be dropped", table.0)));
        }
        self.note_table(table);
        self.push_table_op(DROP_TABLE, table);
        Ok(())
    }

    /// How many operations it holds.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its encoded size, which counts against [`BATCH_LEN_MAX`].
    pub fn encoded_len(&self) -> usize {
        self.ops.len()
    }

    /// The stripes that it touches.
    pub fn stripes(&self) -> StripeSet {
        self.stripes
    }

    /// Makes room for so many encoded bytes more, for callers that know what will come.
    pub fn reserve(&mut self, bytes: usize) {
        self.ops.reserve(bytes.min(BATCH_LEN_MAX));
    }

    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.tables.clear();
        self.count = 0;
        self.changes_tables = false;
        self.stripes = StripeSet::EMPTY;
    }

    pub(crate) fn ops(&self) -> &[u8] {
        &self.ops
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn changes_tables(&self) -> bool {
        self.changes_tables
    }

    pub(crate) fn tables(&self) -> &[TableId] {
        &self.tables
    }

    pub(crate) fn push_put(
        &mut self,
        table: TableId,
        pk: &[u8],
        sk: Option<&[u8]>,
        value: &[u8],
        expires_at_ms: u64,
    ) -> Result<()> {
        internal::check_len(pk, sk)?;
        if value.len() > VALUE_LEN_MAX {
            return Err(Error::ValueTooLong { len: value.len(), max: VALUE_LEN_MAX });
        }
        let key_len = internal::encoded_len(pk, sk);
        let tag = if expires_at_ms == 0 { PUT } else { PUT_TTL };
        self.begin(tag, stripe_of(pk), table, key_len, value.len())?;
        put_varint(&mut self.ops, key_len as u64);
        internal::encode_into(&mut self.ops, table, pk, sk);
        if expires_at_ms != 0 {
            put_varint(&mut self.ops, expires_at_ms);
        }
        put_varint(&mut self.ops, value.len() as u64);
        self.ops.extend_from_slice(value);
        self.end_op();
        Ok(())
    }

    /// Removes a stored key; `table` is the one it belongs to.
    pub(crate) fn push_delete(&mut self, stripe: u8, table: TableId, key: &[u8]) -> Result<()> {
        self.begin_keyed(DELETE, stripe, table, key, 0)?;
        self.end_op();
        Ok(())
    }

    pub(crate) fn push_create_table(&mut self, table: TableId) {
        self.push_table_op(CREATE_TABLE, table);
    }

    /// An operation that only takes a sequence number.
    pub(crate) fn push_nop(&mut self) {
        self.ops.push(NOP);
        self.end_op();
    }

    fn push_table_op(&mut self, tag: u8, table: TableId) {
        self.changes_tables = true;
        self.ops.push(tag);
        self.ops.extend_from_slice(&table.0.to_le_bytes());
        self.end_op();
    }

    fn begin_keyed(
        &mut self,
        tag: u8,
        stripe: u8,
        table: TableId,
        key: &[u8],
        value_len: usize,
    ) -> Result<()> {
        self.begin(tag, stripe, table, key.len(), value_len)?;
        put_varint(&mut self.ops, key.len() as u64);
        self.ops.extend_from_slice(key);
        Ok(())
    }

    /// Checks the limits before anything is appended, so that a refused write leaves no trace.
    fn begin(
        &mut self,
        tag: u8,
        stripe: u8,
        table: TableId,
        key_len: usize,
        value_len: usize,
    ) -> Result<()> {
        let len = self.ops.len() + key_len + value_len + 32;
        if len > BATCH_LEN_MAX {
            return Err(Error::BatchTooLarge { len, max: BATCH_LEN_MAX });
        }
        self.note_table(table);
        self.stripes.insert(stripe);
        // Once, not as often as the fields of the first operation would have it grow.
        self.ops.reserve(key_len + value_len + 32);
        self.ops.push(tag);
        self.ops.push(stripe);
        Ok(())
    }

    fn note_table(&mut self, table: TableId) {
        if table != TableId::DEFAULT
            && self.tables.last() != Some(&table)
            && !self.tables.contains(&table)
        {
            self.tables.push(table);
        }
    }

    fn end_op(&mut self) {
        self.count += 1;
    }
}

/// One decoded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// A record's entry; its `seq` is filled in by the caller.
    Entry {
        stripe: u8,
        entry: EntryRef<'a>,
    },
    CreateTable(TableId),
    DropTable(TableId),
    Nop,
}

/// Decodes the operations of a batch; ends with one `None` inside `Some` on malformed bytes.
#[derive(Debug)]
pub(crate) struct Ops<'a> {
    reader: Reader<'a>,
    next_seq: u64,
}

impl<'a> Ops<'a> {
    pub(crate) fn new(bytes: &'a [u8], first_seq: u64) -> Self {
        Ops { reader: Reader::new(bytes), next_seq: first_seq }
    }

    /// How many bytes were decoded so far.
    pub(crate) fn position(&self) -> usize {
        self.reader.position()
    }

    /// The next operation with its sequence number; `Ok(None)` at the end, `Err(offset)` where the
    /// bytes make no sense.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Op<'a>)>, usize> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        let at = self.reader.position();
        let seq = self.next_seq;
        let op = self.decode(seq).ok_or(at)?;
        self.next_seq = seq.wrapping_add(1);
        Ok(Some((seq, op)))
    }

    fn decode(&mut self, seq: u64) -> Option<Op<'a>> {
        let reader = &mut self.reader;
        let tag = reader.u8()?;
        match tag {
            CREATE_TABLE => return Some(Op::CreateTable(TableId(reader.u32()?))),
            DROP_TABLE => return Some(Op::DropTable(TableId(reader.u32()?))),
            NOP => return Some(Op::Nop),
            _ => {}
        }
        let stripe = reader.u8()?;
        let key = reader.prefixed()?;
        let (kind, expires_at_ms, value) = match tag {
            PUT => (Kind::Put, 0, reader.prefixed()?),
            PUT_TTL => (Kind::Put, reader.varint()?, reader.prefixed()?),
            DELETE => (Kind::Delete, 0, &[][..]),
            DROP_PARTITION => (Kind::DropPartition, 0, &[][..]),
            _ => return None,
        };
        Some(Op::Entry { stripe, entry: EntryRef { key, seq, kind, expires_at_ms, value } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn operations_decode_to_what_was_written_with_ascending_sequence_numbers() {
        let (t, key) = (TableId(3), Key::with_sk("pk", "sk"));
        let mut batch = WriteBatch::new();
        batch.put(t, &key, b"value").unwrap();
        batch.put_expiring(t, &key, b"", 77).unwrap();
        batch.delete(t, &key).unwrap();
        batch.drop_partition(t, b"pk").unwrap();
        batch.drop_table(t).unwrap();
        batch.push_nop();
        let stored = internal::encode(t, &key);
        let mark = internal::partition_mark(t, b"pk");
        let stripe = key.stripe();
        let mut ops = Ops::new(batch.ops(), 10);
        let mut expect = |seq, kind, key: &[u8], expires_at_ms, value: &[u8]| {
            let entry = EntryRef { key, seq, kind, expires_at_ms, value };
            assert_eq!(ops.next(), Ok(Some((seq, Op::Entry { stripe, entry }))));
        };
        expect(10, Kind::Put, &stored, 0, b"value");
        expect(11, Kind::Put, &stored, 77, b"");
        expect(12, Kind::Delete, &stored, 0, b"");
        expect(13, Kind::DropPartition, &mark, 0, b"");
        assert_eq!(ops.next(), Ok(Some((14, Op::DropTable(t)))));
        assert_eq!(ops.next(), Ok(Some((15, Op::Nop))));
        assert_eq!(ops.next(), Ok(None));
    }

    #[test]
    fn what_is_over_a_limit_is_refused_and_leaves_the_batch_as_it_was() {
        let mut batch = WriteBatch::new();
        let long = Key::new(vec![b'x'; 64 * 1024 + 1]);
        assert!(matches!(
            batch.put(TableId::DEFAULT, &long, b""),
            Err(Error::KeyTooLong { len: 65537, .. })
        ));
        let value = vec![0; VALUE_LEN_MAX + 1];
        assert!(matches!(
            batch.put(TableId::DEFAULT, &Key::new("k"), &value),
            Err(Error::ValueTooLong { .. })
        ));
        for _ in 0..3 {
            batch.put(TableId::DEFAULT, &Key::new("k"), &value[1..]).unwrap();
        }
        let before = batch.encoded_len();
        assert!(matches!(
            batch.put(TableId::DEFAULT, &Key::new("k"), &value[1..]),
            Err(Error::BatchTooLarge { .. })
        ));
        assert_eq!((batch.len(), batch.encoded_len()), (3, before));
    }
}
