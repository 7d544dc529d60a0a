//! What a table is like, in the SDK's terms and back.

use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement,
    KeyType as SdkKeyType, LocalSecondaryIndex, OnDemandThroughput, Projection, ProjectionType,
    ProvisionedThroughput, ScalarAttributeType, SseSpecification, StreamSpecification,
    StreamViewType, TableClass, TableDescription as SdkTable, TableStatus, Tag,
};
use kstone_ports::items::{
    IndexProjection, IndexSpec, IndexState, KeyAttribute, KeySchema, KeyType, Status, StreamView,
    TableDescription, TableSpec, Throughput, TtlState,
};
use kstone_ports::{Error, Result};

/// The parts of a request for a new table.
pub(crate) struct Definition {
    pub(crate) attributes: Vec<AttributeDefinition>,
    pub(crate) key: Vec<KeySchemaElement>,
    pub(crate) local: Option<Vec<LocalSecondaryIndex>>,
    pub(crate) global: Option<Vec<GlobalSecondaryIndex>>,
    pub(crate) throughput: Option<ProvisionedThroughput>,
    pub(crate) billing: BillingMode,
    pub(crate) stream: Option<StreamSpecification>,
    pub(crate) on_demand: Option<OnDemandThroughput>,
    pub(crate) tags: Option<Vec<Tag>>,
    pub(crate) encryption: Option<SseSpecification>,
    pub(crate) class: Option<TableClass>,
}

impl Definition {
    /// What this table is to be made from.
    pub(crate) fn of(spec: &TableSpec) -> Result<Definition> {
        let attributes = spec.attribute_definitions().iter().map(definition).collect::<Result<_>>();
        let local = spec.local.iter().map(local).collect::<Result<Vec<_>>>()?;
        let global = spec.global.iter().map(global).collect::<Result<Vec<_>>>()?;
        let stream = spec.stream.map(|view| {
            let stream = StreamSpecification::builder().stream_enabled(true);
            stream.stream_view_type(stream_view(view)).build().map_err(incomplete)
        });
        let tags = spec
            .tags
            .iter()
            .map(|(key, value)| Tag::builder().key(key).value(value).build().map_err(incomplete));
        let tags = tags.collect::<Result<Vec<_>>>()?;
        Ok(Definition {
            attributes: attributes?,
            key: key(&spec.key)?,
            local: (!local.is_empty()).then_some(local),
            global: (!global.is_empty()).then_some(global),
            throughput: spec.throughput.map(throughput).transpose()?,
            billing: match spec.throughput {
                Some(_) => BillingMode::Provisioned,
                None => BillingMode::PayPerRequest,
            },
            stream: stream.transpose()?,
            on_demand: spec.on_demand.map(|(reads, writes)| {
                OnDemandThroughput::builder()
                    .set_max_read_request_units(reads)
                    .set_max_write_request_units(writes)
                    .build()
            }),
            tags: (!tags.is_empty()).then_some(tags),
            encryption: spec.encryption.map(|on| SseSpecification::builder().enabled(on).build()),
            class: spec.table_class.as_deref().map(TableClass::from),
        })
    }
}

fn incomplete(error: aws_sdk_dynamodb::error::BuildError) -> Error {
    Error::Invalid(error.to_string())
}

fn definition(attribute: &KeyAttribute) -> Result<AttributeDefinition> {
    let kind = match attribute.kind {
        KeyType::S => ScalarAttributeType::S,
        KeyType::N => ScalarAttributeType::N,
        KeyType::B => ScalarAttributeType::B,
    };
    let definition = AttributeDefinition::builder().attribute_name(&attribute.name);
    definition.attribute_type(kind).build().map_err(incomplete)
}

fn key(schema: &KeySchema) -> Result<Vec<KeySchemaElement>> {
    let hash = schema.hash.iter().map(|attribute| (attribute, SdkKeyType::Hash));
    let range = schema.range.iter().map(|attribute| (attribute, SdkKeyType::Range));
    let each = hash.chain(range).map(|(attribute, kind)| {
        let element = KeySchemaElement::builder().attribute_name(&attribute.name);
        element.key_type(kind).build().map_err(incomplete)
    });
    each.collect()
}

