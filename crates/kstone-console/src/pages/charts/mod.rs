//! Charts, as SVG that the style sheet colours. Each says in words what it shows.

mod bar;
mod heat;
mod spark;
mod trajectory;

pub(crate) use bar::{Tone, bar, days};
pub(crate) use heat::heat_map;
pub(crate) use spark::sparkline;
pub(crate) use trajectory::{Forecast, scores};

/// A coordinate, short.
fn at(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
