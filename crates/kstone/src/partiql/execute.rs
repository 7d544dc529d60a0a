//! Runs statements: one, or a batch of them.

use crate::database::{Database, Reply};
use crate::error::{Error, Result};
use crate::expr::BoundCondition;
use crate::ops::binding::Unbound;
use crate::ops::{CapacityDetail, Condition, Consumed, GetItem, add_consumed};
use crate::partiql::ast::{Command, Expr};
use crate::partiql::prepare::{Prepared, Read, Write};
use crate::partiql::request::{
    Statement, StatementBatch, StatementBatchOutput, StatementError, StatementOutput,
    StatementResponse,
};
use crate::partiql::text::ExpressionText;
use crate::value::{Item, ItemBytes, Value};

/// The most statements of a batch.
const BATCH_MAX: usize = 25;

impl Database {
    /// Runs one PartiQL statement.
    ///
    /// ```
    /// use kstone::partiql::Statement;
    /// # use kstone::table::{KeyAttribute, KeySchema, KeyType, TableSpec};
    /// # let db = kstone::Database::memory()?;
    /// # let artist = KeyAttribute { name: "Artist".into(), kind: KeyType::S };
    /// # let key = KeySchema { hash: vec![artist], range: vec![] };
    /// # db.create_table(&TableSpec { name: "Music".into(), key, ..TableSpec::default() })?;
    /// let insert = Statement::new("INSERT INTO Music VALUE {'Artist': ?, 'Songs': 12}").with("No One");
    /// db.execute_statement(&insert).wait()?;
    /// let select = Statement::new("SELECT Songs FROM Music WHERE Artist = 'No One'");
    /// let found = db.execute_statement(&select).wait()?.items;
    /// assert_eq!(found[0].decode()?.get("Songs"), Some(&12.into()));
    /// # Ok::<(), kstone::Error>(())
    /// ```
    pub fn execute_statement(&self, request: &Statement) -> Reply<StatementOutput> {
        self.try_statement(request).unwrap_or_else(|error| Reply::ready(Err(plain(error))))
    }

    fn try_statement(&self, request: &Statement) -> Result<Reply<StatementOutput>> {
        if request.limit == Some(0) {
            return Err(Error::validation(
                "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: \
                 Member must have value greater than or equal to 1",
            ));
        }
        let prepared = Prepared::new(request)?;
        match &prepared.parsed.command {
            Command::Select(select) => {
                let output = self.select(request, &prepared, select)?;
                Ok(self.reply(Ok(output), self.engine().applied_seq()))
            }
            Command::Exists(_) => Err(Error::validation(
                "EXISTS can only be used in ExecuteTransaction write requests.",
            )),
            _ => {
                let write = self.prepare_write(&prepared, request.return_on_failure)?;
                Ok(self.write(write, request.capacity).map(|(item, consumed)| StatementOutput {
                    items: item.into_iter().collect(),
                    consumed,
                    ..StatementOutput::default()
                }))
            }
        }
    }

    /// Runs up to 25 statements, each for itself: one that fails does not stop the others.
    pub fn batch_execute_statement(&self, request: &StatementBatch) -> Reply<StatementBatchOutput> {
        match self.try_statement_batch(request) {
            Ok(output) => self.reply(Ok(output), self.engine().applied_seq()),
            Err(error) => Reply::ready(Err(plain(error))),
        }
    }

    fn try_statement_batch(&self, request: &StatementBatch) -> Result<StatementBatchOutput> {
        check_count("statements", request.statements.len(), BATCH_MAX)?;
        let prepared: Vec<Result<Prepared<'_>>> =
            request.statements.iter().map(Prepared::new).collect();
        let mut kinds = prepared.iter().flatten().map(Prepared::reads);
        if let Some(first) = kinds.next()
            && kinds.any(|kind| kind != first)
        {
            return Err(Error::validation(
                "Read and write requests together in the same batch is not supported.",
            ));
        }
        let planned: Vec<Result<Planned>> = request
            .statements
            .iter()
            .zip(prepared)
            .map(|(statement, prepared)| self.plan_member(statement, &prepared?))
            .collect();
        let mut places = Vec::with_capacity(planned.len());
        for planned in planned.iter().flatten() {
            let place = self.place(planned);
            if places.contains(&place) {
                return Err(Error::validation("Provided list of item keys contains duplicates"));
            }
            places.push(place);
        }
        let mut output = StatementBatchOutput::default();
        for (statement, planned) in request.statements.iter().zip(planned) {
            output.responses.push(match planned {
                Err(error) => StatementResponse {
                    table: None,
                    result: Err(StatementError::from(plain(error))),
                },
                Ok(planned) => {
                    let table = planned.table().to_owned();
                    let result = self.run_member(statement, planned, request.capacity);
                    let result = result.map(|(item, consumed)| {
                        if let Some(consumed) = consumed {
                            add_consumed(&mut output.consumed, consumed);
                        }
                        item
                    });
                    StatementResponse {
                        table: Some(table),
                        result: result.map_err(|error| StatementError::from(plain(error))),
                    }
                }
            });
        }
        Ok(output)
    }

