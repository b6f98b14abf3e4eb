//! `mcp`: the account's tools for an assistant that starts this program (Model Context Protocol over standard input and
//! output).

use std::io::IsTerminal as _;
use std::sync::Arc;

use bytes::Bytes;
use clap::Command;
use futures_util::future::BoxFuture;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use mcp::api_tools::ApiTools;
use mcp::backend::{Backend, NoReply, OperationCall, Reply, rights_of_reply};
use mcp::caller_rights::CallerRights;
use mcp::operation_table::OperationTable as McpTable;
use mcp::toolset::{TOOLSETS, ToolSelection};
use serde_json::{Map, Value, json};

use super::workflow::WorkflowRun;
use crate::arguments::{option, switch};
use crate::client::{ApiClient, Call, Credential};
use crate::clock;
use crate::error::{ApiError, CliError};
use crate::operation::OperationTable;

pub(super) fn command() -> Command {
    let sets: Vec<&str> = TOOLSETS.iter().map(|(name, _)| *name).collect();
    super::described("mcp", &["postrider mcp", "postrider mcp --toolsets affiliates,automations --read-only"])
        .about("Serve the account's tools to an AI assistant over standard input and output (MCP)")
        .arg(option("toolsets", "SETS", format!("Tools in addition to the core ones: {}, or all", sets.join(", "))))
        .arg(switch("read-only", "Offer only tools that neither change nor send anything"))
}

pub(super) async fn run(arguments: &[String], table: &OperationTable<'_>) -> Result<(), CliError> {
    let run = WorkflowRun::parse(command(), arguments, table)?;
    let mut selection = ToolSelection { read_only: run.flag("read-only"), ..ToolSelection::default() };
    selection.add(run.text("toolsets").unwrap_or_default()).map_err(CliError::Usage)?;
    let client = run.client()?;
    if std::io::stdin().is_terminal() {
        eprintln!("An AI assistant starts this command and writes to its standard input; press Ctrl-D to end it.");
    }
    let tools = Arc::new(ApiTools::new(selection, ClientBackend { client }));
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    let served = mcp::stdio::serve(input, tokio::io::stdout(), tools).await;
    served.map_err(|error| CliError::Io(format!("standard input or output: {error}")))
}

/// The operations over HTTP, with the key of a profile.
struct ClientBackend {
    client: ApiClient,
}

impl Backend for ClientBackend {
    fn perform(&self, call: OperationCall) -> BoxFuture<'_, Result<Reply, NoReply>> {
        Box::pin(async move {
            let new_key = || call.is_idempotent.then(|| ulid::Ulid::generate().to_string());
            let idempotency_key = call.idempotency_key.or_else(new_key);
            let request = Call {
                method: call.method,
                target: call.target,
                body: call.body.map(|body| body.to_string().into()),
                idempotency_key: idempotency_key.clone(),
                if_match: call.if_match,
                retry: call.retry,
                ..Call::get("")
            };
            match self.client.call(&request).await {
                Ok(answer) => {
                    let media_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                    let media_type = media_type.unwrap_or_default().to_owned();
                    Ok(Reply { status: 200, media_type, body: answer.body, retry_after: None, idempotency_key })
                }
                Err(CliError::Api(error)) => Ok(error_reply(*error, idempotency_key)),
                Err(error) if error.is_unconfirmed() => {
                    Err(NoReply { idempotency_key, ..NoReply::new(error.to_string()) })
                }
                Err(error) => Err(NoReply::not_done(error.to_string())),
            }
        })
    }

    fn now(&self) -> Timestamp {
        clock::now().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn caller_rights(&self) -> BoxFuture<'_, Result<CallerRights, NoReply>> {
        Box::pin(async move {
            let reply = self.perform(OperationCall::get("get_account", "/account")).await?;
            Ok(match (rights_of_reply(&reply), self.client.credential()) {
                (CallerRights::Unknown, _) => CallerRights::Unknown,
                (_, Credential::SignIn(sign_in)) => CallerRights::of_scopes(&sign_in.scope().await, McpTable::get()),
                (rights, Credential::Key(_)) => rights,
            })
        })
    }
}

fn error_reply(error: ApiError, idempotency_key: Option<String>) -> Reply {
    let held = error.approval_id().and_then(|_| error.fields.get("details")).map(Value::to_string);
    let ApiError { status, fields, retry_after, .. } = error;
    // A request that waits for an approval has the answer of the API.
    let body = held.unwrap_or_else(|| json!({"error": Value::Object(Map::from_iter(fields))}).to_string());
    Reply { status, media_type: "application/json".into(), body: Bytes::from(body), retry_after, idempotency_key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_call_has_the_answer_of_the_api() {
        let held = json!({"status": "approval_required", "approval_id": "apr_1", "url": "https://x/", "message": "m"});
        let error = ApiError::approval_required(202, held.to_string().as_bytes()).unwrap();
        let reply = error_reply(error, None);
        assert_eq!((reply.status, serde_json::from_slice::<Value>(&reply.body).unwrap()), (202, held));
    }

    #[test]
    fn errors_of_the_api_keep_their_fields() {
        let fields = Map::from_iter([("code".to_owned(), json!("forbidden")), ("message".to_owned(), json!("No"))]);
        let error =
            ApiError { status: 403, code: "forbidden".into(), message: "No".into(), fields, retry_after: Some(3) };
        let reply = error_reply(error, None);
        assert_eq!((reply.status, reply.retry_after), (403, Some(3)));
        assert_eq!(&reply.body[..], br#"{"error":{"code":"forbidden","message":"No"}}"#);
    }
}
