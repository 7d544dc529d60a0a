//! Predicts scores by a straight line through the known days.

use super::results::{PredictionResult, Trend};
use super::score::to_millionths;
use kstone_base::time::{Date, Moment};

/// Fewer days say nothing.
pub const SNAPSHOTS_MIN: usize = 3;
/// More days are not looked at.
pub const SNAPSHOTS_MAX: usize = 30;
/// So much a day is a trend.
const TREND_MIN: f64 = 0.01;
/// Below this somebody should look after the learner.
const INTERVENTION_BELOW: f64 = 0.5;
/// From so many days on, their number lowers confidence no more.
const DAYS_ENOUGH: f64 = 7.0;
const CONFIDENCE_MIN: f64 = 0.1;

/// The error that too few days are known for a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a prediction needs scores of at least {SNAPSHOTS_MIN} days, and there are {found}")]
pub struct TooFewDays {
    /// How many there are.
    pub found: usize,
}

/// The score to expect so many days after today, from the scores of the days that are known: the
/// newest 30, in any order. Of a day that is there twice, the last counts.
///
/// Confidence is R² × 1/(1+σ) × min(1, n/7) and at least 0.1, where σ is how far the scores lie from
/// the line. A learner whose score stands still has little confidence, since a line explains
/// nothing then; the band from `low` to `high` is narrow all the same. It holds the score four times
/// out of five, if it goes on as it did.
pub fn predict(
    scores: &[(Date, f64)],
    today: Date,
    days: u16,
    calculated_at: Moment,
) -> Result<PredictionResult, TooFewDays> {
    let line = Line::through(scores)?;
    let at = today.plus_days(i64::from(days));
    let (expected, spread) = line.at(at);
    let predicted_score = to_millionths(expected.clamp(0.0, 1.0));
    let end = |score: f64| to_millionths(score.clamp(0.0, 1.0));
    Ok(PredictionResult {
        predicted_score,
        confidence: to_millionths(line.confidence()),
        trend: line.trend(),
        intervention_needed: predicted_score < INTERVENTION_BELOW,
        calculated_at,
        days,
        low: end(expected - spread),
        high: end(expected + spread),
        snapshots: line.days as u32,
    })
}

/// Where a score is going, if enough days are known.
pub fn trend(scores: &[(Date, f64)]) -> Option<Trend> {
    Line::through(scores).ok().map(|line| line.trend())
}

/// A line by least squares. Days are counted from the first.
#[derive(Debug)]
struct Line {
    first: Date,
    days: usize,
    slope: f64,
    mean_day: f64,
    mean_score: f64,
    /// Sum of the squared distances of the days from their mean.
    days_squared: f64,
    scores_squared: f64,
    rest_squared: f64,
}

impl Line {
    fn through(scores: &[(Date, f64)]) -> Result<Line, TooFewDays> {
        let mut by_day: Vec<(Date, f64)> =
            scores.iter().filter(|(_, score)| score.is_finite()).copied().collect();
        // Stable, so that of the same day the last stays last.
        by_day.sort_by_key(|(day, _)| *day);
        by_day.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1;
            }
            same
        });
        let newest = by_day.split_off(by_day.len().saturating_sub(SNAPSHOTS_MAX));
        let first = match newest.first() {
            Some((first, _)) if newest.len() >= SNAPSHOTS_MIN => *first,
            _ => return Err(TooFewDays { found: newest.len() }),
        };
        let points: Vec<(f64, f64)> =
            newest.iter().map(|(day, score)| (day.days_since(first) as f64, *score)).collect();
        let count = points.len() as f64;
        let mean_day = points.iter().map(|(day, _)| day).sum::<f64>() / count;
        let mean_score = points.iter().map(|(_, score)| score).sum::<f64>() / count;
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|(day, score)| of(day - mean_day, score - mean_score)).sum()
        };
        // Never 0: there are at least three different days.
        let days_squared = sum(&|day, _| day * day);
        let scores_squared = sum(&|_, score| score * score);
        let slope = sum(&|day, score| day * score) / days_squared;
        let rest_squared = sum(&|day, score| (score - slope * day).powi(2));
        Ok(Line {
            first,
            days: points.len(),
            slope,
            mean_day,
            mean_score,
            days_squared,
            scores_squared,
            rest_squared,
        })
    }

    fn trend(&self) -> Trend {
        match to_millionths(self.slope) {
            slope if slope > TREND_MIN => Trend::Improving,
            slope if slope < -TREND_MIN => Trend::Declining,
            _ => Trend::Stable,
        }
    }

    fn confidence(&self) -> f64 {
        // Scores that do not differ by more than they are kept to lie on the line.
        let explained = match self.scores_squared < 1e-12 {
            true => 1.0,
            false => 1.0 - self.rest_squared / self.scores_squared,
        };
        let enough = (self.days as f64 / DAYS_ENOUGH).min(1.0);
        (explained / (1.0 + self.deviation()) * enough).clamp(CONFIDENCE_MIN, 1.0)
    }

    /// How far scores lie from the line.
    fn deviation(&self) -> f64 {
        (self.rest_squared / self.freedom()).sqrt()
    }

    fn freedom(&self) -> f64 {
        self.days as f64 - 2.0
    }

    /// The score to expect on a day, and how far from it four of five should lie.
    fn at(&self, day: Date) -> (f64, f64) {
        let from_mean = day.days_since(self.first) as f64 - self.mean_day;
        let expected = self.mean_score + self.slope * from_mean;
        let farther = 1.0 + 1.0 / self.days as f64 + from_mean * from_mean / self.days_squared;
        (expected, four_of_five(self.freedom()) * self.deviation() * farther.sqrt())
    }
}

