//! ETags: which state of a key somebody has read.
//!
//! What this door writes carries a version in its attribute `etag`: microseconds since 1970, or the
//! one before plus one if that is more, so that each write has another and a key that was deleted
//! and made again never has an old one. The ETag is that number.
//!
//! An item that another door put has no such attribute. Its ETag is an `x` and a checksum of all
//! that it holds, so that a later change of it shows too.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone::{Item, ItemBytes, Value};

use crate::entry::{ETAG, PK, SK};

/// Which state of a key is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Etag {
    /// The version that this door wrote.
    Version(u64),
    /// The checksum of what another door wrote.
    Content(u64),
}

impl Etag {
    /// The ETag of an item.
    pub(crate) fn of(item: &Item) -> Etag {
        let version = match item.get(ETAG) {
            Some(Value::N(version)) => version.to_u64(),
            _ => None,
        };
        match version {
            Some(version) => Etag::Version(version),
            None => {
                let mut content = item.clone();
                content.remove(PK);
                content.remove(SK);
                let bytes = ItemBytes::encode(&content);
                Etag::Content(xxhash_rust::xxh3::xxh3_64(bytes.as_slice()))
            }
        }
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Etag::Version(version) => write!(f, "{version}"),
            Etag::Content(sum) => write!(f, "x{sum:016x}"),
        }
    }
}

/// The text is no ETag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEtag;

impl FromStr for Etag {
    type Err = NoEtag;

    fn from_str(text: &str) -> Result<Self, NoEtag> {
        // Some clients quote it as HTTP does.
        let text = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
        let is_plain = |digits: &str| !digits.is_empty() && !digits.starts_with('+');
        match text.strip_prefix('x') {
            Some(sum) if sum.len() == 16 && is_plain(sum) => {
                u64::from_str_radix(sum, 16).map(Etag::Content).map_err(|_| NoEtag)
            }
            None if is_plain(text) => text.parse().map(Etag::Version).map_err(|_| NoEtag),
            _ => Err(NoEtag),
        }
    }
}

/// Gives versions.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    last: AtomicU64,
}

impl Versions {
    /// Another one than ever before, as long as the clock does not run backwards across a restart.
    pub(crate) fn next(&self, now_ms: u64) -> u64 {
        let now = now_ms.saturating_mul(1000);
        let after = |last: u64| last.saturating_add(1).max(now);
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(last.unwrap_or_else(|last| last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_read_as_it_was_written() {
        for etag in [Etag::Version(0), Etag::Version(u64::MAX), Etag::Content(7)] {
            assert_eq!(etag.to_string().parse(), Ok(etag));
            assert_eq!(format!("\"{etag}\"").parse(), Ok(etag));
        }
        for wrong in ["", "bad-etag", "x", "x12", "+1", "x+00000000000007", "-1", "1.0", " 1"] {
            assert_eq!(wrong.parse::<Etag>(), Err(NoEtag), "{wrong}");
        }
    }

    #[test]
    fn versions_differ_and_grow_even_when_the_clock_stands_or_runs_backwards() {
        let versions = Versions::default();
        let given: Vec<u64> = [5, 5, 4, 6].map(|now_ms| versions.next(now_ms)).to_vec();
        assert_eq!(given, [5000, 5001, 5002, 6000]);
    }

    #[test]
    fn an_item_of_another_door_has_an_etag_that_changes_with_it() {
        let item = Item::new().with("pk", "a").with("sk", "#").with("score", 1);
        let changed = item.clone().with("score", 2);
        assert_ne!(Etag::of(&item), Etag::of(&changed));
        assert_eq!(Etag::of(&item), Etag::of(&item.clone()));
        assert_eq!(Etag::of(&item.with(ETAG, 9)), Etag::Version(9));
    }
}
