//! Queries about one learner: current and past mastery, trends, activity, skills, struggles.

use std::collections::BTreeMap;
use std::sync::Arc;

use kstone_keyspace::keys::mastery::{
    ComponentScore, CurrentMastery, DailyMastery, HistoryDay, HistoryType, StudentId,
};
use kstone_keyspace::typed::TypedKey;

use super::cache::Lookup;
use super::{Error, MasteryEngine, Result, student};
use crate::domain::{ActivityData, Component, MasteryResult, SkillRating, Struggle};
use kstone_base::field::Invalid;
use kstone_base::store::{self, Range, key_of, parse};
use kstone_base::time::{Date, Moment};

/// How many days a history or a trend may be asked for.
const DAYS_MAX: i64 = 3660;

/// How long days and their components are kept.
pub(super) const DAYS_KEPT: i64 = 90;

impl MasteryEngine {
    /// A learner's mastery now, if anything is known of them: from the cache, or from the store.
    pub async fn get_current_mastery(&self, student_id: &str) -> Result<Option<MasteryResult>> {
        let student = student(student_id)?;
        Ok(self.current(&student).await?.map(|mastery| MasteryResult::clone(&mastery)))
    }

    pub(super) async fn current(&self, student: &StudentId) -> Result<Option<Arc<MasteryResult>>> {
        let unseen = match self.inner.cache.get(student).await {
            Lookup::Found(cached) => return Ok(Some(cached)),
            Lookup::Missing(unseen) => unseen,
        };
        let key = CurrentMastery { student_id: student.clone() };
        let Some(kept) = self.store().get::<_, MasteryResult>(&key).await? else {
            return Ok(None);
        };
        let mastery = Arc::new(kept.value);
        self.inner.cache.fill(student, &mastery, unseen).await;
        Ok(Some(mastery))
    }

    /// The mastery of several learners; those of whom nothing is known are left out.
    pub async fn get_batch_mastery(
        &self,
        student_ids: &[String],
    ) -> Result<BTreeMap<String, MasteryResult>> {
        let keys = student_ids.iter().map(|id| Ok(CurrentMastery { student_id: student(id)? }));
        let mut keys: Vec<CurrentMastery> = keys.collect::<Result<_>>()?;
        keys.sort();
        keys.dedup();
        let found: Vec<MasteryResult> = self.store().values(&keys).await?;
        Ok(found.into_iter().map(|it| (it.student_id.clone(), it)).collect())
    }

    /// A learner's mastery on each day from one to another, both included; days on which nothing
    /// happened are left out.
    pub async fn get_mastery_history(
        &self,
        student_id: &str,
        from: Date,
        to: Date,
    ) -> Result<Vec<(Date, MasteryResult)>> {
        check_days("from", from, to)?;
        self.history_of(&student(student_id)?, from, to).await
    }

    pub(super) async fn history_of(
        &self,
        student: &StudentId,
        from: Date,
        to: Date,
    ) -> Result<Vec<(Date, MasteryResult)>> {
        let mut days = BTreeMap::new();
        // What is older than the days are kept for has been put aside. Two days more, for clocks and
        // zones that differ.
        if from.plus_days(DAYS_KEPT - 2) <= self.now().date() {
            let (first, last) = (aside(student, from).sort_key(), aside(student, to).sort_key());
            let partition = HistoryDay::partition(student);
            let range = Range::between::<HistoryDay>(partition, first, last);
            days.extend(self.days(&range, |key: HistoryDay| key.date).await?);
        }
        let day = |date| DailyMastery { student_id: student.clone(), date }.sort_key();
        let partition = DailyMastery::partition(student);
        let range = Range::between::<DailyMastery>(partition, day(from), day(to));
        days.extend(self.days(&range, |key: DailyMastery| key.date).await?);
        Ok(days.into_iter().collect())
    }

