//! All records of a table: stripe after stripe, each in key order, from a cursor that can be kept.

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::Reader;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::key::internal::{self, Decoded};
use crate::read::snapshot::Snapshot;
use crate::read::walk::Walk;
use crate::read::{KeyedRecord, Record, expiry};
use crate::table::TableId;

/// Where a scan goes on, and where it ends. A parallel scan is one cursor per range of stripes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanCursor {
    stripe: u8,
    last_stripe: u8,
    after: Option<Key>,
}

impl ScanCursor {
    /// The whole table.
    pub fn start() -> Self {
        ScanCursor { stripe: 0, last_stripe: 255, after: None }
    }

    /// The `segment`-th of `total` parts (0-based): a range of stripes, so that the parts are
    /// disjoint, complete, and about equal. With more than 256 parts, some are empty.
    pub fn segment(segment: u32, total: u32) -> Result<Option<Self>> {
        if total == 0 || segment >= total {
            return Err(Error::invalid(format!("segment {segment} of {total} does not exist")));
        }
        let edge = |n: u32| (u64::from(n) * 256 / u64::from(total)) as u32;
        let (from, to) = (edge(segment), edge(segment + 1));
        if from == to {
            return Ok(None);
        }
        Ok(Some(ScanCursor { stripe: from as u8, last_stripe: (to - 1) as u8, after: None }))
    }

    /// Whether the scan reads this stripe.
    pub fn covers(&self, stripe: u8) -> bool {
        (self.stripe..=self.last_stripe).contains(&stripe)
    }

    /// The scan goes on behind `key`, which was the last one seen.
    pub fn after(&self, key: Key) -> Self {
        ScanCursor { stripe: key.stripe(), last_stripe: self.last_stripe, after: Some(key) }
    }

    /// The cursor as bytes, for handing out.
    pub fn to_bytes(&self) -> Bytes {
        let mut buf = BytesMut::new();
        buf.put_u8(self.stripe);
        buf.put_u8(self.last_stripe);
        if let Some(key) = &self.after {
            buf.put_u8(1 + u8::from(key.sk.is_some()));
            buf.put_u32_le(key.pk.len() as u32);
            buf.put_slice(&key.pk);
            buf.put_slice(key.sk.as_deref().unwrap_or_default());
        } else {
            buf.put_u8(0);
        }
        buf.freeze()
    }

    /// The cursor from what [`to_bytes`](ScanCursor::to_bytes) gave.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::decode(bytes).ok_or_else(|| Error::invalid("not a scan cursor of this database"))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (stripe, last_stripe, kind) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let after = match kind {
            0 => None,
            1 | 2 => {
                let len = reader.u32()? as usize;
                let pk = Bytes::copy_from_slice(reader.bytes(len)?);
                let sk = match kind {
                    2 => Some(Bytes::copy_from_slice(reader.bytes(reader.remaining())?)),
                    _ => None,
                };
                let key = Key { pk, sk };
                (key.stripe() == stripe).then_some(Some(key))?
            }
            _ => return None,
        };
        (reader.is_empty() && stripe <= last_stripe).then_some(ScanCursor {
            stripe,
            last_stripe,
            after,
        })
    }
}

/// Reads a table stripe by stripe. Nothing is sorted across stripes or held whole in memory.
#[derive(Debug)]
pub struct ScanIter {
    snapshot: Snapshot,
    table: TableId,
    /// Where the walk was opened; [`ScanIter::cursor`] adds how far it has got.
    cursor: ScanCursor,
    walk: Option<Walk>,
    /// The partition key of the last record, and the part of the stored key that it came from.
    pk: Vec<u8>,
    partition: Vec<u8>,
    checked: bool,
    done: bool,
}

/// A record of a table, borrowed from its iterator: what a caller that copies nothing reads.
#[derive(Debug, Clone, Copy)]
pub struct ScanRef<'a> {
    /// The partition key.
    pub pk: &'a [u8],
    /// The sort key, if the record has one.
    pub sk: Option<&'a [u8]>,
    /// The value.
    pub value: &'a [u8],
    /// From when on (milliseconds since 1970) the record counts as absent.
    pub expires_at_ms: Option<u64>,
    /// The sequence number of the write.
    pub version: u64,
}

impl ScanIter {
    pub(crate) fn new(snapshot: Snapshot, table: TableId, cursor: ScanCursor) -> Self {
        let (pk, partition) = (Vec::new(), Vec::new());
        ScanIter { snapshot, table, cursor, walk: None, pk, partition, checked: false, done: false }
    }

    /// Where another scan would go on, behind the last record returned; `None` at the end.
    pub fn cursor(&self) -> Option<ScanCursor> {
        if self.done {
            return None;
        }
        match self.walk.as_ref().and_then(|walk| internal::decode(walk.key()?)) {
            Some((_, Decoded::Record(key))) => {
                Some(ScanCursor { after: Some(key), ..self.cursor.clone() })
            }
            _ => Some(self.cursor.clone()),
        }
    }

    /// The next record, without copying it.
    pub fn next_ref(&mut self) -> Result<Option<ScanRef<'_>>> {
        if self.done {
            return Ok(None);
        }
        match self.step() {
            Ok(true) => Ok(self.current()),
            Ok(false) => {
                self.done = true;
                Ok(None)
            }
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }

    /// Goes on behind the partition of the last record, however many records it has.
    pub fn skip_partition(&mut self) -> Result<()> {
        if self.pk.is_empty() && self.partition.is_empty() {
            return Ok(());
        }
        let end = internal::partition_end(self.table, &self.pk);
        self.walk.as_mut().map_or(Ok(()), |walk| walk.skip_to(&end))
    }

