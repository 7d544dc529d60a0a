//! What a global index costs a put: the records that the engine writes, counted and not timed.

use super::embedded::keystone;
use super::posts::{Post, TABLE};
use crate::Outcome;
use kstone::Database;
use kstone::ops::PutItem;
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};
use serde::Serialize;

/// Posts that are written; enough that a record written now and then would show.
const POSTS: u32 = 500;
/// Indexes that the table has.
const INDEXES: u32 = 3;

/// Records written for each put and index, beyond those that the table itself takes.
#[derive(Clone, Copy, Serialize)]
pub struct IndexCost {
    /// By an item that was not there.
    pub new: f64,
    /// By one that changes, but not in what the index is ordered by.
    pub kept: f64,
    /// By one that moves in the index.
    pub moved: f64,
}

/// Writes the same posts three times with and without indexes and compares.
pub fn measure() -> Outcome<IndexCost> {
    let (without, with) = (writes_per_put(0)?, writes_per_put(INDEXES)?);
    let each = |nth: usize| (with[nth] - without[nth]) / f64::from(INDEXES);
    Ok(IndexCost { new: each(0), kept: each(1), moved: each(2) })
}

fn writes_per_put(indexes: u32) -> Outcome<[f64; 3]> {
    let db = Database::memory()?;
    let index = |nth: u32| IndexSpec {
        name: format!("index-{nth}"),
        key: KeySchema::hash_range(
            KeyAttribute::string(format!("hash-{nth}")),
            KeyAttribute::number("rank"),
        ),
        projection: IndexProjection::All,
        throughput: None,
    };
    db.create_table(&TableSpec { global: (0..indexes).map(index).collect(), ..keystone::table() })?;

    let write_all = |version: u32, rank: i64| -> Outcome<f64> {
        let before = db.engine().stats().total.writes;
        for id in 0..POSTS {
            let mut item = keystone::item(&Post { id, version }).with("rank", rank);
            for nth in 0..indexes {
                item.insert(format!("hash-{nth}"), format!("group {}", id % 10));
            }
            let put = PutItem { table: TABLE.into(), item, ..PutItem::default() };
            db.put_item(&put).wait()?;
        }
        let written = db.engine().stats().total.writes - before;
        Ok(written as f64 / f64::from(POSTS))
    };
    Ok([write_all(0, 1)?, write_all(1, 1)?, write_all(2, 2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_costs_one_more_record_and_two_when_the_item_moves_in_it() {
        let IndexCost { new, kept, moved } = measure().unwrap();
        assert!(new <= 1.0, "{new} for a new item");
        assert!(kept <= 1.0, "{kept} for an item that stays");
        assert!(moved <= 2.0, "{moved} for one that moves");
        assert!(new > 0.0 && moved > 1.0, "nothing was counted: {new}, {moved}");
    }
}
