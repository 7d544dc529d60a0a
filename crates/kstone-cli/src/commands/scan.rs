//! `kstone scan`: all items, or all partition keys.

use std::ffi::OsStr;

use anyhow::{Context, Result, anyhow};
use kstone_core::{Engine, ScanCursor};

use crate::Outcome;
use crate::args::Scan;
use crate::commands::{query, record};
use crate::database::TABLE;
use crate::keys;
use crate::output::Output;

pub fn run(engine: &Engine, args: &Scan, out: &mut Output) -> Result<Outcome> {
    if let Some(prefix) = &args.pk_prefix {
        return partition_keys(engine, prefix, args, out);
    }
    let start = match (&args.segment, &args.page.cursor) {
        (Some(segment), _) => segment_start(segment)?,
        (None, Some(cursor)) => Some(from_cursor(cursor)?),
        (None, None) => Some(ScanCursor::start()),
    };
    let mut next = None;
    if let Some(start) = start {
        let scan = engine.snapshot().scan(TABLE, start.clone());
        let mut left = args.page.limit.unwrap_or(u64::MAX);
        // Where the page would end if there were one more record.
        let mut behind = start;
        for found in scan {
            let found = found?;
            if left == 0 {
                next = Some(behind);
                break;
            }
            left -= 1;
            out.line(record::line(&found.key, &found.record)?)?;
            if left == 0 {
                behind = behind.after(found.key);
            }
        }
    }
    query::hand_out(&args.page, next.as_ref().map(to_cursor), out)?;
    Ok(Outcome::Done)
}

fn partition_keys(
    engine: &Engine,
    prefix: &OsStr,
    args: &Scan,
    out: &mut Output,
) -> Result<Outcome> {
    let prefix = keys::typed(prefix, args.hex)?;
    let limit = args.page.limit.unwrap_or(u64::MAX);
    let mut found = engine.snapshot().partition_keys(TABLE, &prefix)?;
    for _ in 0..limit {
        let Some(pk) = found.next() else { return Ok(Outcome::Done) };
        out.line(format!("{{{}}}", keys::field("pk", &pk?)))?;
    }
    if found.next().transpose()?.is_some() {
        out.note("more: ask with a longer prefix or a higher --limit");
    }
    Ok(Outcome::Done)
}

/// `0/4` is the first of four.
pub fn segment(text: &str) -> Result<(u32, u32)> {
    text.split_once('/')
        .and_then(|(index, total)| Some((index.parse().ok()?, total.parse().ok()?)))
        .ok_or_else(|| anyhow!("`{text}` is no segment: 0/4 is the first of four"))
}

fn segment_start(text: &str) -> Result<Option<ScanCursor>> {
    let (index, total) = segment(text)?;
    ScanCursor::segment(index, total)
        .with_context(|| format!("--segment {text}: segments of {total} are 0/{total} and up"))
}

fn to_cursor(cursor: &ScanCursor) -> String {
    format!("s{}", hex::encode(cursor.to_bytes()))
}

fn from_cursor(text: &str) -> Result<ScanCursor> {
    text.strip_prefix('s')
        .and_then(|digits| keys::from_hex(digits.as_bytes()).ok())
        .and_then(|bytes| ScanCursor::from_bytes(&bytes).ok())
        .ok_or_else(|| {
            anyhow!(
                "`{text}` is no cursor of `kstone scan`; take it from the line `more: --cursor …`"
            )
        })
}
