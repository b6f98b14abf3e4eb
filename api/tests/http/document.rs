//! The OpenAPI document against its golden file. `UPDATE_GOLDEN=1` rewrites the file.

use std::collections::BTreeSet;
use std::path::Path;

use crate::world::World;
use api::operation::OperationHandler;
use api::operations::operation_table;
use http::Request;
use http_body_util::Full;
use httpd::problem::ErrorCode;
use serde_json::{Value, json};

#[test]
fn document_matches_the_golden_file() {
    let text = api::openapi::render(&operation_table(), "https://api.example.test");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openapi.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert!(text == golden, "the document changed: review it, then run again with UPDATE_GOLDEN=1");
}

#[test]
fn sdk_operations_match_the_committed_file() {
    let text = api::openapi::sdk::render_operations(&operation_table());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/operations.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap();
    assert!(text == committed, "the operations changed: review them, then run again with UPDATE_GOLDEN=1");
}

/// One grammar for SDKs, CLI and MCP tools: every operation that accepts a key, and every action of one, has a short,
/// unique name of resources and a verb, and its id, which names the MCP tool, has the same verb or the same noun.
#[test]
fn operations_that_accept_keys_have_one_name_everywhere() {
    let table = operation_table();
    let mut ids = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut commands = BTreeSet::new();
    let mut resources = BTreeSet::new();
    let mut methods = Vec::new();
    for operation in &table {
        assert_eq!(operation.sdk.is_some(), operation.scope().is_some(), "{}", operation.id);
        let Some(sdk) = operation.sdk else { continue };
        methods.push((operation.id, sdk));
        for action in sdk.actions {
            let method = action.method(sdk.risk);
            assert_eq!(method.resource(), sdk.resource(), "{}", action.id);
            methods.push((action.id, method));
        }
    }
    for (id, sdk) in methods {
        let parts: Vec<&str> = sdk.name.split('.').collect();
        let is_word = |part: &&str| {
            part.starts_with(|c: char| c.is_ascii_lowercase()) && part.chars().all(|c| c.is_ascii_alphabetic())
        };
        assert!((2..=3).contains(&parts.len()) && parts.iter().all(is_word), "{}", sdk.name);
        assert!(sdk.name.len() <= 40 && id.len() <= 40, "{}", sdk.name);
        assert!(ids.insert(id), "{id} is there twice");
        assert!(names.insert(sdk.name), "{} is there twice", sdk.name);
        assert!(commands.insert(sdk.command()), "{} is there twice", sdk.command());
        resources.insert(sdk.resource());
        let verb_of_id = id.split('_').next().unwrap();
        let words = sdk.command().replace(['-', ' '], "_");
        let plural_noun = words.split('_').next().unwrap();
        let noun = plural_noun.trim_end_matches('s');
        assert!(sdk.method().starts_with(verb_of_id) || id.contains(noun), "{id} and {} share no word", sdk.name);
    }
    // A name is a resource or a method, never both.
    for name in &names {
        assert!(!resources.contains(name), "{name} is a resource and a method");
    }
}

/// An action fixes a field of its operation to one of the field's values, and takes no other field.
#[test]
fn actions_fix_a_value_of_their_operation() {
    let document = api::openapi::sdk::operations_document(&operation_table());
    let entries = document["operations"].as_array().unwrap();
    let (actions, operations): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.get("fixed").is_some());
    assert!(!actions.is_empty());
    for action in actions {
        let is_same = |one: &&&Value| one["path"] == action["path"] && one["http_method"] == action["http_method"];
        let operation = operations.iter().find(is_same).unwrap();
        let mut body = &operation["body"]["schema"];
        if let Some(reference) = body["$ref"].as_str() {
            body = &document["schemas"][reference.rsplit('/').next().unwrap()];
        }
        for (field, value) in action["fixed"].as_object().unwrap() {
            let values = body["properties"][field]["enum"].as_array().unwrap();
            assert!(values.contains(value), "{}: {field} has no value {value}", action["id"]);
        }
        assert_eq!(action["body"]["schema"]["properties"], json!({}), "{}", action["id"]);
    }
}

#[test]
fn operation_table_has_unique_names() {
    let table = operation_table();
    let ids: BTreeSet<_> = table.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), table.len());
    let routes: BTreeSet<_> = table.iter().map(|operation| (operation.path, operation.method.as_str())).collect();
    assert_eq!(routes.len(), table.len());
    assert!(table.iter().all(|operation| !operation.summary.is_empty()));
}

