//! IDs of stream entries: a time in milliseconds and a sequence number within it.

use std::fmt;

use crate::fault::{Fault, Result};

const INVALID: Fault = Fault::fixed("ERR Invalid stream ID specified as stream command argument");

/// What an entry is called. Later entries have larger ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Id {
    pub(super) ms: u64,
    pub(super) seq: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl Id {
    pub(super) const MIN: Id = Id { ms: 0, seq: 0 };
    pub(super) const MAX: Id = Id { ms: u64::MAX, seq: u64::MAX };

    /// The one behind it.
    pub(super) fn next(self) -> Option<Id> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The one before it.
    pub(super) fn previous(self) -> Option<Id> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Bytes that are in the order of the names.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.ms) << 64) | u128::from(self.seq)).to_be_bytes()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Id> {
        let both = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Id { ms: (both >> 64) as u64, seq: both as u64 })
    }

    /// `ms-seq`, or `ms` with the number that is missing.
    pub(super) fn parse(arg: &[u8], missing_seq: u64) -> Result<Id> {
        Id::read(arg, missing_seq).ok_or(INVALID)
    }

    /// The same, if it is one at all.
    pub(super) fn read(arg: &[u8], missing_seq: u64) -> Option<Id> {
        let text = std::str::from_utf8(arg).ok()?;
        let (ms, seq) = match text.split_once('-') {
            Some((ms, seq)) => (ms, seq.parse().ok()?),
            None => (text, missing_seq),
        };
        Some(Id { ms: ms.parse().ok()?, seq })
    }

    /// `ms-*`, which leaves the number to the stream: the time; or a whole name.
    pub(super) fn parse_new(arg: &[u8]) -> Result<NewId> {
        if arg == b"*" {
            return Ok(NewId::Next);
        }
        if let Some(ms) = arg.strip_suffix(b"-*") {
            return Ok(NewId::NextAt(Id::parse(ms, 0).map(|id| id.ms)?));
        }
        Id::parse(arg, 0).map(NewId::Exactly)
    }

    /// One end of a range, which may be `-` or `+`.
    pub(super) fn parse_edge(arg: &[u8], missing_seq: u64) -> Result<Id> {
        match arg {
            b"-" => Ok(Id::MIN),
            b"+" => Ok(Id::MAX),
            _ => Id::parse(arg, missing_seq),
        }
    }

    /// The first name of a range; `(` leaves the given one out.
    pub(super) fn parse_start(arg: &[u8]) -> Result<Id> {
        const NONE: Fault = Fault::fixed("ERR invalid start ID for the interval");
        match arg.strip_prefix(b"(").filter(|rest| !rest.is_empty()) {
            Some(rest) => Id::parse(rest, 0)?.next().ok_or(NONE),
            None => Id::parse_edge(arg, 0),
        }
    }

    /// The last name of a range; `(` leaves the given one out.
    pub(super) fn parse_end(arg: &[u8]) -> Result<Id> {
        const NONE: Fault = Fault::fixed("ERR invalid end ID for the interval");
        match arg.strip_prefix(b"(").filter(|rest| !rest.is_empty()) {
            Some(rest) => Id::parse(rest, u64::MAX)?.previous().ok_or(NONE),
            None => Id::parse_edge(arg, u64::MAX),
        }
    }

    /// As replies show it, without an allocation.
    pub(super) fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; TEXT_LEN_MAX], start: TEXT_LEN_MAX };
        text.push_number(self.seq);
        text.push(b'-');
        text.push_number(self.ms);
        text
    }
}

/// What a new entry is to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewId {
    /// Whatever comes next.
    Next,
    /// The next one at this time.
    NextAt(u64),
    Exactly(Id),
}

/// Two numbers and a dash.
const TEXT_LEN_MAX: usize = 41;

/// A name as text. It is written from its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdText {
    bytes: [u8; TEXT_LEN_MAX],
    start: usize,
}

impl IdText {
    fn push(&mut self, byte: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.bytes.get_mut(self.start) {
            *place = byte;
        }
    }

    fn push_number(&mut self, mut number: u64) {
        loop {
            self.push(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }
}

impl AsRef<[u8]> for IdText {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for (text, ms, seq) in [("0-0", 0, 0), ("5", 5, 7), ("18446744073709551615-1", u64::MAX, 1)]
        {
            let id = Id { ms, seq };
            assert_eq!(Id::parse(text.as_bytes(), 7), Ok(id));
            assert_eq!(id.text().as_ref(), id.to_string().as_bytes());
        }
        assert_eq!(Id::MAX.text().as_ref().len(), TEXT_LEN_MAX);
        for text in ["", "-", "+", "a", "1-", "-1", "1-2-3", "1-a", "18446744073709551616", "1-*"] {
            assert_eq!(Id::parse(text.as_bytes(), 0), Err(INVALID), "{text}");
        }
    }

    #[test]
    fn the_neighbours_of_a_name_go_over_the_edges_of_its_time() {
        assert_eq!(Id { ms: 1, seq: u64::MAX }.next(), Some(Id { ms: 2, seq: 0 }));
        assert_eq!(Id { ms: 2, seq: 0 }.previous(), Some(Id { ms: 1, seq: u64::MAX }));
        assert_eq!((Id::MAX.next(), Id::MIN.previous()), (None, None));
    }

    #[test]
    fn bytes_are_in_the_order_of_names() {
        let ids = [Id::MIN, Id { ms: 0, seq: 300 }, Id { ms: 2, seq: 1 }, Id::MAX];
        assert!(ids.is_sorted_by_key(|id| id.to_bytes()));
        assert!(ids.iter().all(|id| Id::from_bytes(&id.to_bytes()) == Some(*id)));
    }
}
