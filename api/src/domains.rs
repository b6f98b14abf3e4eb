//! Sending domains: add, show, update, delete, verify.
//!
//! `queue`'s domain service owns the logic; this module parses requests and renders responses ([`view`]). [`claims`]
//! moves a domain from one account to another.

pub mod claims;
pub mod dmarc;
mod error;
mod lookup;
pub mod publish;
mod request;
mod view;

use accounts::domains::DomainWithSetup;
use httpd::paging::{KIND_DOMAIN, after_id};
use message::address::DomainName;
use message::domain_name::is_never_public;
use model::domain::SendingDomain;
use model::domain_setup::zone_file;

use self::error::domain_error_problem;
use self::lookup::{domain_limit, find};
use self::request::{CreateDomain, DeleteDomain, DomainKey, ListDomains, UpdateDomain};
use self::view::{DomainList, DomainResponse, DomainView, VerifyDomainResponse, ZoneFile};
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

/// Errors of adding a domain.
const LIMITS: &[ErrorCode] = &[ErrorCode::PLAN_FULL, ErrorCode::DOMAIN_CLAIMED, ErrorCode::CONFLICT];

pub fn operations() -> Vec<Operation> {
    let mut all = domain_operations();
    all.extend(claim_operations());
    all.extend(publishing_operations());
    all
}

const TAG: OperationTag = OperationTag::new("domains");

fn domain_operations() -> Vec<Operation> {
    vec![
        TAG.post("/domains", "Add a domain, and get the records to publish")
            .errors(LIMITS)
            .full_key_or_session(("create_domain", "domains.create"), create),
        TAG.get("/domains", "List domains, newest first").full_key_or_session(("list_domains", "domains.list"), list),
        TAG.get("/domains/{id_or_name}", "Get a domain and the status of its records")
            .domain_scoped()
            .full_key_or_session(("get_domain", "domains.get"), get),
        TAG.patch("/domains/{id_or_name}", "Update a domain's settings")
            .full_key_or_session(("update_domain", "domains.update"), update),
        TAG.delete("/domains/{id_or_name}", "Delete a domain")
            .errors(&[ErrorCode::CONFLICT])
            .full_key_or_session(("delete_domain", "domains.delete"), delete),
        TAG.get("/domains/{id_or_name}/zone-file", "Get the records as a zone file")
            .domain_scoped()
            .full_key_or_session(("get_domain_zone_file", "domains.zoneFile"), get_zone_file),
        TAG.get("/domains/{id_or_name}/dmarc", "Get a summary of the DMARC reports about a domain")
            .domain_scoped()
            .full_key_or_session(("get_domain_dmarc", "domains.dmarc"), dmarc::get),
        TAG.post("/domains/{id_or_name}/verify", "Verify a domain's records now")
            .domain_scoped()
            .full_key_or_session(("verify_domain", "domains.verify"), verify),
        TAG.post("/domains/{id_or_name}/dkim/rotate", "Rotate the DKIM keys")
            .full_key_or_session(("rotate_domain_dkim", "domains.dkim.rotate"), rotate_dkim),
        TAG.delete("/domains/{id_or_name}/dkim/rotate", "Cancel a rotation whose keys do not sign yet")
            .full_key_or_session(("cancel_domain_dkim_rotation", "domains.dkim.cancelRotation"), cancel_dkim_rotation),
    ]
}

fn claim_operations() -> Vec<Operation> {
    vec![
        TAG.post("/domains/claims", "Claim a domain of another account")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .full_key_or_session(("create_domain_claim", "domains.claims.create"), claims::create),
        TAG.get("/domains/claims", "List claims, newest first")
            .full_key_or_session(("list_domain_claims", "domains.claims.list"), claims::list),
        TAG.get("/domains/claims/{id}", "Get a claim")
            .full_key_or_session(("get_domain_claim", "domains.claims.get"), claims::get),
        TAG.post("/domains/claims/{id}/cancel", "Cancel a claim")
            .full_key_or_session(("cancel_domain_claim", "domains.claims.cancel"), claims::cancel),
        TAG.post("/domains/claims/{id}/verify", "Verify a claim's record now")
            .errors(LIMITS)
            .full_key_or_session(("verify_domain_claim", "domains.claims.verify"), claims::verify),
    ]
}

