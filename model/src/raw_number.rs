//! Lossless JSON numbers: a number in a customer's JSON is passed on digit for digit.
//!
//! ```text
//! 19.90, 12345678901234567890123, -0   ─parse─►   {"\0": "19.90"}, …
//! {"\0": "19.90"}, …   ─RawNumberValue─►   19.90, 12345678901234567890123, -0
//! ```
//!
//! A [`Value`] holds numbers of 64 bits and formats them its own way: `19.90` would become 19.9 in an email, and an id
//! of 23 digits would change. serde_json's feature `arbitrary_precision` would preserve them, but it changes the whole
//! program and breaks types that are deserialized through a buffer, here and in other crates. So a number that would
//! change is stored as an object with one reserved field, U+0000, that holds its digits. Other numbers stay numbers.
//! Code that reads such values uses this module to detect, compare and format numbers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::FromStr;

use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// Name of the field that holds the digits.
const MARK: &str = "\0";
/// The marker object up to its digits, as JSON.
const MARK_BEGINS: &str = "{\"\\u0000\":\"";
const MARK_ENDS: &str = "\"}";
/// Whole numbers of up to this many digits always fit in 64 bits.
const DIGITS_SURE: usize = 18;
/// The most digits of an integer of 64 bits.
const INTEGER_DIGITS_MAX: usize = 20;

/// Parses JSON and preserves its numbers digit for digit.
pub fn parse(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&mark_numbers(json))
}

/// Replaces the numbers that serde_json would change by marker objects. Invalid JSON stays invalid.
fn mark_numbers(json: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = skip_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| is_number_byte(**byte)).count();
                let digits = json.get(at..at + length).unwrap_or_default();
                if !is_lossless(digits) && is_json_number(digits) {
                    out.push_str(json.get(copied..at).unwrap_or_default());
                    out.push_str(MARK_BEGINS);
                    out.push_str(digits);
                    out.push_str(MARK_ENDS);
                    copied = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Offset after the end of a string.
fn skip_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns whether [`Number`] formats the digits unchanged.
fn is_lossless(digits: &str) -> bool {
    let whole = digits.strip_prefix('-').unwrap_or(digits);
    if whole.len() <= DIGITS_SURE && whole.bytes().all(|byte| byte.is_ascii_digit()) {
        // The JSON parser rejects leading zeros later.
        return digits != "-0";
    }
    serde_json::from_str::<Number>(digits).is_ok_and(|number| number.to_string() == digits)
}

/// Returns whether the text matches the number grammar (RFC 8259 6), whatever its size.
fn is_json_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

fn marked_digits(fields: &Map<String, Value>) -> Option<&str> {
    let digits = fields.get(MARK).filter(|_| fields.len() == 1)?.as_str()?;
    is_json_number(digits).then_some(digits)
}

/// Returns whether a value is a number, marked or not.
pub fn is_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Object(fields) => marked_digits(fields).is_some(),
        _ => false,
    }
}

/// The digits of a number; `None` if the value is not a number.
pub fn digits(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Object(fields) => marked_digits(fields).map(Cow::Borrowed),
        _ => None,
    }
}

/// The nearest `f64` of a number; `None` if the value is not a number.
pub fn as_f64(value: &Value) -> Option<f64> {
    digits(value)?.parse().ok()
}

/// Parses an integer from the JSON of a value. A number with a fraction of zero is an integer: 3.0 and 3e0 are 3
/// (JSON Schema Validation 2020-12, 6.1.1). `None` if the value is not an integer, or out of the type's range.
pub fn parse_integer<T: FromStr>(json: &str) -> Option<T> {
    if let Ok(integer) = json.parse() {
        return Some(integer);
    }
    if !is_json_number(json) {
        return None;
    }
    let Decimal { negative, digits, exponent } = Decimal::parse(json);
    let length = usize::try_from(exponent).ok()?;
    if !(digits.len()..=INTEGER_DIGITS_MAX).contains(&length) {
        return None;
    }
    let (sign, digits) = (if negative { "-" } else { "" }, String::from_utf8(digits).ok()?);
    // Zero has no digits.
    let width = length.max(1);
    format!("{sign}{digits:0<width$}").parse().ok()
}

