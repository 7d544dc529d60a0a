//! `/data/keys`: keys of Redis by their beginning, and one key.

use std::sync::Arc;

use axum::extract::{Query, State};
use bytes::Bytes;
use kstone_keyspace::{KeyStore, Subjects};
use kstone_ports::keys::Value as Reply;
use kstone_ports::keys::{Keys, KeysPage, ScanKeys};
use maud::{Markup, html};
use serde::Deserialize;

use super::cursor;
use crate::pages::error::{PageError, PageResult};
use crate::pages::figures::{count, counted, span};
use crate::pages::layout::Column::{Number, Text};
use crate::pages::layout::{Layout, Section, empty_state, page, table};
use crate::pages::{Pages, json, links};

/// How many keys a page shows.
const PAGE: usize = 50;
/// How often the store is asked for one page: a rare prefix is searched for in several steps, each of
/// which somebody asked for.
const STORE_PAGES_MAX: usize = 20;
/// So many members of a collection are shown.
const MEMBERS_MAX: usize = 200;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct KeySearch {
    #[serde(default)]
    db: u8,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    after: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct KeyQuery {
    #[serde(default)]
    db: u8,
    key: String,
}

fn database(pages: &Pages, db: u8) -> PageResult<Arc<dyn Keys>> {
    let found = pages.console.keys.database(db);
    found.ok_or_else(|| PageError::NotFound(format!("There is no database {db}.")))
}

/// The form that finds keys.
pub(crate) fn search(db: u8, prefix: &str) -> Markup {
    html! {
        form.row method="get" action="/data/keys" role="search" {
            div.field {
                label for="db" { "Database" }
                input #db type="number" name="db" min="0" max="15" value=(db);
            }
            div.field.grow {
                label for="prefix" { "Key " span.hint { "its beginning" } }
                input #prefix name="prefix" value=(prefix) autocomplete="off" spellcheck="false";
            }
            button type="submit" { "Find" }
        }
    }
}

/// `/data/keys`
pub(crate) async fn list(pages: State<Pages>, Query(asked): Query<KeySearch>) -> PageResult {
    let keys = database(&pages, asked.db)?;
    let found = find(&*keys, &asked).await?;
    let kinds = kinds(&*keys, &found.keys).await?;
    let here = links::keys(asked.db, &asked.prefix);
    let content = html! {
        h1 { "Redis keys" }
        (search(asked.db, &asked.prefix))
        @if found.keys.is_empty() && found.next.is_none() {
            (empty_state("No key found.", &html! {
                p { "There is none in database " (asked.db)
                    @if !asked.prefix.is_empty() { " that begins with " code { (asked.prefix) } } "." }
            }))
        } @else {
            @if found.keys.is_empty() { p { "Nothing yet: there is more to look through." } }
            @else { (rows(asked.db, &found.keys, &kinds)) }
            div.actions {
                @if !asked.after.is_empty() { a.button.quiet href=(here) { "From the beginning" } }
                @if let Some(next) = &found.next {
                    a.button.quiet rel="next" href={ (here) "&after=" (cursor::of_bytes(next)) } { "Further" }
                }
            }
        }
    };
    Ok(page(&Layout::below("Redis keys", Section::Data, &[]), &content))
}

async fn find(keys: &dyn Keys, asked: &KeySearch) -> PageResult<KeysPage> {
    let mut request = ScanKeys { count: PAGE as u32, ..ScanKeys::default() };
    if !asked.prefix.is_empty() {
        request.pattern = Some(glob(&links::bytes_of(&asked.prefix)));
        request.count = 1000;
    }
    if !asked.after.is_empty() {
        let after = cursor::to_bytes(&asked.after).ok_or_else(|| {
            PageError::Refused("That place in the list is not known: begin again.".to_owned())
        })?;
        request.after = Some(after.into());
    }
    let mut found = KeysPage::default();
    for _ in 0..STORE_PAGES_MAX {
        let page = keys.scan(&request).await?;
        found.keys.extend(page.keys);
        found.next = page.next;
        if found.keys.len() >= PAGE || found.next.is_none() {
            break;
        }
        request.after.clone_from(&found.next);
    }
    Ok(found)
}

/// The pattern of `KEYS` for everything that begins so.
fn glob(prefix: &[u8]) -> Bytes {
    let mut pattern = Vec::with_capacity(prefix.len() + 1);
    for &byte in prefix {
        if b"*?[]^\\-".contains(&byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern.push(b'*');
    pattern.into()
}

/// The type and the time to live of each.
async fn kinds(keys: &dyn Keys, names: &[Bytes]) -> PageResult<Vec<(String, Option<u64>)>> {
    let commands: Vec<Vec<Bytes>> = names
        .iter()
        .flat_map(|name| [words(&["TYPE"], name, &[]), words(&["PTTL"], name, &[])])
        .collect();
    let replies = keys.pipeline(&commands).await?;
    let pair = |pair: &[kstone_ports::keys::Reply]| {
        let kind = match pair.first() {
            Some(Ok(Reply::Simple(kind))) => kind.clone(),
            _ => String::new(),
        };
        let left = match pair.get(1) {
            Some(Ok(Reply::Integer(ms))) => u64::try_from(*ms).ok(),
            _ => None,
        };
        (kind, left)
    };
    Ok(replies.chunks(2).map(pair).collect())
}

fn rows(db: u8, names: &[Bytes], kinds: &[(String, Option<u64>)]) -> Markup {
    let columns = [Text("Key"), Text("Type"), Text("Ends in")];
    let rows = html! {
        @for (name, (kind, left)) in names.iter().zip(kinds) {
            tr {
                th.key scope="row" { a.mono href=(links::key(db, name)) { (links::text_of(name)) } }
                td { (kind) }
                td { (left.map_or("never".to_owned(), span)) }
            }
        }
    };
    table("Keys", &columns, &rows)
}

fn words(before: &[&'static str], key: &[u8], after: &[&'static str]) -> Vec<Bytes> {
    let word = |word: &&'static str| Bytes::from_static(word.as_bytes());
    let mut words: Vec<Bytes> = before.iter().map(word).collect();
    words.push(Bytes::copy_from_slice(key));
    words.extend(after.iter().map(word));
    words
}

/// `/data/key`
pub(crate) async fn one(pages: State<Pages>, Query(named): Query<KeyQuery>) -> PageResult {
    let keys = database(&pages, named.db)?;
    let key = links::bytes_of(&named.key);
    let kinds = kinds(&*keys, &[Bytes::copy_from_slice(&key)]).await?;
    let Some((kind, left)) = kinds.into_iter().next().filter(|(kind, _)| kind != "none") else {
        return Err(PageError::NotFound("There is no such key: it may have expired.".to_owned()));
    };
    let content = content(&*keys, &kind, &key).await?;
    let name = links::text_of(&key);
    let trail = [("/data/keys".to_owned(), "Redis keys".to_owned())];
    let content = html! {
        h1.mono { (name) }
        dl.facts {
            dt { "Type" } dd { (kind) }
            dt { "Database" } dd { (named.db) }
            dt { "Ends" } dd { @match left { Some(ms) => { "in " (span(ms)) }, None => "never" } }
            (known(&pages, &key))
        }
        section { h2 { "Value" } (content) }
    };
    Ok(page(&Layout::below(&name, Section::Data, &trail), &content))
}

fn known(pages: &Pages, key: &[u8]) -> Markup {
    let keyspace = pages.console.governor.as_ref().map(|it| it.keyspace());
    let Some(found) = keyspace.and_then(|it| it.find(KeyStore::Redis, key)) else {
        return html! {};
    };
    let persons = match found.subjects_by_key() {
        Some(Subjects::These(persons)) => persons,
        _ => Vec::new(),
    };
    html! {
        dt { "Pattern" }
        dd { a href=(links::pattern(&found.pattern.full_name())) { (found.pattern.full_name()) } }
        @for person in persons {
            dt { "About" }
            dd { a href=(links::person(&person.id, person.tenant.as_deref())) { (person) } }
        }
    }
}

async fn content(keys: &dyn Keys, kind: &str, key: &[u8]) -> PageResult {
    let ask = |before: &'static [&'static str], after: &'static [&'static str]| {
        let command = words(before, key, after);
        async move { keys.command(&command).await }
    };
    Ok(match kind {
        "string" => {
            // Of a long one no more is read than is shown.
            let all = length(&ask(&["STRLEN"], &[]).await?);
            let value = bytes_of(&ask(&["GETRANGE"], &["0", "65535"]).await?);
            match all > json::SHOWN_BYTES_MAX as u64 {
                true => json::beginning(&value, all),
                false => json::bytes(&value),
            }
        }
        "hash" => {
            let all = length(&ask(&["HLEN"], &[]).await?);
            pairs("Field", "Value", &scanned(&ask(&["HSCAN"], &["0", "COUNT", "200"]).await?), all)
        }
        "zset" => {
            let all = length(&ask(&["ZCARD"], &[]).await?);
            pairs("Member", "Score", &ask(&["ZRANGE"], &["0", "199", "WITHSCORES"]).await?, all)
        }
        "set" => {
            let all = length(&ask(&["SCARD"], &[]).await?);
            elements(&scanned(&ask(&["SSCAN"], &["0", "COUNT", "200"]).await?), all)
        }
        "list" => {
            let all = length(&ask(&["LLEN"], &[]).await?);
            elements(&ask(&["LRANGE"], &["0", "199"]).await?, all)
        }
        "stream" => {
            let all = length(&ask(&["XLEN"], &[]).await?);
            entries(&ask(&["XREVRANGE"], &["+", "-", "COUNT", "200"]).await?, all)
        }
        kind => html! { p.faint { "A value of type " (kind) " cannot be shown." } },
    })
}

fn length(reply: &Reply) -> u64 {
    match reply {
        Reply::Integer(length) => u64::try_from(*length).unwrap_or(0),
        _ => 0,
    }
}

/// What a step of HSCAN or SSCAN found.
fn scanned(reply: &Reply) -> Reply {
    list_of(reply).get(1).cloned().unwrap_or(Reply::Null)
}

fn list_of(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(list) | Reply::Set(list) | Reply::Push(list) => list,
        _ => &[],
    }
}