    fn plan_member(&self, statement: &Statement, prepared: &Prepared<'_>) -> Result<Planned> {
        Ok(match &prepared.parsed.command {
            Command::Select(_) => {
                let table = prepared.table().to_owned();
                Planned::Read(table, self.prepare_read(prepared, "BatchExecuteStatement")?)
            }
            Command::Exists(_) => {
                return Err(Error::validation(
                    "EXISTS can only be used in ExecuteTransaction write requests.",
                ));
            }
            _ => Planned::Write(self.prepare_write(prepared, statement.return_on_failure)?),
        })
    }

    /// The table and key of what a statement is about.
    fn place(&self, planned: &Planned) -> (String, Item) {
        let (table, item) = match planned {
            Planned::Read(table, read) => (table.as_str(), &read.key),
            Planned::Write(write) => write.item(),
        };
        let schema = self.table_for_items(table);
        let is_key = |name: &str| schema.as_ref().is_ok_and(|schema| schema.key().contains(name));
        let key = item.iter().filter(|(name, _)| is_key(name));
        (table.to_owned(), key.map(|(name, value)| (name, value.clone())).collect())
    }

    fn run_member(
        &self,
        statement: &Statement,
        planned: Planned,
        capacity: CapacityDetail,
    ) -> Result<(Option<ItemBytes>, Option<Consumed>)> {
        match planned {
            Planned::Write(write) => self.write(write, capacity).early(),
            Planned::Read(table, Read { key, projection }) => {
                let request = GetItem {
                    table,
                    key,
                    consistent_read: statement.consistent_read,
                    capacity,
                    ..GetItem::default()
                };
                let output = self.get_item(&request).early()?;
                let item = output.item.map(|item| match &projection {
                    Some(projection) => projection.apply(item.as_ref()),
                    None => item,
                });
                Ok((item, output.consumed))
            }
        }
    }

    /// Does a write, and gives what it returns of the item.
    fn write(
        &self,
        write: Write,
        capacity: CapacityDetail,
    ) -> Reply<(Option<ItemBytes>, Option<Consumed>)> {
        match write {
            Write::Put(mut put) => {
                put.capacity = capacity;
                self.put_item(&put).map_result(|result| match result {
                    Ok(output) => Ok((None, output.consumed)),
                    Err(Error::ConditionFailed { .. }) => Err(Error::DuplicateItem),
                    Err(error) => Err(plain(error)),
                })
            }
            Write::Update(mut update) => {
                update.capacity = capacity;
                self.update_item(&update).map_result(|result| {
                    result.map(|output| (output.attributes, output.consumed)).map_err(plain)
                })
            }
            Write::Delete(mut delete) => {
                delete.capacity = capacity;
                self.delete_item(&delete).map_result(|result| {
                    result.map(|output| (output.attributes, output.consumed)).map_err(plain)
                })
            }
            Write::Check { .. } => Reply::ready(Err(Error::validation(
                "EXISTS can only be used in ExecuteTransaction write requests.",
            ))),
        }
    }

    /// A `WHERE` clause, ready to be asked about items.
    pub(super) fn bind_where(
        &self,
        condition: &Expr,
        parameters: &[Value],
    ) -> Result<Option<BoundCondition>> {
        let mut text = ExpressionText::new(parameters);
        let condition = Condition::Statement(text.condition(condition)?);
        let unbound = Unbound { filter: Some(&condition), ..Unbound::default() };
        Ok(self.bind(&unbound, &text.placeholders())?.condition)
    }
}

/// A statement of a batch that is ready to run.
enum Planned {
    Read(String, Read),
    Write(Write),
}

impl Planned {
    fn table(&self) -> &str {
        match self {
            Planned::Read(table, _) => table,
            Planned::Write(write) => write.item().0,
        }
    }
}

/// Refuses an empty or too long list of statements.
pub(super) fn check_count(name: &str, count: usize, max: usize) -> Result<()> {
    if (1..=max).contains(&count) {
        return Ok(());
    }
    let (value, bound) = match count {
        0 => ("Value '[]'", "greater than or equal to 1".to_owned()),
        _ => ("Value", format!("less than or equal to {max}")),
    };
    Err(Error::validation(format!(
        "1 validation error detected: {value} at '{name}' failed to satisfy constraint: Member \
         must have length {bound}"
    )))
}

/// An error without the name of an expression that the client did not write.
pub(super) fn plain(error: Error) -> Error {
    let Error::Validation(message) = &error else { return error };
    let detail = message
        .strip_prefix("Invalid ")
        .and_then(|rest| rest.split_once("Expression: "))
        .filter(|(kind, _)| ["Condition", "Filter", "Update"].contains(kind));
    match detail {
        Some((_, detail)) => Error::validation(detail),
        None => error,
    }
}
