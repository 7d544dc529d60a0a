//! Turns a statement into the operation on one item that it stands for.

use crate::database::Database;
use crate::error::{Error, Result};
use crate::ops::{
    Condition, DeleteItem, Placeholders, PutItem, ReturnValues, TransactAction, TransactKind,
    Update as UpdateChange, UpdateItem,
};
use crate::partiql::ast::{Command, Delete, Expr, Insert, Parsed, Returning, Select, Update};
use crate::partiql::keys::{NotOneItem, OneItem, check_type, one_item};
use crate::partiql::parser::parse;
use crate::partiql::projection::Projection;
use crate::partiql::request::Statement;
use crate::partiql::text::ExpressionText;
use crate::partiql::values;
use crate::table::live::Table;
use crate::value::{Item, Value};

/// Why a statement cannot be run.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is wrong as it stands, or there is no such table.
    Statement(Error),
    /// It does not fit the table: in a transaction, a reason to cancel.
    Item(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Statement(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Statement(error) | Fault::Item(error) => error,
        }
    }
}

/// A statement that was read, with its parameters.
#[derive(Debug)]
pub(super) struct Prepared<'s> {
    pub parsed: Parsed,
    pub parameters: &'s [Value],
}

impl<'s> Prepared<'s> {
    pub fn new(statement: &'s Statement) -> Result<Self> {
        let parameters = statement.parameters.as_deref();
        if parameters.is_some_and(<[Value]>::is_empty) {
            return Err(Error::validation(
                "1 validation error detected: Value '[]' at 'parameters' failed to satisfy \
                 constraint: Member must have length greater than or equal to 1",
            ));
        }
        let parsed = parse(&statement.text)?;
        let parameters = parameters.unwrap_or_default();
        if parameters.len() < parsed.parameters {
            return Err(Error::validation(
                "Number of parameters in request and statement don't match.",
            ));
        }
        let prepared = Prepared { parsed, parameters };
        prepared.check()?;
        Ok(prepared)
    }

    /// Whether it reads and does not write. A check of a transaction counts as a write.
    pub fn reads(&self) -> bool {
        matches!(self.parsed.command, Command::Select(_))
    }

    /// The table that it is about.
    pub fn table(&self) -> &str {
        match &self.parsed.command {
            Command::Select(select) | Command::Exists(select) => &select.source.table,
            Command::Insert(insert) => &insert.table,
            Command::Update(update) => &update.source.table,
            Command::Delete(delete) => &delete.source.table,
        }
    }

    /// Errors that can be found without looking at the table.
    fn check(&self) -> Result<()> {
        let condition = match &self.parsed.command {
            Command::Select(_) | Command::Exists(_) | Command::Insert(_) => None,
            Command::Update(Update { source, .. }) | Command::Delete(Delete { source, .. }) => {
                if source.index.is_some() {
                    return Err(Error::validation("This operation is not supported on an index"));
                }
                self.condition()
            }
        };
        if let Command::Delete(Delete { returning: Some(returning), .. }) = &self.parsed.command
            && (*returning != Returning { modified: false, old: true })
        {
            return Err(Error::validation(format!(
                "Invalid returning clause: RETURNING {returning}. Only RETURNING ALL OLD * is \
                 allowed in DELETE statements."
            )));
        }
        if let Some(condition) = condition {
            ExpressionText::new(self.parameters).condition(condition)?;
        }
        Ok(())
    }

    fn condition(&self) -> Option<&Expr> {
        match &self.parsed.command {
            Command::Select(select) | Command::Exists(select) => select.condition.as_ref(),
            Command::Insert(_) => None,
            Command::Update(update) => update.condition.as_ref(),
            Command::Delete(delete) => delete.condition.as_ref(),
        }
    }
}

/// One write, or one check of a transaction.
#[derive(Debug)]
pub(super) enum Write {
    Put(PutItem),
    Update(UpdateItem),
    Delete(DeleteItem),
    Check { table: String, key: Item, condition: String, placeholders: Placeholders },
}

/// One item to read by its key.
#[derive(Debug)]
pub(super) struct Read {
    pub key: Item,
    pub projection: Option<Projection>,
}

