//! A learner's score over time, and where it is likely to go.

use kstone_keyspace::Date;
use maud::{Markup, html};

use super::at;
use crate::pages::figures::percent;
use crate::pages::layout::{Column, table};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;
/// Below this a learner needs somebody.
const LIMIT: f64 = 0.5;

/// Where a score is likely to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Forecast {
    /// In how many days from the last score.
    pub(crate) days: u16,
    pub(crate) score: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Scores by day, the oldest first, and the forecast behind them.
pub(crate) fn scores(days: &[(Date, f64)], forecast: Option<Forecast>) -> Markup {
    let Some((&(first, _), &(last, now))) = days.first().zip(days.last()) else {
        return html! {};
    };
    let to = last.days_since(first);
    let ahead = forecast.map_or(0, |it| i64::from(it.days));
    let whole = (to + ahead).max(1) as f64;
    let x = |day: i64| LEFT + day as f64 / whole * (WIDTH - LEFT - RIGHT);
    let y = |score: f64| TOP + (1.0 - score.clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM);
    let point = |day: i64, score: f64| format!("{} {}", at(x(day)), at(y(score)));
    let line: Vec<String> =
        days.iter().map(|&(day, score)| point(day.days_since(first), score)).collect();
    html! {
        figure {
            svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
                aria-labelledby="scores-title scores-desc"
            {
                title #scores-title { "Mastery from " (first) " to " (last) }
                desc #scores-desc {
                    "It went from " (percent(days.first().map_or(0.0, |it| it.1))) " to " (percent(now)) "."
                    @if let Some(it) = forecast {
                        " In " (it.days) " days it is likely to be between " (percent(it.low))
                        " and " (percent(it.high)) "."
                    }
                }
                @for step in 0..=4 {
                    @let score = f64::from(step) / 4.0;
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at(y(score))) y2=(at(y(score))) {}
                    text x=(LEFT - 8.0) y=(at(y(score) + 4.0)) text-anchor="end" { (percent(score)) }
                }
                line.limit x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at(y(LIMIT))) y2=(at(y(LIMIT))) {}
                @if let Some(it) = forecast {
                    @let end = to + i64::from(it.days);
                    path.band d={ "M" (point(to, now)) "L" (point(end, it.high)) "L" (point(end, it.low)) "Z" } {}
                    path.ahead d={ "M" (point(to, now)) "L" (point(end, it.score)) } {}
                }
                path.line d={ "M" (line.join("L")) } {}
                circle.dot cx=(at(x(to))) cy=(at(y(now))) r="4" {}
                text x=(LEFT) y=(HEIGHT - 8.0) { (first) }
                // Where there is room between the first day and the last.
                @if x(to) - LEFT > 160.0 {
                    text x=(at(x(to))) y=(HEIGHT - 8.0) text-anchor="end" { (last) }
                }
                @if let Some(it) = forecast {
                    text x=(WIDTH - RIGHT) y=(HEIGHT - 8.0) text-anchor="end" { "+" (it.days) " days" }
                }
            }
            details #scores-table {
                summary { "As a table" }
                (table("Mastery by day", &[Column::Text("Day"), Column::Number("Mastery")], &html! {
                    @for (day, score) in days.iter().rev() {
                        tr { th scope="row" { (day) } td.number { (format!("{score:.3}")) } }
                    }
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: u16, month: u8, day: u8) -> Date {
        Date::new(year, month, day).unwrap()
    }

    #[test]
    fn one_day_or_a_year_with_a_forecast_are_drawn_inside_the_picture() {
        let forecast = Some(Forecast { days: 7, score: 1.4, low: -0.2, high: 1.9 });
        let one = [(date(2026, 1, 1), 0.5)];
        let many: Vec<(Date, f64)> = (1..=28).map(|day| (date(2026, 2, day), 0.3)).collect();
        for days in [&one[..], &many[..]] {
            for forecast in [None, forecast] {
                let drawn = scores(days, forecast).into_string();
                assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
                assert_eq!(drawn.contains("path class=\"band\""), forecast.is_some());
            }
        }
        assert_eq!(scores(&[], forecast).into_string(), "");
    }
}
