//! A body that comes in chunks, each behind its length: `5\r\nhello\r\n0\r\n\r\n`.

/// How long the line with a chunk's length may be, with the extensions that nobody reads.
const LINE_BYTES_MAX: usize = 256;
/// How many bytes of trailers are passed over.
const TRAILER_BYTES_MAX: usize = 16 * 1024;
/// No chunk is longer, whatever digits it has: no body is.
const SIZE_DIGITS_MAX: usize = 8;

/// The bytes are no chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// Takes chunks apart as they come.
#[derive(Debug)]
pub(super) struct Chunks {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the line with a length.
    Size,
    /// So many bytes of a chunk are to come.
    Data(usize),
    /// At the line end behind a chunk.
    DataEnd,
    /// At a line behind the last chunk, after so many bytes of such.
    Trailer(usize),
    Done,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Chunks { state: State::Size }
    }

    /// Whether the last chunk was there, and what ends the body.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes from the front of `bytes` what it can, gives what is in chunks to `take`, and says how
    /// many bytes it took. None are taken of a line that is not whole.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<usize, Broken> {
        let mut at = 0;
        while self.state != State::Done {
            let rest = bytes.get(at..).unwrap_or_default();
            if let State::Data(left) = self.state {
                let data = rest.get(..left.min(rest.len())).unwrap_or_default();
                take(data);
                at += data.len();
                if data.len() < left {
                    self.state = State::Data(left - data.len());
                    return Ok(at);
                }
                self.state = State::DataEnd;
                continue;
            }
            let Some(line) = self.line(rest)? else { return Ok(at) };
            at += line.len() + 2;
            self.state = match self.state {
                State::Size => match read_size(line)? {
                    0 => State::Trailer(0),
                    size => State::Data(size),
                },
                State::DataEnd => State::Size,
                State::Trailer(_) if line.is_empty() => State::Done,
                State::Trailer(before) => State::Trailer(before + line.len() + 2),
                other => other,
            };
        }
        Ok(at)
    }

    /// The line at the front, without its end; `None` if it is not whole.
    fn line<'b>(&self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, Broken> {
        let bytes_max = match self.state {
            State::DataEnd => 0,
            State::Trailer(before) => TRAILER_BYTES_MAX.saturating_sub(before),
            _ => LINE_BYTES_MAX,
        };
        let seen = bytes.get(..bytes.len().min(bytes_max + 2)).unwrap_or(bytes);
        match memchr::memchr(b'\n', seen) {
            Some(end) => match seen.get(..end).and_then(|line| line.strip_suffix(b"\r")) {
                Some(line) if !line.contains(&b'\r') => self.check_start(line).map(|()| Some(line)),
                _ => Err(Broken),
            },
            None if seen.len() >= bytes_max + 2 => Err(Broken),
            None => self.check_start(seen).map(|()| None),
        }
    }

    /// Whether this can become a good line: what is wrong from the start is not waited for.
    fn check_start(&self, line: &[u8]) -> Result<(), Broken> {
        let is_good = match (self.state, line.first()) {
            (_, None) | (State::Trailer(_), _) => true,
            (State::Size, Some(first)) => first.is_ascii_hexdigit(),
            (_, Some(first)) => *first == b'\r',
        };
        if is_good { Ok(()) } else { Err(Broken) }
    }
}

/// A length in hexadecimal, behind which an extension may follow.
fn read_size(line: &[u8]) -> Result<usize, Broken> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at_checked(digits).ok_or(Broken)?;
    let is_extension = matches!(rest.trim_ascii_start().first(), None | Some(b';'));
    if digits.is_empty() || digits.len() > SIZE_DIGITS_MAX || !is_extension {
        return Err(Broken);
    }
    let text = std::str::from_utf8(digits).map_err(|_| Broken)?;
    usize::from_str_radix(text, 16).map_err(|_| Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in the chunks, and how many bytes come after them; `None` if they are not whole.
    fn read(pieces: &[&[u8]]) -> Result<Option<(Vec<u8>, usize)>, Broken> {
        let (mut chunks, mut body, mut unread) = (Chunks::new(), Vec::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            let taken = chunks.feed(&unread, |data| body.extend_from_slice(data))?;
            unread.drain(..taken);
        }
        Ok(chunks.is_done().then_some((body, unread.len())))
    }

    #[test]
    fn chunks_are_put_together_wherever_they_are_cut() {
        let whole = b"5\r\nhello\r\nA;x=\"y\"\r\n, world!!!\r\n000\r\nX-Sum: 1\r\n\r\nmore";
        let want = Ok(Some((b"hello, world!!!".to_vec(), 4)));
        assert_eq!(read(&[whole]), want);
        for at in 0..whole.len() {
            assert_eq!(read(&[&whole[..at], &whole[at..]]), want, "{at}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(read(&bytes), want);
    }

    #[test]
    fn what_is_cut_short_is_not_done() {
        let whole = b"5\r\nhello\r\n0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(read(&[&whole[..end]]), Ok(None), "{end}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_broken() {
        for bad in [
            "n",
            "\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello!\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello\r0\r\n\r\n",
            "-1\r\n",
            "0x5\r\nhello\r\n",
            "5 5\r\nhello\r\n",
            "5\r\r\nhello\r\n",
            "123456789\r\n",
            "5;\n\r\nhello\r\n",
            "0\r\nX: y\n\r\n",
        ] {
            assert_eq!(read(&[bad.as_bytes()]), Err(Broken), "{bad:?}");
        }
        let long = format!("5;{}\r\n", "x".repeat(LINE_BYTES_MAX));
        assert_eq!(read(&[long.as_bytes()]), Err(Broken));
        let trailers = "0\r\n".to_owned() + &"X-Trailer: x\r\n".repeat(2000);
        assert_eq!(read(&[trailers.as_bytes()]), Err(Broken));
    }
}
