//! The tools of an assistant at `/mcp`: those that its key allows, with messages of up to 4 MB.

use serde_json::{Value, json};

use crate::world::{DOMAIN, TestWorld};

/// Sends a message to `/mcp`. Returns the status and the answer.
async fn post(world: &TestWorld, key: &str, method: &str, params: Value) -> (u16, Value) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    world.call_with_key(key, "POST", "/mcp", &message.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_sees_the_tools_that_its_key_allows() {
    let world = TestWorld::start().await;
    let (status, made) = world.call("POST", "/api-keys", r#"{"name":"assistant","scope":"sending"}"#).await;
    assert_eq!(status, 200, "{made}");
    let names = async |key: &str| {
        let (status, answer) = post(&world, key, "tools/list", json!({})).await;
        assert_eq!(status, 200, "{answer}");
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (of_full, of_sending) = (names(world.api_key.expose()).await, names(made["secret"].as_str().unwrap()).await);
    let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
    for name in ["send_email", "explain_email", "find_operations", "call_operation"] {
        assert!(has(&of_full, name) && has(&of_sending, name), "{name}: {of_sending:?}");
    }
    for name in ["create_suppression", "diagnose_domain", "publish_template"] {
        assert!(has(&of_full, name) && !has(&of_sending, name), "{name}: {of_sending:?}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_of_2_mb_fits_into_a_message() {
    let world = TestWorld::start().await;
    let email = json!({
        "from": format!("robot@{DOMAIN}"), "to": ["ada@dest.example"], "subject": "The report", "text": "See the file.",
        "attachments": [{"filename": "report.bin", "content": "A".repeat(3_000_000)}],
    });
    let call = json!({"name": "send_email", "arguments": email});
    let (status, answer) = post(&world, world.api_key.expose(), "tools/call", call.clone()).await;
    assert_eq!((status, &answer["result"]["isError"]), (200, &Value::Null), "{answer}");
    assert!(answer["result"]["structuredContent"]["id"].as_str().unwrap().starts_with("msg_"), "{answer}");
    let (status, _) = post(&world, "rnl_0000000000000000000000000000000000000000", "tools/call", call).await;
    assert_eq!(status, 401);
    world.end().await;
}
