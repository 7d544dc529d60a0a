//! Ranges of days, as parameters.

use kstone_base::time::Date;
use serde::Deserialize;

use super::Result;
use super::problem::Problem;

/// Days of one question, at most.
const DAYS_MAX: i64 = 366;
/// The number of days when no range is given.
const DAYS: i64 = 30;

/// From one day to another, both included.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeParams {
    /// The first day, such as 2026-01-14; default 29 days before the last
    #[param(value_type = Option<String>, format = Date)]
    from: Option<Date>,
    /// The last day; default today, in the learner's time zone if it is about one
    #[param(value_type = Option<String>, format = Date)]
    to: Option<Date>,
}

impl RangeParams {
    /// The days that are asked for.
    pub fn days(&self, today: Date) -> Result<(Date, Date)> {
        let to = self.to.unwrap_or(today);
        let from = self.from.unwrap_or_else(|| to.plus_days(1 - DAYS));
        if from > to {
            return Err(Problem::invalid("from", format!("must not be after {to}")));
        }
        if to.days_since(from) >= DAYS_MAX {
            return Err(Problem::invalid("from", format!("must be at most {DAYS_MAX} days back")));
        }
        Ok((from, to))
    }
}
