//! A table as the catalogue keeps it: one JSON record under the table's name.

use kstone_core::TableId;
use serde::{Deserialize, Serialize};

use crate::table::{Status, StreamView, TableSpec, TtlState};

/// Everything that is kept about a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableRecord {
    /// The engine's table with the items.
    pub id: u32,
    /// A random id, shown to clients.
    pub uuid: String,
    /// What it was created from, with later changes.
    pub spec: TableSpec,
    pub status: Status,
    pub created_ms: u64,
    /// In the order of `spec.local`.
    pub local: Vec<IndexRecord>,
    /// In the order of `spec.global`.
    pub global: Vec<IndexRecord>,
    /// The stream that is written, then those that were closed, newest first.
    pub streams: Vec<StreamRecord>,
    pub ttl: TtlState,
    /// When the billing mode last became on demand.
    pub on_demand_since_ms: Option<u64>,
    /// When the throughput was last raised, and lowered.
    pub throughput_changed_ms: [Option<u64>; 2],
}

/// Everything that is kept about an index, besides its spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexRecord {
    /// The engine's table with the entries.
    pub id: u32,
    pub status: Status,
}

/// Everything that is kept about a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamRecord {
    /// The engine's table with the records.
    pub id: u32,
    pub view: StreamView,
    /// When it was opened: its label, as ISO time.
    pub created_ms: u64,
    /// When it was closed.
    pub closed_ms: Option<u64>,
}

impl TableRecord {
    /// The engine's tables that belong to this one.
    pub fn engine_tables(&self) -> impl Iterator<Item = TableId> {
        let indexes = self.local.iter().chain(&self.global).map(|index| index.id);
        let streams = self.streams.iter().map(|stream| stream.id);
        std::iter::once(self.id).chain(indexes).chain(streams).map(TableId)
    }

    /// The stream that writes go to.
    pub fn open_stream(&self) -> Option<&StreamRecord> {
        self.streams.first().filter(|stream| stream.closed_ms.is_none())
    }
}
