//! Exports all data about a person, with values, as readable JSON.
//!
//! Of what others share, only the person's part is shown: who asks for their data has no right to
//! that of their classmates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kstone_ports::items::GetItem;
use kstone_ports::keys::Value as Reply;
use kstone_ports::value::{Item, Value};
use serde_json::{Map, Value as Json, json};

use super::holdings::{PersonalDataLocation, item_key, match_of};
use super::shared::{self, Named};
use super::stores::{Result, Stores, TableKeys, bytes_of, command, pipeline};
use crate::date::Date;
use crate::index::Location;
use crate::keyspace::{ItemKeyParts, Match, WHOLE_KEY};
use crate::pattern::{SubjectSource, ValueType};
use crate::subject::Subject;

/// The form of exports that this version writes.
const EXPORT_VERSION: u32 = 1;

impl Stores {
    /// Exports all data of a person.
    pub async fn export(&self, subject: &Subject, now_ms: u64) -> Result<Json> {
        let mut tables = TableKeys::new();
        let mut data = Vec::new();
        for holding in self.holdings(subject).await? {
            let value = match &holding.location {
                Location::Key { db, key } => self.value_of_key(*db, key, &holding, subject).await?,
                Location::Member { db, key, member } => {
                    self.value_of_member(*db, key, member, &holding).await?
                }
                Location::Item { table, .. } => {
                    let Some(key) = self.table(&mut tables, table).await? else { continue };
                    let ttl = key.ttl.clone();
                    let Some(key) = item_key(key, &holding.location) else { continue };
                    self.value_of_item(table, key, ttl.as_deref(), &holding, subject).await?
                }
            };
            // It may have gone since it was listed.
            let Some(value) = value else { continue };
            data.push(self.described(&holding, value));
        }
        Ok(json!({
            "version": EXPORT_VERSION,
            "subject": { "id": subject.id, "tenant": subject.tenant },
            "exported_at": time(now_ms),
            "entries": data.len(),
            "data": data,
        }))
    }

    fn described(&self, holding: &PersonalDataLocation, value: Json) -> Json {
        let mut shown = Map::new();
        let mut add = |name: &str, value: Json| shown.insert(name.to_owned(), value);
        if let Some(found) = match_of(&self.keyspace, &holding.location) {
            add("pattern", holding.pattern.clone().into());
            add("description", found.pattern.description.clone().into());
        }
        match &holding.location {
            Location::Key { db, key } | Location::Member { db, key, .. } => {
                add("store", "redis".into());
                add("database", (*db).into());
                add("key", text(key));
            }
            Location::Item { table, pk, sk } => {
                add("store", "items".into());
                add("table", table.clone().into());
                let parts = ItemKeyParts { pk, sk: sk.as_deref().unwrap_or(WHOLE_KEY) };
                add("key", text(&parts.key()));
            }
        }
        if let Some(tenant) = &holding.tenant {
            add("tenant", tenant.clone().into());
        }
        if let Some(at_ms) = holding.expires_at_ms {
            add("expires_at", time(at_ms));
        }
        if holding.is_shared {
            add("shared_with_others", true.into());
        }
        add("value", value);
        Json::Object(shown)
    }

