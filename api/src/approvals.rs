//! Approvals: requests that the policy of a client holds until a person decides them.
//!
//! ```text
//! request ─► policy::decide ─► permit  ─► handler
//!                          └─► hold    ─► 202, and mail to the owner ─► a person approves ─► approval_executor.rs
//! ```
//!
//! A client sees its own approvals; a person, and a client without a policy, all of the account's. A person may approve
//! what their own role permits.

pub(crate) mod content;
mod hold;
pub(crate) mod policy;
mod view;

use httpd::paging::{KIND_APPROVAL, after_id};
use model::approval::{Approval, ApprovalState, ApprovalStatus, Decision};
use model::credential::CredentialId;
use tokio::time::Instant;

pub(crate) use self::hold::hold;
use self::view::{ApprovalList, ApprovalResponse, ApprovalView};
use crate::access::{self, role_table};
use crate::approval_change;
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Maximum number of approvals scanned for a page.
const SCANNED_ROWS_MAX: usize = 60;
/// Longest wait of the response to an approval for the end of the execution.
const EXECUTION_WAIT_MAX: Duration = Duration::from_secs(20);
/// Length of a hash in hexadecimal.
const HASH_CHARS: usize = 64;

/// The operations, for the operation table.
pub(crate) fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("approvals");
    vec![
        tag.get("/approvals", "List requests that wait for approval and decided ones, newest first")
            .domain_scoped()
            .sending_key_or_session(("list_approvals", "approvals.list"), list),
        tag.get("/approvals/{id}", "Get an approval, with the response once the request was executed")
            .domain_scoped()
            .sending_key_or_session(("get_approval", "approvals.get"), get),
        tag.post("/approvals/{id}/approve", "Approve a request and execute it")
            .errors(&[ErrorCode::GONE, ErrorCode::REAUTHENTICATION_REQUIRED])
            .account_session("approve_request", approve),
        tag.post("/approvals/{id}/reject", "Reject a request")
            .errors(&[ErrorCode::GONE, ErrorCode::REAUTHENTICATION_REQUIRED])
            .account_session("reject_request", reject),
    ]
}

/// Query of the list.
#[derive(Debug)]
struct ListApprovals {
    page: PageParameters,
    status: Option<ApprovalStatus>,
}

impl RequestQuery for ListApprovals {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self { page: query.page()?, status: query.word("status", "Filter by status")? })
    }
}

id_path! { ApprovalPath(ApprovalId), "The approval's id (`apr_…`)", "approval" }

fn not_found() -> Problem {
    Problem::not_found("approval")
}

/// The decision
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
struct DecideApproval {
    /// The `hash` of the request as it was shown
    #[field(parse = parse_hash, schema = hash_schema)]
    hash: String,
}

fn parse_hash(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    let is_hash = text.len() == HASH_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(text.to_ascii_lowercase()) } else { Err("must be the `hash` of the approval".to_owned()) }
}

fn hash_schema(_: &mut Schemas) -> serde_json::Value {
    let example = "0123456789abcdef".repeat(HASH_CHARS / 16);
    serde_json::json!({"type": "string", "minLength": HASH_CHARS, "maxLength": HASH_CHARS, "examples": [example]})
}

/// The client to whose own approvals the caller is restricted.
fn restricted_to(tenant: &Tenant) -> Option<CredentialId> {
    let is_restricted = !tenant.policy().is_empty() || tenant.confined_to().is_some() || tenant.bound_to().is_some();
    tenant.actor().credential().filter(|_| is_restricted)
}

/// `GET /approvals`.
async fn list(state: State, tenant: Tenant, query: ListApprovals) -> Result<ApprovalList> {
    let (store, account, now) = (&state.services.store, tenant.account().id, state.services.clock.now());
    let before = query.page.before_id(KIND_APPROVAL)?.map(ApprovalId::from_bytes);
    let rows = store::approval::list(store, account, before, SCANNED_ROWS_MAX).await?;
    let all_scanned = rows.len() < SCANNED_ROWS_MAX;
    let client = restricted_to(&tenant);
    let is_wanted = |approval: &Approval| {
        client.is_none_or(|client| approval.client == client)
            && query.status.is_none_or(|status| approval.status(now) == status)
    };
    let (mut approvals, mut last) = (Vec::new(), None);
    let mut rest = rows.into_iter().peekable();
    while approvals.len() < query.page.limit
        && let Some(approval) = rest.next()
    {
        last = Some(approval.id);
        if is_wanted(&approval) {
            approvals.push(ApprovalView::new(&state, &approval, None));
        }
    }
    let has_more = !all_scanned || rest.any(|approval| is_wanted(&approval));
    let next_cursor = last.filter(|_| has_more).map(|id| after_id(KIND_APPROVAL, id.to_bytes()));
    Ok(ApprovalList::new(approvals, next_cursor))
}

