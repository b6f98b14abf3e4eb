//! Builders of JSON Schema for what no struct describes: parameters, bodies that are not JSON objects, readers' limits.

use message::address::ADDRESS_BYTES_MAX;
use serde_json::{Value, json};

/// A string.
pub fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A string with a limit. JSON Schema counts characters and the readers bytes, so the limit refuses nothing valid.
pub fn bounded_string(bytes_max: usize, description: &str) -> Value {
    json!({"type": "string", "maxLength": bytes_max, "description": description})
}

/// An email address, whose local part and domain may be in UTF-8 (RFC 6531).
pub fn address(description: &str) -> Value {
    json!({"type": "string", "format": "idn-email", "maxLength": 4 * ADDRESS_BYTES_MAX, "description": description})
}

/// An id with this prefix.
pub fn id(prefix: &str, description: &str) -> Value {
    json!({"type": "string", "pattern": format!("^{prefix}[0-9A-Za-z]{{26}}$"), "description": description})
}

/// A string or null.
pub fn nullable_string(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

/// A timestamp: ISO 8601 with milliseconds and `Z`.
pub fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A timestamp or null.
pub fn nullable_time(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "date-time", "description": description})
}

/// Lets all optional fields of an object be null as well.
pub fn allow_null_for_optional(schema: &mut Value) {
    let required = schema["required"].clone();
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        if !required.as_array().into_iter().flatten().any(|required| required == name) {
            allow_null(field);
        }
    }
}

/// Lets a schema accept null as well.
pub fn allow_null(schema: &mut Value) {
    if schema.get("$ref").is_some() {
        *schema = json!({"oneOf": [schema, {"type": "null"}]});
        return;
    }
    let Some(schema) = schema.as_object_mut() else { return };
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "null") => return,
        Some(Value::Array(kinds)) => kinds.push(json!("null")),
        Some(kind) => *kind = json!([kind, "null"]),
        None => {}
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
    if let Some(Value::Array(alternatives)) = schema.get_mut("oneOf")
        && !alternatives.iter().any(|alternative| alternative["type"] == "null")
    {
        alternatives.push(json!({"type": "null"}));
    }
}

/// A non-negative integer.
pub fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

/// A non-negative integer or null.
pub fn nullable_count(description: &str) -> Value {
    json!({"type": ["integer", "null"], "minimum": 0, "description": description})
}

/// A boolean.
pub fn boolean(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// An enumeration of strings.
pub fn string_enum(words: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

/// An array.
pub fn list(items: Value, description: &str) -> Value {
    json!({"type": "array", "items": items, "description": description})
}

/// An object whose fields are all required.
pub fn object<'a>(description: &str, fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let fields: Vec<_> = fields.into_iter().collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    object_with(description, &required, fields)
}

/// An object with these required fields.
pub fn object_with<'a>(
    description: &str,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'a str, Value)>,
) -> Value {
    let properties: Value = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = json!({"type": "object", "description": description, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A webhook event of the payment processor.
pub fn processor_event() -> Value {
    json!({
        "type": "object", "additionalProperties": true,
        "description": "An event of the payment processor, in the format of its webhooks",
    })
}

/// An optional header parameter.
pub fn header_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": description, "schema": {"type": "string"}})
}

/// A path parameter.
pub fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true,
        "description": description, "schema": {"type": "string"},
    })
}

/// An optional query parameter. An empty value counts as missing, because HTML forms send every field.
pub fn query_parameter(name: &str, description: &str, schema: Value) -> Value {
    json!({
        "name": name, "in": "query", "required": false, "allowEmptyValue": true,
        "description": description, "schema": schema,
    })
}

/// A page of a list: `{NAME: [...], has_more, next_cursor}`.
pub fn list_page(name: &str, entry: Value) -> Value {
    object(
        "A page of the list",
        [
            (name, list(entry, "The entries, newest first")),
            ("has_more", boolean("Whether there are more")),
            ("next_cursor", nullable_string("The `cursor` of the next page")),
        ],
    )
}
