//! Shard iterators: a position in a shard, as text that a client hands back. Nothing is kept for them
//! in the database, so they cost nothing and outlive a restart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::error::{Error, Result};
use crate::stream::SHARDS;

/// How long an iterator can be used.
pub(crate) const LIFE_MS: u64 = 15 * 60 * 1000;
/// The form of the text; another one would get another number.
const VERSION: u8 = 1;

/// What an iterator says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardIterator {
    pub table: String,
    /// When the stream was opened: which of the table's streams it is.
    pub stream_created_ms: u64,
    pub shard: u8,
    /// The smallest sequence number that was not read yet.
    pub position: u64,
    /// When the iterator was given out.
    pub created_ms: u64,
}

impl ShardIterator {
    pub fn to_text(&self) -> String {
        let mut bytes = vec![VERSION, self.shard];
        for number in [self.stream_created_ms, self.position, self.created_ms] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(self.table.as_bytes());
        BASE64.encode(bytes)
    }

    pub fn from_text(text: &str) -> Result<Self> {
        let bytes = BASE64.decode(text).unwrap_or_default();
        Self::from_bytes(&bytes).ok_or_else(|| Error::validation("Invalid ShardIterator"))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[version, shard], rest) = bytes.split_first_chunk()?;
        let (stream_created, rest) = rest.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (created, table) = rest.split_first_chunk()?;
        (version == VERSION && shard < SHARDS).then_some(())?;
        Some(ShardIterator {
            table: String::from_utf8(table.to_vec()).ok()?,
            stream_created_ms: u64::from_be_bytes(*stream_created),
            shard,
            position: u64::from_be_bytes(*position),
            created_ms: u64::from_be_bytes(*created),
        })
    }

    /// Refuses an iterator whose time is over.
    pub fn check_age(&self, now_ms: u64) -> Result<()> {
        if now_ms.saturating_sub(self.created_ms) > LIFE_MS {
            return Err(Error::ExpiredIterator("Shard iterator has expired".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iterator() -> ShardIterator {
        ShardIterator {
            table: "Music".to_owned(),
            stream_created_ms: 17,
            shard: 3,
            position: u64::MAX,
            created_ms: 42,
        }
    }

    #[test]
    fn an_iterator_comes_back_from_its_text() {
        assert_eq!(ShardIterator::from_text(&iterator().to_text()).unwrap(), iterator());
    }

    #[test]
    fn text_that_is_no_iterator_is_a_wrong_request() {
        let whole = iterator().to_text();
        let no_such_shard = ShardIterator { shard: SHARDS, ..iterator() }.to_text();
        for text in ["", "!", "AAAA", &whole[..20], no_such_shard.as_str()] {
            let error = ShardIterator::from_text(text).unwrap_err();
            assert_eq!(error.to_string(), "Invalid ShardIterator", "{text}");
        }
    }
}
