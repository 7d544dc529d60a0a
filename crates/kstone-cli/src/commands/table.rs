//! The commands on items, on a named table: in a folder or behind a server.

use std::ffi::{OsStr, OsString};

use anyhow::{Context, Result, anyhow, bail};
use kstone::table::{KeyAttribute, KeySchema};
use kstone::{Item, ItemBytes};
use serde_json::json;

use crate::Outcome;
use crate::args::{self, Delete, Get, Load, Page, Put, Query, Scan};
use crate::commands::{load as lines, put as typed, query as pages, scan as segments};
use crate::output::{Output, count, counted};
use crate::tables::{ItemsQuery, KeyConditionText, Tables, typed_value};
use crate::{json, keys};

/// How many items one request writes.
const BATCH: usize = 25;

/// Whether a query is about a named table.
pub fn is_asked(args: &Query) -> bool {
    args.table.is_some() || args.index.is_some() || !args.pk.is_empty() || !args.sk.is_empty()
}

pub fn put(args: &Put, out: &mut Output) -> Result<Outcome> {
    if args.words.len() > 1 {
        bail!("in a named table the key is part of the item: kstone put WHERE --table TABLE ITEM");
    }
    let item = typed::item_of(args)?;
    let (tables, table) = (Tables::open(&args.place)?, named(&args.table)?);
    let key = key_part(&tables.shape(table)?.key, &item);
    tables.put(table, vec![item])?;
    out.line(json::text(&key))?;
    Ok(Outcome::Done)
}

pub fn get(args: &Get, out: &mut Output) -> Result<Outcome> {
    let (tables, table) = (Tables::open(&args.target.place)?, named(&args.target.table)?);
    let key = key_of(&tables, table, &args.target)?;
    let Some(item) = tables.get(table, key.clone())? else {
        out.complain(&format!("not found: {}", json::text(&key)));
        return Ok(Outcome::No);
    };
    let text = json::text(&item);
    out.line(if out.is_terminal { json::pretty(&text) } else { text })?;
    Ok(Outcome::Done)
}

pub fn delete(args: &Delete, out: &mut Output) -> Result<Outcome> {
    let (tables, table) = (Tables::open(&args.target.place)?, named(&args.target.table)?);
    let key = key_of(&tables, table, &args.target)?;
    let was_there = tables.delete(table, key.clone())?;
    out.line(format!("{{\"key\":{},\"deleted\":{was_there}}}", json::text(&key)))?;
    Ok(Outcome::Done)
}

pub fn load(args: &Load, out: &mut Output) -> Result<Outcome> {
    let (tables, table) = (Tables::open(&args.place)?, named(&args.table)?);
    let (mut batch, mut stored) = (Vec::new(), 0u64);
    let mut input = lines::input(args)?;
    let commit = |batch: &mut Vec<Item>| -> Result<u64> {
        let items = std::mem::take(batch);
        let len = items.len() as u64;
        if len > 0 {
            tables.put(table, items)?;
        }
        Ok(len)
    };
    let result = lines::each_line(&mut *input, |line| {
        batch.push(json::item(line)?);
        if batch.len() == BATCH {
            stored += commit(&mut batch)?;
            out.progress(&format!("{} items", count(stored)));
        }
        Ok(())
    });
    out.end_progress();
    if result.is_ok() {
        stored += commit(&mut batch)?;
    }
    let before = counted(stored, "item", "items");
    result.map_err(|error| anyhow!("{error:#}; the first {before} were stored"))?;
    out.line(format!("{{\"loaded\":{stored}}}"))?;
    Ok(Outcome::Done)
}

pub fn query(args: &Query, out: &mut Output) -> Result<Outcome> {
    let (table, pk) = table_and_pk(args)?;
    let tables = Tables::open(&args.place)?;
    let shape = tables.shape(&table)?;
    let condition = condition(shape.key_of(args.index.as_deref())?, &pk, args)?;
    let ask = ItemsQuery {
        table,
        index: args.index.clone(),
        condition: Some(condition),
        backward: args.reverse,
        ..ItemsQuery::default()
    };
    print(&tables, ask, &args.page, out)
}

