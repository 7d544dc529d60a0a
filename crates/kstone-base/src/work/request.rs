//! Short forms of requests to the table of background work.

use kstone_keyspace::typed::TypedKey;
use kstone_ports::CancellationCode;
use kstone_ports::items::{
    Condition, DeleteItem, GetItem, KeyCondition, Placeholders, Query, ReturnValues,
    TransactAction, TransactKind, Update, UpdateItem,
};
use kstone_ports::items::{Items, write_together};
use kstone_ports::value::{Item, ItemBytes, Value};

use super::table::{PK, SK, TABLE};
use crate::error::{Error, Result};

/// The names and values that an expression refers to. Attributes are written `#name`, since many of
/// their names are reserved words of DynamoDB.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bindings {
    names: Vec<(String, String)>,
    values: Vec<(String, Value)>,
}

impl Bindings {
    /// `#name` stands for the attribute `name`, for each of these.
    pub(crate) fn names(names: &[&str]) -> Bindings {
        let names = names.iter().map(|name| (format!("#{name}"), (*name).to_owned()));
        Bindings { names: names.collect(), values: Vec::new() }
    }

    /// Adds a name, unless it is there.
    pub(crate) fn name(mut self, name: &str) -> Bindings {
        if !self.names.iter().any(|(_, known)| known == name) {
            self.names.push((format!("#{name}"), name.to_owned()));
        }
        self
    }

    /// Adds a value: `:name`.
    pub(crate) fn value(mut self, name: &str, value: impl Into<Value>) -> Bindings {
        self.values.push((format!(":{name}"), value.into()));
        self
    }

    pub(crate) fn placeholders(self) -> Placeholders {
        let some = |is_empty: bool| (!is_empty).then_some(());
        Placeholders {
            names: some(self.names.is_empty()).map(|()| self.names),
            values: some(self.values.is_empty()).map(|()| self.values),
        }
    }
}

/// The key attributes of an item.
pub(crate) fn key_of<K: TypedKey>(key: &K) -> Item {
    Item::new().with(PK, key.partition_key()).with(SK, key.sort_key())
}

/// An action of a transaction on this table.
pub(crate) fn action(
    kind: TransactKind,
    condition: Option<&str>,
    bindings: Bindings,
) -> TransactAction {
    TransactAction {
        table: TABLE.to_owned(),
        kind,
        condition: condition.map(|text| Condition::Text(text.to_owned())),
        placeholders: bindings.placeholders(),
        return_on_failure: false,
    }
}

/// Updates an item if the condition holds, and returns the new item; `None` if it does not hold.
pub(crate) async fn update_if(
    items: &dyn Items,
    key: Item,
    update: &str,
    condition: &str,
    bindings: Bindings,
) -> Result<Option<Item>> {
    let request = UpdateItem {
        table: TABLE.to_owned(),
        key,
        update: Some(Update::Text(update.to_owned())),
        condition: Some(Condition::Text(condition.to_owned())),
        placeholders: bindings.placeholders(),
        return_values: ReturnValues::AllNew,
        ..UpdateItem::default()
    };
    match items.update(&request).await {
        Ok(output) => output.attributes.map(|item| decoded(&item)).transpose(),
        Err(kstone_ports::Error::ConditionFailed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Deletes an item if the condition holds, and answers whether it held.
pub(crate) async fn delete_if(
    items: &dyn Items,
    key: Item,
    condition: &str,
    bindings: Bindings,
) -> Result<bool> {
    let request = DeleteItem {
        table: TABLE.to_owned(),
        key,
        condition: Some(Condition::Text(condition.to_owned())),
        placeholders: bindings.placeholders(),
        ..DeleteItem::default()
    };
    match items.delete(&request).await {
        Ok(_) => Ok(true),
        Err(kstone_ports::Error::ConditionFailed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes all of these if all conditions hold, and answers whether they held.
pub(crate) async fn transact_if(items: &dyn Items, actions: Vec<TransactAction>) -> Result<bool> {
    match write_together(items, actions).await {
        Ok(()) => Ok(true),
        Err(kstone_ports::Error::TransactionCanceled { reasons })
            if reasons.iter().any(|it| it.code == CancellationCode::ConditionalCheckFailed) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads an item.
pub(crate) async fn get(items: &dyn Items, key: Item) -> Result<Option<Item>> {
    let request =
        GetItem { table: TABLE.to_owned(), key, consistent_read: true, ..GetItem::default() };
    items.get(&request).await?.item.map(|item| decoded(&item)).transpose()
}

/// All items of a partition whose `sort` attribute lies between two texts, both included.
pub(crate) fn between(partition: &str, sort: &str, first: &str, last: &str) -> Query {
    let bindings = Bindings::names(&["pk", sort])
        .value("pk", partition)
        .value("first", first)
        .value("last", last);
    Query {
        table: TABLE.to_owned(),
        key_condition: Some(KeyCondition::Text(format!(
            "#pk = :pk AND #{sort} BETWEEN :first AND :last"
        ))),
        placeholders: bindings.placeholders(),
        consistent_read: true,
        ..Query::default()
    }
}

pub(crate) fn decoded(item: &ItemBytes) -> Result<Item> {
    item.decode().map_err(|corrupt| Error::Store(corrupt.into()))
}

/// A text attribute; empty if there is none.
pub(crate) fn text<'i>(item: &'i Item, name: &str) -> &'i str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A text attribute, if there is one.
pub(crate) fn text_option(item: &Item, name: &str) -> Option<String> {
    item.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A whole number; 0 if there is none.
pub(crate) fn number(item: &Item, name: &str) -> u64 {
    number_option(item, name).unwrap_or_default()
}

/// A whole number, if there is one.
pub(crate) fn number_option(item: &Item, name: &str) -> Option<u64> {
    item.get(name).and_then(Value::as_number).and_then(|number| number.to_u64())
}
