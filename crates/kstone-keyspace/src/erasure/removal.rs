//! Deletes the data of one person, and nothing that belongs to others.
//!
//! A key that has the person in its name is theirs for good, and is deleted whatever it holds. A
//! value that names them may have changed hands since it was looked at: it is deleted or changed only
//! if it is still what was seen.

use std::sync::Arc;

use bytes::Bytes;
use kstone_ports::CancellationCode;
use kstone_ports::items::{
    Condition, DeleteItem, GetItem, Placeholders, TransactAction, TransactKind, Update,
};
use kstone_ports::items::{
    PurgeItems, PurgeReport, StreamImage, StreamImageFilter, write_together,
};
use kstone_ports::keys::PurgeKeys;
use kstone_ports::keys::Value as Reply;
use kstone_ports::value::{Item, Value};

use super::holdings::{item_key, match_of};
use super::shared::{self, Named, Share};
use super::stores::{ErasureError, Result, Stores, TableKeys, bytes_of, command};
use crate::index::{IndexEntryKey, Location};
use crate::keyspace::{ItemKeyParts, Match, WHOLE_KEY};
use crate::pattern::{SubjectSource, ValueType};
use crate::policy::Governor;
use crate::subject::Subject;

/// How often a value is looked at again that others keep changing.
const TRIES: usize = 100;

