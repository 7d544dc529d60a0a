//! The first line of a script or a library: `#!lua name=… flags=…`.

use crate::args;
use crate::fault::{Fault, Result};

/// What a script says about itself.
pub(crate) mod flag {
    /// Writes nothing.
    pub(crate) const NO_WRITES: u32 = 1;
    /// Runs though memory is short.
    pub(crate) const ALLOW_OOM: u32 = 1 << 1;
    /// Runs on a replica whose data is old.
    pub(crate) const ALLOW_STALE: u32 = 1 << 2;
    /// Not in a cluster.
    pub(crate) const NO_CLUSTER: u32 = 1 << 3;
    /// Uses keys of several slots of a cluster.
    pub(crate) const ALLOW_CROSS_SLOT_KEYS: u32 = 1 << 4;

    /// Their names, in the order in which they are listed.
    pub(crate) const NAMES: [(&str, u32); 5] = [
        ("no-writes", NO_WRITES),
        ("allow-oom", ALLOW_OOM),
        ("allow-stale", ALLOW_STALE),
        ("no-cluster", NO_CLUSTER),
        ("allow-cross-slot-keys", ALLOW_CROSS_SLOT_KEYS),
    ];
}

/// The flags of a script for EVAL, `None` if it has no first line of that kind and so nothing is
/// known about it; and where the code begins: the line's end stays, so that lines keep their
/// numbers.
pub(super) fn of_script(body: &[u8]) -> Result<(Option<u32>, &[u8])> {
    if !body.starts_with(b"#!") {
        return Ok((None, body));
    }
    let (line, code) = first_line(body).ok_or(Fault::fixed("ERR Invalid script shebang"))?;
    let words = words(line)
        .filter(|words| !words.is_empty())
        .ok_or(Fault::fixed("ERR Invalid engine in script shebang"))?;
    let (engine, options) = words
        .split_first()
        .map_or((&[][..], &[][..]), |(engine, options)| (engine.as_slice(), options));
    if engine != b"#!lua" {
        let engine = args::shown(engine);
        return Err(Fault::new(format!("ERR Unexpected engine in script shebang: {engine}")));
    }
    let mut flags = 0;
    for option in options {
        let Some(names) = option.strip_prefix(b"flags=") else {
            let option = args::shown(option);
            return Err(Fault::new(format!("ERR Unknown lua shebang option: {option}")));
        };
        for name in names.split(|byte| *byte == b',').filter(|_| !names.is_empty()) {
            let known = flag::NAMES.iter().find(|(known, _)| known.as_bytes() == name);
            let Some((_, flag)) = known else {
                let name = args::shown(name);
                return Err(Fault::new(format!("ERR Unexpected flag in script shebang: {name}")));
            };
            flags |= flag;
        }
    }
    Ok((Some(flags), code))
}

/// A library's name, and its code from the end of the first line on.
pub(super) fn of_library(body: &[u8]) -> Result<(String, &[u8])> {
    if !body.starts_with(b"#!") {
        return Err(Fault::fixed("ERR Missing library metadata"));
    }
    const INVALID: Fault = Fault::fixed("ERR Invalid library metadata");
    let (line, code) = first_line(body).ok_or(INVALID)?;
    let words = words(line).ok_or(INVALID)?;
    let (engine, options) = words.split_first().ok_or(INVALID)?;
    let mut name: Option<&[u8]> = None;
    for option in options {
        let is_name = option.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"name="));
        let Some(given) = option.get(5..).filter(|_| is_name) else {
            let option = args::shown(option);
            return Err(Fault::new(format!("ERR Invalid metadata value given: {option}")));
        };
        if name.replace(given).is_some() {
            return Err(Fault::fixed(
                "ERR Invalid metadata value, name argument was given multiple times",
            ));
        }
    }
    let name = name.ok_or(Fault::fixed("ERR Library name was not given"))?;
    let name = valid_name(name).ok_or(BAD_NAME)?;
    let engine = engine.get(2..).unwrap_or_default();
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(Fault::new(format!("ERR Engine '{}' not found", args::shown(engine))));
    }
    Ok((name, code))
}

/// What a library or function may not be called.
pub(super) const BAD_NAME: Fault = Fault::fixed(
    "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least \
     one character long",
);

/// A name that a library or function may have.
pub(super) fn valid_name(name: &[u8]) -> Option<String> {
    let is_valid =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if is_valid { String::from_utf8(name.to_vec()).ok() } else { None }
}

/// The first line, and everything from its end on.
fn first_line(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = body.iter().position(|byte| *byte == b'\n')?;
    Some((body.get(..end)?, body.get(end..)?))
}

/// The words of a line, some of them perhaps in quotes; `None` if a quote does not end.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while let Some(&first) = rest.first() {
        let (word, after) = match first {
            b'"' | b'\'' => {
                let inside = rest.get(1..)?;
                let end = inside.iter().position(|byte| *byte == first)?;
                (inside.get(..end)?.to_vec(), inside.get(end + 1..)?)
            }
            _ => bare_word(rest)?,
        };
        if after.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// A word that may have a quoted piece in it, such as `name="x"`, and what comes after it.
fn bare_word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at).filter(|byte| !byte.is_ascii_whitespace()) {
        at += 1;
        if byte == b'"' {
            let inside = text.get(at..)?;
            let end = inside.iter().position(|byte| *byte == b'"')?;
            word.extend_from_slice(inside.get(..end)?);
            at += end + 1;
        } else {
            word.push(byte);
        }
    }
    Some((word, text.get(at..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_what_it_needs() {
        assert_eq!(of_script(b"return 1").unwrap(), (None, &b"return 1"[..]));
        let script = b"#!lua flags=no-writes,allow-stale\nreturn 1";
        let flags = flag::NO_WRITES | flag::ALLOW_STALE;
        assert_eq!(of_script(script).unwrap(), (Some(flags), &b"\nreturn 1"[..]));
        assert_eq!(of_script(b"#!lua\n").unwrap(), (Some(0), &b"\n"[..]));
        for bad in ["#!lua", "#!perl\n", "#!lua x=1\n", "#!lua flags=nope\n", "#!\n"] {
            assert!(of_script(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_library_says_its_name() {
        let (name, code) = of_library(b"#!LUA name=\"lib_1\"\nx").unwrap();
        assert_eq!((name.as_str(), code), ("lib_1", &b"\nx"[..]));
        for bad in ["x", "#!lua name=x", "#!lua\n", "#!lua name=a-b\n", "#!lua name=a name=b\n"] {
            assert!(of_library(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
