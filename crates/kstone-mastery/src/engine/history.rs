//! The three views of a learner's whole history: `full`, `components` and `recommendations`.
//!
//! `student:{student_id}:history:{view}` is a view and no item: it would grow without end. What it
//! shows is kept piece by piece. Days live 90 days under their own keys and are put aside before
//! they end, for good; recommendations the same, in the last month of their year.

use std::collections::BTreeMap;
use std::time::Duration;

use kstone_keyspace::keys::mastery::{
    DailyMastery, HistoryDay, HistoryType, Recommendation as AdviceKey, RecommendationId, StudentId,
};
use kstone_keyspace::typed::TypedKey;
use serde::{Deserialize, Serialize};

use super::{MasteryEngine, Page, PageRequest, Result, student};
use crate::domain::{Components, MasteryResult, Recommendation};
use kstone_base::field::Invalid;
use kstone_base::store::{self, Precondition, Range, parse, put_version};
use kstone_base::time::{Date, Moment};

/// Recommendations of this age are put aside: a month before they end, should nobody do it for a
/// while.
const ADVICE_ASIDE: Duration = Duration::from_secs(335 * 24 * 3600);
/// How many recommendations are put aside at once.
const ADVICE_TOGETHER: usize = 90;

/// A learner's mastery on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MasteryDay {
    /// The day, where the learner is.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub date: Date,
    /// The mastery at the end of it.
    pub mastery: MasteryResult,
}

/// What a learner's score was made of on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ComponentsDay {
    /// The day, where the learner is.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub date: Date,
    /// The components at the end of it.
    pub components: Components,
}

impl MasteryEngine {
    /// The view `history:full`: every day on which something happened, the newest first.
    pub async fn full_history(
        &self,
        student_id: &str,
        page: &PageRequest,
    ) -> Result<Page<MasteryDay>> {
        let student = student(student_id)?;
        let last = match &page.cursor {
            Some(cursor) => {
                let after: Date = cursor.parse().map_err(|_| Invalid::cursor(cursor))?;
                after.plus_days(-1).to_string()
            }
            None => "~".to_owned(),
        };
        let limit = page.limit();
        let mut days = BTreeMap::new();
        let prefix = aside_prefix(HistoryType::Full);
        let partition = HistoryDay::partition(&student);
        let aside =
            Range::between::<HistoryDay>(partition, prefix.clone(), format!("{prefix}{last}"));
        let aside = aside.newest_first().limit(limit + 1);
        days.extend(self.days(&aside, |key: HistoryDay| key.date).await?);
        // Of those that are not put aside yet there are few, and they have the newest of each day.
        let prefix = DailyMastery::FACTS.sort_prefix;
        let partition = DailyMastery::partition(&student);
        let (first, last) = (prefix.to_owned(), format!("{prefix}{last}"));
        let daily = Range::between::<DailyMastery>(partition, first, last);
        days.extend(self.days(&daily, |key: DailyMastery| key.date).await?);
        let more = days.len() > limit as usize;
        let newest = days.into_iter().rev().take(limit as usize);
        let items: Vec<_> = newest.map(|(date, mastery)| MasteryDay { date, mastery }).collect();
        let next = items.last().filter(|_| more).map(|day| day.date.to_string());
        Ok(Page { items, next })
    }

    /// The view `history:components`: the four components on every day on which something happened,
    /// the newest first.
    pub async fn components_history(
        &self,
        student_id: &str,
        page: &PageRequest,
    ) -> Result<Page<ComponentsDay>> {
        let Page { items, next } = self.full_history(student_id, page).await?;
        let components =
            |day: MasteryDay| ComponentsDay { date: day.date, components: day.mastery.components };
        Ok(Page { items: items.into_iter().map(components).collect(), next })
    }

