//! Reading a shard: the records of its stripes, merged by sequence number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kstone_core::{KeyedRecord, PartitionIter, Seq, Snapshot, TableId};
use xxhash_rust::xxh3::Xxh3;

use crate::database::{Database, Reply};
use crate::error::{Error, Result, table_gone};
use crate::stream::describe::{Found, no_such_stream, shard_id};
use crate::stream::iterator::ShardIterator;
use crate::stream::{
    ChangeKind, KEPT_MS, RETENTION_MS, SHARDS, StreamName, label, number, partition_of, record,
    stripes_of,
};
use crate::table::StreamView;
use crate::value::{Corrupt, ItemBytes};

/// The most records of one page.
const PAGE_RECORDS_MAX: usize = 1000;
/// The most bytes of one page, as [`StreamRecord::size_bytes`] counts them.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Where to begin reading a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardPosition<'a> {
    /// At the oldest record that there is.
    TrimHorizon,
    /// After everything that has been written.
    Latest,
    /// At the record with this sequence number.
    At(&'a str),
    /// After the record with this sequence number.
    After(&'a str),
}

/// Records of a shard, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamPage {
    /// The records; none if nothing has happened since.
    pub records: Vec<StreamRecord>,
    /// For reading on; `None` at the end of a closed stream.
    pub next_iterator: Option<String>,
}

/// One change of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamRecord {
    /// 32 hexadecimal digits that no other record has.
    pub event_id: String,
    /// What happened to the item.
    pub kind: ChangeKind,
    /// The item's key.
    pub keys: ItemBytes,
    /// The item before the change, if there was one and the stream holds it.
    pub old: Option<ItemBytes>,
    /// The item after the change, if there is one and the stream holds it.
    pub new: Option<ItemBytes>,
    /// What the stream holds of each item.
    pub view: StreamView,
    /// 21 digits. Grows with every change of the item, and with every record of the shard.
    pub sequence_number: String,
    /// When it happened.
    pub created_ms: u64,
    /// The size of keys and images, as DynamoDB counts it.
    pub size_bytes: usize,
    /// Whether the item went because its time was over (`userIdentity` is the service then).
    pub by_expiry: bool,
}

impl Database {
    /// An iterator that begins at a position of a shard. It can be used for 15 minutes.
    pub fn shard_iterator(
        &self,
        stream: &StreamName,
        shard: &str,
        position: ShardPosition<'_>,
    ) -> Result<String> {
        let Found { table, kept } = self.find_stream(stream)?;
        let shard = (0..SHARDS).find(|&at| shard_id(&kept, at) == shard).ok_or_else(|| {
            Error::NotFound("Requested resource not found: Shard does not exist".to_owned())
        })?;
        let now_ms = self.engine().now_ms();
        let position = match position {
            ShardPosition::TrimHorizon => number::first_of(now_ms.saturating_sub(RETENTION_MS)),
            ShardPosition::Latest => self.inner().streams.end(now_ms).saturating_add(1),
            ShardPosition::At(text) => exact(text, now_ms)?,
            ShardPosition::After(text) => exact(text, now_ms)?.saturating_add(1),
        };
        let iterator = ShardIterator {
            table: table.name().to_owned(),
            stream_created_ms: kept.created_ms,
            shard,
            position,
            created_ms: now_ms,
        };
        Ok(iterator.to_text())
    }

