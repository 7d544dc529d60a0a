//! The payload of a manifest record: one [`Edit`] as tagged fields.
//!
//! ```text
//! field = tag varint | body length varint | body
//!
//! tag  body
//!  1   file added: level u8, stripe u8, then varints file_id, file_bytes, min_seq, max_seq,
//!      entries, puts, deletes, marks, max_mark_seq, expiring, key_bytes, value_bytes, then
//!      footer_checksum u64, smallest (varint length, bytes), largest (the same), and either 00
//!      or 01 followed by global_seq varint
//!  2   file removed: stripe u8, level u8, file_id varint
//!  3   stripe flushed: stripe u8, seq varint
//!  4   stripe counters: stripe u8, four varints
//!  5   next_file_id varint
//!  6   last_seq varint
//!  7   log_start varint
//!  8   clock_ms varint
//!  9   next_table varint
//! 10   table created: id varint, seq varint
//! 11   table dropped: id varint, seq varint
//! 12   table forgotten: id varint
//! 13   checkpoint added: the folder, UTF-8
//! 14   checkpoint removed: the folder, UTF-8
//! ```
//!
//! Tags 1 to 4 and 10 to 14 may repeat, 5 to 9 may not; fields of one kind keep their order (10,
//! 11 and 12 are one kind). Integers without "varint" are little-endian, varints are LEB128. A
//! body is used to its last byte. An unknown tag is an error: a manifest of which a part is
//! ignored describes another database.

use super::state::{Edit, STRIPE_COUNTERS, TableEdit};
use crate::codec::{Reader, put_varint};
use crate::sst::SstMeta;

const ADD: u64 = 1;
const REMOVE: u64 = 2;
const FLUSHED: u64 = 3;
const COUNTERS: u64 = 4;
const NEXT_FILE_ID: u64 = 5;
const LAST_SEQ: u64 = 6;
const LOG_START: u64 = 7;
const CLOCK_MS: u64 = 8;
const NEXT_TABLE: u64 = 9;
const TABLE_CREATED: u64 = 10;
const TABLE_DROPPED: u64 = 11;
const TABLE_FORGOTTEN: u64 = 12;
const CHECKPOINT_ADDED: u64 = 13;
const CHECKPOINT_REMOVED: u64 = 14;

/// Why a payload is not an [`Edit`]; `at` counts from the start of the payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// Not damage: this build is too old for the file.
    #[error("field {tag} is unknown: it was written by a newer version")]
    UnknownField { tag: u64, at: usize },
    #[error("field {tag} does not hold what its tag says")]
    Malformed { tag: u64, at: usize },
    #[error("a field is cut short")]
    Cut { at: usize },
}

impl RecordError {
    /// Where in the payload.
    pub(crate) fn at(&self) -> usize {
        match *self {
            RecordError::UnknownField { at, .. }
            | RecordError::Malformed { at, .. }
            | RecordError::Cut { at } => at,
        }
    }
}

/// Writes `edit` as the payload of a record.
pub(super) fn encode_record(edit: &Edit) -> Vec<u8> {
    let mut out = Fields::default();
    for (level, file) in &edit.add {
        out.field(ADD, |body| put_file(body, *level, file));
    }
    for &(stripe, level, file_id) in &edit.remove {
        out.field(REMOVE, |body| {
            body.extend([stripe, level]);
            put_varint(body, file_id);
        });
    }
    for &(stripe, seq) in &edit.flushed {
        out.field(FLUSHED, |body| {
            body.push(stripe);
            put_varint(body, seq);
        });
    }
    for &(stripe, counters) in &edit.counters {
        out.field(COUNTERS, |body| {
            body.push(stripe);
            counters.iter().for_each(|&counter| put_varint(body, counter));
        });
    }
    for (tag, number) in [
        (NEXT_FILE_ID, edit.next_file_id),
        (LAST_SEQ, edit.last_seq),
        (LOG_START, edit.log_start),
        (CLOCK_MS, edit.clock_ms),
        (NEXT_TABLE, edit.next_table.map(u64::from)),
    ] {
        if let Some(number) = number {
            out.field(tag, |body| put_varint(body, number));
        }
    }
    for table in &edit.tables {
        let (tag, id, seq) = match *table {
            TableEdit::Created { id, seq } => (TABLE_CREATED, id, Some(seq)),
            TableEdit::Dropped { id, seq } => (TABLE_DROPPED, id, Some(seq)),
            TableEdit::Forgotten { id } => (TABLE_FORGOTTEN, id, None),
        };
        out.field(tag, |body| {
            put_varint(body, u64::from(id));
            seq.iter().for_each(|&seq| put_varint(body, seq));
        });
    }
    for folder in &edit.checkpoints_added {
        out.field(CHECKPOINT_ADDED, |body| body.extend_from_slice(folder.as_bytes()));
    }
    for folder in &edit.checkpoints_removed {
        out.field(CHECKPOINT_REMOVED, |body| body.extend_from_slice(folder.as_bytes()));
    }
    out.payload
}

