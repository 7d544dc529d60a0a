//! One run of a workflow over one image.

use kstone::{Item, Number};

use crate::entity::Entity;
use crate::{EntityType, ExecutionStatus, WorkflowType, execution_key};
use kstone_base::field::{Invalid, check_id, check_length, nullable, optional, required};
use kstone_base::time::Timestamp;

/// One run of a workflow over one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its id: a UUID of [`generate_execution_id`](crate::generate_execution_id), or
    /// any other id such as `exec-123`.
    pub execution_id: String,
    /// Which engine runs it.
    pub workflow_type: WorkflowType,
    /// The image to look at.
    pub image_s3_key: String,
    /// How far it is.
    pub status: ExecutionStatus,
    /// The step it is at. Only durable functions tell; a state machine knows by itself.
    pub current_step: Option<String>,
    /// The same for the two runs, one of each engine, over one image.
    pub comparison_id: Option<String>,
    /// When it began.
    pub start_time: Timestamp,
    /// When it ended.
    pub end_time: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What it cost, in dollars.
    pub estimated_cost: Option<Number>,
    /// When this record was made.
    pub created_at: Timestamp,
    /// When this record was last changed.
    pub updated_at: Timestamp,
}

impl Entity for Execution {
    const TYPE: EntityType = EntityType::Execution;

    fn key(&self) -> Item {
        execution_key(&self.execution_id)
    }

    fn validate(&self) -> Result<(), Invalid> {
        check_id("executionId", &self.execution_id)?;
        check_length("imageS3Key", &self.image_s3_key, 1..=1024)?;
        if let Some(step) = &self.current_step {
            if self.workflow_type == WorkflowType::StepFunctions {
                return Err(Invalid::value("currentStep", "absent in step-functions", step));
            }
            check_length("currentStep", step, 1..=200)?;
        }
        if let Some(id) = &self.comparison_id {
            check_id("comparisonId", id)?;
        }
        if let Some(end) = self.end_time.filter(|end| *end < self.start_time) {
            return Err(Invalid::value("endTime", "no earlier than startTime", end));
        }
        check_cost("estimatedCost", self.estimated_cost)
    }

    fn fields(&self) -> Item {
        let mut item = Item::new()
            .with("executionId", self.execution_id.as_str())
            .with("workflowType", self.workflow_type)
            .with("imageS3Key", self.image_s3_key.as_str())
            .with("status", self.status)
            .with("comparisonId", nullable(self.comparison_id.as_deref()))
            .with("startTime", self.start_time)
            .with("endTime", nullable(self.end_time))
            .with("durationMs", nullable(self.duration_ms))
            .with("estimatedCost", nullable(self.estimated_cost))
            .with("createdAt", self.created_at)
            .with("updatedAt", self.updated_at);
        if self.workflow_type == WorkflowType::DurableFunctions {
            item.insert("currentStep", nullable(self.current_step.as_deref()));
        }
        item
    }

    fn from_fields(item: &Item) -> Result<Self, Invalid> {
        Ok(Execution {
            execution_id: required(item, "executionId")?,
            workflow_type: required(item, "workflowType")?,
            image_s3_key: required(item, "imageS3Key")?,
            status: required(item, "status")?,
            current_step: optional(item, "currentStep")?,
            comparison_id: optional(item, "comparisonId")?,
            start_time: required(item, "startTime")?,
            end_time: optional(item, "endTime")?,
            duration_ms: optional(item, "durationMs")?,
            estimated_cost: optional(item, "estimatedCost")?,
            created_at: required(item, "createdAt")?,
            updated_at: required(item, "updatedAt")?,
        })
    }
}

/// Refuses a negative cost.
pub(super) fn check_cost(field: &str, cost: Option<Number>) -> Result<(), Invalid> {
    match cost.filter(Number::is_negative) {
        Some(cost) => Err(Invalid::value(field, "0 or more", cost)),
        None => Ok(()),
    }
}
