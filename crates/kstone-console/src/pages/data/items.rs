//! `/data/tables/{table}`: items by the beginning of their keys, and one item.

use axum::extract::{Path, Query as Asked, State};
use kstone_keyspace::{ItemKeyParts, Subjects};
use kstone_ports::items::{
    Condition, GetItem, KeyCondition, Placeholders, Query, QueryOutput, Scan,
};
use kstone_ports::items::{KeyAttribute, KeyType, TableDescription};
use kstone_ports::value::{Item, Value};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value as Json;

use super::cursor;
use crate::pages::error::{PageError, PageResult};
use crate::pages::figures::{ago, bytes, counted};
use crate::pages::layout::{Column, Layout, Section, empty_state, page, table};
use crate::pages::{Pages, json, links};

/// How many items a page shows.
const PAGE: usize = 50;
/// How many pages of the store are looked at for one of ours: a rare prefix in a large table is
/// searched for in several steps, each of which somebody asked for.
const STORE_PAGES_MAX: usize = 8;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ItemSearch {
    #[serde(default)]
    pk: String,
    #[serde(default)]
    sk: String,
    #[serde(default)]
    after: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ItemQuery {
    pk: String,
    sk: Option<String>,
}

/// What was found, and where to go on.
#[derive(Default)]
struct FoundItems {
    items: Vec<Item>,
    next: Option<Item>,
}

/// `/data/tables/{table}`
pub(crate) async fn list(
    pages: State<Pages>,
    Path(name): Path<String>,
    Asked(search): Asked<ItemSearch>,
) -> PageResult {
    let description = pages.console.items.describe(&name).await?;
    let found = look_for(&pages, &description, &search).await?;
    let is_begin = search.after.is_empty();
    let content = html! {
        h1 { (name) }
        p.faint { (counted(description.items, "item", "items")) " when last counted, " (bytes(description.bytes)) }
        form.row method="get" role="search" {
            div.field.grow {
                label for="pk" { (hash(&description).map_or("Key", |it| &it.name)) " "
                    span.hint { "whole, or its beginning" } }
                input #pk name="pk" value=(search.pk) autocomplete="off" spellcheck="false";
            }
            @if let Some(range) = description.spec.key.range.first() {
                div.field.grow {
                    label for="sk" { (range.name) " " span.hint { "its beginning" } }
                    input #sk name="sk" value=(search.sk) autocomplete="off" spellcheck="false";
                }
            }
            button type="submit" { "Find" }
        }
        @if found.items.is_empty() && found.next.is_none() {
            (empty_state("Nothing found.", &html! {
                p { @if search.pk.is_empty() && search.sk.is_empty() { "The table has no items." }
                    @else { "No item begins like this." } }
            }))
        } @else {
            @if !found.items.is_empty() { (rows(&description, &found.items)) }
            @else { p { "Nothing yet: there is more to look through." } }
            (further(&name, &search, found.next.as_ref(), is_begin))
        }
    };
    Ok(page(&Layout::below(&name, Section::Data, &[]), &content))
}

fn further(table: &str, search: &ItemSearch, next: Option<&Item>, is_begin: bool) -> Markup {
    let here = format!(
        "{}?pk={}&sk={}",
        links::table(table),
        links::part(&search.pk),
        links::part(&search.sk)
    );
    html! {
        div.actions {
            @if !is_begin { a.button.quiet href=(here) { "From the beginning" } }
            @if let Some(next) = next {
                a.button.quiet rel="next" href={ (here) "&after=" (cursor::of_key(next)) } { "Further" }
            }
        }
    }
}

fn rows(description: &TableDescription, items: &[Item]) -> Markup {
    let key = &description.spec.key;
    let names: Vec<&str> = key.hash.iter().chain(&key.range).map(|it| it.name.as_str()).collect();
    let columns: Vec<Column<'_>> =
        names.iter().chain(&["Item"]).map(|name| Column::Text(name)).collect();
    let rows = html! {
        @for item in items {
            tr {
                @for (nth, name) in names.iter().enumerate() {
                    @let text = item.get(name).map(|it| links::text_of(&key_bytes(it))).unwrap_or_default();
                    @if nth == 0 {
                        th.key scope="row" { a.mono href=(address(description, item)) { (text) } }
                    } @else { td.key { a.mono href=(address(description, item)) { (text) } } }
                }
                td.cut { (preview(item, &names)) }
            }
        }
    };
    table("Items", &columns, &rows)
}

/// What an item holds besides its key, in a line.
fn preview(item: &Item, key: &[&str]) -> String {
    let rest: Vec<String> = item
        .iter()
        .filter(|(name, _)| !key.contains(name))
        .map(|(name, value)| match value {
            Value::S(text) if name == "value" => text.clone(),
            value => format!("{name}: {}", value.to_json()),
        })
        .collect();
    json::line(&rest.join(", "), 120)
}

fn address(description: &TableDescription, item: &Item) -> String {
    let of = |attribute: Option<&KeyAttribute>| {
        attribute.and_then(|it| item.get(&it.name)).map(key_bytes)
    };
    let key = &description.spec.key;
    let pk = of(key.hash.first()).unwrap_or_default();
    links::item(&description.spec.name, &pk, of(key.range.first()).as_deref())
}

fn hash(description: &TableDescription) -> Option<&KeyAttribute> {
    description.spec.key.hash.first()
}

fn key_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::S(text) => text.clone().into_bytes(),
        Value::B(bytes) => bytes.to_vec(),
        value => value.to_json().to_string().into_bytes(),
    }
}

