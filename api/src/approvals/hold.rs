//! Holds a request of a client until a person decides it.
//!
//! ```text
//! request ─► parse ─► resolve and check its emails ─► seal ─►[ approval + content + sends + mail to the owner ]─► 202
//! ```
//!
//! A request that would be refused for its fields, its recipients or its sender is refused at once.

use http::header::{IF_MATCH, LOCATION, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use httpd::json_limits;
use httpd::response::{JSON_MEDIA_TYPE, Response};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use model::approval::{
    Approval, ApprovalState, ApprovalStatus, BODY_BYTES_MAX, CLIENT_HELD_PER_DAY_MAX, CLIENT_PENDING_BYTES_MAX,
    CLIENT_PENDING_MAX, CONTENT_BYTES_MAX, ExecutionResult, HELD_PER_DAY_MAX, HeldContent, HeldRequest,
    PENDING_BYTES_MAX, PENDING_MAX,
};
use model::client_policy::{ApprovalKind, PolicyViolation};
use model::credential::CredentialId;
use model::held_email::HeldEmail;
use model::owner_alert::AlertSubject;
use store::approval::ApprovalUsage;
use store::client_sends::{self, LimitedClient, SendReservation};

use super::content;
use super::view::approval_url;
use crate::approvals::policy::SECRET_FIELDS;
use crate::idempotency;
use crate::operation::Operation;
use crate::prelude::*;

/// The owner gets no further mail while this many requests of the last hour are pending.
const MAILED_PENDING_MAX: usize = 10;
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Retries after concurrent requests of the account.
const TRIES_MAX: usize = 20;
/// Header fields that are not held: each has a place of its own, or is written by the server.
const OWN_HEADERS: [&str; 2] = ["idempotency-key", "authorization"];

/// Holds a request: stores it with a mail to the owner, and answers 202. A request whose idempotency key was held
/// before gets the state of that approval, or its result.
///
/// # Errors
/// The request is malformed or too large, an email of it would be refused, a limit is reached, or the store cannot be
/// written.
pub(crate) async fn hold(
    state: &State,
    tenant: &Tenant,
    operation: &Operation,
    kind: ApprovalKind,
    head: &Parts,
    call: Request,
) -> Result<Response> {
    let client = tenant.actor().credential().ok_or_else(|| Problem::internal("a held request has no credential"))?;
    let body = read_body(&call.body)?;
    let request = held_request(operation, head)?;
    let request_hash = request.hash(&body);
    let fingerprint = fingerprint(&request, &call);
    let mut replaced = match find_by_key(state, tenant, client, &request).await? {
        KeyUse::Used(found) => return repeated(state, &found, &fingerprint, &request_hash).await,
        KeyUse::Free { before } => before,
    };
    let emails = check(state, tenant, operation, call).await?;
    let content = HeldContent { body, emails, response: String::new() };
    let (account, now) = (tenant.account().id, state.services.clock.now());
    let held = Approval {
        id: ApprovalId::new(now, state.services.entropy.unique_bits()),
        account,
        client,
        kind,
        moves_money: operation.moves_money,
        hash: request.content_hash(&content),
        request_hash,
        fingerprint: Some(fingerprint.clone()),
        request,
        reserved_sends: None,
        created_at: now,
        state: ApprovalState::Pending,
    };
    let sealed = content::seal(state, held.id, &content)?;
    if sealed.len() > CONTENT_BYTES_MAX {
        return Err(Problem::held_content_too_large());
    }
    let sends = content.emails.iter().map(|email| email.recipients.len()).sum::<usize>();
    let sends = u32::try_from(sends).unwrap_or(u32::MAX);
    for _ in 0..TRIES_MAX {
        match store_held(state, tenant, &held, (&sealed, sends), replaced).await? {
            true => {
                let operation = operation.id;
                tracing::info!(account.id = %account, approval.id = %held.id, operation, "request waits for approval");
                return approval_required(state, &held);
            }
            // Another request was held at the same time, perhaps with the same key.
            false => match find_by_key(state, tenant, client, &held.request).await? {
                KeyUse::Used(found) => return repeated(state, &found, &fingerprint, &held.request_hash).await,
                KeyUse::Free { before } => replaced = before,
            },
        }
    }
    Err(Problem::busy())
}

/// Parses a request, and resolves and checks the emails that it would send.
async fn check(state: &State, tenant: &Tenant, operation: &Operation, call: Request) -> Result<Vec<HeldEmail>> {
    (operation.check_request)(call.clone()).await?;
    let Some(resolve) = &operation.resolve_sends else { return Ok(Vec::new()) };
    let drafts = resolve(Arc::clone(state), tenant.clone(), call).await?;
    let mut emails = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        state.accounts.intake.check_draft(tenant, draft).await.or_problem(state)?;
        let email = HeldEmail::from_draft(draft);
        emails.push(email.ok_or_else(|| Problem::internal("a held email is not composed of fields"))?);
    }
    Ok(emails)
}

