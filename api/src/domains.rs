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
use self::view::{DomainList, DomainResponse, VerifyDomainResponse, ZoneFile};
use crate::operation::{Operation, OperationBuilder, operation};
use crate::prelude::*;

/// Errors of adding a domain.
const LIMITS: &[ErrorCode] = &[ErrorCode::PLAN_FULL, ErrorCode::DOMAIN_CLAIMED, ErrorCode::CONFLICT];

pub fn operations() -> Vec<Operation> {
    let mut all = domain_operations();
    all.extend(claim_operations());
    all.extend(publishing_operations());
    all
}

fn domain_operation(method: Method, path: &'static str, id: &'static str, summary: &'static str) -> OperationBuilder {
    operation(method, path, id).about("domains", summary)
}

fn get_operation(path: &'static str, id: &'static str, summary: &'static str) -> OperationBuilder {
    domain_operation(Method::GET, path, id, summary)
}

fn post_operation(path: &'static str, id: &'static str, summary: &'static str) -> OperationBuilder {
    domain_operation(Method::POST, path, id, summary)
}

fn domain_operations() -> Vec<Operation> {
    use ApiKeyScope::Full;
    vec![
        post_operation("/domains", "create_domain", "Add a domain, and get the records to publish")
            .errors(LIMITS)
            .sdk("domains.create")
            .api_key_or_session(Full, create),
        get_operation("/domains", "list_domains", "List domains, newest first")
            .sdk("domains.list")
            .api_key_or_session(Full, list),
        get_operation("/domains/{id_or_name}", "get_domain", "Get a domain and the status of its records")
            .domain_scoped()
            .sdk("domains.get")
            .api_key_or_session(Full, get),
        domain_operation(Method::PATCH, "/domains/{id_or_name}", "update_domain", "Update a domain's settings")
            .sdk("domains.update")
            .api_key_or_session(Full, update),
        domain_operation(Method::DELETE, "/domains/{id_or_name}", "delete_domain", "Delete a domain")
            .errors(&[ErrorCode::CONFLICT])
            .sdk("domains.delete")
            .api_key_or_session(Full, delete),
        get_operation("/domains/{id_or_name}/zone-file", "get_domain_zone_file", "Get the records as a zone file")
            .domain_scoped()
            .sdk("domains.zoneFile")
            .api_key_or_session(Full, get_zone_file),
        get_operation(
            "/domains/{id_or_name}/dmarc",
            "get_domain_dmarc",
            "Get a summary of the DMARC reports about a domain",
        )
        .domain_scoped()
        .sdk("domains.dmarc")
        .api_key_or_session(Full, dmarc::get),
        post_operation("/domains/{id_or_name}/verify", "verify_domain", "Verify a domain's records now")
            .domain_scoped()
            .sdk("domains.verify")
            .api_key_or_session(Full, verify),
        post_operation("/domains/{id_or_name}/dkim/rotate", "rotate_domain_dkim", "Rotate the DKIM keys")
            .sdk("domains.dkim.rotate")
            .api_key_or_session(Full, rotate_dkim),
        domain_operation(
            Method::DELETE,
            "/domains/{id_or_name}/dkim/rotate",
            "cancel_domain_dkim_rotation",
            "Cancel a rotation whose keys do not sign yet",
        )
        .sdk("domains.dkim.cancelRotation")
        .api_key_or_session(Full, cancel_dkim_rotation),
    ]
}

fn claim_operations() -> Vec<Operation> {
    use ApiKeyScope::Full;
    vec![
        post_operation("/domains/claims", "create_domain_claim", "Claim a domain of another account")
            .errors(&[ErrorCode::NOT_FOUND, ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .sdk("domains.claims.create")
            .api_key_or_session(Full, claims::create),
        get_operation("/domains/claims", "list_domain_claims", "List claims, newest first")
            .sdk("domains.claims.list")
            .api_key_or_session(Full, claims::list),
        get_operation("/domains/claims/{id}", "get_domain_claim", "Get a claim")
            .sdk("domains.claims.get")
            .api_key_or_session(Full, claims::get),
        post_operation("/domains/claims/{id}/cancel", "cancel_domain_claim", "Cancel a claim")
            .sdk("domains.claims.cancel")
            .api_key_or_session(Full, claims::cancel),
        post_operation("/domains/claims/{id}/verify", "verify_domain_claim", "Verify a claim's record now")
            .errors(LIMITS)
            .sdk("domains.claims.verify")
            .api_key_or_session(Full, claims::verify),
    ]
}

fn publishing_operations() -> Vec<Operation> {
    use ApiKeyScope::Full;
    vec![
        post_operation("/domains/{id_or_name}/dns/apply", "apply_domain_dns", "Publish the records at a DNS provider")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::UPSTREAM_ERROR])
            .sdk("domains.dns.apply")
            .api_key_or_session(Full, publish::apply_dns_changes),
        post_operation(
            "/domains/{id_or_name}/dns/connect",
            "connect_domain_dns",
            "Get the URL of the DNS provider's page where the records are approved",
        )
        .errors(&[ErrorCode::UPSTREAM_ERROR])
        .sdk("domains.dns.connect")
        .api_key_or_session(Full, publish::create_domain_connect_url),
        get_operation("/dns-credentials", "list_dns_credentials", "List the DNS providers with saved credentials")
            .sdk("dnsCredentials.list")
            .api_key_or_session(Full, publish::list_credentials),
        domain_operation(
            Method::PUT,
            "/dns-credentials/{provider}",
            "save_dns_credentials",
            "Save credentials for a DNS provider",
        )
        .sdk("dnsCredentials.save")
        .api_key_or_session(Full, publish::save_credentials),
        domain_operation(
            Method::DELETE,
            "/dns-credentials/{provider}",
            "delete_dns_credentials",
            "Delete the credentials for a DNS provider",
        )
        .sdk("dnsCredentials.delete")
        .api_key_or_session(Full, publish::delete_credentials),
    ]
}

fn domain_response(state: &AppState, domain: &DomainWithSetup) -> DomainResponse {
    DomainResponse::from_domain(domain, &state.accounts.domains)
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