    /// Goes to the next record; `false` at the end.
    fn step(&mut self) -> Result<bool> {
        if !self.checked {
            self.snapshot.check(self.table)?;
            self.checked = true;
        }
        loop {
            let walk = match &mut self.walk {
                Some(walk) => walk,
                none => none.insert(open(&self.snapshot, self.table, &self.cursor)),
            };
            while walk.advance()? {
                let Some(key) = walk.key() else { continue };
                let is_same =
                    !self.partition.is_empty() && internal::is_in_partition(key, &self.partition);
                if !is_same {
                    let Some(pk) = internal::pk_of(key) else { continue };
                    let len = internal::partition_len(key).unwrap_or_default();
                    self.pk = pk;
                    self.partition.clear();
                    self.partition.extend_from_slice(key.get(..len).unwrap_or_default());
                }
                return Ok(true);
            }
            self.walk = None;
            if self.cursor.stripe >= self.cursor.last_stripe {
                return Ok(false);
            }
            self.cursor.stripe += 1;
            self.cursor.after = None;
        }
    }

    /// The record that `step` went to.
    fn current(&self) -> Option<ScanRef<'_>> {
        let found = self.walk.as_ref()?.current()?;
        // One byte behind the partition tells whether a sort key follows.
        let sk_at = self.partition.len() + 1;
        let sk =
            internal::has_sk(found.key, sk_at).then(|| found.key.get(sk_at..).unwrap_or_default());
        Some(ScanRef {
            pk: &self.pk,
            sk,
            value: found.value,
            expires_at_ms: expiry(found.expires_at_ms),
            version: found.seq,
        })
    }

    fn owned(&self) -> Option<KeyedRecord> {
        let (found, value) = (self.current()?, self.walk.as_ref()?.value_bytes());
        let pk = Bytes::copy_from_slice(found.pk);
        Some(KeyedRecord {
            key: Key { pk, sk: found.sk.map(Bytes::copy_from_slice) },
            record: Record { value, expires_at_ms: found.expires_at_ms, version: found.version },
        })
    }
}

/// The walk over what is left of the cursor's stripe.
fn open(snapshot: &Snapshot, table: TableId, cursor: &ScanCursor) -> Walk {
    let low = match &cursor.after {
        None => internal::table_start(table),
        Some(key) => {
            let mut low = internal::encode(table, key);
            low.push(0);
            low
        }
    };
    let high = table.0.checked_add(1).map(|next| internal::table_start(TableId(next)));
    Walk::new(snapshot.clone(), cursor.stripe, low, high, true)
}

impl Iterator for ScanIter {
    type Item = Result<KeyedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_ref() {
            Ok(Some(_)) => self.owned().map(Ok),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Engine, KeyRef, Options, WriteBatch};

    #[test]
    fn a_scan_that_goes_on_behind_each_record_in_turn_misses_and_repeats_none() {
        let engine = Engine::memory(Options::default()).unwrap();
        let mut batch = WriteBatch::new();
        for n in 0..60u8 {
            // Escaped zeros, absent and empty sort keys, several records to a partition.
            let (pk, sk) = ([b'p', n % 20, 0], [n]);
            let sk = [None, Some(&sk[..0]), Some(&sk[..])][usize::from(n / 20)];
            batch.put(TableId::DEFAULT, KeyRef { pk: &pk, sk }, &[n]).unwrap();
        }
        engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        let snapshot = engine.snapshot();
        let whole: Vec<KeyedRecord> =
            snapshot.scan(TableId::DEFAULT, ScanCursor::start()).map(Result::unwrap).collect();
        assert_eq!(whole.len(), 60);

        let mut cursor = ScanCursor::start();
        for expected in &whole {
            let mut scan = snapshot.scan(TableId::DEFAULT, cursor);
            let found = scan.next_ref().unwrap().unwrap();
            assert_eq!((found.pk, found.sk), (&expected.key.pk[..], expected.key.sk.as_deref()));
            assert_eq!(found.value, expected.record.value);
            cursor = ScanCursor::from_bytes(&scan.cursor().unwrap().to_bytes()).unwrap();
        }
        let mut scan = snapshot.scan(TableId::DEFAULT, cursor);
        assert!(scan.next_ref().unwrap().is_none());
        assert_eq!(scan.cursor(), None);
    }

    #[test]
    fn a_scan_can_jump_over_the_rest_of_a_partition() {
        let engine = Engine::memory(Options::default()).unwrap();
        let mut batch = WriteBatch::new();
        for n in 0..20u8 {
            let pk = [n, 0];
            batch.put(TableId::DEFAULT, KeyRef { pk: &pk, sk: None }, b"").unwrap();
            for sk in 0..n {
                let sk = Some(&[sk][..]);
                batch.put(TableId::DEFAULT, KeyRef { pk: &pk, sk }, b"").unwrap();
            }
        }
        engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        let mut scan = engine.snapshot().scan(TableId::DEFAULT, ScanCursor::start());
        scan.skip_partition().unwrap();
        let mut heads = 0;
        while let Some(record) = scan.next_ref().unwrap() {
            assert!(record.sk.is_none());
            heads += 1;
            scan.skip_partition().unwrap();
        }
        assert_eq!(heads, 20);
    }

    #[test]
    fn a_cursor_reads_back_and_bytes_behind_it_are_refused() {
        let start = ScanCursor::start();
        for cursor in [start.clone(), start.after(Key::new("pk"))] {
            let mut bytes = cursor.to_bytes().to_vec();
            assert_eq!(ScanCursor::from_bytes(&bytes).unwrap(), cursor);
            bytes.push(0);
            assert!(ScanCursor::from_bytes(&bytes).is_err());
        }
        let with_sk = start.after(Key::with_sk("pk", ""));
        assert_eq!(ScanCursor::from_bytes(&with_sk.to_bytes()).unwrap(), with_sk);
    }
}
