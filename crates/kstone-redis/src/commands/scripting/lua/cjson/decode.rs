//! `cjson.decode`: reads JSON.

use std::sync::atomic::Ordering;

use mlua::{Lua, Table, Value};

use super::{Settings, fail};

#[derive(Debug)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

impl Token {
    /// What it is called in messages.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Bad(what) => what,
        }
    }
}

/// A list or an object that has not ended yet.
enum OpenContainer {
    Array { table: Table, len: usize },
    Object { table: Table, key: Vec<u8> },
}

/// The value that a text describes. What is open is kept on a stack of our own: how deep it may go
/// is the script's choice.
pub(super) fn decode(lua: &Lua, text: &[u8], settings: &Settings) -> mlua::Result<Value> {
    if text.len() >= 2 && text.iter().take(2).any(|byte| *byte == 0) {
        return fail(lua, "JSON parser does not support UTF-16 or UTF-32");
    }
    let allows_invalid = settings.decode_invalid.load(Ordering::Relaxed);
    let mut reader = Reader { lua, text, at: 0, start: 0, allows_invalid };
    let depth_max = settings.decode_depth_max.load(Ordering::Relaxed);
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut token = reader.next();
    loop {
        // A value begins with this token.
        let mut value = match token {
            Token::Text(text) => Value::String(lua.create_string(&text)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(value) => Value::Boolean(value),
            Token::Null => Value::NULL,
            Token::ObjectBegin | Token::ArrayBegin => {
                let depth = open.len() as i64 + 1;
                if depth > depth_max {
                    let text = format!(
                        "Found too many nested data structures ({depth}) at character {}",
                        reader.at
                    );
                    return fail(lua, &text);
                }
                let table = lua.create_table()?;
                let is_object = matches!(token, Token::ObjectBegin);
                token = reader.next();
                match (&token, is_object) {
                    (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => Value::Table(table),
                    (_, true) => {
                        let key = reader.key(token)?;
                        token = reader.next();
                        open.push(OpenContainer::Object { table, key });
                        continue;
                    }
                    (_, false) => {
                        open.push(OpenContainer::Array { table, len: 0 });
                        continue;
                    }
                }
            }
            other => return reader.unexpected("value", &other),
        };
        // It may be the last one of what is open, and that of what it is in.
        loop {
            match open.pop() {
                None => {
                    return match reader.next() {
                        Token::End => Ok(value),
                        other => reader.unexpected("the end", &other),
                    };
                }
                Some(OpenContainer::Array { table, len }) => {
                    table.raw_seti(len + 1, value)?;
                    match reader.next() {
                        Token::ArrayEnd => value = Value::Table(table),
                        Token::Comma => {
                            open.push(OpenContainer::Array { table, len: len + 1 });
                            token = reader.next();
                            break;
                        }
                        other => return reader.unexpected("comma or array end", &other),
                    }
                }
                Some(OpenContainer::Object { table, key }) => {
                    table.raw_set(lua.create_string(&key)?, value)?;
                    match reader.next() {
                        Token::ObjectEnd => value = Value::Table(table),
                        Token::Comma => {
                            let next = reader.next();
                            let key = reader.key(next)?;
                            open.push(OpenContainer::Object { table, key });
                            token = reader.next();
                            break;
                        }
                        other => return reader.unexpected("comma or object end", &other),
                    }
                }
            }
        }
    }
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    /// Where the last token began.
    start: usize,
    allows_invalid: bool,
}

impl Reader<'_> {
    fn unexpected<T>(&self, expected: &str, found: &Token) -> mlua::Result<T> {
        let (found, at) = (found.name(), self.start + 1);
        fail(self.lua, &format!("Expected {expected} but found {found} at character {at}"))
    }

    /// A key and the colon after it.
    fn key(&mut self, token: Token) -> mlua::Result<Vec<u8>> {
        let key = match token {
            Token::Text(key) => key,
            other => return self.unexpected("object key string", &other),
        };
        match self.next() {
            Token::Colon => Ok(key),
            other => self.unexpected("colon", &other),
        }
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Token {
        while self.rest().first().is_some_and(|byte| b" \t\n\r".contains(byte)) {
            self.at += 1;
        }
        self.start = self.at;
        let Some(&byte) = self.rest().first() else { return Token::End };
        let single = match byte {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                if !self.allows_invalid && is_invalid_number(self.rest()) {
                    return Token::Bad("invalid number");
                }
                return self.number();
            }
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
        for (word, token) in [
            ("true", Token::Boolean(true)),
            ("false", Token::Boolean(false)),
            ("null", Token::Null),
        ] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        if self.allows_invalid && is_invalid_number(self.rest()) {
            return self.number();
        }
        Token::Bad("invalid token")
    }

    fn number(&mut self) -> Token {
        match number_at_start(self.rest()) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => Token::Bad("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let Some(&byte) = self.rest().first().filter(|byte| **byte != 0) else {
                self.start = self.at;
                return Token::Bad("unexpected end of string");
            };
            match byte {
                b'"' => {
                    self.at += 1;
                    return Token::Text(text);
                }
                b'\\' => {
                    if let Err(what) = self.escape(&mut text) {
                        self.start = self.at;
                        return Token::Bad(what);
                    }
                }
                _ => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = match self.rest().get(1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 0x08,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => 0x0c,
            Some(b'r') => b'\r',
            Some(b'u') => {
                let (code, len) = code_point(self.rest()).ok_or("invalid unicode escape code")?;
                let mut utf8 = [0; 4];
                text.extend_from_slice(code.encode_utf8(&mut utf8).as_bytes());
                self.at += len;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        text.push(byte);
        self.at += 2;
        Ok(())
    }
}

/// The character of a `\uXXXX` or of a pair of them, and how long it is.
fn code_point(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let is_hex = escape.iter().all(u8::is_ascii_hexdigit);
        u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok().filter(|_| is_hex)
    };
    let high = unit(0)?;
    if let Some(alone) = char::from_u32(high) {
        return Some((alone, 6));
    }
    let low = unit(6).filter(|low| (0xDC00..0xE000).contains(low))?;
    let high = Some(high).filter(|high| (0xD800..0xDC00).contains(high))?;
    let code = 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF);
    Some((char::from_u32(code)?, 12))
}

/// Whether this would be no number in strict JSON.
fn is_invalid_number(text: &[u8]) -> bool {
    if text.first() == Some(&b'+') {
        return true;
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text {
        [b'0', second, ..] => second.is_ascii_digit() || second.eq_ignore_ascii_case(&b'x'),
        [first, ..] if *first <= b'9' => false,
        _ => text.get(..3).is_some_and(|start| {
            start.eq_ignore_ascii_case(b"inf") || start.eq_ignore_ascii_case(b"nan")
        }),
    }
}

/// The number that a text begins with, as C reads it, and how long it is.
fn number_at_start(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let negate = |number: f64| if text.first() == Some(&b'-') { -number } else { number };
    let rest = text.get(sign..)?;
    let starts =
        |word: &[u8]| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if starts(b"infinity") {
        return Some((negate(f64::INFINITY), sign + 8));
    }
    if starts(b"inf") {
        return Some((negate(f64::INFINITY), sign + 3));
    }
    if starts(b"nan") {
        return Some((f64::NAN, sign + 3));
    }
    if starts(b"0x") {
        let digits = rest.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit());
        let digits: Vec<u8> = digits.copied().collect();
        if !digits.is_empty() {
            let number = digits.iter().fold(0.0, |number, digit| {
                number * 16.0 + f64::from(char::from(*digit).to_digit(16).unwrap_or(0))
            });
            return Some((negate(number), sign + 2 + digits.len()));
        }
    }
    let count =
        |from: usize| rest.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(0);
    let mut len = whole;
    let mut decimals = 0;
    if rest.get(len) == Some(&b'.') {
        decimals = count(len + 1);
        len += 1 + decimals;
    }
    if whole + decimals == 0 {
        return None;
    }
    if rest.get(len).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        let sign = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        let digits = count(len + 1 + sign);
        if digits > 0 {
            len += 1 + sign + digits;
        }
    }
    let text = std::str::from_utf8(rest.get(..len)?).ok()?;
    Some((negate(text.parse().ok()?), sign + len))
}