/// Stores an approval with its encrypted content and the number of its sends; its idempotency key led to `replaced`
/// before. Returns false if another request of the account was held at the same time.
async fn store_held(
    state: &AppState,
    tenant: &Tenant,
    held: &Approval,
    (sealed, sends): (&[u8], u32),
    replaced: Option<ApprovalId>,
) -> Result<bool> {
    let (store, account, now) = (&state.services.store, held.account, held.created_at);
    let usage = store::approval::usage(store, account, held.client, now).await?;
    check_limits(&usage, sealed.len() as u64, now)?;
    let mut batch = Batch::intake();
    let reserved_sends = match tenant.policy().sends_per_day {
        Some(limit) if held.kind == ApprovalKind::Send => {
            let client = LimitedClient { account, id: held.client, limit };
            match client_sends::add_reservation(store, &mut batch, client, sends, now).await? {
                SendReservation::Reserved(reserved) => Some(reserved),
                SendReservation::LimitReached { used } => {
                    let violation = PolicyViolation::SendsPerDay { limit, used };
                    return Err(Problem::policy_violation(violation.rule(), violation.to_string()));
                }
            }
        }
        _ => None,
    };
    let held = Approval { reserved_sends, ..held.clone() };
    store::approval::create(&mut batch, &held, sealed.to_vec(), replaced, &usage);
    let an_hour_ago = now.checked_sub(HOUR).unwrap_or(Timestamp::MIN);
    let pending_lately = usage.pending_since.iter().filter(|since| **since > an_hour_ago).count();
    let alert = (pending_lately < MAILED_PENDING_MAX).then(|| state.queue.events.owner_alerts.choose_partition());
    if let Some(partition) = alert {
        let about = AlertSubject::Approval {
            approval: held.id,
            operation: held.request.operation.clone(),
            approval_url: approval_url(state, held.id),
        };
        state.queue.events.owner_alerts.put(&mut batch, partition, account, about);
    }
    let is_stored = state.commit(batch).await?;
    if is_stored {
        alert.into_iter().for_each(|partition| state.queue.events.owner_alerts.notify(partition));
    }
    Ok(is_stored)
}

/// Checks the limits of the account and of the client.
fn check_limits(usage: &ApprovalUsage, bytes: u64, now: Timestamp) -> Result<()> {
    let own = &usage.of_client;
    let per_day = [
        (usage.held_today, HELD_PER_DAY_MAX, "the account"),
        (own.held_today, CLIENT_HELD_PER_DAY_MAX, "this key or grant"),
    ];
    if let Some((_, limit, of)) = per_day.into_iter().find(|(held, limit, _)| held >= limit) {
        let text = format!("{limit} requests of {of} have been held for approval today (UTC)");
        let tomorrow = now.to_zoned(TimeZone::UTC).tomorrow().and_then(|day| day.start_of_day());
        let wait_s = tomorrow.map_or(HOUR.as_secs(), |start| start.timestamp().duration_since(now).as_secs() + 1);
        return Err(Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, text).with_header(RETRY_AFTER, wait_s.to_string()));
    }
    let pending = [
        (usage.pending_since.len(), PENDING_MAX, "the account"),
        (own.pending, CLIENT_PENDING_MAX, "this key or grant"),
    ];
    if let Some((_, limit, of)) = pending.into_iter().find(|(pending, limit, _)| pending >= limit) {
        let text = format!("{limit} requests of {of} are already waiting for approval; decide them or let them expire");
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    let used = [
        (usage.pending_bytes, PENDING_BYTES_MAX, "the account"),
        (own.pending_bytes, CLIENT_PENDING_BYTES_MAX, "this key or grant"),
    ];
    if let Some((_, limit, of)) = used.into_iter().find(|(used, limit, _)| used.saturating_add(bytes) > *limit) {
        let text = format!(
            "The requests of {of} that wait for approval may have at most {limit} bytes together; decide some or let \
             them expire"
        );
        return Err(Problem::new(ErrorCode::CONFLICT, text));
    }
    Ok(())
}

/// Only a JSON object or list without secrets is held: a person reads it.
fn read_body(body: &Bytes) -> Result<String> {
    if body.len() > BODY_BYTES_MAX {
        let text = format!("A request that waits for approval can have at most {BODY_BYTES_MAX} bytes");
        return Err(Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, text));
    }
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    // A batch may be a list. Its emails contain no secrets.
    if first.is_some_and(|first| *first != b'[') {
        json_limits::check_limits(body)?;
        let fields = fields::parse_body(body)?;
        if let Some((name, _)) = fields.0.iter().find(|(name, _)| SECRET_FIELDS.contains(&name.as_ref())) {
            let text = format!("A request with `{name}` cannot wait for approval, because it contains a secret");
            return Err(Problem::policy_violation("credentials", text));
        }
    }
    let text = std::str::from_utf8(body).map_err(|_| Problem::new(ErrorCode::INVALID_JSON, "is not valid UTF-8"))?;
    Ok(text.to_owned())
}

