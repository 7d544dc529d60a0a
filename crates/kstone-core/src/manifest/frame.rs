//! The bytes of a manifest file: a header, then checksummed records; and how to read them back.
//!
//! All integers are little-endian.
//!
//! ```text
//! header (44 bytes, the same in every format version)
//!   magic            8   "KSTNMANI"
//!   format version   4   1
//!   db_id           16
//!   manifest number  8   the n of MANIFEST-n
//!   checksum         8   xxh3-64 of the 36 bytes above
//!
//! record, one after another from offset 44
//!   length           4   of the payload
//!   index            4   0 for the first record of the file, then 1, 2, …
//!   checksum         8   xxh3-64 of length, index and payload, seeded with the header's checksum
//!   payload              see `record`
//! ```
//!
//! The index and the seed make a record valid only in the place, the file and the database that it
//! was written for: neither a misdirected write nor an old block that the file system hands out
//! again can pass for one.
//!
//! Record 0 is a snapshot, an edit of the empty state; it is synced before `CURRENT` names the
//! file. Each later record is synced before the next one is written. So only the last record can
//! be torn: a bad record that is followed by a valid one had been synced, and is damage.

use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::current::manifest_name;
use super::record::{RecordError, decode_record};
use super::state::State;
use crate::codec::Reader;
use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"KSTNMANI";
const FORMAT_VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 44;
const HEADER_BYTES_CHECKED: usize = HEADER_BYTES - 8;
pub(super) const RECORD_HEADER_BYTES: usize = 16;

/// The header of manifest `number`, and the seed of its records.
pub(super) fn header(db_id: &[u8; 16], number: u64) -> (Vec<u8>, u64) {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(db_id);
    bytes.extend_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    (bytes, checksum)
}

/// Appends a record to `buf`. Fails when the payload's length does not fit its field.
pub(super) fn push_record(buf: &mut Vec<u8>, seed: u64, index: u32, payload: &[u8]) -> Result<()> {
    let len = u32::try_from(payload.len()).map_err(|_| {
        let len = payload.len();
        Error::invalid(format!("a manifest record of {len} bytes is over the limit of 4 GiB"))
    })?;
    buf.extend_from_slice(&len.to_le_bytes());
    buf.extend_from_slice(&index.to_le_bytes());
    buf.extend_from_slice(&record_checksum(seed, len, index, payload).to_le_bytes());
    buf.extend_from_slice(payload);
    Ok(())
}

/// What a manifest file says.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) state: State,
    /// The file ends in a record that was never acknowledged.
    pub(super) torn: bool,
    pub(super) seed: u64,
    /// The index after the last valid record.
    pub(super) next_index: u32,
    /// Where the last valid record ends.
    pub(super) end: usize,
    /// Length of header and snapshot.
    pub(super) snapshot_end: usize,
}

/// Reads the whole file `bytes` of manifest `number`. `path` is for the errors.
pub(super) fn replay(path: &Path, bytes: &[u8], number: u64) -> Result<Replayed> {
    let (db_id, seed) = parse_header(path, bytes, number)?;
    let mut replayed = Replayed {
        state: State::blank(db_id),
        torn: false,
        seed,
        next_index: 0,
        end: HEADER_BYTES,
        snapshot_end: 0,
    };
    while replayed.next_index == 0 || replayed.end < bytes.len() {
        let (offset, index) = (replayed.end, replayed.next_index);
        let Some(payload) = record_at(bytes, offset, seed, index) else {
            if index == 0 {
                return Err(Error::corruption(path, offset as u64, "the snapshot is not intact"));
            }
            if bytes.get(offset..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0)) {
                break; // reserved and not written yet
            }
            if let Some((later, later_index)) = later_record(bytes, offset, seed, index) {
                return Err(Error::corruption(
                    path,
                    offset as u64,
                    format!(
                        "record {index} is not intact, and it had been synced: record \
                         {later_index} follows at offset {later}"
                    ),
                ));
            }
            replayed.torn = true;
            break;
        };
        let edit = decode_record(payload).map_err(|error| record_error(path, offset, &error))?;
        replayed.state.apply(&edit).map_err(|reason| {
            let what = format!("record {index} does not fit what is in front of it: {reason}");
            Error::corruption(path, offset as u64, what)
        })?;
        replayed.end = offset + RECORD_HEADER_BYTES + payload.len();
        if index == 0 {
            replayed.snapshot_end = replayed.end;
        }
        replayed.next_index = index.checked_add(1).ok_or_else(|| {
            Error::corruption(path, offset as u64, "there are more records than can be counted")
        })?;
    }
    Ok(replayed)
}

