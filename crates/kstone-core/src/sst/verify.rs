//! Checks a whole file against its checksums, its own claims, and what the manifest says of it.
//!
//! Reads everything from the file, past the cache, and goes on after damage as far as it can: the
//! operator wants to know all of it. Called by the engine's verify, on files that are in use.

use std::ops::Range;

use super::block_cursor::BlockCursor;
use super::filter::{Filter, key_hash};
use super::footer::Footer;
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
    /// The separator in front of the next block.
    in_front: Option<(Vec<u8>, Seq)>,
    /// Where the next block must begin; `None` if that is unknown.
    expected_offset: Option<u64>,
    blocks: u64,
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
        let (filter, pieces) = self.verify_filter(&footer, report)?;
        let Some(index) = reported(self.read_index(), report)? else { return Ok(0) };
        if let Err(what) = index.check() {
            report(footer.index.offset, what.to_owned());
        }

        let mut walk = Walk { expected_offset: Some(0), ..Walk::default() };
        let data_end = if footer.is_in_parts() {
            self.verify_parts(&footer, &index, pieces, filter.as_ref(), &mut walk, report)?
        } else {
            self.verify_blocks(&index, filter.as_ref(), &mut walk, report)?;
            Some(footer.blocks_end())
        };
        if let (Some(end), Some(data_end)) = (walk.expected_offset, data_end)
            && end != data_end
        {
            report(end, "there are bytes that belong to no block".to_owned());
        }
        if walk.denied > 0 {
            report(footer.filter.offset, format!("the filter denies {} keys", walk.denied));
        }
        let blocks = walk.blocks;
        if let Some(properties) = properties
            && !walk.incomplete
        {
            self.verify_claims(&properties, walk, footer.properties.offset, report);
        }
        Ok(blocks)
    }

    /// The filter, as far as it can be read, and from where to where its pieces are, if it is in pieces.
    fn verify_filter(
        &self,
        footer: &Footer,
        report: &mut dyn FnMut(u64, String),
    ) -> Result<(Option<Filter>, Option<Range<u64>>)> {
        if footer.filter.len == 0 {
            return Ok((None, None));
        }
        if !footer.is_in_parts() {
            return Ok((reported(self.read_filter(), report)?, None));
        }
        let Some(directory) = reported(self.read_directory(), report)? else {
            return Ok((None, None));
        };
        let filter = self.read_pieces(&directory, &mut |error| tell(error, report))?;
        Ok((Some(filter), directory.end().map(|end| directory.first()..end)))
    }

    /// Goes through all parts of an index, and through the blocks of each. Answers where data should
    /// end, if that can be said.
    fn verify_parts(
        &self,
        footer: &Footer,
        top: &Index,
        pieces: Option<Range<u64>>,
        filter: Option<&Filter>,
        walk: &mut Walk,
        report: &mut dyn FnMut(u64, String),
    ) -> Result<Option<u64>> {
        let first_part = top.handle(0).unwrap_or_default().offset;
        let has_filter = footer.filter.len > 0;
        if let Some(pieces) = &pieces
            && pieces.end != first_part
        {
            report(pieces.end, "the index does not begin where the filter ends".to_owned());
        }
        let mut expected_offset = first_part;
        for (nth, handle) in (0..).map_while(|nth| Some((nth, top.handle(nth)?))) {
            if handle.offset != expected_offset {
                let what =
                    format!("part {nth} of the index does not begin where the last one ends");
                report(handle.offset, what);
            }
            expected_offset = handle.end().unwrap_or(u64::MAX);
            match reported(self.read_part(top, nth, handle), report)? {
                Some(part) => {
                    if let Err(what) = part.check() {
                        report(handle.offset, what.to_owned());
                    }
                    self.verify_blocks(&part, filter, walk, report)?;
                }
                None => {
                    walk.incomplete = true;
                    walk.expected_offset = None;
                }
            }
            walk.in_front = top.separator(nth);
        }
        if expected_offset != footer.blocks_end() {
            report(expected_offset, "there are bytes behind the parts of the index".to_owned());
        }
        Ok(if has_filter { pieces.map(|pieces| pieces.start) } else { Some(first_part) })
    }

    fn verify_blocks(
        &self,
        index: &Index,
        filter: Option<&Filter>,
        walk: &mut Walk,
        report: &mut dyn FnMut(u64, String),
    ) -> Result<()> {
        for (slot, handle) in (0..).map_while(|i| Some((i, index.handle(i)?))) {
            if walk.expected_offset.is_some_and(|expected| handle.offset != expected) {
                let what = format!("block {} does not begin where the last one ends", walk.blocks);
                report(handle.offset, what);
            }
            walk.expected_offset = Some(handle.end().unwrap_or(u64::MAX));
            walk.blocks += 1;
            let separator = index.separator(slot);
            self.verify_block(handle, separator.as_ref(), filter, walk, report)?;
            walk.in_front = separator;
        }
        Ok(())
    }

    /// Shows every decoded part that can hold bytes of keys and values: index and data blocks.
    pub(crate) fn each_payload(&self, show: &mut dyn FnMut(&[u8])) -> Result<()> {
        let index = self.read_index()?;
        if !self.footer()?.is_in_parts() {
            return self.each_block(&index, show);
        }
        for (nth, handle) in (0..).map_while(|nth| Some((nth, index.handle(nth)?))) {
            self.each_block(&self.read_part(&index, nth, handle)?, show)?;
            if let Some((separator, _)) = index.separator(nth) {
                show(&separator);
            }
        }
        Ok(())
    }

    fn each_block(&self, index: &Index, show: &mut dyn FnMut(&[u8])) -> Result<()> {
        for (slot, handle) in (0..).map_while(|slot| Some((slot, index.handle(slot)?))) {
            show(self.read_block(handle)?.payload());
            if let Some((separator, _)) = index.separator(slot) {
                show(&separator);
            }
        }
        Ok(())
    }

    fn verify_block(
        &self,
        handle: Handle,
        separator: Option<&(Vec<u8>, Seq)>,
        filter: Option<&Filter>,
        walk: &mut Walk,
        report: &mut dyn FnMut(u64, String),
    ) -> Result<()> {
        let Some(block) = reported(self.read_block(handle), report)? else {
            walk.incomplete = true;
            return Ok(());
        };
        let mut cursor = BlockCursor::new(block);
        if let Err(what) = cursor.check() {
            report(handle.offset, what.to_owned());
            walk.incomplete = true;
            return Ok(());
        }
        let mut moved = cursor.seek_first();
        while let (Ok(()), Some(entry)) = (moved, cursor.entry()) {
            let is_behind = |position: &(Vec<u8>, Seq)| {
                entry_order(&position.0, position.1, entry.key, entry.seq).is_lt()
            };
            if !walk.last.as_ref().is_none_or(is_behind) {
                report(handle.offset, "an entry is not behind those of earlier blocks".to_owned());
            }
            if !walk.in_front.as_ref().is_none_or(is_behind) {
                report(handle.offset, "an entry belongs to an earlier block".to_owned());
            }
            if separator.is_none_or(is_behind) {
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