/// What somebody typed as the value of a key's attribute.
fn value_of(attribute: &KeyAttribute, text: &str) -> PageResult<Value> {
    Ok(match attribute.kind {
        KeyType::S => Value::S(String::from_utf8_lossy(&links::bytes_of(text)).into_owned()),
        KeyType::B => Value::B(links::bytes_of(text).into()),
        KeyType::N => Value::N(text.trim().parse().map_err(|_| {
            PageError::Refused(format!("{} is a number, and {text} is none.", attribute.name))
        })?),
    })
}

/// A whole partition if the key is one, else every item whose key begins so.
async fn look_for(
    pages: &Pages,
    description: &TableDescription,
    search: &ItemSearch,
) -> PageResult<FoundItems> {
    let start = match search.after.as_str() {
        "" => None,
        after => Some(cursor::to_key(after).ok_or_else(|| {
            PageError::Refused("That place in the list is not known: begin again.".to_owned())
        })?),
    };
    let Some(hash) = hash(description) else { return Ok(FoundItems::default()) };
    if !search.pk.is_empty() {
        let pk = value_of(hash, &search.pk)?;
        let came_from = start.as_ref().and_then(|key| key.get(&hash.name));
        // Who goes on goes on in the way that was begun.
        if came_from.is_none_or(|it| *it == pk) {
            let is_further = start.is_some() || hash.kind == KeyType::N;
            let found = partition(pages, description, hash, search, start.clone()).await?;
            if is_further || !found.items.is_empty() || found.next.is_some() {
                return Ok(found);
            }
        }
    }
    everywhere(pages, description, hash, search, start).await
}

async fn partition(
    pages: &Pages,
    description: &TableDescription,
    hash: &KeyAttribute,
    search: &ItemSearch,
    start: Option<Item>,
) -> PageResult<FoundItems> {
    let mut condition = "#pk = :pk".to_owned();
    let mut names = vec![("#pk".to_owned(), hash.name.clone())];
    let mut values = vec![(":pk".to_owned(), value_of(hash, &search.pk)?)];
    if let (Some(range), false) = (description.spec.key.range.first(), search.sk.is_empty()) {
        condition.push_str(match range.kind {
            KeyType::N => " AND #sk = :sk",
            _ => " AND begins_with(#sk, :sk)",
        });
        names.push(("#sk".to_owned(), range.name.clone()));
        values.push((":sk".to_owned(), value_of(range, &search.sk)?));
    }
    let query = Query {
        table: description.spec.name.clone(),
        key_condition: Some(KeyCondition::Text(condition)),
        placeholders: Placeholders { names: Some(names), values: Some(values) },
        limit: Some(PAGE as u32),
        start,
        consistent_read: true,
        ..Query::default()
    };
    let answer = pages.console.items.query(&query).await?;
    Ok(FoundItems { items: decoded(&answer)?, next: answer.next })
}

