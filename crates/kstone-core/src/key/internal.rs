//! The stored form of a key: one byte string whose plain byte order is the order we promise.
//!
//! ```text
//! table (4 bytes, big-endian) | pk, each 00 written as 00 FF | 00 T | sk, as it is
//! ```
//!
//! `T` is 00 for the partition's drop mark, 01 for a record without sort key, 02 for one with. The
//! escape keeps a partition key from running into its terminator, so comparing two stored keys is
//! one `memcmp`: table, then partition key, then mark, then the record without sort key, then sort
//! keys in byte order.

use std::ops::Bound;

use super::{KEY_LEN_MAX, Key, KeyRef};
use crate::error::{Error, Result};
use crate::table::TableId;

const ESCAPED_ZERO: u8 = 0xff;
const MARK: u8 = 0x00;
const NO_SK: u8 = 0x01;
const WITH_SK: u8 = 0x02;
/// Sorts behind every terminator and in front of an escaped zero: the end of a partition.
const PARTITION_END: u8 = 0x03;

/// How many bytes the table takes in front of the key.
pub(crate) const TABLE_LEN: usize = 4;

/// Refuses a key that is over the limit.
pub(crate) fn check_len(pk: &[u8], sk: Option<&[u8]>) -> Result<()> {
    let len = pk.len() + sk.map_or(0, <[u8]>::len);
    if len > KEY_LEN_MAX {
        return Err(Error::KeyTooLong { len, max: KEY_LEN_MAX });
    }
    Ok(())
}

/// Appends the stored form of a record's key.
pub(crate) fn encode_into(buf: &mut Vec<u8>, table: TableId, pk: &[u8], sk: Option<&[u8]>) {
    push_partition(buf, table, pk);
    match sk {
        None => buf.push(NO_SK),
        Some(sk) => {
            buf.push(WITH_SK);
            buf.extend_from_slice(sk);
        }
    }
}

/// How many bytes [`encode_into`] appends.
pub(crate) fn encoded_len(pk: &[u8], sk: Option<&[u8]>) -> usize {
    let zeros = pk.iter().filter(|&&b| b == 0).count();
    TABLE_LEN + pk.len() + zeros + 2 + sk.map_or(0, <[u8]>::len)
}

/// The stored form of a record's key.
pub(crate) fn encode(table: TableId, key: &Key) -> Vec<u8> {
    let mut buf = Vec::with_capacity(TABLE_LEN + key.len() + 4);
    encode_into(&mut buf, table, &key.pk, key.sk.as_deref());
    buf
}

/// A stored key on the stack, unless it is unusually long: a get allocates nothing for it.
#[derive(Debug)]
pub(crate) struct StoredKey {
    short: [u8; STORED_SHORT_MAX],
    len: usize,
    /// Used when `len` is 0, which no stored key's is.
    long: Vec<u8>,
}

const STORED_SHORT_MAX: usize = 96;

impl StoredKey {
    /// The stored form of a record's key, as [`encode`] gives it.
    #[inline]
    pub(crate) fn new(table: TableId, key: KeyRef<'_>) -> Self {
        let mut stored = StoredKey { short: [0; STORED_SHORT_MAX], len: 0, long: Vec::new() };
        if stored.write_short(table, key).is_none() {
            stored.len = 0;
            encode_into(&mut stored.long, table, key.pk, key.sk);
        }
        stored
    }

    /// `None` if the key is too long, or has a zero to escape.
    #[inline]
    fn write_short(&mut self, table: TableId, key: KeyRef<'_>) -> Option<()> {
        if key.pk.contains(&0) {
            return None;
        }
        self.push(&table.0.to_be_bytes())?;
        self.push(key.pk)?;
        match key.sk {
            None => self.push(&[0, NO_SK]),
            Some(sk) => {
                self.push(&[0, WITH_SK])?;
                self.push(sk)
            }
        }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        self.short.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }
}

impl std::ops::Deref for StoredKey {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.len {
            0 => &self.long,
            len => self.short.get(..len).unwrap_or_default(),
        }
    }
}

