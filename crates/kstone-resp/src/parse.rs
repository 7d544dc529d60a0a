//! Parses commands in what a client sent: RESP arrays of bulk strings, or plain lines.
//!
//! A command may come in many pieces: what was understood of it is kept, so that each byte is
//! looked at once. Arguments are ranges of the buffer; nothing is copied, but for the arguments of
//! a plain line with quotes in it.

use memchr::memchr;

/// Why what a client sent makes no sense. The connection ends after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) String);

/// A line without end is not waited for beyond this.
pub(crate) const INLINE_LEN_MAX: usize = 64 * 1024;
/// No command has more arguments.
const ARGS_MAX: i64 = 1024 * 1024;
/// A client that has not authenticated may send no more arguments, and no longer ones.
const STRANGER_ARGS_MAX: i64 = 10;
const STRANGER_ARG_LEN_MAX: i64 = 16 * 1024;
/// Room is made in advance for so many arguments at most: more have to come first.
const ARGS_AHEAD_MAX: usize = 1024;

/// What a client may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The longest argument.
    pub(crate) arg_len_max: i64,
    /// Whether the client has authenticated.
    pub(crate) is_known: bool,
}

/// How far a command is understood.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Start and end of each argument.
    args: Vec<(usize, usize)>,
    /// How many arguments are to come; `None` if the command has just begun.
    left: Option<usize>,
    /// How long the argument is that comes next, if that is known.
    arg_len: Option<usize>,
    /// What comes next begins here.
    at: usize,
    /// The arguments of a line with quotes, without them; then `args` are places in here.
    unquoted: Vec<u8>,
    has_unquoted: bool,
}

/// What there is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole command of so many bytes; it may have no arguments, and is to be ignored then.
    Command(usize),
    /// Not all of a command. So many bytes are known to be missing at least.
    Part(usize),
}

impl Parser {
    /// Looks for a command at the beginning of `data`. After [`Found::Part`], it goes on where it
    /// was when it is called with the same and more.
    pub(crate) fn parse(&mut self, data: &[u8], limits: Limits) -> Result<Found, ProtocolError> {
        if self.left.is_none() {
            self.args.clear();
            self.has_unquoted = false;
            match data.first() {
                None => return Ok(Found::Part(1)),
                Some(b'*') => {}
                Some(_) => return self.parse_line(data),
            }
            let Some((head, next)) = line(data, 1) else {
                return wait_for_line(data.len(), "too big mbulk count string");
            };
            let count = match number(head) {
                Some(count) if count <= ARGS_MAX => count,
                _ => return error("invalid multibulk length"),
            };
            if count > STRANGER_ARGS_MAX && !limits.is_known {
                return error("unauthenticated multibulk length");
            }
            let count = usize::try_from(count).unwrap_or(0);
            self.args.reserve(count.min(ARGS_AHEAD_MAX));
            self.left = Some(count);
            self.at = next;
        }
        let mut left = self.left.unwrap_or(0);
        while left > 0 {
            let len = match self.arg_len {
                Some(len) => len,
                None => match self.parse_len(data, limits)? {
                    Ok(len) => len,
                    Err(part) => {
                        self.left = Some(left);
                        return Ok(part);
                    }
                },
            };
            let end = self.at + len;
            if data.len() < end + 2 {
                self.left = Some(left);
                self.arg_len = Some(len);
                return Ok(Found::Part(end + 2 - data.len()));
            }
            self.args.push((self.at, end));
            self.arg_len = None;
            self.at = end + 2;
            left -= 1;
        }
        self.left = None;
        Ok(Found::Command(self.at))
    }

    /// The length of the next argument, if all of its line is there.
    fn parse_len(
        &mut self,
        data: &[u8],
        limits: Limits,
    ) -> Result<Result<usize, Found>, ProtocolError> {
        let Some(&kind) = data.get(self.at) else { return Ok(Err(Found::Part(1))) };
        if kind != b'$' {
            return error(&format!("expected '$', got '{}'", char::from(kind)));
        }
        let Some((head, next)) = line(data, self.at + 1) else {
            return wait_for_line(data.len() - self.at, "too big bulk count string").map(Err);
        };
        let len = match number(head) {
            Some(len) if (0..=limits.arg_len_max).contains(&len) => len,
            _ => return error("invalid bulk length"),
        };
        if len > STRANGER_ARG_LEN_MAX && !limits.is_known {
            return error("unauthenticated bulk length");
        }
        self.at = next;
        Ok(Ok(len as usize))
    }

    /// The places of the arguments of the command that was found, in [`source`](Parser::source).
    pub(crate) fn args(&self) -> &[(usize, usize)] {
        &self.args
    }

    /// Where the arguments are: in the data, or without the quotes they had there.
    pub(crate) fn source<'d>(&'d self, data: &'d [u8]) -> &'d [u8] {
        if self.has_unquoted { &self.unquoted } else { data }
    }

    /// Whether the arguments are not in the data.
    pub(crate) fn is_unquoted(&self) -> bool {
        self.has_unquoted
    }

    /// Forgets a command of which only a part was there.
    pub(crate) fn reset(&mut self) {
        (self.left, self.arg_len) = (None, None);
    }

    fn parse_line(&mut self, data: &[u8]) -> Result<Found, ProtocolError> {
        let Some((text, next)) = line(data, 0) else {
            return wait_for_line(data.len(), "too big inline request");
        };
        if text.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
            self.has_unquoted = true;
            self.unquoted.clear();
            if unquote(text, &mut self.unquoted, &mut self.args).is_none() {
                return error("unbalanced quotes in request");
            }
            return Ok(Found::Command(next));
        }
        let mut at = 0;
        while at < text.len() {
            if text.get(at).is_some_and(|byte| is_space(*byte)) {
                at += 1;
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let len = rest.iter().position(|byte| is_space(*byte)).unwrap_or(rest.len());
            self.args.push((at, at + len));
            at += len;
        }
        Ok(Found::Command(next))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | 0)
}

