//! Writing consumed capacity and item collection metrics.

use kstone::ops::{CapacityDetail, CapacityKind, CollectionMetrics, Consumed};

use super::parameters::Given;
use crate::json::Json;
use crate::wire::Out;

/// Which numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Only how many units.
    Unnamed,
    /// Also whether they were for reading or writing: transactions.
    Named,
}

/// `ConsumedCapacity` of the table that the request is about.
pub(super) fn write(out: &mut Out, consumed: Option<&Consumed>, json: &Json<'_>) {
    if let Some(consumed) = consumed {
        out.name("ConsumedCapacity");
        let table = json.text("TableName").unwrap_or(&consumed.table);
        write_one(out, consumed, table, Kinds::Unnamed);
    }
}

/// `ConsumedCapacity` of several tables.
pub(super) fn write_all(out: &mut Out, consumed: &[Consumed], given: &Given<'_>, kinds: Kinds) {
    if !consumed.is_empty() {
        out.name("ConsumedCapacity").list(consumed, |out, one| {
            write_one(out, one, given.name_of(&one.table), kinds);
        });
    }
}

fn write_one(out: &mut Out, consumed: &Consumed, table: &str, kinds: Kinds) {
    let units = |out: &mut Out, units: f64| {
        out.name("CapacityUnits").decimal(units);
        if kinds == Kinds::Named {
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
pub(super) fn write_collection(out: &mut Out, metrics: Option<&CollectionMetrics>) {
    if let Some(metrics) = metrics {
        out.name("ItemCollectionMetrics");
        write_metrics(out, metrics);
    }
}

/// `ItemCollectionMetrics` of several writes, by table.
pub(super) fn write_collections(out: &mut Out, metrics: &[CollectionMetrics], given: &Given<'_>) {
    if metrics.is_empty() {
        return;
    }
    out.object_member("ItemCollectionMetrics", |out| {
        for (at, one) in metrics.iter().enumerate() {
            let is_first = !metrics[..at].iter().any(|before| before.table == one.table);
            if is_first {
                let same = metrics[at..].iter().filter(|other| other.table == one.table);
                out.name(given.name_of(&one.table)).list(same, write_metrics);
            }
        }
    });
}

fn write_metrics(out: &mut Out, metrics: &CollectionMetrics) {
    out.object(|out| {
        out.name("ItemCollectionKey").tree(&metrics.key);
        out.name("SizeEstimateRangeGB").list(metrics.size_estimate_gb, Out::decimal);
    });
}
