//! JSON of customers, laid out anew without changing it: numbers keep all their digits.
//!
//! ```text
//! {"id":12345678901234567890123,"price":19.90}   ─ExactJson─►   the same, on one line or on several
//! ```
//!
//! A [`serde_json::Value`] holds numbers of 64 bits and writes them its own way. [`ExactJson`] reads one level at a
//! time. Numbers and texts stay as they were written; names are decoded and written anew, so their escapes may change.
//!
//! A level is read again for each level above it, so the depth must be bounded: the command line parses an answer first
//! (at most 128 levels), and the API limits the data of an event to 64 KiB and 32 levels.
//!
//! A request is built from values. [`changed_number`] finds a number that a value would round, so that it is refused.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;

/// Serializes JSON text as it was written.
#[derive(Debug, Clone, Copy)]
pub struct ExactJson<'a>(pub &'a RawValue);

impl Serialize for ExactJson<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if let Some(fields) = fields(self.0) {
            return out.collect_map(fields.iter().map(|(name, value)| (name, Self(value))));
        }
        if let Some(entries) = entries(self.0) {
            return out.collect_seq(entries.iter().map(|entry| Self(entry)));
        }
        self.0.serialize(out)
    }
}

/// The fields of an object, in their order; `None` if the text is none.
pub fn fields(json: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    let is_object = json.get().starts_with('{');
    is_object.then(|| serde_json::from_str::<ObjectFields<'_>>(json.get()).ok())?.map(|fields| fields.0)
}

/// The entries of an array; `None` if the text is none.
pub fn entries(json: &RawValue) -> Option<Vec<&RawValue>> {
    let is_array = json.get().starts_with('[');
    is_array.then(|| serde_json::from_str(json.get()).ok())?
}

/// The first number of a JSON text that a [`serde_json::Value`] rounds, for example one of 23 digits. A number that is
/// only written otherwise, such as 19.90, is not one.
pub fn changed_number(json: &str) -> Option<&str> {
    find_changed_number(serde_json::from_str(json).ok()?)
}

fn find_changed_number(json: &RawValue) -> Option<&str> {
    if let Some(fields) = fields(json) {
        return fields.into_iter().find_map(|(_, value)| find_changed_number(value));
    }
    if let Some(entries) = entries(json) {
        return entries.into_iter().find_map(find_changed_number);
    }
    let text = json.get();
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    (is_number && !is_exact(text)).then_some(text)
}

/// Returns whether a [`Number`] has the value of this text.
fn is_exact(text: &str) -> bool {
    let number = serde_json::from_str::<Number>(text);
    number.is_ok_and(|number| Decimal::parse(&number.to_string()) == Decimal::parse(text))
}

/// A number in the form that is the same for equal numbers: 0.digits · 10^exponent. Zero has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Parses a number of JSON (RFC 8259 6).
    fn parse(text: &str) -> Self {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let point = length(whole) - (length(&all) - length(digits));
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Self { is_negative: false, digits, exponent: 0 };
        }
        // An exponent beyond 64 bits is no number of 64 bits either.
        Self { is_negative, digits, exponent: exponent.parse::<i64>().unwrap_or(i64::MAX).saturating_add(point) }
    }
}

struct ObjectFields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for ObjectFields<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = ObjectFields<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry::<String, &'de RawValue>()? {
            fields.push(field);
        }
        Ok(ObjectFields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_were_written() {
        let text =
            r#"{"b": 19.90, "a": [12345678901234567890123, -0, {"\u00e9":1e400}], "text": "\u00e9 1.10", "n": [ ]}"#;
        let json: Box<RawValue> = serde_json::from_str(text).unwrap();
        let compact = serde_json::to_string(&ExactJson(&json)).unwrap();
        assert_eq!(compact, r#"{"b":19.90,"a":[12345678901234567890123,-0,{"é":1e400}],"text":"\u00e9 1.10","n":[]}"#);
        let pretty = serde_json::to_string_pretty(&ExactJson(&json)).unwrap();
        assert!(pretty.starts_with("{\n  \"b\": 19.90,\n  \"a\": [\n    12345678901234567890123,\n"), "{pretty}");
        assert_eq!((fields(&json).unwrap().len(), entries(&json).is_none()), (4, true));
    }

    #[test]
    fn numbers_that_lose_digits_are_found() {
        for kept in ["19.90", "-0", "1e2", "0.10e-3", "18446744073709551615", "-9007199254740993", r#""1e400""#, "{}"] {
            assert_eq!(changed_number(kept), None, "{kept}");
        }
        for changed in ["12345678901234567890123", "-0.12345678901234567890", "1e-400", "18446744073709551617"] {
            let json = format!(r#" {{"a": [1.5, "2", {{"b": {changed}}}]}}"#);
            assert_eq!(changed_number(&json), Some(changed));
        }
    }
}
