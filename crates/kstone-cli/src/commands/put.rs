//! `kstone put`: one item.

use std::ffi::{OsStr, OsString};
use std::io::Read;

use anyhow::{Context, Result, anyhow, bail};
use kstone::Item;
use kstone_core::{Durability, Engine, Key, WriteBatch};

use crate::Outcome;
use crate::args::Put;
use crate::database::{self, TABLE};
use crate::output::Output;
use crate::{json, keys, time};

/// Refuses what can be refused without the database.
pub fn check(args: &Put) -> Result<()> {
    key_of(args)?;
    if item_word(args) != "-" {
        item_of(args)?;
    }
    args.ttl.as_deref().map(time::duration_ms).transpose()?;
    args.expires_at.as_deref().map(time::moment_ms).transpose()?;
    Ok(())
}

pub fn run(engine: &Engine, args: &Put, out: &mut Output) -> Result<Outcome> {
    let (key, item) = (key_of(args)?, database::encode(&item_of(args)?)?);
    let expires_at_ms = match (&args.ttl, &args.expires_at) {
        (Some(ttl), _) => Some(engine.now_ms().saturating_add(time::duration_ms(ttl)?)),
        (None, Some(moment)) => Some(time::moment_ms(moment)?),
        (None, None) => None,
    };
    let mut batch = WriteBatch::new();
    match expires_at_ms {
        Some(at_ms) => batch.put_expiring(TABLE, &key, item.as_slice(), at_ms)?,
        None => batch.put(TABLE, &key, item.as_slice())?,
    }
    let commit = engine.write(&batch, Durability::Sync)?;
    let version = commit.seq();
    commit.wait()?;
    let mut line =
        format!("{{{},\"stripe\":{},\"version\":{version}", keys::fields(&key), key.stripe());
    if let Some(at_ms) = expires_at_ms {
        line.push_str(&format!(",\"expires_at\":\"{}\"", time::moment(at_ms)));
    }
    out.line(line + "}")?;
    Ok(Outcome::Done)
}

/// The item is the last word; the key comes before it.
fn key_of(args: &Put) -> Result<Key> {
    match &*args.words {
        [pk, _] => keys::typed_key(pk, None, args.hex),
        [pk, sk, _] => keys::typed_key(pk, Some(sk), args.hex),
        _ => bail!("a key comes before the item: kstone put WHERE PK ITEM, or PK SK ITEM"),
    }
}

fn item_word(args: &Put) -> &OsStr {
    args.words.last().map(OsString::as_os_str).unwrap_or_default()
}

/// The item, from the command line or from standard input.
pub fn item_of(args: &Put) -> Result<Item> {
    let word = item_word(args);
    if word != "-" {
        let text = word.to_str().context("the item is not UTF-8, which JSON must be")?;
        return json::item(text).map_err(|error| {
            anyhow!("the last word, `{}`, is not an item: {error}", json::shortened(text))
        });
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    json::item(&text).map_err(|error| anyhow!("standard input is not an item: {error}"))
}
