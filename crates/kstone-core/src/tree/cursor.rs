//! A cursor over entries, whatever holds them: a memtable, a file, or a sorted run of files.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{EntryRef, Seq, View};
use crate::error::Result;
use crate::memtable::MemCursor;
use crate::sst::SstCursor;
use crate::tree::file::TreeFile;

/// A position in one sorted source of entries.
#[derive(Debug)]
pub(crate) enum Cursor {
    Mem(MemCursor),
    File { cursor: SstCursor, _file: Arc<TreeFile> },
    Run(RunCursor),
}

impl Cursor {
    pub(crate) fn file(file: &Arc<TreeFile>, fill_cache: bool) -> Self {
        Cursor::File { cursor: file.reader.cursor(fill_cache), _file: Arc::clone(file) }
    }

    #[inline]
    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        match self {
            Cursor::Mem(cursor) => cursor.entry(),
            Cursor::File { cursor, .. } => cursor.entry(),
            Cursor::Run(run) => run.entry(),
        }
    }

    /// The current value, without copying it where the source allows.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self {
            Cursor::Mem(cursor) => cursor.value_bytes(),
            Cursor::File { cursor, .. } => cursor.value_bytes(),
            Cursor::Run(run) => {
                run.current.as_ref().map(SstCursor::value_bytes).unwrap_or_default()
            }
        }
    }

    /// Goes to the first entry at or behind (key, seq) in entry order.
    pub(crate) fn seek(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.seek(key, seq);
                Ok(())
            }
            Cursor::File { cursor, .. } => cursor.seek(key, seq),
            Cursor::Run(run) => run.seek(key, seq),
        }
    }

    /// Goes to the last entry strictly in front of (key, seq).
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.seek_before(key, seq);
                Ok(())
            }
            Cursor::File { cursor, .. } => cursor.seek_before(key, seq),
            Cursor::Run(run) => run.seek_before(key, seq),
        }
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.next();
                Ok(())
            }
            Cursor::File { cursor, .. } => cursor.next(),
            Cursor::Run(run) => run.next(),
        }
    }

    /// To the next entry with another key.
    fn next_key(&mut self) -> Result<()> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.next_key();
                Ok(())
            }
            Cursor::File { cursor, .. } => cursor.next_key(),
            Cursor::Run(run) => run.next_key(),
        }
    }

    /// To the first key from the current entry on that the view shows; `false` if there is none.
    pub(crate) fn find_visible(&mut self, view: &View<'_>) -> Result<bool> {
        while let Some(entry) = self.entry() {
            if view.ends_before(entry.key) {
                break;
            }
            if entry.seq > view.seq {
                self.next()?;
            } else if view.shows(entry.kind, entry.expires_at_ms) {
                return Ok(true);
            } else {
                self.next_key()?;
            }
        }
        Ok(false)
    }

    /// To the first key behind the current one that the view shows; `false` if there is none.
    #[inline]
    pub(crate) fn next_visible(&mut self, view: &View<'_>) -> Result<bool> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.next_key();
                self.find_visible(view)
            }
            Cursor::File { cursor, .. } => cursor.next_visible(view),
            Cursor::Run(run) => run.next_visible(view),
        }
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        match self {
            Cursor::Mem(cursor) => {
                cursor.prev();
                Ok(())
            }
            Cursor::File { cursor, .. } => cursor.prev(),
            Cursor::Run(run) => run.prev(),
        }
    }
}

/// A cursor over the files of one level: sorted, non-overlapping, opened one at a time.
#[derive(Debug)]
pub(crate) struct RunCursor {
    files: Vec<Arc<TreeFile>>,
    at: usize,
    current: Option<SstCursor>,
    fill_cache: bool,
}

impl RunCursor {
    /// `files` are sorted by key and do not overlap.
    pub(crate) fn new(files: Vec<Arc<TreeFile>>, fill_cache: bool) -> Self {
        RunCursor { files, at: 0, current: None, fill_cache }
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        self.current.as_ref().and_then(SstCursor::entry)
    }

    fn open(&mut self, at: usize) -> Option<&mut SstCursor> {
        self.at = at;
        self.current = self.files.get(at).map(|file| file.reader.cursor(self.fill_cache));
        self.current.as_mut()
    }

    fn seek(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        let at = self.files.partition_point(|file| file.meta().largest.as_slice() < key);
        if let Some(cursor) = self.open(at) {
            cursor.seek(key, seq)?;
        }
        self.skip_forward()
    }

    fn seek_before(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        let behind = self.files.partition_point(|file| file.meta().smallest.as_slice() <= key);
        let Some(at) = behind.checked_sub(1) else {
            self.current = None;
            return Ok(());
        };
        if let Some(cursor) = self.open(at) {
            cursor.seek_before(key, seq)?;
        }
        self.skip_backward()
    }

    fn next(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.current {
            cursor.next()?;
        }
        self.skip_forward()
    }

    fn next_visible(&mut self, view: &View<'_>) -> Result<bool> {
        while let Some(cursor) = &mut self.current {
            if cursor.next_visible(view)? {
                return Ok(true);
            }
            // On an entry: the walk ends with it.
            if cursor.valid() {
                return Ok(false);
            }
            if let Some(next) = self.open(self.at + 1) {
                next.begin_first()?;
            }
        }
        Ok(false)
    }

    /// The files of a run share no key.
    fn next_key(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.current {
            cursor.next_key()?;
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.current {
            cursor.prev()?;
        }
        self.skip_backward()
    }

    fn skip_forward(&mut self) -> Result<()> {
        while self.current.as_ref().is_some_and(|cursor| !cursor.valid()) {
            if let Some(cursor) = self.open(self.at + 1) {
                cursor.seek_first()?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while self.current.as_ref().is_some_and(|cursor| !cursor.valid()) {
            let Some(at) = self.at.checked_sub(1) else {
                self.current = None;
                break;
            };
            if let Some(cursor) = self.open(at) {
                cursor.seek_last()?;
            }
        }
        Ok(())
    }
}
