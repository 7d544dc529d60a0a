//! Queries and scans: one page each.

use aws_sdk_dynamodb::types::{ConsumedCapacity, Select as SdkSelect};
use kstone_ports::items::{CapacityDetail, Query, QueryOutput, Scan, Select};
use kstone_ports::{Error, Result};

use crate::attempts::Repeat;
use crate::parts::{self, Asked};
use crate::store::RemoteItems;
use crate::value::{Attributes, attributes, item, item_bytes};

impl RemoteItems {
    pub(crate) async fn query_page(&self, request: &Query) -> Result<QueryOutput> {
        let (expression, names) = parts::projection(request.projection.as_ref());
        let ask = self
            .client
            .query()
            .table_name(&request.table)
            .set_index_name(request.index.clone())
            .set_key_condition_expression(parts::key_condition(request.key_condition.as_ref())?)
            .set_filter_expression(parts::condition(request.filter.as_ref())?)
            .set_projection_expression(expression)
            .set_attributes_to_get(names)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .set_expression_attribute_values(parts::values(&request.placeholders))
            .set_select(request.select.map(select))
            .set_limit(request.limit.map(number).transpose()?)
            .set_exclusive_start_key(request.start.as_ref().map(attributes))
            .scan_index_forward(!request.backward)
            .consistent_read(request.consistent_read)
            .set_return_consumed_capacity(parts::capacity(request.capacity));
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        Page {
            items: answer.items,
            counts: (answer.count, answer.scanned_count),
            next: answer.last_evaluated_key,
            consumed: answer.consumed_capacity,
        }
        .output(request.select, request.capacity)
    }

    pub(crate) async fn scan_page(&self, request: &Scan) -> Result<QueryOutput> {
        let (expression, names) = parts::projection(request.projection.as_ref());
        let segment = request.segment;
        let ask = self
            .client
            .scan()
            .table_name(&request.table)
            .set_index_name(request.index.clone())
            .set_filter_expression(parts::condition(request.filter.as_ref())?)
            .set_projection_expression(expression)
            .set_attributes_to_get(names)
            .set_expression_attribute_names(parts::names(&request.placeholders))
            .set_expression_attribute_values(parts::values(&request.placeholders))
            .set_select(request.select.map(select))
            .set_limit(request.limit.map(number).transpose()?)
            .set_exclusive_start_key(request.start.as_ref().map(attributes))
            .set_segment(segment.map(|it| number(it.index)).transpose()?)
            .set_total_segments(segment.map(|it| number(it.total)).transpose()?)
            .consistent_read(request.consistent_read)
            .set_return_consumed_capacity(parts::capacity(request.capacity));
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        Page {
            items: answer.items,
            counts: (answer.count, answer.scanned_count),
            next: answer.last_evaluated_key,
            consumed: answer.consumed_capacity,
        }
        .output(request.select, request.capacity)
    }
}

/// What both answer.
struct Page {
    items: Option<Vec<Attributes>>,
    counts: (i32, i32),
    next: Option<Attributes>,
    consumed: Option<ConsumedCapacity>,
}

impl Page {
    fn output(self, select: Option<Select>, detail: CapacityDetail) -> Result<QueryOutput> {
        let items = match select {
            Some(Select::Count) => None,
            _ => {
                let items = self.items.as_deref().unwrap_or_default().iter();
                Some(items.map(item_bytes).collect::<Result<_>>()?)
            }
        };
        let asked = Asked::reading(detail);
        Ok(QueryOutput {
            items,
            count: self.counts.0.unsigned_abs(),
            scanned: self.counts.1.unsigned_abs(),
            next: self.next.as_ref().map(item).transpose()?,
            consumed: self.consumed.map(|it| asked.consumed(&it)),
        })
    }
}

fn select(select: Select) -> SdkSelect {
    match select {
        Select::AllAttributes => SdkSelect::AllAttributes,
        Select::AllProjectedAttributes => SdkSelect::AllProjectedAttributes,
        Select::SpecificAttributes => SdkSelect::SpecificAttributes,
        Select::Count => SdkSelect::Count,
    }
}

fn number(number: u32) -> Result<i32> {
    let too_large =
        |_| Error::Invalid(format!("{number} is beyond what DynamoDB's protocol takes"));
    i32::try_from(number).map_err(too_large)
}
