//! Named tables, in a folder that this process opens or behind a running server: the commands need not
//! know which.

mod client;
mod folder;
mod server;
mod sign;
mod wire;

pub use client::Client;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use kstone::table::{KeySchema, KeyType};
use kstone::{Database, Item, Value};
use kstone_core::Error as EngineError;
use kstone_keyspace::Governor;

use crate::database;
use crate::serve::server_file::ServerFile;

/// Where the tables are.
pub enum Tables {
    /// In a folder; what is written keeps to the keyspace that the database is governed by.
    InFolder(Option<Governed>, Database),
    /// Behind a server.
    AtServer(Client),
}

/// A keyspace in force, whose counts are kept at the end.
pub struct Governed(pub Arc<Governor>);

impl Drop for Governed {
    fn drop(&mut self) {
        // Counts that are not kept say so themselves, by the sequence number they are of.
        let _ = self.0.close();
    }
}

/// What a command must know of a table.
pub struct TableShape {
    pub key: KeySchema,
    /// The indexes by name.
    pub indexes: Vec<(String, KeySchema)>,
    /// How many items, as last counted.
    pub items: u64,
}

/// A query or a scan: the items of a key condition, or all.
#[derive(Default)]
pub struct ItemsQuery {
    pub table: String,
    pub index: Option<String>,
    pub condition: Option<KeyConditionText>,
    pub backward: bool,
    pub limit: Option<u32>,
    pub start: Option<Item>,
    /// Which of how many parts of a scan.
    pub segment: Option<(u32, u32)>,
}

/// A key condition in DynamoDB's language, with what its placeholders stand for.
#[derive(Default)]
pub struct KeyConditionText {
    pub text: String,
    pub names: Vec<(String, String)>,
    pub values: Vec<(String, Value)>,
}

/// Some items, and where to go on.
pub struct Items {
    pub items: Vec<Item>,
    pub next: Option<Item>,
}

/// Whether this names a server, not a folder.
pub fn is_url(place: &Path) -> bool {
    place.to_str().is_some_and(|text| text.starts_with("http://") || text.starts_with("https://"))
}

impl Tables {
    /// Opens a folder or finds the server; for a folder that a server has open, that server.
    pub fn open(place: &Path) -> Result<Tables> {
        if let Some(url) = place.to_str().filter(|_| is_url(place)) {
            return Ok(Tables::AtServer(Client::new(url, None)?));
        }
        match database::try_open(place, false) {
            Ok(db) => {
                let governed = Governor::resume(&db)?.map(Governed);
                Ok(Tables::InFolder(governed, db))
            }
            Err(kstone::Error::Engine(EngineError::Locked { .. })) => {
                match ServerFile::read(place).and_then(|notice| notice.dynamodb) {
                    Some(url) => Ok(Tables::AtServer(Client::new(&url, None)?)),
                    None => bail!(
                        "{} is in use by another process; close it there first",
                        place.display()
                    ),
                }
            }
            Err(error) => Err(database::explain(place, error)),
        }
    }

    pub fn names(&self) -> Result<Vec<String>> {
        match self {
            Tables::InFolder(_, db) => Ok(db.list_tables(None, usize::MAX).0),
            Tables::AtServer(client) => server::names(client),
        }
    }

    pub fn shape(&self, table: &str) -> Result<TableShape> {
        match self {
            Tables::InFolder(_, db) => folder::shape(db, table),
            Tables::AtServer(client) => server::shape(client, table),
        }
    }

    pub fn get(&self, table: &str, key: Item) -> Result<Option<Item>> {
        match self {
            Tables::InFolder(_, db) => Ok(db.table(table).get(key)?),
            Tables::AtServer(client) => server::get(client, table, &key),
        }
    }

    /// Writes up to 25 items.
    pub fn put(&self, table: &str, items: Vec<Item>) -> Result<()> {
        match self {
            Tables::InFolder(_, db) => folder::put(db, table, items),
            Tables::AtServer(client) => server::put(client, table, &items),
        }
    }

    /// Whether there was one.
    pub fn delete(&self, table: &str, key: Item) -> Result<bool> {
        match self {
            Tables::InFolder(_, db) => Ok(db.table(table).delete(key)?.is_some()),
            Tables::AtServer(client) => server::delete(client, table, &key),
        }
    }

    /// One page.
    pub fn read(&self, ask: &ItemsQuery) -> Result<Items> {
        match self {
            Tables::InFolder(_, db) => folder::read(db, ask),
            Tables::AtServer(client) => server::read(client, ask),
        }
    }
}

impl TableShape {
    /// The key of the table, or of one of its indexes.
    pub fn key_of(&self, index: Option<&str>) -> Result<&KeySchema> {
        let Some(index) = index else { return Ok(&self.key) };
        let found = self.indexes.iter().find(|(name, _)| name == index);
        found.map(|(_, key)| key).ok_or_else(|| {
            let names: Vec<&str> = self.indexes.iter().map(|(name, _)| name.as_str()).collect();
            match names.is_empty() {
                true => anyhow!("there is no index {index}: the table has none"),
                false => anyhow!("there is no index {index}; there are {}", names.join(", ")),
            }
        })
    }

    /// The key of an item, as typed on the command line.
    pub fn typed_key(&self, pk: &str, sk: Option<&str>) -> Result<Item> {
        let mut item = Item::new();
        let mut words = [Some(pk), sk].into_iter().flatten();
        for attribute in self.key.attributes() {
            let word =
                words.next().with_context(|| format!("the key has `{}` too", attribute.name))?;
            item.insert(&*attribute.name, typed_value(attribute.kind, word)?);
        }
        if words.next().is_some() {
            bail!("the table has no sort key: give the partition key alone");
        }
        Ok(item)
    }
}

/// A key attribute as typed on the command line.
pub fn typed_value(kind: KeyType, word: &str) -> Result<Value> {
    use base64::Engine as _;
    Ok(match kind {
        KeyType::S => Value::S(word.to_owned()),
        KeyType::N => Value::N(word.parse()?),
        KeyType::B => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(word);
            Value::B(bytes.with_context(|| format!("`{word}` is not bytes in base64"))?.into())
        }
    })
}