    /// The days whose keys lie in a range. What other patterns have there is left out: the
    /// components of the days lie between the days.
    pub(super) async fn days<K: TypedKey>(
        &self,
        range: &Range,
        date: impl Fn(K) -> Date,
    ) -> Result<Vec<(Date, MasteryResult)>> {
        let mut days = Vec::new();
        for row in self.store().list(range).await?.0 {
            if let Some(key) = key_of(&row) {
                days.push((date(key), parse(&row)?));
            }
        }
        Ok(days)
    }

    /// One component on each of the last days on which something happened, the oldest first.
    pub async fn get_component_trend(
        &self,
        student_id: &str,
        component: Component,
        days: u16,
    ) -> Result<Vec<(Date, f64)>> {
        let student = student(student_id)?;
        let today = self.known(&student).await?.zone.date(self.now());
        let from = today.plus_days(1 - i64::from(days.max(1)));
        check_days("days", from, today)?;
        let wanted = component.into();
        let key = |date| ComponentScore { student_id: student.clone(), date, component: wanted };
        // A clock in another place may have begun the next day already.
        let last = key(today.plus_days(1)).sort_key();
        let partition = ComponentScore::partition(&student);
        let range = Range::between::<ComponentScore>(partition, key(from).sort_key(), last);
        let mut trend = BTreeMap::new();
        if i64::from(days) >= DAYS_KEPT {
            // What is older than components are kept for has been put aside with its day.
            for (date, mastery) in self.history_of(&student, from, today).await? {
                trend.insert(date, mastery.components.get(component));
            }
        }
        for row in self.store().list(&range).await?.0 {
            match key_of::<ComponentScore>(&row) {
                Some(key) if key.component == wanted => {
                    trend.insert(key.date, number(&row)?);
                }
                _ => {}
            }
        }
        Ok(trend.into_iter().collect())
    }

    /// When a learner was active.
    pub async fn activity(&self, student_id: &str) -> Result<ActivityData> {
        let known = self.of(student_id).await?;
        Ok(known.state.activity(self.now(), &known.zone))
    }

    /// Which day it is where a learner is; of somebody who is not known, where UTC is kept.
    pub async fn today(&self, student_id: &str) -> Result<Date> {
        Ok(self.known(&student(student_id)?).await?.zone.date(self.now()))
    }

    /// What a learner can do, by skill.
    pub async fn skills(&self, student_id: &str) -> Result<Vec<SkillRating>> {
        Ok(self.of(student_id).await?.state.skills())
    }

    /// What a learner struggles with now.
    pub async fn struggles(&self, student_id: &str) -> Result<Vec<Struggle>> {
        Ok(self.of(student_id).await?.state.struggles(self.now()))
    }

    /// A learner of whom something is known, as they are in the store.
    pub(super) async fn of(&self, student_id: &str) -> Result<Arc<super::change::KnownLearner>> {
        let known = self.read_known(&student(student_id)?).await?;
        match known.state.version() == 0 && known.profile.is_none() {
            true => Err(Error::not_found(format!("learner {student_id}"))),
            false => Ok(known),
        }
    }
}

fn aside(student: &StudentId, date: Date) -> HistoryDay {
    HistoryDay { student_id: student.clone(), history_type: HistoryType::Full, date }
}

fn number(row: &store::Row) -> Result<f64> {
    row.text.parse().map_err(|_| Error::Unreadable {
        key: format!("{}:{}", row.pk, row.sk),
        problem: "it is no number".to_owned(),
    })
}

/// Refuses a range of days that ends before it begins, or goes on for too long.
pub(super) fn check_days(field: &str, from: Date, to: Date) -> Result<()> {
    let days = days_between(from, to);
    if days < 0 {
        return Err(Invalid::value(field, format!("not later than {to}"), from).into());
    }
    match days < DAYS_MAX {
        true => Ok(()),
        false => Err(Invalid::value(field, format!("within {DAYS_MAX} days of {to}"), from).into()),
    }
}

fn days_between(from: Date, to: Date) -> i64 {
    let day = |date: Date| (Moment::start_of(date).epoch_ms() / 86_400_000) as i64;
    day(to) - day(from)
}
