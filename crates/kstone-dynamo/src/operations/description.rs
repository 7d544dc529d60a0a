//! Writes the description of a table, and the ARNs in it.

use kstone::table::{
    IndexProjection, IndexSpec, IndexState, KeySchema, Status, StreamView, TableDescription,
    Throughput,
};

use crate::wire::JsonWriter;

/// The account in ARNs: they need one, though the server has no accounts.
const ACCOUNT: &str = "000000000000";

/// The ARN of a table.
pub(super) fn table_arn(region: &str, table: &str) -> String {
    format!("arn:aws:dynamodb:{region}:{ACCOUNT}:table/{table}")
}

/// The ARN of a stream, which its table and its label name.
pub(super) fn stream_arn(region: &str, table: &str, label: &str) -> String {
    format!("{}/stream/{label}", table_arn(region, table))
}

/// DynamoDB's name for a view type of a stream.
pub(super) fn stream_view(view: StreamView) -> &'static str {
    match view {
        StreamView::KeysOnly => "KEYS_ONLY",
        StreamView::NewImage => "NEW_IMAGE",
        StreamView::OldImage => "OLD_IMAGE",
        StreamView::NewAndOldImages => "NEW_AND_OLD_IMAGES",
    }
}

/// Writes a table description.
pub(super) fn write(out: &mut JsonWriter, table: &TableDescription, region: &str) {
    let spec = &table.spec;
    let arn = table_arn(region, &spec.name);
    out.object(|out| {
        out.name("AttributeDefinitions").list(spec.attribute_definitions(), |out, attribute| {
            out.object(|out| {
                out.text_member("AttributeName", &attribute.name);
                out.text_member("AttributeType", attribute.kind.name());
            });
        });
        out.text_member("TableName", &spec.name);
        write_key_schema(out, &spec.key);
        out.text_member("TableStatus", status(table.status));
        out.name("CreationDateTime").time(table.created_ms);
        write_throughput(out, spec.throughput, table.throughput_changed_ms);
        out.name("TableSizeBytes").integer(table.bytes);
        out.name("ItemCount").integer(table.items);
        out.text_member("TableArn", &arn);
        out.text_member("TableId", &table.id);
        if spec.throughput.is_none() {
            out.object_member("BillingModeSummary", |out| {
                out.text_member("BillingMode", "PAY_PER_REQUEST");
                if let Some(since_ms) = table.on_demand_since_ms {
                    out.name("LastUpdateToPayPerRequestDateTime").time(since_ms);
                }
            });
        }
        write_indexes(out, "LocalSecondaryIndexes", &spec.local, &table.local, &arn);
        write_indexes(out, "GlobalSecondaryIndexes", &spec.global, &table.global, &arn);
        if let Some(view) = spec.stream {
            out.object_member("StreamSpecification", |out| {
                out.name("StreamEnabled").boolean(true);
                out.text_member("StreamViewType", stream_view(view));
            });
        }
        if let Some(label) = &table.stream_label {
            out.text_member("LatestStreamLabel", label);
            out.text_member("LatestStreamArn", &stream_arn(region, &spec.name, label));
        }
        if spec.encryption == Some(true) {
            out.object_member("SSEDescription", |out| {
                out.text_member("Status", "ENABLED");
                out.text_member("SSEType", "KMS");
                let key = format!("arn:aws:kms:{region}:{ACCOUNT}:key/{}", table.id);
                out.text_member("KMSMasterKeyArn", &key);
            });
        }
        if let Some(class) = &spec.table_class {
            out.object_member("TableClassSummary", |out| out.text_member("TableClass", class));
        }
        out.name("DeletionProtectionEnabled").boolean(spec.deletion_protection);
        if let Some((read, write)) = spec.on_demand {
            out.object_member("OnDemandThroughput", |out| {
                let limits = [("MaxReadRequestUnits", read), ("MaxWriteRequestUnits", write)];
                for (name, limit) in limits {
                    if let Some(limit) = limit {
                        out.name(name).integer(limit);
                    }
                }
            });
        }
        write_warm_throughput(out, spec.throughput);
    });
}

pub(super) fn write_key_schema(out: &mut JsonWriter, key: &KeySchema) {
    let hash = key.hash.iter().map(|attribute| (attribute, "HASH"));
    let range = key.range.iter().map(|attribute| (attribute, "RANGE"));
    out.name("KeySchema").list(hash.chain(range), |out, (attribute, kind)| {
        out.object(|out| {
            out.text_member("AttributeName", &attribute.name);
            out.text_member("KeyType", kind);
        });
    });
}

/// Writes `ProvisionedThroughput`: zero for a table on demand.
fn write_throughput(out: &mut JsonWriter, units: Option<Throughput>, changed_ms: [Option<u64>; 2]) {
    let units = units.unwrap_or_default();
    out.object_member("ProvisionedThroughput", |out| {
        let times = ["LastIncreaseDateTime", "LastDecreaseDateTime"].into_iter().zip(changed_ms);
        for (name, changed_ms) in times {
            if let Some(changed_ms) = changed_ms {
                out.name(name).time(changed_ms);
            }
        }
        out.name("NumberOfDecreasesToday").integer(0);
        out.name("ReadCapacityUnits").integer(units.read);
        out.name("WriteCapacityUnits").integer(units.write);
    });
}

/// Writes `WarmThroughput`, which a table can serve at once: its provisioned throughput, or what AWS
/// gives every table on demand.
fn write_warm_throughput(out: &mut JsonWriter, units: Option<Throughput>) {
    let units = units.unwrap_or(Throughput { read: 12_000, write: 4_000 });
    out.object_member("WarmThroughput", |out| {
        out.name("ReadUnitsPerSecond").integer(units.read);
        out.name("WriteUnitsPerSecond").integer(units.write);
        out.text_member("Status", "ACTIVE");
    });
}

fn write_indexes(
    out: &mut JsonWriter,
    name: &str,
    specs: &[IndexSpec],
    states: &[IndexState],
    table_arn: &str,
) {
    if specs.is_empty() {
        return;
    }
    let is_global = name.starts_with("Global");
    out.name(name).list(specs.iter().zip(states), |out, (spec, state)| {
        out.object(|out| {
            out.text_member("IndexName", &spec.name);
            write_key_schema(out, &spec.key);
            write_projection(out, &spec.projection);
            if is_global {
                out.text_member("IndexStatus", status(state.status));
                if state.backfilled.is_some() {
                    out.name("Backfilling").boolean(true);
                }
                write_throughput(out, spec.throughput, [None, None]);
                write_warm_throughput(out, spec.throughput);
            }
            out.name("IndexSizeBytes").integer(state.bytes);
            out.name("ItemCount").integer(state.items);
            out.text_member("IndexArn", &format!("{table_arn}/index/{}", spec.name));
        });
    });
}

fn write_projection(out: &mut JsonWriter, projection: &IndexProjection) {
    out.object_member("Projection", |out| match projection {
        IndexProjection::All => out.text_member("ProjectionType", "ALL"),
        IndexProjection::KeysOnly => out.text_member("ProjectionType", "KEYS_ONLY"),
        IndexProjection::Include(names) => {
            out.text_member("ProjectionType", "INCLUDE");
            out.name("NonKeyAttributes").list(names, |out, name| out.text(name));
        }
    });
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Creating => "CREATING",
        Status::Active => "ACTIVE",
        Status::Updating => "UPDATING",
        Status::Deleting => "DELETING",
    }
}
