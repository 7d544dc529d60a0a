//! Runs transactions of statements, as the transactions of items that they stand for.

use crate::database::{Database, Reply};
use crate::error::{CancellationCode, CancellationReason, Error, Result};
use crate::ops::{TransactGet, TransactGetRequest, TransactWrite};
use crate::partiql::ast::Command;
use crate::partiql::execute::{check_count, plain};
use crate::partiql::prepare::{Fault, Prepared};
use crate::partiql::request::{
    Statement, StatementTransaction, StatementTransactionOutput as Output,
};

/// The most statements of a transaction.
const TRANSACTION_MAX: usize = 100;

impl Database {
    /// Runs up to 100 statements, all or nothing: all of them read, or all of them write or
    /// check.
    pub fn execute_transaction(&self, request: &StatementTransaction) -> Reply<Output> {
        self.try_transaction(request).unwrap_or_else(|error| Reply::ready(Err(error)))
    }

    fn try_transaction(&self, request: &StatementTransaction) -> Result<Reply<Output>> {
        check_count("transactStatements", request.statements.len(), TRANSACTION_MAX)?;
        let mut prepared = Vec::with_capacity(request.statements.len());
        for (at, statement) in request.statements.iter().enumerate() {
            prepared.push(prepare(statement).map_err(|error| at_statement(at, error))?);
        }
        let mut kinds = prepared.iter().map(Prepared::reads);
        let reads = kinds.next().unwrap_or_default();
        if kinds.any(|kind| kind != reads) {
            return Err(Error::validation(
                "ExecuteTransaction API does not support both read and write operations in the \
                 same request.",
            ));
        }
        if reads {
            self.read_transaction(request, &prepared)
        } else {
            self.write_transaction(request, &prepared)
        }
    }

    fn read_transaction(
        &self,
        request: &StatementTransaction,
        prepared: &[Prepared<'_>],
    ) -> Result<Reply<Output>> {
        let mut reasons = Reasons::new(prepared.len());
        let mut projections = Vec::with_capacity(prepared.len());
        let mut gets = Vec::with_capacity(prepared.len());
        for (at, prepared) in prepared.iter().enumerate() {
            let read = self.prepare_read(prepared, "ExecuteTransaction");
            let Some(read) = reasons.take(at, read)? else { continue };
            projections.push(read.projection);
            gets.push(TransactGetRequest {
                table: prepared.table().to_owned(),
                key: read.key,
                ..TransactGetRequest::default()
            });
        }
        reasons.check()?;
        let get = TransactGet { gets, capacity: request.capacity };
        Ok(self.transact_get(&get).map(|output| {
            let items = output.items.into_iter().zip(projections);
            let items = items.map(|(item, projection)| match projection {
                Some(projection) => item.map(|item| projection.apply(item.as_ref())),
                None => item,
            });
            Output { items: items.collect(), consumed: output.consumed }
        }))
    }

    fn write_transaction(
        &self,
        request: &StatementTransaction,
        prepared: &[Prepared<'_>],
    ) -> Result<Reply<Output>> {
        let mut reasons = Reasons::new(prepared.len());
        let mut actions = Vec::with_capacity(prepared.len());
        let mut inserts = Vec::with_capacity(prepared.len());
        for (at, (prepared, statement)) in prepared.iter().zip(&request.statements).enumerate() {
            let write = self.prepare_write(prepared, statement.return_on_failure);
            let Some(write) = reasons.take(at, write)? else { continue };
            let action = write.into_action(statement.return_on_failure);
            self.check_action(&action).map_err(|error| at_statement(at, error))?;
            actions.push(action);
            inserts.push(matches!(prepared.parsed.command, Command::Insert(_)));
        }
        reasons.check()?;
        let write = TransactWrite {
            actions,
            token: request.token.clone(),
            capacity: request.capacity,
            collection_metrics: false,
        };
        Ok(self.transact_write(&write).map_result(|result| match result {
            Ok(output) => Ok(Output { items: Vec::new(), consumed: output.consumed }),
            Err(Error::TransactionCanceled { mut reasons }) => {
                for (reason, insert) in reasons.iter_mut().zip(inserts) {
                    explain(reason, insert);
                }
                Err(Error::TransactionCanceled { reasons })
            }
            Err(error) => Err(plain(error)),
        }))
    }
}

/// A statement of a transaction, with the errors that can be found in it alone.
fn prepare(statement: &Statement) -> Result<Prepared<'_>> {
    let prepared = Prepared::new(statement)?;
    let returns = match &prepared.parsed.command {
        Command::Update(update) => update.returning.is_some(),
        Command::Delete(delete) => delete.returning.is_some(),
        _ => false,
    };
    if returns {
        return Err(Error::validation("RETURNING clause is not supported in ExecuteTransaction."));
    }
    if let Command::Select(select) = &prepared.parsed.command
        && select.source.index.is_some()
    {
        return Err(Error::validation("Reads on indices are not supported within transactions."));
    }
    Ok(prepared)
}

/// Says which statement is wrong as it stands.
fn at_statement(at: usize, error: Error) -> Error {
    match plain(error) {
        Error::Validation(message) => {
            Error::validation(format!("Validation failed in TransactStatements[{at}]: {message}"))
        }
        other => other,
    }
}

/// Gives a reason the words that fit its statement.
fn explain(reason: &mut CancellationReason, insert: bool) {
    match reason.code {
        CancellationCode::ConditionalCheckFailed if insert => {
            *reason = CancellationReason {
                code: CancellationCode::DuplicateItem,
                message: Some(Error::DuplicateItem.to_string()),
                item: None,
            };
        }
        CancellationCode::ValidationError => {
            let message = reason.message.take().unwrap_or_default();
            reason.message = Some(plain(Error::Validation(message)).to_string());
        }
        _ => {}
    }
}

/// Why statements do not fit their tables.
struct Reasons(Vec<CancellationReason>);

impl Reasons {
    fn new(statements: usize) -> Self {
        Reasons(vec![CancellationReason::none(); statements])
    }

    /// What a statement stands for, or `None` and a note of why it is nothing.
    fn take<T>(&mut self, at: usize, found: Result<T, Fault>) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Fault::Statement(error)) => Err(at_statement(at, error)),
            Err(Fault::Item(Error::Validation(message))) => {
                if let Some(reason) = self.0.get_mut(at) {
                    reason.code = CancellationCode::ValidationError;
                    reason.message = Some(message);
                }
                Ok(None)
            }
            Err(Fault::Item(error)) => Err(error),
        }
    }

    fn check(self) -> Result<()> {
        if self.0.iter().all(|reason| reason.code == CancellationCode::None) {
            return Ok(());
        }
        Err(Error::TransactionCanceled { reasons: self.0 })
    }
}