impl Database {
    /// The table of a statement. What is wrong with the statement itself comes before that there
    /// is no such table.
    pub(super) fn table_of(&self, prepared: &Prepared<'_>) -> Result<std::sync::Arc<Table>> {
        let table = self.table_for_items(prepared.table());
        if table.is_err()
            && let Some(condition) = prepared.condition()
        {
            self.bind_where(condition, prepared.parameters)?;
        }
        table
    }

    /// The write that a statement stands for.
    pub(super) fn prepare_write(
        &self,
        prepared: &Prepared<'_>,
        return_on_failure: bool,
    ) -> Result<Write, Fault> {
        let parameters = prepared.parameters;
        Ok(match &prepared.parsed.command {
            Command::Insert(insert) => {
                let item = values::item(&insert.item, parameters)?;
                let table = self.table_of(prepared)?;
                Write::Put(put(&table, insert, item).map_err(Fault::Item)?)
            }
            Command::Update(update) => {
                let mut text = ExpressionText::new(parameters);
                let changes = text.update(&update.changes)?;
                let table = self.table_of(prepared)?;
                let found = found(update.condition.as_ref(), &table, parameters)?;
                let condition = existing(&mut text, &table, &found.rest)?;
                Write::Update(UpdateItem {
                    table: update.source.table.clone(),
                    key: found.key,
                    update: Some(UpdateChange::Statement(changes)),
                    condition: Some(Condition::Statement(condition)),
                    placeholders: text.placeholders(),
                    return_values: return_values(update.returning),
                    return_on_failure,
                    ..UpdateItem::default()
                })
            }
            Command::Delete(delete) => {
                let table = self.table_of(prepared)?;
                let found = found(delete.condition.as_ref(), &table, parameters)?;
                let mut text = ExpressionText::new(parameters);
                // An item that is not there is as good as deleted, whatever the condition.
                let condition = match found.rest.is_empty() {
                    true => None,
                    false => {
                        let rest = text.conjunction(found.rest.iter().copied())?;
                        let missing = text.name(partition_key(&table));
                        Some(Condition::Statement(format!(
                            "attribute_not_exists({missing}) OR {rest}"
                        )))
                    }
                };
                Write::Delete(DeleteItem {
                    table: delete.source.table.clone(),
                    key: found.key,
                    condition,
                    placeholders: text.placeholders(),
                    return_values: return_values(delete.returning),
                    return_on_failure,
                    ..DeleteItem::default()
                })
            }
            Command::Exists(select) => self.prepare_check(prepared, select)?,
            Command::Select(_) => {
                return Err(Error::validation("Unsupported operation in transaction.").into());
            }
        })
    }

    fn prepare_check(&self, prepared: &Prepared<'_>, select: &Select) -> Result<Write, Fault> {
        if select.source.index.is_some() {
            return Err(Error::validation(
                "Operations on indices are not supported in transactions",
            )
            .into());
        }
        let table = self.table_of(prepared)?;
        let parameters = prepared.parameters;
        let found = match one_item(select.condition.as_ref(), table.key(), parameters) {
            Ok(found) if !found.rest.is_empty() => found,
            Err(NotOneItem::Mismatch(error)) => return Err(Fault::Item(error)),
            _ => {
                return Err(Error::validation(
                    "EXISTS() must contain a single item read with additional condition",
                )
                .into());
            }
        };
        let mut text = ExpressionText::new(parameters);
        let condition = existing(&mut text, &table, &found.rest)?;
        Ok(Write::Check {
            table: select.source.table.clone(),
            key: found.key,
            condition,
            placeholders: text.placeholders(),
        })
    }

    /// The one item that a `SELECT` of a batch or transaction reads; `operation` names that.
    pub(super) fn prepare_read(
        &self,
        prepared: &Prepared<'_>,
        operation: &str,
    ) -> Result<Read, Fault> {
        let Command::Select(select) = &prepared.parsed.command else {
            return Err(Error::validation("Unsupported operation in transaction.").into());
        };
        let table = self.table_of(prepared)?;
        let not_by_key = || {
            Fault::Statement(Error::validation(format!(
                "Select statements within {operation} must specify the primary key in the where \
                 clause."
            )))
        };
        if let Some(index) = &select.source.index {
            refuse_several_attributes(&table, index)?;
            return Err(not_by_key());
        }
        let projection = select.projection.as_deref().map(Projection::new).transpose()?;
        match one_item(select.condition.as_ref(), table.key(), prepared.parameters) {
            Ok(OneItem { key, rest }) if rest.is_empty() => Ok(Read { key, projection }),
            Err(NotOneItem::Mismatch(error)) => Err(Fault::Item(error)),
            _ => Err(not_by_key()),
        }
    }
}

