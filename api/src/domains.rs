//! Sending domains: added, looked at, changed, deleted (completions-email.md 2.4).
//!
//! What a domain needs and what became of it the queue's room of domains knows; here it is asked, and shown
//! ([`view`]). [`claims`] is how a domain comes from one account to another.

pub mod claims;
pub mod dmarc;
pub mod publish;
mod request;
mod view;

use std::sync::Arc;

use http::Method;
use mail::address::Name;
use mail::credential::Scope;
use mail::domain::Domain;
use mail::id::DomainId;
use mail::sending_name::is_never_public;
use mail::setup::zone_file;
use queue::domains::{DomainError, Known};
use serde_json::json;
use store::access::Tenant;

use self::request::{CreateDomain, DeleteDomain, ListDomains, OfDomain, UpdateDomain, Which};
use self::view::{DomainList, OneDomain, Verified, ZoneFile};
use crate::done::Done;
use crate::operations::{Entry, Operation, operation};
use crate::page;
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::suppressions::not_written;

/// Why an account may not have a domain.
const LIMITS: &[Code] = &[Code::PLAN_FULL, Code::DOMAIN_CLAIMED, Code::CONFLICT];

/// The operations on domains.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let mut all = of_domains();
    all.extend(of_claims());
    all.extend(of_publishing());
    all
}

fn of(method: Method, path: &'static str, id: &'static str, summary: &'static str) -> Entry {
    operation(method, path, id).about("domains", summary)
}

fn read(path: &'static str, id: &'static str, summary: &'static str) -> Entry {
    of(Method::GET, path, id, summary)
}

fn post(path: &'static str, id: &'static str, summary: &'static str) -> Entry {
    of(Method::POST, path, id, summary)
}

fn of_domains() -> Vec<Operation> {
    use Scope::Full;
    vec![
        post("/domains", "create_domain", "Add a domain, and get the records to publish")
            .fails(LIMITS)
            .either(Full, create),
        read("/domains", "list_domains", "List domains, newest first").either(Full, list),
        read("/domains/{id_or_name}", "get_domain", "Get a domain, and how far its records are")
            .of_a_domain()
            .either(Full, get),
        of(Method::PATCH, "/domains/{id_or_name}", "update_domain", "Change how a domain's mail is treated")
            .either(Full, update),
        of(Method::DELETE, "/domains/{id_or_name}", "delete_domain", "Delete a domain")
            .fails(&[Code::CONFLICT])
            .either(Full, delete),
        read(
            "/domains/{id_or_name}/zone-file",
            "get_domain_zone_file",
            "The records as a zone file has them",
        )
        .of_a_domain()
        .either(Full, zone),
        read("/domains/{id_or_name}/dmarc", "get_domain_dmarc", "Sum up the DMARC reports about a domain")
            .of_a_domain()
            .either(Full, dmarc::get),
        post("/domains/{id_or_name}/verify", "verify_domain", "Look for the records now")
            .of_a_domain()
            .either(Full, verify),
        post("/domains/{id_or_name}/dkim/rotate", "rotate_domain_dkim", "Make new keys").either(Full, rotate),
        of(
            Method::DELETE,
            "/domains/{id_or_name}/dkim/rotate",
            "cancel_domain_dkim_rotation",
            "Drop new keys that do not sign yet",
        )
        .either(Full, drop_rotation),
    ]
}

fn of_claims() -> Vec<Operation> {
    use Scope::Full;
    vec![
        post("/domains/claims", "claim_domain", "Claim a domain that another account has")
            .fails(&[Code::NOT_FOUND, Code::CONFLICT, Code::PLAN_FULL])
            .either(Full, claims::claim),
        read("/domains/claims", "list_domain_claims", "List claims, newest first").either(Full, claims::list),
        read("/domains/claims/{id}", "get_domain_claim", "Get a claim").either(Full, claims::get),
        post("/domains/claims/{id}/cancel", "cancel_domain_claim", "Give a claim up")
            .either(Full, claims::cancel),
        post("/domains/claims/{id}/verify", "verify_domain_claim", "Look for the record of a claim")
            .fails(LIMITS)
            .either(Full, claims::verify),
    ]
}