    async fn value_of_key(
        &self,
        db: u8,
        key: &[u8],
        holding: &PersonalDataLocation,
        subject: &Subject,
    ) -> Result<Option<Json>> {
        let keys = self.keys_of(db)?;
        let kind = keys.command(&command([&b"TYPE"[..], key])).await?;
        let kind = bytes_of(&kind).unwrap_or_default();
        let question = match kind {
            b"string" => command([&b"GET"[..], key]),
            b"hash" => command([&b"HGETALL"[..], key]),
            b"list" => command([&b"LRANGE"[..], key, b"0", b"-1"]),
            b"set" => command([&b"SMEMBERS"[..], key]),
            b"zset" => command([&b"ZRANGE"[..], key, b"0", b"-1", b"WITHSCORES"]),
            b"stream" => command([&b"XRANGE"[..], key, b"-", b"+"]),
            _ => return Ok(None),
        };
        let found = match_of(&self.keyspace, &holding.location);
        let answers = pipeline(&*keys, &[question]).await?;
        let Some(answer) = answers.first().filter(|it| !matches!(it, Reply::Null)) else {
            return Ok(None);
        };
        let value = match kind {
            b"string" => content(found.as_ref(), bytes_of(answer).unwrap_or_default()),
            b"hash" => fields(answer),
            b"zset" => scores(answer),
            b"stream" => entries(answer, found.as_ref(), holding, subject),
            _ => list(answer),
        };
        Ok(Some(match (&found, holding.is_shared && kind == b"string") {
            (Some(found), true) => only_theirs(found, value, subject),
            _ => value,
        }))
    }

    async fn value_of_member(
        &self,
        db: u8,
        key: &[u8],
        member: &[u8],
        holding: &PersonalDataLocation,
    ) -> Result<Option<Json>> {
        let found = match_of(&self.keyspace, &holding.location);
        let question = match found.map(|found| found.pattern.value_type) {
            Some(ValueType::Zset) => command([&b"ZSCORE"[..], key, member]),
            Some(ValueType::Hash) => command([&b"HGET"[..], key, member]),
            _ => return Ok(Some(json!({ "member": text(member) }))),
        };
        let answers = pipeline(&*self.keys_of(db)?, &[question]).await?;
        Ok(answers.first().filter(|it| !matches!(it, Reply::Null)).map(|answer| {
            let name = if matches!(answer, Reply::Double(_)) { "score" } else { "value" };
            json!({ "member": text(member), name: reply(answer) })
        }))
    }

    async fn value_of_item(
        &self,
        table: &str,
        key: Item,
        ttl: Option<&str>,
        holding: &PersonalDataLocation,
        subject: &Subject,
    ) -> Result<Option<Json>> {
        let names: Vec<String> = key.iter().map(|(name, _)| name.to_owned()).collect();
        let request =
            GetItem { table: table.to_owned(), key, consistent_read: true, ..GetItem::default() };
        let Some(item) = self.items.get(&request).await?.item else { return Ok(None) };
        let mut item = item.decode().map_err(kstone_ports::Error::from)?;
        // The key and its end are shown beside the value.
        names.iter().map(String::as_str).chain(ttl).for_each(|name| drop(item.remove(name)));
        let found = match_of(&self.keyspace, &holding.location);
        // Beside the whole value only what tells writers apart: that is not about the person.
        let beside = ["etag", "version"].iter().filter(|name| item.get(name).is_some()).count();
        let whole = match item.get(shared::VALUE).filter(|_| item.len() == 1 + beside) {
            Some(Value::S(value)) => Some(content(found.as_ref(), value.as_bytes())),
            Some(Value::B(value)) => Some(content(found.as_ref(), value)),
            Some(other) => Some(other.to_json()),
            None => None,
        };
        let value = whole.unwrap_or_else(|| item.to_json());
        Ok(Some(match (&found, holding.is_shared) {
            (Some(found), true) => only_theirs(found, value, subject),
            _ => value,
        }))
    }
}

/// The part of a shared value that may be exported: that it names this person.
fn only_theirs(found: &Match<'_, '_>, value: Json, subject: &Subject) -> Json {
    let SubjectSource::Field(field) = &found.pattern.subject else { return value };
    let is_theirs =
        |id: &&Json| id.as_str().is_some_and(|id| subject.covers(&shared::person(found, id)));
    let named = value.get(field).and_then(Json::as_array);
    let theirs: Vec<&Json> = named.into_iter().flatten().filter(is_theirs).collect();
    json!({ field.as_str(): theirs })
}

/// The content of a string, or of an item that holds one: JSON as JSON.
fn content(found: Option<&Match<'_, '_>>, bytes: &[u8]) -> Json {
    use ValueType::{Counter, Json as JsonText};
    let is_json = found.is_some_and(|it| matches!(it.pattern.value_type, JsonText | Counter));
    let parsed = is_json.then(|| serde_json::from_slice(bytes).ok()).flatten();
    parsed.unwrap_or_else(|| text(bytes))
}