fn bytes_of(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => bytes.clone(),
        Reply::Simple(text) | Reply::BigNumber(text) => text.clone().into_bytes(),
        Reply::Integer(number) => number.to_string().into_bytes(),
        Reply::Double(number) => kstone_redis::double_text(*number).into_bytes(),
        _ => Vec::new(),
    }
}

/// Pairs, however the protocol writes them.
fn pairs_of(reply: &Reply) -> Vec<(Vec<u8>, Vec<u8>)> {
    match reply {
        Reply::Map(pairs) => pairs.iter().map(|(a, b)| (bytes_of(a), bytes_of(b))).collect(),
        reply => {
            let list = list_of(reply);
            if list.iter().all(|it| list_of(it).len() == 2) {
                let pair = |it: &Reply| match list_of(it) {
                    [a, b] => (bytes_of(a), bytes_of(b)),
                    _ => Default::default(),
                };
                return list.iter().map(pair).collect();
            }
            let pair = |pair: &[Reply]| match pair {
                [a, b] => (bytes_of(a), bytes_of(b)),
                _ => Default::default(),
            };
            list.chunks(2).map(pair).collect()
        }
    }
}

fn pairs(left: &str, right: &str, reply: &Reply, all: u64) -> Markup {
    let pairs = pairs_of(reply);
    html! {
        (table(&format!("{left} and {right}"), &[Text(left), Text(right)], &html! {
            @for (name, value) in pairs.iter().take(MEMBERS_MAX) {
                tr {
                    th.key.mono scope="row" { (json::line_of_bytes(name, 500)) }
                    td.mono { (json::line_of_bytes(value, 2000)) }
                }
            }
        }))
        (shown(pairs.len().min(MEMBERS_MAX), all))
    }
}

