//! Sparklines: small lines without axes that show whether a number goes up or down.

use maud::{Markup, html};

use super::at;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;
/// More points than this cannot be told apart.
const POINTS_MAX: usize = 60;

/// The numbers as a line from left to right, from zero up.
pub(crate) fn sparkline(values: &[f64], label: &str) -> Markup {
    let values = thinned(values);
    let max = values.iter().copied().fold(0.0, f64::max).max(1.0);
    let step = WIDTH / (values.len().saturating_sub(1).max(1)) as f64;
    let place = |(nth, value): (usize, &f64)| {
        let y = HEIGHT - 1.0 - (value / max) * (HEIGHT - 2.0);
        format!("{} {}", at(nth as f64 * step), at(y))
    };
    let points: Vec<String> = values.iter().enumerate().map(place).collect();
    let line = format!("M{}", points.join("L"));
    let area =
        format!("{line}L{} {HEIGHT}L0 {HEIGHT}Z", at(step * points.len().saturating_sub(1) as f64));
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
            aria-label=(label)
        {
            @if points.len() > 1 {
                path.area d=(area) {}
                path.line d=(line) {}
            } @else {
                path.line d={ "M0 " (HEIGHT - 1.0) "H" (WIDTH) } {}
            }
        }
    }
}

/// Means of neighbours, so that there are not too many.
fn thinned(values: &[f64]) -> Vec<f64> {
    let together = values.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[f64]| chunk.iter().sum::<f64>() / chunk.len() as f64;
    // From the end, so that the newest point is always a whole one.
    let mut means: Vec<f64> = values.rchunks(together).map(mean).collect();
    means.reverse();
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_become_few_points_and_the_newest_stays_last() {
        let values: Vec<f64> = (0..300).map(f64::from).collect();
        let thin = thinned(&values);
        assert_eq!(thin.len(), 60);
        assert_eq!(thin.last(), Some(&297.0));
        assert_eq!(thinned(&[]), Vec::<f64>::new());
    }

    #[test]
    fn nothing_and_zeros_are_a_flat_line() {
        for values in [&[][..], &[0.0][..], &[0.0, 0.0][..]] {
            let drawn = sparkline(values, "none").into_string();
            assert!(drawn.contains("path") && !drawn.contains("NaN"), "{drawn}");
        }
    }
}
