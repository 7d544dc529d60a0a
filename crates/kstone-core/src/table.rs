//! Table ids: the number in front of every stored key.

/// Names a table. Ids are given out by the engine and never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

impl TableId {
    /// The table that every database has.
    pub const DEFAULT: TableId = TableId(0);
    /// Holds the expiry index. Reserved: callers cannot write to it.
    pub(crate) const EXPIRY: TableId = TableId(u32::MAX);
}
