//! Turns the arguments of a tool into a call of its operation.

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Number, Value};

use crate::backend::OperationCall;
use crate::operation_table::{Operation, OperationTable, Parameter};
use crate::secret_fields::SECRET_FIELDS;

/// Characters of a path segment and of a query that are not encoded (RFC 3986 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Entries of a page: fewer than the API's default, because a model reads all of them.
pub(crate) const PAGE_DEFAULT: u64 = 10;
pub(crate) const PAGE_MAX: u64 = 25;

/// From this number on, an `f64` stands for several integers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Encodes a text for a path segment or a query (RFC 3986 2.1).
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// An argument is missing, unknown or of a wrong kind; the text says which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError(pub String);

/// Builds the call of an operation.
///
/// # Errors
/// An argument is missing, unknown, or none that a path or a query can carry. The API checks everything else.
pub fn operation_call(
    operation: &Operation,
    table: &OperationTable,
    mut arguments: Map<String, Value>,
) -> Result<OperationCall, ArgumentError> {
    arguments.retain(|_, value| !value.is_null());
    if operation.pages.is_some() && operation.query_parameters.iter().any(|parameter| parameter.name == "limit") {
        limit_page(&mut arguments);
    }
    let mut path = operation.path.clone();
    for parameter in &operation.path_parameters {
        let value = arguments.remove(&parameter.name).as_ref().and_then(scalar).filter(|text| !text.is_empty());
        let value = value.ok_or_else(|| ArgumentError(format!("`{}` is missing", parameter.name)))?;
        path = path.replace(&format!("{{{}}}", parameter.name), &encode_segment(&value));
    }
    let mut query = Vec::new();
    for parameter in &operation.query_parameters {
        if let Some(value) = arguments.remove(&parameter.name) {
            query.extend(query_values(parameter, &value)?);
        }
    }
    let idempotency_key = text_argument(&mut arguments, "idempotency_key", operation.idempotent)?;
    let if_match = text_argument(&mut arguments, "if_match", operation.takes_header("If-Match"))?;
    let body = body(operation, table, arguments)?;
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    Ok(OperationCall {
        operation: operation.id.clone(),
        method: Method::from_bytes(operation.http_method.as_bytes()).unwrap_or(Method::POST),
        target: if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) },
        body,
        idempotency_key,
        if_match,
        is_idempotent: operation.idempotent,
        retry: operation.retry,
    })
}

/// A number that is too large is lowered; what is no number goes to the API, which says what is wrong.
fn limit_page(arguments: &mut Map<String, Value>) {
    let limit = arguments.entry("limit").or_insert_with(|| PAGE_DEFAULT.into());
    if let Some(number) = limit.as_number().and_then(|number| number_text(number).parse::<u64>().ok()) {
        *limit = number.min(PAGE_MAX).into();
    }
}

