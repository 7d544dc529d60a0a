//! The operations, one file each: what is asked, what is answered, and how it is done.

mod batch;
pub(crate) mod binding;
mod delete;
mod fingerprint;
mod get;
mod plan;
mod put;
mod query;
mod scan;
mod token;
mod transact;
mod update;
mod write_output;

pub use kstone_ports::items::{
    BatchGet, BatchGetOutput, BatchGetTable, BatchWrite, BatchWriteOutput, CapacityDetail,
    CapacityKind, CollectionMetrics, Condition, Consumed, DeleteItem, GetItem, GetItemOutput,
    KeyCondition, Placeholders, Projection, PutItem, Query, QueryOutput, ReturnValues, Scan,
    Segment, Select, TransactAction, TransactGet, TransactGetOutput, TransactGetRequest,
    TransactKind, TransactWrite, TransactWriteOutput, Update, UpdateItem, WriteOutput,
    WriteRequest,
};
pub(crate) use put::{encode_checked, is_too_large};
pub(crate) use query::check_holds_filter;

/// Adds what one operation took to what others took, by table.
pub(crate) fn add_consumed(all: &mut Vec<Consumed>, one: Consumed) {
    let Some(known) = all.iter_mut().find(|known| known.table == one.table) else {
        all.push(one);
        return;
    };
    known.table_units += one.table_units;
    for (list, more) in [(&mut known.local, one.local), (&mut known.global, one.global)] {
        for (name, units) in more {
            match list.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += units,
                None => list.push((name, units)),
            }
        }
    }
}
