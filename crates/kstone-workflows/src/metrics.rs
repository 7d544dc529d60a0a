//! Daily metrics of the executions of one engine.

use kstone::{Item, Number};

use crate::entity::Entity;
use crate::execution::check_cost;
use crate::{EntityType, Period, WorkflowType, metrics_key};
use kstone_base::field::{Invalid, required};
use kstone_base::time::{Date, Timestamp};

/// Counts and sums over the executions of one engine on one day, which can be incremented. Averages
/// follow from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// The day.
    pub date: Date,
    /// Which engine.
    pub workflow_type: WorkflowType,
    /// What is summed up.
    pub period: Period,
    /// How many executions.
    pub execution_count: u64,
    /// How many of them were completed.
    pub success_count: u64,
    /// How many of them failed.
    pub failure_count: u64,
    /// How long they took together.
    pub total_duration_ms: u64,
    /// What they cost together, in dollars.
    pub total_cost: Number,
    /// When this record was made.
    pub created_at: Timestamp,
}

impl Metrics {
    /// How long an execution took on average; `None` if there was none.
    pub fn avg_duration_ms(&self) -> Option<f64> {
        self.average(self.total_duration_ms as f64)
    }

    /// What an execution cost on average, in dollars; `None` if there was none.
    pub fn avg_cost_per_execution(&self) -> Option<f64> {
        self.average(self.total_cost.to_f64())
    }

    fn average(&self, sum: f64) -> Option<f64> {
        (self.execution_count > 0).then(|| sum / self.execution_count as f64)
    }
}

impl Entity for Metrics {
    const TYPE: EntityType = EntityType::Metrics;

    fn key(&self) -> Item {
        metrics_key(self.date, self.workflow_type)
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.success_count.saturating_add(self.failure_count) > self.execution_count {
            return Err(Invalid::value(
                "executionCount",
                "no less than successCount and failureCount together",
                self.execution_count,
            ));
        }
        check_cost("totalCost", Some(self.total_cost))
    }

    fn fields(&self) -> Item {
        Item::new()
            .with("date", self.date)
            .with("workflowType", self.workflow_type)
            .with("period", self.period)
            .with("status", self.period)
            .with("executionCount", self.execution_count)
            .with("successCount", self.success_count)
            .with("failureCount", self.failure_count)
            .with("totalDurationMs", self.total_duration_ms)
            .with("totalCost", self.total_cost)
            .with("createdAt", self.created_at)
    }

    fn from_fields(item: &Item) -> Result<Self, Invalid> {
        let metrics = Metrics {
            date: required(item, "date")?,
            workflow_type: required(item, "workflowType")?,
            period: required(item, "period")?,
            execution_count: required(item, "executionCount")?,
            success_count: required(item, "successCount")?,
            failure_count: required(item, "failureCount")?,
            total_duration_ms: required(item, "totalDurationMs")?,
            total_cost: required(item, "totalCost")?,
            created_at: required(item, "createdAt")?,
        };
        match required::<Period>(item, "status")? {
            status if status == metrics.period => Ok(metrics),
            status => Err(Invalid::value("status", metrics.period, status)),
        }
    }
}
