//! Primary and index keys of the workflow items.

use kstone::Item;
use kstone_core::env::Random;

use crate::{EntityType, WorkflowType};
use kstone_base::time::{Date, Timestamp};

/// The sort key of what has no siblings of its kind in its partition.
const METADATA: &str = "metadata";

/// A random id for an execution (a UUID, version 4).
pub fn generate_execution_id(random: &dyn Random) -> String {
    const VERSION_4: u64 = 0x4000;
    const VARIANT: u64 = 0x8000_0000_0000_0000;
    let high = random.next_u64() & !0xf000 | VERSION_4;
    let low = random.next_u64() & !0xc000_0000_0000_0000 | VARIANT;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

fn key(pk: impl ToString, sk: String) -> Item {
    Item::new().with("pk", pk.to_string()).with("sk", sk)
}

/// The key of an execution.
pub fn execution_key(execution_id: &str) -> Item {
    key(execution_id, METADATA.to_owned())
}

/// The key of an album of an execution.
pub fn album_key(execution_id: &str, album_index: u32) -> Item {
    key(execution_id, format!("album-{album_index}"))
}

/// The key of a task.
pub fn task_key(task_id: &str) -> Item {
    key(task_id, METADATA.to_owned())
}

/// The key of the metrics of a day.
pub fn metrics_key(date: Date, workflow_type: WorkflowType) -> Item {
    key(date, format!("metrics-{workflow_type}"))
}

/// The key attributes of [`GSI1`](crate::GSI1): by engine and kind, then by status and
/// time.
pub fn gsi1_key(
    workflow_type: WorkflowType,
    entity_type: EntityType,
    status: &str,
    created_at: Timestamp,
) -> Item {
    gsi3_key(entity_type, status, created_at).with("workflowType", workflow_type)
}

/// The key attributes of [`GSI2`](crate::GSI2): by engine and execution, then by kind
/// and place. The place of what is not an album is 0.
pub fn gsi2_key(
    workflow_type: WorkflowType,
    execution_id: &str,
    entity_type: EntityType,
    sort_value: u32,
) -> Item {
    Item::new()
        .with("workflowType", workflow_type)
        .with("executionId", execution_id)
        .with("entityType", entity_type)
        .with("sortValue", sort_value)
}

/// The key attributes of [`GSI3`](crate::GSI3): by kind, then by status and time.
pub fn gsi3_key(entity_type: EntityType, status: &str, created_at: Timestamp) -> Item {
    Item::new().with("entityType", entity_type).with("status", status).with("createdAt", created_at)
}
