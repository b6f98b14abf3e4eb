//! Requests over HTTP in both eras, and hostile ones.

use http::Request;
use serde_json::json;

use super::*;
use crate::api_tools::ApiTools;
use crate::fake_backend::FakeBackend;
use crate::toolset::ToolSelection;

const META: &str = "io.modelcontextprotocol";

fn options() -> HttpOptions {
    HttpOptions {
        base_url: "https://mail.example.com".into(),
        resource_metadata: Some("https://mail.example.com/.well-known/oauth-protected-resource/mcp".into()),
    }
}

/// A request with the headers that every client sends, and others; an empty value removes a header.
fn head(headers: &[(&str, &str)]) -> Parts {
    let usual = [
        ("host", "mail.example.com"),
        ("authorization", "Bearer key"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    let mut request = Request::builder().method("POST").uri("/mcp").body(()).unwrap();
    for (name, value) in usual.iter().chain(headers) {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        match *value {
            "" => drop(request.headers_mut().remove(name)),
            value => drop(request.headers_mut().insert(name, value.parse().unwrap())),
        }
    }
    request.into_parts().0
}

async fn post(headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let backend = FakeBackend::default().with("get_account", 200, &json!({"account": {"id": "acct_1"}}));
    let tools = ApiTools::new(ToolSelection::default(), backend);
    let (head, options) = (head(headers), options());
    let response = match accept_head(&head, &options) {
        Ok(accepted) => accepted.answer(body.as_bytes(), &tools).await,
        Err(refusal) => *refusal,
    };
    let value = serde_json::from_slice(response.body()).unwrap_or_default();
    (response.status().as_u16(), value)
}

fn message(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Parameters of a request since 2026-07-28.
fn stateless(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28", format!("{META}/clientCapabilities"): {},
        format!("{META}/clientInfo"): {"name": "test", "version": "1"},
    });
    params
}

const NEW: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[tokio::test]
async fn clients_before_2026_initialize() {
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let (status, answer) = post(&[], &message("initialize", params)).await;
    assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    assert_eq!(answer["result"]["serverInfo"]["name"], "postrider");
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(post(&[("mcp-protocol-version", "2025-06-18")], initialized).await.0, 202);
    let (status, answer) = post(&[("mcp-protocol-version", "2025-06-18")], &message("tools/list", json!({}))).await;
    assert_eq!((status, answer["result"].get("resultType")), (200, None));
    let call = message("tools/call", json!({"name": "get_account", "arguments": {}}));
    assert_eq!(post(&[], &call).await.1["result"]["structuredContent"]["account"]["id"], "acct_1");
    assert_eq!(post(&[], &message("ping", json!({}))).await.1["result"], json!({}));
    let (status, answer) = post(&[], &message("resources/list", json!({}))).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(error_code::METHOD_NOT_FOUND)));
}

#[tokio::test]
async fn requests_since_2026_stand_alone() {
    let (status, answer) =
        post(&[NEW, ("mcp-method", "server/discover")], &message("server/discover", stateless(json!({})))).await;
    assert_eq!((status, &answer["result"]["resultType"]), (200, &json!("complete")));
    assert_eq!(answer["result"]["_meta"][format!("{META}/serverInfo")]["name"], "postrider");
    let (_, list) = post(&[NEW, ("mcp-method", "tools/list")], &message("tools/list", stateless(json!({})))).await;
    assert_eq!((&list["result"]["cacheScope"], &list["result"]["ttlMs"]), (&json!("private"), &json!(300_000)));
    let call = message("tools/call", stateless(json!({"name": "get_account", "arguments": {}})));
    let named = [NEW, ("mcp-method", "tools/call"), ("mcp-name", "get_account")];
    assert_eq!(post(&named, &call).await.1["result"]["structuredContent"]["account"]["id"], "acct_1");
    let encoded = [NEW, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?Z2V0X2FjY291bnQ=?=")];
    assert_eq!(post(&encoded, &call).await.0, 200);
    for removed in ["ping", "initialize", "logging/setLevel"] {
        let params = stateless(json!({"protocolVersion": "2026-07-28"}));
        let (status, answer) = post(&[NEW, ("mcp-method", removed)], &message(removed, params)).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(error_code::METHOD_NOT_FOUND)), "{removed}");
    }
}

