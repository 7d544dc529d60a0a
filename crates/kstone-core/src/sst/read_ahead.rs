//! Reads past the cache, in pieces that grow: for scans that meet every block once.

use bytes::Bytes;

use super::index::{Handle, Index};
use super::reader::SstReader;
use crate::error::Result;

/// The most that one read-ahead reads. Past this a disk is busy with moving bytes, not with us.
const BYTES_MAX: usize = 256 << 10;
/// How far the first read of a sequential scan reaches; doubled with each read from there.
const BYTES_MIN: usize = 32 << 10;

/// Bytes of the file that were read in one go because their turn will come.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    offset: u64,
    bytes: Bytes,
    /// The frame whose turn comes next if the scan is sequential.
    next: usize,
    window: usize,
}

impl ReadAhead {
    /// The frame that place `nth` of an index points to, from what was read already, or from a read
    /// that reaches the further the longer the scan has been sequential. A single seek reads a single
    /// frame. `number` counts on where an index in parts goes on in its next part; a read ends with
    /// the part.
    pub(super) fn frame(
        &mut self,
        reader: &SstReader,
        index: &Index,
        nth: usize,
        number: usize,
    ) -> Result<Option<(Handle, Bytes)>> {
        let Some(handle) = index.handle(nth) else { return Ok(None) };
        reader.check_handle(handle)?;
        if self.get(handle).is_none() {
            self.window =
                if number == self.next { (self.window * 2).clamp(BYTES_MIN, BYTES_MAX) } else { 0 };
            let mut end = handle;
            for next in (nth + 1..).map_while(|nth| index.handle(nth)) {
                let len = next.end().and_then(|end| end.checked_sub(handle.offset));
                if Some(next.offset) != end.end() || len.is_none_or(|len| len > self.window as u64)
                {
                    break;
                }
                reader.check_handle(next)?;
                end = next;
            }
            let len = end.end().and_then(|end| end.checked_sub(handle.offset)).unwrap_or(0);
            self.bytes = reader.read(handle.offset, len as usize)?;
            self.offset = handle.offset;
        }
        self.next = number + 1;
        let frame = self.get(handle).ok_or_else(|| reader.malformed(handle.offset))?;
        Ok(Some((handle, frame)))
    }

    fn get(&self, handle: Handle) -> Option<Bytes> {
        let start = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        let end = start.checked_add(handle.len as usize)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}
