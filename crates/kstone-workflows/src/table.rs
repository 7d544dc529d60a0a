//! The workflow table and its indexes.

use kstone::Database;
use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableDescription, TableSpec,
};

/// Items by engine and kind, in the order of status and time: `[workflowType, entityType]`, then
/// `[status, createdAt]`.
pub const GSI1: &str = "GSI1";
/// Items of one execution, in the order of kind and place: `[workflowType, executionId]`, then
/// `[entityType, sortValue]`.
pub const GSI2: &str = "GSI2";
/// Items by kind whichever engine they are of, in the order of status and time: `[entityType]`,
/// then `[status, createdAt]`.
pub const GSI3: &str = "GSI3";
/// The attribute that holds the second from which on an item is gone.
pub const TTL_ATTRIBUTE: &str = "ttl";

/// The table under this name. Turn on its time to live with [`TTL_ATTRIBUTE`] once it exists.
pub fn table_spec(name: &str) -> TableSpec {
    let text = |name: &str| KeyAttribute::string(name);
    TableSpec {
        name: name.to_owned(),
        key: KeySchema::hash_range(text("pk"), text("sk")),
        global: vec![
            index(
                GSI1,
                vec![text("workflowType"), text("entityType")],
                vec![text("status"), text("createdAt")],
            ),
            index(
                GSI2,
                vec![text("workflowType"), text("executionId")],
                vec![text("entityType"), KeyAttribute::number("sortValue")],
            ),
            index(GSI3, vec![text("entityType")], vec![text("status"), text("createdAt")]),
        ],
        ..TableSpec::default()
    }
}

fn index(name: &str, hash: Vec<KeyAttribute>, range: Vec<KeyAttribute>) -> IndexSpec {
    IndexSpec {
        name: name.to_owned(),
        key: KeySchema { hash, range },
        projection: IndexProjection::All,
        throughput: None,
    }
}

/// Makes the table in an embedded database, with its time to live turned on.
pub fn create_table(db: &Database, name: &str) -> kstone::Result<TableDescription> {
    db.create_table(&table_spec(name))?;
    db.update_ttl(name, TTL_ATTRIBUTE, true)?;
    db.describe_table(name)
}
