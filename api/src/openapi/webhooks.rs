//! The `webhooks` section (OpenAPI 3.1): the payload of every event. Schemas are derived from the examples of
//! `POST /emails/test`, so that the document, test events and real events have the same fields.

use model::event::EventKind;
use model::id::EventId;
use serde_json::{Map, Value, json};

use super::webhook_fields;
use crate::emails::test_event::example_payloads::example_for;

pub(super) fn webhooks_section(components: &Value) -> Value {
    let entry = |kind: &EventKind| (kind.name().to_owned(), webhook_entry(*kind, components));
    Value::Object(EventKind::ALL.iter().map(entry).collect())
}

fn webhook_entry(kind: EventKind, components: &Value) -> Value {
    let name = kind.name();
    let data = Value::Object(example_for(kind).data(EventId::from_bytes([0; 16])));
    let mut data_schema = schema_of_example(&data);
    webhook_fields::describe(name, &mut data_schema, components);
    let body = json!({
        "type": "object", "required": ["type", "created_at", "data"],
        "properties": {
            "type": {"type": "string", "const": name, "description": "The type of the event"},
            "created_at": schema::time("When it happened"),
            "data": data_schema,
        },
    });
    let example = json!({"type": name, "created_at": "2026-01-01T10:00:00.812Z", "data": data});
    json!({"post": {
        "operationId": format!("on_{}", name.replace('.', "_")),
        "tags": ["webhooks"],
        "security": [],
        "summary": format!("Sent to endpoints that subscribe to `{name}`"),
        "description": kind.description(),
        "parameters": [
            header("Service-Signature", "`t=…,v1=…`: HMAC-SHA256 by the endpoint's secret over `t.body`"),
            header("webhook-id", "The event's id; the same for every attempt (Standard Webhooks)"),
            header("webhook-timestamp", "Unix time of the signature, in seconds"),
            header("webhook-signature", "`v1,…`: HMAC-SHA256 over `id.timestamp.body`"),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": body, "example": example}}},
        "responses": {"2XX": {"description": "The delivery was accepted; any other status is retried"}},
    }})
}

fn header(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}})
}

/// Schema derived from an example value; null allows any value.
fn schema_of_example(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_i64() || number.is_u64() => json!({"type": "integer"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(entries) => {
            let items = entries.first().map_or_else(|| json!({}), schema_of_example);
            json!({"type": "array", "items": items})
        }
        Value::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), schema_of_example(value))).collect();
            json!({"type": "object", "properties": properties})
        }
    }
}
