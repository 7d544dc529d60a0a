//! The registry of engine tables, live and dropped.

use std::collections::BTreeMap;

use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::manifest::TableState;
use crate::table::TableId;

/// All tables that were created. The default one is among them and is never dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    pub(crate) next: u32,
    pub(crate) known: BTreeMap<u32, TableState>,
}

impl Tables {
    /// Refuses a table that callers cannot write to.
    pub(crate) fn check(&self, table: TableId) -> Result<()> {
        if table == TableId::DEFAULT {
            return Ok(());
        }
        match self.known.get(&table.0) {
            Some(TableState { dropped_seq: None, .. }) => Ok(()),
            _ => Err(Error::NoSuchTable { id: table.0 }),
        }
    }

    /// Whether a reader at `seq` finds the table.
    pub(crate) fn visible_at(&self, table: TableId, seq: Seq) -> bool {
        if table == TableId::DEFAULT {
            return true;
        }
        self.known
            .get(&table.0)
            .is_some_and(|state| state.dropped_seq.is_none_or(|dropped| seq < dropped))
    }

    /// When the table was dropped. An id that was given out and is no longer known was dropped and
    /// reclaimed long ago.
    pub(crate) fn dropped_at(&self, table: TableId) -> Option<Seq> {
        self.known.get(&table.0).and_then(|state| state.dropped_seq)
    }
}
