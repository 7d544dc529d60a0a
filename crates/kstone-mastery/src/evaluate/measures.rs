//! Quality measures of predictions: accuracy, log loss, AUC and correlation.

/// A prediction and what came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The chance of a right answer, as predicted before it was known.
    pub chance: f64,
    /// Whether the answer was right.
    pub correct: bool,
}

/// What a model's predictions are worth.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Measures {
    /// The chance that a right answer had been given a higher prediction than a wrong one: 0.5 is
    /// guessing, 1 is perfect. `None` if all answers were right, or all wrong.
    pub auc: Option<f64>,
    /// The mean surprise, in nats: lower is better.
    pub log_loss: f64,
    /// The share of answers on the predicted side of one half.
    pub accuracy: f64,
    /// How many predictions were made.
    pub predictions: u64,
}

/// Certainty costs no more than this: a model that was sure and wrong is not infinitely bad.
const CHANCE_MIN: f64 = 1e-6;

impl Measures {
    /// Measures predictions, which it sorts. `None` if there are none.
    pub fn of(predictions: &mut [Prediction]) -> Option<Measures> {
        let count = predictions.len() as f64;
        if predictions.is_empty() {
            return None;
        }
        let surprise = |p: &Prediction| {
            let chance = p.chance.clamp(CHANCE_MIN, 1.0 - CHANCE_MIN);
            -(if p.correct { chance } else { 1.0 - chance }).ln()
        };
        let log_loss = predictions.iter().map(surprise).sum::<f64>() / count;
        let hits = predictions.iter().filter(|p| (p.chance >= 0.5) == p.correct).count();
        Some(Measures {
            auc: auc(predictions),
            log_loss,
            accuracy: hits as f64 / count,
            predictions: predictions.len() as u64,
        })
    }
}

/// By ranks: the area is the share of pairs of a right and a wrong answer that are in order, a tie
/// counting half.
fn auc(predictions: &mut [Prediction]) -> Option<f64> {
    let right = predictions.iter().filter(|p| p.correct).count() as f64;
    let wrong = predictions.len() as f64 - right;
    if right == 0.0 || wrong == 0.0 {
        return None;
    }
    predictions.sort_by(|a, b| a.chance.total_cmp(&b.chance));
    let (mut pairs, mut wrong_below) = (0.0, 0.0);
    for ties in predictions.chunk_by(|a, b| a.chance == b.chance) {
        let right_here = ties.iter().filter(|p| p.correct).count() as f64;
        let wrong_here = ties.len() as f64 - right_here;
        pairs += right_here * (wrong_below + wrong_here / 2.0);
        wrong_below += wrong_here;
    }
    Some(pairs / (right * wrong))
}

/// Pearson's correlation of pairs. `None` of fewer than two pairs, or if one side never varies.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - mean_x, y - mean_y);
        (xx, yy, xy) = (xx + dx * dx, yy + dy * dy, xy + dx * dy);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn predictions(of: &[(f64, bool)]) -> Vec<Prediction> {
        of.iter()
            .map(|(chance, correct)| Prediction { chance: *chance, correct: *correct })
            .collect()
    }

    #[test]
    fn the_area_is_one_when_every_right_answer_was_held_likelier_than_every_wrong_one() {
        let mut perfect = predictions(&[(0.9, true), (0.2, false), (0.8, true), (0.1, false)]);
        assert_eq!(auc(&mut perfect), Some(1.0));
        let mut reverse = predictions(&[(0.1, true), (0.9, false)]);
        assert_eq!(auc(&mut reverse), Some(0.0));
        let mut same = predictions(&[(0.5, true), (0.5, false), (0.5, true)]);
        assert_eq!(auc(&mut same), Some(0.5));
        assert_eq!(auc(&mut predictions(&[(0.5, true)])), None);
    }

    #[test]
    fn a_known_example_has_its_known_measures() {
        let mut some = predictions(&[(0.8, true), (0.6, false), (0.4, true), (0.2, false)]);
        let measures = Measures::of(&mut some).unwrap();
        assert_eq!(measures.auc, Some(0.75));
        assert_eq!(measures.accuracy, 0.5);
        let expected = -(0.8f64.ln() + 0.4f64.ln() + 0.4f64.ln() + 0.8f64.ln()) / 4.0;
        assert!((measures.log_loss - expected).abs() < 1e-12);
        assert!(Measures::of(&mut []).is_none());
        assert!(Measures::of(&mut predictions(&[(1.0, false)])).unwrap().log_loss.is_finite());
    }

    #[test]
    fn correlation_knows_a_line_from_a_cloud() {
        assert_eq!(correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]), Some(1.0));
        assert_eq!(correlation(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)]), Some(0.0));
        assert_eq!(correlation(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(correlation(&[]), None);
    }

    proptest! {
        #[test]
        fn ranks_count_the_same_pairs_as_counting_them_one_by_one(
            some in proptest::collection::vec((0u8..6, any::<bool>()), 0..40)
        ) {
            let all: Vec<_> = some.iter().map(|(c, right)| (f64::from(*c) / 5.0, *right)).collect();
            let (mut in_order, mut pairs) = (0.0, 0.0);
            for (right, _) in all.iter().filter(|(_, correct)| *correct) {
                for (wrong, _) in all.iter().filter(|(_, correct)| !*correct) {
                    pairs += 1.0;
                    in_order += if right > wrong { 1.0 } else if right == wrong { 0.5 } else { 0.0 };
                }
            }
            match auc(&mut predictions(&all)) {
                Some(area) => prop_assert!((area - in_order / pairs).abs() < 1e-9),
                None => prop_assert_eq!(pairs, 0.0),
            }
        }
    }
}
