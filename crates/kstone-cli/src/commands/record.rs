//! A record as one line of JSON: what `query` and `scan` print and `load` reads.

use kstone_core::{Key, Record};

use crate::{json, keys, time};

/// `{"pk":…,"sk":…,"value":…,"version":…,"expires_at":…}`; what the record has not is left out.
pub fn line(key: &Key, record: &Record) -> String {
    let value = match json::from_stored(&record.value) {
        Some(value) => format!("\"value\":{value}"),
        None => format!("\"value_hex\":\"{}\"", keys::to_hex(&record.value)),
    };
    let mut line = format!("{{{},{value},\"version\":{}", keys::fields(key), record.version);
    if let Some(at_ms) = record.expires_at_ms {
        line.push_str(&format!(",\"expires_at\":\"{}\"", time::moment(at_ms)));
    }
    line.push('}');
    line
}
