//! A server with the fixture tools that the MCP conformance suite expects, over the protocol of this crate:
//! `cargo run -p mcp --example conformance -- 127.0.0.1:3351`.
//!
//! It needs no key: the suite sends none. `tests/peers/mcp.py` runs the suite against it.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mcp::streamable_http::{HttpOptions, MESSAGE_BYTES_MAX, accept_head};
use mcp::tool::{InputRequired, ToolCall, ToolError, ToolOutcome, ToolResult, ToolSet};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// One black pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

struct Fixtures;

const TOOLS: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_missing_capability",
    "test_logging_tool",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

impl ToolSet for Fixtures {
    fn instructions(&self) -> &str {
        "Fixtures of the conformance suite"
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Value>, ToolError>> {
        let tool = |name: &&str| {
            let schema = json!({"type": "object", "properties": {}});
            json!({"name": name, "description": "A fixture.", "inputSchema": schema})
        };
        Box::pin(std::future::ready(Ok(TOOLS.iter().map(tool).collect())))
    }

    fn check_access(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        Box::pin(std::future::ready(outcome(&call)))
    }
}

fn outcome(call: &ToolCall) -> Result<ToolOutcome, ToolError> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let resource = |uri: &str, content: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": content}});
    let done = |content: Vec<Value>| Ok(ToolOutcome::Complete(ToolResult { content, ..ToolResult::default() }));
    match call.name.as_str() {
        "test_simple_text" => done(vec![text("This is a simple text response for testing.")]),
        "test_image_content" => done(vec![image]),
        "test_audio_content" => done(vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})]),
        "test_embedded_resource" => {
            done(vec![resource("test://embedded-resource", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => {
            let last = resource("test://mixed-content-resource", "{\"test\":\"data\",\"value\":123}");
            done(vec![text("Multiple content types test:"), image, last])
        }
        "test_error_handling" => {
            Ok(ToolOutcome::Complete(ToolResult::error("This tool intentionally returns an error for testing")))
        }
        "test_missing_capability" if !call.client_capabilities.contains_key("sampling") => {
            Err(ToolError::MissingCapability("sampling"))
        }
        "test_missing_capability" => done(vec![text("The client can sample.")]),
        // The server sends nothing but the answer.
        "test_logging_tool" | "test_streaming_elicitation" => done(vec![text("Nothing was sent before.")]),
        name => match name.strip_prefix("test_input_required_result_") {
            Some(fixture) => ask(fixture, call),
            None => Err(ToolError::UnknownTool),
        },
    }
}

fn elicitation(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampling(question: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": question}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Asks for input, round by round.
fn ask(fixture: &str, call: &ToolCall) -> Result<ToolOutcome, ToolError> {
    let answers = &call.input_responses;
    let state = call.request_state.as_deref();
    let request = |requests: &[(&str, Value)], state: Option<&str>| {
        let can = |one: &Value| match one["method"].as_str() {
            Some("elicitation/create") => call.client_capabilities.contains_key("elicitation"),
            Some("sampling/createMessage") => call.client_capabilities.contains_key("sampling"),
            _ => call.client_capabilities.contains_key("roots"),
        };
        // A client is asked only for what it can do.
        let requests = requests.iter().filter(|(_, one)| fixture != "capabilities" || can(one));
        let requests = Map::from_iter(requests.map(|(name, one)| ((*name).to_owned(), one.clone())));
        Ok(ToolOutcome::InputRequired(InputRequired { requests, request_state: state.map(str::to_owned) }))
    };
    let done = |text: String| Ok(ToolOutcome::Complete(ToolResult::text(text)));
    let has = |names: &[&str]| names.iter().all(|name| answers.get(*name).is_some_and(Value::is_object));
    let name = || elicitation("What is your name?", "name", "string");
    match fixture {
        "elicitation" => match answers.get("user_name").and_then(|answer| answer["content"]["name"].as_str()) {
            Some(given) => done(format!("Hello, {given}!")),
            None => request(&[("user_name", name())], None),
        },
        "sampling" if has(&["capital_question"]) => done(answers["capital_question"]["content"].to_string()),
        "sampling" => request(&[("capital_question", sampling("What is the capital of France?"))], None),
        "list_roots" if has(&["client_roots"]) => done(answers["client_roots"].to_string()),
        "list_roots" => request(&[("client_roots", roots())], None),
        "request_state" | "tampered_state" => match state {
            Some("state-1") if has(&["confirm"]) => done("state-ok".to_owned()),
            None | Some("state-1") => {
                request(&[("confirm", elicitation("Please confirm", "ok", "boolean"))], Some("state-1"))
            }
            Some(_) => Err(ToolError::InvalidParams("`requestState` is not what this server sent".into())),
        },
        "multiple_inputs" if has(&["user_name", "greeting", "client_roots"]) => done("All inputs came.".to_owned()),
        "multiple_inputs" | "capabilities" => request(
            &[("user_name", name()), ("greeting", sampling("Generate a greeting")), ("client_roots", roots())],
            Some("state-1"),
        ),
        "multi_round" => match state {
            None => request(&[("step1", elicitation("Step 1: What is your name?", "name", "string"))], Some("round-1")),
            Some("round-1") if has(&["step1"]) => {
                let color = elicitation("Step 2: What is your favorite color?", "color", "string");
                request(&[("step2", color)], Some("round-2"))
            }
            Some("round-2") if has(&["step2"]) => done("Both steps are done.".to_owned()),
            Some(_) => Err(ToolError::InvalidParams("`requestState` is not what this server sent".into())),
        },
        _ => Err(ToolError::UnknownTool),
    }
}

async fn respond(request: Request<Incoming>, options: Arc<HttpOptions>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (mut head, body) = request.into_parts();
    head.headers.entry(AUTHORIZATION).or_insert(HeaderValue::from_static("Bearer none"));
    let response = match accept_head(&head, &options) {
        Err(refusal) => *refusal,
        Ok(accepted) => match Limited::new(body, MESSAGE_BYTES_MAX + 1).collect().await {
            Ok(body) => accepted.answer(&body.to_bytes(), &Fixtures).await,
            Err(_) => mcp::streamable_http::refused(http::StatusCode::PAYLOAD_TOO_LARGE, "The message is too large"),
        },
    };
    Ok(response.map(Full::new))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let local = listener.local_addr()?;
    println!("http://{local}/mcp");
    let options = Arc::new(HttpOptions { base_url: format!("http://{local}"), resource_metadata: None });
    loop {
        let (stream, _) = listener.accept().await?;
        let options = Arc::clone(&options);
        tokio::spawn(async move {
            let service = service_fn(move |request| respond(request, Arc::clone(&options)));
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
