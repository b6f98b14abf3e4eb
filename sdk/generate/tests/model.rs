//! The model of small operations.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use generate::manifest::Manifest;
use generate::model::{Model, ResponseKind};
use generate::operations::Operations;
use generate::output::{Difference, differences, write};
use generate::render::{Files, NOTICE, Renderer};
use generate::schema::TypeRef;
use generate::types::{Location, NamedType, TypeKind};
use generate::words::{Examples, Words};
use serde_json::{Value, json};

fn operation(changes: Value) -> Value {
    let mut operation = json!({
        "id": "send_note", "name": "notes.send", "command": "notes send", "http_method": "POST", "path": "/notes",
        "summary": "Send a note", "path_parameters": [], "query_parameters": [], "headers": [], "body": null,
        "response": {"status": 200, "media_type": "application/json", "schema": {"$ref": "#/components/schemas/Note"}},
        "streams": false, "errors": [], "pages": null, "idempotent": false, "retry": true, "risk": "read",
    });
    for (name, value) in changes.as_object().expect("changes are an object") {
        operation[name] = value.clone();
    }
    operation
}

fn build(operations: &[Value], schemas: &Value) -> Result<Model, String> {
    let document = json!({
        "version": "1.2.3", "service_version": "2026-01-01", "operations": operations, "schemas": schemas,
        "webhook_events": [{"type": "note.sent", "schema": {"type": "object", "properties": {
            "data": {"type": "object", "properties": {"note": {"$ref": "#/components/schemas/Note"}}}}}}],
        "error_codes": {"plan_limit_403": {"code": "plan_limit", "status": 403, "retry": "never", "description": "Full."}},
    });
    let operations: Operations = serde_json::from_value(document).expect("operations are read");
    let words: Words = serde_json::from_value(json!({
        "resources": {"notes": "Notes.", "notes.parts": "Parts."}, "types": {"SendNote.tag": "NoteTag"},
    }))
    .expect("words are read");
    Model::build(&operations, &words, &Examples::new()).map_err(|error| error.to_string())
}

fn note() -> Value {
    json!({"Note": {"type": "object", "required": ["id"], "properties": {
        "id": {"type": "string"},
        "state": {"type": "string", "enum": ["sent", "read"]},
        "reply": {"oneOf": [{"$ref": "#/components/schemas/Note"}, {"type": "null"}]},
        "notes": {"type": "array", "items": {"$ref": "#/components/schemas/Note"}},
    }}})
}

