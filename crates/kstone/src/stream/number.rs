//! Sequence numbers: the millisecond of the change and a count within it, so that a number tells
//! its age.

/// How many sequence numbers fit into a millisecond.
const NUMBERS_PER_MS: u64 = 1 << 16;

/// The first number of a millisecond.
pub(crate) fn first_of(ms: u64) -> u64 {
    ms.saturating_mul(NUMBERS_PER_MS)
}

/// A number as clients see it: 21 digits, the least that DynamoDB's clients accept. All have the
/// same width, so they compare as text too.
pub(crate) fn to_text(number: u64) -> String {
    format!("1{number:020}")
}

/// `None` if this is no number that [`to_text`] gave.
pub(crate) fn from_text(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('1')?;
    let plain = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order_as_text_and_come_back_from_it() {
        let numbers = [0, 1, 9, 10, first_of(1_700_000_000_000), u64::MAX - 1, u64::MAX];
        let texts: Vec<String> = numbers.iter().map(|&number| to_text(number)).collect();
        assert!(texts.is_sorted() && texts.iter().all(|text| text.len() == 21));
        assert_eq!(texts.iter().map(|text| from_text(text)).collect::<Vec<_>>(), numbers.map(Some));
    }

    #[test]
    fn what_was_never_a_number_is_not_taken_for_one() {
        for text in
            ["", "1", "100000000000000000", "1+0000000000000000001", "200000000000000000001"]
        {
            assert_eq!(from_text(text), None, "{text}");
        }
        assert_eq!(from_text("199999999999999999999"), None, "more than 64 bits");
    }
}
