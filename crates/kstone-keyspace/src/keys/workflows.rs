//! The keys of `workflows`. Album workflows: executions, albums, human tasks and metrics.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::typed::PatternInfo;
use kstone_keyspace::{Date, Kind, Ttl, ValueType, key_part, typed_key};

key_part! {
    /// `{execution_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -, but not task-\*.
    text ExecutionId = "execution_id", Kind::Id, ["task-*"]
}

key_part! {
    /// `{album_index}`: a whole number from 0 to 4294967295.
    int AlbumIndex = "album_index", 0..=4294967295
}

key_part! {
    /// `{task_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text TaskId = "task_id", Kind::Id, []
}

key_part! {
    /// `{workflow_type}`: one of step-functions, durable-functions.
    choice WorkflowType {
        StepFunctions = "step-functions",
        DurableFunctions = "durable-functions",
    }
}

typed_key! {
    /// One run of a workflow over one image: `{execution_id}:metadata`.
    Execution {
        facts: PatternInfo {
            name: "workflows.execution",
            pattern: "{execution_id}:metadata",
            table: Some("workflows"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "metadata",
        },
        partition: ["" { execution_id: ExecutionId } ""],
        sort: ["metadata"],
    }
}

typed_key! {
    /// An album that an execution found in its image: `{execution_id}:album-{album_index}`.
    Album {
        facts: PatternInfo {
            name: "workflows.album",
            pattern: "{execution_id}:album-{album_index}",
            table: Some("workflows"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "album-",
        },
        partition: ["" { execution_id: ExecutionId } ""],
        sort: ["album-" { album_index: AlbumIndex } ""],
    }
}

typed_key! {
    /// A task for a human; its own `ttl` says when it may go: `task-{task_id}:metadata`.
    Task {
        facts: PatternInfo {
            name: "workflows.task",
            pattern: "task-{task_id}:metadata",
            table: Some("workflows"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "metadata",
        },
        partition: ["task-" { task_id: TaskId } ""],
        sort: ["metadata"],
    }
}

typed_key! {
    /// A day's figures of one engine, as sums and counts: `{date}:metrics-{workflow_type}`.
    Metrics {
        facts: PatternInfo {
            name: "workflows.metrics",
            pattern: "{date}:metrics-{workflow_type}",
            table: Some("workflows"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "metrics-",
        },
        partition: ["" { date: Date } ""],
        sort: ["metrics-" { workflow_type: WorkflowType } ""],
    }
}
