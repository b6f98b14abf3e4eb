//! Conversations over lines.

use serde_json::json;
use tokio::io::BufReader;

use super::*;
use crate::api_tools::ApiTools;
use crate::fake_backend::FakeBackend;
use crate::toolset::ToolSelection;

/// Sends lines, and returns the answers in the order of their ids; those without an id come first.
async fn converse(lines: &[String]) -> Vec<Value> {
    let backend = FakeBackend::default().with("get_account", 200, &json!({"account": {"id": "acct_1"}}));
    let tools = Arc::new(ApiTools::new(ToolSelection::default(), backend));
    let input = lines.join("\n");
    let (output, mut written) = tokio::io::duplex(16 << 20);
    serve(BufReader::new(input.as_bytes()), output, tools).await.unwrap();
    let mut text = String::new();
    written.read_to_string(&mut text).await.unwrap();
    let mut answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[tokio::test]
async fn both_eras_are_served() {
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let answers = converse(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
            .to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        String::new(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "get_account"}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 4, "method": "server/discover", "params": meta}).to_string(),
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": meta}).to_string(),
        json!({"jsonrpc": "2.0", "id": 6, "method": "server/discover"}).to_string(),
    ])
    .await;
    assert_eq!(answers.len(), 6);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert!(answers[1]["result"]["tools"].as_array().unwrap().len() > 20);
    assert_eq!(answers[1]["result"].get("resultType"), None);
    assert_eq!(answers[2]["result"]["structuredContent"]["account"]["id"], "acct_1");
    assert_eq!(answers[3]["result"]["supportedVersions"][0], "2026-07-28");
    assert_eq!(answers[4]["result"]["resultType"], "complete");
    assert_eq!(answers[5]["error"]["code"], error_code::INVALID_PARAMS);
}

#[tokio::test]
async fn broken_and_long_lines_are_answered_and_the_next_is_read() {
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(MESSAGE_BYTES_MAX * 2));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let answers = converse(&["nonsense".to_owned(), long, "[]".to_owned(), ping]).await;
    let codes: Vec<_> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    let expected =
        [Some(error_code::PARSE_ERROR), Some(error_code::INVALID_REQUEST), Some(error_code::INVALID_REQUEST), None];
    assert_eq!(codes, expected);
    assert_eq!(answers[3]["result"], json!({}));
}