fn of_publishing() -> Vec<Operation> {
    use Scope::Full;
    vec![
        post("/domains/{id_or_name}/dns/apply", "apply_domain_dns", "Publish the records at a DNS provider")
            .fails(&[Code::CONFLICT, Code::UPSTREAM_ERROR])
            .either(Full, publish::apply),
        post(
            "/domains/{id_or_name}/dns/connect",
            "connect_domain_dns",
            "Get the page at the DNS provider where the records are agreed to",
        )
        .fails(&[Code::UPSTREAM_ERROR])
        .either(Full, publish::connect),
        read(
            "/dns-credentials",
            "list_dns_credentials",
            "List the DNS providers that credentials are saved for",
        )
        .either(Full, publish::list),
        of(
            Method::PUT,
            "/dns-credentials/{provider}",
            "save_dns_credentials",
            "Save credentials for a DNS provider",
        )
        .either(Full, publish::save),
        of(
            Method::DELETE,
            "/dns-credentials/{provider}",
            "delete_dns_credentials",
            "Forget the credentials for a DNS provider",
        )
        .either(Full, publish::forget),
    ]
}

fn no_such_domain() -> Problem {
    Problem::not_found("domain")
}

/// The id of a domain of the tenant's.
async fn find(room: &Room, tenant: &Tenant, which: &Which) -> Result<Domain, Problem> {
    let (store, account) = (room.hall.store(), tenant.account().id);
    let found = match which {
        Which::Id(id) => store::domain::get(store, account, *id).await?,
        Which::Name(name) => store::domain::by_name(store, name).await?,
    };
    let is_reached = |domain: &Domain| {
        domain.account == account && tenant.bound_to().is_none_or(|bond: DomainId| bond == domain.id)
    };
    found.filter(is_reached).ok_or_else(no_such_domain)
}

/// What went wrong with a domain.
fn problem(error: DomainError, room: &Room, tenant: &Tenant) -> Problem {
    match error {
        DomainError::Exists(name) => {
            Problem::new(Code::CONFLICT, format!("{name} is a domain of this account already"))
                .details(json!({"domain": name}))
        }
        DomainError::Taken(name) => {
            let record = room.hall.domains().facts().ownership(tenant.account().id, &name);
            let text = format!(
                "Another account has {name}. If you rule its DNS, claim it: publish this record, then POST /domains/claims"
            );
            Problem::new(Code::DOMAIN_CLAIMED, text).details(json!({
                "domain": name,
                "claim": {
                    "method": "dns_txt",
                    "name": record.name,
                    "value": record.value,
                    "create": "POST /domains/claims",
                },
            }))
        }
        DomainError::Limit { limit, used } => {
            let domains = if limit == 1 { "domain" } else { "domains" };
            Problem::new(Code::PLAN_FULL, format!("The plan includes {limit} {domains}"))
                .details(json!({"limit": "domains", "used": used, "cap": limit}))
                .upgrade(room.upgrade_url())
        }
        error @ DomainError::TooLong(_) => Problem::field("name", error.to_string()),
        DomainError::Unknown => no_such_domain(),
        DomainError::Changed => {
            Problem::new(Code::CONFLICT, "The domain was changed at the same time; try again")
        }
        DomainError::TooManyQuestions { retry_after } => Problem::too_many_questions(retry_after),
        DomainError::Keys(error) => Problem::internal(error),
        DomainError::Read(error) => error.into(),
        DomainError::Commit(error) => not_written(error),
    }
}

/// How many domains the tenant's plan includes.
fn limit(room: &Room, tenant: &Tenant) -> Option<u32> {
    room.hall.plans().of(tenant.account().plan).domains
}

fn one(room: &Room, known: &Known) -> OneDomain {
    OneDomain::of(known, room.hall.domains())
}

/// `POST /domains`.
///
/// # Errors
/// What is wrong with the request; the plan includes no more; the name is taken; the store cannot be used.
pub async fn create(room: Arc<Room>, tenant: Tenant, request: CreateDomain) -> Result<OneDomain, Problem> {
    may_be_had(&room, &request.0.name)?;
    let limit = limit(&room, &tenant);
    let created = room.hall.domains().create(tenant.account().id, request.0, limit).await;
    let known = created.map_err(|error| problem(error, &room, &tenant))?;
    Ok(one(&room, &known))
}

/// Whether a name can be anybody's to send from, here.
fn may_be_had(room: &Room, name: &Name) -> Result<(), Problem> {
    let domains = room.hall.domains();
    if domains.facts().is_own(name) {
        return Err(Problem::field("name", "is a host of this service; add a domain of your own"));
    }
    if is_never_public(name) && !domains.takes_private_names() {
        let text =
            "is a name that the public DNS never has (RFC 6761), so that its records are found nowhere";
        return Err(Problem::field("name", text));
    }
    Ok(())
}

/// `GET /domains`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: ListDomains) -> Result<DomainList, Problem> {
    let before = input.page.before_domain()?;
    let (store, account) = (room.hall.store(), tenant.account().id);
    let passes = |domain: &Domain| input.passes(domain);
    let listed = store::domain::list(store, account, before, input.page.limit, passes).await?;
    let about = listed.domains.iter().map(store::setup::about);
    let setups = store::setup::get_many(store, about).await?;
    let known = listed.domains.into_iter().zip(setups).map(|(domain, setup)| {
        let setup = setup.unwrap_or_else(|| mail::setup::Setup::new(domain.created_at));
        Known { domain, setup }
    });
    Ok(DomainList::of(known, room.hall.domains(), listed.next.map(page::after_domain)))
}