/// Student's t for the middle 80 %, by degrees of freedom; to within 0.01.
fn four_of_five(freedom: f64) -> f64 {
    match freedom {
        freedom if freedom < 1.5 => 3.078,
        freedom if freedom < 2.5 => 1.886,
        freedom if freedom < 3.5 => 1.638,
        freedom if freedom < 4.5 => 1.533,
        freedom => 1.2816 + 0.93 / freedom,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(number: u64) -> Date {
        Date::from_epoch_days(20_000 + number).unwrap()
    }

    fn scores(of: &[(u64, f64)]) -> Vec<(Date, f64)> {
        of.iter().map(|(number, score)| (day(*number), *score)).collect()
    }

    fn from(of: &[(u64, f64)], today: u64, days: u16) -> PredictionResult {
        predict(&scores(of), day(today), days, Moment::default()).unwrap()
    }

    #[test]
    fn a_perfect_line_goes_on_with_full_confidence_after_seven_days() {
        let line: Vec<(u64, f64)> = (0..7).map(|day| (day, 0.5 + 0.02 * day as f64)).collect();
        let found = from(&line, 6, 7);
        assert_eq!(found.predicted_score, 0.76);
        assert_eq!(found.confidence, 1.0);
        assert_eq!(found.trend, Trend::Improving);
        assert_eq!((found.low, found.high), (0.76, 0.76));
        assert_eq!((found.days, found.snapshots), (7, 7));
        assert!(!found.intervention_needed);
    }

    #[test]
    fn fewer_days_than_seven_lower_confidence_and_fewer_than_three_say_nothing() {
        let line = [(0, 0.5), (1, 0.52), (2, 0.54)];
        assert_eq!(from(&line, 2, 1).confidence, to_millionths(3.0 / 7.0));
        let two = scores(&[(0, 0.5), (1, 0.5), (1, 0.6)]);
        assert_eq!(predict(&two, day(1), 7, Moment::default()), Err(TooFewDays { found: 2 }));
        assert_eq!(trend(&two), None);
        assert_eq!(predict(&[], day(1), 7, Moment::default()), Err(TooFewDays { found: 0 }));
    }

    #[test]
    fn dates_count_not_places_so_gaps_are_gaps() {
        let found = from(&[(0, 0.40), (10, 0.50), (20, 0.60)], 20, 10);
        assert_eq!(found.predicted_score, 0.7);
        assert_eq!(found.trend, Trend::Stable, "a hundredth a day is no trend yet");
    }

    #[test]
    fn a_trend_is_more_than_a_hundredth_a_day() {
        let line = |slope: f64| scores(&[0, 1, 2, 3].map(|day| (day, 0.5 + slope * day as f64)));
        assert_eq!(trend(&line(0.01)), Some(Trend::Stable));
        assert_eq!(trend(&line(0.0101)), Some(Trend::Improving));
        assert_eq!(trend(&line(-0.01)), Some(Trend::Stable));
        assert_eq!(trend(&line(-0.0101)), Some(Trend::Declining));
    }

    #[test]
    fn below_one_half_somebody_should_look() {
        let falling = [(0, 0.62), (1, 0.60), (2, 0.58)];
        assert!(!from(&falling, 2, 4).intervention_needed, "exactly one half is not below");
        assert!(from(&falling, 2, 5).intervention_needed);
    }

    #[test]
    fn a_score_stays_between_nothing_and_all_however_far_the_day() {
        let rising = [(0, 0.1), (1, 0.5), (2, 0.8)];
        let far = from(&rising, 2, 365);
        assert_eq!((far.predicted_score, far.high), (1.0, 1.0));
        let falling = [(0, 0.8), (1, 0.5), (2, 0.1)];
        let far = from(&falling, 2, 365);
        assert_eq!((far.predicted_score, far.low), (0.0, 0.0));
    }

    #[test]
    fn scores_that_jump_lower_confidence_and_widen_the_band() {
        let calm: Vec<(u64, f64)> = (0..10).map(|day| (day, 0.3 + 0.03 * day as f64)).collect();
        let jump =
            |(day, score): &(u64, f64)| (*day, score + if day % 2 == 0 { 0.1 } else { -0.1 });
        let jumping: Vec<(u64, f64)> = calm.iter().map(jump).collect();
        let (calm, jumping) = (from(&calm, 9, 3), from(&jumping, 9, 3));
        assert!(jumping.confidence < calm.confidence);
        assert!(jumping.high - jumping.low > 0.2, "{jumping:?}");
    }

    #[test]
    fn only_the_newest_thirty_days_count_in_whatever_order_they_come() {
        let mut all: Vec<(u64, f64)> = (0..30).map(|day| (day, 0.9)).collect();
        all.extend((30..60).map(|day| (day, 0.1 + 0.02 * (day - 30) as f64)));
        all.reverse();
        let found = from(&all, 59, 1);
        assert_eq!((found.snapshots, found.predicted_score), (30, 0.7));
    }

    #[test]
    fn a_score_that_stands_still_has_a_narrow_band() {
        let found = from(&[(0, 0.7), (1, 0.7), (2, 0.7), (3, 0.7)], 3, 30);
        assert_eq!((found.low, found.predicted_score, found.high), (0.7, 0.7, 0.7));
        assert_eq!(found.trend, Trend::Stable);
    }

    #[test]
    fn the_band_holds_four_of_five() {
        // Twelve uniform numbers make a normal one, nearly; the generator is Knuth's.
        let mut seed = 7_u64;
        let mut noise = || {
            let mut uniform = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 11) as f64 / (1_u64 << 53) as f64
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        };
        for days_known in [4_u64, 6, 10, 30] {
            let mut held = 0;
            for _ in 0..2000 {
                let score = |day: u64, noise: f64| 0.4 + 0.003 * day as f64 + 0.03 * noise;
                let known: Vec<(u64, f64)> =
                    (0..days_known).map(|day| (day, score(day, noise()))).collect();
                let found = from(&known, days_known - 1, 5);
                let truly = score(days_known + 4, noise());
                held += u32::from((found.low..=found.high).contains(&truly));
            }
            let share = f64::from(held) / 2000.0;
            assert!((0.77..0.83).contains(&share), "{share} with {days_known} days");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_scores_the_answer_is_in_order(
            of in proptest::collection::btree_map(0..400_u64, 0.0..=1.0, 3..60), days in 1..=365_u16,
        ) {
            let of: Vec<(u64, f64)> = of.into_iter().collect();
            let today = of.last().map_or(0, |(day, _)| *day);
            let found = from(&of, today, days);
            prop_assert!((0.1..=1.0).contains(&found.confidence));
            prop_assert!(0.0 <= found.low && found.low <= found.predicted_score);
            prop_assert!(found.predicted_score <= found.high && found.high <= 1.0);
            prop_assert_eq!(found.intervention_needed, found.predicted_score < 0.5);
        }
    }
}
