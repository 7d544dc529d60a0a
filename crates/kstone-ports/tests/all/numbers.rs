//! Numbers against a naive model: 300 decimal places in an array, added and compared one by one.

use std::cmp::Ordering;

use kstone_ports::value::{Number, NumberError};
use proptest::prelude::*;

/// The power of ten of the first place; behind it 10^-1 more and more. Wide enough for the sum of
/// any two numbers.
const TOP: i32 = 130;
const PLACES: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Model {
    negative: bool,
    places: [u8; PLACES],
}

impl Model {
    fn new(negative: bool, digits: &str, scientific: i32) -> Model {
        let mut places = [0; PLACES];
        let start = usize::try_from(TOP - scientific).unwrap();
        for (at, digit) in digits.bytes().enumerate() {
            places[start + at] = digit - b'0';
        }
        Model { negative, places }
    }

    fn of(number: Number) -> Model {
        let text = number.to_string();
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text.as_str()),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        Model::new(negative, &format!("{whole}{fraction}"), whole.len() as i32 - 1)
    }

    fn compare(&self, other: &Model) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.places.cmp(&other.places),
            (true, true) => other.places.cmp(&self.places),
        }
    }

    fn add(&self, other: &Model) -> Model {
        if self.negative == other.negative {
            let mut places = [0; PLACES];
            let mut carry = 0;
            for at in (0..PLACES).rev() {
                let sum = self.places[at] + other.places[at] + carry;
                places[at] = sum % 10;
                carry = sum / 10;
            }
            return Model { negative: self.negative, places };
        }
        let (big, small) = if self.places >= other.places { (self, other) } else { (other, self) };
        let mut places = [0; PLACES];
        let mut borrow = 0;
        for at in (0..PLACES).rev() {
            let difference = 10 + big.places[at] - small.places[at] - borrow;
            places[at] = difference % 10;
            borrow = 1 - difference / 10;
        }
        let zero = places.iter().all(|&place| place == 0);
        Model { negative: big.negative && !zero, places }
    }

    fn negated(&self) -> Model {
        let zero = self.places.iter().all(|&place| place == 0);
        Model { negative: !self.negative && !zero, places: self.places }
    }

    /// What a number of this value is refused for.
    fn refusal(&self) -> Option<NumberError> {
        let first = self.places.iter().position(|&place| place != 0)?;
        let last = self.places.iter().rposition(|&place| place != 0)?;
        let scientific = TOP - first as i32;
        if scientific > 125 {
            Some(NumberError::Overflow)
        } else if scientific < -130 {
            Some(NumberError::Underflow)
        } else if last - first + 1 > 38 {
            Some(NumberError::TooManyDigits)
        } else {
            None
        }
    }

    fn text(&self) -> String {
        let point = TOP as usize + 1;
        let digits = |places: &[u8]| places.iter().map(|&d| (b'0' + d) as char).collect::<String>();
        let whole = digits(&self.places[..point]);
        let fraction = digits(&self.places[point..]);
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let sign = if self.negative { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { whole };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }
}

/// A value with one of the many ways to write it.
#[derive(Debug, Clone)]
struct Written {
    model: Model,
    text: String,
}

prop_compose! {
    /// Any valid number but zero. Half of the exponents are near zero, where sums overlap.
    fn written()(
        negative: bool,
        digits in prop_oneof!["[1-9][0-9]{0,4}", "[1-9][0-9]{0,37}", "[1-9][09]{0,37}"],
        scientific in prop_oneof![-130..=125i32, -25..=25i32, Just(-130), Just(125)],
        point in 0..45usize,
        leading_zeros in 0..4usize,
        trailing_zeros in 0..60usize,
        plus: bool,
        big_e: bool,
        exponent_sign: bool,
    ) -> Written {
        let model = Model::new(negative, &digits, scientific);
        let mut all = format!("{}{digits}{}", "0".repeat(leading_zeros), "0".repeat(trailing_zeros));
        let point = point.min(all.len());
        let exponent = scientific - (point as i32 - leading_zeros as i32 - 1);
        if point < all.len() || big_e {
            all.insert(point, '.');
        }
        let sign = if negative { "-" } else if plus { "+" } else { "" };
        let e = if big_e { "E" } else { "e" };
        let text = match exponent {
            0 if exponent_sign => format!("{sign}{all}"),
            _ if exponent_sign => format!("{sign}{all}{e}{exponent:+}"),
            _ => format!("{sign}{all}{e}{exponent}"),
        };
        Written { model, text }
    }
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        8 => written().prop_map(|written| written.text.parse().unwrap()),
        1 => any::<i64>().prop_map(Number::from),
        1 => (-300..300i32).prop_map(Number::from),
    ]
}

