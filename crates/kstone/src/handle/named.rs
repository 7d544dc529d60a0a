//! Handles to named tables: the common requests in one line each. What they do not offer is in
//! [`ops`](crate::ops).

use crate::database::Database;
use crate::error::Result;
use crate::ops::{
    Condition, DeleteItem, GetItem, KeyCondition, Placeholders, PutItem, Query, QueryOutput,
    ReturnValues, Scan, Update, UpdateItem,
};
use crate::value::{Item, Value};

/// A table by its name. Made by [`Database::table`]; holds nothing but the name.
///
/// ```
/// use kstone::table::{KeyAttribute, KeySchema, TableSpec};
/// use kstone::{Database, Item};
///
/// let db = Database::memory()?;
/// db.create_table(&TableSpec {
///     name: "orders".into(),
///     key: KeySchema::hash_range(KeyAttribute::string("customer"), KeyAttribute::string("at")),
///     ..TableSpec::default()
/// })?;
/// let orders = db.table("orders");
/// orders.put(Item::new().with("customer", "c1").with("at", "2026-01-14").with("amount", 20))?;
/// let key = Item::new().with("customer", "c1").with("at", "2026-01-14");
/// orders.update(key.clone(), "SET amount = amount + :more", [(":more", 5)])?;
/// assert_eq!(orders.get(key)?.unwrap().get("amount"), Some(&25.into()));
/// let january = orders.query(
///     "customer = :c AND begins_with(#at, :month)",
///     [("#at", "at"), (":c", "c1"), (":month", "2026-01")],
/// )?;
/// assert_eq!(january.len(), 1);
/// # Ok::<(), kstone::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    db: Database,
    name: String,
}

impl Database {
    /// A handle to the table with this name. Whether there is one shows when it is used.
    pub fn table(&self, name: impl Into<String>) -> Table {
        Table { db: self.clone(), name: name.into() }
    }
}

impl Table {
    /// Writes an item, in place of the one with the same key.
    pub fn put(&self, item: Item) -> Result<()> {
        let request = PutItem { table: self.name.clone(), item, ..PutItem::default() };
        self.db.put_item(&request).wait().map(drop)
    }

    /// Writes an item if the one in its place meets a condition; see [`placeholders`](crate::placeholders) for what
    /// the condition's `#names` and `:values` stand for.
    pub fn put_if<V: Into<Value>>(
        &self,
        item: Item,
        condition: &str,
        placeholders: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Result<()> {
        let request = PutItem {
            table: self.name.clone(),
            item,
            condition: Some(Condition::Text(condition.to_owned())),
            placeholders: kstone_ports::items::placeholders(placeholders),
            ..PutItem::default()
        };
        self.db.put_item(&request).wait().map(drop)
    }

    /// The item with this key.
    pub fn get(&self, key: Item) -> Result<Option<Item>> {
        let request = GetItem { table: self.name.clone(), key, ..GetItem::default() };
        self.db.get_item(&request).wait()?.item.map(|item| Ok(item.decode()?)).transpose()
    }

    /// Changes the item with this key by an update expression, and gives the item as it is now.
    pub fn update<V: Into<Value>>(
        &self,
        key: Item,
        update: &str,
        placeholders: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Result<Item> {
        let request = UpdateItem {
            table: self.name.clone(),
            key,
            update: Some(Update::Text(update.to_owned())),
            placeholders: kstone_ports::items::placeholders(placeholders),
            return_values: ReturnValues::AllNew,
            ..UpdateItem::default()
        };
        let output = self.db.update_item(&request).wait()?;
        Ok(output.attributes.map(|item| item.decode()).transpose()?.unwrap_or_default())
    }

    /// Deletes the item with this key, and gives it back.
    pub fn delete(&self, key: Item) -> Result<Option<Item>> {
        let request = DeleteItem {
            table: self.name.clone(),
            key,
            return_values: ReturnValues::AllOld,
            ..DeleteItem::default()
        };
        let output = self.db.delete_item(&request).wait()?;
        Ok(output.attributes.map(|item| item.decode()).transpose()?)
    }

    /// All items that meet a key condition, however many pages that takes.
    pub fn query<V: Into<Value>>(
        &self,
        key_condition: &str,
        placeholders: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Result<Vec<Item>> {
        self.query_pages(None, key_condition, kstone_ports::items::placeholders(placeholders))
    }

    /// The same on an index.
    pub fn query_index<V: Into<Value>>(
        &self,
        index: &str,
        key_condition: &str,
        placeholders: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Result<Vec<Item>> {
        self.query_pages(
            Some(index.to_owned()),
            key_condition,
            kstone_ports::items::placeholders(placeholders),
        )
    }

    /// All items of the table.
    pub fn scan(&self) -> Result<Vec<Item>> {
        let mut request = Scan { table: self.name.clone(), ..Scan::default() };
        all_pages(|start| {
            request.start = start;
            self.db.scan_items(&request).wait()
        })
    }

    fn query_pages(
        &self,
        index: Option<String>,
        key_condition: &str,
        placeholders: Placeholders,
    ) -> Result<Vec<Item>> {
        let mut request = Query {
            table: self.name.clone(),
            index,
            key_condition: Some(KeyCondition::Text(key_condition.to_owned())),
            placeholders,
            ..Query::default()
        };
        all_pages(|start| {
            request.start = start;
            self.db.query_items(&request).wait()
        })
    }
}

/// The items of all pages; `page` gives the one that begins at a key.
fn all_pages(mut page: impl FnMut(Option<Item>) -> Result<QueryOutput>) -> Result<Vec<Item>> {
    let (mut found, mut start) = (Vec::new(), None);
    loop {
        let QueryOutput { items, next, .. } = page(start)?;
        for item in items.into_iter().flatten() {
            found.push(item.decode()?);
        }
        if next.is_none() {
            return Ok(found);
        }
        start = next;
    }
}
