//! Responses of an operation: its success responses and every possible error with its codes.
//!
//! Most error codes follow from properties of the operation (authentication, body, path id, cursor, idempotency key).
//! The operation table adds the others.

use std::collections::BTreeMap;

use httpd::response::JSON_MEDIA_TYPE;
use model::client_policy::{ApprovalKind, ClientPolicy};
use serde_json::Map;

use super::example;
use crate::access::role_table;
use crate::approvals::policy::{self, PolicyDecision};
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;

/// Responses that several operations share, by component name.
#[derive(Debug, Default)]
pub(super) struct SharedResponses(BTreeMap<String, Value>);

impl SharedResponses {
    pub(super) fn into_value(self) -> Value {
        self.0.into_iter().collect()
    }
}

/// All responses of an operation by status.
pub(super) fn operation_responses(
    operation: &Operation,
    request_spec: &RequestSpec,
    response_schema: Value,
    shared: &mut SharedResponses,
) -> Value {
    let keyed = !matches!(operation.handler, OperationHandler::Public(_));
    let mut headers = response_headers(keyed);
    if request_spec.takes_idempotency_key() {
        headers.insert("idempotent-replayed".to_owned(), json!({"$ref": "#/components/headers/idempotent-replayed"}));
    }
    let mut content = json!({operation.response_spec.media_type: {"schema": response_schema}});
    let mut responses = Map::new();
    for extra in operation.response_spec.extra_responses {
        match (extra.status, extra.media_type) {
            (200, Some(media_type)) if media_type != operation.response_spec.media_type => {
                content[media_type] = json!({"schema": {"type": "string", "description": extra.description}});
            }
            (204 | 304, None) => {
                responses
                    .insert(extra.status.to_string(), json!({"description": extra.description, "headers": headers}));
            }
            (300..400, _) => {
                let mut headers = headers.clone();
                headers.insert("location".to_owned(), json!({"$ref": "#/components/headers/location"}));
                let response = json!({"description": extra.description, "headers": headers});
                responses.insert(extra.status.to_string(), response);
            }
            // The same body with another status.
            (200..300, Some(_)) => {
                let response = json!({"description": extra.description, "headers": headers, "content": content});
                responses.insert(extra.status.to_string(), response);
            }
            // Handled with the errors below.
            _ => {}
        }
    }
    if may_wait_for_approval(operation) {
        responses.entry("202").or_insert_with(|| approval_required_response(&headers));
    }
    let done = operation.response_spec.status.as_str().to_owned();
    if operation.response_spec.status.is_redirection() {
        headers.insert("location".to_owned(), json!({"$ref": "#/components/headers/location"}));
    }
    responses.insert(done, json!({"description": "Success", "headers": headers, "content": content}));
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in operation_error_codes(operation, request_spec) {
        by_status.entry(code.status).or_default().push(code);
    }
    for (status, codes) in by_status {
        let names: Vec<String> = codes.iter().map(ErrorCode::name).collect();
        // An endpoint for browsers answers its own errors with a page, and one of OAuth with an object of its own; errors
        // before the handler are those of the API.
        let page = operation.response_spec.extra_responses.iter().find(|extra| extra.status == status);
        let is_oauth = page.is_some_and(|page| page.media_type == Some(JSON_MEDIA_TYPE));
        let kind = if is_oauth {
            "oauth."
        } else if page.is_some() {
            "page."
        } else if keyed {
            ""
        } else {
            "public."
        };
        let name = format!("{kind}{}", names.join("."));
        let entry = || {
            let mut entry = error_response(status, &codes, keyed);
            if is_oauth {
                let schema = &mut entry["content"][JSON_MEDIA_TYPE]["schema"];
                *schema = json!({"anyOf": [oauth_error_schema(), schema]});
            } else if let Some(media_type) = page.and_then(|page| page.media_type) {
                entry["content"][media_type] = json!({"schema": {"type": "string"}});
            }
            entry
        };
        shared.0.entry(name.clone()).or_insert_with(entry);
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    Value::Object(responses)
}

/// All error codes of an operation, in the order of the code table.
pub(super) fn operation_error_codes(operation: &Operation, request_spec: &RequestSpec) -> Vec<ErrorCode> {
    let mut codes = vec![ErrorCode::VALIDATION_ERROR, ErrorCode::HEADERS_TOO_LARGE];
    codes.extend([ErrorCode::INTERNAL_ERROR, ErrorCode::SERVICE_UNAVAILABLE]);
    if !matches!(operation.handler, OperationHandler::Public(_)) {
        codes.extend([
            ErrorCode::UNAUTHORIZED,
            ErrorCode::FORBIDDEN,
            ErrorCode::IP_NOT_ALLOWED,
            ErrorCode::RATE_LIMIT_EXCEEDED,
        ]);
        if operation.method != Method::GET {
            // A concurrent change.
            codes.push(ErrorCode::CONFLICT);
        }
    }
    if operation.scope().is_some() && operation.risk != Risk::Read {
        codes.push(ErrorCode::POLICY_VIOLATION);
    }
    if role_table::needs_recent_authentication(operation) {
        codes.push(ErrorCode::REAUTHENTICATION_REQUIRED);
    }
    if operation.path.contains('{') {
        codes.push(ErrorCode::NOT_FOUND);
    }
    if request_spec.has_parameter("query", "cursor") {
        codes.push(ErrorCode::INVALID_CURSOR);
    }
    if request_spec.body.is_some() {
        codes.push(ErrorCode::REQUEST_TIMEOUT);
    }
    if request_spec.body.is_some() && operation.media != Media::Any {
        codes.extend([ErrorCode::INVALID_JSON, ErrorCode::PAYLOAD_TOO_LARGE, ErrorCode::UNSUPPORTED_MEDIA_TYPE]);
    }
    if request_spec.takes_idempotency_key() {
        codes.extend([
            ErrorCode::INVALID_IDEMPOTENCY_KEY,
            ErrorCode::IDEMPOTENCY_CONFLICT,
            ErrorCode::IDEMPOTENCY_IN_PROGRESS,
        ]);
    }
    if operation.changes_session() {
        codes.push(ErrorCode::FORBIDDEN);
    }
    codes.extend(operation.errors);
    if !operation.storage_cost.is_empty() {
        codes.push(ErrorCode::PLAN_FULL);
    }
    ErrorCode::ALL.iter().filter(|code| codes.contains(code)).copied().collect()
}

/// The error of the OAuth endpoints (RFC 6749 5.2).
fn oauth_error_schema() -> Value {
    schema::object(
        "The client's request is refused (RFC 6749 5.2)",
        [
            ("error", schema::string("The code, like `invalid_grant`")),
            ("error_description", schema::string("A sentence for the client's developer")),
        ],
    )
}

/// Returns whether a client with a policy may be asked to wait for an approval.
fn may_wait_for_approval(operation: &Operation) -> bool {
    let all = ClientPolicy { approve: ApprovalKind::ALL.into(), ..ClientPolicy::default() };
    operation.scope().is_some() && matches!(policy::decide(&all, operation), Ok(PolicyDecision::Hold(_)))
}

fn approval_required_response(headers: &Map<String, Value>) -> Value {
    json!({
        "description": "The policy of the client asks for an approval: the request is carried out once a person approves it",
        "x-waits-for-approval": true,
        "headers": headers,
        "content": {JSON_MEDIA_TYPE: {"schema": approval_required_schema()}},
    })
}

fn approval_required_schema() -> Value {
    schema::object(
        "The request waits for approval",
        [
            ("status", schema::string_enum(&["approval_required"], "Always `approval_required`")),
            ("message", schema::string("A sentence for people")),
            ("approval_id", schema::string("The approval's id (`apr_…`)")),
            ("url", schema::string("The page on which a person decides")),
            ("expires_at", schema::time("End of the time for a decision")),
        ],
    )
}

fn response_headers(knows_account: bool) -> Map<String, Value> {
    let account: &[&str] =
        if knows_account { &["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] } else { &[] };
    let names = [&["x-request-id"][..], account].concat();
    names.into_iter().map(|name| (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}))).collect()
}

fn error_response(status: u16, codes: &[ErrorCode], keyed: bool) -> Value {
    // Oversized headers and invalid keys are rejected before the account is known.
    let mut headers = response_headers(keyed && ![401, 431].contains(&status));
    let further = match status {
        401 => Some("www-authenticate"),
        409 | 429 | 503 => Some("retry-after"),
        _ => None,
    };
    if let Some(name) = further {
        headers.insert(name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    }
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| (code.name(), json!({"$ref": format!("#/components/examples/{}", code.name())})))
        .collect();
    let descriptions: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.word, code.when)).collect();
    json!({
        "description": descriptions.join("\n"),
        "headers": headers,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "examples": examples,
        }},
    })
}

