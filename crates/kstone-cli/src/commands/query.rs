//! `kstone query`: the items of one partition.

use std::ffi::OsString;
use std::ops::Bound;

use anyhow::{Context, Result, bail};
use kstone_core::Engine;

use crate::Outcome;
use crate::args::{Page, Query};
use crate::commands::record;
use crate::database::TABLE;
use crate::keys;
use crate::output::Output;

pub fn run(engine: &Engine, args: &Query, out: &mut Output) -> Result<Outcome> {
    let typed = |arg: &Option<OsString>| -> Result<Bound<Vec<u8>>> {
        let Some(arg) = arg else { return Ok(Bound::Unbounded) };
        Ok(Bound::Included(keys::typed(arg, args.hex)?))
    };
    let (mut low, mut high) = (typed(&args.from)?, typed(&args.to)?);
    if let Some(cursor) = &args.page.cursor {
        let behind = from_cursor(cursor)?;
        // A cursor of an earlier page lies inside the bounds; one that does not must not widen them.
        let bound = if args.reverse { &mut high } else { &mut low };
        let is_inside = match (sort_key(&behind), sort_key(bound)) {
            (Some(at), Some(edge)) => {
                if args.reverse {
                    at <= edge
                } else {
                    at >= edge
                }
            }
            _ => true,
        };
        if is_inside {
            *bound = behind;
        }
    }
    let pk = args.first.as_deref().context("which partition? give its key")?;
    let mut query = engine.partition(TABLE, keys::typed(pk, args.hex)?).range((low, high));
    if let Some(prefix) = &args.prefix {
        query = query.prefix(keys::typed(prefix, args.hex)?);
    }
    if args.reverse {
        query = query.reverse();
    }
    let mut last_sk = None;
    let (mut left, mut more) = (args.page.limit.unwrap_or(u64::MAX), false);
    for found in query.iter()? {
        let found = found?;
        if left == 0 {
            more = true;
            break;
        }
        left -= 1;
        out.line(record::line(&found.key, &found.record)?)?;
        last_sk = Some(found.key.sk);
    }
    let cursor = match last_sk {
        Some(sk) if more => Some(to_cursor(sk.as_deref())),
        // `--limit 0` asks for nothing; the next page starts where this one did.
        None if more => args.page.cursor.clone(),
        _ => None,
    };
    hand_out(&args.page, cursor, out)?;
    Ok(Outcome::Done)
}

fn sort_key(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(sk) | Bound::Excluded(sk) => Some(sk),
        Bound::Unbounded => None,
    }
}

/// The cursor of the next page, for a person and for a script.
pub fn hand_out(page: &Page, cursor: Option<String>, out: &mut Output) -> Result<()> {
    if let Some(path) = &page.cursor_out {
        let text = cursor.clone().unwrap_or_default();
        if let Err(error) = std::fs::write(path, text) {
            bail!("cannot write the cursor to {}: {error}", path.display());
        }
    }
    if let Some(cursor) = cursor {
        out.note(&format!("more: --cursor {cursor}"));
    }
    Ok(())
}

/// `q`, then the last sort key seen, in hexadecimal; `q0` behind the record without one.
fn to_cursor(last_sk: Option<&[u8]>) -> String {
    match last_sk {
        Some(sk) => format!("q1{}", hex::encode(sk)),
        None => "q0".to_owned(),
    }
}

fn from_cursor(cursor: &str) -> Result<Bound<Vec<u8>>> {
    let sk = cursor.strip_prefix("q1").map(|digits| keys::from_hex(digits.as_bytes()));
    match (cursor, sk) {
        // The record without sort key comes first: behind it is every sort key.
        ("q0", _) => Ok(Bound::Included(Vec::new())),
        (_, Some(Ok(sk))) => Ok(Bound::Excluded(sk)),
        _ => bail!(
            "`{cursor}` is no cursor of `kstone query`; take it from the line `more: --cursor …`"
        ),
    }
}
