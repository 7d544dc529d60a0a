//! ListStreams, DescribeStream, GetShardIterator and GetRecords: DynamoDB Streams.

use kstone::stream::{ChangeKind, Shard, ShardPosition, StreamName, StreamRecord};

use super::description::{stream_arn, stream_view, write_key_schema};
use super::{Context, Response, parameters};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::JsonWriter;

/// How many streams, shards or records a page has if the client does not say.
const PAGE_STREAMS: usize = 100;
const PAGE_SHARDS: usize = 100;
const PAGE_RECORDS: usize = 1000;
/// The version of the record format that has `ApproximateCreationDateTime`.
const EVENT_VERSION: &str = "1.1";

pub(super) fn list(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let after = json.text("ExclusiveStartStreamArn").map(stream_of).transpose()?;
    let table = json.text("TableName").map(parameters::table_of);
    let limit = limit(json, PAGE_STREAMS);
    let (names, has_more) = context.database.list_streams(table, after.as_ref(), limit);
    let arn = |name: &StreamName| stream_arn(&context.region, &name.table, &name.label);
    Response::ready(|out| {
        out.name("Streams").list(&names, |out, name| {
            out.object(|out| {
                out.text_member("StreamArn", &arn(name));
                out.text_member("TableName", &name.table);
                out.text_member("StreamLabel", &name.label);
            });
        });
        if let Some(last) = names.last().filter(|_| has_more) {
            out.text_member("LastEvaluatedStreamArn", &arn(last));
        }
    })
}

pub(super) fn describe(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let name = stream_of(json.text("StreamArn").unwrap_or_default())?;
    let after = json.text("ExclusiveStartShardId");
    let mut stream = context.database.describe_stream(&name, after, limit(json, PAGE_SHARDS))?;
    if json.get("ShardFilter").is_some_and(|filter| filter.text("ShardId").is_some()) {
        // All shards exist from the beginning of a stream, so none is the child of another.
        (stream.shards, stream.more) = (Vec::new(), false);
    }
    Response::ready(|out| {
        out.object_member("StreamDescription", |out| {
            let StreamName { table, label } = &stream.name;
            out.text_member("StreamArn", &stream_arn(&context.region, table, label));
            out.text_member("StreamLabel", label);
            out.text_member("StreamStatus", if stream.open { "ENABLED" } else { "DISABLED" });
            out.text_member("StreamViewType", stream_view(stream.view));
            out.name("CreationRequestDateTime").time(stream.created_ms);
            out.text_member("TableName", table);
            write_key_schema(out, &stream.key);
            out.name("Shards").list(&stream.shards, write_shard);
            if let Some(last) = stream.shards.last().filter(|_| stream.more) {
                out.text_member("LastEvaluatedShardId", &last.id);
            }
        });
    })
}

pub(super) fn shard_iterator(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let name = stream_of(json.text("StreamArn").unwrap_or_default())?;
    let number = json.text("SequenceNumber");
    let kind = json.text("ShardIteratorType").unwrap_or_default();
    let position = match (kind, number) {
        ("TRIM_HORIZON", None) => ShardPosition::TrimHorizon,
        ("LATEST", None) => ShardPosition::Latest,
        ("AT_SEQUENCE_NUMBER", Some(number)) => ShardPosition::At(number),
        ("AFTER_SEQUENCE_NUMBER", Some(number)) => ShardPosition::After(number),
        (_, None) => {
            return Err(Fault::validation(format!(
                "SequenceNumber is required when ShardIteratorType is {kind}"
            )));
        }
        (_, Some(_)) => {
            return Err(Fault::validation(format!(
                "SequenceNumber must not be specified when ShardIteratorType is {kind}"
            )));
        }
    };
    let shard = json.text("ShardId").unwrap_or_default();
    let iterator = context.database.shard_iterator(&name, shard, position)?;
    Response::ready(|out| out.text_member("ShardIterator", &iterator))
}

pub(super) fn records(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let iterator = json.text("ShardIterator").unwrap_or_default();
    let page = context.database.stream_records(iterator, limit(json, PAGE_RECORDS));
    Response::when_durable(page, |out, page| {
        out.name("Records").list(&page.records, |out, record| {
            write_record(out, record, &context.region);
        });
        if let Some(next) = &page.next_iterator {
            out.text_member("NextShardIterator", next);
        }
    })
}

fn limit(json: &Json<'_>, otherwise: usize) -> usize {
    let given = json.integer("Limit").and_then(|limit| usize::try_from(limit).ok());
    given.unwrap_or(otherwise).min(otherwise)
}

/// The stream that an ARN names: `…:table/NAME/stream/LABEL`.
fn stream_of(arn: &str) -> Result<StreamName, Fault> {
    let names = arn.split_once(":table/").and_then(|(_, rest)| rest.split_once("/stream/"));
    match names {
        Some((table, label)) if arn.starts_with("arn:") => {
            Ok(StreamName { table: table.to_owned(), label: label.to_owned() })
        }
        _ => Err(Fault::validation("Invalid StreamArn")),
    }
}

fn write_shard(out: &mut JsonWriter, shard: &Shard) {
    out.object(|out| {
        out.text_member("ShardId", &shard.id);
        out.object_member("SequenceNumberRange", |out| {
            out.text_member("StartingSequenceNumber", &shard.first);
            if let Some(last) = &shard.last {
                out.text_member("EndingSequenceNumber", last);
            }
        });
    });
}

fn write_record(out: &mut JsonWriter, record: &StreamRecord, region: &str) {
    out.object(|out| {
        out.text_member("eventID", &record.event_id);
        let kind = match record.kind {
            ChangeKind::Insert => "INSERT",
            ChangeKind::Modify => "MODIFY",
            ChangeKind::Remove => "REMOVE",
        };
        out.text_member("eventName", kind);
        out.text_member("eventVersion", EVENT_VERSION);
        out.text_member("eventSource", "aws:dynamodb");
        out.text_member("awsRegion", region);
        out.object_member("dynamodb", |out| {
            // Whole seconds, as AWS gives them.
            out.name("ApproximateCreationDateTime").integer(record.created_ms / 1000);
            out.name("Keys").item(&record.keys);
            if let Some(new) = &record.new {
                out.name("NewImage").item(new);
            }
            if let Some(old) = &record.old {
                out.name("OldImage").item(old);
            }
            out.text_member("SequenceNumber", &record.sequence_number);
            out.name("SizeBytes").integer(record.size_bytes as u64);
            out.text_member("StreamViewType", stream_view(record.view));
        });
        if record.by_expiry {
            out.object_member("userIdentity", |out| {
                out.text_member("PrincipalId", "dynamodb.amazonaws.com");
                out.text_member("Type", "Service");
            });
        }
    });
}