fn local(index: &IndexSpec) -> Result<LocalSecondaryIndex> {
    LocalSecondaryIndex::builder()
        .index_name(&index.name)
        .set_key_schema(Some(key(&index.key)?))
        .projection(projection(&index.projection))
        .build()
        .map_err(incomplete)
}

fn global(index: &IndexSpec) -> Result<GlobalSecondaryIndex> {
    GlobalSecondaryIndex::builder()
        .index_name(&index.name)
        .set_key_schema(Some(key(&index.key)?))
        .projection(projection(&index.projection))
        .set_provisioned_throughput(index.throughput.map(throughput).transpose()?)
        .build()
        .map_err(incomplete)
}

fn projection(projection: &IndexProjection) -> Projection {
    let built = Projection::builder();
    match projection {
        IndexProjection::All => built.projection_type(ProjectionType::All),
        IndexProjection::KeysOnly => built.projection_type(ProjectionType::KeysOnly),
        IndexProjection::Include(names) => built
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(names.clone())),
    }
    .build()
}

fn throughput(units: Throughput) -> Result<ProvisionedThroughput> {
    ProvisionedThroughput::builder()
        .read_capacity_units(i64::try_from(units.read).unwrap_or(i64::MAX))
        .write_capacity_units(i64::try_from(units.write).unwrap_or(i64::MAX))
        .build()
        .map_err(incomplete)
}

fn stream_view(view: StreamView) -> StreamViewType {
    match view {
        StreamView::KeysOnly => StreamViewType::KeysOnly,
        StreamView::NewImage => StreamViewType::NewImage,
        StreamView::OldImage => StreamViewType::OldImage,
        StreamView::NewAndOldImages => StreamViewType::NewAndOldImages,
    }
}

/// What the store says of a table, and of its time to live, which it says elsewhere.
pub(crate) fn description(table: &SdkTable, ttl: TtlState) -> Result<TableDescription> {
    let definitions = table.attribute_definitions();
    let mut spec = TableSpec {
        name: table.table_name.clone().unwrap_or_default(),
        key: known_key(table.key_schema(), definitions)?,
        stream: table.stream_specification.as_ref().and_then(known_stream),
        deletion_protection: table.deletion_protection_enabled.unwrap_or_default(),
        table_class: table
            .table_class_summary
            .as_ref()
            .and_then(|it| it.table_class.as_ref())
            .map(|class| class.as_str().to_owned()),
        encryption: table.sse_description.as_ref().map(|_| true),
        on_demand: table
            .on_demand_throughput
            .as_ref()
            .map(|it| (it.max_read_request_units, it.max_write_request_units)),
        ..TableSpec::default()
    };
    let billing = table.billing_mode_summary.as_ref();
    let is_on_demand =
        billing.is_some_and(|it| it.billing_mode == Some(BillingMode::PayPerRequest));
    let provisioned = table.provisioned_throughput.as_ref().filter(|_| !is_on_demand);
    spec.throughput = provisioned.map(|it| Throughput {
        read: count(it.read_capacity_units),
        write: count(it.write_capacity_units),
    });
    let (mut local, mut global) = (Vec::new(), Vec::new());
    for index in table.local_secondary_indexes() {
        spec.local.push(IndexSpec {
            name: index.index_name.clone().unwrap_or_default(),
            key: known_key(index.key_schema(), definitions)?,
            projection: index.projection.as_ref().map(known_projection).unwrap_or_default(),
            throughput: None,
        });
        local.push(IndexState {
            status: Status::Active,
            backfilled: None,
            items: count(index.item_count),
            bytes: count(index.index_size_bytes),
        });
    }
    for index in table.global_secondary_indexes() {
        let provisioned = index.provisioned_throughput.as_ref().filter(|_| !is_on_demand);
        spec.global.push(IndexSpec {
            name: index.index_name.clone().unwrap_or_default(),
            key: known_key(index.key_schema(), definitions)?,
            projection: index.projection.as_ref().map(known_projection).unwrap_or_default(),
            throughput: provisioned.map(|it| Throughput {
                read: count(it.read_capacity_units),
                write: count(it.write_capacity_units),
            }),
        });
        global.push(IndexState {
            status: match index.index_status {
                Some(IndexStatus::Active) | None => Status::Active,
                Some(IndexStatus::Updating) => Status::Updating,
                Some(IndexStatus::Deleting) => Status::Deleting,
                Some(_) => Status::Creating,
            },
            backfilled: None,
            items: count(index.item_count),
            bytes: count(index.index_size_bytes),
        });
    }
    let changes = table.provisioned_throughput.as_ref();
    Ok(TableDescription {
        spec,
        id: table.table_id.clone().unwrap_or_default(),
        status: match table.table_status {
            Some(TableStatus::Active) | None => Status::Active,
            Some(TableStatus::Updating) => Status::Updating,
            Some(TableStatus::Deleting) => Status::Deleting,
            // Archived and locked tables among them: not to be used.
            Some(_) => Status::Creating,
        },
        created_ms: millis(table.creation_date_time.as_ref()).unwrap_or_default(),
        items: count(table.item_count),
        bytes: count(table.table_size_bytes),
        global,
        local,
        stream_label: table.latest_stream_label.clone(),
        on_demand_since_ms: billing
            .and_then(|it| millis(it.last_update_to_pay_per_request_date_time.as_ref())),
        throughput_changed_ms: [
            changes.and_then(|it| millis(it.last_increase_date_time.as_ref())),
            changes.and_then(|it| millis(it.last_decrease_date_time.as_ref())),
        ],
        ttl,
    })
}

