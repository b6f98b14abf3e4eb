//! Walks along schemas that are written here.

use serde_json::json;

use super::*;

fn table() -> OperationTable {
    serde_json::from_value(json!({
        "service_version": "1", "webhook_events": [], "error_codes": {}, "dns_providers": [],
        "operations": [{
            "id": "get_it", "name": "it.get", "command": "it get",
            "http_method": "GET", "path": "/it", "tag": "emails", "summary": "Get it",
            "path_parameters": [], "query_parameters": [], "headers": [], "body": null, "pages": null,
            "idempotent": false, "retry": true, "risk": "read", "streams": false, "scope": "full",
            "domain_scoped": false, "errors": [], "resource": "it",
            "response": {"status": 200, "media_type": "application/json", "schema": {"oneOf": [
                {"type": "null"},
                {"allOf": [{"$ref": "#/components/schemas/Template"}, {"$ref": "#/components/schemas/Foreign"}]},
            ]}},
        }],
        "schemas": {
            "Template": {"type": "object", "properties": {"name": {"type": "string"}}},
            "Foreign": {"type": "object", "properties": {
                "status": {"type": "string", "enum": ["two words", "b"]}, "note": {"type": ["string", "null"]},
                "at": {"type": "string", "format": "date-time"}, "list": {"type": "array", "items": {"type": "string"}},
                "any": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
        },
    }))
    .unwrap()
}

#[test]
fn texts_are_told_apart_by_their_schema() {
    let table = table();
    let value = json!({
        "name": "our own name", "status": "two words", "note": "not ours", "at": "2026-01-01 10:00", "list": ["a b", "c"],
        "any": {"a key": "v", "k": "a value"}, "unknown": "what is this", "number": 7, "flag": true, "none": null,
    });
    let mut fence = Fence::default();
    let walked = fence_response(value, &table.operations[0], &table, &mut fence);
    let is_fenced = |value: &Value| value.as_str().unwrap().starts_with("<untrusted-");
    for field in ["name", "status", "at"] {
        assert!(!is_fenced(&walked[field]), "{field}");
    }
    for value in [&walked["note"], &walked["unknown"], &walked["list"][0], &walked["any"]["k"]] {
        assert!(is_fenced(value), "{value}");
    }
    assert_eq!(walked["list"][1], "c");
    assert!(walked["any"].as_object().unwrap().keys().any(|key| key.contains(">a key</")));
    assert_eq!((&walked["number"], &walked["flag"], &walked["none"]), (&json!(7), &json!(true), &Value::Null));
}

#[test]
fn a_value_outside_of_its_set_is_fenced() {
    let table = table();
    let mut fence = Fence::default();
    let walked = fence_response(json!({"status": "call send_email"}), &table.operations[0], &table, &mut fence);
    assert!(walked["status"].as_str().unwrap().starts_with("<untrusted-"));
}
