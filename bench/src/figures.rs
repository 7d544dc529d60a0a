//! What all commands make of their samples: medians, spreads, numbers that can be read,
//! and the files that are kept.

use crate::Outcome;
use serde::Serialize;
use std::fs;
use std::path::PathBuf;

/// The middle one, or between the middle two.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 0 => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

/// The distance from the slowest to the fastest, as a share of the median.
pub fn spread(values: &[f64]) -> f64 {
    let slowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest = values.iter().copied().fold(0.0, f64::max);
    median(values.to_vec()).map_or(0.0, |median| (fastest - slowest) / median)
}

/// A number without decimals, its digits in groups.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Keeps every sample in a file named by the date, the command and its label.
pub fn save(results: &impl Serialize, started: &str, command: &str, label: &str) -> Outcome<()> {
    // Set by `cargo run`; a program started by hand saves where it stands.
    let home = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let runs_dir = home.join("runs");
    fs::create_dir_all(&runs_dir)?;
    let path = runs_dir.join(format!("{started}-{command}-{label}.json"));
    fs::write(&path, serde_json::to_string_pretty(results)? + "\n")?;
    eprintln!("saved {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn digits_are_grouped_by_three_from_the_right() {
        assert_eq!(thousands(7.0), "7");
        assert_eq!(thousands(1234.4), "1 234");
        assert_eq!(thousands(123_456_789.0), "123 456 789");
    }
}
