//! Glob patterns as Redis matches them: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that
//! stands for itself.
//!
//! After a mismatch only the last star is tried again, so matching takes at most the product of the
//! lengths of pattern and text.

/// Whether the whole text matches the pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, false)
}

/// Whether the whole text matches the pattern, in upper or lower case.
pub(crate) fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, true)
}

fn search(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // What is behind the last star, and the text that it has not swallowed yet.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            if rest.is_empty() {
                return true;
            }
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        let step = match text.split_first() {
            Some((&byte, rest)) => one(pattern, byte, any_case).map(|pattern| (pattern, rest)),
            None if pattern.is_empty() => return true,
            // The text is used up; a star that swallows more of it does not help.
            None => return false,
        };
        if let Some(next) = step {
            (pattern, text) = next;
            continue;
        }
        let Some((behind_star, [_, rest @ ..])) = retry else { return false };
        retry = Some((behind_star, rest));
        (pattern, text) = (behind_star, rest);
    }
}

/// The rest of the pattern, if its first element, which is no star, matches the byte.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Option<&[u8]> {
    let same = |a: u8, b: u8| if any_case { a.eq_ignore_ascii_case(&b) } else { a == b };
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', b'^', class @ ..] => match in_class(class, byte, any_case) {
            (false, rest) => Some(rest),
            (true, _) => None,
        },
        [b'[', class @ ..] => match in_class(class, byte, any_case) {
            (true, rest) => Some(rest),
            (false, _) => None,
        },
        [b'\\', meant, rest @ ..] | [meant, rest @ ..] => same(*meant, byte).then_some(rest),
    }
}

/// Whether the class has the byte, and what follows the class. One that is not closed ends with the
/// pattern.
fn in_class(mut class: &[u8], byte: u8, any_case: bool) -> (bool, &[u8]) {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte } as i8;
    let mut found = false;
    loop {
        class = match class {
            [] => return (found, class),
            [b'\\', meant, rest @ ..] => {
                found |= *meant == byte;
                rest
            }
            [b']', rest @ ..] => return (found, rest),
            [one, b'-', other, rest @ ..] => {
                let (low, high) = ((*one as i8).min(*other as i8), (*one as i8).max(*other as i8));
                found |= (fold(low as u8)..=fold(high as u8)).contains(&fold(byte));
                rest
            }
            [one, rest @ ..] => {
                found |= fold(*one) == fold(byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for text in matching {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} does not match {text}"
            );
        }
        for text in others {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} matches {text}");
        }
    }

    #[test]
    fn every_kind_of_pattern_matches_what_it_says() {
        check("*", &["", "a", "abc"], &[]);
        check("a*c", &["ac", "abc", "abcbc"], &["a", "abcd", "xac"]);
        check("a**c*", &["ac", "abc", "abcbcd"], &["ab"]);
        check("h?llo", &["hello", "hallo"], &["hllo", "heello"]);
        check("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]);
        check("h[^e]llo", &["hallo"], &["hello", "hllo"]);
        check("h[a-c]llo", &["hallo", "hcllo"], &["hdllo"]);
        check("h[c-a]llo", &["hbllo"], &["hdllo"]);
        check("h\\*llo", &["h*llo"], &["hello"]);
        check("[\\]]", &["]"], &["\\"]);
        check("a[bc", &["ab", "ac"], &["a", "a[bc", "abc"]);
        check("\\", &["\\"], &["", "a"]);
        check("", &[""], &["a"]);
        check("foo", &["foo"], &["fo", "fooo", "FOO"]);
    }

    #[test]
    fn case_is_ignored_when_asked() {
        for pattern in ["FOO*", "f[O-P]o*", "[e-g]Oobar"] {
            assert!(matches_any_case(pattern.as_bytes(), b"fooBAR"), "{pattern}");
        }
        assert!(!matches_any_case(b"FOX*", b"foobar"));
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_longer_than_it_is_long() {
        let pattern = "a*".repeat(50) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(10_000).as_bytes()));
    }
}
