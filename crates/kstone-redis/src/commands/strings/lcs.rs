//! LCS: the longest common subsequence of two strings.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::strings::{len_max, whole};
use crate::fault::{Fault, Result};

pub(super) fn lcs(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, one, other, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let mut read = |key| {
        whole(context.txn, key).map_err(|fault| {
            if fault != Fault::WRONG_TYPE {
                return fault;
            }
            Fault::fixed("ERR The specified keys must contain string values")
        })
    };
    let (one, other) = (read(one)?.unwrap_or_default(), read(other)?.unwrap_or_default());
    let options = Options::parse(options)?;
    let table = Table::new(&one, &other, len_max(context))?;
    if options.len {
        return context.out.reply_integer(table.len() as i64);
    }
    let mut matches = Matches::new();
    table.walk(|at, other_at| matches.add(at, other_at));
    if !options.ranges {
        let mut common = Vec::with_capacity(table.len() as usize);
        for Match { start, len, .. } in matches.found.iter().rev() {
            common.extend_from_slice(one.get(*start..start + len).unwrap_or_default());
        }
        return context.out.reply_bulk(&common);
    }
    let shown = matches.found.iter().filter(|found| found.len as u64 >= options.len_min);
    let shown: Vec<&Match> = shown.collect();
    context.out.map(2);
    context.out.bulk(b"matches");
    context.out.array(shown.len());
    for found in shown {
        context.out.array(if options.with_len { 3 } else { 2 });
        for start in [found.start, found.other_start] {
            context.out.array(2);
            context.out.integer(start as i64);
            context.out.integer((start + found.len - 1) as i64);
        }
        if options.with_len {
            context.out.integer(found.len as i64);
        }
    }
    context.out.bulk(b"len");
    context.out.reply_integer(table.len() as i64)
}

#[derive(Debug, Default)]
struct Options {
    len: bool,
    ranges: bool,
    with_len: bool,
    len_min: u64,
}

impl Options {
    fn parse(options: &[&[u8]]) -> Result<Options> {
        let mut parsed = Options::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if args::is(option, "idx") {
                parsed.ranges = true;
            } else if args::is(option, "len") {
                parsed.len = true;
            } else if args::is(option, "withmatchlen") {
                parsed.with_len = true;
            } else if args::is(option, "minmatchlen") {
                let number = args::integer(options.next().ok_or(Fault::SYNTAX)?)?;
                parsed.len_min = u64::try_from(number).unwrap_or(0);
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        if parsed.len && parsed.ranges {
            return Err(Fault::fixed(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(parsed)
    }
}

/// How long the longest common subsequence is of every beginning of one string and every beginning
/// of the other.
#[derive(Debug)]
struct Table<'a> {
    one: &'a [u8],
    other: &'a [u8],
    /// Row by row: a row for each length of a beginning of `one`.
    lens: Vec<u32>,
}

impl<'a> Table<'a> {
    /// It takes no more memory than this.
    fn new(one: &'a [u8], other: &'a [u8], bytes_max: u64) -> Result<Table<'a>> {
        const TOO_LARGE: Fault = Fault::fixed(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        );
        let width = other.len() + 1;
        let cells = (one.len() + 1).checked_mul(width).ok_or(TOO_LARGE)?;
        if cells as u64 > bytes_max / size_of::<u32>() as u64 {
            return Err(TOO_LARGE);
        }
        let mut lens = vec![0; cells];
        let mut rows = lens.chunks_exact_mut(width);
        let mut above = rows.next().unwrap_or_default();
        for (byte, row) in one.iter().zip(rows) {
            let mut left = 0;
            let cells = row.iter_mut().skip(1).zip(above.windows(2)).zip(other);
            for ((cell, pair), other_byte) in cells {
                let &[diagonal, up] = pair else { continue };
                left = if byte == other_byte { diagonal + 1 } else { left.max(up) };
                *cell = left;
            }
            above = row;
        }
        Ok(Table { one, other, lens })
    }

    fn at(&self, len: usize, other_len: usize) -> u32 {
        let at = len * (self.other.len() + 1) + other_len;
        self.lens.get(at).copied().unwrap_or(0)
    }

    fn len(&self) -> u32 {
        self.at(self.one.len(), self.other.len())
    }

    /// Shows the positions of the common bytes in both strings, from the last to the first.
    fn walk(&self, mut see: impl FnMut(usize, usize)) {
        let (mut len, mut other_len) = (self.one.len(), self.other.len());
        while len > 0 && other_len > 0 {
            if self.one.get(len - 1) == self.other.get(other_len - 1) {
                len -= 1;
                other_len -= 1;
                see(len, other_len);
            } else if self.at(len - 1, other_len) > self.at(len, other_len - 1) {
                len -= 1;
            } else {
                other_len -= 1;
            }
        }
    }
}

/// A run of common bytes.
#[derive(Debug, PartialEq, Eq)]
struct Match {
    start: usize,
    other_start: usize,
    len: usize,
}

/// The runs of common bytes, from the last to the first.
#[derive(Debug)]
struct Matches {
    found: Vec<Match>,
}

impl Matches {
    fn new() -> Matches {
        Matches { found: Vec::new() }
    }

    fn add(&mut self, at: usize, other_at: usize) {
        match self.found.last_mut() {
            Some(last) if last.start == at + 1 && last.other_start == other_at + 1 => {
                last.start = at;
                last.other_start = other_at;
                last.len += 1;
            }
            _ => self.found.push(Match { start: at, other_start: other_at, len: 1 }),
        }
    }
}
