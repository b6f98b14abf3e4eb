//! The operations for SDKs, CLI and MCP tools: `x-sdk` of the OpenAPI document, and `sdk/operations.json`.
//!
//! `sdk/operations.json` has everything that a client needs of each operation that accepts an API key, the schemas, the
//! webhook events, the error codes and the DNS providers. A golden test keeps it equal to the operation table.

use std::collections::BTreeSet;

use http::Method;
use httpd::problem::ErrorCode;
use model::event::EventKind;
use provider::Provider;
use serde_json::{Map, Value, json};

use super::{collect_components, document};
use crate::operation::Operation;
use crate::sdk::{Risk, SdkAction, SdkMethod};
use crate::version;

const HEADERS_OF_THE_CLIENT: &[&str] = &["Idempotency-Key", "If-Match", "last-event-id"];

/// The `x-sdk` extension of an operation whose OpenAPI entry has its parameters and responses.
pub(super) fn sdk_extension(operation: &Operation, sdk: SdkMethod, entry: &Value) -> Value {
    let idempotent = has_parameter(entry, "header", "Idempotency-Key");
    json!({
        "resource": sdk.resource(),
        "method": sdk.method(),
        "pages": if has_parameter(entry, "query", "cursor") { items_field(entry) } else { None },
        "idempotent": idempotent,
        // A POST without an idempotency key may have been carried out although its response was lost.
        "retry": operation.method != Method::POST || idempotent || sdk.risk == Risk::Read,
        "risk": sdk.risk,
    })
}

fn has_parameter(entry: &Value, location: &str, name: &str) -> bool {
    let parameters = entry["parameters"].as_array();
    parameters.is_some_and(|all| all.iter().any(|one| one["in"] == location && one["name"] == name))
}

/// Name of the array in the response of a list. Lists are objects with one array beside `has_more` and `next_cursor`.
/// Schemas that are components are resolved by [`resolve_items_fields`], when all are known.
fn items_field(entry: &Value) -> Option<Value> {
    let schema = &success_content(entry)?.1["schema"];
    schema.get("$ref").cloned().or_else(|| array_property(schema).map(Value::from))
}

fn array_property(schema: &Value) -> Option<&str> {
    let properties = schema["properties"].as_object()?;
    let mut arrays = properties.iter().filter(|(name, one)| one["type"] == "array" && *name != "warnings");
    arrays.next().map(|(name, _)| name.as_str())
}

/// Replaces references to components in `x-sdk.pages` by the name of the component's array.
pub(super) fn resolve_items_fields(paths: &mut Value, schemas: &Value) {
    let operations = paths.as_object_mut().into_iter().flatten().filter_map(|(_, path)| path.as_object_mut());
    for (_, operation) in operations.flatten() {
        let Some(pages) = operation.pointer_mut("/x-sdk/pages") else { continue };
        let component = pages.as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
        if let Some(field) = component.and_then(|name| array_property(&schemas[name])) {
            *pages = json!(field);
        }
    }
}

/// Status and JSON content, or else the first content, of the success response.
fn success_content(entry: &Value) -> Option<(&str, &Value, &str)> {
    let responses = entry["responses"].as_object()?;
    let (status, response) = responses
        .iter()
        .find(|(status, response)| status.starts_with('2') && response["x-waits-for-approval"].is_null())?;
    let contents = response["content"].as_object()?;
    let json = contents.get_key_value("application/json");
    let (media_type, content) = json.or_else(|| contents.iter().next())?;
    Some((status, content, media_type))
}

/// `sdk/operations.json` as text.
pub fn render_operations(operations: &[Operation]) -> String {
    serde_json::to_string_pretty(&operations_document(operations)).unwrap_or_default() + "\n"
}

/// Builds the content of `sdk/operations.json`.
pub fn operations_document(operations: &[Operation]) -> Value {
    let document = document(operations, "");
    let mut described = Vec::new();
    for operation in operations {
        let (Some(sdk), Some(entry)) = (operation.sdk, describe(operation, &document)) else { continue };
        let actions: Vec<Value> =
            sdk.actions.iter().map(|action| describe_action(action, sdk.risk, entry.clone())).collect();
        described.push(entry);
        described.extend(actions);
    }
    let mut used = BTreeSet::new();
    collect_components(&json!(described), &document["components"]["schemas"], &mut used);
    let schemas: Map<String, Value> =
        used.iter().map(|name| (name.clone(), document["components"]["schemas"][name].clone())).collect();
    let events: Vec<Value> =
        EventKind::ALL.iter().map(|kind| webhook_event(*kind, &document["webhooks"][kind.name()])).collect();
    let codes: Map<String, Value> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let entry =
                json!({"code": code.word, "status": code.status, "retry": retry(code), "description": code.when});
            (code.name(), entry)
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "service_version": version::DEFAULT,
        "operations": described,
        "schemas": schemas,
        "webhook_events": events,
        "error_codes": codes,
        "dns_providers": Provider::ALL.iter().map(|provider| dns_provider(*provider)).collect::<Vec<_>>(),
    })
}