fn elements(reply: &Reply, all: u64) -> Markup {
    let list = list_of(reply);
    html! {
        (table("Elements", &[Number("No."), Text("Element")], &html! {
            @for (nth, element) in list.iter().take(MEMBERS_MAX).enumerate() {
                tr {
                    th.number scope="row" { (nth) }
                    td.mono { (json::line_of_bytes(&bytes_of(element), 2000)) }
                }
            }
        }))
        (shown(list.len().min(MEMBERS_MAX), all))
    }
}

fn entries(reply: &Reply, all: u64) -> Markup {
    let list = list_of(reply);
    html! {
        (table("Entries, the newest first", &[Text("Entry"), Text("Fields")], &html! {
            @for entry in list {
                @let (id, fields) = match list_of(entry) { [id, fields] => (bytes_of(id), pairs_of(fields)), _ => Default::default() };
                tr {
                    th.mono scope="row" { (links::text_of(&id)) }
                    td.mono {
                        @for (name, value) in &fields {
                            div { (json::line_of_bytes(name, 500)) ": " (json::line_of_bytes(value, 500)) }
                        }
                    }
                }
            }
        }))
        (shown(list.len(), all))
    }
}

fn shown(shown: usize, all: u64) -> Markup {
    html! {
        p.faint {
            @if (shown as u64) < all { (count(shown as u64)) " of " (counted(all, "member", "members")) }
            @else { (counted(all, "member", "members")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_means_itself_in_a_pattern() {
        assert_eq!(glob(b"a*[b]"), Bytes::from_static(b"a\\*\\[b\\]*"));
    }

    #[test]
    fn pairs_are_read_from_every_form_of_reply() {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        let expected = vec![(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())];
        let flat = Reply::Array(vec![bulk("a"), bulk("1"), bulk("b"), bulk("2")]);
        let map = Reply::Map(vec![(bulk("a"), bulk("1")), (bulk("b"), Reply::Integer(2))]);
        let nested = Reply::Array(vec![
            Reply::Array(vec![bulk("a"), Reply::Double(1.0)]),
            Reply::Array(vec![bulk("b"), bulk("2")]),
        ]);
        for reply in [flat, map, nested] {
            assert_eq!(pairs_of(&reply), expected, "{reply:?}");
        }
        assert_eq!(pairs_of(&Reply::Array(Vec::new())), []);
    }
}
