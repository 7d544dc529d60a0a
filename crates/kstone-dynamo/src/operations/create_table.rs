//! CreateTable. The request is passed on as it is: the database refuses contradictions in it.

use kstone::table::{
    BillingMode, KeyAttribute, KeyElement, KeyRole, KeyType, ProjectionType, RawIndex, RawStream,
    RawTable, StreamView, Throughput,
};

use super::{Context, Response, description, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let requested = RawTable {
        name: parameters::table_name(json),
        attributes: attributes(json).unwrap_or_default(),
        key: key(json),
        local: indexes(json, "LocalSecondaryIndexes"),
        global: indexes(json, "GlobalSecondaryIndexes"),
        billing: billing(json),
        throughput: throughput(json),
        on_demand: on_demand(json),
        stream: stream(json),
        encryption: encryption(json),
        deletion_protection: json.boolean("DeletionProtectionEnabled").unwrap_or(false),
        table_class: parameters::text(json, "TableClass"),
        tags: tags(json),
    };
    let table = context.database.create_table(&requested.resolve()?)?;
    Response::ready(|out| {
        out.name("TableDescription");
        description::write(out, &table, &context.region);
    })
}

fn indexes(json: &Json<'_>, name: &str) -> Option<Vec<RawIndex>> {
    Some(json.get(name)?.elements().iter().map(index).collect())
}

/// An index to create.
pub(super) fn index(json: &Json<'_>) -> RawIndex {
    let projection = json.get("Projection").unwrap_or(&Json::Null);
    let names = projection.get("NonKeyAttributes").map(Json::elements);
    RawIndex {
        name: parameters::text(json, "IndexName").unwrap_or_default(),
        key: key(json),
        projection: projection.text("ProjectionType").map(|kind| match kind {
            "KEYS_ONLY" => ProjectionType::KeysOnly,
            "INCLUDE" => ProjectionType::Include,
            _ => ProjectionType::All,
        }),
        non_key: names
            .map(|names| names.iter().filter_map(Json::as_str).map(str::to_owned).collect()),
        throughput: throughput(json),
    }
}

fn key(json: &Json<'_>) -> Vec<KeyElement> {
    let element = |json: &Json<'_>| KeyElement {
        name: parameters::text(json, "AttributeName").unwrap_or_default(),
        role: match json.text("KeyType") {
            Some("RANGE") => KeyRole::Range,
            _ => KeyRole::Hash,
        },
    };
    json.get("KeySchema").map_or(&[][..], Json::elements).iter().map(element).collect()
}

/// `AttributeDefinitions`.
pub(super) fn attributes(json: &Json<'_>) -> Option<Vec<KeyAttribute>> {
    let attribute = |json: &Json<'_>| KeyAttribute {
        name: parameters::text(json, "AttributeName").unwrap_or_default(),
        kind: match json.text("AttributeType") {
            Some("N") => KeyType::N,
            Some("B") => KeyType::B,
            _ => KeyType::S,
        },
    };
    Some(json.get("AttributeDefinitions")?.elements().iter().map(attribute).collect())
}

/// `BillingMode`.
pub(super) fn billing(json: &Json<'_>) -> Option<BillingMode> {
    json.text("BillingMode").map(|mode| match mode {
        "PAY_PER_REQUEST" => BillingMode::PayPerRequest,
        _ => BillingMode::Provisioned,
    })
}

/// `ProvisionedThroughput` of a table or an index.
pub(super) fn throughput(json: &Json<'_>) -> Option<Throughput> {
    let json = json.get("ProvisionedThroughput")?;
    // Constraints have been checked: both are there, and positive.
    let units = |name| json.integer(name).and_then(|units| u64::try_from(units).ok());
    Some(Throughput { read: units("ReadCapacityUnits")?, write: units("WriteCapacityUnits")? })
}

/// `OnDemandThroughput`: the limits for reads and for writes.
pub(super) fn on_demand(json: &Json<'_>) -> Option<(Option<i64>, Option<i64>)> {
    let json = json.get("OnDemandThroughput")?;
    Some((json.integer("MaxReadRequestUnits"), json.integer("MaxWriteRequestUnits")))
}

/// `StreamSpecification`.
pub(super) fn stream(json: &Json<'_>) -> Option<RawStream> {
    let json = json.get("StreamSpecification")?;
    Some(RawStream {
        enabled: json.boolean("StreamEnabled").unwrap_or(false),
        view: json.text("StreamViewType").map(|view| match view {
            "KEYS_ONLY" => StreamView::KeysOnly,
            "NEW_IMAGE" => StreamView::NewImage,
            "OLD_IMAGE" => StreamView::OldImage,
            _ => StreamView::NewAndOldImages,
        }),
    })
}

/// `SSESpecification.Enabled`.
pub(super) fn encryption(json: &Json<'_>) -> Option<bool> {
    json.get("SSESpecification")?.boolean("Enabled")
}

/// `Tags` of a table.
pub(super) fn tags(json: &Json<'_>) -> Vec<(String, String)> {
    let tag =
        |json: &Json<'_>| Some((parameters::text(json, "Key")?, parameters::text(json, "Value")?));
    json.get("Tags").map_or(&[][..], Json::elements).iter().filter_map(tag).collect()
}
