//! Claims to domains that another account has.

use std::sync::Arc;

use mail::address::Name;
use mail::claim::{Block, Claim, ClaimStatus};
use mail::id::ClaimId;
use mail::quota::Noun;
use mail::setup::Finding;
use queue::domains::ClaimError;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use super::request;
use super::view::RecordView;
use super::{limit, problem};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::emails::view::Moment;
use crate::fields::{Names, Notes};
use crate::page::{KIND_CLAIM, Page, after_id};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

const ID: &str = "id";
const STATUSES: &[&str] = &["pending", "blocked", "verified", "completed", "expired", "cancelled"];
const BLOCKS: &[&str] = &["grace_period", "recent_owner_activity", "pending_scheduled_emails"];

fn no_such_claim() -> Problem {
    Problem::not_found("claim")
}

fn not_claimed(error: ClaimError, room: &Room, tenant: &Tenant) -> Problem {
    match error {
        ClaimError::Unknown => no_such_claim(),
        ClaimError::Free(name) => {
            Problem::new(Code::NOT_FOUND, format!("Nobody has {name}: add it with POST /domains"))
        }
        ClaimError::Ended(status) => {
            let word = serde_json::to_value(status).unwrap_or_default();
            let text = format!("The claim is {} already", word.as_str().unwrap_or("at its end"));
            Problem::new(Code::VALIDATION_ERROR, text).details(json!({"status": word}))
        }
        ClaimError::Domain(error) => problem(error, room, tenant),
    }
}

/// A claim.
#[derive(Debug, Serialize)]
struct ClaimView {
    id: ClaimId,
    name: Name,
    status: ClaimStatus,
    record: RecordView,
    blocked_reason: Option<Block>,
    grace_ends_at: Option<Moment>,
    created_at: Moment,
    expires_at: Moment,
}

impl ClaimView {
    fn of(room: &Room, claim: Claim, finding: Option<&Finding>) -> Self {
        let record = room.hall.domains().facts().ownership(claim.account, &claim.name);
        let status = claim.status_at(room.hall.clock().now());
        let is_open = claim.is_open() && status != ClaimStatus::Expired;
        Self {
            id: claim.id,
            status,
            record: RecordView::of(record, finding, None),
            blocked_reason: claim.block.filter(|_| is_open),
            grace_ends_at: claim.grace_ends_at().filter(|_| is_open).map(Moment),
            created_at: Moment(claim.created_at),
            expires_at: Moment(claim.expires_at()),
            name: claim.name,
        }
    }

    fn schema(schemas: &mut Schemas) -> Value {
        let record = RecordView::schema(schemas);
        let mut blocked = schema::words(BLOCKS, "What it waits for");
        schema::or_null(&mut blocked);
        schemas.named("DomainClaim", |_| {
            schema::object(
                "A claim to a domain that another account has",
                [
                    ("id", schema::string("`clm_…`")),
                    ("name", schema::string("The domain")),
                    ("status", schema::words(STATUSES, "How far it is")),
                    ("record", record),
                    ("blocked_reason", blocked),
                    ("grace_ends_at", schema::nullable_time("Until when the other account has time")),
                    ("created_at", schema::time("When it was made")),
                    ("expires_at", schema::time("When it ends, unless the domain is the account's by then")),
                ],
            )
        })
    }
}

/// A claim by itself.
#[derive(Debug, Serialize)]
pub struct OneClaim {
    claim: ClaimView,
}

impl OneClaim {
    fn of(room: &Room, claim: Claim, finding: Option<&Finding>) -> Self {
        Self { claim: ClaimView::of(room, claim, finding) }
    }
}

impl Describe for OneClaim {
    fn schema(schemas: &mut Schemas) -> Value {
        let claim = ClaimView::schema(schemas);
        schemas.named("OneDomainClaim", |_| schema::object("A claim", [("claim", claim)]))
    }
}

/// A page of claims.
#[derive(Debug, Serialize)]
pub struct ClaimList {
    claims: Vec<ClaimView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for ClaimList {
    fn schema(schemas: &mut Schemas) -> Value {
        let claim = ClaimView::schema(schemas);
        schemas.named("DomainClaimList", |_| schema::page("claims", claim))
    }
}

/// What `GET /domains/claims` takes.
#[derive(Debug)]
pub struct ListClaims(Page);

impl Input for ListClaims {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: Page::parameters(), ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Page::read(&call.query).map(Self)
    }
}

