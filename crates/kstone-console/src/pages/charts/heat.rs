//! A heat map of the 256 stripes, 16 rows of 16: the fuller the darker.

use std::iter::once;

use maud::{Markup, html};

use crate::pages::figures::count;
use crate::pages::layout::{Column, table};
use crate::server_status::{FULLNESS_LEVELS, fullness};

const CELL: usize = 20;
const EDGE: usize = 22;

/// `values` has one number for each stripe; `show` says it with its unit.
pub(crate) fn heat_map(values: &[u64], what: &str, show: impl Fn(u64) -> String) -> Markup {
    let max = values.iter().copied().max().unwrap_or(0);
    let offsets: Vec<String> = (0..16).map(|n| format!("+{n}")).collect();
    let columns: Vec<Column<'_>> =
        once(Column::Text("Stripes")).chain(offsets.iter().map(|n| Column::Number(n))).collect();
    let (size, empty) = (EDGE + 16 * CELL, values.iter().filter(|&&it| it == 0).count());
    html! {
        figure {
            svg.heat viewBox={ "0 0 " (size) " " (size) } role="img"
                aria-labelledby="heat-title heat-desc"
            {
                title #heat-title { (what) " in each of the " (values.len()) " stripes" }
                desc #heat-desc {
                    "A grid of 16 rows of 16 stripes. The fullest has " (show(max)) "; "
                    (count(empty as u64)) " are empty."
                }
                @for n in 0..16 {
                    text x=(EDGE + n * CELL + CELL / 2) y="14" text-anchor="middle" aria-hidden="true" {
                        (format!("{n:x}"))
                    }
                    text x=(EDGE - 8) y=(EDGE + n * CELL + CELL / 2 + 4) text-anchor="end"
                        aria-hidden="true"
                    { (format!("{n:x}")) }
                }
                @for (stripe, &value) in values.iter().enumerate() {
                    rect class={ "h" (fullness(value, max)) } x=(EDGE + stripe % 16 * CELL)
                        y=(EDGE + stripe / 16 * CELL) width=(CELL) height=(CELL)
                    { title { "Stripe " (stripe) ": " (show(value)) } }
                }
            }
            div.legend aria-hidden="true" {
                span { "0" }
                svg viewBox="0 0 90 8" preserveAspectRatio="none" {
                    @for level in 0..=FULLNESS_LEVELS {
                        rect class={ "h" (level) } x=(level * 10) y="0" width="10" height="8" {}
                    }
                }
                span { (show(max)) }
            }
            details #heat-table {
                summary { "As a table" }
                (table(&format!("{what} by stripe"), &columns, &html! {
                    @for (row, cells) in values.chunks(16).enumerate() {
                        tr {
                            th scope="row" { (row * 16) }
                            @for &value in cells { td.number { (show(value)) } }
                        }
                    }
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stripe_has_a_cell_that_says_its_number() {
        let values: Vec<u64> = (0..256).collect();
        let drawn = heat_map(&values, "Records", count).into_string();
        assert_eq!(drawn.matches("<title>Stripe ").count(), 256);
        assert!(drawn.contains("Stripe 255: 255"));
    }
}
