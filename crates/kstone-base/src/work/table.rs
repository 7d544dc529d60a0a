//! The table of background work, with the index that finds due jobs.

use kstone_ports::items::Items;
use kstone_ports::items::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};

use crate::error::Result;

/// The table's name, as the catalogue says.
pub(crate) const TABLE: &str = "platform";
/// The local index of jobs by when something is to be done about them.
pub(crate) const BY_DUE: &str = "by_due";
/// The attribute that the index is by.
pub(crate) const DUE: &str = "due";
pub(crate) const PK: &str = "pk";
pub(crate) const SK: &str = "sk";

/// Makes sure that the table is there.
///
/// # Errors
/// If there is a table of that name with another key, or without the index.
pub async fn require_table(items: &dyn Items) -> Result<()> {
    let string = KeyAttribute::string;
    let spec = TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(string(PK), string(SK)),
        local: vec![IndexSpec {
            name: BY_DUE.to_owned(),
            key: KeySchema::hash_range(string(PK), string(DUE)),
            // A worker claims only what it has a handler for.
            projection: IndexProjection::Include(vec!["kind".to_owned()]),
            throughput: None,
        }],
        ..TableSpec::default()
    };
    items.require_table(&spec, Some("ttl")).await?;
    let found = items.describe(TABLE).await?;
    match found.spec.local.iter().any(|index| index.name == BY_DUE) {
        true => Ok(()),
        // A local index can only be made together with its table.
        false => Err(kstone_ports::Error::invalid(format!(
            "the table `{TABLE}` is there without the local index `{BY_DUE}`; delete it"
        ))
        .into()),
    }
}
