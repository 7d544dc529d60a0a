//! Writes as clients request them, in one form for both protocols.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::etag::Etag;

/// One write: a key gets a value, or is deleted.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The key.
    pub key: String,
    /// The value; `None` deletes the key.
    pub value: Option<Bytes>,
    /// The condition under which the write happens.
    pub expected: Expected,
    /// Further settings of the request, `ttlInSeconds` above all.
    pub metadata: HashMap<String, String>,
}

impl Operation {
    /// Deletes a key, whatever it holds.
    pub fn delete(key: impl Into<String>) -> Operation {
        let (key, metadata) = (key.into(), HashMap::new());
        Operation { key, value: None, expected: Expected::Anything, metadata }
    }

    /// The same operation with the metadata of its whole request, where it has no value of its own.
    pub(crate) fn with_default_metadata(mut self, of_request: &HashMap<String, String>) -> Self {
        for (name, value) in of_request {
            self.metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

/// The condition on a key under which a write happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything: the last write wins.
    Anything,
    /// The key does not exist: the first write wins.
    Absent,
    /// The key still has this ETag.
    Unchanged(Etag),
}

/// Which of two writes without an ETag wins.
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

/// Checks the name of a consistency model. Every read is strongly consistent, whichever is named.
pub(crate) fn check_consistency(text: &str) -> Result<()> {
    match text {
        "" | "eventual" | "strong" => Ok(()),
        _ => Err(Error::malformed(format!(
            "unrecognized consistency model '{text}': it is eventual or strong"
        ))),
    }
}

impl Expected {
    /// The same condition for a delete: without an ETag it deletes whatever is there.
    pub(crate) fn of_delete(self) -> Self {
        match self {
            Expected::Absent => Expected::Anything,
            expected => expected,
        }
    }

    /// The condition that an ETag and a concurrency model ask for. SDKs send an empty ETag for none.
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