fn parse_header(path: &Path, bytes: &[u8], number: u64) -> Result<([u8; 16], u64)> {
    let short = || {
        let what = format!("the header is {HEADER_BYTES} bytes, the file {}", bytes.len());
        Error::corruption(path, bytes.len() as u64, what)
    };
    let mut reader = Reader::new(bytes);
    let magic = reader.bytes(MAGIC.len()).ok_or_else(short)?;
    if magic != MAGIC {
        return Err(Error::ForeignFile {
            path: path.to_owned(),
            what: "it does not start as a manifest does".to_owned(),
        });
    }
    let version = reader.u32().ok_or_else(short)?;
    let mut db_id = [0; 16];
    db_id.copy_from_slice(reader.bytes(16).ok_or_else(short)?);
    let number_found = reader.u64().ok_or_else(short)?;
    let checksum = reader.u64().ok_or_else(short)?;
    // The checksum first: a flipped bit is not a newer version.
    if bytes.get(..HEADER_BYTES_CHECKED).map(xxh3_64) != Some(checksum) {
        return Err(Error::corruption(path, 0, "the header's checksum does not match"));
    }
    if version != FORMAT_VERSION {
        return Err(Error::Version {
            path: path.to_owned(),
            found: version,
            supported: FORMAT_VERSION,
        });
    }
    if number_found != number {
        return Err(Error::ForeignFile {
            path: path.to_owned(),
            what: format!("it was written as {}", manifest_name(number_found)),
        });
    }
    Ok((db_id, checksum))
}

/// The payload of the record at `offset` if it is valid there.
fn record_at(bytes: &[u8], offset: usize, seed: u64, index: u32) -> Option<&[u8]> {
    let mut reader = Reader::new(bytes.get(offset..)?);
    let len = reader.u32()?;
    if reader.u32()? != index {
        return None;
    }
    let checksum = reader.u64()?;
    let payload = reader.bytes(usize::try_from(len).ok()?)?;
    (record_checksum(seed, len, index, payload) == checksum).then_some(payload)
}

/// The first valid record behind the bad one: its offset and its index.
///
/// It may start anywhere, because the length of the bad record cannot be trusted. An index must
/// be one that as many records as fit in between could have reached, which spares nearly every
/// offset the checksum.
fn later_record(
    bytes: &[u8],
    bad_offset: usize,
    seed: u64,
    bad_index: u32,
) -> Option<(usize, u32)> {
    let first = bad_offset + RECORD_HEADER_BYTES;
    let last = bytes.len().checked_sub(RECORD_HEADER_BYTES)?;
    (first..=last).find_map(|offset| {
        let index = Reader::new(bytes.get(offset + 4..)?).u32()?;
        let steps = usize::try_from(index.checked_sub(bad_index)?).ok()?;
        if steps == 0 || steps > (offset - bad_offset) / RECORD_HEADER_BYTES {
            return None;
        }
        record_at(bytes, offset, seed, index).map(|_| (offset, index))
    })
}

fn record_checksum(seed: u64, len: u32, index: u32, payload: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(seed);
    hash.update(&len.to_le_bytes());
    hash.update(&index.to_le_bytes());
    hash.update(payload);
    hash.digest()
}

fn record_error(path: &Path, record_offset: usize, error: &RecordError) -> Error {
    let offset = (record_offset + RECORD_HEADER_BYTES + error.at()) as u64;
    match error {
        RecordError::UnknownField { .. } => Error::Corruption {
            path: path.to_owned(),
            offset,
            what: error.to_string(),
            advice: "open it with a newer kstone",
        },
        _ => Error::corruption(path, offset, error.to_string()),
    }
}