fn publishing_operations() -> Vec<Operation> {
    vec![
        TAG.post("/domains/{id_or_name}/dns/apply", "Publish the records at a DNS provider")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::UPSTREAM_ERROR])
            .full_key_or_session(("apply_domain_dns", "domains.dns.apply"), publish::apply_dns_changes),
        TAG.post(
            "/domains/{id_or_name}/dns/connect",
            "Get the URL of the DNS provider's page where the records are approved",
        )
        .errors(&[ErrorCode::UPSTREAM_ERROR])
        .full_key_or_session(("connect_domain_dns", "domains.dns.connect"), publish::create_domain_connect_url),
        TAG.get("/dns-credentials", "List the DNS providers with saved credentials")
            .full_key_or_session(("list_dns_credentials", "dnsCredentials.list"), publish::list_credentials),
        TAG.put("/dns-credentials/{provider}", "Save credentials for a DNS provider")
            .full_key_or_session(("save_dns_credentials", "dnsCredentials.save"), publish::save_credentials),
        TAG.delete("/dns-credentials/{provider}", "Delete the credentials for a DNS provider")
            .full_key_or_session(("delete_dns_credentials", "dnsCredentials.delete"), publish::delete_credentials),
    ]
}

fn domain_response(state: &AppState, domain: &DomainWithSetup) -> DomainResponse {
    DomainResponse { domain: DomainView::from_domain(domain, &state.accounts.domains) }
}

/// `POST /domains`.
///
/// # Errors
/// The input is invalid, the plan's domain limit is reached, the name is taken, or the store cannot be used.
pub async fn create(state: State, tenant: Tenant, request: CreateDomain) -> Result<DomainResponse> {
    check_name_available(&state, &request.0.name)?;
    let limit = domain_limit(&state, &tenant);
    let created = state.accounts.domains.create(tenant.account().id, request.0, limit).await;
    let domain = created.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    Ok(domain_response(&state, &domain))
}

/// Checks that the name is neither a host of this service nor a special-use name.
fn check_name_available(state: &AppState, name: &DomainName) -> Result<()> {
    let domains = &state.accounts.domains;
    if domains.facts().is_service_host(name) {
        return Err(Problem::field("name", "is a host of this service; use your own domain"));
    }
    if is_never_public(name) && !domains.allows_private_names() {
        let text = "is a special-use name (RFC 6761) that does not exist in the public DNS";
        return Err(Problem::field("name", text));
    }
    Ok(())
}

/// `GET /domains`.
pub async fn list(state: State, tenant: Tenant, input: ListDomains) -> Result<DomainList> {
    let before = input.page.before_id(KIND_DOMAIN)?.map(DomainId::from_bytes);
    let (store, account) = (&state.services.store, tenant.account().id);
    let passes = |domain: &SendingDomain| input.matches(domain);
    let listed = store::domain::list(store, account, before, input.page.limit, passes).await?;
    let setup_keys = listed.domains.iter().map(store::domain_setup::setup_key);
    let setups = store::domain_setup::get_many(store, setup_keys).await?;
    let domains = listed.domains.into_iter().zip(setups).map(|(domain, setup)| {
        let setup = setup.unwrap_or_else(|| model::domain_setup::DomainSetup::new(domain.created_at));
        DomainWithSetup { domain, setup }
    });
    Ok(DomainList::from_domains(
        domains,
        &state.accounts.domains,
        listed.next.map(|id| after_id(KIND_DOMAIN, id.to_bytes())),
    ))
}

