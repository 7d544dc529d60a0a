//! ExecuteStatement, BatchExecuteStatement and ExecuteTransaction: PartiQL.

use kstone::partiql::{
    Statement, StatementBatch, StatementError, StatementResponse, StatementTransaction,
};

use super::capacity::{self, CapacityFields};
use super::parameters::{self, TableNames};
use super::transact_get_items::write_items;
use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::{JsonWriter, read_values};

pub(super) fn execute(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let statement = Statement {
        limit: parameters::limit(json),
        next_token: parameters::text(json, "NextToken"),
        capacity: parameters::capacity(json),
        ..statement(json)?
    };
    Response::when_durable(context.database.execute_statement(&statement), |out, output| {
        out.name("Items").items(&output.items);
        if let Some(token) = &output.next_token {
            out.text_member("NextToken", token);
        }
        if let Some(key) = &output.last_evaluated_key {
            out.name("LastEvaluatedKey").tree(key);
        }
        capacity::write(out, output.consumed.as_ref(), json);
    })
}

pub(super) fn batch(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let batch = StatementBatch {
        statements: statements(json, "Statements")?,
        capacity: parameters::capacity(json),
    };
    Response::when_durable(context.database.batch_execute_statement(&batch), |out, output| {
        out.name("Responses").list(&output.responses, write_response);
        capacity::write_all(out, &output.consumed, &TableNames::default(), CapacityFields::Units);
    })
}

pub(super) fn transaction(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let transaction = StatementTransaction {
        statements: statements(json, "TransactStatements")?,
        token: parameters::text(json, "ClientRequestToken"),
        capacity: parameters::capacity(json),
    };
    Response::when_durable(context.database.execute_transaction(&transaction), |out, output| {
        write_items(out, &output.items);
        capacity::write_all(
            out,
            &output.consumed,
            &TableNames::default(),
            CapacityFields::UnitsByKind,
        );
    })
}

fn statements(json: &Json<'_>, name: &str) -> Result<Vec<Statement>, Fault> {
    json.get(name).map_or(&[][..], Json::elements).iter().map(statement).collect()
}

fn statement(json: &Json<'_>) -> Result<Statement, Fault> {
    Ok(Statement {
        text: parameters::text(json, "Statement").unwrap_or_default(),
        parameters: json.get("Parameters").map(read_values).transpose()?,
        consistent_read: parameters::consistent_read(json),
        return_on_failure: parameters::return_on_failure(json),
        ..Statement::default()
    })
}

fn write_response(out: &mut JsonWriter, response: &StatementResponse) {
    out.object(|out| {
        match &response.result {
            Ok(None) => {}
            Ok(Some(item)) => out.name("Item").item(item),
            Err(StatementError { code, message, item }) => out.object_member("Error", |out| {
                out.text_member("Code", code);
                out.text_member("Message", message);
                if let Some(item) = item {
                    out.name("Item").item(item);
                }
            }),
        }
        if let Some(table) = &response.table {
            out.text_member("TableName", table);
        }
    });
}