/// `GET /domains/{id_or_name}`.
///
/// # Errors
/// No such domain; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, OfDomain(which): OfDomain) -> Result<OneDomain, Problem> {
    Ok(one(&room, &know(&room, &tenant, &which).await?))
}

async fn know(room: &Room, tenant: &Tenant, which: &Which) -> Result<Known, Problem> {
    let domain = find(room, tenant, which).await?;
    let known = room.hall.domains().get(domain.account, domain.id).await;
    known.map_err(|error| problem(error, room, tenant))
}

/// `PATCH /domains/{id_or_name}`.
///
/// # Errors
/// No such domain; what is wrong with the request; the store cannot be used.
pub async fn update(room: Arc<Room>, tenant: Tenant, input: UpdateDomain) -> Result<OneDomain, Problem> {
    let domain = find(&room, &tenant, &input.which).await?;
    if let Some(problem) = input.misfit(&domain.name) {
        return Err(problem);
    }
    let change = |domain: &mut Domain| input.apply(domain);
    let changed = room.hall.domains().change(domain.account, domain.id, change).await;
    let known = changed.map_err(|error| problem(error, &room, &tenant))?;
    Ok(one(&room, &known))
}

/// `DELETE /domains/{id_or_name}`.
///
/// # Errors
/// No such domain; emails from it are scheduled and it is not forced; the store cannot be used.
pub async fn delete(room: Arc<Room>, tenant: Tenant, input: DeleteDomain) -> Result<Done, Problem> {
    let domain = find(&room, &tenant, &input.which).await?;
    let domains = room.hall.domains();
    let failed = |error| problem(error, &room, &tenant);
    if !input.force && domains.has_scheduled(&domain).await.map_err(failed)? {
        let text = "Emails from this domain are scheduled; cancel them, or delete with ?force=true: they are held then, and fail when their time is up";
        return Err(Problem::new(Code::CONFLICT, text).details(json!({"reason": "pending_scheduled_emails"})));
    }
    domains.delete(domain.account, domain.id).await.map_err(failed)?;
    Ok(Done::OK)
}

/// `GET /domains/{id_or_name}/zone-file`.
///
/// # Errors
/// No such domain; the store cannot be read.
pub async fn zone(room: Arc<Room>, tenant: Tenant, OfDomain(which): OfDomain) -> Result<ZoneFile, Problem> {
    let known = know(&room, &tenant, &which).await?;
    let records = room.hall.domains().facts().records(&known.domain);
    let with_findings = records.iter().map(|record| (record, known.setup.of(record)));
    Ok(ZoneFile(zone_file(known.domain.name.as_str(), with_findings)))
}

/// `POST /domains/{id_or_name}/verify`.
///
/// # Errors
/// No such domain; the store cannot be used. That a record is not there is none.
pub async fn verify(room: Arc<Room>, tenant: Tenant, OfDomain(which): OfDomain) -> Result<Verified, Problem> {
    let domain = find(&room, &tenant, &which).await?;
    let looked = room.hall.domains().verify(domain.account, domain.id).await;
    let known = looked.map_err(|error| problem(error, &room, &tenant))?;
    Ok(Verified::of(&known, room.hall.domains()))
}

/// `POST /domains/{id_or_name}/dkim/rotate`.
///
/// # Errors
/// No such domain; the store cannot be used.
pub async fn rotate(
    room: Arc<Room>,
    tenant: Tenant,
    OfDomain(which): OfDomain,
) -> Result<OneDomain, Problem> {
    let domain = find(&room, &tenant, &which).await?;
    let turned = room.hall.domains().rotate(domain.account, domain.id).await;
    let known = turned.map_err(|error| problem(error, &room, &tenant))?;
    Ok(one(&room, &known))
}

/// `DELETE /domains/{id_or_name}/dkim/rotate`. Where no keys wait, nothing is done.
///
/// # Errors
/// No such domain; the store cannot be used.
pub async fn drop_rotation(
    room: Arc<Room>,
    tenant: Tenant,
    OfDomain(which): OfDomain,
) -> Result<OneDomain, Problem> {
    let domain = find(&room, &tenant, &which).await?;
    let dropped = room.hall.domains().drop_rotation(domain.account, domain.id).await;
    let known = dropped.map_err(|error| problem(error, &room, &tenant))?;
    Ok(one(&room, &known))
}