/// `GET /domains/{id_or_name}`.
pub async fn get(state: State, tenant: Tenant, domain_key: DomainKey) -> Result<DomainResponse> {
    Ok(domain_response(&state, &load_domain(&state, &tenant, &domain_key).await?))
}

async fn load_domain(state: &AppState, tenant: &Tenant, domain_key: &DomainKey) -> Result<DomainWithSetup> {
    let domain = find(state, tenant, domain_key).await?;
    let found = state.accounts.domains.get(domain.account, domain.id).await;
    found.map_err(|error| domain_error_problem(error, state, tenant))
}

/// `PATCH /domains/{id_or_name}`.
pub async fn update(
    state: State,
    tenant: Tenant,
    (domain_key, input): (DomainKey, UpdateDomain),
) -> Result<DomainResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    if let Some(problem) = input.find_mismatch(&domain.name) {
        return Err(problem);
    }
    let change = |domain: &mut SendingDomain| input.apply(domain);
    let changed = state.accounts.domains.change(domain.account, domain.id, change).await;
    let domain = changed.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    Ok(domain_response(&state, &domain))
}

/// `DELETE /domains/{id_or_name}`.
///
/// # Errors
/// The domain does not exist; it has scheduled emails and `force` is not set; the store cannot be used.
pub async fn delete(
    state: State,
    tenant: Tenant,
    (domain_key, input): (DomainKey, DeleteDomain),
) -> Result<OkResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    let domains = &state.accounts.domains;
    let failed = |error| domain_error_problem(error, &state, &tenant);
    if !input.force && domains.claims.has_scheduled(&domain).await.map_err(failed)? {
        let text = "Emails from this domain are scheduled. Cancel them, or delete with ?force=true: \
                    they are then held until they expire";
        return Err(Problem::new(ErrorCode::CONFLICT, text).with_details(json!({"reason": "pending_scheduled_emails"})));
    }
    domains.delete(domain.account, domain.id).await.map_err(failed)?;
    Ok(OkResponse::OK)
}

/// `GET /domains/{id_or_name}/zone-file`.
pub async fn get_zone_file(state: State, tenant: Tenant, domain_key: DomainKey) -> Result<ZoneFile> {
    let domain = load_domain(&state, &tenant, &domain_key).await?;
    let records = state.accounts.domains.facts().required_records(&domain.domain);
    let with_findings = records.iter().map(|record| (record, domain.setup.finding(record)));
    Ok(ZoneFile(zone_file(domain.domain.name.as_str(), with_findings)))
}

/// `POST /domains/{id_or_name}/verify`.
///
/// # Errors
/// The domain does not exist; the store cannot be used. A missing record is not an error.
pub async fn verify(state: State, tenant: Tenant, domain_key: DomainKey) -> Result<VerifyDomainResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    let verified = state.accounts.domains.verify(domain.account, domain.id).await;
    let domain = verified.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    Ok(VerifyDomainResponse::from_domain(&domain, &state.accounts.domains))
}

/// `POST /domains/{id_or_name}/dkim/rotate`.
pub async fn rotate_dkim(state: State, tenant: Tenant, domain_key: DomainKey) -> Result<DomainResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    let rotated = state.accounts.domains.rotate_keys(domain.account, domain.id).await;
    let domain = rotated.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    Ok(domain_response(&state, &domain))
}

/// `DELETE /domains/{id_or_name}/dkim/rotate`. Does nothing if no rotation is pending.
pub async fn cancel_dkim_rotation(state: State, tenant: Tenant, domain_key: DomainKey) -> Result<DomainResponse> {
    let domain = find(&state, &tenant, &domain_key).await?;
    let cancelled = state.accounts.domains.drop_rotation(domain.account, domain.id).await;
    let domain = cancelled.map_err(|error| domain_error_problem(error, &state, &tenant))?;
    Ok(domain_response(&state, &domain))
}
