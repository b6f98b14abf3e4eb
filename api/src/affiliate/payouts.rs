//! `…/affiliate-payouts`: what partners are paid; and for the owner that a payout failed.

use std::sync::Arc;

use ::affiliate::object::PayoutObject;
use ::affiliate::payouts::{ShownPayout, Wish};
use ::affiliate::refusal::Noun;
use mail::affiliate::payout::PayoutStatus;
use mail::idempotency::Operation;
use serde_json::json;
use store::access::Tenant;

use super::answer::{Begun, One, begin, begin_own};
use super::asked::{Act, Opened, Read};
use super::fields::{Fields, text_schema};
use super::payout_view::OnePayout;
use super::view::Listed;
use super::{OfPayout, filter, refused, several, wanted};
use crate::call::{Call, Input, Owner, SMALL_BYTES_MAX, Takes};
use crate::fields::{self, Names};
use crate::page::{self, KIND_PAYOUT, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest reference, in characters.
const REFERENCE_CHARS_MAX: usize = 200;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What `GET /affiliate-payouts` takes.
#[derive(Debug)]
pub struct ListPayouts {
    page: Page,
    wish: Wish,
}

impl Input for ListPayouts {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let mut parameters = Page::parameters();
        parameters.extend([
            several("status", PayoutStatus::WORDS, "Where it stands; of several, one"),
            schema::query_parameter("affiliate_id", "Who gets it (`aff_…`)", text()),
            schema::query_parameter("run_id", "The run that it is in (`prn_…`)", text()),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let wish = Wish {
            statuses: page::words(&call.query, "status", PayoutStatus::WORDS, PayoutStatus::of_word)?,
            partner: filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            run: filter(&given, "run_id", "a payout run's id (`prn_…`)")?,
        };
        Ok(Self { page: Page::read(&call.query)?, wish })
    }
}

/// `GET /affiliate-payouts`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListPayouts>,
) -> Result<Listed<PayoutObject>, Problem> {
    let said = asked.open(&room, &tenant).await?.said;
    let wanted = wanted(&said.page, KIND_PAYOUT)?;
    let found = room.affiliate.ledger().payouts(tenant.account().id, &said.wish, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_PAYOUT, id));
    Ok(Listed::of(found.payouts.iter().map(PayoutObject::from).collect(), next))
}

fn one(shown: &ShownPayout) -> One<OnePayout> {
    One::of(&OnePayout { payout: PayoutObject::from(shown) }).at(shown.rev())
}

/// `GET /affiliate-payouts/{id}`.
///
/// # Errors
/// No such payout; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, asked: Read<OfPayout>) -> Result<One<OnePayout>, Problem> {
    let id = asked.open(&room, &tenant).await?.said.id(Noun::Payout)?;
    let found = room.affiliate.ledger().payout(tenant.account().id, id).await;
    found.map(|shown| one(&shown)).map_err(|refusal| refused(&room, refusal))
}

/// Reads the one text of a body.
fn said(call: &Call, (name, chars_max): (&'static str, usize), names: &Names) -> Result<String, Problem> {
    let mut given = Fields::of(call, names)?;
    given.need(name);
    let text = given.take(name, |value| {
        // Of four bytes each at most.
        let text = fields::line(value, 4 * chars_max)?.trim().to_owned();
        match text.chars().count() {
            0 => Err("must not be empty".to_owned()),
            n if n > chars_max => Err(format!("has more than {chars_max} characters")),
            _ => Ok(text),
        }
    });
    given.end()?;
    text.ok_or_else(|| Problem::field(name, "is required"))
}

/// What `POST /affiliate-payouts/{id}/mark-paid` takes.
#[derive(Debug)]
pub struct MarkPaid {
    of: OfPayout,
    reference: String,
}

impl Input for MarkPaid {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("MarkAffiliatePayoutPaid", |_| {
            let mut reference = text_schema(REFERENCE_CHARS_MAX, "What proves it: the number of the payment");
            reference["minLength"] = json!(1);
            reference["pattern"] = json!("\\S");
            let about = "A payout was paid by hand";
            let mut schema = schema::object_with(about, &["reference"], [("reference", reference)]);
            schema["examples"] = json!([{"reference": "PAYPAL-BATCH-7"}]);
            schema
        });
        let parameters = vec![OfPayout::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("reference");
        let reference = said(call, ("reference", REFERENCE_CHARS_MAX), &NAMES)?;
        Ok(Self { of: OfPayout::of(call), reference })
    }
}

/// `POST /affiliate-payouts/{id}/mark-paid`.
///
/// # Errors
/// What is wrong with it; the run is not approved; it was paid with another reference; the processor pays it.
pub async fn mark_paid(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Act<MarkPaid>,
) -> Result<One<OnePayout>, Problem> {
    let Opened { program, said, seen, claim } = asked.open(&room, &tenant).await?;
    let id = said.of.id(Noun::Payout)?;
    let doing = match begin(&room, &tenant, Operation::MarkPaid, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let ledger = room.affiliate.ledger();
    let done = ledger.mark_paid((program.account, id), (&said.reference, seen.as_ref()), &keep).await;
    drop(keep);
    doing.end(&room, done, one).await
}

/// What `POST …/payouts/{id}/fail` takes.
#[derive(Debug)]
pub struct Fail {
    of: OfPayout,
    reason: String,
}

impl Input for Fail {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("FailAffiliatePayout", |_| {
            let mut reason = text_schema(REASON_CHARS_MAX, "Why");
            reason["minLength"] = json!(1);
            reason["pattern"] = json!("\\S");
            let mut schema =
                schema::object_with("A payout did not reach its partner", &["reason"], [("reason", reason)]);
            schema["examples"] = json!([{"reason": "The account is closed"}]);
            schema
        });
        let parameters = vec![OfPayout::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("reason");
        let reason = said(call, ("reason", REASON_CHARS_MAX), &NAMES)?;
        Ok(Self { of: OfPayout::of(call), reason })
    }
}

/// `POST …/payouts/{id}/fail`.
///
/// # Errors
/// What is wrong with it; the payout is not under way; the processor may be transferring it.
pub async fn fail(room: Arc<Room>, owner: Owner, asked: Act<Fail>) -> Result<One<OnePayout>, Problem> {
    let Opened { program, said, seen, claim } = asked.open_any(&room, owner.tenant()).await?;
    let of = (program.account, said.of.id(Noun::Payout)?);
    let doing = match begin_own(&room, &owner, "fail_affiliate_payout", claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let failed = room.affiliate.ledger().fail_payout(of, (&said.reason, seen.as_ref()), &keep).await;
    drop(keep);
    doing.end(&room, failed, one).await
}
