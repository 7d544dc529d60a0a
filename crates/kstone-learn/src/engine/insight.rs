//! What follows from a learner's history: predictions, paths, recommendations.

use crate::mastery::{PredictionResult, Recommendation, What};

use super::{Error, MasteryEngine, Page, PageAsk, Result};

impl MasteryEngine {
    /// Where a learner's score will be in some days. Kept for an hour.
    ///
    /// # Errors
    /// [`Error::Refused`] without the learner's consent to prediction.
    pub async fn prediction(&self, student_id: &str, days: u16) -> Result<PredictionResult> {
        let _ = (student_id, days);
        Err(Error::Unavailable("predictions are not there yet".to_owned()))
    }

    /// What a learner should do next. Kept for a day.
    pub async fn path(&self, student_id: &str) -> Result<Vec<String>> {
        let _ = student_id;
        Err(Error::Unavailable("paths are not there yet".to_owned()))
    }

    /// What would help a learner now; added to the history of what was recommended.
    pub async fn recommendations(&self, student_id: &str) -> Result<Vec<Recommendation>> {
        let _ = student_id;
        Err(Error::Unavailable("recommendations are not there yet".to_owned()))
    }

    /// What was recommended to a learner, the newest first.
    pub async fn recommendation_history(
        &self,
        student_id: &str,
        page: &PageAsk,
    ) -> Result<Page<Recommendation>> {
        let _ = (student_id, page);
        Err(Error::Unavailable("recommendations are not there yet".to_owned()))
    }

    /// What a learner says of a recommendation.
    pub async fn give_feedback(
        &self,
        student_id: &str,
        recommendation_id: &str,
        helpful: bool,
        comment: Option<&str>,
    ) -> Result<Recommendation> {
        let _ = (student_id, recommendation_id, helpful, comment);
        Err(Error::Unavailable("recommendations are not there yet".to_owned()))
    }

    /// How hard a question is, as far as is known.
    pub(super) async fn difficulty_of(&self, what: &What) -> Result<Option<f64>> {
        let _ = what;
        Ok(None)
    }
}