/// The bounds of what is read of one partition, which is written once: stored keys `[low, high)`.
#[derive(Debug)]
pub(crate) struct PartitionBounds {
    /// Table, escaped partition key and the terminator's 00.
    partition: Vec<u8>,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl PartitionBounds {
    /// The whole partition.
    pub(crate) fn new(table: TableId, pk: &[u8]) -> Self {
        let mut partition = Vec::with_capacity(TABLE_LEN + pk.len() + 4);
        push_partition(&mut partition, table, pk);
        PartitionBounds { partition, low: None, high: None }
    }

    /// Sets the range of sort keys.
    pub(crate) fn set(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        self.low = match low {
            Bound::Unbounded => None,
            Bound::Included(sk) => Some(self.key(sk)),
            Bound::Excluded(sk) => Some(behind(self.key(sk))),
        };
        self.high = match high {
            Bound::Unbounded => None,
            Bound::Included(sk) => Some(behind(self.key(sk))),
            Bound::Excluded(sk) => Some(self.key(sk)),
        };
    }

    /// Where the sort key starts in a stored key of the partition.
    pub(crate) fn sk_at(&self) -> usize {
        self.partition.len() + 1
    }

    /// The bounds, of which sort keys that start with `prefix` are left, if one is given.
    pub(crate) fn finish(self, prefix: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
        let of_prefix = prefix.map(|prefix| self.key(prefix));
        let PartitionBounds { partition, low, high } = self;
        let low = low.unwrap_or_else(|| followed_by(partition.clone(), MARK));
        let end = followed_by(partition, PARTITION_END);
        if let Some(first) = of_prefix {
            // A prefix of nothing but 0xff has no end of its own: the partition's is the end.
            let last = after_prefix(&first).filter(|last| *last < end).unwrap_or(end);
            return (low.max(first), high.unwrap_or_else(|| last.clone()).min(last));
        }
        (low, high.unwrap_or(end))
    }

    fn key(&self, sk: &[u8]) -> Vec<u8> {
        // And a byte more, for the key right behind.
        let mut key = Vec::with_capacity(self.partition.len() + 1 + sk.len() + 1);
        key.extend_from_slice(&self.partition);
        key.push(WITH_SK);
        key.extend_from_slice(sk);
        key
    }
}

/// The first key behind this one.
fn behind(key: Vec<u8>) -> Vec<u8> {
    followed_by(key, 0)
}

fn followed_by(mut key: Vec<u8>, byte: u8) -> Vec<u8> {
    key.push(byte);
    key
}

/// The key of the partition's drop mark, which is also the lowest key of the partition.
pub(crate) fn partition_mark(table: TableId, pk: &[u8]) -> Vec<u8> {
    let mut buf = Vec::with_capacity(TABLE_LEN + pk.len() + 4);
    push_partition(&mut buf, table, pk);
    buf.push(MARK);
    buf
}

/// The first key that is behind every record of the partition.
pub(crate) fn partition_end(table: TableId, pk: &[u8]) -> Vec<u8> {
    let mut buf = Vec::with_capacity(TABLE_LEN + pk.len() + 4);
    push_partition(&mut buf, table, pk);
    buf.push(PARTITION_END);
    buf
}

/// Table and escaped partition key without terminator: what the keys of all partitions whose
/// partition key starts with `pk_prefix` start with.
pub(crate) fn partition_prefix(table: TableId, pk_prefix: &[u8]) -> Vec<u8> {
    let mut buf = Vec::with_capacity(TABLE_LEN + pk_prefix.len() + 4);
    push_partition(&mut buf, table, pk_prefix);
    buf.pop();
    buf
}

/// The table's lowest possible key, which is also the end of the table before it.
pub(crate) fn table_start(table: TableId) -> Vec<u8> {
    table.0.to_be_bytes().to_vec()
}

/// The first byte string behind everything that starts with `prefix`; `None` if there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

/// The table a stored key belongs to.
pub(crate) fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk::<TABLE_LEN>().map(|bytes| TableId(u32::from_be_bytes(*bytes)))
}

/// Where a stored key's partition ends: the length of table, escaped pk and the terminator's 00.
pub(crate) fn partition_len(key: &[u8]) -> Option<usize> {
    let mut at = TABLE_LEN;
    loop {
        let zero = key.get(at..)?.iter().position(|&b| b == 0)? + at;
        if *key.get(zero + 1)? == ESCAPED_ZERO {
            at = zero + 2;
        } else {
            return Some(zero + 1);
        }
    }
}

/// Whether a stored key belongs to the partition whose first [`partition_len`] bytes these are.
/// (A partition key that goes on with a zero byte shares them, but escapes it next.)
pub(crate) fn is_in_partition(key: &[u8], partition: &[u8]) -> bool {
    key.starts_with(partition) && key.get(partition.len()) != Some(&ESCAPED_ZERO)
}

/// Whether the stored key has a sort key, given where one would start.
pub(crate) fn has_sk(key: &[u8], sk_at: usize) -> bool {
    sk_at.checked_sub(1).and_then(|at| key.get(at)) == Some(&WITH_SK)
}

/// What a stored key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoded {
    Record(Key),
    Mark { pk: Vec<u8> },
}

/// Takes a stored key apart; `None` if it is not one.
pub(crate) fn decode(key: &[u8]) -> Option<(TableId, Decoded)> {
    let table = table_of(key)?;
    let end = partition_len(key)?;
    let pk = unescape(key.get(TABLE_LEN..end - 1)?);
    let rest = key.get(end + 1..)?;
    match (*key.get(end)?, rest) {
        (MARK, []) => Some((table, Decoded::Mark { pk })),
        (NO_SK, []) => Some((table, Decoded::Record(Key::new(pk)))),
        (WITH_SK, sk) => Some((table, Decoded::Record(Key::with_sk(pk, sk.to_vec())))),
        _ => None,
    }
}

