//! Removes keys and members for good: from the keyspace, and then from every file.

use crate::port::{LocalKeys, PurgeKeys, PurgeReport, Result};

pub(crate) async fn purge(_keys: &LocalKeys, _request: &PurgeKeys) -> Result<PurgeReport> {
    Err(crate::port::Error::Unsupported("ERR keys cannot be purged yet".to_owned()))
}
