//! Records as text: `TABLE KEY / SORT-KEY @EXPIRY = VALUE`, of which sort key and expiry may be
//! missing. Bytes are hexadecimal or quoted, with `*N` behind what comes N times. What is indented
//! goes on with the line above, and from `#` on a line is for people.

use std::fmt;

use kstone_core::{Engine, Key, ScanCursor, TableId};

/// Redis's own catalogue.
pub const CATALOG: TableId = TableId(2);
/// The keys of slot 0.
pub const KEYS: TableId = TableId(3);

/// A record of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub table: TableId,
    pub key: Key,
    pub expires_at_ms: Option<u64>,
    pub value: Vec<u8>,
}

/// Every record of every table, expired or not.
pub fn all(engine: &Engine) -> Vec<Record> {
    let snapshot = engine.snapshot_even_expired();
    let of = |table| {
        snapshot.scan(table, ScanCursor::start()).map(move |found| {
            let found = found.unwrap();
            let (expires_at_ms, value) = (found.record.expires_at_ms, found.record.value.to_vec());
            Record { table, key: found.key, expires_at_ms, value }
        })
    };
    engine.tables().into_iter().flat_map(of).collect()
}

/// Reads records that were written down.
pub fn parse(text: &str) -> Vec<Record> {
    let mut whole: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        match whole.last_mut() {
            _ if line.is_empty() => {}
            Some(last) if line.starts_with(' ') => last.push_str(line),
            _ => whole.push(line.to_owned()),
        }
    }
    whole.iter().map(|line| record(line).unwrap_or_else(|| panic!("no record: {line}"))).collect()
}

/// The records in those blocks of a chapter that are dumps.
pub fn in_dumps(chapter: &str) -> Vec<Record> {
    let blocks = chapter.split("```text\n").skip(1).filter_map(|block| block.split("```").next());
    let is_dump = |block: &&str| block.starts_with(|first: char| first.is_ascii_digit());
    blocks.filter(is_dump).flat_map(parse).collect()
}

fn record(line: &str) -> Option<Record> {
    let (name, value) = line.split_once('=')?;
    let (name, expires_at_ms) = match name.split_once('@') {
        Some((name, at_ms)) => (name, Some(at_ms.trim().parse().ok()?)),
        None => (name, None),
    };
    let (table, name) = name.split_once(' ')?;
    let key = match name.split_once('/') {
        Some((pk, sk)) => Key::with_sk(bytes(pk)?, bytes(sk)?),
        None => Key::new(bytes(name)?),
    };
    Some(Record { table: TableId(table.parse().ok()?), key, expires_at_ms, value: bytes(value)? })
}

/// Reads bytes that were written down.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let piece;
        (piece, rest) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (piece, rest) = quoted.split_once('"')?;
                (piece.as_bytes().to_vec(), rest)
            }
            None => {
                let len = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
                let (hex, rest) = rest.split_at(len);
                let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
                let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
                (pairs.iter().map(byte).collect::<Option<_>>()?, rest)
            }
        };
        let mut times = 1;
        if let Some(counted) = rest.strip_prefix('*') {
            let len = counted.find(|c: char| !c.is_ascii_digit()).unwrap_or(counted.len());
            times = counted[..len].parse().ok()?;
            rest = &counted[len..];
        }
        if piece.is_empty() {
            return None;
        }
        bytes.extend(piece.repeat(times));
        rest = rest.trim_start();
    }
    Some(bytes)
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table.0, Shown(&self.key.pk))?;
        if let Some(sk) = &self.key.sk {
            write!(f, " / {}", Shown(sk))?;
        }
        if let Some(at_ms) = self.expires_at_ms {
            write!(f, " @{at_ms}")?;
        }
        write!(f, " = {}", Shown(&self.value))
    }
}

/// Bytes as [`bytes`] reads them.
struct Shown<'b>(&'b [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_text = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"#".contains(&byte);
        let mut runs: Vec<(Vec<u8>, usize)> = Vec::new();
        for run in self.0.chunk_by(|a, b| a == b) {
            match runs.last_mut() {
                Some((last, 1)) if run.len() < 20 && is_text(last[0]) == is_text(run[0]) => {
                    last.extend_from_slice(run);
                }
                _ if run.len() < 20 => runs.push((run.to_vec(), 1)),
                _ => runs.push((vec![run[0]], run.len())),
            }
        }
        for (at, (run, times)) in runs.iter().enumerate() {
            f.write_str(if at > 0 { " " } else { "" })?;
            if is_text(run[0]) {
                write!(f, "\"{}\"", String::from_utf8_lossy(run))?;
            } else {
                run.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            }
            if *times > 1 {
                write!(f, "*{times}")?;
            }
        }
        Ok(())
    }
}

#[test]
fn records_are_read_as_they_are_shown() {
    let record = Record {
        table: TableId(7),
        key: Key::with_sk(b"key".to_vec(), [1, 0, 255, b'a'].to_vec()),
        expires_at_ms: Some(9),
        value: [b"text".to_vec(), vec![0; 100], b"end".to_vec()].concat(),
    };
    let shown = record.to_string();
    assert_eq!(shown, "7 \"key\" / 0100ff \"a\" @9 = \"text\" 00*100 \"end\"");
    assert_eq!(parse(&shown), [record]);
    assert_eq!(
        parse("7 \"k\" = # nothing\n  01   # more\n\n  \"a\"*3"),
        parse("7 \"k\" = 01 616161")
    );
}
