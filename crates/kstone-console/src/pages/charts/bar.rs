//! Shares as bars, and days as dots.

use maud::{Markup, html};

use super::at;

/// What a bar's colour says, beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Plain => "fill",
            Tone::Good => "fill good",
            Tone::Warn => "fill warn",
            Tone::Bad => "fill bad",
        }
    }
}

/// A share of 1 as a bar. The number stands beside it, so it is not read out again.
pub(crate) fn bar(share: f64, tone: Tone) -> Markup {
    let width = if share.is_finite() { share.clamp(0.0, 1.0) * 100.0 } else { 0.0 };
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
            rect.rail x="0" y="0" width="100" height="6" {}
            @if width > 0.0 {
                rect class=(tone.class()) x="0" y="0" width=(at(width)) height="6" {}
            }
        }
    }
}

/// Days in a row, the newest last: on which something happened. Each says its name.
pub(crate) fn days(days: &[(String, bool)], label: &str) -> Markup {
    const STEP: usize = 20;
    html! {
        svg.days viewBox={ "0 0 " (days.len().max(1) * STEP) " " (STEP) } role="img" aria-label=(label) {
            @for (nth, (name, is_on)) in days.iter().enumerate() {
                rect class=(if *is_on { "on" } else { "off" }) x=(nth * STEP + 2) y="2" rx="4"
                    width=(STEP - 4) height=(STEP - 4)
                { title { (name) ": " (if *is_on { "active" } else { "not active" }) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_no_share_is_drawn_within_the_bar() {
        assert!(
            bar(2.0, Tone::Plain).into_string().contains(r#"width="100" height="6"></rect></svg>"#)
        );
        for odd in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            assert_eq!(bar(odd, Tone::Bad).into_string().matches("<rect").count(), 1);
        }
    }
}
