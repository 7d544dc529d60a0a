//! Checks a whole file against its checksums, its own claims, and what the manifest says of it.
//!
//! Reads everything from the file, past the cache, and goes on after damage as far as it can: the
//! operator wants to know all of it. Called by the engine's verify, on files that are in use.

use std::sync::Arc;

use super::block_cursor::BlockCursor;
use super::filter::{Filter, key_hash};
use super::footer::Properties;
use super::index::{Handle, Index};
use super::reader::SstReader;
use crate::entry::{Seq, entry_order};
use crate::error::{Error, Result};

/// What the blocks turned out to hold, as far as they could be read.
#[derive(Default)]
struct Walk {
    seen: Properties,
    last: Option<(Vec<u8>, Seq)>,
    /// Keys that the filter denies.
    denied: u64,
    /// Whether some block could not be read, so that the counts cannot add up.
    incomplete: bool,
}

impl SstReader {
    /// Checks every byte of the file. Damage goes to `report`, with the offset where it is; only
    /// what keeps the file from being read at all (the operating system's errors) is an error.
    /// Answers how many data blocks were read.
    pub(crate) fn verify(&self, report: &mut dyn FnMut(u64, String)) -> Result<u64> {
        let footer = match self.read_footer() {
            Ok(footer) => footer,
            Err(error) => return tell(error, report).map(|()| 0),
        };
        let properties = reported(self.read_properties(), report)?;
        let filter = reported(self.read_filter(), report)?.flatten();
        let Some(index) = reported(self.read_index(), report)? else { return Ok(0) };
        if let Err(what) = index.check() {
            report(footer.index.offset, what.to_owned());
        }

        let mut walk = Walk::default();
        let mut blocks = 0;
        let mut expected_offset = 0;
        for (slot, handle) in (0..).map_while(|i| Some((i, index.handle(i)?))) {
            if handle.offset != expected_offset {
                report(
                    handle.offset,
                    format!("block {slot} does not begin where the last one ends"),
                );
            }
            expected_offset = handle.end().unwrap_or(u64::MAX);
            blocks += 1;
            self.verify_block(slot, handle, &index, filter.as_ref(), &mut walk, report)?;
        }
        if expected_offset != footer.data_end() {
            report(expected_offset, "there are bytes that belong to no block".to_owned());
        }
        if walk.denied > 0 {
            report(footer.filter.offset, format!("the filter denies {} keys", walk.denied));
        }
        if let Some(properties) = properties
            && !walk.incomplete
        {
            self.verify_claims(&properties, walk, footer.properties.offset, report);
        }
        Ok(blocks)
    }

    /// Shows every decoded part that can hold bytes of keys and values: index and data blocks.
    pub(crate) fn each_payload(&self, show: &mut dyn FnMut(&[u8])) -> Result<()> {
        let index = self.read_index()?;
        for slot in 0.. {
            let Some(handle) = index.handle(slot) else { break };
            show(self.read_block(handle)?.payload());
            if let Some((separator, _)) = index.separator(slot) {
                show(&separator);
            }
        }
        Ok(())
    }

    fn verify_block(
        &self,
        slot: usize,
        handle: Handle,
        index: &Index,
        filter: Option<&Filter>,
        walk: &mut Walk,
        report: &mut dyn FnMut(u64, String),
    ) -> Result<()> {
        let Some(block) = reported(self.read_block(handle), report)? else {
            walk.incomplete = true;
            return Ok(());
        };
        let mut cursor = BlockCursor::new(Arc::new(block));
        if let Err(what) = cursor.check() {
            report(handle.offset, what.to_owned());
            walk.incomplete = true;
            return Ok(());
        }
        let in_front = slot.checked_sub(1).and_then(|slot| index.separator(slot));
        let separator = index.separator(slot);
        let mut moved = cursor.seek_first();
        while let (Ok(()), Some(entry)) = (moved, cursor.entry()) {
            let is_behind = |position: &(Vec<u8>, Seq)| {
                entry_order(&position.0, position.1, entry.key, entry.seq).is_lt()
            };
            if !walk.last.as_ref().is_none_or(is_behind) {
                report(handle.offset, "an entry is not behind those of earlier blocks".to_owned());
            }
            if !in_front.as_ref().is_none_or(is_behind) {
                report(handle.offset, "an entry belongs to an earlier block".to_owned());
            }
            if separator.as_ref().is_none_or(is_behind) {
                report(handle.offset, "an entry belongs to a later block".to_owned());
            }
            let key_is_new = walk.last.as_ref().is_none_or(|last| last.0 != entry.key);
            if key_is_new && filter.is_some_and(|f| !f.may_contain(key_hash(entry.key))) {
                walk.denied += 1;
            }
            if walk.last.is_none() {
                walk.seen.smallest = entry.key.to_vec();
            }
            walk.seen.count(&entry, key_is_new);
            let (last_key, last_seq) = walk.last.get_or_insert_default();
            entry.key.clone_into(last_key);
            *last_seq = entry.seq;
            moved = cursor.next();
        }
        if moved.is_err() {
            return tell(self.malformed(handle.offset), report);
        }
        Ok(())
    }

    /// What was counted against the properties and the manifest.
    fn verify_claims(
        &self,
        properties: &Properties,
        walk: Walk,
        offset: u64,
        report: &mut dyn FnMut(u64, String),
    ) {
        let mut seen = walk.seen;
        seen.largest = walk.last.map(|last| last.0).unwrap_or_default();
        if seen != *properties {
            report(offset, format!("the properties are {properties:?}, the entries give {seen:?}"));
        }
        if self.meta().global_seq.is_some() && seen.distinct_keys != seen.entries {
            report(offset, "a file with one sequence number has two versions of a key".to_owned());
        }
        let meta = self.meta();
        let mut claimed = seen.into_meta(
            super::FileIdent { db_id: [0; 16], stripe: meta.stripe, file_id: meta.file_id },
            meta.file_bytes,
            meta.footer_checksum,
        );
        claimed.global_seq = meta.global_seq;
        if claimed != **meta {
            report(offset, format!("the manifest says {meta:?}, the entries give {claimed:?}"));
        }
    }
}

/// The value, or `None` if what was read is damaged, which is reported.
fn reported<T>(result: Result<T>, report: &mut dyn FnMut(u64, String)) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => tell(error, report).map(|()| None),
    }
}

/// Reports damage; passes other errors on.
fn tell(error: Error, report: &mut dyn FnMut(u64, String)) -> Result<()> {
    match error {
        Error::Corruption { offset, what, .. } => report(offset, what),
        Error::ForeignFile { .. } | Error::Version { .. } => report(0, error.to_string()),
        other => return Err(other),
    }
    Ok(())
}