pub fn scan(args: &Scan, out: &mut Output) -> Result<Outcome> {
    let ask = ItemsQuery {
        table: named(&args.table)?.to_owned(),
        index: args.index.clone(),
        segment: args.segment.as_deref().map(segments::segment).transpose()?,
        ..ItemsQuery::default()
    };
    print(&Tables::open(&args.place)?, ask, &args.page, out)
}

pub fn list(args: &args::Tables, out: &mut Output) -> Result<Outcome> {
    let tables = Tables::open(&args.place)?;
    let names = tables.names()?;
    if names.is_empty() && !args.json {
        out.note("no named tables");
    }
    for name in names {
        let shape = tables.shape(&name)?;
        let key = |key: &KeySchema| {
            let names = |of: &[KeyAttribute]| -> Vec<String> {
                of.iter().map(|attribute| attribute.name.clone()).collect()
            };
            (names(&key.hash), names(&key.range))
        };
        if args.json {
            let shown = |(hash, range)| json!({ "hash": hash, "range": range });
            let indexes = shape.indexes.iter();
            let indexes = indexes.map(|(name, of)| (name.clone(), shown(key(of))));
            let indexes: serde_json::Map<_, _> = indexes.collect();
            let line = json!({
                "table": name, "key": shown(key(&shape.key)),
                "indexes": indexes, "items": shape.items,
            });
            out.line(line.to_string())?;
            continue;
        }
        let shown = |(hash, range): (Vec<String>, Vec<String>)| match range.is_empty() {
            true => hash.join(", "),
            false => format!("{} → {}", hash.join(", "), range.join(", ")),
        };
        let items = counted(shape.items, "item", "items");
        out.line(format!("{}  {}  {items}", out.bold(&name), shown(key(&shape.key))))?;
        for (index, of) in &shape.indexes {
            out.line(format!("  {index}  {}", shown(key(of))))?;
        }
    }
    Ok(Outcome::Done)
}

fn named(table: &Option<String>) -> Result<&str> {
    table.as_deref().context("which table? --table TABLE")
}

fn text(word: &OsStr) -> Result<&str> {
    word.to_str().with_context(|| format!("{} is not UTF-8", word.display()))
}

fn key_of(tables: &Tables, table: &str, target: &args::Target) -> Result<Item> {
    let sk = target.sk.as_deref().map(text).transpose()?;
    tables.shape(table)?.typed_key(text(&target.pk)?, sk)
}

fn key_part(key: &KeySchema, item: &Item) -> Item {
    let mut part = Item::new();
    for attribute in key.attributes() {
        if let Some(value) = item.get(&attribute.name) {
            part.insert(&*attribute.name, value.clone());
        }
    }
    part
}

/// `WHERE TABLE --pk PK`, `WHERE --table TABLE PK` or `WHERE --table TABLE --pk PK`.
fn table_and_pk(args: &Query) -> Result<(String, Vec<String>)> {
    let first = args.first.as_deref().map(text).transpose()?.map(str::to_owned);
    match (&args.table, first, args.pk.is_empty()) {
        (Some(table), Some(pk), true) => Ok((table.clone(), vec![pk])),
        (Some(table), None, false) => Ok((table.clone(), args.pk.clone())),
        (None, Some(table), false) => Ok((table, args.pk.clone())),
        (Some(_), Some(_), false) => bail!("the table is named twice: by --table and before --pk"),
        _ => bail!("which partition of which table? kstone query WHERE TABLE --pk PK"),
    }
}

