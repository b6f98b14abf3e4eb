//! The OpenAPI 3.1 document, made from the operation table and the types' own descriptions.
//!
//! `x-error-codes` at the root explains every code; `error.doc_url` of an error points there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::auth::cookie;
use crate::call::{Nothing, Reply};
use crate::operations::{Action, Operation};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

const OPENAPI_VERSION: &str = "3.1.0";

/// The document as an answer.
#[derive(Debug)]
pub struct Document(Bytes);

impl Reply for Document {
    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "object", "description": "An OpenAPI 3.1 document"})
    }
    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.0)
    }
}

/// `GET /openapi.json`.
///
/// # Errors
/// None.
pub async fn get(room: Arc<Room>, _: Nothing) -> Result<Document, Problem> {
    Ok(Document(room.document()))
}

/// The document as it is served.
#[must_use]
pub fn text(operations: &[Operation], base_url: &str) -> String {
    serde_json::to_string_pretty(&document(operations, base_url)).unwrap_or_default() + "\n"
}

/// The document.
#[must_use]
pub fn document(operations: &[Operation], base_url: &str) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operations {
        let entry = describe(operation, &mut schemas);
        paths.entry(operation.path).or_default().insert(operation.method.as_str().to_lowercase(), entry);
    }
    error_schema(&mut schemas);
    let codes: Map<String, Value> = Code::ALL
        .iter()
        .map(|code| (code.word.to_owned(), json!({"status": code.status, "description": code.when})))
        .collect();
    json!({
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "postrider",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sends email. Unknown fields are ignored and named in `warnings`; \
                            every answer carries `x-request-id`.",
        },
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {
            "schemas": schemas.into_value(),
            "securitySchemes": {
                "api_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key: `rnl_…` (keys that begin with `stx_` stay valid)",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookie::NAME,
                    "description": "A session; calls other than GET also bring its `x-csrf-token`. What a key \
                                    may call as well is called with `/api` before its path",
                },
            },
            "responses": {"Error": {
                "description": "What went wrong",
                "headers": {"x-request-id": request_id_header()},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }},
        },
        "x-error-codes": codes,
    })
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let takes = (operation.takes)(schemas);
    let gives = (operation.gives.schema)(schemas);
    let mut entry = json!({
        "operationId": operation.id,
        "tags": [operation.noun],
        "summary": operation.summary,
        "responses": {
            "200": {
                "description": "Done",
                "headers": {"x-request-id": request_id_header()},
                "content": {operation.gives.media_type: {"schema": gives}},
            },
            "default": {"$ref": "#/components/responses/Error"},
        },
    });
    if !takes.parameters.is_empty() {
        entry["parameters"] = Value::Array(takes.parameters);
    }
    if let Some(body) = takes.body {
        entry["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": body}}});
    }
    entry["security"] = match operation.action {
        Action::Public(_) => json!([]),
        Action::Keyed(..) => json!([{"api_key": []}]),
        Action::Either(..) => json!([{"api_key": []}, {"session": []}]),
        Action::SignedIn(..) => json!([{"session": []}]),
    };
    if let Action::SignedIn(role, _) = operation.action {
        entry["x-role"] = json!(role);
    }
    if let Some(scope) = operation.scope() {
        entry["x-scope"] = json!(scope);
    }
    entry
}

fn request_id_header() -> Value {
    json!({"description": "Finds the request in the log", "schema": {"type": "string"}})
}

fn error_schema(schemas: &mut Schemas) {
    let words: Vec<&str> = Code::ALL.iter().map(|code| code.word).collect();
    let error = schema::object_with(
        "What went wrong",
        &["message", "code", "request_id", "doc_url"],
        [
            ("message", schema::string("For people")),
            ("code", schema::words(&words, "For programs; more may be added")),
            (
                "details",
                json!({"type": "object", "description": "Particulars; `fields` maps field names to messages"}),
            ),
            ("upgrade_url", schema::string("Where the account is upgraded")),
            ("request_id", schema::string("Finds the request in the log")),
            ("doc_url", schema::string("Where the code is explained")),
        ],
    );
    schemas.named("Error", |_| schema::object("An error", [("error", error)]));
}
