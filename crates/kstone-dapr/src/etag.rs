//! ETags: they identify the state of a key that a client has read.
//!
//! An ETag has two parts. The version is what this door wrote to the attribute `etag`: microseconds
//! since 1970, or the previous version plus one if that is greater. So each write has its own, and a
//! key that was deleted and written again never has an old one. The checksum covers everything else
//! in the item, so that a write at another door, which does not maintain versions, changes the ETag
//! too. An item that another door wrote has only a checksum.
//!
//! As text it is one number, as in most of Dapr's stores: the version, then the checksum in 20 digits.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone_ports::value::{Item, ItemBytes, Value};
use xxhash_rust::xxh3::Xxh3Default;

use crate::entry::{ETAG, PK, SK};

/// How many decimal digits the greatest checksum has.
const SUM_DIGITS: usize = 20;

/// Identifies one state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag {
    version: Option<u64>,
    sum: u64,
}

impl Etag {
    /// The ETag of an item.
    pub(crate) fn of(item: &Item) -> Etag {
        let version = match item.get(ETAG) {
            // In the text, zero would look like no version. This door never writes it.
            Some(Value::N(version)) => version.to_u64().filter(|version| *version > 0),
            _ => None,
        };
        let mut sum = Xxh3Default::new();
        for (name, value) in item.iter() {
            let is_excluded = name == PK || name == SK || (name == ETAG && version.is_some());
            if !is_excluded {
                add(&mut sum, name, value);
            }
        }
        Etag { version, sum: sum.digest() }
    }
}

/// Adds an attribute to the checksum, each part with its length before it.
fn add(sum: &mut Xxh3Default, name: &str, value: &Value) {
    let mut add = |kind: u8, bytes: &[u8]| {
        sum.update(&[kind]);
        sum.update(&(bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    add(b'#', name.as_bytes());
    match value {
        Value::S(text) => add(b'S', text.as_bytes()),
        Value::B(bytes) => add(b'B', bytes),
        other => add(b'-', ItemBytes::encode(&Item::new().with("", other.clone())).as_slice()),
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.version, self.sum) {
            (Some(version), sum) => write!(f, "{version}{sum:0SUM_DIGITS$}"),
            (None, sum) => write!(f, "{sum}"),
        }
    }
}

/// The text does not have the form of an ETag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidEtag;

impl FromStr for Etag {
    type Err = InvalidEtag;

    fn from_str(text: &str) -> Result<Self, InvalidEtag> {
        // Some clients send it in quotes, as HTTP does.
        let text = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidEtag);
        }
        let (version, sum) = text.split_at(text.len().saturating_sub(SUM_DIGITS));
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| InvalidEtag);
        let version = if version.is_empty() { None } else { Some(number(version)?) };
        Ok(Etag { version, sum: number(sum)? })
    }
}

/// Issues the versions of writes.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    last: AtomicU64,
}

impl Versions {
    /// A greater version than any before, unless the clock runs backwards across a restart.
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
        for version in [None, Some(1), Some(1_768_381_200_000_000), Some(u64::MAX)] {
            for sum in [0, 7, u64::MAX] {
                let etag = Etag { version, sum };
                assert_eq!(etag.to_string().parse(), Ok(etag));
                assert_eq!(format!("\"{etag}\"").parse(), Ok(etag));
            }
        }
        let beyond = "9".repeat(20);
        for wrong in ["", "bad-etag", "x12", "+1", "-1", "1.0", " 1", "\u{661}", &beyond] {
            assert_eq!(wrong.parse::<Etag>(), Err(InvalidEtag), "{wrong}");
        }
    }

    #[test]
    fn versions_differ_and_grow_even_when_the_clock_stands_or_runs_backwards() {
        let versions = Versions::default();
        let given: Vec<u64> = [5, 5, 4, 6].map(|now_ms| versions.next(now_ms)).to_vec();
        assert_eq!(given, [5000, 5001, 5002, 6000]);
    }

    #[test]
    fn whatever_changes_in_an_item_changes_its_etag() {
        let item = Item::new().with("pk", "a").with("sk", "#").with("value", "1").with(ETAG, 9);
        let etag = Etag::of(&item);
        assert_eq!(etag, Etag::of(&item.clone()));
        assert_eq!(etag.version, Some(9));
        for (name, value) in [
            ("value", Value::from("2")),
            ("value", Value::from(1)),
            ("value", Value::B(b"1"[..].into())),
            ("ttl", Value::from(5)),
            ("score", Value::from(1)),
            (ETAG, Value::from(10)),
            (ETAG, Value::from("9")),
        ] {
            assert_ne!(Etag::of(&item.clone().with(name, value.clone())), etag, "{name} {value:?}");
        }
        let mut without = item.clone();
        without.remove(ETAG);
        assert_ne!(Etag::of(&without), etag);
        let (ab, b) = (Item::new().with("a", "b").with("c", ""), Item::new().with("a", "bc"));
        assert_ne!(Etag::of(&ab), Etag::of(&b));
    }
}