impl Stores {
    /// Selects the change stream records about a person: those of items with the person in the key,
    /// and those with an image that names them, even if the item names somebody else by now.
    pub(super) fn stream_images_of(&self, subject: &Subject) -> StreamImageFilter {
        let (keyspace, subject) = (Arc::clone(&self.keyspace), subject.clone());
        StreamImageFilter(Arc::new(move |stream: &StreamImage<'_>| {
            let parts = ItemKeyParts { pk: stream.pk, sk: stream.sk.unwrap_or(WHOLE_KEY) };
            let Some(found) = keyspace.find_item(stream.table, parts) else { return false };
            match &found.pattern.subject {
                SubjectSource::Placeholder(name) => {
                    let id = found.value(name);
                    id.is_some_and(|id| subject.covers(&shared::person(&found, &id)))
                }
                SubjectSource::Field(field) => {
                    let named = Named::in_item(&found, field, stream.image);
                    named.persons.iter().any(|person| subject.covers(person))
                }
                _ => false,
            }
        }))
    }

    /// Edits shared values and deletes the person's own keys. Returns what was done, and which
    /// items have still to be purged, with all bytes of both.
    pub(super) async fn remove(
        &self,
        places: &[IndexEntryKey],
        subject: &Subject,
        governor: &Governor,
    ) -> Result<(PurgeReport, PurgeItems)> {
        let edited: Vec<_> =
            places.iter().filter(|it| self.is_edited(it)).map(|it| &it.location).collect();
        let exempt: Vec<_> = edited.iter().map(|place| governor.exempt(place)).collect();
        let (keys, items) = self.edit(places, subject).await?;
        let report = self.keys.purge(&keys).await?;
        drop(exempt);
        if !edited.is_empty() {
            self.settle().await?;
        }
        Ok((report, items))
    }

    /// Waits until every write that was checked before now is over.
    pub(super) async fn settle(&self) -> Result<()> {
        self.items.settle().await?;
        Ok(self.keys.settle().await?)
    }

    /// Whether a value is edited and not deleted.
    fn is_edited(&self, place: &IndexEntryKey) -> bool {
        matches!(place.location, Location::Member { .. })
            || by_field(&match_of(&self.keyspace, &place.location)).is_some()
    }

    /// Takes the person out of shared values, and returns what else has to be deleted.
    async fn edit(
        &self,
        places: &[IndexEntryKey],
        subject: &Subject,
    ) -> Result<(PurgeKeys, PurgeItems)> {
        let mut tables = TableKeys::new();
        let mut keys = PurgeKeys { files_later: true, ..PurgeKeys::default() };
        let mut items = PurgeItems {
            remains: true,
            stream_images: Some(self.stream_images_of(subject)),
            ..PurgeItems::default()
        };
        for place in places {
            let found = match_of(&self.keyspace, &place.location);
            match &place.location {
                Location::Key { db, key } => match by_field(&found) {
                    Some((found, field)) => {
                        self.remove_named_key(*db, key, found, field, subject).await?;
                    }
                    None => keys.keys.push((*db, Bytes::copy_from_slice(key))),
                },
                Location::Member { db, key, member } => {
                    let [key, member] = [key, member].map(|it| Bytes::copy_from_slice(it));
                    keys.members.push((*db, key, member));
                }
                Location::Item { table, .. } => {
                    let Some(table_key) = self.table(&mut tables, table).await? else { continue };
                    let Some(key) = item_key(table_key, &place.location) else { continue };
                    match by_field(&found) {
                        Some((found, field)) => {
                            self.remove_named_item(table, &key, found, field, subject).await?;
                        }
                        None => items.items.push((table.clone(), key)),
                    }
                }
            }
        }
        Ok((keys, items))
    }

    /// Removes the person from a Redis key that names persons in its value.
    async fn remove_named_key(
        &self,
        db: u8,
        key: &[u8],
        found: &Match<'_, '_>,
        field: &str,
        subject: &Subject,
    ) -> Result<()> {
        let keys = self.keys_of(db)?;
        let watched = [Bytes::copy_from_slice(key)];
        for _ in 0..TRIES {
            let mut watch = keys.watch(&watched).await?;
            let question = match found.pattern.value_type {
                ValueType::Hash => command([&b"HGET"[..], key, field.as_bytes()]),
                ValueType::Stream => command([&b"XRANGE"[..], key, b"-", b"+"]),
                _ => command([&b"GET"[..], key]),
            };
            let answer = match watch.command(&question).await {
                // It holds something else by now, which names nobody.
                Err(kstone_ports::Error::Reply(_)) => return Ok(()),
                answer => answer?,
            };
            let Some(change) = change_of_key(key, found, field, subject, &answer) else {
                return Ok(());
            };
            if let Some(replies) = watch.commit(&[change]).await? {
                return match replies.into_iter().find_map(Result::err) {
                    None => Ok(()),
                    Some(fault) => Err(kstone_ports::Error::from(fault).into()),
                };
            }
        }
        Err(ErasureError::Busy(found.pattern.full_name()))
    }

    /// Removes the person from an item that names persons in an attribute.
    async fn remove_named_item(
        &self,
        table: &str,
        key: &Item,
        found: &Match<'_, '_>,
        field: &str,
        subject: &Subject,
    ) -> Result<()> {
        for _ in 0..TRIES {
            let request = GetItem {
                table: table.to_owned(),
                key: key.clone(),
                consistent_read: true,
                ..GetItem::default()
            };
            let Some(stored) = self.items.get(&request).await?.item else {
                return self.clear_expired(table, key).await;
            };
            let named = Named::in_item(found, field, stored.as_ref());
            let share = named.share_of(subject);
            let item = stored.decode().map_err(kstone_ports::Error::from)?;
            let is_theirs = |id: &str| subject.covers(&shared::person(found, id));
            let action = match share {
                Share::Nothing => None,
                Share::Part if found.pattern.is_deleted_with_any => {
                    deletion(table, key, &item, field)
                }
                Share::Part => change_of_item(table, key, &item, field, &is_theirs),
                Share::Whole => deletion(table, key, &item, field),
            };
            let Some(action) = action else { return Ok(()) };
            match write_together(&*self.items, vec![action]).await {
                Ok(()) => return Ok(()),
                Err(error) if is_lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErasureError::Busy(found.pattern.full_name()))
    }

    /// What has expired is hidden and may still be stored: a delete takes it away, unless somebody
    /// has put something in its place.
    async fn clear_expired(&self, table: &str, key: &Item) -> Result<()> {
        let Some((name, _)) = key.iter().next() else { return Ok(()) };
        let request = DeleteItem {
            table: table.to_owned(),
            key: key.clone(),
            condition: Some(Condition::Text("attribute_not_exists(#key)".to_owned())),
            placeholders: Placeholders {
                names: Some(vec![("#key".to_owned(), name.to_owned())]),
                values: None,
            },
            ..DeleteItem::default()
        };
        match self.items.delete(&request).await {
            Ok(_) | Err(kstone_ports::Error::ConditionFailed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The field that says whose a value is, if a field does.
fn by_field<'f, 's, 'k>(found: &'f Option<Match<'s, 'k>>) -> Option<(&'f Match<'s, 'k>, &'f str)> {
    match found.as_ref().map(|found| (found, &found.pattern.subject)) {
        Some((found, SubjectSource::Field(field))) => Some((found, field)),
        _ => None,
    }
}

/// The command that takes the person out of a key; `None` when they are not in it.
fn change_of_key(
    key: &[u8],
    found: &Match<'_, '_>,
    field: &str,
    subject: &Subject,
    answer: &Reply,
) -> Option<Vec<Bytes>> {
    let names = |named: &Named| named.persons.iter().any(|person| subject.covers(person));
    let delete = || command([&b"DEL"[..], key]);
    match (found.pattern.value_type, bytes_of(answer)) {
        (ValueType::Stream, _) => {
            let mut change = command([&b"XDEL"[..], key]);
            for (id, fields) in shared::entries_of(answer) {
                let mut ids = shared::values_of(&fields, field);
                if ids.any(|id| names(&Named::single(found, id))) {
                    change.push(Bytes::copy_from_slice(id));
                }
            }
            (change.len() > 2).then_some(change)
        }
        // Expired, perhaps, and still stored.
        (_, None) if matches!(answer, Reply::Null) => Some(delete()),
        (ValueType::Hash, Some(id)) => names(&Named::single(found, id)).then(delete),
        (_, Some(value)) => {
            let named = Named::in_json(found, field, value);
            match named.share_of(subject) {
                Share::Nothing => None,
                Share::Whole => Some(delete()),
                Share::Part if found.pattern.is_deleted_with_any => Some(delete()),
                Share::Part => {
                    let is_theirs = |id: &str| subject.covers(&shared::person(found, id));
                    let text = shared::json_without(value, field, &is_theirs)?;
                    Some(command([&b"SET"[..], key, text.as_bytes(), b"KEEPTTL"]))
                }
            }
        }
        (_, None) => None,
    }
}

/// What has to be as it was for a change to be right: the attributes that name persons.
fn unchanged(item: &Item, field: &str) -> (String, Placeholders) {
    let mut texts = Vec::new();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (at, name) in [field, shared::VALUE].into_iter().enumerate() {
        if at > 0 && name == field {
            continue;
        }
        names.push((format!("#n{at}"), name.to_owned()));
        match item.get(name) {
            Some(value) => {
                values.push((format!(":v{at}"), value.clone()));
                texts.push(format!("#n{at} = :v{at}"));
            }
            None => texts.push(format!("attribute_not_exists(#n{at})")),
        }
    }
    let values = (!values.is_empty()).then_some(values);
    (texts.join(" AND "), Placeholders { names: Some(names), values })
}

fn deletion(table: &str, key: &Item, item: &Item, field: &str) -> Option<TransactAction> {
    let (condition, placeholders) = unchanged(item, field);
    Some(TransactAction {
        table: table.to_owned(),
        kind: TransactKind::Delete(key.clone()),
        condition: Some(Condition::Text(condition)),
        placeholders,
        return_on_failure: false,
    })
}

/// The change that takes a person out of an item; `None` when they are not in it.
fn change_of_item(
    table: &str,
    key: &Item,
    item: &Item,
    field: &str,
    is_theirs: &dyn Fn(&str) -> bool,
) -> Option<TransactAction> {
    let (condition, mut placeholders) = unchanged(item, field);
    let (mut sets, mut removes) = (Vec::new(), Vec::new());
    let mut change = |name: &str, left: Option<Value>| match left {
        Some(value) => {
            let at = sets.len();
            placeholders.values.get_or_insert_default().push((format!(":s{at}"), value));
            sets.push(format!("{name} = :s{at}"));
        }
        None => removes.push(name.to_owned()),
    };
    if let Some(left) = item.get(field).and_then(|it| shared::attribute_without(it, is_theirs)) {
        change("#n0", left);
    }
    match item.get(shared::VALUE).filter(|_| field != shared::VALUE) {
        Some(Value::S(json)) => {
            if let Some(json) = shared::json_without(json.as_bytes(), field, is_theirs) {
                change("#n1", Some(Value::S(json)));
            }
        }
        Some(Value::B(json)) => {
            if let Some(json) = shared::json_without(json, field, is_theirs) {
                change("#n1", Some(Value::B(json.into())));
            }
        }
        Some(Value::M(map)) => {
            let left = map.get(field).and_then(|it| shared::attribute_without(it, is_theirs));
            if let Some(left) = left {
                let mut map = map.clone();
                match left {
                    Some(value) => drop(map.insert(field, value)),
                    None => drop(map.remove(field)),
                }
                change("#n1", Some(Value::M(map)));
            }
        }
        _ => {}
    }
    if sets.is_empty() && removes.is_empty() {
        return None;
    }
    let mut update = String::new();
    if !sets.is_empty() {
        update = format!("SET {}", sets.join(", "));
    }
    if !removes.is_empty() {
        update = format!("{update} REMOVE {}", removes.join(", "));
    }
    Some(TransactAction {
        table: table.to_owned(),
        kind: TransactKind::Update(key.clone(), Update::Text(update.trim().to_owned())),
        condition: Some(Condition::Text(condition)),
        placeholders,
        return_on_failure: false,
    })
}

/// Whether the error says that another write came first.
fn is_lost_race(error: &kstone_ports::Error) -> bool {
    let kstone_ports::Error::TransactionCanceled { reasons } = error else { return false };
    reasons.iter().any(|reason| {
        use CancellationCode::{ConditionalCheckFailed, Throttled, TransactionConflict};
        matches!(reason.code, ConditionalCheckFailed | Throttled | TransactionConflict)
    })
}
