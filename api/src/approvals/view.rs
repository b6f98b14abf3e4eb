//! Approvals as the API shows them.

use mail::approval::{Approval, ApprovalState, ApprovalStatus};
use mail::client_policy::ApprovalKind;
use mail::id::{ApprovalId, UserId};
use serde::Serialize;
use serde_json::Value;

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{Schemas, ToSchema};
use crate::state::AppState;

/// A page of the list
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ApprovalList {
    /// The entries, newest first
    pub(super) approvals: Vec<ApprovalView>,
    /// Whether there are more
    pub(super) has_more: bool,
    /// The `cursor` of the next page
    pub(super) next_cursor: Option<String>,
}

/// An approval
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ApprovalResponse {
    pub(super) approval: ApprovalView,
}

/// A request of a client that waits for a person's decision, or was decided
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Approval")]
pub(super) struct ApprovalView {
    /// `apr_…`
    id: ApprovalId,
    /// The status; `interrupted` means that it may have been executed
    #[schema(enum = ApprovalStatus::WORDS)]
    status: String,
    /// The kind of operation that the policy holds
    #[schema(enum = ApprovalKind::WORDS)]
    kind: String,
    /// The API key (`key_…`) or grant of an app (`grant_…`) that made the request
    client_id: String,
    /// The operation
    operation: String,
    /// The method
    method: String,
    /// The path with the query
    path: String,
    /// The body as JSON text
    body: String,
    /// SHA-256 of the request; a decision names it
    hash: String,
    /// The page on which a person decides
    url: String,
    /// When the request was made
    created_at: JsonTimestamp,
    /// End of the time for a decision
    expires_at: JsonTimestamp,
    /// The user who decided
    decided_by: Option<UserId>,
    /// When it was decided
    decided_at: Option<JsonTimestamp>,
    /// The status of the response, once the request was executed
    response_status: Option<u16>,
    /// The body of the response
    #[schema(with = response_schema)]
    response: Option<Value>,
}

fn response_schema(_: &mut Schemas) -> Value {
    serde_json::json!({"type": ["object", "null"]})
}

impl ApprovalView {
    pub(super) fn new(state: &AppState, approval: &Approval) -> Self {
        let result = match &approval.state {
            ApprovalState::Executed { result, .. } => Some(result),
            _ => None,
        };
        let (request, decision) = (&approval.request, approval.decision());
        let path = match request.query.as_str() {
            "" => request.path.clone(),
            query => format!("{}?{query}", request.path),
        };
        Self {
            id: approval.id,
            status: approval.status(state.intake.clock().now()).word().to_owned(),
            kind: ApprovalKind::word(approval.kind).to_owned(),
            client_id: approval.client.to_string(),
            operation: request.operation.clone(),
            method: request.method.clone(),
            path,
            body: request.body.clone(),
            hash: request.hash(),
            url: approval_url(state, approval.id),
            created_at: JsonTimestamp(approval.created_at),
            expires_at: JsonTimestamp(approval.expires_at()),
            decided_by: decision.map(|decision| decision.by),
            decided_at: decision.map(|decision| JsonTimestamp(decision.at)),
            response_status: result.map(|result| result.status),
            response: result.and_then(|result| serde_json::from_str(&result.body).ok()),
        }
    }
}

/// The page on which a person decides.
pub(super) fn approval_url(state: &AppState, id: ApprovalId) -> String {
    format!("{}/dashboard/approvals/{id}", state.options.base_url)
}
