//! `kstone put`: one record.

use std::ffi::OsStr;
use std::io::Read;

use anyhow::{Context, Result, anyhow};
use kstone_core::{Durability, Engine, Key, WriteBatch};

use crate::Outcome;
use crate::args::Put;
use crate::database::TABLE;
use crate::output::Output;
use crate::{json, keys, time};

/// Refuses what can be refused without the database.
pub fn check(args: &Put) -> Result<()> {
    key_of(args)?;
    if value_word(args) != "-" {
        value_of(args)?;
    }
    args.ttl.as_deref().map(time::duration_ms).transpose()?;
    args.expires_at.as_deref().map(time::moment_ms).transpose()?;
    Ok(())
}

pub fn run(engine: &Engine, args: &Put, out: &mut Output) -> Result<Outcome> {
    let (key, value) = (key_of(args)?, value_of(args)?);
    let expires_at_ms = match (&args.ttl, &args.expires_at) {
        (Some(ttl), _) => Some(engine.now_ms().saturating_add(time::duration_ms(ttl)?)),
        (None, Some(moment)) => Some(time::moment_ms(moment)?),
        (None, None) => None,
    };
    let mut batch = WriteBatch::new();
    match expires_at_ms {
        Some(at_ms) => batch.put_expiring(TABLE, &key, value.as_bytes(), at_ms)?,
        None => batch.put(TABLE, &key, value.as_bytes())?,
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

/// The value is the last word, whether a sort key comes before it or not.
fn value_word(args: &Put) -> &OsStr {
    args.value.as_ref().unwrap_or(&args.sk_or_value)
}

fn key_of(args: &Put) -> Result<Key> {
    let sk = args.value.is_some().then_some(args.sk_or_value.as_os_str());
    keys::typed_key(&args.pk, sk, args.hex)
}

fn value_of(args: &Put) -> Result<String> {
    let word = value_word(args);
    if word != "-" {
        let text = word.to_str().context("the value is not UTF-8, which JSON must be")?;
        return json::check(text).map_err(|error| {
            anyhow!(
                "the value `{}` is not JSON: {error}; the value comes last, and text needs \
                 quotes of its own: '\"text\"'",
                shortened(text)
            )
        });
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    json::check(&text).map_err(|error| anyhow!("standard input is not JSON: {error}"))
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    let one_line = text.replace('\n', " ");
    match one_line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or_default()),
        None => one_line,
    }
}
