//! Generates examples from schemas: the schema's own example, or a value that it allows.
//!
//! Every request and response of the document gets one. `tests/peers/openapi.py` validates each against its schema.

use serde_json::{Map, Value, json};

/// Maximum nesting depth; deeper schemas become null.
const LEVELS_MAX: usize = 12;
/// The 26 characters of example ids.
const ULID: &str = "01K9ZQ4Y8M3T5V7W2X6B0C1D9E";
const TIME: &str = "2026-11-21T10:00:00.000Z";
/// Example of a time that must be in the future when a client tries the example.
const LATER: &str = "2036-11-21T10:00:00.000Z";

/// The preferred value of an enum that contains it; otherwise the first value is used.
const PREFERRED_WORD: &str = "delivered";
/// Nullable times that are set when the status is `delivered`.
const COMPLETED_TIME_FIELDS: &[&str] = &["sent_at", "delivered_at"];

/// Example values of plain text fields by field name.
const TEXTS: &[(&str, &str)] = &[
    ("from", "Ada <ada@example.com>"),
    ("to", "grace@example.net"),
    ("cc", "grace@example.net"),
    ("bcc", "grace@example.net"),
    ("reply_to", "ada@example.com"),
    ("email", "grace@example.net"),
    ("emails", "grace@example.net"),
    ("allowed_ips", "192.0.2.0/24"),
    ("csv", "email\ngrace@example.net\n"),
    ("password", "correct horse battery staple"),
    ("current_password", "a horse of another colour"),
    ("alias", "welcome"),
    ("hint", "rnl_…D9E4"),
    ("diagnostic", "smtp; 550 5.1.1 There is no such mailbox"),
    ("note", "Asked us by telephone"),
    ("recipient", "grace@example.net"),
    ("subject", "Welcome"),
    ("html", "<p>Hello</p>"),
    ("text", "Hello"),
    ("name", "flow"),
    ("value", "welcome"),
    ("warnings", "`colour` is not a known field and was ignored"),
    ("message_id", "<01K9ZQ4Y8M3T5V7W2X6B0C1D9E@example.com>"),
    ("last_event", "email.delivered"),
    ("type", "email.delivered"),
    ("event", "email.delivered"),
    ("url", "https://example.com/hooks/mail"),
    ("domain", "example.com"),
    ("inbound_addresses", "support@example.com"),
    ("mx_host", "mx1.example.net"),
    ("ip", "192.0.2.1"),
    ("request_id", "req_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"),
];

/// Builds an example of a schema; `schemas` are the components that it may refer to.
pub(super) fn example_of(schema: &Value, schemas: &Value) -> Value {
    ExampleBuilder { schemas }.build(schema, "", 0)
}

struct ExampleBuilder<'a> {
    schemas: &'a Value,
}

impl ExampleBuilder<'_> {
    fn build(&self, schema: &Value, name: &str, level: usize) -> Value {
        if level > LEVELS_MAX {
            return Value::Null;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = reference.rsplit('/').next().unwrap_or_default();
            return self.build(&self.schemas[target], name, level + 1);
        }
        let words = schema["enum"].as_array().into_iter().flatten();
        let likely =
            words.clone().find(|word| *word == PREFERRED_WORD).or(words.clone().next()).unwrap_or(&Value::Null);
        let candidates = [&schema["examples"][0], &schema["const"], likely];
        if let Some(example) = candidates.into_iter().find(|value| !value.is_null()) {
            return example.clone();
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.build_all_of(parts, name, level);
        }
        if schema["properties"].is_object() {
            return self.build_object(schema, level);
        }
        let alternatives = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        if let Some(alternative) =
            alternatives.and_then(|alternatives| alternatives.iter().find(|alternative| alternative["type"] != "null"))
        {
            return self.build(alternative, name, level + 1);
        }
        self.build_scalar(schema, name, level)
    }

    /// Merges the examples of `allOf`.
    fn build_all_of(&self, parts: &[Value], name: &str, level: usize) -> Value {
        let mut object = Map::new();
        for part in parts {
            if let Value::Object(fields) = self.build(part, name, level + 1) {
                object.extend(fields);
            }
        }
        Value::Object(object)
    }

    fn build_object(&self, schema: &Value, level: usize) -> Value {
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(|(name, field)| (name.clone(), self.build(field, name, level + 1))).collect()
    }

    fn build_scalar(&self, schema: &Value, name: &str, level: usize) -> Value {
        let (kind, nullable) = match &schema["type"] {
            Value::Array(kinds) => {
                let kind = kinds.iter().find(|kind| **kind != "null");
                (kind.and_then(Value::as_str), kinds.iter().any(|kind| kind == "null"))
            }
            kind => (kind.as_str(), false),
        };
        match kind {
            Some("string")
                if schema["format"] == "date-time" && (!nullable || COMPLETED_TIME_FIELDS.contains(&name)) =>
            {
                json!(if name == "expires_at" { LATER } else { TIME })
            }
            _ if nullable => Value::Null,
            Some("string") => json!(text_example(schema, name)),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => json!(false),
            Some("array") if schema["maxItems"] == 0 => json!([]),
            Some("array") => json!([self.build(&schema["items"], name, level + 1)]),
            Some("object") => match &schema["additionalProperties"] {
                Value::Object(_) => {
                    json!({"key": self.build(&schema["additionalProperties"], "", level + 1)})
                }
                _ => json!({}),
            },
            _ => Value::Null,
        }
    }
}

fn text_example(schema: &Value, name: &str) -> String {
    if schema["contentEncoding"] == "base64" {
        return "SGVsbG8=".to_owned();
    }
    if let Some(id) = schema["description"].as_str().and_then(id_example) {
        return id;
    }
    let example = TEXTS.iter().find(|(example, _)| *example == name);
    example.map_or_else(|| "text".to_owned(), |(_, text)| (*text).to_owned())
}

/// Example id for a description that names the id's prefix, like ``The email's id (`msg_…`)``.
fn id_example(description: &str) -> Option<String> {
    let (before, _) = description.split_once("_…`")?;
    let (_, prefix) = before.rsplit_once('`')?;
    Some(format!("{prefix}_{ULID}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_match_their_schemas() {
        let schemas = json!({"Id": {"type": "string", "description": "Its id (`msg_…`)"}, "Loop": {"$ref": "#/components/schemas/Loop"}});
        for (schema, example) in [
            (json!({"type": ["string", "null"]}), json!(null)),
            (json!({"type": "string", "format": "date-time"}), json!(TIME)),
            (json!({"type": "string", "enum": ["queued", "delivered"]}), json!("delivered")),
            (json!({"type": "array", "items": {"$ref": "#/components/schemas/Id"}}), json!([format!("msg_{ULID}")])),
            (json!({"oneOf": [{"type": "null"}, {"type": "boolean"}]}), json!(false)),
            (
                json!({"allOf": [{"properties": {"a": {"enum": ["x"]}}}, {"properties": {"b": {"const": 2}}}]}),
                json!({"a": "x", "b": 2}),
            ),
            (json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}), json!({"key": 0})),
            (json!({"type": "string", "examples": ["e"]}), json!("e")),
            (json!({"$ref": "#/components/schemas/Loop"}), json!(null)),
        ] {
            assert_eq!(example_of(&schema, &schemas), example, "{schema}");
        }
    }
}