    /// The records from an iterator's position on, at most `limit` (up to 1000), and 1 MB.
    pub fn stream_records(&self, iterator: &str, limit: usize) -> Reply<StreamPage> {
        match self.try_stream_records(iterator, limit) {
            Ok((page, seq)) => self.reply(Ok(page), seq),
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_stream_records(&self, iterator: &str, limit: usize) -> Result<(StreamPage, Seq)> {
        let iterator = ShardIterator::from_text(iterator)?;
        let now_ms = self.engine().now_ms();
        iterator.check_age(now_ms)?;
        let created_ms = iterator.stream_created_ms;
        let found = self
            .find_stream_by(&iterator.table, |kept| kept.created_ms == created_ms)
            .ok_or_else(|| {
                let (table, label) = (iterator.table.clone(), label(created_ms));
                no_such_stream(&StreamName { table, label })
            })?;
        check_kept(iterator.position, now_ms)?;

        let closed = found.kept.closed_ms.is_some();
        // The end is fixed before the snapshot is taken, which so sees everything before it.
        let (end, snapshot) = match closed {
            true => (u64::MAX, self.snapshot_after_change()?),
            false => (self.inner().streams.readable_below(now_ms), self.engine().snapshot()),
        };
        let mut merge = Merge::new(self, &snapshot, TableId(found.kept.id), &iterator, end)?;
        let mut page = Page::new(&found, limit);
        let mut stopped_at = None;
        while let Some((number, record)) = merge.next()? {
            if !page.add(number, record)? {
                stopped_at = Some(number);
                break;
            }
        }
        let position = match stopped_at {
            Some(number) => Some(number),
            None if closed => None,
            // An iterator can be ahead of the end: of what was under way when it was given out.
            None => Some(end.max(iterator.position)),
        };
        let next = |position| ShardIterator { position, created_ms: now_ms, ..iterator }.to_text();
        Ok((StreamPage { records: page.records, next_iterator: position.map(next) }, page.seen))
    }
}

/// A sequence number that a client named.
fn exact(text: &str, now_ms: u64) -> Result<u64> {
    let number =
        number::from_text(text).ok_or_else(|| Error::validation("Invalid SequenceNumber"))?;
    check_kept(number, now_ms)?;
    Ok(number)
}

/// Refuses a position where records may be missing already.
fn check_kept(position: u64, now_ms: u64) -> Result<()> {
    if position < number::first_of(now_ms.saturating_sub(KEPT_MS)) {
        return Err(Error::TrimmedData(
            "The data you are trying to access has been trimmed".to_owned(),
        ));
    }
    Ok(())
}

/// The records of a shard's stripes in order of sequence number.
struct Merge {
    stripes: Vec<(PartitionIter, Option<KeyedRecord>)>,
    /// The next number of each stripe that has one, smallest first.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merge {
    fn new(
        db: &Database,
        snapshot: &Snapshot,
        stream: TableId,
        from: &ShardIterator,
        end: u64,
    ) -> Result<Self> {
        let mut merge = Merge { stripes: Vec::new(), heads: BinaryHeap::new() };
        if from.position >= end {
            return Ok(merge);
        }
        let range = from.position.to_be_bytes()..end.to_be_bytes();
        for stripe in stripes_of(from.shard) {
            // Most polls find nothing new in most stripes, and need not look.
            if db.inner().streams.nothing_from(stripe, from.position) {
                continue;
            }
            let partition = snapshot.partition(stream, &partition_of(stripe)[..]);
            let records = partition.range(range.clone()).iter().map_err(table_gone)?;
            merge.stripes.push((records, None));
            merge.advance(merge.stripes.len() - 1)?;
        }
        Ok(merge)
    }

    /// Reads the next record of a stripe.
    fn advance(&mut self, at: usize) -> Result<()> {
        let Some((records, head)) = self.stripes.get_mut(at) else { return Ok(()) };
        if let Some(record) = records.next().transpose()? {
            let sk = record.key.sk.as_deref().unwrap_or_default();
            let number = u64::from_be_bytes(sk.try_into().map_err(|_| Corrupt)?);
            *head = Some(record);
            self.heads.push(Reverse((number, at)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(u64, KeyedRecord)>> {
        let Some(Reverse((number, at))) = self.heads.pop() else { return Ok(None) };
        let record = self.stripes.get_mut(at).and_then(|(_, head)| head.take());
        self.advance(at)?;
        Ok(record.map(|record| (number, record)))
    }
}

/// A page as it fills.
struct Page<'a> {
    stream: &'a Found,
    limit: usize,
    bytes: usize,
    records: Vec<StreamRecord>,
    /// The newest commit that the page rests on. Not the snapshot's: a poll that finds nothing
    /// waits for nobody.
    seen: Seq,
}

impl<'a> Page<'a> {
    fn new(stream: &'a Found, limit: usize) -> Self {
        let limit = limit.clamp(1, PAGE_RECORDS_MAX);
        Page { stream, limit, bytes: 0, records: Vec::new(), seen: 0 }
    }

    /// Takes the record; `false` if it has no room.
    fn add(&mut self, number: u64, stored: KeyedRecord) -> Result<bool> {
        if self.records.len() >= self.limit {
            return Ok(false);
        }
        let change = record::decode(&stored.record.value)?;
        let images = [Some(&change.keys), change.old.as_ref(), change.new.as_ref()];
        let size_bytes = images.into_iter().flatten().map(ItemBytes::size).sum();
        if !self.records.is_empty() && self.bytes + size_bytes > PAGE_BYTES_MAX {
            return Ok(false);
        }
        self.bytes += size_bytes;
        self.seen = self.seen.max(stored.record.version);
        self.records.push(StreamRecord {
            event_id: self.event_id(number),
            kind: change.kind,
            keys: change.keys,
            old: change.old,
            new: change.new,
            view: self.stream.kept.view,
            sequence_number: number::to_text(number),
            created_ms: change.created_ms,
            size_bytes,
            by_expiry: change.by_expiry,
        });
        Ok(true)
    }

    /// The same record has the same id whenever it is read, so that a consumer can tell what it
    /// has seen before.
    fn event_id(&self, number: u64) -> String {
        let mut hash = Xxh3::new();
        hash.update(self.stream.table.record.uuid.as_bytes());
        hash.update(&self.stream.kept.created_ms.to_be_bytes());
        hash.update(&number.to_be_bytes());
        format!("{:032x}", hash.digest128())
    }
}