/// The key condition of a query: equality on the partition key, and on the sort key from the left
/// what is known.
fn condition(key: &KeySchema, pk: &[String], args: &Query) -> Result<KeyConditionText> {
    let names = |of: &[KeyAttribute]| -> String {
        let names: Vec<&str> = of.iter().map(|attribute| attribute.name.as_str()).collect();
        names.join(", ")
    };
    if pk.len() != key.hash.len() {
        bail!("the partition key is {}: give --pk for each", names(&key.hash));
    }
    if args.sk.len() > key.range.len() {
        match key.range.is_empty() {
            true => bail!("there is no sort key: leave out --sk"),
            false => bail!("the sort key is {}: no more --sk than that", names(&key.range)),
        }
    }
    let mut writer = ConditionWriter::default();
    for (attribute, word) in key.hash.iter().zip(pk).chain(key.range.iter().zip(&args.sk)) {
        let (name, value) = (writer.name(attribute), writer.value(attribute, word)?);
        writer.clause(format!("{name} = {value}"));
    }
    let word = |arg: &Option<OsString>| -> Result<Option<String>> {
        Ok(arg.as_deref().map(text).transpose()?.map(str::to_owned))
    };
    let (prefix, from, to) = (word(&args.prefix)?, word(&args.from)?, word(&args.to)?);
    if prefix.is_none() && from.is_none() && to.is_none() {
        return Ok(writer.condition);
    }
    let Some(attribute) = key.range.get(args.sk.len()) else {
        bail!("no part of the sort key is left for --prefix, --from or --to");
    };
    let name = writer.name(attribute);
    let clause = match (prefix, from, to) {
        (Some(prefix), None, None) => {
            format!("begins_with({name}, {})", writer.value(attribute, &prefix)?)
        }
        (None, Some(from), Some(to)) => {
            let (from, to) = (writer.value(attribute, &from)?, writer.value(attribute, &to)?);
            format!("{name} BETWEEN {from} AND {to}")
        }
        (None, Some(from), None) => format!("{name} >= {}", writer.value(attribute, &from)?),
        (None, None, Some(to)) => format!("{name} <= {}", writer.value(attribute, &to)?),
        _ => bail!("a named table takes --prefix, or --from and --to, but not both"),
    };
    writer.clause(clause);
    Ok(writer.condition)
}

#[derive(Default)]
struct ConditionWriter {
    condition: KeyConditionText,
}

impl ConditionWriter {
    fn name(&mut self, attribute: &KeyAttribute) -> String {
        let placeholder = format!("#n{}", self.condition.names.len());
        self.condition.names.push((placeholder.clone(), attribute.name.clone()));
        placeholder
    }

    fn value(&mut self, attribute: &KeyAttribute, word: &str) -> Result<String> {
        let value = typed_value(attribute.kind, word).with_context(|| attribute.name.clone())?;
        let placeholder = format!(":v{}", self.condition.values.len());
        self.condition.values.push((placeholder.clone(), value));
        Ok(placeholder)
    }

    fn clause(&mut self, clause: String) {
        if !self.condition.text.is_empty() {
            self.condition.text.push_str(" AND ");
        }
        self.condition.text.push_str(&clause);
    }
}

/// Prints page after page, up to the limit.
fn print(tables: &Tables, mut ask: ItemsQuery, page: &Page, out: &mut Output) -> Result<Outcome> {
    ask.start = page.cursor.as_deref().map(from_cursor).transpose()?;
    let mut left = page.limit.unwrap_or(u64::MAX);
    while left > 0 {
        ask.limit = page.limit.map(|_| u32::try_from(left).unwrap_or(u32::MAX));
        let found = tables.read(&ask)?;
        left = left.saturating_sub(found.items.len() as u64);
        for item in &found.items {
            out.line(json::text(item))?;
        }
        ask.start = found.next;
        if ask.start.is_none() {
            break;
        }
    }
    let mut cursor = ask.start.as_ref().map(to_cursor);
    if page.limit.is_some_and(|limit| limit > 0) && cursor.is_some() {
        // A page that is full says where it ended, even if nothing is behind it.
        ask.limit = Some(1);
        if tables.read(&ask)?.items.is_empty() {
            cursor = None;
        }
    }
    pages::hand_out(page, cursor, out)?;
    Ok(Outcome::Done)
}

/// `t`, then the key of the last item seen, in hexadecimal.
fn to_cursor(key: &Item) -> String {
    format!("t{}", hex::encode(ItemBytes::encode(key).as_slice()))
}

fn from_cursor(text: &str) -> Result<Item> {
    text.strip_prefix('t')
        .and_then(|digits| keys::from_hex(digits.as_bytes()).ok())
        .and_then(|bytes| ItemBytes::from_bytes(bytes.into()).ok())
        .and_then(|item| item.decode().ok())
        .with_context(|| {
            format!("`{text}` is no cursor of a named table; take it from `more: --cursor …`")
        })
}