/// Encodes a text for a path segment. A segment of dots alone would be removed from the path.
pub fn encode_segment(value: &str) -> String {
    match value {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        value => encode(value),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number_text(number)),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A number with a fraction of zero is an integer, and is written as one: 3.0 is 3 (JSON Schema Validation 2020-12,
/// 6.1.1).
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < EXACT_MAX => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

fn query_values(parameter: &Parameter, value: &Value) -> Result<Vec<(String, String)>, ArgumentError> {
    let refused = || ArgumentError(format!("`{}` must be a string, a number or a list of these", parameter.name));
    let texts: Vec<String> = match value {
        Value::Array(values) => values.iter().map(scalar).collect::<Option<_>>().ok_or_else(refused)?,
        value => vec![scalar(value).ok_or_else(refused)?],
    };
    let texts = if parameter.explode == Some(false) { vec![texts.join(",")] } else { texts };
    Ok(texts.into_iter().map(|text| (parameter.name.clone(), text)).collect())
}

fn text_argument(
    arguments: &mut Map<String, Value>,
    name: &str,
    is_known: bool,
) -> Result<Option<String>, ArgumentError> {
    if !is_known {
        return Ok(None);
    }
    match arguments.remove(name) {
        None => Ok(None),
        // A header cannot carry other characters.
        Some(Value::String(text)) if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) => Ok(Some(text)),
        Some(_) => Err(ArgumentError(format!("`{name}` must be a string of printable ASCII characters"))),
    }
}

fn body(
    operation: &Operation,
    table: &OperationTable,
    arguments: Map<String, Value>,
) -> Result<Option<Value>, ArgumentError> {
    let fields = operation.body_fields(table);
    for name in arguments.keys() {
        let is_known = fields.is_some_and(|fields| fields.contains_key(name));
        if SECRET_FIELDS.contains(&name.as_str()) {
            return Err(ArgumentError(format!(
                "`{name}` is a secret: do not write it into a conversation; use the dashboard or the command line"
            )));
        }
        if !is_known {
            let known = fields.into_iter().flatten().map(|(name, _)| name.as_str());
            let parameters = operation.path_parameters.iter().chain(&operation.query_parameters);
            let known: Vec<&str> = parameters.map(|parameter| parameter.name.as_str()).chain(known).collect();
            return Err(ArgumentError(format!(
                "There is no argument `{name}`; the arguments are {}",
                known.join(", ")
            )));
        }
    }
    Ok(match (&operation.body, operation.fixed.is_empty()) {
        (None, _) => None,
        (Some(_), true) => Some(Value::Object(arguments)),
        (Some(_), false) => Some(Value::Object(operation.fixed.clone())),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    fn call(operation: &str, arguments: Value) -> Result<OperationCall, ArgumentError> {
        let catalog = Catalog::get();
        let operation = catalog.table.operations.iter().find(|one| one.id == operation).unwrap();
        operation_call(operation, catalog.table, arguments.as_object().unwrap().clone())
    }

    #[test]
    fn arguments_go_to_path_query_and_body() {
        let list = call("list_emails", json!({"status": ["bounced", "failed"], "to": "a+b@c.example", "cursor": null}));
        assert_eq!(list.unwrap().target, "/emails?limit=10&status=bounced%2Cfailed&to=a%2Bb%40c.example");
        let many = call("list_emails", json!({"limit": 100, "tag": ["a:1", "b:2"]})).unwrap();
        assert_eq!(many.target, "/emails?limit=25&tag=a%3A1&tag=b%3A2");
        let many = call("list_emails", json!({"limit": 100.0, "tag": [3.0, 3.5]})).unwrap();
        assert_eq!(many.target, "/emails?limit=25&tag=3&tag=3.5", "a fraction of zero is none");
        let get = call("get_domain", json!({"id_or_name": "../x y"})).unwrap();
        assert_eq!(get.target, "/domains/..%2Fx%20y");
        assert_eq!(call("get_domain", json!({"id_or_name": ".."})).unwrap().target, "/domains/%2E%2E");
        let send = call("send_email", json!({"to": ["a@b.example"], "text": "x", "idempotency_key": "k"})).unwrap();
        assert_eq!((send.target.as_str(), send.idempotency_key.as_deref()), ("/emails", Some("k")));
        assert_eq!(send.body, Some(json!({"to": ["a@b.example"], "text": "x"})));
        let pause = call("pause_automation", json!({"id": "aut_1"})).unwrap();
        assert_eq!((pause.target.as_str(), pause.body), ("/automations/aut_1", Some(json!({"action": "pause"}))));
        assert_eq!(call("cancel_email", json!({"id": "msg_1"})).unwrap().body, None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (operation, arguments, part) in [
            ("get_email", json!({}), "`id` is missing"),
            ("get_email", json!({"id": ""}), "`id` is missing"),
            ("get_email", json!({"id": {"a": 1}}), "`id` is missing"),
            ("get_email", json!({"id": "msg_1", "x": 1}), "no argument `x`; the arguments are id"),
            ("list_emails", json!({"to": {"a": 1}}), "`to` must be"),
            ("send_email", json!({"to": "a", "idempotency_key": "ä"}), "`idempotency_key` must be"),
            ("create_domain", json!({"name": "a.example", "dkim_private_key": "x"}), "is a secret"),
            ("pause_automation", json!({"id": "aut_1", "action": "archive"}), "no argument `action`"),
        ] {
            let error = call(operation, arguments).unwrap_err().0;
            assert!(error.contains(part), "{operation}: {error}");
        }
    }
}
