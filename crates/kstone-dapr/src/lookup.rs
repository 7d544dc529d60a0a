//! Reads of keys, one or many.

use std::collections::{HashMap, HashSet};

use kstone_ports::items::{BatchGet, BatchGetTable, GetItem};
use kstone_ports::value::Item;

use crate::entry::{self, Entry};
use crate::error::Result;
use crate::key::{ItemKey, TABLE};
use crate::state::{BATCH_MAX, State};

impl State {
    /// Reads a key.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>> {
        let read = |item: Option<Item>| item.and_then(|item| entry::read(item, self.now_ms()));
        let item_key = ItemKey::of(self.keyspace(), key)?;
        match read(self.read_item(&item_key).await?) {
            Some(entry) => Ok(Some(entry)),
            None => match ItemKey::of_long_form(self.keyspace(), key)? {
                Some(long) => Ok(read(self.read_item(&long).await?)),
                None => Ok(None),
            },
        }
    }

    /// Reads keys, not as of one moment. The entries are in the order of the keys.
    pub async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>> {
        let item_keys = |key: &String| {
            let long = ItemKey::of_long_form(self.keyspace(), key)?;
            Ok((ItemKey::of(self.keyspace(), key)?, long))
        };
        let item_keys: Vec<(ItemKey, Option<ItemKey>)> =
            keys.iter().map(item_keys).collect::<Result<_>>()?;
        let all = item_keys.iter().flat_map(|(item_key, long)| [Some(item_key), long.as_ref()]);
        let items = self.read_items(all.flatten().collect()).await?;
        let read = |(item_key, item)| Some((item_key, entry::read(item, self.now_ms())?));
        let entries: HashMap<ItemKey, Entry> = items.into_iter().filter_map(read).collect();
        let found = |(item_key, long): &(ItemKey, Option<ItemKey>)| {
            entries.get(item_key).or_else(|| entries.get(long.as_ref()?)).cloned()
        };
        Ok(item_keys.iter().map(found).collect())
    }

    /// Reads the items with these primary keys, expired ones included.
    pub(crate) async fn read_items(
        &self,
        item_keys: HashSet<&ItemKey>,
    ) -> Result<HashMap<ItemKey, Item>> {
        let mut found = HashMap::with_capacity(item_keys.len());
        let item_keys: Vec<&ItemKey> = item_keys.into_iter().collect();
        if let [item_key] = item_keys[..] {
            if let Some(item) = self.read_item(item_key).await? {
                found.insert(item_key.clone(), item);
            }
            return Ok(found);
        }
        for batch in item_keys.chunks(BATCH_MAX) {
            let mut keys: Vec<Item> = batch.iter().map(|item_key| item_key.to_item()).collect();
            while !keys.is_empty() {
                keys = self.get_batch(keys, &mut found).await?;
            }
        }
        Ok(found)
    }

    async fn read_item(&self, item_key: &ItemKey) -> Result<Option<Item>> {
        let request = GetItem {
            table: TABLE.to_owned(),
            key: item_key.to_item(),
            consistent_read: true,
            ..GetItem::default()
        };
        let found = empty_if_no_table(self.items().get(&request).await)?.item;
        Ok(found.map(|item| item.decode()).transpose().map_err(kstone_ports::Error::from)?)
    }

    /// Reads some of the keys, at least one, and returns those that are left.
    async fn get_batch(
        &self,
        keys: Vec<Item>,
        found: &mut HashMap<ItemKey, Item>,
    ) -> Result<Vec<Item>> {
        let table = BatchGetTable {
            table: TABLE.to_owned(),
            keys,
            consistent_read: true,
            ..BatchGetTable::default()
        };
        let mut request = BatchGet { tables: vec![table], ..BatchGet::default() };
        let output = empty_if_no_table(self.items().batch_get(&request).await)?;
        for item in output.found.into_iter().flat_map(|(_, items)| items) {
            let item = item.decode().map_err(kstone_ports::Error::from)?;
            if let Some(item_key) = ItemKey::from_item(&item) {
                found.insert(item_key, item);
            }
        }
        let left: Vec<usize> = output.unprocessed.into_iter().flat_map(|(_, at)| at).collect();
        let keys = request.tables.pop().map(|table| table.keys).unwrap_or_default();
        let left = (0..).zip(keys).filter(|(at, _)| left.contains(at));
        Ok(left.map(|(_, key)| key).collect())
    }
}

/// Reads a missing table as an empty one: the first write creates it.
pub(crate) fn empty_if_no_table<T: Default>(
    output: kstone_ports::Result<T>,
) -> kstone_ports::Result<T> {
    match output {
        Err(kstone_ports::Error::NotFound(_)) => Ok(T::default()),
        output => output,
    }
}