    /// The view `history:recommendations`: everything that was recommended to a learner, the newest
    /// first.
    pub async fn recommendation_history(
        &self,
        student_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Recommendation>> {
        let student = student(student_id)?;
        let limit = page.limit() as usize;
        if let Some(cursor) = &page.cursor {
            made_on(&student, cursor)?;
        }
        let range = Range::of::<AdviceKey>(AdviceKey::partition(&student))
            .newest_first()
            .limit(page.limit())
            .after(page.cursor.clone());
        let (rows, mut more) = self.store().list(&range).await?;
        let mut items: Vec<Recommendation> = rows.iter().map(parse).collect::<Result<_>>()?;
        if !more {
            let after = match items.last() {
                Some(last) => Some(place_of(&student, last)?),
                None => page.cursor.clone(),
            };
            let (older, has_more) = self
                .archived_recommendations(&student, after.as_deref(), limit - items.len())
                .await?;
            items.extend(older);
            more = has_more;
        }
        let last = items.last().filter(|_| more);
        let next = last.map(|last| place_of(&student, last)).transpose()?;
        Ok(Page { items, next })
    }

    /// Archived recommendations after a cursor, the newest first; and whether there are more than
    /// this many.
    async fn archived_recommendations(
        &self,
        student: &StudentId,
        after: Option<&str>,
        count: usize,
    ) -> Result<(Vec<Recommendation>, bool)> {
        let last = match after {
            Some(place) => made_on(student, place)?.to_string(),
            None => "~".to_owned(),
        };
        let prefix = aside_prefix(HistoryType::Recommendations);
        let partition = HistoryDay::partition(student);
        let range =
            Range::between::<HistoryDay>(partition, prefix.clone(), format!("{prefix}{last}"));
        // Each day has one at least; of the first, some may lie before the place.
        let days = u32::try_from(count).unwrap_or(u32::MAX).saturating_add(2);
        let (rows, has_more) = self.store().list(&range.newest_first().limit(days)).await?;
        let mut found = Vec::new();
        for row in &rows {
            let mut day: Vec<Recommendation> = parse(row)?;
            day.reverse();
            for advice in day {
                if after.is_none_or(|after| place_of(student, &advice).is_ok_and(|it| *it < *after))
                {
                    found.push(advice);
                }
            }
        }
        let more = has_more || found.len() > count;
        found.truncate(count);
        Ok((found, more))
    }

    /// Archives recommendations by the day on which they were made, before they expire. Returns
    /// whether there were any.
    pub(super) async fn archive_recommendations(&self, student: &StudentId) -> Result<bool> {
        let before = Moment::start_of(self.now().minus(ADVICE_ASIDE).date());
        let prefix = AdviceKey::FACTS.sort_prefix;
        let range = Range::between::<AdviceKey>(
            AdviceKey::partition(student),
            prefix.to_owned(),
            format!("{prefix}{}", before.millis()),
        );
        let (rows, _) = self.store().list(&range).await?;
        let mut by_day: BTreeMap<Date, Vec<Recommendation>> = BTreeMap::new();
        for row in &rows {
            let advice: Recommendation = parse(row)?;
            by_day.entry(advice.made_at.date()).or_default().push(advice);
        }
        let any = !by_day.is_empty();
        for (date, mut day) in by_day {
            // A few are made in a day. Should it be more than a transaction takes, the next time
            // brings the rest.
            day.truncate(ADVICE_TOGETHER);
            let history_type = HistoryType::Recommendations;
            let key = HistoryDay { student_id: student.clone(), history_type, date };
            let mut actions = Vec::with_capacity(day.len() + 1);
            for advice in &day {
                actions.push(store::delete(&advice_key(student, advice)?));
            }
            let kept = self.store().get::<_, Vec<Recommendation>>(&key).await?;
            let (mut all, version) = kept.map_or((Vec::new(), 0), |it| (it.value, it.version));
            all.append(&mut day);
            actions.push(put_version(&key, &all, version + 1, Precondition::Version(version))?);
            let done = self.store().commit(actions).await;
            done.map_err(|stopped| stopped.into_error("the history"))?;
        }
        Ok(any)
    }
}

/// The key of a recommendation while it can get feedback.
pub(super) fn advice_key(student: &StudentId, advice: &Recommendation) -> Result<AdviceKey> {
    Ok(AdviceKey {
        student_id: student.clone(),
        at: advice.made_at.millis(),
        recommendation_id: RecommendationId::new(advice.id.as_str())?,
    })
}

/// Where a recommendation is among all of the learner's, wherever it is kept.
fn place_of(student: &StudentId, advice: &Recommendation) -> Result<String> {
    Ok(advice_key(student, advice)?.sort_key())
}

/// The day on which the recommendation at a place was made.
fn made_on(student: &StudentId, place: &str) -> Result<Date> {
    let key = AdviceKey::parse(format!("{}:{place}", AdviceKey::partition(student)).as_bytes());
    let AdviceKey { at, .. } = key.ok_or_else(|| Invalid::cursor(place))?;
    Ok(Moment::from_epoch_ms(at.get()).date())
}

fn aside_prefix(view: HistoryType) -> String {
    format!("{}{}:", HistoryDay::FACTS.sort_prefix, view.as_str())
}
