//! A heat map of the 256 stripes: 16 rows of 16, the fuller the brighter.

use kstone_console::server_status::{FULLNESS_LEVELS as LEVELS, fullness};

use crate::output::Output;

/// From little to much.
const ASCII: [&str; LEVELS + 1] = ["  ", "..", "::", "--", "==", "++", "**", "##", "@@"];
const SHADES: [&str; LEVELS + 1] = ["· ", "░░", "░░", "▒▒", "▒▒", "▓▓", "▓▓", "██", "██"];
/// Of the 256 colours of a terminal: from deep blue over green to yellow and red.
const COLOURS: [u8; LEVELS + 1] = [236, 18, 25, 31, 37, 71, 148, 214, 196];

/// The picture, line by line, with a legend. `values` has one number for each stripe.
pub fn lines(values: &[u64], unit: &str, show: fn(u64) -> String, out: &Output) -> Vec<String> {
    let max = values.iter().copied().max().unwrap_or(0);
    let mut lines = Vec::new();
    let columns: String = (0..16).map(|column| format!("{column:<2x}")).collect();
    lines.push(out.faint(&format!("        {columns}")));
    for (row, cells) in values.chunks(16).enumerate() {
        let cells: String = cells.iter().map(|&value| cell(fullness(value, max), out)).collect();
        let first = out.faint(&format!("  {:>3} {row:x} ", row * 16));
        lines.push(format!("{first}{cells}"));
    }
    lines.push(String::new());
    lines.push(format!("  {}", legend(values, max, unit, show, out)));
    lines
}

fn cell(level: usize, out: &Output) -> String {
    let pick = |ramp: &[&str; LEVELS + 1]| ramp.get(level).copied().unwrap_or("??").to_owned();
    if out.has_colour {
        let colour = COLOURS.get(level).copied().unwrap_or(255);
        let text = if level == 0 { "· " } else { "██" };
        format!("\x1b[38;5;{colour}m{text}\x1b[0m")
    } else if out.is_terminal {
        pick(&SHADES)
    } else {
        pick(&ASCII)
    }
}

fn legend(values: &[u64], max: u64, unit: &str, show: fn(u64) -> String, out: &Output) -> String {
    let ramp: String = (1..=LEVELS).map(|level| cell(level, out)).collect();
    let sum: u64 = values.iter().sum();
    let average = sum / values.len().max(1) as u64;
    let empty = values.iter().filter(|&&value| value == 0).count() as u64;
    let empty = match empty {
        0 => String::new(),
        n => format!("   {}empty ({n})", cell(0, out)),
    };
    format!("0 {ramp} {}   average {} {unit}{empty}", show(max), show(average))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_16_by_16_for_every_kind_of_reader() {
        let values: Vec<u64> = (0..256).collect();
        let draw = |out: &Output| lines(&values, "a stripe", |n| n.to_string(), out);
        for out in [
            Output::pretend(false, false),
            Output::pretend(true, false),
            Output::pretend(true, true),
        ] {
            let lines = draw(&out);
            assert_eq!(lines.len(), 19, "a header, 16 rows, a blank, a legend");
            for row in &lines[1..17] {
                let visible: String = row.split('\x1b').map(without_style).collect();
                assert_eq!(visible.chars().count(), 8 + 32, "{row:?}");
            }
            assert!(lines[18].contains("255   average 127 a stripe"), "{:?}", lines[18]);
            assert!(lines[18].contains("empty (1)"), "{:?}", lines[18]);
            assert_eq!(lines[1].contains("\x1b[38;5;"), out.has_colour);
        }
        assert!(draw(&Output::pretend(false, false)).iter().all(|line| line.is_ascii()));
    }

    /// What follows an escape, without the style that it sets.
    fn without_style(text: &str) -> &str {
        match text.split_once('m') {
            Some((style, rest)) if style.starts_with('[') => rest,
            _ => text,
        }
    }
}