/// What `POST /domains/claims` takes.
#[derive(Debug)]
pub struct NewClaim(Name);

impl Input for NewClaim {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ClaimDomain", |_| {
            let mut name = schema::string("The domain");
            name["examples"] = serde_json::json!(["example.net"]);
            schema::object("What is claimed", [("name", name)])
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names =
            Names { known: &[("name", "name"), ("domain", "name")], foreign: &[("Name", "name")] };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        match request::name(&given, &mut notes) {
            Some(name) if notes.errors.is_empty() => Ok(Self(name)),
            _ => Err(notes.errors.into()),
        }
    }
}

/// A claim, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfClaim(ClaimId);

impl Input for OfClaim {
    fn describe(_: &mut Schemas) -> Takes {
        Takes {
            parameters: vec![schema::path_parameter(ID, "The claim's id (`clm_…`)")], ..Takes::default()
        }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| no_such_claim())
    }
}

/// `POST /domains/claims`. Who has an open claim to that name is answered with it.
///
/// # Errors
/// What is wrong with the request; nobody has the domain, or the account itself; the store cannot be used.
pub async fn claim(room: Arc<Room>, tenant: Tenant, NewClaim(name): NewClaim) -> Result<OneClaim, Problem> {
    let (domains, account) = (room.hall.domains(), tenant.account().id);
    let refused = |error| not_claimed(error, &room, &tenant);
    // One that is open is answered with, and a claim that cannot be made is refused, whatever room there is.
    let reserved = match domains.may_claim(account, &name).await.map_err(refused)? {
        Some(open) => return Ok(OneClaim::of(&room, open, None)),
        None => room.reserve(&tenant, Noun::DomainClaims, 1).await?,
    };
    let claim = domains.claim(account, name).await.map_err(refused)?;
    reserved.keep();
    Ok(OneClaim::of(&room, claim, None))
}

/// `GET /domains/claims`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    ListClaims(page): ListClaims,
) -> Result<ClaimList, Problem> {
    let before = page.before_id(KIND_CLAIM)?.map(ClaimId::from_bytes);
    let account = tenant.account().id;
    let mut claims = store::claim::list(room.hall.store(), account, before, page.limit + 1).await?;
    let has_more = claims.len() > page.limit;
    claims.truncate(page.limit);
    let last = claims.last().filter(|_| has_more).map(|claim| after_id(KIND_CLAIM, claim.id.to_bytes()));
    let claims = claims.into_iter().map(|claim| ClaimView::of(&room, claim, None)).collect();
    Ok(ClaimList { claims, has_more, next_cursor: last })
}

/// `POST /domains/claims/{id}/cancel`. One that was cancelled before stays so.
///
/// # Errors
/// No such claim; it has come to its end in another way; the store cannot be used.
pub async fn cancel(room: Arc<Room>, tenant: Tenant, OfClaim(id): OfClaim) -> Result<OneClaim, Problem> {
    let cancelled = room.hall.domains().cancel_claim(tenant.account().id, id).await;
    let claim = cancelled.map_err(|error| not_claimed(error, &room, &tenant))?;
    Ok(OneClaim::of(&room, claim, None))
}

/// `GET /domains/claims/{id}`.
///
/// # Errors
/// No such claim; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, OfClaim(id): OfClaim) -> Result<OneClaim, Problem> {
    let found = store::claim::get(room.hall.store(), tenant.account().id, id).await?;
    Ok(OneClaim::of(&room, found.ok_or_else(no_such_claim)?, None))
}

/// `POST /domains/claims/{id}/verify`.
///
/// # Errors
/// No such claim; the plan includes no more domains; the store cannot be used. That the record is not there is none.
pub async fn verify(room: Arc<Room>, tenant: Tenant, OfClaim(id): OfClaim) -> Result<OneClaim, Problem> {
    let limit = limit(&room, &tenant);
    let looked = room.hall.domains().verify_claim(tenant.account().id, id, limit).await;
    let claimed = looked.map_err(|error| not_claimed(error, &room, &tenant))?;
    Ok(OneClaim::of(&room, claimed.claim, claimed.finding.as_ref()))
}
