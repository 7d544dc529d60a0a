//! Where a command writes to, and whether a person or a program is reading.

use std::io::{self, BufWriter, IsTerminal, Write};

/// Standard output, buffered, and standard error.
pub struct Output {
    out: Box<dyn Write + Send>,
    /// A person reads: JSON is indented and pictures use block characters.
    pub is_terminal: bool,
    /// The terminal may be sent colours.
    pub has_colour: bool,
    /// A person reads standard error: progress may be shown there.
    pub errors_are_seen: bool,
}

impl Output {
    /// What the process was given.
    pub fn of_process() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Output {
            out: Box::new(BufWriter::new(io::stdout())),
            is_terminal,
            has_colour: is_terminal && !no_colour && !is_dumb,
            errors_are_seen: io::stderr().is_terminal(),
        }
    }

    /// Writes to nowhere, as if to this kind of reader.
    #[cfg(test)]
    pub fn pretend(is_terminal: bool, has_colour: bool) -> Self {
        Output { out: Box::new(io::sink()), is_terminal, has_colour, errors_are_seen: false }
    }

    /// One line.
    pub fn line(&mut self, line: impl AsRef<str>) -> io::Result<()> {
        self.out.write_all(line.as_ref().as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// What was written goes out.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// `text` in bold, where that is possible.
    pub fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    /// `text` in a fainter colour, where that is possible.
    pub fn faint(&self, text: &str) -> String {
        self.styled("2", text)
    }

    fn styled(&self, style: &str, text: &str) -> String {
        if self.has_colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// An error, or the answer "no", on standard error, after what was written so far.
    pub fn complain(&mut self, message: &str) {
        let _ = self.out.flush();
        eprintln!("kstone: {message}");
    }

    /// Something for the person or the script beside the data.
    pub fn note(&mut self, message: &str) {
        let _ = self.out.flush();
        eprintln!("{message}");
    }

    /// Replaces the last progress line; silent without a terminal.
    pub fn progress(&mut self, message: &str) {
        if self.errors_are_seen {
            eprint!("\r{message}\x1b[K");
        }
    }

    /// Removes the progress line.
    pub fn end_progress(&mut self) {
        self.progress("");
    }
}

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 of thing`, `2 of things`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Bytes for a person: `17 B`, `4.2 KiB`.
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Microseconds for a person: `850 µs`, `1.3 ms`, `2.0 s`.
pub fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(
            [count(0), count(999), count(1000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([bytes(17), bytes(1000), bytes(3 << 30)], ["17 B", "1.0 KiB", "3.0 GiB"]);
        assert_eq!([micros(12), micros(1300), micros(2_000_000)], ["12 µs", "1.3 ms", "2.0 s"]);
    }
}
