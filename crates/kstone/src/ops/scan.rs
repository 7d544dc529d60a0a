//! Scan: every item of a table or of an index, one page at a time, in segments if asked.

use kstone_core::{ScanCursor, Seq};

use crate::cost::Costs;
use crate::database::{Database, Reply};
use crate::error::{Error, Result, table_gone};
use crate::ops::binding::Unbound;
use crate::ops::query::{Full, Page, Source, check_select};
use crate::ops::{QueryOutput, Scan, Segment};

impl Database {
    /// Reads every item of a table or an index: one page of them.
    pub fn scan_items(&self, request: &Scan) -> Reply<QueryOutput> {
        self.reply_read(&request.table, || self.try_scan(request))
    }

    fn try_scan(&self, request: &Scan) -> Result<(QueryOutput, Seq)> {
        let unbound = Unbound {
            filter: request.filter.as_ref(),
            projection: request.projection.as_ref(),
            ..Unbound::default()
        };
        let bound = self.bind(&unbound, &request.placeholders)?;
        let table = self.table_for_items(&request.table)?;
        let source = Source::find(&table, request.index.as_deref(), request.consistent_read)?;
        check_select(request.select, request.projection.as_ref(), request.index.as_deref())?;
        let select = source.select(request.select, &bound)?;
        let segment = request.segment.unwrap_or(Segment { index: 0, total: 1 });
        let mut cursor = ScanCursor::segment(segment.index, segment.total)?;
        if let Some(start) = &request.start {
            let key = source.start_key(start)?;
            cursor = match cursor {
                Some(cursor) if cursor.covers(key.stripe()) => Some(cursor.after(key)),
                _ => {
                    return Err(Error::validation(format!(
                        "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: {} Segment: {}",
                        segment.total, segment.index
                    )));
                }
            };
        }
        let snapshot = self.engine().snapshot();
        let seq = snapshot.seq();
        let mut page = Page::new(source, select, bound, &snapshot, request.limit);
        page.costs = Costs::reads(request.capacity);
        // More segments than stripes leave some without any.
        if let Some(cursor) = cursor {
            let id = source.index.map_or(table.id(), |index| index.id);
            let mut items = snapshot.scan(id, cursor);
            while let Some(record) = items.next_ref().map_err(table_gone)? {
                if page.add(record.value)? == Full::Yes {
                    break;
                }
            }
        }
        Ok((page.finish(request.consistent_read)?, seq))
    }
}