fn held_request(operation: &Operation, head: &Parts) -> Result<HeldRequest> {
    Ok(HeldRequest {
        operation: operation.id.to_owned(),
        method: operation.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        idempotency_key: idempotency::parse_key(&head.headers)?,
        headers: held_headers(operation, head)?,
    })
}

/// Fingerprint of a request: its operation, path, query, header fields, and its body without formatting.
fn fingerprint(request: &HeldRequest, call: &Request) -> String {
    let mut fingerprint = idempotency::request_fingerprint(call);
    fingerprint.add(&request.operation);
    fingerprint.add(&request.query);
    fingerprint.add_pairs(request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    fingerprint.finish()
}

/// The header fields that the operation reads, in the order of their names.
fn held_headers(operation: &Operation, head: &Parts) -> Result<Vec<(String, String)>> {
    let spec = (operation.request_spec)(&mut Schemas::default());
    let parameters = spec.parameters.iter().filter(|parameter| parameter["in"] == "header");
    let mut names: Vec<String> =
        parameters.filter_map(|parameter| parameter["name"].as_str()).map(str::to_ascii_lowercase).collect();
    names.push(IF_MATCH.as_str().to_owned());
    names.retain(|name| !OWN_HEADERS.contains(&name.as_str()));
    names.sort_unstable();
    names.dedup();
    let mut held = Vec::new();
    for name in names {
        let Ok(header) = HeaderName::try_from(name.as_str()) else { continue };
        for value in head.headers.get_all(header) {
            let text = value.to_str().map_err(|_| Problem::field(&name, "is not ASCII"))?;
            held.push((name.clone(), text.to_owned()));
        }
    }
    Ok(held)
}

/// The use of an idempotency key.
enum KeyUse {
    Used(Box<Approval>),
    /// It leads nowhere, or to an approval that ended so long ago that the key may be used again.
    Free {
        before: Option<ApprovalId>,
    },
}

async fn find_by_key(state: &AppState, tenant: &Tenant, client: CredentialId, request: &HeldRequest) -> Result<KeyUse> {
    let Some(used) = &request.idempotency_key else { return Ok(KeyUse::Free { before: None }) };
    let (store, account, now) = (&state.services.store, tenant.account().id, state.services.clock.now());
    let found = store::approval::find_by_idempotency_key(store, account, client, &request.operation, used).await?;
    Ok(match found {
        None => KeyUse::Free { before: None },
        Some(found) if found.key_ends_at().is_some_and(|end| end <= now) => KeyUse::Free { before: Some(found.id) },
        Some(found) => KeyUse::Used(Box::new(found)),
    })
}

/// The response to a request that was held before.
async fn repeated(state: &AppState, found: &Approval, fingerprint: &str, request_hash: &str) -> Result<Response> {
    if !found.is_same_request(fingerprint, request_hash) {
        let text = "The idempotency key was used for a different request; use a new one";
        return Err(Problem::new(ErrorCode::IDEMPOTENCY_CONFLICT, text));
    }
    let status = found.status(state.services.clock.now());
    match &found.state {
        ApprovalState::Executed { result, .. } => {
            let content = content::open(state, found).await?;
            if let Some(response) = content.map(|content| content.response).filter(|response| !response.is_empty()) {
                return stored_result(result, response);
            }
        }
        ApprovalState::Approved { .. } | ApprovalState::Executing { .. } => {
            let text = "The approved request is being carried out";
            return Err(Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, text));
        }
        _ if status == ApprovalStatus::Pending => return approval_required(state, found),
        ApprovalState::Pending | ApprovalState::Rejected { .. } | ApprovalState::Expired => {
            let text =
                format!("The request was not approved ({}); a new one needs another idempotency key", status.word());
            return Err(Problem::policy_violation("approve", text));
        }
        ApprovalState::Interrupted { .. } => {}
    }
    let text =
        format!("The request has already been approved and is {}; see `GET /approvals/{}`", status.word(), found.id);
    Err(Problem::new(ErrorCode::CONFLICT, text))
}

fn stored_result(result: &ExecutionResult, response: String) -> Result<Response> {
    let status = StatusCode::from_u16(result.status).map_err(Problem::internal)?;
    let headers = vec![(idempotency::REPLAYED, HeaderValue::from_static("true"))];
    Ok(Response::new(status, JSON_MEDIA_TYPE, headers, Bytes::from(response)))
}

fn approval_required(state: &AppState, held: &Approval) -> Result<Response> {
    let url = approval_url(state, held.id);
    let body = json!({
        "status": "approval_required",
        "message": format!("The policy of this client requires an approval: a person decides at {url}"),
        "approval_id": held.id,
        "url": url,
        "expires_at": JsonTimestamp(held.expires_at()),
    });
    let body = serde_json::to_vec(&body).map_err(Problem::internal)?;
    let location = HeaderValue::try_from(format!("/approvals/{}", held.id)).map_err(Problem::internal)?;
    let headers = vec![(LOCATION, location)];
    Ok(Response::new(StatusCode::ACCEPTED, JSON_MEDIA_TYPE, headers, body.into()))
}
