//! Binds the expressions of a request.

use crate::database::Database;
use crate::error::{Error, Result};
use crate::expr::{Binder, BoundCondition, BoundKeyCondition, BoundProjection, BoundUpdate, Kind};
use crate::ops::{Condition, KeyCondition, Placeholders, Projection, Update};
use crate::value::ItemBytes;

/// All expressions of a request, bound. Which of them a request can have is its own business.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    pub key_condition: Option<BoundKeyCondition>,
    pub condition: Option<BoundCondition>,
    pub update: Option<BoundUpdate>,
    pub projection: Option<BoundProjection>,
}

/// The expressions of a request as they came.
#[derive(Debug, Default)]
pub(crate) struct Unbound<'a> {
    pub key_condition: Option<&'a KeyCondition>,
    pub condition: Option<&'a Condition>,
    pub filter: Option<&'a Condition>,
    pub update: Option<&'a Update>,
    pub projection: Option<&'a Projection>,
}

impl Unbound<'_> {
    fn is_empty(&self) -> bool {
        self.key_condition.is_none()
            && self.condition.is_none()
            && self.filter.is_none()
            && self.update.is_none()
            && self.projection.is_none()
    }

    /// Whether a PartiQL statement is behind it: all of it comes from there, or nothing.
    fn is_statement(&self) -> bool {
        let conditions = self.condition.into_iter().chain(self.filter);
        matches!(self.update, Some(Update::Statement(_)))
            || conditions.into_iter().any(|c| matches!(c, Condition::Statement(_)))
    }
}

impl Database {
    /// Parses and binds, in the order in which DynamoDB looks for mistakes.
    pub(crate) fn bind(&self, unbound: &Unbound<'_>, placeholders: &Placeholders) -> Result<Bound> {
        // The most frequent requests of all have no expressions.
        if unbound.is_empty() && *placeholders == Placeholders::default() {
            return Ok(Bound::default());
        }
        let mut binder = Binder::new(&self.inner().expressions, placeholders)?;
        if unbound.is_statement() {
            binder = binder.for_statement();
        }
        let mut bound = Bound::default();
        match unbound.update {
            Some(Update::Text(text) | Update::Statement(text)) => {
                bound.update = Some(binder.update(text)?)
            }
            Some(Update::Built(update)) => bound.update = Some(update.clone()),
            None => {}
        }
        match unbound.key_condition {
            Some(KeyCondition::Text(text)) => {
                bound.key_condition = Some(binder.key_condition(text)?);
            }
            Some(KeyCondition::Built(condition)) => bound.key_condition = Some(condition.clone()),
            None => {}
        }
        // No request has both.
        let kind = if unbound.filter.is_some() { Kind::Filter } else { Kind::Condition };
        match unbound.filter.or(unbound.condition) {
            Some(Condition::Text(text) | Condition::Statement(text)) => {
                bound.condition = Some(binder.condition(kind, text)?);
            }
            Some(Condition::Built(condition)) => bound.condition = Some(condition.clone()),
            None => {}
        }
        match unbound.projection {
            Some(Projection::Text(text)) => bound.projection = Some(binder.projection(text)?),
            Some(Projection::Attributes(names)) => {
                bound.projection = Some(BoundProjection::from_attributes(names)?);
            }
            None => {}
        }
        binder.finish()?;
        Ok(bound)
    }
}

/// Fails unless the item meets the condition.
pub(crate) fn check(
    condition: Option<&BoundCondition>,
    item: Option<&ItemBytes>,
    return_item: bool,
) -> Result<()> {
    let Some(condition) = condition else { return Ok(()) };
    if condition.matches(item.map(ItemBytes::as_ref))? {
        return Ok(());
    }
    Err(Error::ConditionFailed { item: item.filter(|_| return_item).cloned() })
}
