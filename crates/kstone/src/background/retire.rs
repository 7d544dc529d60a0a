//! Drops closed change streams after their records have expired.

use kstone_core::TableId;

use crate::database::Database;
use crate::error::Result;
use crate::stream::KEPT_MS;
use crate::table::record::StreamRecord;

impl Database {
    /// Drops the streams whose last record is past its time.
    pub(crate) fn retire_streams(&self) -> Result<()> {
        let inner = self.inner();
        let now_ms = inner.engine.now_ms();
        let over = |stream: &StreamRecord| {
            stream.closed_ms.is_some_and(|at_ms| at_ms.saturating_add(KEPT_MS) <= now_ms)
        };
        for table in inner.catalog.all() {
            if !table.record.streams.iter().any(over) {
                continue;
            }
            let changing = inner.catalog.change(&inner.engine);
            let Some(table) = changing.get(table.name()) else { continue };
            let mut record = table.record.clone();
            let dropped = record.streams.extract_if(.., |stream| over(stream));
            let dropped: Vec<TableId> = dropped.map(|stream| TableId(stream.id)).collect();
            changing.put(record, &dropped)?;
        }
        Ok(())
    }
}
