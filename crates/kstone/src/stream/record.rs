//! A stream record's bytes: the format version, flags, the time, the keys, then the images that the
//! view asks for, each with its length in front. `docs/format.md` has the table.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::staging::Cause;
use crate::stream::Change;
use crate::table::StreamView;
use crate::value::{Corrupt, ItemBytes};

/// The first byte of a record.
const VERSION: u8 = 1;
/// Where the keys begin: behind version, flags and time.
const IMAGES_AT: usize = 10;

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
    let mut out = Vec::with_capacity(IMAGES_AT + len);
    out.extend_from_slice(&[VERSION, flags]);
    out.extend_from_slice(&change.now_ms.to_le_bytes());
    for image in images.into_iter().flatten() {
        out.extend_from_slice(&(image.as_slice().len() as u32).to_le_bytes());
        out.extend_from_slice(image.as_slice());
    }
    out
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &Bytes) -> Result<StoredChange> {
    match bytes.first() {
        Some(&VERSION) => Ok(decode_known(bytes).ok_or(Corrupt)?),
        Some(&found) => Err(Error::UnknownVersion { what: "stream record", found, known: VERSION }),
        None => Err(Corrupt.into()),
    }
}

/// `None` if these are not the bytes of a record.
fn decode_known(bytes: &Bytes) -> Option<StoredChange> {
    let (&[_, flags], rest) = bytes.split_first_chunk()?;
    let (created, _) = rest.split_first_chunk::<8>()?;
    let mut at = IMAGES_AT;
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
    let kind = match flags & (INSERTED | REMOVED) {
        0 => ChangeKind::Modify,
        INSERTED => ChangeKind::Insert,
        REMOVED => ChangeKind::Remove,
        _ => return None,
    };
    let known = INSERTED | REMOVED | BY_EXPIRY | HAS_OLD | HAS_NEW;
    if flags & !known != 0 || at != bytes.len() {
        return None;
    }
    let (by_expiry, created_ms) = (flags & BY_EXPIRY != 0, u64::from_le_bytes(*created));
    Some(StoredChange { kind, by_expiry, created_ms, keys, old, new })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Item;

    fn encoded() -> Vec<u8> {
        let keys = ItemBytes::encode(&Item::new().with("pk", "a"));
        let new = ItemBytes::encode(&Item::new().with("pk", "a").with("n", 1));
        let change =
            Change { keys: &keys, old: None, new: Some(&new), cause: Cause::User, now_ms: 7 };
        encode(&change, StreamView::NewAndOldImages)
    }

    #[test]
    fn a_record_of_an_unknown_version_is_refused_by_that_name() {
        let mut bytes = encoded();
        bytes[0] = 9;
        assert_eq!(
            decode(&bytes.into()).unwrap_err().to_string(),
            "the stored stream record has format version 9, this build knows 1; \
             open the database with a newer kstone"
        );
    }

    #[test]
    fn bytes_that_are_no_record_are_refused() {
        let whole = encoded();
        assert_eq!(decode(&whole.clone().into()).unwrap().kind, ChangeKind::Insert);
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].into()).collect();
        damaged.push([&whole[..], &[0]].concat());
        // Unknown flags, and an item that came and went at once.
        for flags in [32, INSERTED | REMOVED] {
            damaged.push(whole.clone());
            damaged.last_mut().unwrap()[1] |= flags;
        }
        for bytes in damaged {
            let read = decode(&bytes.clone().into());
            assert!(matches!(read, Err(Error::Corrupt(_))), "{bytes:02x?}");
        }
    }
}
