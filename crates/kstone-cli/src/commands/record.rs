//! An item with its key as one line of JSON: what `query` and `scan` print and `load` reads.

use anyhow::{Context, Result};
use kstone_core::{Key, Record};

use crate::{database, json, keys, time};

/// `{"pk":…,"sk":…,"value":…,"version":…,"expires_at":…}`; what the record has not is left out.
pub fn line(key: &Key, record: &Record) -> Result<String> {
    let item = database::decode(&record.value).with_context(|| keys::shown(key))?;
    let (key, item, version) = (keys::fields(key), json::text(&item), record.version);
    let mut line = format!("{{{key},\"value\":{item},\"version\":{version}");
    if let Some(at_ms) = record.expires_at_ms {
        line.push_str(&format!(",\"expires_at\":\"{}\"", time::moment(at_ms)));
    }
    line.push('}');
    Ok(line)
}