impl Write {
    /// The same write as an action of a transaction.
    pub fn into_action(self, return_on_failure: bool) -> TransactAction {
        let (table, kind, condition, placeholders) = match self {
            Write::Put(put) => {
                (put.table, TransactKind::Put(put.item), put.condition, put.placeholders)
            }
            Write::Update(UpdateItem { table, key, update, condition, placeholders, .. }) => {
                let update = update.unwrap_or_else(|| UpdateChange::Statement(String::new()));
                (table, TransactKind::Update(key, update), condition, placeholders)
            }
            Write::Delete(DeleteItem { table, key, condition, placeholders, .. }) => {
                (table, TransactKind::Delete(key), condition, placeholders)
            }
            Write::Check { table, key, condition, placeholders } => (
                table,
                TransactKind::Check(key),
                Some(Condition::Statement(condition)),
                placeholders,
            ),
        };
        TransactAction { table, kind, condition, placeholders, return_on_failure }
    }

    /// The table and the item, or the attributes of its key.
    pub fn item(&self) -> (&str, &Item) {
        match self {
            Write::Put(put) => (&put.table, &put.item),
            Write::Update(update) => (&update.table, &update.key),
            Write::Delete(delete) => (&delete.table, &delete.key),
            Write::Check { table, key, .. } => (table, key),
        }
    }
}

fn put(table: &Table, insert: &Insert, item: Item) -> Result<PutItem> {
    for attribute in table.key().attributes() {
        let Some(value) = item.get(&attribute.name) else {
            return Err(Error::validation(format!(
                "Key attribute should be present in the item: Key {}",
                attribute.name
            )));
        };
        check_type(attribute, Some(value))?;
    }
    let mut text = ExpressionText::new(&[]);
    let key = text.name(partition_key(table));
    Ok(PutItem {
        table: insert.table.clone(),
        item,
        condition: Some(Condition::Statement(format!("attribute_not_exists({key})"))),
        placeholders: text.placeholders(),
        ..PutItem::default()
    })
}

fn found<'e>(
    condition: Option<&'e Expr>,
    table: &Table,
    parameters: &[Value],
) -> Result<OneItem<'e>, Fault> {
    one_item(condition, table.key(), parameters).map_err(|fault| Fault::Item(fault.into()))
}

/// A condition that the item is there, and whatever else is asked.
fn existing(text: &mut ExpressionText<'_>, table: &Table, rest: &[&Expr]) -> Result<String> {
    let key = text.name(partition_key(table));
    let exists = format!("attribute_exists({key})");
    Ok(match rest {
        [] => exists,
        rest => format!("{exists} AND {}", text.conjunction(rest.iter().copied())?),
    })
}

/// An attribute that every item of the table has.
fn partition_key(table: &Table) -> &str {
    table.key().hash.first().map_or("", |attribute| &attribute.name)
}

fn return_values(returning: Option<Returning>) -> ReturnValues {
    match returning {
        None => ReturnValues::None,
        Some(Returning { modified: false, old: true }) => ReturnValues::AllOld,
        Some(Returning { modified: false, old: false }) => ReturnValues::AllNew,
        Some(Returning { modified: true, old: true }) => ReturnValues::UpdatedOld,
        Some(Returning { modified: true, old: false }) => ReturnValues::UpdatedNew,
    }
}

/// DynamoDB's PartiQL does not read indexes with several attributes in one part of their key.
pub(super) fn refuse_several_attributes(table: &Table, index: &str) -> Result<()> {
    let key = table.index(index).map(|index| &index.key);
    if key.is_some_and(|key| key.hash.len() > 1 || key.range.len() > 1) {
        return Err(Error::validation(
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or \
             multi-attribute RANGE keys.",
        ));
    }
    Ok(())
}
