//! The answers of an operation: what it gives, and every error that it can answer, with its codes.
//!
//! Which codes those are follows from what the operation is (it needs a key, has a body, names something by
//! its id, pages, may be claimed by an idempotency key); the table adds what is its own.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use super::example;
use crate::call::{Media, Takes};
use crate::operations::{Action, Operation};
use crate::problem::{Code, Problem};

/// Answers that several operations have, by name.
#[derive(Debug, Default)]
pub(super) struct Shared(BTreeMap<String, Value>);

impl Shared {
    pub(super) fn into_value(self) -> Value {
        self.0.into_iter().collect()
    }
}

/// All answers of an operation, by status.
pub(super) fn of(operation: &Operation, takes: &Takes, gives: Value, shared: &mut Shared) -> Value {
    let keyed = !matches!(operation.action, Action::Public(_));
    let mut headers = headers(keyed);
    if is_claimable(takes) {
        headers.insert(
            "idempotent-replayed".to_owned(),
            json!({"$ref": "#/components/headers/idempotent-replayed"}),
        );
    }
    let mut content = json!({operation.gives.media_type: {"schema": gives}});
    let mut answers = Map::new();
    for also in operation.gives.also {
        match (also.status, also.media_type) {
            (200, Some(media_type)) if media_type != operation.gives.media_type => {
                content[media_type] = json!({"schema": {"type": "string", "description": also.about}});
            }
            (204 | 304, None) => {
                answers
                    .insert(also.status.to_string(), json!({"description": also.about, "headers": headers}));
            }
            (300..400, _) => {
                let mut headers = headers.clone();
                headers.insert("location".to_owned(), json!({"$ref": "#/components/headers/location"}));
                let answer = json!({"description": also.about, "headers": headers});
                answers.insert(also.status.to_string(), answer);
            }
            // The same at another status.
            (200..300, Some(_)) => {
                let answer = json!({"description": also.about, "headers": headers, "content": content});
                answers.insert(also.status.to_string(), answer);
            }
            // With the errors, below.
            _ => {}
        }
    }
    let done = operation.gives.status.as_str().to_owned();
    if operation.gives.status.is_redirection() {
        headers.insert("location".to_owned(), json!({"$ref": "#/components/headers/location"}));
    }
    answers.insert(done, json!({"description": "Done", "headers": headers, "content": content}));
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes(operation, takes) {
        by_status.entry(code.status).or_default().push(code);
    }
    for (status, codes) in by_status {
        let names: Vec<String> = codes.iter().map(Code::name).collect();
        // What a page finds wrong itself it says to a person; what is wrong before, to a program.
        let page = operation.gives.also.iter().find(|also| also.status == status);
        let kind = if page.is_some() {
            "page."
        } else if keyed {
            ""
        } else {
            "public."
        };
        let name = format!("{kind}{}", names.join("."));
        let entry = || {
            let mut entry = failure(status, &codes, keyed);
            if let Some(media_type) = page.and_then(|page| page.media_type) {
                entry["content"][media_type] = json!({"schema": {"type": "string"}});
            }
            entry
        };
        shared.0.entry(name.clone()).or_insert_with(entry);
        answers.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    Value::Object(answers)
}

/// The codes that an operation can answer, in the order of the table of codes.
pub(super) fn codes(operation: &Operation, takes: &Takes) -> Vec<Code> {
    let mut codes = vec![Code::VALIDATION_ERROR, Code::HEADERS_TOO_LARGE];
    codes.extend([Code::INTERNAL_ERROR, Code::SERVICE_UNAVAILABLE]);
    if !matches!(operation.action, Action::Public(_)) {
        codes.extend([Code::UNAUTHORIZED, Code::FORBIDDEN, Code::IP_NOT_ALLOWED, Code::RATE_LIMIT_EXCEEDED]);
        if operation.method != Method::GET {
            // Somebody else was quicker.
            codes.push(Code::CONFLICT);
        }
    }
    if operation.path.contains('{') {
        codes.push(Code::NOT_FOUND);
    }
    if has(takes, "query", "cursor") {
        codes.push(Code::INVALID_CURSOR);
    }
    if takes.body.is_some() {
        codes.push(Code::REQUEST_TIMEOUT);
    }
    if takes.body.is_some() && operation.media != Media::Whatever {
        codes.extend([Code::INVALID_JSON, Code::PAYLOAD_TOO_LARGE, Code::UNSUPPORTED_MEDIA_TYPE]);
    }
    if is_claimable(takes) {
        codes.extend([
            Code::INVALID_IDEMPOTENCY_KEY,
            Code::IDEMPOTENCY_CONFLICT,
            Code::IDEMPOTENCY_IN_PROGRESS,
        ]);
    }
    if operation.changes_session() {
        codes.push(Code::FORBIDDEN);
    }
    codes.extend(operation.fails);
    if !operation.stores.is_empty() {
        codes.push(Code::PLAN_FULL);
    }
    Code::ALL.iter().filter(|code| codes.contains(code)).copied().collect()
}

fn has(takes: &Takes, place: &str, name: &str) -> bool {
    takes.parameters.iter().any(|parameter| parameter["in"] == place && parameter["name"] == name)
}

fn is_claimable(takes: &Takes) -> bool {
    has(takes, "header", "Idempotency-Key")
}

fn headers(knows_account: bool) -> Map<String, Value> {
    let account: &[&str] =
        if knows_account { &["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] } else { &[] };
    let names = [&["x-request-id"][..], account].concat();
    names
        .into_iter()
        .map(|name| (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")})))
        .collect()
}

fn failure(status: u16, codes: &[Code], keyed: bool) -> Value {
    // A head that is too large, and a key that is none, are answered before the account is known.
    let mut headers = headers(keyed && ![401, 431].contains(&status));
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
    let told: Vec<String> = codes.iter().map(|code| format!("`{}`: {}", code.word, code.when)).collect();
    json!({
        "description": told.join("\n"),
        "headers": headers,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "examples": examples,
        }},
    })
}

/// The header fields of answers.
pub(super) fn header_components() -> Value {
    let text = |description: &str, example: &str| json!({"description": description, "schema": {"type": "string"}, "example": example});
    let count = |description: &str, example: u32| json!({"description": description, "schema": {"type": "integer", "minimum": 0}, "example": example});
    let mut request_id = text("Finds the request in the log", "req_01K9ZQ4Y8M3T5V7W2X6B0C1D9E");
    request_id["required"] = json!(true);
    json!({
        "x-request-id": request_id,
        "ratelimit-limit": count("Requests a second that the plan includes; twice as many may come at once", 10),
        "ratelimit-remaining": count("How many of them may be made now", 9),
        "ratelimit-reset": count("Seconds until one more may be made", 1),
        "retry-after": count("Seconds after which the same request may be made again", 2),
        "idempotent-replayed": text("`true`: this was done before, and is answered as it was then", "true"),
        "location": text("Where it leads", "https://shop.example/offer"),
        "www-authenticate": text("How to say who you are", "Bearer"),
    })
}

/// An example of an answer for each code.
pub(super) fn example_components(base_url: &str) -> Value {
    let id = mail::id::RequestId::from_bytes([1; 16]);
    let one = |code: &Code| {
        let mut problem = Problem::new(*code, code.when);
        if let Some(details) = details(code) {
            problem = problem.details(details);
        }
        let body: Value = serde_json::from_slice(&problem.body(id, base_url)).unwrap_or_default();
        (code.name(), json!({"summary": code.when, "value": body}))
    };
    Code::ALL.iter().map(one).collect()
}

/// The particulars that come with a code.
fn details(code: &Code) -> Option<Value> {
    match *code {
        Code::VALIDATION_ERROR => Some(json!({"to": "is required", "fields": {"to": "is required"}})),
        Code::UNAUTHORIZED => Some(json!({"reason": "missing"})),
        Code::RECIPIENT_BLOCKED => {
            Some(json!({"suppressed": ["grace@example.net"], "email_id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"}))
        }
        Code::DOMAIN_NOT_VERIFIED => Some(json!({"domain": "example.com"})),
        Code::SANDBOX_RESTRICTED => Some(json!({"allowed": ["ada@example.com"]})),
        Code::PLAN_LIMIT => {
            Some(json!({"limit": "daily", "used": 100, "cap": 100, "resets_at": "2026-11-22T00:00:00.000Z"}))
        }
        Code::RATE_LIMIT_EXCEEDED => Some(json!({"limit": 10})),
        Code::PRODUCTION_ACCESS_REQUIRED => Some(json!({"upgrade_url": "/settings/billing"})),
        Code::MAIL_SERVER_ERROR | Code::SERVICE_UNAVAILABLE => {
            Some(json!({"idempotency_key_released": true}))
        }
        Code::SEND_UNCONFIRMED => {
            Some(json!({"email_id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "idempotency_key_released": false}))
        }
        _ => None,
    }
}

/// Gives every request and every answer of a document that has none an example.
pub(super) fn exemplify(paths: &mut Value, schemas: &Value) {
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
        for place in places {
            let contents = operation.pointer_mut(place).and_then(Value::as_object_mut);
            for (_, content) in contents.into_iter().flatten() {
                let example = example::of(&content["schema"], schemas);
                content["example"] = example;
            }
        }
    }
}
