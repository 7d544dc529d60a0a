//! What a client wants written, whichever protocol said so.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::etag::Etag;

/// A key gets a value, or goes.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The key.
    pub key: String,
    /// The value; `None` deletes the key.
    pub value: Option<Bytes>,
    /// What the key must be like.
    pub expected: Expected,
    /// What else the request says, `ttlInSeconds` above all.
    pub metadata: HashMap<String, String>,
}

impl Operation {
    /// The key goes, whatever it holds.
    pub fn delete(key: impl Into<String>) -> Operation {
        let (key, metadata) = (key.into(), HashMap::new());
        Operation { key, value: None, expected: Expected::Anything, metadata }
    }
}

/// What a key must be like for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything: the last write wins.
    Anything,
    /// Not there: the first write wins.
    Absent,
    /// As it was when it had this ETag.
    Unchanged(Etag),
}

/// Whose write wins when nobody names an ETag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Concurrency {
    First,
    #[default]
    Last,
}

impl Concurrency {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "" | "last-write" => Ok(Concurrency::Last),
            "first-write" => Ok(Concurrency::First),
            _ => Err(Error::malformed(format!(
                "unrecognized concurrency model '{text}': it is first-write or last-write"
            ))),
        }
    }
}

/// Every read is consistent here, so it does not matter which is asked for; but it must be one.
pub(crate) fn check_consistency(text: &str) -> Result<()> {
    match text {
        "" | "eventual" | "strong" => Ok(()),
        _ => Err(Error::malformed(format!(
            "unrecognized consistency model '{text}': it is eventual or strong"
        ))),
    }
}

impl Expected {
    /// The same for a delete: one that names no ETag deletes whatever is there.
    pub(crate) fn of_delete(self) -> Self {
        match self {
            Expected::Absent => Expected::Anything,
            expected => expected,
        }
    }

    /// What a request's ETag and options ask for. An empty ETag is none, as SDKs send it.
    pub(crate) fn new(key: &str, etag: Option<&str>, concurrency: Concurrency) -> Result<Self> {
        match etag.filter(|etag| !etag.is_empty()) {
            Some(etag) => match etag.parse() {
                Ok(etag) => Ok(Expected::Unchanged(etag)),
                Err(_) => Err(Error::BadEtag { key: key.to_owned(), etag: etag.to_owned() }),
            },
            None if concurrency == Concurrency::First => Ok(Expected::Absent),
            None => Ok(Expected::Anything),
        }
    }
}
