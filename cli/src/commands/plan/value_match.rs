//! Compares a declared value with the server's, which has defaults and sometimes another form of the same value.

use serde_json::Value;

/// Values that the server gives to fields that are not declared, besides null, false, zero and empty ones.
const DEFAULTS: &[(&str, &str)] = &[("reentry", "always"), ("to", "{{event.email}}"), ("type", "string")];
/// Lists whose order means nothing.
const SETS: &[&str] = &["events", "domain_ids", "inbound_addresses", "cancel_on_events"];

/// Returns whether the server's value is the declared one.
pub(super) fn matches(name: &str, declared: &Value, actual: &Value) -> bool {
    match (declared, actual) {
        (Value::Object(declared), Value::Object(actual)) => {
            let is_default = |(field, value): (&String, &Value)| {
                let known = DEFAULTS.iter().any(|(name, default)| name == field && value == default);
                declared.contains_key(field) || is_empty(value) || known
            };
            declared.iter().all(|(field, value)| matches(field, value, actual.get(field).unwrap_or(&Value::Null)))
                && actual.iter().all(is_default)
        }
        (Value::Array(declared), Value::Array(actual)) if SETS.contains(&name) => {
            declared.len() == actual.len() && declared.iter().all(|one| actual.contains(one))
        }
        (Value::Array(declared), Value::Array(actual)) => {
            declared.len() == actual.len() && declared.iter().zip(actual).all(|(one, other)| matches("", one, other))
        }
        // One text where the server has a list.
        (Value::String(_), Value::Array(actual)) => matches!(actual.as_slice(), [one] if one == declared),
        (Value::Number(declared), Value::Number(actual)) => declared.as_f64() == actual.as_f64(),
        _ => declared == actual || (is_empty(declared) && is_empty(actual)),
    }
}

/// Returns whether a value is the same as none.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_of_the_server_are_no_differences() {
        let actual = json!({"event": "user.created", "cancel_on_events": [], "reentry": "always"});
        assert!(matches("trigger", &json!({"event": "user.created"}), &actual));
        assert!(!matches("trigger", &json!({"event": "user.deleted"}), &actual));
        // A field that was taken out of the file is a difference.
        assert!(!matches("trigger", &json!({"event": "a"}), &json!({"event": "a", "filter": {"all": [1]}})));
        assert!(matches("events", &json!(["a", "b"]), &json!(["b", "a"])));
        assert!(!matches("steps", &json!([{"type": "a"}, {"type": "b"}]), &json!([{"type": "b"}, {"type": "a"}])));
        assert!(matches("reply_to", &json!("a@b.example"), &json!(["a@b.example"])));
        assert!(matches("preheader", &json!(""), &json!(null)));
    }
}
