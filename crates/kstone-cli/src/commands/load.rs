//! `kstone load`: many items from JSON lines, in batches.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use anyhow::{Context, Result, anyhow, bail};
use kstone::ItemBytes;
use kstone_core::{Durability, Engine, Key, WriteBatch};
use serde_json::value::RawValue;

use crate::Outcome;
use crate::args::Load;
use crate::database::{self, TABLE};
use crate::output::{Output, count, counted};
use crate::{json, keys, time};

/// A batch is committed at this many bytes: enough to make the cost of a commit small, little
/// enough to be nothing beside the memory budget.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 1000;

pub fn run(engine: &Engine, args: &Load, out: &mut Output) -> Result<Outcome> {
    let mut input = input(args)?;
    let mut loader = Loader { engine, batch: WriteBatch::new(), stored: 0 };
    let result = loader.lines(&mut *input, out);
    out.end_progress();
    // What came before a bad line stays, and is as durable as the rest.
    loader.commit().and_then(|()| Ok(engine.sync()?)).context("the last items were not stored")?;
    let stored = counted(loader.stored, "item", "items");
    result.map_err(|error| anyhow!("{error:#}; the {stored} before it were stored"))?;
    out.line(format!("{{\"loaded\":{}}}", loader.stored))?;
    Ok(Outcome::Done)
}

/// The lines to load.
pub fn input(args: &Load) -> Result<Box<dyn BufRead>> {
    if args.file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file =
        File::open(&args.file).with_context(|| format!("cannot open {}", args.file.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Calls `line` with each line that is not blank. An error says in which one it was.
pub fn each_line(input: &mut dyn BufRead, mut line: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let (mut bytes, mut number) = (Vec::new(), 0u64);
    loop {
        bytes.clear();
        number += 1;
        let len = input.read_until(b'\n', &mut bytes).context("cannot read the input")?;
        if len == 0 {
            return Ok(());
        }
        let in_line = || format!("line {number}");
        let text = std::str::from_utf8(&bytes).context("it is not UTF-8").with_context(in_line)?;
        if !text.trim().is_empty() {
            line(text.trim_end()).with_context(in_line)?;
        }
    }
}

struct Loader<'a> {
    engine: &'a Engine,
    batch: WriteBatch,
    stored: u64,
}

impl Loader<'_> {
    fn lines(&mut self, input: &mut dyn BufRead, out: &mut Output) -> Result<()> {
        each_line(input, |line| {
            self.line(line)?;
            if self.batch.len() >= BATCH_RECORDS || self.batch.encoded_len() >= BATCH_BYTES {
                self.commit()?;
                out.progress(&format!("{} items", count(self.stored)));
            }
            Ok(())
        })
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let parsed = Line::parse(line)?;
        let expires_at_ms = match (parsed.ttl_ms, parsed.expires_at_ms) {
            (Some(ttl_ms), _) => Some(self.engine.now_ms().saturating_add(ttl_ms)),
            (None, at_ms) => at_ms,
        };
        let item = parsed.item.as_slice();
        match expires_at_ms {
            Some(at_ms) => self.batch.put_expiring(TABLE, &parsed.key, item, at_ms)?,
            None => self.batch.put(TABLE, &parsed.key, item)?,
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.engine.write(&self.batch, Durability::Os)?.wait()?;
        self.stored += self.batch.len() as u64;
        self.batch.clear();
        Ok(())
    }
}

struct Line {
    key: Key,
    item: ItemBytes,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
}

impl Line {
    fn parse(line: &str) -> Result<Line> {
        // Of its position, `serde_json` knows only the column: each line is parsed alone.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(line)
            .map_err(|error| anyhow!("{error}").context("it is not a JSON object"))?;
        const KNOWN: [&str; 8] =
            ["pk", "pk_hex", "sk", "sk_hex", "value", "ttl", "expires_at", "version"];
        if let Some(unknown) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            bail!("unknown field \"{unknown}\"; known ones are {}", KNOWN.join(", "));
        }
        let field = |name: &str| fields.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null");
        let text = |name: &str| -> Result<Option<String>> {
            field(name)
                .map(|raw| {
                    serde_json::from_str(raw).map_err(|_| anyhow!("\"{name}\" must be a string"))
                })
                .transpose()
        };
        let bytes = |name: &str| -> Result<Option<Vec<u8>>> {
            let hex_name = format!("{name}_hex");
            match (text(name)?, text(&hex_name)?) {
                (Some(_), Some(_)) => bail!("it has both \"{name}\" and \"{hex_name}\""),
                (Some(text), None) => Ok(Some(text.into_bytes())),
                (None, Some(digits)) => Ok(Some(keys::from_hex(digits.as_bytes())?)),
                (None, None) => Ok(None),
            }
        };
        let pk = bytes("pk")?.context("it has no \"pk\"")?;
        let value = fields.get("value").context("it has no \"value\"")?;
        let item = database::encode(&json::item_of(value)?)?;
        let expires_at = match field("expires_at") {
            Some(raw) if !raw.starts_with('"') => Some(raw.to_owned()),
            _ => text("expires_at")?,
        };
        let ttl = text("ttl")?;
        if ttl.is_some() && expires_at.is_some() {
            bail!("it has both \"ttl\" and \"expires_at\"");
        }
        Ok(Line {
            key: Key { pk: pk.into(), sk: bytes("sk")?.map(Into::into) },
            item,
            ttl_ms: ttl.as_deref().map(time::duration_ms).transpose()?,
            expires_at_ms: expires_at.as_deref().map(time::moment_ms).transpose()?,
        })
    }
}