/// Reads the payload of a record. Answers any bytes with an edit or an error, and takes no more
/// memory than a small multiple of their length.
pub(crate) fn decode_record(payload: &[u8]) -> Result<Edit, RecordError> {
    let mut edit = Edit::default();
    let mut fields = Reader::new(payload);
    while !fields.is_empty() {
        let at = fields.position();
        let tag = fields.varint().ok_or(RecordError::Cut { at })?;
        let mut body = Reader::new(fields.prefixed().ok_or(RecordError::Cut { at })?);
        if !(ADD..=CHECKPOINT_REMOVED).contains(&tag) {
            return Err(RecordError::UnknownField { tag, at });
        }
        take_field(&mut edit, tag, &mut body)
            .filter(|()| body.is_empty())
            .ok_or(RecordError::Malformed { tag, at })?;
    }
    Ok(edit)
}

/// Collects fields; the body is built apart, because its length goes in front of it.
#[derive(Default)]
struct Fields {
    payload: Vec<u8>,
    body: Vec<u8>,
}

impl Fields {
    fn field(&mut self, tag: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        self.body.clear();
        fill(&mut self.body);
        put_varint(&mut self.payload, tag);
        put_varint(&mut self.payload, self.body.len() as u64);
        self.payload.extend_from_slice(&self.body);
    }
}

fn take_field(edit: &mut Edit, tag: u64, body: &mut Reader<'_>) -> Option<()> {
    match tag {
        ADD => {
            let level = body.u8()?;
            edit.add.push((level, take_file(body)?));
        }
        REMOVE => edit.remove.push((body.u8()?, body.u8()?, body.varint()?)),
        FLUSHED => edit.flushed.push((body.u8()?, body.varint()?)),
        COUNTERS => {
            let stripe = body.u8()?;
            let mut counters = [0; STRIPE_COUNTERS];
            for counter in &mut counters {
                *counter = body.varint()?;
            }
            edit.counters.push((stripe, counters));
        }
        NEXT_FILE_ID => set_once(&mut edit.next_file_id, body.varint()?)?,
        LAST_SEQ => set_once(&mut edit.last_seq, body.varint()?)?,
        LOG_START => set_once(&mut edit.log_start, body.varint()?)?,
        CLOCK_MS => set_once(&mut edit.clock_ms, body.varint()?)?,
        NEXT_TABLE => set_once(&mut edit.next_table, take_table_id(body)?)?,
        TABLE_CREATED => {
            let (id, seq) = (take_table_id(body)?, body.varint()?);
            edit.tables.push(TableEdit::Created { id, seq });
        }
        TABLE_DROPPED => {
            let (id, seq) = (take_table_id(body)?, body.varint()?);
            edit.tables.push(TableEdit::Dropped { id, seq });
        }
        TABLE_FORGOTTEN => edit.tables.push(TableEdit::Forgotten { id: take_table_id(body)? }),
        CHECKPOINT_ADDED => edit.checkpoints_added.push(take_text(body)?),
        CHECKPOINT_REMOVED => edit.checkpoints_removed.push(take_text(body)?),
        _ => return None,
    }
    Some(())
}

fn set_once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    match slot.replace(value) {
        None => Some(()),
        Some(_) => None,
    }
}

fn take_table_id(body: &mut Reader<'_>) -> Option<u32> {
    u32::try_from(body.varint()?).ok()
}

fn take_text(body: &mut Reader<'_>) -> Option<String> {
    let bytes = body.bytes(body.remaining())?;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn put_file(body: &mut Vec<u8>, level: u8, file: &SstMeta) {
    body.extend([level, file.stripe]);
    for number in [
        file.file_id,
        file.file_bytes,
        file.min_seq,
        file.max_seq,
        file.entries,
        file.puts,
        file.deletes,
        file.marks,
        file.max_mark_seq,
        file.expiring,
        file.key_bytes,
        file.value_bytes,
    ] {
        put_varint(body, number);
    }
    body.extend_from_slice(&file.footer_checksum.to_le_bytes());
    for key in [&file.smallest, &file.largest] {
        put_varint(body, key.len() as u64);
        body.extend_from_slice(key);
    }
    match file.global_seq {
        None => body.push(0),
        Some(seq) => {
            body.push(1);
            put_varint(body, seq);
        }
    }
}

fn take_file(body: &mut Reader<'_>) -> Option<SstMeta> {
    // The fields of a struct expression are evaluated as written: this is the order of the bytes.
    Some(SstMeta {
        stripe: body.u8()?,
        file_id: body.varint()?,
        file_bytes: body.varint()?,
        min_seq: body.varint()?,
        max_seq: body.varint()?,
        entries: body.varint()?,
        puts: body.varint()?,
        deletes: body.varint()?,
        marks: body.varint()?,
        max_mark_seq: body.varint()?,
        expiring: body.varint()?,
        key_bytes: body.varint()?,
        value_bytes: body.varint()?,
        footer_checksum: body.u64()?,
        smallest: body.prefixed()?.to_vec(),
        largest: body.prefixed()?.to_vec(),
        global_seq: match body.u8()? {
            0 => None,
            1 => Some(body.varint()?),
            _ => return None,
        },
    })
}