proptest! {
    #[test]
    fn a_number_reads_back_as_its_plain_digits(written in written()) {
        let number: Number = written.text.parse().unwrap();
        prop_assert_eq!(number.to_string(), written.model.text());
        prop_assert_eq!(number.to_string().parse::<Number>().unwrap(), number);
    }

    #[test]
    fn numbers_compare_as_in_arithmetic_and_so_do_their_bytes(a in number(), b in number()) {
        let order = Model::of(a).compare(&Model::of(b));
        prop_assert_eq!(a.cmp(&b), order);
        prop_assert_eq!(a.ordered().cmp(b.ordered()), order);
        prop_assert_eq!(a == b, order == Ordering::Equal);
    }

    #[test]
    fn ordered_bytes_end_by_themselves(number in number(), more: Vec<u8>) {
        let mut bytes = Vec::new();
        number.write_ordered(&mut bytes);
        let len = bytes.len();
        bytes.extend(more);
        prop_assert_eq!(Number::read_ordered(&bytes), Some((number, len)));
        prop_assert_eq!(Number::read_ordered(&bytes[..len - 1]), None);
    }

    #[test]
    fn bytes_that_are_a_number_are_its_only_form(bytes in proptest::collection::vec(any::<u8>(), 0..26)) {
        if let Some((number, len)) = Number::read_ordered(&bytes) {
            prop_assert_eq!(number.ordered(), &bytes[..len]);
            prop_assert_eq!(number.to_string().parse::<Number>().unwrap(), number);
        }
    }

    #[test]
    fn sums_and_differences_are_exact_or_refused(a in number(), b in number()) {
        let cases = [
            (a.checked_add(b), Model::of(a).add(&Model::of(b))),
            (a.checked_sub(b), Model::of(a).add(&Model::of(b).negated())),
        ];
        for (result, model) in cases {
            match model.refusal() {
                Some(refusal) => prop_assert_eq!(result, Err(refusal)),
                None => prop_assert_eq!(result.unwrap().to_string(), model.text()),
            }
        }
    }

    #[test]
    fn integers_and_floating_point_numbers_survive(integer: i64, unsigned: u64, float in -1e100..1e100f64) {
        prop_assert_eq!(Number::from(integer).to_i64(), Some(integer));
        prop_assert_eq!(Number::from(integer).to_string(), integer.to_string());
        prop_assert_eq!(Number::from(unsigned).to_string(), unsigned.to_string());
        prop_assert_eq!(Number::from(unsigned).to_u64(), Some(unsigned));
        prop_assert_eq!(Number::from(integer).to_u64(), u64::try_from(integer).ok());
        prop_assert_eq!(Number::from(unsigned).to_i64(), i64::try_from(unsigned).ok());
        prop_assert_eq!(Number::try_from(float).unwrap().to_f64(), float);
    }

    #[test]
    fn any_text_is_a_number_or_an_error(text in "[-+0-9.eE]{0,12}|\\PC{0,6}") {
        if let Ok(number) = text.parse::<Number>() {
            prop_assert!(text.parse::<f64>().is_ok(), "{text} was taken for {number}");
        }
    }
}

#[track_caller]
fn check_text(text: &str, expected: &str) {
    assert_eq!(text.parse::<Number>().unwrap().to_string(), expected);
}

#[track_caller]
fn check_refused(text: &str, message: &str) {
    assert_eq!(text.parse::<Number>().unwrap_err().to_string(), message);
}

