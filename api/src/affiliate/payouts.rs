//! `…/affiliate-payouts`: what partners are paid; and for the owner that a payout failed.

use std::sync::Arc;

use ::affiliate::object::PayoutObject;
use ::affiliate::payouts::{PayoutQuery, PayoutView};
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::payout::PayoutStatus;
use mail::idempotency::IdempotencyScope;
use serde_json::json;
use store::access::Tenant;

use super::answer::{BeginDecision, VersionedResponse, begin_for_owner, begin_for_tenant};
use super::asked::{ActionRequest, ReadRequest, ResolvedRequest};
use super::fields::{BodyFieldReader, text_schema};
use super::payout_view::PayoutResponse;
use super::view::ListResponse;
use super::{PayoutPath, list_filter_parameter, page_query, parse_filter, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::{self, FieldNames};
use crate::page::{self, KIND_PAYOUT, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest reference, in characters.
const REFERENCE_CHARS_MAX: usize = 200;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What `GET /affiliate-payouts` takes.
#[derive(Debug)]
pub struct ListPayouts {
    page: PageParameters,
    wish: PayoutQuery,
}

impl FromRequest for ListPayouts {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = || json!({"type": "string"});
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", PayoutStatus::WORDS, "Where it stands; of several, one"),
            schema::query_parameter("affiliate_id", "Who gets it (`aff_…`)", text()),
            schema::query_parameter("run_id", "The run that it is in (`prn_…`)", text()),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let wish = PayoutQuery {
            statuses: page::parse_words(&call.query, "status", PayoutStatus::WORDS, PayoutStatus::from_word)?,
            partner: parse_filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            run: parse_filter(&given, "run_id", "a payout run's id (`prn_…`)")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, wish })
    }
}

/// `GET /affiliate-payouts`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListPayouts>,
) -> Result<ListResponse<PayoutObject>, Problem> {
    let said = asked.require_set_up_program(&room, &tenant).await?.input;
    let wanted = page_query(&said.page, KIND_PAYOUT)?;
    let found = room.affiliate.ledger().list_payouts(tenant.account().id, &said.wish, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_PAYOUT, id));
    Ok(ListResponse::new(found.payouts.iter().map(PayoutObject::from).collect(), next))
}

fn payout_response(shown: &PayoutView) -> VersionedResponse<PayoutResponse> {
    VersionedResponse::new(&PayoutResponse { payout: PayoutObject::from(shown) }).with_etag(shown.rev())
}

/// `GET /affiliate-payouts/{id}`.
///
/// # Errors
/// No such payout; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<PayoutPath>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let id = asked.require_set_up_program(&room, &tenant).await?.input.id(AffiliateNoun::Payout)?;
    let found = room.affiliate.ledger().get_payout(tenant.account().id, id).await;
    found.map(|shown| payout_response(&shown)).map_err(|refusal| refusal_problem(&room, refusal))
}

/// Reads the one text of a body.
fn read_single_text(
    call: &Request,
    (name, chars_max): (&'static str, usize),
    names: &FieldNames,
) -> Result<String, Problem> {
    let mut given = BodyFieldReader::from_body(call, names)?;
    given.require(name);
    let text = given.read_optional(name, |value| {
        // Of four bytes each at most.
        let text = fields::parse_header_line(value, 4 * chars_max)?.trim().to_owned();
        match text.chars().count() {
            0 => Err("must not be empty".to_owned()),
            n if n > chars_max => Err(format!("has more than {chars_max} characters")),
            _ => Ok(text),
        }
    });
    given.finish()?;
    text.ok_or_else(|| Problem::field(name, "is required"))
}

/// What `POST /affiliate-payouts/{id}/mark-paid` takes.
#[derive(Debug)]
pub struct MarkPayoutPaid {
    payout: PayoutPath,
    reference: String,
}

impl FromRequest for MarkPayoutPaid {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("MarkAffiliatePayoutPaid", |_| {
            let mut reference = text_schema(REFERENCE_CHARS_MAX, "What proves it: the number of the payment");
            reference["minLength"] = json!(1);
            reference["pattern"] = json!("\\S");
            let about = "A payout was paid by hand";
            let mut schema = schema::object_with(about, &["reference"], [("reference", reference)]);
            schema["examples"] = json!([{"reference": "PAYPAL-BATCH-7"}]);
            schema
        });
        let parameters = vec![PayoutPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reference");
        let reference = read_single_text(call, ("reference", REFERENCE_CHARS_MAX), &NAMES)?;
        Ok(Self { payout: PayoutPath::of(call), reference })
    }
}

/// `POST /affiliate-payouts/{id}/mark-paid`.
///
/// # Errors
/// What is wrong with it; the run is not approved; it was paid with another reference; the processor pays it.
pub async fn mark_paid(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ActionRequest<MarkPayoutPaid>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let ResolvedRequest { program, input: said, if_match: seen, claim } =
        asked.require_set_up_program(&room, &tenant).await?;
    let id = said.payout.id(AffiliateNoun::Payout)?;
    let doing = match begin_for_tenant(&room, &tenant, IdempotencyScope::MarkPaid, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(payout_response);
    let ledger = room.affiliate.ledger();
    let done = ledger.mark_paid((program.account, id), (&said.reference, seen.as_ref()), &keep).await;
    drop(keep);
    doing.finish(&room, done, payout_response).await
}

/// What `POST …/payouts/{id}/fail` takes.
#[derive(Debug)]
pub struct FailPayout {
    payout: PayoutPath,
    reason: String,
}

impl FromRequest for FailPayout {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("FailAffiliatePayout", |_| {
            let mut reason = text_schema(REASON_CHARS_MAX, "Why");
            reason["minLength"] = json!(1);
            reason["pattern"] = json!("\\S");
            let mut schema =
                schema::object_with("A payout did not reach its partner", &["reason"], [("reason", reason)]);
            schema["examples"] = json!([{"reason": "The account is closed"}]);
            schema
        });
        let parameters = vec![PayoutPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reason");
        let reason = read_single_text(call, ("reason", REASON_CHARS_MAX), &NAMES)?;
        Ok(Self { payout: PayoutPath::of(call), reason })
    }
}

/// `POST …/payouts/{id}/fail`.
///
/// # Errors
/// What is wrong with it; the payout is not under way; the processor may be transferring it.
pub async fn fail(
    room: Arc<AppState>,
    owner: Owner,
    asked: ActionRequest<FailPayout>,
) -> Result<VersionedResponse<PayoutResponse>, Problem> {
    let ResolvedRequest { program, input: said, if_match: seen, claim } =
        asked.require_program(&room, owner.tenant()).await?;
    let of = (program.account, said.payout.id(AffiliateNoun::Payout)?);
    let doing = match begin_for_owner(&room, &owner, "fail_affiliate_payout", claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(payout_response);
    let failed = room.affiliate.ledger().fail_payout(of, (&said.reason, seen.as_ref()), &keep).await;
    drop(keep);
    doing.finish(&room, failed, payout_response).await
}
