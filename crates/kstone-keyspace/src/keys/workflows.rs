//! The keys of `workflows`. Album workflows: executions, albums, human tasks and metrics.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::{Date, Ttl, key_parts, typed_keys};

key_parts! {
    /// `{execution_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -, but not task-\*.
    text ExecutionId("execution_id", Id, except ["task-*"]);
    /// `{album_index}`: a whole number from 0 to 4294967295.
    int AlbumIndex("album_index", 0..=4294967295);
    /// `{task_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text TaskId("task_id", Id);
    /// `{workflow_type}`: one of step-functions, durable-functions.
    choice WorkflowType(StepFunctions = "step-functions", DurableFunctions = "durable-functions");
}

typed_keys! {
    /// One run of a workflow over one image: `{execution_id}:metadata`.
    Execution = "workflows.execution", Item in "workflows", Ttl::None,
        partition: "" { execution_id: ExecutionId },
        sort: "metadata";

    /// An album that an execution found in its image: `{execution_id}:album-{album_index}`.
    Album = "workflows.album", Item in "workflows", Ttl::None,
        partition: "" { execution_id: ExecutionId },
        sort: "album-" { album_index: AlbumIndex };

    /// A task for a human; its own `ttl` says when it may go: `task-{task_id}:metadata`.
    Task = "workflows.task", Item in "workflows", Ttl::None,
        partition: "task-" { task_id: TaskId },
        sort: "metadata";

    /// A day's figures of one engine, as sums and counts: `{date}:metrics-{workflow_type}`.
    Metrics = "workflows.metrics", Item in "workflows", Ttl::None,
        partition: "" { date: Date },
        sort: "metrics-" { workflow_type: WorkflowType };
}