/// Whether a client may send the same request again after this error: `always`; `safe`, if it does no harm that the first
/// one may have been carried out; or `never`.
fn retry(code: &ErrorCode) -> &'static str {
    match (code.word, code.status) {
        ("rate_limit_exceeded" | "service_unavailable", _) => "always",
        ("idempotency_in_progress", _) | (_, 408 | 500 | 502 | 503) => "safe",
        _ => "never",
    }
}

fn describe(operation: &Operation, document: &Value) -> Option<Value> {
    let sdk = operation.sdk?;
    let entry = &document["paths"][operation.path][operation.method.as_str().to_lowercase()];
    let parameters = entry["parameters"].as_array()?;
    let of = |location: &str| -> Vec<&Value> { parameters.iter().filter(|one| one["in"] == location).collect() };
    let headers: Vec<&Value> =
        of("header").into_iter().filter(|one| HEADERS_OF_THE_CLIENT.iter().any(|name| one["name"] == *name)).collect();
    let (status, content, media_type) = success_content(entry)?;
    let mut description = json!({
        "id": operation.id,
        "name": sdk.name,
        "command": sdk.command(),
        "http_method": operation.method.as_str(),
        "path": operation.path,
        "tag": operation.tag,
        "summary": operation.summary,
        "description": entry["description"],
        "path_parameters": of("path"),
        "query_parameters": of("query"),
        "headers": headers,
        "body": null,
        "response": {"status": status.parse::<u16>().ok(), "media_type": media_type, "schema": content["schema"]},
        "streams": entry.pointer("/responses/200/content/text~1event-stream").is_some(),
        "scope": entry["x-scope"],
        "domain_scoped": operation.domain_scoped,
        "errors": error_codes(operation),
    });
    if let Some(body) = entry.get("requestBody") {
        let contents = body["content"].as_object()?;
        description["body"] = json!({
            "required": body["required"],
            "media_types": contents.keys().collect::<Vec<_>>(),
            "schema": contents.get("application/json").map(|content| &content["schema"]),
            "example": contents.get("application/json").map(|content| &content["example"]),
        });
    }
    let metadata = entry["x-sdk"].as_object()?.clone();
    description.as_object_mut()?.extend(metadata);
    Some(description)
}

/// The entry of an action: that of its operation with another name, and `fixed` instead of the fields of the body.
fn describe_action(action: &SdkAction, risk: Risk, mut entry: Value) -> Value {
    let method = action.method(risk);
    let fixed = json!({action.field: action.value});
    entry["id"] = json!(action.id);
    entry["name"] = json!(method.name);
    entry["command"] = json!(method.command());
    entry["summary"] = json!(action.summary);
    entry["body"]["schema"] = json!({"type": "object", "properties": {}});
    entry["body"]["example"] = fixed.clone();
    entry["resource"] = json!(method.resource());
    entry["method"] = json!(method.method());
    entry["fixed"] = fixed;
    entry
}

fn error_codes(operation: &Operation) -> Vec<String> {
    let request_spec = (operation.request_spec)(&mut schema::Schemas::default());
    // SDKs use API keys, and only sessions have to prove the user's identity again.
    let codes = super::responses::operation_error_codes(operation, &request_spec);
    codes.iter().filter(|code| **code != ErrorCode::REAUTHENTICATION_REQUIRED).map(ErrorCode::name).collect()
}

fn dns_provider(provider: Provider) -> Value {
    let credentials = provider.credential_fields().iter().map(
        |field| json!({"name": field.name, "label": field.label, "required": field.required, "secret": field.secret}),
    );
    json!({
        "name": provider.as_str(),
        "title": provider.title(),
        "credentials": credentials.collect::<Vec<_>>(),
    })
}

/// `explicit`: an endpoint gets the event only if its `events` name it.
fn webhook_event(kind: EventKind, entry: &Value) -> Value {
    let content = &entry["post"]["requestBody"]["content"]["application/json"];
    json!({
        "type": kind.name(),
        "description": kind.description(),
        "explicit": kind.requires_explicit_subscription(),
        "schema": content["schema"],
        "example": content["example"],
    })
}
