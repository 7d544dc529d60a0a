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
    cursor: ScanCursor,
    walk: Option<Walk>,
    checked: bool,
    done: bool,
}

impl ScanIter {
    pub(crate) fn new(snapshot: Snapshot, table: TableId, cursor: ScanCursor) -> Self {
        ScanIter { snapshot, table, cursor, walk: None, checked: false, done: false }
    }

    /// Where another scan would go on, behind the last record returned; `None` at the end.
    pub fn cursor(&self) -> Option<ScanCursor> {
        (!self.done).then(|| self.cursor.clone())
    }

    fn step(&mut self) -> Result<Option<KeyedRecord>> {
        if !self.checked {
            self.snapshot.check(self.table)?;
            self.checked = true;
        }
        loop {
            let walk = match &mut self.walk {
                Some(walk) => walk,
                none => none.insert(open(&self.snapshot, self.table, &self.cursor)),
            };
            if let Some(found) = walk.next()? {
                let Some((_, Decoded::Record(key))) = internal::decode(found.key) else { continue };
                let record = Record {
                    value: found.value.clone(),
                    expires_at_ms: expiry(found.expires_at_ms),
                    version: found.seq,
                };
                self.cursor.after = Some(key.clone());
                return Ok(Some(KeyedRecord { key, record }));
            }
            self.walk = None;
            if self.cursor.stripe >= self.cursor.last_stripe {
                return Ok(None);
            }
            self.cursor.stripe += 1;
            self.cursor.after = None;
        }
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
        if self.done {
            return None;
        }
        let step = self.step().transpose();
        if !matches!(step, Some(Ok(_))) {
            self.done = true;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
