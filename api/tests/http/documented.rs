//! Checks every response that a test receives against the OpenAPI document: status, code, schema.

use std::sync::OnceLock;

use api::operations::operation_table;
use http::Method;
use serde_json::{Map, Value};

use crate::world::{BASE_URL, TestResponse};

/// Checks a response against the document.
///
/// # Panics
/// The document does not describe the response.
pub(crate) fn check_response(method: &Method, path: &str, response: &TestResponse) {
    let Some(operation) = operation(method, path) else { return };
    let status = response.status.as_u16().to_string();
    let described = &operation["responses"][&status];
    assert!(!described.is_null(), "{method} {path} answers {status}, of which the document knows nothing");
    let Some(content) = resolve_reference(described)["content"].as_object() else {
        assert!(response.body.is_empty(), "{method} {path} answers {status} with a body");
        return;
    };
    let actual = response.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
    let media = actual.split(';').next().unwrap();
    let body = content.get(actual).or_else(|| content.get(media));
    // A redirect, and the response to HEAD, have no body.
    assert!(body.is_some() || response.body.is_empty(), "{method} {path} answers {status} as {actual:?}");
    // Endpoints of OAuth have errors of its form: `error` is a word (RFC 6749 5.2).
    let is_oauth = path.starts_with("/oauth/") && response.status == 400 && response.json()["error"].is_string();
    if is_oauth {
        return;
    }
    if let (400.., Some(examples)) = (response.status.as_u16(), body.and_then(|body| body["examples"].as_object())) {
        let code = response.code();
        let is_known = examples.keys().any(|name| *name == code || *name == format!("{code}_{status}"));
        assert!(is_known, "{method} {path} answers {status} {code}, of which the document knows nothing");
    }
}

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| api::openapi::document(&operation_table(), BASE_URL))
}

/// The document's operation for a request, if there is one.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let (path, by_browser) = match path.strip_prefix("/api").filter(|rest| rest.starts_with('/')) {
        Some(rest) => (rest, true),
        None => (path, false),
    };
    let method = if method == Method::HEAD { "get".to_owned() } else { method.as_str().to_lowercase() };
    let paths: &Map<String, Value> = document()["paths"].as_object().unwrap();
    // A fixed segment wins over a parameter: `/emails/metrics` is not an id.
    let mut found: Vec<_> = paths.iter().filter(|(template, _)| matches_template(template, path)).collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let operation = found.first()?.1.get(&method)?;
    let takes_sessions = || operation["security"].to_string().contains("session");
    (!by_browser || takes_sessions()).then_some(operation)
}

fn matches_template(template: &str, path: &str) -> bool {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    expected.len() == actual.len()
        && expected.iter().zip(actual).all(|(expected, actual)| expected.starts_with('{') || *expected == actual)
}

fn resolve_reference(described: &'static Value) -> &'static Value {
    match described["$ref"].as_str() {
        Some(reference) => document().pointer(reference.trim_start_matches('#')).unwrap(),
        None => described,
    }
}