/// Bytes as text where they are text.
fn text(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// A moment as ISO 8601 has it; the bare number where there is no such date.
fn time(ms: u64) -> Json {
    match Date::from_epoch_ms(ms) {
        Err(_) => ms.into(),
        Ok(date) => {
            let (seconds, ms) = (ms / 1000 % 86_400, ms % 1000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            format!("{date}T{hours:02}:{minutes:02}:{:02}.{ms:03}Z", seconds % 60).into()
        }
    }
}

fn reply(answer: &Reply) -> Json {
    match answer {
        Reply::Integer(number) => (*number).into(),
        Reply::Double(number) => (*number).into(),
        Reply::Boolean(truth) => (*truth).into(),
        Reply::Array(members) | Reply::Set(members) | Reply::Push(members) => {
            members.iter().map(reply).collect()
        }
        other => bytes_of(other).map_or(Json::Null, text),
    }
}

fn list(answer: &Reply) -> Json {
    match reply(answer) {
        Json::Array(members) => Json::Array(members),
        _ => Json::Array(Vec::new()),
    }
}

/// Pairs of names and values, whichever way the port says them.
fn pairs(answer: &Reply) -> Vec<(&Reply, &Reply)> {
    match answer {
        Reply::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        Reply::Array(flat) | Reply::Set(flat) => match flat.first() {
            Some(Reply::Array(_)) => flat.iter().filter_map(pair).collect(),
            _ => flat.chunks_exact(2).filter_map(|two| Some((two.first()?, two.get(1)?))).collect(),
        },
        _ => Vec::new(),
    }
}

fn pair(answer: &Reply) -> Option<(&Reply, &Reply)> {
    match answer {
        Reply::Array(two) => Some((two.first()?, two.get(1)?)),
        _ => None,
    }
}

fn fields(answer: &Reply) -> Json {
    let is_text = |reply: &Reply| bytes_of(reply).is_some_and(|it| std::str::from_utf8(it).is_ok());
    let pairs = pairs(answer);
    if pairs.iter().all(|(name, _)| is_text(name)) {
        let named = pairs.into_iter().map(|(name, value)| {
            let name = String::from_utf8_lossy(bytes_of(name).unwrap_or_default()).into_owned();
            (name, reply(value))
        });
        return Json::Object(named.collect());
    }
    pairs
        .into_iter()
        .map(|(name, value)| json!({ "field": reply(name), "value": reply(value) }))
        .collect()
}

fn scores(answer: &Reply) -> Json {
    pairs(answer)
        .into_iter()
        .map(|(member, score)| json!({ "member": reply(member), "score": reply(score) }))
        .collect()
}

/// The entries of a stream; of one that several persons share, those that name this one.
fn entries(
    answer: &Reply,
    found: Option<&Match<'_, '_>>,
    holding: &PersonalDataLocation,
    subject: &Subject,
) -> Json {
    let field = found.and_then(|found| match &found.pattern.subject {
        SubjectSource::Field(field) if holding.is_shared => Some((found, field)),
        _ => None,
    });
    let is_theirs = |fields: &[&[u8]]| {
        field.is_none_or(|(found, field)| {
            let mut ids = shared::values_of(fields, field);
            ids.any(|id| Named::single(found, id).persons.iter().any(|it| subject.covers(it)))
        })
    };
    shared::entries_of(answer)
        .filter(|(_, fields)| is_theirs(fields))
        .map(|(id, fields)| {
            let pairs = fields.chunks_exact(2).filter_map(|pair| {
                let name = String::from_utf8_lossy(pair.first()?).into_owned();
                Some((name, text(pair.get(1)?)))
            });
            json!({ "id": text(id), "fields": Json::Object(pairs.collect()) })
        })
        .collect()
}
