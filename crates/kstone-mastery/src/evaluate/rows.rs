//! Reads rows of CSV one at a time: quoted fields, any line ends, an optional byte order mark.
//! Bytes that are not UTF-8 are replaced, since public data sets have some.

use std::io::{self, BufRead, BufReader, Read};

/// A row of a hand-written file has a few hundred bytes. One of a megabyte is no row: most likely a
/// quotation mark that nobody closed, and the rest of the file would be read into one field.
const ROW_BYTES_MAX: usize = 1 << 20;

/// Reads rows.
pub(super) struct Rows<R> {
    from: BufReader<R>,
    /// The bytes of the row, which may be several lines when a quoted field has a line end in it.
    row: Vec<u8>,
    /// How many lines were read.
    line: u64,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(from: R) -> Rows<R> {
        Rows { from: BufReader::with_capacity(1 << 16, from), row: Vec::new(), line: 0 }
    }

    /// The line at which the latest row ended, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Puts the fields of the next row into `fields`. False at the end. Lines with nothing on them
    /// are skipped.
    pub(super) fn next(&mut self, fields: &mut Vec<String>) -> io::Result<bool> {
        loop {
            self.row.clear();
            loop {
                let left = ROW_BYTES_MAX.saturating_sub(self.row.len()) as u64;
                let read = self.from.by_ref().take(left).read_until(b'\n', &mut self.row)?;
                if self.row.len() >= ROW_BYTES_MAX {
                    let message = format!("the row after line {} is too long", self.line);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                if read == 0 {
                    break;
                }
                self.line += 1;
                // An even number of quotation marks: every quoted field is closed.
                if self.row.iter().filter(|byte| **byte == b'"').count() % 2 == 0 {
                    break;
                }
            }
            if self.row.is_empty() {
                return Ok(false);
            }
            let mut row = self.row.as_slice();
            row = row.strip_suffix(b"\n").unwrap_or(row);
            row = row.strip_suffix(b"\r").unwrap_or(row);
            if self.line == 1 {
                row = row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row);
            }
            if !row.is_empty() {
                split(row, fields);
                return Ok(true);
            }
        }
    }
}

fn split(row: &[u8], fields: &mut Vec<String>) {
    fields.clear();
    let (mut field, mut is_quoted) = (Vec::new(), false);
    let mut bytes = row.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if is_quoted && bytes.peek() == Some(&b'"') => {
                field.push(b'"');
                bytes.next();
            }
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                fields.push(text(&field));
                field.clear();
            }
            byte => field.push(byte),
        }
    }
    fields.push(text(&field));
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Vec<Vec<String>> {
        let (mut rows, mut fields, mut all) = (Rows::new(bytes), Vec::new(), Vec::new());
        while rows.next(&mut fields).unwrap() {
            all.push(fields.clone());
        }
        all
    }

    #[test]
    fn quoted_fields_may_have_commas_quotation_marks_and_line_ends_in_them() {
        assert_eq!(
            rows(b"a,\"b, c\",\"say \"\"d\"\"\"\r\n\r\n\"e\nf\",,g"),
            [["a", "b, c", "say \"d\""], ["e\nf", "", "g"]]
        );
    }

    #[test]
    fn a_mark_at_the_beginning_and_bytes_of_another_encoding_are_no_obstacle() {
        assert_eq!(rows(b"\xef\xbb\xbfuser_id\n caf\xe9 \n"), [["user_id"], ["caf\u{fffd}"]]);
        assert_eq!(rows(b""), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_quotation_mark_that_nobody_closes_does_not_eat_the_memory() {
        let endless = b"\"a\n".iter().copied().chain(std::iter::repeat_n(b'x', 2 * ROW_BYTES_MAX));
        let bytes: Vec<u8> = endless.collect();
        let error = Rows::new(bytes.as_slice()).next(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