#[tokio::test]
async fn contradictions_between_head_and_body_are_refused() {
    let list = message("tools/list", stateless(json!({})));
    let call = message("tools/call", stateless(json!({"name": "get_account"})));
    let missing = message("tools/list", json!({"_meta": {format!("{META}/protocolVersion"): "2026-07-28"}}));
    let later = message(
        "tools/list",
        json!({"_meta": {
            format!("{META}/protocolVersion"): "2099-01-01", format!("{META}/clientCapabilities"): {},
        }}),
    );
    let mismatch = error_code::HEADER_MISMATCH;
    for (headers, body, code) in [
        (&[("mcp-method", "tools/list")][..], &list, mismatch),
        (&[NEW], &list, mismatch),
        (&[NEW, ("mcp-method", "tools/call")], &list, mismatch),
        (&[("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list")], &list, mismatch),
        (&[NEW, ("mcp-method", "tools/call")], &call, mismatch),
        (&[NEW, ("mcp-method", "tools/call"), ("mcp-name", "send_email")], &call, mismatch),
        (&[NEW, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?!?=")], &call, mismatch),
        (&[NEW, ("mcp-method", "tools/list")], &missing, error_code::INVALID_PARAMS),
        (&[NEW, ("mcp-method", "tools/list")], &message("tools/list", json!({})), error_code::INVALID_PARAMS),
        (
            &[("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")],
            &later,
            error_code::UNSUPPORTED_PROTOCOL_VERSION,
        ),
    ] {
        let (status, answer) = post(headers, body).await;
        assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(code)), "{headers:?} {body}");
    }
}

#[tokio::test]
async fn a_header_that_occurs_twice_is_refused() {
    let mut head = head(&[NEW]);
    head.headers.append("mcp-method", "tools/list".parse().unwrap());
    head.headers.append("mcp-method", "tools/call".parse().unwrap());
    let (options, tools) = (options(), ApiTools::new(ToolSelection::default(), FakeBackend::default()));
    let accepted = accept_head(&head, &options).unwrap();
    let response = accepted.answer(message("tools/list", stateless(json!({}))).as_bytes(), &tools).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn other_sites_are_refused() {
    let ping = message("ping", json!({}));
    for (headers, status) in [
        (&[("host", "mail.example.com:8443")][..], 200),
        (&[("host", "localhost:3350")], 200),
        (&[("host", "127.0.0.1")], 200),
        (&[("host", "[::1]:3350")], 200),
        (&[("host", "evil.example")], 403),
        (&[("host", "127.0.0.1.evil.example")], 403),
        (&[("host", "")], 403),
        (&[("origin", "https://mail.example.com")], 200),
        (&[("origin", "http://localhost:6274")], 200),
        (&[("origin", "https://evil.example")], 403),
        (&[("origin", "https://mail.example.com.evil.example")], 403),
        (&[("origin", "null")], 403),
        (&[("authorization", "")], 401),
        (&[("accept", "text/html")], 406),
        (&[("accept", "*/*")], 200),
        (&[("accept", "")], 200),
        (&[("content-type", "text/plain")], 415),
        (&[("content-type", "application/json; charset=utf-8")], 200),
    ] {
        assert_eq!(post(headers, &ping).await.0, status, "{headers:?}");
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused() {
    let deep = message("ping", json!({}))
        .replace("{}", &format!("{}{}", "{\"a\":".repeat(5_000), "1".to_owned() + &"}".repeat(5_000)));
    let large = message("ping", json!({"x": "y".repeat(MESSAGE_BYTES_MAX)}));
    let ping = message("ping", json!({}));
    for (body, status) in [
        ("", 400),
        ("{", 400),
        (deep.as_str(), 400),
        (large.as_str(), 413),
        (&format!("[{ping},{ping}]"), 400),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400),
        ("\u{0}", 400),
    ] {
        assert_eq!(post(&[], body).await.0, status, "{:.80}", body);
    }
    let (status, answer) = post(&[], &message("tools/call", json!({"name": "no such tool"}))).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(error_code::INVALID_PARAMS)));
    for params in [json!({}), json!({"name": 7}), json!({"name": "get_account", "arguments": []})] {
        assert_eq!(post(&[], &message("tools/call", params)).await.1["error"]["code"], error_code::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn refusals_say_how_to_authenticate() {
    let options = options();
    let missing = accept_head(&head(&[("authorization", "")]), &options).unwrap_err();
    let challenge = "Bearer resource_metadata=\"https://mail.example.com/.well-known/oauth-protected-resource/mcp\"";
    assert_eq!((missing.status().as_u16(), &missing.headers()[WWW_AUTHENTICATE]), (401, &challenge.parse().unwrap()));
    let refused = FakeBackend::default().with("get_account", 401, &json!({}));
    let tools = ApiTools::new(ToolSelection::default(), refused);
    let head = head(&[]);
    let accepted = accept_head(&head, &options).unwrap();
    let response = accepted.answer(message("tools/list", json!({})).as_bytes(), &tools).await;
    assert_eq!(response.status(), 401);
    assert!(response.headers()[WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer error=\"invalid_token\", "));
    let mut get = head.clone();
    get.method = Method::GET;
    let refused = accept_head(&get, &options).unwrap_err();
    assert_eq!((refused.status().as_u16(), &refused.headers()[ALLOW]), (405, &"POST".parse().unwrap()));
    assert_eq!(unauthorized(&HttpOptions::default(), false).headers()[WWW_AUTHENTICATE], "Bearer");
}
