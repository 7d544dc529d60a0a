//! Insights from the history of a learner: predictions, paths, recommendations; and item
//! difficulty.

use std::time::Duration;

use kstone_keyspace::keys::mastery::{
    AdaptivePath, Days, ItemId, ItemRating as ItemKey, Prediction, Recommendation as AdviceKey,
    RecommendationId, SkillId, StudentId,
};

use super::change::{KnownLearner, require_analytics};
use super::history::advice_key;
use super::{Error, MasteryEngine, Result, student};
use crate::domain::{
    EventDetail, Feedback, ItemRating, ObservedAnswer, PredictionResult, Recommendation,
    SNAPSHOTS_MAX, adaptive_path, made_at, predict, recommend,
};
use kstone_base::field::check_length;
use kstone_base::store::{
    self, CommitError, Precondition, Range, Versioned, parse, put, put_version, with_precondition,
};
use kstone_base::time::{Date, Moment};

/// Advice that was given so short a time ago is not given again.
const ADVICE_LASTS: Duration = Duration::from_secs(24 * 3600);
/// How long the difficulty of a question is remembered.
const DIFFICULTY_LIFE: Duration = Duration::from_secs(60);

impl MasteryEngine {
    /// Where a learner's score will be in some days. Kept for an hour.
    ///
    /// # Errors
    /// [`Error::Refused`] without the learner's consent to analytics and prediction;
    /// [`Error::TooEarly`] while too few days are known.
    pub async fn prediction(&self, student_id: &str, days: u16) -> Result<PredictionResult> {
        let within = Days::new(u64::from(days))?;
        let known = self.of(student_id).await?;
        require_analytics(&known)?;
        let consent = known.profile.as_ref().is_none_or(|profile| profile.consent.prediction);
        if !consent {
            return Err(Error::refused("the learner does not consent to predictions"));
        }
        let student = student(student_id)?;
        let key = Prediction { student_id: student.clone(), days: within };
        if let Some(kept) = self.store().get::<_, PredictionResult>(&key).await? {
            return Ok(kept.value);
        }
        let now = self.now();
        let today = known.zone.date(now);
        let scores = self.scores(&student, today, SNAPSHOTS_MAX).await?;
        let predicted = predict(&scores, today, days, now);
        let predicted = predicted.map_err(|few| Error::TooEarly { why: few.to_string() })?;
        self.keep_derived(&student, put(&key, &predicted)?, &known).await?;
        Ok(predicted)
    }

    /// What a learner should do next. Kept for a day.
    ///
    /// # Errors
    /// [`Error::Refused`] without the learner's consent to analytics.
    pub async fn path(&self, student_id: &str) -> Result<Vec<String>> {
        let known = self.of(student_id).await?;
        require_analytics(&known)?;
        let student = student(student_id)?;
        let key = AdaptivePath { student_id: student.clone() };
        if let Some(kept) = self.store().get::<_, Vec<String>>(&key).await? {
            return Ok(kept.value);
        }
        let state = &known.state;
        let path = adaptive_path(
            &state.mastery().components,
            &state.skills(),
            &state.struggles(self.now()),
        );
        self.keep_derived(&student, put(&key, &path)?, &known).await?;
        Ok(path)
    }

    /// Recommendations for a learner now. New ones are added to the history; those of the last day
    /// are repeated, with their feedback.
    ///
    /// # Errors
    /// [`Error::Refused`] without the learner's consent to analytics.
    pub async fn recommendations(&self, student_id: &str) -> Result<Vec<Recommendation>> {
        let known = self.of(student_id).await?;
        require_analytics(&known)?;
        let student = student(student_id)?;
        let now = self.now();
        let first_of = |moment: Moment| format!("recommendation:{}", moment.millis());
        let lately = Range::between::<AdviceKey>(
            AdviceKey::partition(&student),
            first_of(now.minus(ADVICE_LASTS)),
            "recommendation:~".to_owned(),
        );
        let (rows, _) = self.store().list(&lately).await?;
        let lately: Vec<Recommendation> = rows.iter().map(parse).collect::<Result<_>>()?;
        let state = &known.state;
        let made = recommend(&state.mastery().components, &state.skills(), now);
        let (mut advice, mut actions) = (Vec::with_capacity(made.len()), Vec::new());
        for new in made {
            match lately.iter().rev().find(|it| it.area == new.area) {
                Some(before) => advice.push(before.clone()),
                None => {
                    let key = advice_key(&student, &new)?;
                    actions.push(put_version(&key, &new, 1, Precondition::Absent)?);
                    advice.push(new);
                }
            }
        }
        if !actions.is_empty() {
            match self.store().commit(actions).await {
                // Somebody else asked in the same moment, and was told the same.
                Ok(()) | Err(CommitError::PreconditionsFailed(_)) => {}
                Err(stopped) => return Err(stopped.into_error("the recommendations")),
            }
        }
        Ok(advice)
    }

