//! Operations on one item.

use aws_sdk_dynamodb::types::{ConsumedCapacity, ItemCollectionMetrics};
use kstone_ports::Result;
use kstone_ports::items::{
    CapacityDetail, DeleteItem, GetItem, GetItemOutput, PutItem, UpdateItem, WriteOutput,
};

use crate::attempts::Repeat;
use crate::parts::{self, Asked};
use crate::store::RemoteItems;
use crate::value::{Attributes, attributes, item_bytes};

impl RemoteItems {
    pub(crate) async fn get_item(&self, request: &GetItem) -> Result<GetItemOutput> {
        let (expression, names) = parts::projection(request.projection.as_ref());
        let ask = self
            .client
            .get_item()
            .table_name(&request.table)
            .set_key(Some(attributes(&request.key)))
            .set_projection_expression(expression)
            .set_attributes_to_get(names)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .consistent_read(request.consistent_read)
            .set_return_consumed_capacity(parts::capacity(request.capacity));
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        let asked = Asked::reading(request.capacity);
        Ok(GetItemOutput {
            item: answer.item.as_ref().map(item_bytes).transpose()?,
            consumed: answer.consumed_capacity.as_ref().map(|it| asked.consumed(it)),
        })
    }

    pub(crate) async fn put_item(&self, request: &PutItem) -> Result<WriteOutput> {
        let ask = self
            .client
            .put_item()
            .table_name(&request.table)
            .set_item(Some(attributes(&request.item)))
            .set_condition_expression(parts::condition(request.condition.as_ref())?)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .set_expression_attribute_values(parts::values(&request.placeholders))
            .set_return_values(parts::return_values(request.return_values))
            .set_return_values_on_condition_check_failure(parts::on_failure(
                request.return_on_failure,
            ))
            .set_return_consumed_capacity(parts::capacity(request.capacity))
            .set_return_item_collection_metrics(parts::metrics(request.collection_metrics));
        let answer = self.attempts.run(Repeat::Write, || ask.clone().send()).await?;
        Written {
            attributes: answer.attributes,
            consumed: answer.consumed_capacity,
            collection: answer.item_collection_metrics,
        }
        .output(&request.table, request.capacity)
    }

    pub(crate) async fn update_item(&self, request: &UpdateItem) -> Result<WriteOutput> {
        let update = request.update.as_ref().map(parts::update).transpose()?;
        let ask = self
            .client
            .update_item()
            .table_name(&request.table)
            .set_key(Some(attributes(&request.key)))
            .set_update_expression(update)
            .set_condition_expression(parts::condition(request.condition.as_ref())?)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .set_expression_attribute_values(parts::values(&request.placeholders))
            .set_return_values(parts::return_values(request.return_values))
            .set_return_values_on_condition_check_failure(parts::on_failure(
                request.return_on_failure,
            ))
            .set_return_consumed_capacity(parts::capacity(request.capacity))
            .set_return_item_collection_metrics(parts::metrics(request.collection_metrics));
        let answer = self.attempts.run(Repeat::Write, || ask.clone().send()).await?;
        Written {
            attributes: answer.attributes,
            consumed: answer.consumed_capacity,
            collection: answer.item_collection_metrics,
        }
        .output(&request.table, request.capacity)
    }

    pub(crate) async fn delete_item(&self, request: &DeleteItem) -> Result<WriteOutput> {
        let ask = self
            .client
            .delete_item()
            .table_name(&request.table)
            .set_key(Some(attributes(&request.key)))
            .set_condition_expression(parts::condition(request.condition.as_ref())?)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .set_expression_attribute_values(parts::values(&request.placeholders))
            .set_return_values(parts::return_values(request.return_values))
            .set_return_values_on_condition_check_failure(parts::on_failure(
                request.return_on_failure,
            ))
            .set_return_consumed_capacity(parts::capacity(request.capacity))
            .set_return_item_collection_metrics(parts::metrics(request.collection_metrics));
        let answer = self.attempts.run(Repeat::Write, || ask.clone().send()).await?;
        Written {
            attributes: answer.attributes,
            consumed: answer.consumed_capacity,
            collection: answer.item_collection_metrics,
        }
        .output(&request.table, request.capacity)
    }
}

/// What the three writes of one item answer.
struct Written {
    attributes: Option<Attributes>,
    consumed: Option<ConsumedCapacity>,
    collection: Option<ItemCollectionMetrics>,
}

impl Written {
    fn output(self, table: &str, detail: CapacityDetail) -> Result<WriteOutput> {
        let collection = self.collection.map(|it| parts::collection(table, &it)).transpose()?;
        let asked = Asked::writing(detail);
        Ok(WriteOutput {
            attributes: self.attributes.as_ref().map(item_bytes).transpose()?,
            consumed: self.consumed.map(|it| asked.consumed(&it)),
            collection: collection.flatten(),
        })
    }
}
