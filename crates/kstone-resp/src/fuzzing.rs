//! The entry points of the fuzz targets.

use crate::parse::{Found, INLINE_LEN_MAX, Limits, Parser};

/// What a client sends, after two bytes that say how it is cut: the same commands are found, or the
/// same error, as when it comes whole.
///
/// # Panics
/// If they are not.
pub fn requests(bytes: &[u8]) {
    let Some((&[first, second], data)) = bytes.split_first_chunk() else { return };
    // A line that is too long is refused as soon as that is seen, which depends on how it comes.
    let data = data.get(..INLINE_LEN_MAX).unwrap_or(data);
    let is_known = first & 1 == 0;
    let whole = commands(data, is_known, |_| data.len());
    let sizes = [usize::from(first) + 1, usize::from(second) + 1];
    let cut = commands(data, is_known, |n| sizes.get(n % 2).copied().unwrap_or(1));
    assert_eq!(cut, whole, "in pieces of {sizes:?}");
}

/// Inputs to start from.
pub fn requests_seeds() -> Vec<Vec<u8>> {
    const SENT: [&str; 12] = [
        "*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\n\r\n*1\r\n\r\n*1\r\n$4\r\nPING\r\n",
        "PING\r\n\r\nset a \"b \\x41\\n\" 'c\\'d'\r\n",
        "*0\r\n*-1\r\nGET a\n",
        "*1\r\n$0\r\n\r\n",
        "*3000000000\r\n",
        "*1\r\n$536870913\r\n",
        "*1000\r\n$3\r\nDEL\r\n",
        "*1\r\n:3\r\n",
        "\"unbalanced\r\n",
        "*2\r\n$20000\r\nx",
        "*+1\r\n$+1\r\na\r\n",
    ];
    SENT.iter().map(|sent| [&[1, 7], sent.as_bytes()].concat()).collect()
}

type Commands = Vec<Vec<Vec<u8>>>;

/// The commands that are found when the n-th piece is of that size, and the error after them.
fn commands(
    data: &[u8],
    is_known: bool,
    size: impl Fn(usize) -> usize,
) -> (Commands, Option<String>) {
    let limits = Limits { arg_len_max: 512 << 20, is_known };
    let (mut parser, mut start, mut end, mut pieces) = (Parser::default(), 0, 0, 0);
    let mut found = Vec::new();
    loop {
        let here = data.get(start..end).unwrap_or_default();
        match parser.parse(here, limits) {
            Ok(Found::Command(len)) => {
                let source = parser.source(here);
                let arg = |&(from, to): &(usize, usize)| match source.get(from..to) {
                    Some(arg) => arg.to_vec(),
                    None => panic!("an argument is outside of what came"),
                };
                found.push(parser.args().iter().map(arg).collect());
                assert!(len > 0 && start + len <= end, "{len} bytes of {}", end - start);
                start += len;
            }
            Ok(Found::Part(missing)) => {
                assert!(missing > 0, "nothing is missing");
                if end == data.len() {
                    return (found, None);
                }
                end = (end + size(pieces)).min(data.len());
                pieces += 1;
            }
            Err(error) => return (found, Some(error.0)),
        }
    }
}