    /// Stores a learner's feedback on a recommendation; the last counts.
    pub async fn give_feedback(
        &self,
        student_id: &str,
        recommendation_id: &str,
        helpful: bool,
        comment: Option<&str>,
    ) -> Result<Recommendation> {
        if let Some(comment) = comment {
            check_length("comment", comment, 1..=2000)?;
        }
        let student = student(student_id)?;
        let id = RecommendationId::new(recommendation_id)?;
        let missing = || Error::not_found(format!("recommendation {id} of learner {student}"));
        let at = made_at(recommendation_id).ok_or_else(missing)?.millis();
        let key = AdviceKey { student_id: student.clone(), at, recommendation_id: id.clone() };
        let kept = self.store().get::<_, Recommendation>(&key).await?;
        let Versioned { value: mut advice, version } = kept.ok_or_else(missing)?;
        let comment = comment.map(str::to_owned);
        advice.feedback = Some(Feedback { helpful, comment, at: self.now() });
        let write = put_version(&key, &advice, version + 1, Precondition::Version(version))?;
        // An answer does not make it last longer.
        self.store().put(store::expiring(write, advice.made_at.plus(ADVICE_KEPT))).await?;
        Ok(advice)
    }

    /// The scores of a learner's last days, up to one, the oldest first.
    pub(super) async fn scores(
        &self,
        student: &StudentId,
        today: Date,
        days: usize,
    ) -> Result<Vec<(Date, f64)>> {
        let mut scores = Vec::with_capacity(days);
        let from = today.plus_days(-(days as i64) * REACH);
        for (date, mastery) in self.history_of(student, from, today.plus_days(1)).await? {
            scores.push((date, mastery.mastery_score));
        }
        let too_many = scores.len().saturating_sub(days);
        Ok(scores.split_off(too_many))
    }

    /// How hard a question is, as far as is known.
    pub(super) async fn difficulty_of(&self, what: &EventDetail) -> Result<Option<f64>> {
        let EventDetail::Answer { skill_id, item_id, .. } = what else { return Ok(None) };
        let key = item_key(skill_id, item_id)?;
        let now = self.inner.clock.monotonic();
        if let Some((difficulty, at)) = self.inner.difficulties.get(&key)
            && now.saturating_sub(at) < DIFFICULTY_LIFE
        {
            return Ok(difficulty);
        }
        let rating = self.store().get::<_, ItemRating>(&key).await?;
        let difficulty = rating.map(|kept| kept.value.difficulty.rating);
        self.inner.difficulties.insert(key, (difficulty, now));
        Ok(difficulty)
    }

    /// Learns from answers how hard their questions are. Done in the background for many answers at
    /// once: a learner's own transaction never waits for an item that all learners share.
    pub(super) async fn rate_items(&self, answers: &[ObservedAnswer]) -> Result<()> {
        let mut by_item: std::collections::BTreeMap<ItemKey, Vec<&ObservedAnswer>> =
            std::collections::BTreeMap::new();
        for answer in answers {
            by_item.entry(item_key(&answer.skill_id, &answer.item_id)?).or_default().push(answer);
        }
        for (key, answers) in by_item {
            self.rate_item(&key, &answers).await?;
        }
        Ok(())
    }

    async fn rate_item(&self, key: &ItemKey, answers: &[&ObservedAnswer]) -> Result<()> {
        for _ in 0..10 {
            let kept = self.store().get::<_, ItemRating>(key).await?;
            let version = kept.as_ref().map_or(0, |kept| kept.version);
            let new = || ItemRating::new(key.skill_id.as_str(), key.item_id.as_str());
            let mut rating = kept.map_or_else(new, |kept| kept.value);
            answers.iter().for_each(|answer| rating.absorb(answer));
            let write = put_version(key, &rating, version + 1, Precondition::Version(version))?;
            match self.store().commit(vec![write]).await {
                Ok(()) => return Ok(()),
                Err(CommitError::PreconditionsFailed(_) | CommitError::Busy) => {}
                Err(CommitError::Error(error)) => return Err(error),
            }
        }
        Err(Error::Conflict { what: format!("question {}", key.item_id), current: None })
    }

    /// Stores a derived value, unless the learner's consent changed meanwhile.
    async fn keep_derived(
        &self,
        student: &StudentId,
        write: kstone_ports::items::TransactAction,
        known: &KnownLearner,
    ) -> Result<()> {
        let learner = kstone_keyspace::keys::mastery::Learner { student_id: student.clone() };
        let check = store::check(&learner, Precondition::Version(known.profile_version));
        match self.store().commit(vec![with_precondition(write, Precondition::Any), check]).await {
            Ok(()) | Err(CommitError::PreconditionsFailed(_) | CommitError::Busy) => Ok(()),
            Err(CommitError::Error(error)) => Err(error),
        }
    }
}

/// Days are looked for so many times as far back as there should be: some days nothing happens, and
/// what lies further back says little about where a score is going.
const REACH: i64 = 3;
/// How long the catalogue keeps a recommendation.
const ADVICE_KEPT: Duration = Duration::from_secs(365 * 24 * 3600);

fn item_key(skill_id: &str, item_id: &str) -> Result<ItemKey> {
    Ok(ItemKey { skill_id: SkillId::new(skill_id)?, item_id: ItemId::new(item_id)? })
}