#[test]
fn numbers_are_given_back_without_exponents_and_needless_zeros() {
    check_text("0", "0");
    check_text("-0", "0");
    check_text("0.00", "0");
    check_text("0e125", "0");
    check_text("0.0e126", "0");
    check_text("0.00e-130", "0");
    check_text("00042", "42");
    check_text("1.0", "1");
    check_text("3.1400", "3.14");
    check_text("1.5E2", "150");
    check_text("+1.5e+3", "1500");
    check_text(".5", "0.5");
    check_text("5.", "5");
    check_text("-.05", "-0.05");
    check_text("1E-38", &format!("0.{}1", "0".repeat(37)));
    check_text("1E-130", &format!("0.{}1", "0".repeat(129)));
    let max = "9.9999999999999999999999999999999999999E+125";
    check_text(max, &format!("{}{}", "9".repeat(38), "0".repeat(88)));
    check_text(&format!("-{max}"), &format!("-{}{}", "9".repeat(38), "0".repeat(88)));
    check_text(&format!("1{}", "0".repeat(100)), &format!("1{}", "0".repeat(100)));
}

#[test]
fn what_is_not_a_number_is_refused_in_dynamodbs_words() {
    check_refused("", "The parameter cannot be converted to a numeric value");
    for text in [
        "abc",
        " 1",
        "1 ",
        "+",
        "-",
        ".",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1e5.5",
        "1.2.3",
        "--1",
        "+-1",
        "0x10",
        "NaN",
        "Infinity",
        "inf",
        "1_000",
        "1,000",
        "１",
        "1e9223372036854775808",
    ] {
        check_refused(
            text,
            &format!("The parameter cannot be converted to a numeric value: {text}"),
        );
    }
    let many = "Attempting to store more than 38 significant digits in a Number";
    check_refused("123456789012345678901234567890123456789", many);
    check_refused("-1.00000000000000000000000000000000000009", many);
    let over =
        "Number overflow. Attempting to store a number with magnitude larger than supported range";
    for text in ["1E+126", "-1e126", "10E125", "1e99999999999", "1e9223372036854775807", "0e126"] {
        check_refused(text, over);
    }
    let under = "Number underflow. Attempting to store a number with magnitude smaller than supported range";
    for text in
        ["1E-131", "-1e-131", "0.1e-130", "1e-99999999999", "1e-9223372036854775808", "0e-131"]
    {
        check_refused(text, under);
    }
}

#[test]
fn fractions_and_large_numbers_are_no_integers() {
    for text in
        ["0.5", "-1.1", "1e-130", "9223372036854775808", "-9223372036854775809", "1e20", "1e125"]
    {
        assert_eq!(text.parse::<Number>().unwrap().to_i64(), None, "{text}");
    }
    assert_eq!("-9223372036854775808".parse::<Number>().unwrap().to_i64(), Some(i64::MIN));
    assert_eq!("12e17".parse::<Number>().unwrap().to_i64(), Some(1_200_000_000_000_000_000));
    assert_eq!(Number::ZERO.to_i64(), Some(0));
    assert_eq!("18446744073709551616".parse::<Number>().unwrap().to_u64(), None);
}

#[test]
fn floating_point_numbers_that_are_none_are_refused() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(Number::try_from(float), Err(NumberError::NotNumeric(_))));
    }
    assert_eq!(Number::try_from(1e300), Err(NumberError::Overflow));
    assert_eq!(Number::try_from(1e-300), Err(NumberError::Underflow));
    assert_eq!(Number::try_from(-0.0), Ok(Number::ZERO));
    assert_eq!(Number::try_from(0.1).unwrap().to_string(), "0.1");
}

#[test]
fn small_integers_take_few_bytes() {
    let len = |number: i64| Number::from(number).ordered().len();
    assert_eq!([len(0), len(7), len(-99), len(100), len(2026), len(1_000_000)], [1, 2, 2, 2, 3, 2]);
}

/// Measured on Amazon DynamoDB, against its limit on the size of an item.
#[test]
fn a_number_counts_a_byte_for_each_pair_of_digits_and_one_more() {
    for (text, size) in [
        ("0", 1),
        ("1", 2),
        ("12", 2),
        ("123", 3),
        ("1234", 3),
        ("12345678901234567890123456789012345678", 20),
        ("0042", 2),
        ("100", 2),
        ("1010", 3),
        ("0.0000001", 2),
        ("1E125", 2),
        ("1E-100", 2),
        ("1.5", 3),
        ("1.234", 4),
        ("3.14159", 5),
        ("100.5", 4),
        ("0.15", 2),
        ("-42", 3),
        ("-0", 1),
        ("1E-130", 2),
    ] {
        assert_eq!(text.parse::<Number>().unwrap().size(), size, "{text}");
    }
}
