//! Writes consumed capacity and item collection metrics.

use kstone::ops::{CapacityDetail, CapacityKind, CollectionMetrics, Consumed};

use super::parameters::TableNames;
use crate::json::Json;
use crate::wire::JsonWriter;

/// Which members of `ConsumedCapacity` are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapacityFields {
    /// `CapacityUnits`.
    Units,
    /// Also `ReadCapacityUnits` or `WriteCapacityUnits`, as for transactions.
    UnitsByKind,
}

/// `ConsumedCapacity` of the table that the request is about.
pub(super) fn write(out: &mut JsonWriter, consumed: Option<&Consumed>, json: &Json<'_>) {
    if let Some(consumed) = consumed {
        out.name("ConsumedCapacity");
        let table = json.text("TableName").unwrap_or(&consumed.table);
        write_one(out, consumed, table, CapacityFields::Units);
    }
}

/// `ConsumedCapacity` of several tables.
pub(super) fn write_all(
    out: &mut JsonWriter,
    consumed: &[Consumed],
    names: &TableNames<'_>,
    fields: CapacityFields,
) {
    if !consumed.is_empty() {
        out.name("ConsumedCapacity").list(consumed, |out, one| {
            write_one(out, one, names.name_of(&one.table), fields);
        });
    }
}

fn write_one(out: &mut JsonWriter, consumed: &Consumed, table: &str, fields: CapacityFields) {
    let units = |out: &mut JsonWriter, units: f64| {
        out.name("CapacityUnits").decimal(units);
        if fields == CapacityFields::UnitsByKind {
            let name = match consumed.kind {
                CapacityKind::Read => "ReadCapacityUnits",
                CapacityKind::Write => "WriteCapacityUnits",
            };
            out.name(name).decimal(units);
        }
    };
    out.object(|out| {
        out.text_member("TableName", table);
        units(out, consumed.total());
        if consumed.detail != CapacityDetail::Indexes {
            return;
        }
        out.object_member("Table", |out| units(out, consumed.table_units));
        let indexes = [
            ("LocalSecondaryIndexes", &consumed.local),
            ("GlobalSecondaryIndexes", &consumed.global),
        ];
        for (name, indexes) in indexes.into_iter().filter(|(_, indexes)| !indexes.is_empty()) {
            out.object_member(name, |out| {
                for (index, taken) in indexes {
                    out.object_member(index, |out| units(out, *taken));
                }
            });
        }
    });
}

/// `ItemCollectionMetrics` of one write.
pub(super) fn write_collection(out: &mut JsonWriter, metrics: Option<&CollectionMetrics>) {
    if let Some(metrics) = metrics {
        out.name("ItemCollectionMetrics");
        write_metrics(out, metrics);
    }
}

/// `ItemCollectionMetrics` of several writes, by table.
pub(super) fn write_collections(
    out: &mut JsonWriter,
    metrics: &[CollectionMetrics],
    names: &TableNames<'_>,
) {
    if metrics.is_empty() {
        return;
    }
    out.object_member("ItemCollectionMetrics", |out| {
        for (at, one) in metrics.iter().enumerate() {
            let is_first = !metrics[..at].iter().any(|before| before.table == one.table);
            if is_first {
                let same = metrics[at..].iter().filter(|other| other.table == one.table);
                out.name(names.name_of(&one.table)).list(same, write_metrics);
            }
        }
    });
}

fn write_metrics(out: &mut JsonWriter, metrics: &CollectionMetrics) {
    out.object(|out| {
        out.name("ItemCollectionKey").tree(&metrics.key);
        out.name("SizeEstimateRangeGB").list(metrics.size_estimate_gb, JsonWriter::decimal);
    });
}