/// Client generators give up on bodies with alternatives, so each body is one plain object. Every operation declares
/// its security, as validators require.
/// A user calls every operation with a role, or everybody does. The dashboard sends email by operations that take keys.
#[test]
fn operations_that_are_not_public_name_a_role() {
    let document: Value =
        serde_json::from_str(&api::openapi::render(&operation_table(), "https://api.example.test")).unwrap();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    for operation in operations.filter(|operation| operation["operationId"].is_string()) {
        let id = operation["operationId"].as_str().unwrap();
        let table = operation_table();
        let row = table.iter().find(|row| row.id == id).unwrap();
        let is_public = matches!(row.handler, OperationHandler::Public(_));
        assert_eq!(operation["x-role"].is_string(), !is_public, "{id}");
    }
}

#[test]
fn bodies_are_objects_and_security_is_declared() {
    let document = api::openapi::document(&operation_table(), "https://api.example.test");
    let operations = |part: &str| {
        let paths = document[part].as_object().unwrap().values();
        paths.flat_map(|path| path.as_object().unwrap().values()).cloned().collect::<Vec<_>>()
    };
    for operation in operations("paths") {
        let mut body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if let Some(name) = body["$ref"].as_str() {
            body = document.pointer(name.strip_prefix('#').unwrap()).unwrap();
        }
        for keyword in ["oneOf", "anyOf", "allOf"] {
            assert!(body.get(keyword).is_none(), "{} {keyword}", operation["operationId"]);
        }
    }
    assert!(document["tags"].as_array().unwrap().iter().all(|tag| tag["description"].is_string()));
    let all = [operations("paths"), operations("webhooks")].concat();
    assert!(all.iter().all(|operation| operation["security"].is_array()));
}

/// Every path parameter is described, and every description has its parameter.
#[test]
fn path_parameters_are_described() {
    for operation in operation_table() {
        let request_spec = (operation.request_spec)(&mut schema::Schemas::default());
        let described: BTreeSet<String> = request_spec
            .parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let named: BTreeSet<String> = operation
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(str::to_owned)
            .collect();
        assert_eq!(described, named, "{}", operation.path);
    }
}

/// The example requests of the document are accepted.
#[tokio::test]
async fn document_examples_are_accepted() {
    let world = World::start().await;
    let document = api::openapi::document(&operation_table(), crate::world::BASE_URL);
    let mut refused = Vec::new();
    let has_one = |o: &&api::operation::Operation| o.body_bytes_max.is_some() && o.scope().is_some();
    for operation in operation_table().iter().filter(has_one) {
        let method = operation.method.as_str().to_lowercase();
        let example =
            &document["paths"][operation.path][&method]["requestBody"]["content"]["application/json"]["example"];
        let path = operation.path.replace("{id}", "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E");
        let request = Request::builder()
            .method(operation.method.clone())
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", world.key))
            .header("content-type", "application/json");
        let response = world.send(request.body(Full::from(example.to_string())).unwrap()).await;
        if ![200, 201, 202, 404].contains(&response.status.as_u16()) {
            refused.push(format!("{}: {example} {response:?}", operation.id));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    world.end().await;
}

/// Every response has an example, and every error response lists its codes.
#[test]
fn every_response_is_described() {
    let document = api::openapi::document(&operation_table(), crate::world::BASE_URL);
    for operation in operation_table() {
        let entry = &document["paths"][operation.path][operation.method.as_str().to_lowercase()];
        let responses = entry["responses"].as_object().unwrap();
        assert!(
            !responses[operation.response_spec.status.as_str()]["content"][operation.response_spec.media_type]["example"]
                .is_null(),
            "{}",
            operation.id
        );
        let is_known = !matches!(operation.handler, OperationHandler::Public(_));
        let everywhere = ["400", "431", "500", "503"].into_iter();
        for status in everywhere.chain(["401", "403", "429"].into_iter().filter(|_| is_known)) {
            assert!(responses.contains_key(status), "{} {status}", operation.id);
        }
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            let name = response["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            let examples = &document["components"]["responses"][name]["content"]["application/json"]["examples"];
            for word in examples.as_object().unwrap().keys() {
                let example = &document["components"]["examples"][word]["value"]["error"];
                assert!(word.starts_with(example["code"].as_str().unwrap()), "{word}");
                assert!(
                    ErrorCode::ALL.iter().any(|code| word.starts_with(code.word) && code.status.to_string() == *status)
                );
            }
        }
    }
}
