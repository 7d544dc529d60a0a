//! Dynoxide: DynamoDB's data model on SQLite.
//!
//! It opens its file with a write-ahead log and SQLite's default `synchronous = FULL`: every put is
//! synced before it returns. The only other setting it offers is the one that its bulk loading
//! leaves behind, `NORMAL`: the log is synced when it is copied back into the file, and a loss of
//! power takes the puts since then. That is the nearest it has to our `Interval`.

use super::{Durability, Embedded, Shape};
use crate::Outcome;
use crate::items::posts::{self, Post, QUERY_CONDITION, TABLE};
use dynoxide::Database;
use dynoxide::actions::batch_write_item::{BatchWriteItemRequest, PutRequest, WriteRequest};
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::actions::put_item::PutItemRequest;
use dynoxide::actions::query::QueryRequest;
use dynoxide::types::AttributeValue;
use std::collections::HashMap;
use std::path::Path;

/// An open database; `SYNCED` as it opens by itself, or else as after its bulk loading.
pub struct Dynoxide<const SYNCED: bool> {
    db: Database,
}

/// The most that one BatchWriteItem takes.
const BATCH_LEN: usize = 25;

fn string(text: String) -> AttributeValue {
    AttributeValue::S(text)
}

fn key(id: u32) -> HashMap<String, AttributeValue> {
    [("pk".into(), string(posts::pk(id))), ("sk".into(), string(posts::sk(id)))].into()
}

fn item(post: &Post) -> HashMap<String, AttributeValue> {
    let mut item = key(post.id);
    item.insert("title".into(), string(post.title()));
    item.insert("views".into(), AttributeValue::N(post.views().to_string()));
    item.insert("published".into(), AttributeValue::BOOL(post.published()));
    item.insert("text".into(), string(post.text()));
    item
}

fn text_of(item: &HashMap<String, AttributeValue>) -> Outcome<&str> {
    match item.get("text") {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err("an item without its text".into()),
    }
}

/// Opens or makes the database that a run or a server uses.
pub fn open(dir: Option<&Path>) -> Outcome<Database> {
    let Some(dir) = dir else { return Ok(Database::memory()?) };
    let path = dir.join("dynoxide.db");
    Ok(Database::new(path.to_str().ok_or("a path that is not text")?)?)
}

impl<const SYNCED: bool> Embedded for Dynoxide<SYNCED> {
    type Get = GetItemRequest;
    type Put = PutItemRequest;
    type Query = QueryRequest;

    fn open(dir: Option<&Path>, _durability: Durability) -> Outcome<Self> {
        let db = open(dir)?;
        if !SYNCED {
            db.enable_bulk_loading()?;
            db.disable_bulk_loading()?;
        }
        if db.table_count()? == 0 {
            db.create_table(serde_json::from_value(posts::create_table_json())?)?;
        }
        Ok(Dynoxide { db })
    }

    fn prepare_get(id: u32) -> GetItemRequest {
        GetItemRequest { table_name: TABLE.into(), key: key(id), ..GetItemRequest::default() }
    }

    fn prepare_put(post: &Post) -> PutItemRequest {
        PutItemRequest { table_name: TABLE.into(), item: item(post), ..PutItemRequest::default() }
    }

    fn prepare_query(id: u32) -> QueryRequest {
        let values = [
            (":user".into(), string(posts::pk(id))),
            (":day".into(), string(posts::sk_prefix(id))),
        ];
        QueryRequest {
            table_name: TABLE.into(),
            key_condition_expression: Some(QUERY_CONDITION.into()),
            expression_attribute_values: Some(values.into()),
            scan_index_forward: true,
            ..QueryRequest::default()
        }
    }

    fn put(&self, put: PutItemRequest) -> Outcome<()> {
        self.db.put_item(put)?;
        Ok(())
    }

    fn load(&self, posts: &[Post]) -> Outcome<()> {
        for chunk in posts.chunks(BATCH_LEN) {
            let puts = chunk.iter().map(|post| WriteRequest {
                put_request: Some(PutRequest { item: item(post) }),
                delete_request: None,
            });
            let answer = self.db.batch_write_item(BatchWriteItemRequest {
                request_items: [(TABLE.to_owned(), puts.collect())].into(),
                ..BatchWriteItemRequest::default()
            })?;
            if !answer.unprocessed_items.is_empty() {
                return Err("a batch was not written whole".into());
            }
        }
        Ok(())
    }

    fn get<R>(
        &self,
        get: GetItemRequest,
        _shape: Shape,
        read: impl FnOnce(&str) -> R,
    ) -> Outcome<Option<R>> {
        let found = self.db.get_item(get)?.item;
        found.map(|item| Ok(read(text_of(&item)?))).transpose()
    }

    fn query(
        &self,
        query: QueryRequest,
        _shape: Shape,
        mut visit: impl FnMut(&str),
    ) -> Outcome<()> {
        for item in self.db.query(query)?.items.unwrap_or_default() {
            visit(text_of(&item)?);
        }
        Ok(())
    }

    fn item(&self, id: u32) -> Outcome<Option<serde_json::Value>> {
        let found = self.db.get_item(Self::prepare_get(id))?.item;
        Ok(found.map(|item| serde_json::to_value(&item)).transpose()?)
    }
}
