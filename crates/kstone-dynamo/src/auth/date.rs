//! Parses and prints the dates of signatures: `20150830T123600Z`, and HTTP's `Date` header.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Reads the dates of HTTP. The weekday need not be the right one.
static HTTP: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);

/// Seconds since 1970 of a date in ISO-8601 basic format.
pub(super) fn parse(text: &str) -> Option<i64> {
    let has_form = text.len() == 16
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    has_form.then(|| text.parse::<Timestamp>().ok())?.map(Timestamp::as_second)
}

/// The date in ISO-8601 basic format.
pub(super) fn print(seconds: i64) -> String {
    let date = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    date.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Converts the `Date` header, `Sun, 30 Aug 2015 12:36:00 GMT`, on which a signature without
/// `X-Amz-Date` relies, to ISO-8601 basic format. Text in another form is returned as it is.
pub(super) fn to_basic(text: &str) -> Cow<'_, str> {
    match text.ends_with("GMT").then(|| HTTP.parse_timestamp(text)) {
        Some(Ok(date)) => print(date.as_second()).into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_printed_back() {
        for (text, seconds) in [
            ("19700101T000000Z", 0),
            ("20150830T123600Z", 1_440_938_160),
            ("20000229T235959Z", 951_868_799),
            ("20261116T004440Z", 1_794_789_880),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
            assert_eq!(print(seconds), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_survives() {
        for days in 0..146_097 {
            assert_eq!(parse(&print(days * 86_400)), Some(days * 86_400));
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["", "201", "20150830", "20151330T123600Z", "2015083aT123600Z", "20150830T12360éZ"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_date_of_http_is_taken_too() {
        assert_eq!(to_basic("Sun, 30 Aug 2015 12:36:00 GMT"), "20150830T123600Z");
        assert_eq!(to_basic("20150830T123600Z"), "20150830T123600Z");
        assert_eq!(to_basic("whenever"), "whenever");
    }
}
