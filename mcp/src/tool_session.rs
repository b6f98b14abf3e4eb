//! `ToolSession`: carries out operations for one call of a tool, and makes results of their answers.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::arguments::{ArgumentError, operation_call};
use crate::backend::{Backend, NoReply, OperationCall, Reply, UNAUTHORIZED};
use crate::catalog::Catalog;
use crate::foreign_text::Fence;
use crate::operation_table::Operation;
use crate::problem;
use crate::response_schema::fence_response;
use crate::size_limit::{ShortenedValue, bound, bound_text};
use crate::tool::{ToolError, ToolResult};
use crate::toolset::ToolSelection;

pub(crate) fn read_only_refusal(name: &str) -> ToolResult {
    ToolResult::error(format!(
        "{name} makes changes, but this connection is read-only (`read_only`).\nWhat to do: tell the person."
    ))
}

/// Status of a request that is carried out later.
const ACCEPTED: u16 = 202;

/// The parts that the tools share while one call is carried out.
pub(crate) struct ToolSession<'a> {
    pub(crate) catalog: &'static Catalog,
    pub(crate) selection: &'a ToolSelection,
    backend: &'a dyn Backend,
}

/// How a reading went.
pub(crate) enum ReadResult {
    /// The JSON of the response.
    Value(Value),
    /// The API refused, or did not answer: the result of the tool.
    Failed(ToolResult),
}

impl<'a> ToolSession<'a> {
    pub(crate) fn new(catalog: &'static Catalog, selection: &'a ToolSelection, backend: &'a dyn Backend) -> Self {
        Self { catalog, selection, backend }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.backend.now()
    }

    /// Carries out an operation. A page that is too large is read again with half of its entries: what is left out of
    /// a page could not be reached by its cursor.
    pub(crate) async fn run(
        &self,
        operation: &Operation,
        mut arguments: Map<String, Value>,
    ) -> Result<ToolResult, ToolError> {
        // An operation with an idempotency key may only be repeated with the same key.
        let is_repeatable = operation.retry && !operation.idempotent;
        loop {
            let call = match operation_call(operation, self.catalog.table, arguments.clone()) {
                Ok(call) => call,
                Err(ArgumentError(text)) => return Ok(argument_refusal(&text)),
            };
            let reply = match self.perform(call).await? {
                Ok(reply) => reply,
                Err(failure) => return Ok(problem::no_reply(&failure, is_repeatable)),
            };
            if !reply.is_success() {
                return Ok(problem::refusal(&reply, self.catalog.table));
            }
            if let Some(result) = waiting_for_approval(&reply) {
                return Ok(result);
            }
            if !reply.is_json() {
                return Ok(match operation.answers_json() {
                    true => problem::no_reply(&foreign_reply(reply), is_repeatable),
                    false => text_result(&reply),
                });
            }
            let bounded = bound(reply.json(), operation.pages.as_deref());
            let asked = arguments.get("limit").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let fewer = entries(&bounded.value, operation).min(asked) / 2;
            if bounded.fits || !operation.only_reads() || fewer == 0 {
                let bounded = if bounded.fits { bounded } else { bound(bounded.value, None) };
                return Ok(self.json_result(operation, bounded));
            }
            arguments.insert("limit".into(), fewer.into());
        }
    }

    /// Reads an object for a tool of our own.
    pub(crate) async fn read(&self, operation: &str, target: String) -> Result<ReadResult, ToolError> {
        let reply = match self.perform(OperationCall::get(operation, target)).await? {
            Ok(reply) => reply,
            Err(failure) => return Ok(ReadResult::Failed(problem::no_reply(&failure, true))),
        };
        match (reply.is_success(), reply.is_json()) {
            (true, true) => Ok(ReadResult::Value(reply.json())),
            (true, false) => Ok(ReadResult::Failed(problem::no_reply(&foreign_reply(reply), true))),
            (false, _) => Ok(ReadResult::Failed(problem::refusal(&reply, self.catalog.table))),
        }
    }

    async fn perform(&self, call: OperationCall) -> Result<Result<Reply, NoReply>, ToolError> {
        match self.backend.perform(call).await {
            Ok(reply) if reply.status == UNAUTHORIZED => Err(ToolError::Unauthorized),
            other => Ok(other),
        }
    }

    fn json_result(&self, operation: &Operation, bounded: ShortenedValue) -> ToolResult {
        let mut fence = Fence::default();
        let value = match bounded.value {
            // A response without content.
            Value::Null => json!({}),
            value => fence_response(value, operation, self.catalog.table, &mut fence),
        };
        result(bounded.note, &fence, value)
    }
}

/// Entries of a page; 0 if the operation has none.
fn entries(value: &Value, operation: &Operation) -> u64 {
    let field = operation.pages.as_deref().and_then(|field| value.get(field));
    field.and_then(Value::as_array).map_or(0, |entries| entries.len() as u64)
}

/// Structured content, and the same as text for clients that show only text.
pub(crate) fn result(note: Option<String>, fence: &Fence, value: Value) -> ToolResult {
    let lines = note.into_iter().chain(fence.notice()).chain([value.to_string()]);
    ToolResult::text(lines.collect::<Vec<_>>().join("\n")).with_structured(value)
}

pub(crate) fn argument_refusal(text: &str) -> ToolResult {
    ToolResult::error(format!("{text}\nWhat to do: correct the arguments, then call again."))
}

/// A success response that cannot be the API's, for example a sign-in page of a proxy.
fn foreign_reply(reply: Reply) -> NoReply {
    let reason = "the response is not from the API; a proxy may have answered".to_owned();
    NoReply { idempotency_key: reply.idempotency_key, ..NoReply::new(reason) }
}

/// A response that is no JSON: a message, a zone file, a list in CSV.
fn text_result(reply: &Reply) -> ToolResult {
    let (text, note) = bound_text(&String::from_utf8_lossy(&reply.body));
    let mut fence = Fence::default();
    let text = fence.enclose(&text);
    let lines = note.into_iter().chain(fence.notice()).chain([text]);
    ToolResult::text(lines.collect::<Vec<_>>().join("\n"))
}

/// The result of a call that a person must approve first: nothing was done yet.
fn waiting_for_approval(reply: &Reply) -> Option<ToolResult> {
    let body = (reply.status == ACCEPTED && reply.is_json()).then(|| reply.json())?;
    if body["status"] != "approval_required" {
        return None;
    }
    let (url, id) = (body["url"].as_str().unwrap_or_default(), body["approval_id"].as_str().unwrap_or_default());
    let text = format!(
        "Nothing has been done yet: a person must approve it at {url}.\nWhat to do: tell the person, and do not \
         repeat the call. \
         It is carried out once it is approved. To read the outcome, use get_approval with the id {id} (through \
         call_operation, if it is not listed).\n{body}"
    );
    Some(ToolResult::text(text).with_structured(body))
}
