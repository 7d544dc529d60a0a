//! A stream record's bytes: a flags byte, the time, the keys, then the images that the view asks
//! for, each with its length in front.

use bytes::Bytes;

use crate::staging::Cause;
use crate::stream::Change;
use crate::table::StreamView;
use crate::value::ItemBytes;

const INSERTED: u8 = 1;
const REMOVED: u8 = 2;
const BY_EXPIRY: u8 = 4;
const HAS_OLD: u8 = 8;
const HAS_NEW: u8 = 16;

/// A change as it is read back.
#[derive(Debug, Clone)]
pub(crate) struct StoredChange {
    pub kind: ChangeKind,
    pub by_expiry: bool,
    pub created_ms: u64,
    pub keys: ItemBytes,
    pub old: Option<ItemBytes>,
    pub new: Option<ItemBytes>,
}

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Insert,
    /// It was there, and is different now.
    Modify,
    /// It is gone.
    Remove,
}

pub(crate) fn encode(change: &Change<'_>, view: StreamView) -> Vec<u8> {
    let (with_old, with_new) = match view {
        StreamView::KeysOnly => (false, false),
        StreamView::NewImage => (false, true),
        StreamView::OldImage => (true, false),
        StreamView::NewAndOldImages => (true, true),
    };
    let old = change.old.filter(|_| with_old);
    let new = change.new.filter(|_| with_new);
    let mut flags = match (change.old, change.new) {
        (None, _) => INSERTED,
        (Some(_), None) => REMOVED,
        (Some(_), Some(_)) => 0,
    };
    for (flag, set) in [
        (BY_EXPIRY, change.cause == Cause::Expiry),
        (HAS_OLD, old.is_some()),
        (HAS_NEW, new.is_some()),
    ] {
        flags |= if set { flag } else { 0 };
    }
    let images = [Some(change.keys), old, new];
    let len = images.iter().flatten().map(|image| 4 + image.as_slice().len()).sum::<usize>();
    let mut out = Vec::with_capacity(9 + len);
    out.push(flags);
    out.extend_from_slice(&change.now_ms.to_le_bytes());
    for image in images.into_iter().flatten() {
        out.extend_from_slice(&(image.as_slice().len() as u32).to_le_bytes());
        out.extend_from_slice(image.as_slice());
    }
    out
}

/// `None` if these are not the bytes of a record.
pub(crate) fn decode(bytes: &Bytes) -> Option<StoredChange> {
    let (&flags, rest) = bytes.split_first()?;
    let (created, _) = rest.split_first_chunk::<8>()?;
    let mut at = 9;
    let mut image = |present: bool| -> Option<Option<ItemBytes>> {
        if !present {
            return Some(None);
        }
        let (len, _) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let end = at + 4 + u32::from_le_bytes(*len) as usize;
        if end > bytes.len() {
            return None;
        }
        let item = ItemBytes::from_bytes(bytes.slice(at + 4..end)).ok()?;
        at = end;
        Some(Some(item))
    };
    let keys = image(true)??;
    let old = image(flags & HAS_OLD != 0)?;
    let new = image(flags & HAS_NEW != 0)?;
    let kind = match flags {
        _ if flags & INSERTED != 0 => ChangeKind::Insert,
        _ if flags & REMOVED != 0 => ChangeKind::Remove,
        _ => ChangeKind::Modify,
    };
    let (by_expiry, created_ms) = (flags & BY_EXPIRY != 0, u64::from_le_bytes(*created));
    Some(StoredChange { kind, by_expiry, created_ms, keys, old, new })
}
