//! JSON of customers, laid out anew without changing it: numbers keep all their digits.
//!
//! ```text
//! {"id":12345678901234567890123,"price":19.90}   ─ExactJson─►   the same, on one line or on several
//! ```
//!
//! A [`serde_json::Value`] holds numbers of 64 bits and writes them its own way. [`ExactJson`] reads one level at a
//! time and writes names and scalars; only the white space between them changes. The text must have been parsed before,
//! which bounds its depth.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    fn only_white_space_changes() {
        let text = r#"{"b": 19.90, "a": [12345678901234567890123, -0, {"é":1e400}], "text": "\u00e9 1.10", "n": [ ]}"#;
        let json: Box<RawValue> = serde_json::from_str(text).unwrap();
        let compact = serde_json::to_string(&ExactJson(&json)).unwrap();
        assert_eq!(compact, r#"{"b":19.90,"a":[12345678901234567890123,-0,{"é":1e400}],"text":"\u00e9 1.10","n":[]}"#);
        let pretty = serde_json::to_string_pretty(&ExactJson(&json)).unwrap();
        assert!(pretty.starts_with("{\n  \"b\": 19.90,\n  \"a\": [\n    12345678901234567890123,\n"), "{pretty}");
        assert_eq!((fields(&json).unwrap().len(), entries(&json).is_none()), (4, true));
    }
}
