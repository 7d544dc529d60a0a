//! Reads: what keys hold.

use std::collections::{HashMap, HashSet};

use kstone::Item;
use kstone::ops::{BatchGet, BatchGetTable, GetItem};

use crate::entry::{self, Entry};
use crate::error::Result;
use crate::key::{Place, TABLE};
use crate::state::{BATCH_MAX, State};

impl State {
    /// What a key holds.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>> {
        let read = |item: Option<Item>| item.and_then(|item| entry::read(item, self.now_ms()));
        let place = Place::of(self.keyspace(), key)?;
        match read(self.item_at(&place).await?) {
            Some(entry) => Ok(Some(entry)),
            None => match Place::of_long_form(self.keyspace(), key)? {
                Some(long) => Ok(read(self.item_at(&long).await?)),
                None => Ok(None),
            },
        }
    }

    /// What keys hold, each for itself, in the order of the keys.
    pub async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>> {
        let places = |key: &String| {
            let long = Place::of_long_form(self.keyspace(), key)?;
            Ok((Place::of(self.keyspace(), key)?, long))
        };
        let places: Vec<(Place, Option<Place>)> = keys.iter().map(places).collect::<Result<_>>()?;
        let all = places.iter().flat_map(|(place, long)| [Some(place), long.as_ref()]);
        let items = self.items_at(all.flatten().collect()).await?;
        let read = |(place, item)| Some((place, entry::read(item, self.now_ms())?));
        let entries: HashMap<Place, Entry> = items.into_iter().filter_map(read).collect();
        let found = |(place, long): &(Place, Option<Place>)| {
            entries.get(place).or_else(|| entries.get(long.as_ref()?)).cloned()
        };
        Ok(places.iter().map(found).collect())
    }

    /// The items at these places, those whose time is over included.
    pub(crate) async fn items_at(&self, places: HashSet<&Place>) -> Result<HashMap<Place, Item>> {
        let mut found = HashMap::with_capacity(places.len());
        let places: Vec<&Place> = places.into_iter().collect();
        if let [place] = places[..] {
            if let Some(item) = self.item_at(place).await? {
                found.insert(place.clone(), item);
            }
            return Ok(found);
        }
        for batch in places.chunks(BATCH_MAX) {
            let mut keys: Vec<Item> = batch.iter().map(|place| place.key_item()).collect();
            while !keys.is_empty() {
                keys = self.get_batch(keys, &mut found).await?;
            }
        }
        Ok(found)
    }

    async fn item_at(&self, place: &Place) -> Result<Option<Item>> {
        let request = GetItem {
            table: TABLE.to_owned(),
            key: place.key_item(),
            consistent_read: true,
            ..GetItem::default()
        };
        let found = or_nothing(self.items().get(&request).await)?.item;
        Ok(found.map(|item| item.decode()).transpose().map_err(kstone::Error::from)?)
    }

    /// Reads some of the keys, at least one, and gives back the others.
    async fn get_batch(
        &self,
        keys: Vec<Item>,
        found: &mut HashMap<Place, Item>,
    ) -> Result<Vec<Item>> {
        let table = BatchGetTable {
            table: TABLE.to_owned(),
            keys,
            consistent_read: true,
            ..BatchGetTable::default()
        };
        let mut request = BatchGet { tables: vec![table], ..BatchGet::default() };
        let output = or_nothing(self.items().batch_get(&request).await)?;
        for item in output.found.into_iter().flat_map(|(_, items)| items) {
            let item = item.decode().map_err(kstone::Error::from)?;
            if let Some(place) = Place::of_item(&item) {
                found.insert(place, item);
            }
        }
        let left: Vec<usize> = output.unprocessed.into_iter().flat_map(|(_, at)| at).collect();
        let keys = request.tables.pop().map(|table| table.keys).unwrap_or_default();
        let left = (0..).zip(keys).filter(|(at, _)| left.contains(at));
        Ok(left.map(|(_, key)| key).collect())
    }
}

/// Before the first write there is no table, and nothing in it.
pub(crate) fn or_nothing<T: Default>(answer: kstone::Result<T>) -> kstone::Result<T> {
    match answer {
        Err(kstone::Error::NotFound(_)) => Ok(T::default()),
        answer => answer,
    }
}