/// The partition key of a stored key, as the caller wrote it.
pub(crate) fn pk_of(key: &[u8]) -> Option<Vec<u8>> {
    let end = partition_len(key)?;
    Some(unescape(key.get(TABLE_LEN..end - 1)?))
}

/// The mark key of the partition that a stored key belongs to, written over `buf`.
pub(crate) fn mark_of_into(key: &[u8], buf: &mut Vec<u8>) -> Option<()> {
    let end = partition_len(key)?;
    buf.clear();
    buf.extend_from_slice(key.get(..end)?);
    buf.push(MARK);
    Some(())
}

fn push_partition(buf: &mut Vec<u8>, table: TableId, pk: &[u8]) {
    buf.extend_from_slice(&table.0.to_be_bytes());
    let mut rest = pk;
    while let Some(zero) = rest.iter().position(|&b| b == 0) {
        let (head, tail) = rest.split_at(zero + 1);
        buf.extend_from_slice(head);
        buf.push(ESCAPED_ZERO);
        rest = tail;
    }
    buf.extend_from_slice(rest);
    buf.push(0);
}

fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut pk = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        pk.push(byte);
        if byte == 0 {
            bytes.next();
        }
    }
    pk
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = Key> {
        // Few distinct bytes, so that zeros, escapes and shared prefixes are common.
        let bytes = || {
            proptest::collection::vec(prop::sample::select(vec![0u8, 1, 2, 3, 0xfe, 0xff]), 0..6)
        };
        (bytes(), proptest::option::of(bytes()))
            .prop_map(|(pk, sk)| Key { pk: pk.into(), sk: sk.map(Into::into) })
    }

    proptest! {
        #[test]
        fn stored_order_is_table_then_pk_then_no_sk_then_sk(
            a in any_key(), b in any_key(), ta in 0u32..3, tb in 0u32..3,
        ) {
            let stored = encode(TableId(ta), &a).cmp(&encode(TableId(tb), &b));
            prop_assert_eq!(stored, (ta, &a).cmp(&(tb, &b)));
        }

        #[test]
        fn a_stored_key_decodes_to_what_was_encoded(key in any_key(), table in any::<u32>()) {
            let stored = encode(TableId(table), &key);
            prop_assert_eq!(decode(&stored), Some((TableId(table), Decoded::Record(key.clone()))));
            prop_assert_eq!(pk_of(&stored), Some(key.pk.to_vec()));
            prop_assert_eq!(encoded_len(&key.pk, key.sk.as_deref()), stored.len());
            prop_assert_eq!(&*StoredKey::new(TableId(table), KeyRef::from(&key)), stored.as_slice());
        }

        #[test]
        fn a_partition_lies_between_its_mark_and_its_end(key in any_key(), other in any_key()) {
            let table = TableId(7);
            let (low, high) = (partition_mark(table, &key.pk), partition_end(table, &key.pk));
            let inside = |k: &Key| { let s = encode(table, k); low <= s && s < high };
            prop_assert!(inside(&key));
            prop_assert_eq!(inside(&other), other.pk == key.pk);
            let mut mark = Vec::new();
            mark_of_into(&encode(table, &key), &mut mark);
            prop_assert_eq!(mark, low);
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_stored_key_of_any_length_is_the_same_on_the_stack_and_off_it() {
        for len in 0..2 * STORED_SHORT_MAX {
            for (pk_len, sk_len) in [(len, 0), (0, len), (len / 2, len - len / 2)] {
                let key = Key::with_sk(vec![b'p'; pk_len], vec![b's'; sk_len]);
                let stored = StoredKey::new(TableId(9), KeyRef::from(&key));
                assert_eq!(&*stored, encode(TableId(9), &key));
                let key = Key::new(vec![b'p'; pk_len]);
                let stored = StoredKey::new(TableId(9), KeyRef::from(&key));
                assert_eq!(&*stored, encode(TableId(9), &key));
            }
        }
    }

    #[test]
    fn the_chapters_five_keys_sort_as_listed() {
        let keys = [
            Key::new(&b"user#123"[..]),
            Key::with_sk(&b"user#123"[..], &b"post#001"[..]),
            Key::with_sk(&b"user#123"[..], &b"post#002"[..]),
            Key::new(&b"user#124"[..]),
            Key::with_sk(&b"user#124"[..], &b"post#001"[..]),
        ];
        assert!(keys.is_sorted());
        assert!(keys.iter().map(|k| encode(TableId(0), k)).is_sorted());
    }
}
