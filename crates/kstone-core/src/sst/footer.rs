//! Properties and footer, the last two parts of a file: what is in it, and where its parts are.
//!
//! Properties, the payload of an uncompressed frame, each a varint unless it says otherwise:
//!
//! ```text
//! entries, distinct keys, puts, deletes, marks, puts with an expiry,
//! key bytes, value bytes                     each version counted, uncompressed
//! min seq, max seq, max seq of a mark        the last 0 without marks
//! min expires_at, max expires_at             of the puts that have one; 0 without
//! smallest key, largest key                  each a varint length and the bytes
//! ```
//!
//! The footer, 108 bytes, the same in all format versions to come. In version 2 it points to the
//! filter's directory and the index's top in place of the filter and the index:
//!
//! ```text
//!   0  filter      offset u64, len u32, checksum u64; len 0 = no filter
//!  20  index       likewise
//!  40  properties  likewise
//!  60  database    16 bytes: its id
//!  76  file        u64: its id
//!  84  stripe      u8
//!  85  zero        3 bytes
//!  88  version     u32: 1; 2 where filter and index are in parts
//!  92  checksum    u64: xxh3-64 of the 92 bytes before it
//! 100  magic       "KSTNSST" and a line feed
//! ```
//!
//! Pure bytes; the writer encodes, `reader` and `verify` decode.

use xxhash_rust::xxh3::xxh3_64;

use super::block::SEQ_MAX;
use super::index::Handle;
use super::{FileIdent, SstMeta};
use crate::codec::{Reader, put_varint};
use crate::entry::{EntryRef, Kind, Seq};

pub(super) const FOOTER_LEN: usize = 108;
/// Filter and index are one frame each.
pub(super) const VERSION_WHOLE: u32 = 1;
/// Filter and index are in parts: the newest version that this build reads.
pub(super) const VERSION_IN_PARTS: u32 = 2;
const CHECKSUM_AT: usize = 92;
const MAGIC: [u8; 8] = *b"KSTNSST\n";

/// What a file holds, counted while it was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Properties {
    pub(crate) entries: u64,
    pub(crate) distinct_keys: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
    pub(crate) marks: u64,
    pub(crate) expiring: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    pub(crate) max_mark_seq: Seq,
    pub(crate) min_expires_at_ms: u64,
    pub(crate) max_expires_at_ms: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
}

impl Properties {
    /// Counts an entry (but not the two bounds: [`bound`](Self::bound)).
    pub(super) fn count(&mut self, entry: &EntryRef<'_>, key_is_new: bool) {
        self.min_seq = if self.entries == 0 { entry.seq } else { self.min_seq.min(entry.seq) };
        self.max_seq = self.max_seq.max(entry.seq);
        self.entries += 1;
        self.distinct_keys += u64::from(key_is_new);
        self.key_bytes += entry.key.len() as u64;
        self.value_bytes += entry.value.len() as u64;
        match entry.kind {
            Kind::Put => self.puts += 1,
            Kind::Delete => self.deletes += 1,
            Kind::DropPartition => {
                self.marks += 1;
                self.max_mark_seq = self.max_mark_seq.max(entry.seq);
            }
        }
        if entry.kind == Kind::Put && entry.expires_at_ms != 0 {
            let at = entry.expires_at_ms;
            let is_first = self.expiring == 0;
            self.min_expires_at_ms = if is_first { at } else { self.min_expires_at_ms.min(at) };
            self.max_expires_at_ms = self.max_expires_at_ms.max(at);
            self.expiring += 1;
        }
    }

    /// Adds what was counted of entries behind these (but not the two bounds).
    pub(super) fn add(&mut self, behind: &Properties) {
        if self.entries == 0 {
            *self = behind.clone();
            return;
        }
        self.min_seq = self.min_seq.min(behind.min_seq);
        self.max_seq = self.max_seq.max(behind.max_seq);
        self.max_mark_seq = self.max_mark_seq.max(behind.max_mark_seq);
        self.entries += behind.entries;
        self.distinct_keys += behind.distinct_keys;
        self.puts += behind.puts;
        self.deletes += behind.deletes;
        self.marks += behind.marks;
        self.key_bytes += behind.key_bytes;
        self.value_bytes += behind.value_bytes;
        if behind.expiring > 0 {
            let (at, is_first) = (behind.min_expires_at_ms, self.expiring == 0);
            self.min_expires_at_ms = if is_first { at } else { self.min_expires_at_ms.min(at) };
            self.max_expires_at_ms = self.max_expires_at_ms.max(behind.max_expires_at_ms);
            self.expiring += behind.expiring;
        }
    }

    /// Sets the bounds, once all entries are known.
    pub(super) fn bound(&mut self, smallest: Vec<u8>, largest: Vec<u8>) {
        self.smallest = smallest;
        self.largest = largest;
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(130 + self.smallest.len() + self.largest.len());
        let numbers = [
            self.entries,
            self.distinct_keys,
            self.puts,
            self.deletes,
            self.marks,
            self.expiring,
            self.key_bytes,
            self.value_bytes,
            self.min_seq,
            self.max_seq,
            self.max_mark_seq,
            self.min_expires_at_ms,
            self.max_expires_at_ms,
        ];
        for number in numbers {
            put_varint(&mut out, number);
        }
        for key in [&self.smallest, &self.largest] {
            put_varint(&mut out, key.len() as u64);
            out.extend_from_slice(key);
        }
        out
    }