fn send() -> Value {
    operation(json!({
        "query_parameters": [
            {"name": "dry_run", "required": false, "schema": {"type": "boolean"}},
            {"name": "part", "schema": {"type": "array", "items": {"type": "string"}}},
        ],
        "headers": [{"name": "If-Match"}],
        "body": {"required": true, "media_types": ["application/json"], "schema": {
            "type": "object", "required": ["text"], "properties": {
                "text": {"type": "string"},
                "tags": {"type": ["array", "null"], "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "to": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            }}},
    }))
}

fn found<'a>(model: &'a Model, name: &str) -> &'a NamedType {
    model.types.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no type {name}"))
}

#[test]
fn params_have_the_fields_of_body_and_query() {
    let model = build(&[send()], &note()).expect("the model is built");
    let method = &model.resources[0].methods[0];
    assert_eq!(method.params.as_deref(), Some("SendNoteParams"));
    assert!(method.params_required && method.takes_if_match);
    assert_eq!(method.response.kind, ResponseKind::Json);
    let fields: Vec<_> = method.fields.iter().map(|one| (one.wire.as_str(), one.location, one.explode)).collect();
    let (body, query) = (Some(Location::Body), Some(Location::Query));
    assert_eq!(
        fields,
        [
            ("text", body, false),
            ("tags", body, false),
            ("headers", body, false),
            ("to", body, false),
            ("dry_run", query, false),
            ("part", query, true),
        ]
    );
    assert!(method.fields[2].free_map && method.fields[1].nullable);
    assert!(matches!(&method.fields[3].kind, TypeRef::Union { one_or_many: true, .. }));
    let tags = TypeRef::Array { items: Box::new(TypeRef::Ref { name: "NoteTag".to_owned() }) };
    assert_eq!(method.fields[1].kind, tags);
    assert_eq!(model.error_codes[0].class, "PlanLimitError");
}

#[test]
fn a_type_that_contains_itself_is_declared_once() {
    let model = build(&[send()], &note()).expect("the model is built");
    let note = found(&model, "Note");
    assert!(note.in_response && note.in_event && !note.in_request);
    let reply = &note.fields[2];
    assert_eq!((&reply.kind, reply.nullable), (&TypeRef::Ref { name: "Note".to_owned() }, true));
    assert_eq!(found(&model, "NoteState").kind, TypeKind::Enum);
    assert_eq!(model.webhook_events[0].data_type_name, "NoteSentData");
}

#[test]
fn lists_know_the_type_of_their_items() {
    let list =
        operation(json!({"id": "list_parts", "name": "notes.parts.list", "http_method": "GET", "pages": "notes"}));
    let model = build(&[send(), list.clone()], &note()).expect("the model is built");
    let method = &model.resources[0].children[0].methods[0];
    assert_eq!(method.item_type, Some(TypeRef::Ref { name: "Note".to_owned() }));
    let wrong = operation(json!({"id": "list_parts", "name": "notes.parts.list", "pages": "absent"}));
    assert!(build(&[send(), wrong], &note()).expect_err("there is no such array").contains("absent"));
}

#[test]
fn names_that_collide_are_refused() {
    let mut operation = send();
    operation["query_parameters"][0]["name"] = json!("text");
    assert!(build(&[operation], &note()).expect_err("two fields").contains("two params called text"));
    let mut schemas = note();
    schemas["NoteState"] = json!({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Note"}}});
    assert!(build(&[send()], &schemas).expect_err("two types").contains("NoteState"));
}

#[test]
fn templates_are_rendered_once_or_for_each_resource_and_event() {
    let model = build(&[send()], &note()).expect("the model is built");
    let folder = std::env::temp_dir().join(format!("generate-templates-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("created");
    std::fs::write(folder.join("r.jinja"), "{{ resource.full_name }} {{ version }}\n").expect("written");
    std::fs::write(folder.join("e.jinja"), "{{ event.type }}\n").expect("written");
    let manifest = json!({"output": "note", "files": [
        {"template": "r.jinja", "output": "{{ resource.name }}.txt", "comment": "#", "each": "resource"},
        {"template": "e.jinja", "output": "{{ event.type_name }}.php", "comment": "//", "opening": "<?php", "each": "event"},
    ]});
    let manifest: Manifest = serde_json::from_value(manifest).expect("the manifest is read");
    let renderer = Renderer::new(&model, &folder).expect("the templates are read");
    let files = renderer.render_manifest(&manifest).expect("the templates render");
    std::fs::remove_dir_all(&folder).expect("removed");
    let expected = Files::from([
        ("sdk/note/notes.txt".into(), format!("# {NOTICE}\n\nnotes 1.2.3\n")),
        ("sdk/note/NoteSent.php".into(), format!("<?php\n// {NOTICE}\n\nnote.sent\n")),
    ]);
    assert_eq!(files, expected);
}

#[test]
fn files_are_written_compared_and_deleted() {
    let root = std::env::temp_dir().join(format!("generate-{}", std::process::id()));
    let folder = std::path::Path::new("sdk/note");
    let path = folder.join("a.txt");
    let files = Files::from([(path.clone(), format!("# {NOTICE}\na\n"))]);
    let found = differences(&root, &files, Some(folder)).expect("compared");
    assert_eq!(found, [Difference::Missing(path.clone())]);
    write(&root, &files, &found).expect("written");
    std::fs::write(root.join(folder).join("own.txt"), "# mine\n").expect("written");
    assert_eq!(differences(&root, &files, Some(folder)).expect("compared"), []);
    let found = differences(&root, &Files::new(), Some(folder)).expect("compared");
    assert_eq!(found, [Difference::LeftOver(path.clone())]);
    write(&root, &Files::new(), &found).expect("deleted");
    assert!(!root.join(&path).exists() && root.join(folder).join("own.txt").exists());
    std::fs::remove_dir_all(&root).expect("removed");
}

#[test]
fn an_action_has_no_params_and_the_response_of_its_operation() {
    let response = json!({"status": 200, "media_type": "application/json", "schema": {
        "type": "object", "required": ["note"], "properties": {"note": {"$ref": "#/components/schemas/Note"}}}});
    let body = |properties: Value| {
        json!({"required": true, "media_types": ["application/json"], "schema": {
            "type": "object", "properties": properties}})
    };
    let fields = json!({"mode": {"type": "string"}, "tag": {"type": "string", "enum": ["a", "b"]}});
    let send = operation(json!({"response": response, "body": body(fields)}));
    let action = |changes: Value| {
        let mut action = operation(json!({
            "id": "hold_note", "name": "notes.hold", "command": "notes hold", "response": response,
            "body": body(json!({})), "fixed": {"mode": "hold"},
        }));
        for (name, value) in changes.as_object().expect("changes are an object") {
            action[name] = value.clone();
        }
        action
    };
    let model = build(&[send.clone(), action(json!({}))], &note()).unwrap();
    let hold = &model.methods[1];
    assert_eq!((&hold.params, hold.has_body, hold.fixed_params["mode"].as_str()), (&None, true, "hold"));
    assert_eq!(hold.response.type_ref, Some(TypeRef::Ref { name: "SendNoteResponse".to_owned() }));

    let refused = build(&[action(json!({}))], &note()).unwrap_err();
    assert!(refused.contains("hold_note"), "{refused}");
    let doubled = action(json!({"body": body(json!({"mode": {"type": "string"}}))}));
    let refused = build(&[send, doubled], &note()).unwrap_err();
    assert!(refused.contains("mode"), "{refused}");
}