async fn everywhere(
    pages: &Pages,
    description: &TableDescription,
    hash: &KeyAttribute,
    search: &ItemSearch,
    mut start: Option<Item>,
) -> PageResult<FoundItems> {
    let mut conditions = Vec::new();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let attributes = [Some(hash), description.spec.key.range.first()];
    for (attribute, text, n) in [(attributes[0], &search.pk, 0), (attributes[1], &search.sk, 1)] {
        let Some(attribute) = attribute.filter(|_| !text.is_empty()) else { continue };
        conditions.push(match attribute.kind {
            KeyType::N => format!("#n{n} = :v{n}"),
            _ => format!("begins_with(#n{n}, :v{n})"),
        });
        names.push((format!("#n{n}"), attribute.name.clone()));
        values.push((format!(":v{n}"), value_of(attribute, text)?));
    }
    let has_filter = !conditions.is_empty();
    let mut found = FoundItems::default();
    for _ in 0..STORE_PAGES_MAX {
        let scan = Scan {
            table: description.spec.name.clone(),
            filter: has_filter.then(|| Condition::Text(conditions.join(" AND "))),
            placeholders: Placeholders {
                names: has_filter.then(|| names.clone()),
                values: has_filter.then(|| values.clone()),
            },
            // With a filter most of what is looked at may not be shown.
            limit: Some(if has_filter { 20 * PAGE as u32 } else { PAGE as u32 }),
            start: start.take(),
            consistent_read: true,
            ..Scan::default()
        };
        let answer = pages.console.items.scan(&scan).await?;
        found.items.extend(decoded(&answer)?);
        found.next = answer.next;
        if found.items.len() >= PAGE || found.next.is_none() {
            break;
        }
        start.clone_from(&found.next);
    }
    if found.items.len() > PAGE {
        found.items.truncate(PAGE);
        let key = &description.spec.key;
        let last = found.items.last();
        found.next = last.map(|item| {
            key.hash.iter().chain(&key.range).fold(Item::new(), |key, attribute| {
                match item.get(&attribute.name) {
                    Some(value) => key.with(attribute.name.clone(), value.clone()),
                    None => key,
                }
            })
        });
    }
    Ok(found)
}

fn decoded(answer: &QueryOutput) -> PageResult<Vec<Item>> {
    let items = answer.items.iter().flatten();
    items.map(|item| item.decode().map_err(|error| PageError::Failed(error.to_string()))).collect()
}

/// `/data/tables/{table}/item`
pub(crate) async fn one(
    pages: State<Pages>,
    Path(name): Path<String>,
    Asked(named): Asked<ItemQuery>,
) -> PageResult {
    let description = pages.console.items.describe(&name).await?;
    let schema = &description.spec.key;
    let mut key = Item::new();
    for (attribute, text) in
        [(schema.hash.first(), Some(&named.pk)), (schema.range.first(), named.sk.as_ref())]
    {
        if let (Some(attribute), Some(text)) = (attribute, text) {
            key.insert(attribute.name.clone(), value_of(attribute, text)?);
        }
    }
    let get = GetItem { table: name.clone(), key, consistent_read: true, ..GetItem::default() };
    let stored = pages.console.items.get(&get).await?.item;
    let not_found =
        || PageError::NotFound("There is no such item: it may have expired.".to_owned());
    let item = stored.ok_or_else(not_found)?;
    let item = item.decode().map_err(|error| PageError::Failed(error.to_string()))?;
    let title = match &named.sk {
        Some(sk) => format!("{} · {sk}", named.pk),
        None => named.pk.clone(),
    };
    let trail = [(links::table(&name), name.clone())];
    let content = html! {
        h1.mono { (title) }
        (known(&pages, &name, &named, &item))
        section { h2 { "Item" } (json::pretty(&readable(&item))) }
    };
    Ok(page(&Layout::below(&title, Section::Data, &trail), &content))
}

/// The item as JSON. Text under `value` that is JSON itself is shown as what it says.
fn readable(item: &Item) -> Json {
    let mut json = item.to_json();
    if let Some(value) = json.get_mut("value")
        && let Some(inner) = value.as_str().and_then(|text| serde_json::from_str::<Json>(text).ok())
        && (inner.is_object() || inner.is_array())
    {
        *value = inner;
    }
    json
}

/// What is known of the item beside what it holds.
fn known(pages: &Pages, table: &str, named: &ItemQuery, item: &Item) -> Markup {
    let (pk, sk) = (links::bytes_of(&named.pk), links::bytes_of(named.sk.as_deref().unwrap_or("")));
    let keyspace = pages.console.governor.as_ref().map(|it| it.keyspace());
    let found = keyspace.and_then(|it| it.find_item(table, ItemKeyParts { pk: &pk, sk: &sk }));
    let ends_ms = item.get("ttl").and_then(Value::as_number).and_then(|it| it.to_u64());
    let ends_ms = ends_ms.map(|seconds| seconds.saturating_mul(1000));
    html! {
        dl.facts {
            @if let Some(found) = &found {
                dt { "Pattern" }
                dd { a href=(links::pattern(&found.pattern.full_name())) { (found.pattern.full_name()) } }
                @if let Some(Subjects::These(persons)) = found.subjects_by_key() {
                    @for person in persons {
                        dt { "About" }
                        dd { a href=(links::person(&person.id, person.tenant.as_deref())) { (person) } }
                    }
                }
            }
            dt { "Size" } dd { (bytes(item.size() as u64)) }
            @if let Some(ms) = ends_ms { dt { "Ends" } dd { (ago(ms, pages.console.clock.now_ms())) } }
        }
    }
}