    /// `None` if the bytes are no properties, or contradict themselves.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(payload);
        let mut number = || reader.varint();
        let mut properties = Properties {
            entries: number()?,
            distinct_keys: number()?,
            puts: number()?,
            deletes: number()?,
            marks: number()?,
            expiring: number()?,
            key_bytes: number()?,
            value_bytes: number()?,
            min_seq: number()?,
            max_seq: number()?,
            max_mark_seq: number()?,
            min_expires_at_ms: number()?,
            max_expires_at_ms: number()?,
            ..Properties::default()
        };
        properties.bound(reader.prefixed()?.to_vec(), reader.prefixed()?.to_vec());
        let p = &properties;
        let kinds = p.puts.checked_add(p.deletes)?.checked_add(p.marks)?;
        let consistent = reader.is_empty()
            && p.entries > 0
            && p.entries == kinds
            && (1..=p.entries).contains(&p.distinct_keys)
            && p.expiring <= p.puts
            && p.min_seq <= p.max_seq
            && p.max_seq <= SEQ_MAX
            && p.max_mark_seq <= p.max_seq
            && p.min_expires_at_ms <= p.max_expires_at_ms
            && p.smallest <= p.largest;
        consistent.then_some(properties)
    }

    pub(super) fn into_meta(
        self,
        ident: FileIdent,
        file_bytes: u64,
        footer_checksum: u64,
    ) -> SstMeta {
        SstMeta {
            stripe: ident.stripe,
            file_id: ident.file_id,
            file_bytes,
            smallest: self.smallest,
            largest: self.largest,
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            entries: self.entries,
            puts: self.puts,
            deletes: self.deletes,
            marks: self.marks,
            max_mark_seq: self.max_mark_seq,
            expiring: self.expiring,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            footer_checksum,
            global_seq: None,
        }
    }
}

/// Where the parts of a file are, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) filter: Handle,
    pub(crate) index: Handle,
    pub(crate) properties: Handle,
    pub(crate) ident: FileIdent,
    pub(crate) version: u32,
    /// Filled in by [`encode`](Self::encode) and [`parse_footer`].
    pub(crate) checksum: u64,
}

/// Why bytes are not a footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FooterFault {
    #[error("the file does not end like an SST: it is cut short, or overwritten")]
    Magic,
    #[error("the footer's checksum is {stored:016x}, its bytes give {computed:016x}")]
    Checksum { stored: u64, computed: u64 },
    #[error("format version {0}")]
    Version(u32),
    #[error("the footer's parts do not lie back to back in front of it")]
    Layout,
}

impl Footer {
    pub(super) fn encode(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        for handle in [self.filter, self.index, self.properties] {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&handle.len.to_le_bytes());
            out.extend_from_slice(&handle.checksum.to_le_bytes());
        }
        out.extend_from_slice(&self.ident.db_id);
        out.extend_from_slice(&self.ident.file_id.to_le_bytes());
        out.extend_from_slice(&[self.ident.stripe, 0, 0, 0]);
        out.extend_from_slice(&self.version.to_le_bytes());
        self.checksum = xxh3_64(&out);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out
    }

    pub(super) fn is_in_parts(&self) -> bool {
        self.version == VERSION_IN_PARTS
    }

    /// Where that ends to which the parts named here point: data blocks and, in version 2, the parts of
    /// filter and index.
    pub(super) fn blocks_end(&self) -> u64 {
        self.filter.offset
    }
}

/// Reads the footer, the last [`FOOTER_LEN`] bytes of a file of `file_bytes` bytes.
pub(crate) fn parse_footer(bytes: &[u8], file_bytes: u64) -> Result<Footer, FooterFault> {
    let (Some(body), Some(magic)) = (bytes.get(..CHECKSUM_AT), bytes.get(CHECKSUM_AT + 8..)) else {
        return Err(FooterFault::Magic);
    };
    if magic != MAGIC {
        return Err(FooterFault::Magic);
    }
    let stored = Reader::new(bytes.get(CHECKSUM_AT..).unwrap_or_default()).u64();
    let stored = stored.ok_or(FooterFault::Magic)?;
    let computed = xxh3_64(body);
    if stored != computed {
        return Err(FooterFault::Checksum { stored, computed });
    }
    let mut reader = Reader::new(body);
    let mut fields = || {
        let mut handle =
            || Some(Handle { offset: reader.u64()?, len: reader.u32()?, checksum: reader.u64()? });
        let (filter, index, properties) = (handle()?, handle()?, handle()?);
        let db_id = *reader.bytes(16)?.first_chunk()?;
        let (file_id, stripe) = (reader.u64()?, reader.u8()?);
        let zero = reader.bytes(3)?;
        let ident = FileIdent { db_id, stripe, file_id };
        let version = reader.u32()?;
        Some((Footer { filter, index, properties, ident, version, checksum: stored }, zero))
    };
    let (footer, zero) = fields().ok_or(FooterFault::Layout)?;
    if !(VERSION_WHOLE..=VERSION_IN_PARTS).contains(&footer.version) {
        return Err(FooterFault::Version(footer.version));
    }
    let back_to_back = footer.filter.end() == Some(footer.index.offset)
        && footer.index.end() == Some(footer.properties.offset)
        && footer.properties.end() == file_bytes.checked_sub(FOOTER_LEN as u64);
    if back_to_back && zero == [0; 3] { Ok(footer) } else { Err(FooterFault::Layout) }
}

/// Whether any bytes are properties. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_properties(bytes: &[u8]) -> bool {
    Properties::decode(bytes).is_some()
}
