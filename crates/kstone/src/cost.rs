//! Capacity units, by DynamoDB's rules: what an operation would be billed for.

use crate::ops::{CapacityDetail, CapacityKind, Consumed};
use crate::table::live::{Index, Scope, Table};

/// Bytes that one write unit covers.
const WRITE_UNIT: usize = 1024;
/// Bytes that one consistent read unit covers; an eventually consistent read costs half.
const READ_UNIT: usize = 4096;

/// Adds up what an operation costs, by table; nothing if that was not requested.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    detail: CapacityDetail,
    kind: CapacityKind,
    /// 2 for transactions.
    factor: f64,
    tables: Vec<Consumed>,
}

impl Costs {
    pub fn reads(detail: CapacityDetail) -> Self {
        Costs { detail, kind: CapacityKind::Read, factor: 1.0, tables: Vec::new() }
    }

    pub fn writes(detail: CapacityDetail) -> Self {
        Costs { detail, kind: CapacityKind::Write, factor: 1.0, tables: Vec::new() }
    }

    /// The same, for a transaction: everything costs twice.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.factor = 2.0;
        self
    }

    pub fn wanted(&self) -> bool {
        self.detail != CapacityDetail::None
    }

    /// Reading `bytes` of a table or of one of its indexes.
    pub fn read(&mut self, table: &Table, index: Option<&Index>, bytes: usize, consistent: bool) {
        if !self.wanted() {
            return;
        }
        let units = bytes.div_ceil(READ_UNIT).max(1) as f64;
        let units = if consistent || self.factor > 1.0 { units } else { units / 2.0 };
        self.add(table, index, units);
    }

    /// Writing an item of `bytes` (the larger of before and after) to a table or an index.
    pub fn write(&mut self, table: &Table, index: Option<&Index>, bytes: usize) {
        if self.wanted() {
            self.add(table, index, bytes.div_ceil(WRITE_UNIT).max(1) as f64);
        }
    }

    fn add(&mut self, table: &Table, index: Option<&Index>, units: f64) {
        let units = units * self.factor;
        let at = self.tables.iter().position(|c| c.table == table.name()).unwrap_or_else(|| {
            self.tables.push(Consumed {
                table: table.name().to_owned(),
                detail: self.detail,
                kind: self.kind,
                transactional: self.factor > 1.0,
                ..Consumed::default()
            });
            self.tables.len() - 1
        });
        let Some(consumed) = self.tables.get_mut(at) else { return };
        let Some(index) = index else {
            consumed.table_units += units;
            return;
        };
        let list = match index.scope {
            Scope::Local => &mut consumed.local,
            Scope::Global => &mut consumed.global,
        };
        match list.iter_mut().find(|(name, _)| *name == index.name) {
            Some((_, sum)) => *sum += units,
            None => list.push((index.name.clone(), units)),
        }
    }

    /// What was added up, by table.
    pub fn all(self) -> Vec<Consumed> {
        self.tables
    }

    /// What was added up for an operation on one table.
    pub fn one(self) -> Option<Consumed> {
        self.tables.into_iter().next()
    }
}