pub(super) fn header_components() -> Value {
    let text = |description: &str, example: &str| json!({"description": description, "schema": {"type": "string"}, "example": example});
    let count = |description: &str, example: u32| json!({"description": description, "schema": {"type": "integer", "minimum": 0}, "example": example});
    let mut request_id = text("The request's id in the request log", "req_01K9ZQ4Y8M3T5V7W2X6B0C1D9E");
    request_id["required"] = json!(true);
    json!({
        "x-request-id": request_id,
        "ratelimit-limit": count("Requests per second that the plan includes; bursts may have twice as many", 10),
        "ratelimit-remaining": count("Requests that can be made now", 9),
        "ratelimit-reset": count("Seconds until another request can be made", 1),
        "retry-after": count("Seconds after which the request can be retried", 2),
        "idempotent-replayed": text("`true`: the response of an earlier request with this key is replayed", "true"),
        "location": text("The redirect destination", "https://shop.example/offer"),
        "www-authenticate": text("How to authenticate", "Bearer"),
    })
}

/// One example response per error code.
pub(super) fn example_components(base_url: &str) -> Value {
    let id = model::id::RequestId::from_bytes([1; 16]);
    let describe_code = |code: &ErrorCode| {
        let mut problem = Problem::new(*code, code.when);
        if let Some(details) = details_example(code) {
            problem = problem.with_details(details);
        }
        let body: Value = serde_json::from_slice(&problem.body(id, base_url)).unwrap_or_default();
        (code.name(), json!({"summary": code.when, "value": body}))
    };
    ErrorCode::ALL.iter().map(describe_code).collect()
}