fn count(number: Option<i64>) -> u64 {
    number.and_then(|it| u64::try_from(it).ok()).unwrap_or_default()
}

fn millis(time: Option<&DateTime>) -> Option<u64> {
    time.and_then(|it| it.to_millis().ok()).and_then(|it| u64::try_from(it).ok())
}

fn known_key(
    elements: &[KeySchemaElement],
    definitions: &[AttributeDefinition],
) -> Result<KeySchema> {
    let mut schema = KeySchema::default();
    for element in elements {
        let name = element.attribute_name.clone();
        let kind = definitions.iter().find(|it| it.attribute_name == name);
        let kind = match kind.map(|it| &it.attribute_type) {
            Some(ScalarAttributeType::S) => KeyType::S,
            Some(ScalarAttributeType::N) => KeyType::N,
            Some(ScalarAttributeType::B) => KeyType::B,
            _ => {
                let message = format!("the store does not say of what type the key `{name}` is");
                return Err(Error::Unreadable(message));
            }
        };
        let part = match element.key_type {
            SdkKeyType::Hash => &mut schema.hash,
            _ => &mut schema.range,
        };
        part.push(KeyAttribute { name, kind });
    }
    Ok(schema)
}

fn known_projection(projection: &Projection) -> IndexProjection {
    match projection.projection_type {
        Some(ProjectionType::KeysOnly) => IndexProjection::KeysOnly,
        Some(ProjectionType::Include) => {
            IndexProjection::Include(projection.non_key_attributes().to_vec())
        }
        _ => IndexProjection::All,
    }
}

fn known_stream(stream: &StreamSpecification) -> Option<StreamView> {
    match stream.stream_view_type.as_ref().filter(|_| stream.stream_enabled)? {
        StreamViewType::KeysOnly => Some(StreamView::KeysOnly),
        StreamViewType::NewImage => Some(StreamView::NewImage),
        StreamViewType::OldImage => Some(StreamView::OldImage),
        _ => Some(StreamView::NewAndOldImages),
    }
}