/// As [`parse_integer`]; `None` also if the value is not a number.
pub fn as_integer<T: FromStr>(value: &Value) -> Option<T> {
    parse_integer(&digits(value)?)
}

/// The value that a template shows for a marked number; `None` if the value is not one. Every zero becomes 0, because
/// a template condition treats the number 0 as false, but not the text `0.00`.
pub fn display_value(value: &Value) -> Option<Value> {
    let digits = marked_digits(value.as_object()?)?;
    Some(if Decimal::parse(digits).digits.is_empty() { Value::from(0) } else { Value::from(digits) })
}

/// Compares two numbers exactly; `None` if one of them is not a number.
pub fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        return Some(one.cmp(&other));
    }
    Some(Decimal::parse(&digits(one)?).compare(&Decimal::parse(&digits(other)?)))
}

/// A number in normal form: 0.digits · 10^exponent. Zero has no digits.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i128,
}

impl Decimal {
    /// Parses the digits of a valid JSON number.
    fn parse(text: &str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        // An exponent beyond 64 bits is saturated.
        let overflow = if exponent.starts_with('-') { i128::from(i64::MIN) } else { i128::from(i64::MAX) };
        let exponent = exponent.parse::<i64>().map_or(overflow, i128::from);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let zeros = all.iter().take_while(|digit| **digit == b'0').count();
        let mut digits = all.get(zeros..).unwrap_or_default().to_vec();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0 };
        }
        let before = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
        Self { negative, digits, exponent: exponent + before(whole.len()) - before(zeros) }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let sign = |one: &Self| match (one.digits.is_empty(), one.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        match (sign(self), sign(other)) {
            (-1, -1) => size().reverse(),
            (1, 1) => size(),
            (one, other) => one.cmp(&other),
        }
    }
}

/// Serializes a value with its original digits.
#[derive(Debug, Clone, Copy)]
pub struct RawNumberValue<'a>(pub &'a Value);

impl Serialize for RawNumberValue<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => match marked_digits(fields) {
                Some(digits) => RawValue::from_string(digits.to_owned()).map_err(S::Error::custom)?.serialize(out),
                None => {
                    let mut map = out.serialize_map(Some(fields.len()))?;
                    for (name, value) in fields {
                        map.serialize_entry(name, &RawNumberValue(value))?;
                    }
                    map.end()
                }
            },
            Value::Array(entries) => {
                let mut list = out.serialize_seq(Some(entries.len()))?;
                for entry in entries {
                    list.serialize_element(&RawNumberValue(entry))?;
                }
                list.end()
            }
            other => other.serialize(out),
        }
    }
}

