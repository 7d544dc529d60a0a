//! `kstone load`: many records from JSON lines, in batches.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use anyhow::{Context, Result, anyhow, bail};
use kstone_core::{Durability, Engine, Key, WriteBatch};
use serde_json::value::RawValue;

use crate::Outcome;
use crate::args::Load;
use crate::database::TABLE;
use crate::output::{Output, count, counted};
use crate::{json, keys, time};

/// A batch is committed at this many bytes: enough to make the cost of a commit small, little
/// enough to be nothing beside the memory budget.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 1000;

pub fn run(engine: &Engine, args: &Load, out: &mut Output) -> Result<Outcome> {
    let mut input: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file)
            .with_context(|| format!("cannot open {}", args.file.display()))?;
        Box::new(BufReader::new(file))
    };
    let mut loader = Loader { engine, batch: WriteBatch::new(), stored: 0 };
    let result = loader.lines(&mut *input, out);
    out.end_progress();
    // What came before a bad line stays, and is as durable as the rest.
    loader
        .commit()
        .and_then(|()| Ok(engine.sync()?))
        .context("the last records were not stored")?;
    let stored = counted(loader.stored, "record", "records");
    result.map_err(|error| anyhow!("{error:#}; the {stored} before it were stored"))?;
    out.line(format!("{{\"loaded\":{}}}", loader.stored))?;
    Ok(Outcome::Done)
}

struct Loader<'a> {
    engine: &'a Engine,
    batch: WriteBatch,
    stored: u64,
}

impl Loader<'_> {
    fn lines(&mut self, input: &mut dyn BufRead, out: &mut Output) -> Result<()> {
        let (mut line, mut number) = (Vec::new(), 0u64);
        loop {
            line.clear();
            number += 1;
            let len = input.read_until(b'\n', &mut line).context("cannot read the input")?;
            if len == 0 {
                return Ok(());
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.line(&line).with_context(|| format!("line {number}"))?;
            if self.batch.len() >= BATCH_RECORDS || self.batch.encoded_len() >= BATCH_BYTES {
                self.commit()?;
                out.progress(&format!("{} records", count(self.stored)));
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        let parsed = Line::parse(line)?;
        let expires_at_ms = match (parsed.ttl_ms, parsed.expires_at_ms) {
            (Some(ttl_ms), _) => Some(self.engine.now_ms().saturating_add(ttl_ms)),
            (None, at_ms) => at_ms,
        };
        match expires_at_ms {
            Some(at_ms) => self.batch.put_expiring(TABLE, &parsed.key, &parsed.value, at_ms)?,
            None => self.batch.put(TABLE, &parsed.key, &parsed.value)?,
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
    value: Vec<u8>,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
}

impl Line {
    fn parse(line: &[u8]) -> Result<Line> {
        let line = std::str::from_utf8(line).context("it is not UTF-8")?;
        // Of its position, `serde_json` knows only the column: each line is parsed alone.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(line.trim_end())
            .map_err(|error| anyhow!("{error}").context("it is not a JSON object"))?;
        const KNOWN: [&str; 9] =
            ["pk", "pk_hex", "sk", "sk_hex", "value", "value_hex", "ttl", "expires_at", "version"];
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
        let value = match (fields.get("value"), text("value_hex")?) {
            (Some(raw), None) => json::check(raw.get())?.into_bytes(),
            (None, Some(digits)) => keys::from_hex(digits.as_bytes())?,
            (Some(_), Some(_)) => bail!("it has both \"value\" and \"value_hex\""),
            (None, None) => bail!("it has no \"value\""),
        };
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
            value,
            ttl_ms: ttl.as_deref().map(time::duration_ms).transpose()?,
            expires_at_ms: expires_at.as_deref().map(time::moment_ms).transpose()?,
        })
    }
}
