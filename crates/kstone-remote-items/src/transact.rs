//! Transactions.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Get, Put, TransactGetItem, TransactWriteItem, Update,
};
use kstone_ports::items::{
    Projection, TransactAction, TransactGet, TransactGetOutput, TransactGetRequest, TransactKind,
    TransactWrite, TransactWriteOutput,
};
use kstone_ports::{Error, Result};

use crate::attempts::Repeat;
use crate::parts::{self, Asked};
use crate::store::RemoteItems;
use crate::value::{attributes, item_bytes};

impl RemoteItems {
    pub(crate) async fn get_together(&self, request: &TransactGet) -> Result<TransactGetOutput> {
        self.has_transactions()?;
        let gets = request.gets.iter().map(get).collect::<Result<Vec<_>>>()?;
        let ask = self
            .client
            .transact_get_items()
            .set_transact_items(Some(gets))
            .set_return_consumed_capacity(parts::capacity(request.capacity));
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        let responses = answer.responses.as_deref().unwrap_or_default();
        let items = responses
            .iter()
            // A missing item may come as no item or as one without attributes.
            .map(|response| response.item.as_ref().filter(|item| !item.is_empty()))
            .map(|item| item.map(item_bytes).transpose());
        let asked = Asked::reading(request.capacity).in_transaction();
        Ok(TransactGetOutput {
            items: items.collect::<Result<_>>()?,
            consumed: asked.consumed_all(answer.consumed_capacity.as_deref()),
        })
    }

    pub(crate) async fn write_together(
        &self,
        request: &TransactWrite,
    ) -> Result<TransactWriteOutput> {
        self.has_transactions()?;
        let actions = request.actions.iter().map(action).collect::<Result<Vec<_>>>()?;
        // Every attempt has the same token, so it is carried out once however often it is sent.
        let token = request.token.clone().unwrap_or_else(|| self.token());
        let ask = self
            .client
            .transact_write_items()
            .set_transact_items(Some(actions))
            .client_request_token(token)
            .set_return_consumed_capacity(parts::capacity(request.capacity))
            .set_return_item_collection_metrics(parts::metrics(request.collection_metrics));
        let answer = self.attempts.run(Repeat::WithToken, || ask.clone().send()).await?;
        let asked = Asked::writing(request.capacity).in_transaction();
        Ok(TransactWriteOutput {
            consumed: asked.consumed_all(answer.consumed_capacity.as_deref()),
            collections: parts::collections(answer.item_collection_metrics.as_ref())?,
        })
    }

    fn has_transactions(&self) -> Result<()> {
        match self.options.transactions {
            true => Ok(()),
            false => Err(Error::Unsupported(format!("{} has no transactions", self.options.url))),
        }
    }
}

fn get(request: &TransactGetRequest) -> Result<TransactGetItem> {
    let expression = match &request.projection {
        None => None,
        Some(Projection::Text(text)) => Some(text.clone()),
        Some(Projection::Attributes(_)) => {
            let message = "a read in a transaction takes a projection only as an expression";
            return Err(Error::Unsupported(message.to_owned()));
        }
    };
    let get = Get::builder()
        .table_name(&request.table)
        .set_key(Some(attributes(&request.key)))
        .set_projection_expression(expression)
        .set_expression_attribute_names(parts::names(&request.placeholders))
        .build()
        .map_err(incomplete)?;
    Ok(TransactGetItem::builder().get(get).build())
}

fn action(action: &TransactAction) -> Result<TransactWriteItem> {
    let condition = parts::condition(action.condition.as_ref())?;
    let names = parts::names(&action.placeholders);
    let values = parts::values(&action.placeholders);
    let on_failure = parts::on_failure(action.return_on_failure);
    let item = TransactWriteItem::builder();
    let item = match &action.kind {
        TransactKind::Check(key) => item.condition_check(
            ConditionCheck::builder()
                .table_name(&action.table)
                .set_key(Some(attributes(key)))
                .set_condition_expression(condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .set_return_values_on_condition_check_failure(on_failure)
                .build()
                .map_err(incomplete)?,
        ),
        TransactKind::Put(whole) => item.put(
            Put::builder()
                .table_name(&action.table)
                .set_item(Some(attributes(whole)))
                .set_condition_expression(condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .set_return_values_on_condition_check_failure(on_failure)
                .build()
                .map_err(incomplete)?,
        ),
        TransactKind::Delete(key) => item.delete(
            Delete::builder()
                .table_name(&action.table)
                .set_key(Some(attributes(key)))
                .set_condition_expression(condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .set_return_values_on_condition_check_failure(on_failure)
                .build()
                .map_err(incomplete)?,
        ),
        TransactKind::Update(key, update) => item.update(
            Update::builder()
                .table_name(&action.table)
                .set_key(Some(attributes(key)))
                .update_expression(parts::update(update)?)
                .set_condition_expression(condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .set_return_values_on_condition_check_failure(on_failure)
                .build()
                .map_err(incomplete)?,
        ),
    };
    Ok(item.build())
}

/// The SDK found that something is missing, such as a check's condition.
fn incomplete(error: BuildError) -> Error {
    Error::Invalid(error.to_string())
}