fn error<T>(message: &str) -> Result<T, ProtocolError> {
    Err(ProtocolError(format!("ERR Protocol error: {message}")))
}

fn wait_for_line(len: usize, too_long: &str) -> Result<Found, ProtocolError> {
    if len > INLINE_LEN_MAX { error(too_long) } else { Ok(Found::Part(1)) }
}

/// The line that starts at `at`, without its end, and where the next one starts.
fn line(data: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = data.get(at..)?;
    let end = memchr(b'\n', rest)?;
    let line = rest.get(..end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), at + end + 1))
}

fn number(text: &[u8]) -> Option<i64> {
    let (digits, sign) = match text {
        [b'-', digits @ ..] => (digits, -1),
        digits => (digits, 1),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(sign * number)
}

/// Takes the quotes out of a line; `None` if one is not closed, or closed in the middle of a word.
fn unquote(text: &[u8], into: &mut Vec<u8>, args: &mut Vec<(usize, usize)>) -> Option<()> {
    let mut rest = text.iter().copied().peekable();
    loop {
        while rest.next_if(|byte| is_space(*byte)).is_some() {}
        if rest.peek().is_none() {
            return Some(());
        }
        let start = into.len();
        while let Some(byte) = rest.next_if(|byte| !is_space(*byte)) {
            match byte {
                b'"' => loop {
                    match rest.next()? {
                        b'"' => break,
                        b'\\' => {
                            let escaped = rest.next()?;
                            into.push(match escaped {
                                b'n' => b'\n',
                                b'r' => b'\r',
                                b't' => b'\t',
                                b'b' => 0x08,
                                b'a' => 0x07,
                                b'x' => {
                                    let mut ahead = rest.clone();
                                    match (hex(ahead.next()), hex(ahead.next())) {
                                        (Some(high), Some(low)) => {
                                            rest = ahead;
                                            high << 4 | low
                                        }
                                        _ => b'x',
                                    }
                                }
                                other => other,
                            });
                        }
                        other => into.push(other),
                    }
                },
                b'\'' => loop {
                    match rest.next()? {
                        b'\'' => break,
                        b'\\' if rest.peek() == Some(&b'\'') => into.extend(rest.next()),
                        other => into.push(other),
                    }
                },
                other => {
                    into.push(other);
                    continue;
                }
            }
            // What was quoted ends a word.
            if rest.peek().is_some_and(|byte| !is_space(*byte)) {
                return None;
            }
        }
        args.push((start, into.len()));
    }
}

fn hex(digit: Option<u8>) -> Option<u8> {
    char::from(digit?).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { arg_len_max: 1 << 29, is_known: true };

    fn commands(data: &[u8], step: usize) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let (mut parser, mut start, mut end) = (Parser::default(), 0, 0);
        let mut found = Vec::new();
        loop {
            match parser.parse(&data[start..end], LIMITS).map_err(|error| error.0)? {
                Found::Command(len) => {
                    let source = parser.source(&data[start..end]);
                    let args = parser.args().iter().map(|&(from, to)| source[from..to].to_vec());
                    found.push(args.collect());
                    start += len;
                }
                Found::Part(_) if end == data.len() => return Ok(found),
                Found::Part(_) => end = (end + step).min(data.len()),
            }
        }
    }

    #[test]
    fn commands_are_found_however_they_come_in_pieces() {
        let data =
            b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\nPING\r\n*1\r\n$0\r\n\r\nset \"a b\" 'c\\'' \r\n";
        let expected: Vec<Vec<Vec<u8>>> = vec![
            vec![b"GET".to_vec(), b"a\r\n".to_vec()],
            vec![b"PING".to_vec()],
            vec![b"".to_vec()],
            vec![b"set".to_vec(), b"a b".to_vec(), b"c'".to_vec()],
        ];
        for step in 1..data.len() {
            assert_eq!(commands(data, step).unwrap(), expected, "in pieces of {step}");
        }
    }

    #[test]
    fn quotes_hide_spaces_and_are_balanced() {
        let found = commands(b"a \"\\x41\\n\\\"\" '' b\n", 99).unwrap();
        assert_eq!(found, [[b"a".to_vec(), b"A\n\"".to_vec(), b"".to_vec(), b"b".to_vec()]]);
        for line in ["\"a\n", "'a\n", "\"a\"b\n", "\"a\\\n"] {
            assert_eq!(
                commands(line.as_bytes(), 99).unwrap_err(),
                "ERR Protocol error: unbalanced quotes in request"
            );
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (data, why) in [
            ("*3000000000\r\n", "invalid multibulk length"),
            ("*abc\r\n", "invalid multibulk length"),
            ("*1\r\n$-10\r\n", "invalid bulk length"),
            ("*1\r\n$2000000000\r\n", "invalid bulk length"),
            ("*1\r\nfoo\r\n", "expected '$', got 'f'"),
        ] {
            let error = commands(data.as_bytes(), 1).unwrap_err();
            assert_eq!(error, format!("ERR Protocol error: {why}"));
        }
        assert!(commands(&[0; INLINE_LEN_MAX + 1], 999).unwrap_err().contains("too big inline"));
        assert_eq!(commands(b"*-10\r\n*0\r\nPING\r\n", 1).unwrap().len(), 3);
    }
}