/// Serializes like [`RawNumberValue`], for `#[serde(serialize_with)]`.
pub fn serialize<S: Serializer>(value: &Value, out: S) -> Result<S::Ok, S::Error> {
    RawNumberValue(value).serialize(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn written(value: &Value) -> String {
        serde_json::to_string(&RawNumberValue(value)).unwrap()
    }

    #[test]
    fn numbers_round_trip_unchanged() {
        for text in [
            r#"{"amount":19.90,"id":12345678901234567890123,"zero":-0,"small":1e-400,"large":1E+400}"#,
            r#"[0,-1,1.5,18446744073709551615,18446744073709551616,-9223372036854775809,0.30000000000000004]"#,
            r#"{"z":"-0 1.10 \" 2.20","a":[{"\u0001":1.0}],"m":null,"b":1.000000000000000000000001}"#,
            "3.10",
        ] {
            assert_eq!(written(&parse(text).unwrap()), text);
        }
        // Lossless numbers have no marker.
        assert_eq!(parse("[1,-7,1.5,9007199254740993]").unwrap(), json!([1, -7, 1.5, 9007199254740993_u64]));
        for wrong in ["01", "-", "1.", ".5", "1e", "[1.10", "{\"a\":--1.10}", "1.10 2.20", "nul"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        // Objects that only resemble a marker stay unchanged.
        for text in [r#"{"\u0000":"x"}"#, r#"{"\u0000":"1.10","a":1}"#, r#"{"\u0000":1}"#] {
            assert_eq!(written(&parse(text).unwrap()), text);
        }
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let number = |text: &str| parse(text).unwrap();
        for (one, other, wanted) in [
            ("19.90", "19.9", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("0e5", "-0.000", Ordering::Equal),
            ("12345678901234567890123", "12345678901234567890124", Ordering::Less),
            ("12345678901234567890123", "1.2345678901234567890123e22", Ordering::Equal),
            ("-12345678901234567890123", "-5", Ordering::Less),
            ("1e400", "1e399", Ordering::Greater),
            ("1e-400", "0", Ordering::Greater),
            ("-1e-400", "0", Ordering::Less),
            ("1e99999999999999999999999", "1e400", Ordering::Greater),
            ("1e-99999999999999999999999", "1e-400", Ordering::Less),
            ("0.30000000000000001", "0.3", Ordering::Greater),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("100", "1e2", Ordering::Equal),
            ("0.001", "1.0e-3", Ordering::Equal),
        ] {
            assert_eq!(compare(&number(one), &number(other)), Some(wanted), "{one} {other}");
            assert_eq!(compare(&number(other), &number(one)), Some(wanted.reverse()), "{other} {one}");
        }
        assert_eq!(compare(&json!("1"), &json!(1)), None);
        assert_eq!(as_f64(&number("19.90")), Some(19.9));
        assert_eq!(display_value(&number("19.90")), Some(json!("19.90")));
        assert_eq!((display_value(&number("-0")), display_value(&number("0.00"))), (Some(json!(0)), Some(json!(0))));
        assert_eq!((display_value(&json!(1)), display_value(&json!({"a": 1}))), (None, None));
    }

    #[test]
    fn a_fraction_of_zero_is_no_fraction() {
        for (json, integer) in [
            ("3", 3_i64),
            ("3.0", 3),
            ("-3.00", -3),
            ("0.0", 0),
            ("-0.0", 0),
            ("100.0", 100),
            ("1e2", 100),
            ("1.50E+1", 15),
            ("30e-1", 3),
            ("9223372036854775807.0", i64::MAX),
        ] {
            assert_eq!(parse_integer(json), Some(integer), "{json}");
        }
        for json in ["3.5", "2.99999999999999999999", "1e-1", "1e19", "1e400", "01.0", "\"3.0\"", "null", "[1]", ""] {
            assert_eq!(parse_integer::<i64>(json), None, "{json}");
        }
        assert_eq!((parse_integer("18446744073709551615.0"), parse_integer::<u64>("-1.0")), (Some(u64::MAX), None));
        assert_eq!((as_integer(&parse("7.0").unwrap()), as_integer::<u32>(&json!("7"))), (Some(7_u32), None));
    }

    proptest! {
        #[test]
        fn every_digit_of_a_number_is_written(
            texts in proptest::collection::vec("-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", 0..6),
            between in "[ -~ß]{0,6}",
        ) {
            let name = serde_json::to_string(&between).unwrap();
            let json = format!("{{{name}:[{}]}}", texts.join(","));
            prop_assert_eq!(written(&parse(&json).unwrap()), json);
        }

        #[test]
        fn texts_of_numbers_have_the_order_of_numbers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000, zeros in 0_usize..9) {
            let text = |n: i64| format!("{}{}.{:06}{}", if n < 0 { "-" } else { "" }, n.abs() / 1_000_000, n.abs() % 1_000_000, "0".repeat(zeros));
            let one = parse(&text(a)).unwrap();
            let other = parse(&text(b)).unwrap();
            prop_assert_eq!(compare(&one, &other), Some(a.cmp(&b)));
        }
    }
}
