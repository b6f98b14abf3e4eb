//! Claims: moving a domain from another account by proving control of its DNS.

use accounts::domains::ClaimError;
use httpd::paging::{KIND_CLAIM, after_id};
use message::address::DomainName;
use model::domain_claim::{ClaimBlocker, ClaimStatus, DomainClaim};
use model::domain_setup::RecordFinding;
use model::quota::Noun;

use super::error::domain_error_problem;
use super::lookup::domain_limit;
use super::request::SendingDomainName;
use super::view::RecordView;
use crate::prelude::*;

const STATUSES: &[&str] = &["pending", "blocked", "verified", "completed", "expired", "cancelled"];
const BLOCK_REASONS: &[Option<&str>] =
    &[Some("grace_period"), Some("recent_owner_activity"), Some("pending_scheduled_emails"), None];

fn claim_error_problem(error: ClaimError, state: &AppState, tenant: &Tenant) -> Problem {
    match error {
        ClaimError::Unknown => Problem::not_found("claim"),
        ClaimError::Free(name) => {
            Problem::new(ErrorCode::NOT_FOUND, format!("No account has {name}; add it with POST /domains"))
        }
        ClaimError::Ended(status) => {
            let word = serde_json::to_value(status).unwrap_or_default();
            let text = format!("The claim is already {}", word.as_str().unwrap_or("closed"));
            Problem::new(ErrorCode::VALIDATION_ERROR, text).with_details(json!({"status": word}))
        }
        ClaimError::Domain(error) => domain_error_problem(error, state, tenant),
    }
}

object_view! {
    /// A claim to a domain of another account
    #[schema(name = "DomainClaim")]
    pub struct ClaimView, fn from_claim(
        state: &AppState, claim: &DomainClaim, finding: Option<&RecordFinding>;
        let record = state.accounts.domains.facts().ownership_record(claim.account, &claim.name);
        let status = claim.status_at(state.services.clock.now());
        let is_open = claim.is_open() && status != ClaimStatus::Expired
    ) {
        /// `clm_…`
        id: ClaimId = claim.id,
        /// The domain
        name: DomainName = claim.name.clone(),
        /// The status
        #[schema(as = String, enum = STATUSES)]
        status: ClaimStatus = status,
        record: RecordView = RecordView::from_record(record, finding, None),
        /// The condition that the claim waits for
        #[schema(as = Option<String>, enum = BLOCK_REASONS)]
        blocked_reason: Option<ClaimBlocker> = claim.block.filter(|_| is_open),
        /// End of the other account's grace period
        grace_ends_at: Option<JsonTimestamp> = claim.grace_ends_at().filter(|_| is_open).map(JsonTimestamp),
        /// When it was created
        created_at: JsonTimestamp = JsonTimestamp(claim.created_at),
        /// When the claim expires
        expires_at: JsonTimestamp = JsonTimestamp(claim.expires_at()),
    }
}

object_response! { "A claim", pub ClaimResponse { claim: ClaimView } as "OneDomainClaim" }

impl ClaimResponse {
    fn from_claim(state: &AppState, claim: DomainClaim, finding: Option<&RecordFinding>) -> Self {
        Self { claim: ClaimView::from_claim(state, &claim, finding) }
    }
}

list_response! { pub ClaimList { claims: ClaimView } as "DomainClaimList" }

/// The domain to claim
#[derive(Debug, RequestObject)]
#[schema(name = "ClaimDomain", body_bytes_max = SMALL_BYTES_MAX)]
pub struct CreateClaim {
    /// The domain
    #[field(aliases = ["domain"], foreign = ["Name"], reader = SendingDomainName, examples = ["example.net"])]
    name: DomainName,
}

id_path! { pub ClaimPath(ClaimId), "The claim's id (`clm_…`)", "claim" }

/// `POST /domains/claims`. If the account has an open claim to the name, that claim is returned.
///
/// # Errors
/// The input is invalid; no other account has the domain; the store cannot be used.
pub async fn create(state: State, tenant: Tenant, CreateClaim { name }: CreateClaim) -> Result<ClaimResponse> {
    let (domains, account) = (&state.accounts.domains, tenant.account().id);
    let refused = |error| claim_error_problem(error, &state, &tenant);
    // An open claim is returned and an impossible claim is rejected even if the storage quota is exhausted.
    let reserved = match domains.claims.check_can_claim(account, &name).await.map_err(refused)? {
        Some(open) => return Ok(ClaimResponse::from_claim(&state, open, None)),
        None => state.reserve_storage(&tenant, Noun::DomainClaims, 1).await?,
    };
    let claim = domains.claims.claim(account, name).await.map_err(refused)?;
    reserved.confirm();
    Ok(ClaimResponse::from_claim(&state, claim, None))
}

/// `GET /domains/claims`.
pub async fn list(state: State, tenant: Tenant, page: PageParameters) -> Result<ClaimList> {
    let before = page.before_id(KIND_CLAIM)?.map(ClaimId::from_bytes);
    let account = tenant.account().id;
    let mut claims = store::domain_claim::list(&state.services.store, account, before, page.limit + 1).await?;
    let next_cursor = page.cut(&mut claims, |claim| after_id(KIND_CLAIM, claim.id.to_bytes()));
    let claims = claims.into_iter().map(|claim| ClaimView::from_claim(&state, &claim, None)).collect();
    Ok(ClaimList::new(claims, next_cursor))
}

/// `POST /domains/claims/{id}/cancel`. Cancelling a cancelled claim changes nothing.
///
/// # Errors
/// The claim does not exist or has ended otherwise; the store cannot be used.
pub async fn cancel(state: State, tenant: Tenant, ClaimPath(id): ClaimPath) -> Result<ClaimResponse> {
    let cancelled = state.accounts.domains.claims.cancel_claim(tenant.account().id, id).await;
    let claim = cancelled.map_err(|error| claim_error_problem(error, &state, &tenant))?;
    Ok(ClaimResponse::from_claim(&state, claim, None))
}

/// `GET /domains/claims/{id}`.
pub async fn get(state: State, tenant: Tenant, ClaimPath(id): ClaimPath) -> Result<ClaimResponse> {
    let found = store::domain_claim::get(&state.services.store, tenant.account().id, id).await?;
    Ok(ClaimResponse::from_claim(&state, found.ok_or_else(|| Problem::not_found("claim"))?, None))
}

/// `POST /domains/claims/{id}/verify`.
///
/// # Errors
/// The claim does not exist; the plan's domain limit is reached; the store cannot be used. A missing record is not an
/// error.
pub async fn verify(state: State, tenant: Tenant, ClaimPath(id): ClaimPath) -> Result<ClaimResponse> {
    let limit = domain_limit(&state, &tenant);
    let verified = state.accounts.domains.claims.verify_claim(tenant.account().id, id, limit).await;
    let claimed = verified.map_err(|error| claim_error_problem(error, &state, &tenant))?;
    Ok(ClaimResponse::from_claim(&state, claimed.claim, claimed.finding.as_ref()))
}