/// `GET /approvals/{id}`.
async fn get(state: State, tenant: Tenant, ApprovalPath(id): ApprovalPath) -> Result<ApprovalResponse> {
    let found = store::approval::get(&state.services.store, tenant.account().id, id).await?;
    let client = restricted_to(&tenant);
    let found = found.filter(|found| client.is_none_or(|client| found.client == client)).ok_or_else(not_found)?;
    respond(&state, &found).await
}

/// The approval with its content.
async fn respond(state: &AppState, approval: &Approval) -> Result<ApprovalResponse> {
    let content = content::open(state, approval).await?;
    Ok(ApprovalResponse { approval: ApprovalView::new(state, approval, content) })
}

/// Reads an approval that a user decides, and checks that the user may.
async fn find_for_decision(
    state: &AppState,
    user: &SignedInUser,
    (ApprovalPath(id), DecideApproval { hash }): &(ApprovalPath, DecideApproval),
) -> Result<Approval> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let found = store::approval::get(store, user.tenant().account().id, *id).await?.ok_or_else(not_found)?;
    let role = user.user().role;
    if !role_table::permitted_roles(policy::risk_of(found.kind, found.moves_money)).contains(&role) {
        let text = format!("The role `{}` does not permit this operation, so it cannot approve it", role.word());
        return Err(Problem::new(ErrorCode::FORBIDDEN, text));
    }
    if found.moves_money {
        access::require_recent_authentication(user.tenant())?;
    }
    if found.hash != *hash {
        let text = "The request differs from the one that was shown; get it again";
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    match found.status(now) {
        ApprovalStatus::Pending => Ok(found),
        ApprovalStatus::Expired => Err(Problem::new(ErrorCode::GONE, "The approval has expired")),
        decided => {
            let text = format!("The request has already been decided: it is {}", decided.word());
            Err(Problem::new(ErrorCode::CONFLICT, text))
        }
    }
}

async fn store_decision(state: &AppState, before: &Approval, after: &Approval) -> Result<()> {
    match approval_change::commit(state, before, after, None).await? {
        true => Ok(()),
        false => Err(Problem::new(ErrorCode::CONFLICT, "The request was decided at the same time")),
    }
}

/// `POST /approvals/{id}/approve`: stores the decision, waits for the execution and responds with its result.
///
/// # Errors
/// The approval does not exist, has expired, was decided before, or differs from what was shown; 403 if the user's role
/// does not permit the operation.
async fn approve(
    state: State,
    user: SignedInUser,
    request: (ApprovalPath, DecideApproval),
) -> Result<ApprovalResponse> {
    let before = find_for_decision(&state, &user, &request).await?;
    let now = state.services.clock.now();
    let approved = Decision { by: user.user().id, at: now };
    let after = Approval { state: ApprovalState::Approved { approved }, ..before.clone() };
    store_decision(&state, &before, &after).await?;
    let done = wait_for_end(&state, after).await?;
    respond(&state, &done).await
}

/// Waits until an approved request was executed, at most [`EXECUTION_WAIT_MAX`]. Returns the approval as it is then.
async fn wait_for_end(state: &AppState, approved: Approval) -> Result<Approval> {
    let store = &state.services.store;
    let deadline = Instant::now() + EXECUTION_WAIT_MAX;
    state.approvals.approved.notify_one();
    loop {
        let ended = state.approvals.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        let found = store::approval::get(store, approved.account, approved.id).await?.ok_or_else(not_found)?;
        let is_open = matches!(found.state, ApprovalState::Approved { .. } | ApprovalState::Executing { .. });
        if !is_open || tokio::time::timeout_at(deadline, ended).await.is_err() {
            return Ok(found);
        }
    }
}

/// `POST /approvals/{id}/reject`.
async fn reject(state: State, user: SignedInUser, request: (ApprovalPath, DecideApproval)) -> Result<ApprovalResponse> {
    let before = find_for_decision(&state, &user, &request).await?;
    let rejected = Decision { by: user.user().id, at: state.services.clock.now() };
    let after = Approval { state: ApprovalState::Rejected { rejected }, ..before.clone() };
    store_decision(&state, &before, &after).await?;
    respond(&state, &after).await
}
