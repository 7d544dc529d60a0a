//! KeystoneDB, with the options that it opens with by itself.

use super::{Durability, Embedded, Shape};
use crate::Outcome;
use crate::items::posts::{self, Post, QUERY_CONDITION, TABLE};
use kstone::ops::{BatchWrite, GetItem, KeyCondition, Placeholders, PutItem, Query, WriteRequest};
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Item, ItemBytes, Value, ValueRef};
use serde_json::json;
use std::path::Path;

/// An open database.
pub struct Keystone {
    db: Database,
}

/// The most that one batch takes.
const BATCH_LEN: usize = 25;

fn key(id: u32) -> Item {
    Item::new().with("pk", posts::pk(id)).with("sk", posts::sk(id))
}

/// The item of a post.
pub fn item(post: &Post) -> Item {
    key(post.id)
        .with("title", post.title())
        .with("views", i64::from(post.views()))
        .with("published", post.published())
        .with("text", post.text())
}

/// The table of the posts, without indexes.
pub fn table() -> TableSpec {
    TableSpec {
        name: TABLE.into(),
        key: KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk")),
        ..TableSpec::default()
    }
}

/// Lends the text; when everything is wanted, from an item decoded to its last attribute.
fn read_text<R>(item: &ItemBytes, shape: Shape, read: impl FnOnce(&str) -> R) -> Outcome<R> {
    let missing = "an item without its text";
    match shape {
        Shape::OneAttribute => match item.as_ref().get("text") {
            Some(ValueRef::S(text)) => Ok(read(text)),
            _ => Err(missing.into()),
        },
        Shape::Decoded => match item.decode()?.get("text") {
            Some(Value::S(text)) => Ok(read(text)),
            _ => Err(missing.into()),
        },
    }
}

impl Embedded for Keystone {
    type Get = GetItem;
    type Put = PutItem;
    type Query = Query;

    fn open(dir: Option<&Path>, durability: Durability) -> Outcome<Self> {
        let db = match dir {
            Some(dir) => Database::open(dir)?,
            None => Database::memory()?,
        };
        let db = db.with_durability(match durability {
            Durability::Interval => kstone::Durability::Interval,
            Durability::Sync => kstone::Durability::Sync,
        });
        if db.describe_table(TABLE).is_err() {
            db.create_table(&table())?;
        }
        Ok(Keystone { db })
    }

    fn prepare_get(id: u32) -> GetItem {
        GetItem { table: TABLE.into(), key: key(id), ..GetItem::default() }
    }

    fn prepare_put(post: &Post) -> PutItem {
        PutItem { table: TABLE.into(), item: item(post), ..PutItem::default() }
    }

    fn prepare_query(id: u32) -> Query {
        let values = vec![
            (":user".into(), posts::pk(id).into()),
            (":day".into(), posts::sk_prefix(id).into()),
        ];
        Query {
            table: TABLE.into(),
            key_condition: Some(KeyCondition::Text(QUERY_CONDITION.into())),
            placeholders: Placeholders { names: None, values: Some(values) },
            ..Query::default()
        }
    }

    fn put(&self, put: PutItem) -> Outcome<()> {
        self.db.put_item(&put).wait()?;
        Ok(())
    }

    fn load(&self, posts: &[Post]) -> Outcome<()> {
        for chunk in posts.chunks(BATCH_LEN) {
            let puts = chunk.iter().map(|post| WriteRequest::Put(item(post))).collect();
            let batch = BatchWrite { tables: vec![(TABLE.into(), puts)], ..BatchWrite::default() };
            self.db.batch_write(&batch).wait()?;
        }
        Ok(())
    }

    fn get<R>(
        &self,
        get: GetItem,
        shape: Shape,
        read: impl FnOnce(&str) -> R,
    ) -> Outcome<Option<R>> {
        let found = self.db.get_item(&get).wait()?.item;
        found.map(|item| read_text(&item, shape, read)).transpose()
    }

    fn query(&self, query: Query, shape: Shape, mut visit: impl FnMut(&str)) -> Outcome<()> {
        let found = self.db.query_items(&query).wait()?.items.unwrap_or_default();
        found.iter().try_for_each(|item| read_text(item, shape, &mut visit))
    }

    fn item(&self, id: u32) -> Outcome<Option<serde_json::Value>> {
        let Some(found) = self.db.get_item(&Self::prepare_get(id)).wait()?.item else {
            return Ok(None);
        };
        let to_json = |(name, value): (&str, &Value)| {
            let value = match value {
                Value::S(text) => json!({ "S": text }),
                Value::N(number) => json!({ "N": number.to_string() }),
                Value::Bool(truth) => json!({ "BOOL": truth }),
                other => return Err(format!("a post has no {other:?}").into()),
            };
            Ok((name.to_owned(), value))
        };
        found.decode()?.iter().map(to_json).collect::<Outcome<_>>().map(Some)
    }
}
