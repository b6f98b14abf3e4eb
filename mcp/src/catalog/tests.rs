//! The tools that are offered, and how much of a conversation they take.

use super::*;
use crate::toolset::TOOLSETS;

/// Tokens of a text, too many rather than too few: JSON takes some four bytes a token in the tokenizers of the large
/// models, and 3.5 here.
fn tokens(text: &str) -> usize {
    text.len() * 2 / 7
}

fn listed(selection: &ToolSelection) -> Vec<Value> {
    Catalog::get().selected(selection).map(|tool| tool.entry(selection)).collect()
}

#[test]
fn the_core_takes_at_most_8000_tokens() {
    let tools = listed(&ToolSelection::default());
    let mut sizes: Vec<(usize, &str)> =
        tools.iter().map(|tool| (tool.to_string().len(), tool["name"].as_str().unwrap())).collect();
    sizes.sort_unstable();
    let text = json!({"tools": tools}).to_string();
    assert!(tokens(&text) <= 8_000, "{} tokens, {} bytes: {sizes:?}", tokens(&text), text.len());
}

#[test]
fn the_core_is_complete_and_comes_first() {
    let tools = listed(&ToolSelection::default());
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected: Vec<&str> = CORE.iter().copied().chain(["find_operations", "call_operation"]).collect();
    assert_eq!(names, expected);
}

#[test]
fn every_operation_is_in_a_set_and_listed_with_all() {
    let catalog = Catalog::get();
    let mut all = ToolSelection::default();
    all.add("all").unwrap();
    assert_eq!(listed(&all).len(), catalog.operations().count() + 4);
    for operation in catalog.operations() {
        assert!(toolset_of(&operation.tag).is_some(), "{}: {}", operation.id, operation.tag);
    }
    for (name, _) in TOOLSETS {
        let mut one = ToolSelection::default();
        one.add(name).unwrap();
        assert!(listed(&one).len() > CORE.len() + 2, "{name}");
    }
}

#[test]
fn read_only_lists_nothing_that_changes() {
    let mut selection = ToolSelection { read_only: true, ..ToolSelection::default() };
    selection.add("all").unwrap();
    for tool in listed(&selection) {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{}", tool["name"]);
    }
    assert!(!Catalog::get().find("send_email").unwrap().is_allowed(&selection));
}

/// Walks all fields of a schema, through references.
fn fields(schema: &Value, table: &OperationTable, seen: &mut Vec<String>, found: &mut Vec<String>) {
    if let Some(name) = OperationTable::referred(schema) {
        if seen.iter().any(|one| one == name) {
            return;
        }
        seen.push(name.to_owned());
    }
    let schema = table.resolve(schema);
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.push(name.clone());
        fields(field, table, seen, found);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(word).filter(|inner| inner.is_object()) {
            fields(inner, table, seen, found);
        }
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for inner in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
            fields(inner, table, seen, found);
        }
    }
}

#[test]
fn no_tool_returns_or_takes_a_secret() {
    let catalog = Catalog::get();
    let returns_secret = |operation: &Operation| {
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        if let Some(schema) = &operation.response.schema {
            fields(schema, catalog.table, &mut seen, &mut found);
        }
        found
            .iter()
            .any(|name| SECRET_FIELDS.contains(&name.as_str()) || name.contains("secret") || name.contains("private"))
    };
    let offered: Vec<&str> = catalog.operations().map(|operation| operation.id.as_str()).collect();
    let mut left_out = Vec::new();
    for operation in &catalog.table.operations {
        let is_offered = offered.contains(&operation.id.as_str());
        assert!(!(is_offered && returns_secret(operation)), "{}", operation.id);
        if !is_offered {
            left_out.push(operation.id.as_str());
        }
    }
    assert_eq!(
        left_out,
        [
            "get_email_attachment",
            "create_api_key",
            "rotate_api_key",
            "create_smtp_credential",
            "rotate_smtp_credential",
            "save_dns_credentials",
            "create_webhook",
            "rotate_webhook_secret",
            "get_received_email_attachment",
            "create_affiliate_login_link",
        ]
    );
    let mut all = ToolSelection::default();
    all.add("all").unwrap();
    for tool in listed(&all) {
        let inputs = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(!inputs.keys().any(|name| SECRET_FIELDS.contains(&name.as_str())), "{}", tool["name"]);
    }
}

#[test]
fn hints_follow_the_risk() {
    let hints = |id: &str| Catalog::get().find(id).unwrap().definition.annotations.unwrap();
    assert!(hints("list_emails").read_only && !hints("list_emails").open_world);
    let send = hints("send_email");
    assert!(!send.read_only && !send.idempotent && send.open_world && !send.destructive);
    assert!(hints("delete_suppression").destructive);
    assert!(hints("update_domain").destructive && !hints("create_domain").destructive);
    assert!(hints("mark_affiliate_payout_paid").destructive && hints("mark_affiliate_payout_paid").open_world);
}

#[test]
fn schemas_are_objects_that_models_understand() {
    let mut all = ToolSelection::default();
    all.add("all").unwrap();
    for tool in listed(&all) {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(tool["description"].as_str().unwrap().ends_with('.'), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(tool["inputSchema"]["properties"].is_object(), "{name}");
        assert!(tool.get("outputSchema").is_none_or(|schema| schema["type"] == "object"), "{name}");
        assert!(!tool.to_string().contains("$ref"), "{name}");
    }
    let send = &listed(&ToolSelection::default())[0];
    assert_eq!(
        send["inputSchema"]["properties"]["to"],
        json!({
            "type": "array", "items": {"type": "string"}, "description": "Recipients",
        })
    );
    assert_eq!(send["inputSchema"]["required"], json!(["to"]));
}