/// Example `details` of an error code.
fn details_example(code: &ErrorCode) -> Option<Value> {
    match *code {
        ErrorCode::VALIDATION_ERROR => Some(json!({"to": "is required", "fields": {"to": "is required"}})),
        ErrorCode::UNAUTHORIZED => Some(json!({"reason": "missing"})),
        ErrorCode::RECIPIENT_BLOCKED => {
            Some(json!({"suppressed": ["grace@example.net"], "email_id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"}))
        }
        ErrorCode::DOMAIN_NOT_VERIFIED => Some(json!({"domain": "example.com"})),
        ErrorCode::SANDBOX_RESTRICTED => Some(json!({"allowed": ["ada@example.com"]})),
        ErrorCode::PLAN_LIMIT => {
            Some(json!({"limit": "daily", "used": 100, "cap": 100, "resets_at": "2026-11-22T00:00:00.000Z"}))
        }
        ErrorCode::RATE_LIMIT_EXCEEDED => Some(json!({"limit": 10})),
        ErrorCode::PRODUCTION_ACCESS_REQUIRED => Some(json!({"upgrade_url": "/settings/billing"})),
        ErrorCode::MAIL_SERVER_ERROR | ErrorCode::SERVICE_UNAVAILABLE => {
            Some(json!({"idempotency_key_released": true}))
        }
        ErrorCode::SEND_UNCONFIRMED => {
            Some(json!({"email_id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "idempotency_key_released": false}))
        }
        _ => None,
    }
}

/// Adds an example to every request and response body of the document.
pub(super) fn add_examples(paths: &mut Value, schemas: &Value) {
    let operations = paths.as_object_mut().into_iter().flatten().filter_map(|(_, path)| path.as_object_mut());
    for (_, operation) in operations.flatten() {
        let places = [
            "/requestBody/content",
            "/responses/200/content",
            "/responses/201/content",
            "/responses/202/content",
            "/responses/204/content",
            "/responses/302/content",
        ];
        for pointer in places {
            let contents = operation.pointer_mut(pointer).and_then(Value::as_object_mut);
            for (_, content) in contents.into_iter().flatten() {
                let example = example::example_of(&content["schema"], schemas);
                content["example"] = example;
            }
        }
    }
}
