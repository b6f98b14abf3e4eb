//! `…/affiliate-commissions`: the lines of the ledger. They are written by the processor's events alone; what is done to
//! them here is that they are taken back, and, by the owner, brought back.

use std::sync::Arc;

use ::affiliate::ledger::Reversal;
use ::affiliate::object::CommissionObject;
use ::affiliate::office::nothing_beside;
use ::affiliate::refusal::Noun;
use mail::affiliate::commission::{Commission, Reason};
use store::access::Tenant;
use store::affiliate::commission::{CommissionStatus, Filter};

use serde_json::json;

use super::answer::{Begun, One, begin_own};
use super::asked::{Act, Change, Opened, Read};
use super::fields::{self, Fields, nullable_text_schema, word};
use super::view::{Listed, OneCommission};
use super::{OfCommission, filter, refused, several, wanted};
use crate::call::{Call, Input, Owner, SMALL_BYTES_MAX, Takes};
use crate::fields::Names;
use crate::page::{self, KIND_COMMISSION, Page, VALUES_MAX};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest note.
const NOTE_BYTES_MAX: usize = 1_000;
/// Why a line may be taken back by hand.
const REASONS: &[&str] = &[Reason::Manual.as_str(), Reason::Fraud.as_str()];

/// What `GET /affiliate-commissions` takes.
#[derive(Debug)]
pub struct ListCommissions {
    page: Page,
    filter: Filter,
}

impl Input for ListCommissions {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let mut currencies = schema::query_parameter(
            "currency",
            "Its currency; of several, with commas, one",
            json!({"type": "array", "maxItems": VALUES_MAX, "items": {"type": "string", "pattern": "^[A-Za-z]{3}$"}}),
        );
        (currencies["style"], currencies["explode"]) = (json!("form"), json!(false));
        let mut parameters = Page::parameters();
        parameters.extend([
            several("status", CommissionStatus::WORDS, "Where it stands; of several, one"),
            schema::query_parameter("affiliate_id", "Whose it is (`aff_…`)", text()),
            schema::query_parameter("referral_id", "By whom it came (`ref_…`)", text()),
            currencies,
            schema::time_parameter("created_after", "Only those made at this time or later"),
            schema::time_parameter("created_before", "Only those made before this time"),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let filter = Filter {
            statuses: page::words(&call.query, "status", CommissionStatus::WORDS, CommissionStatus::of_word)?,
            partner: filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            referral: filter(&given, "referral_id", "a referral's id (`ref_…`)")?,
            currencies: page::values(&given, "currency", "a currency, three letters")?,
            payout: None,
            created_after: page::time(&given, "created_after")?,
            created_before: page::time(&given, "created_before")?,
        };
        Ok(Self { page: Page::read(&call.query)?, filter })
    }
}

/// `GET /affiliate-commissions`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListCommissions>,
) -> Result<Listed<CommissionObject>, Problem> {
    let said = asked.open(&room, &tenant).await?.said;
    let wanted = wanted(&said.page, KIND_COMMISSION)?;
    let account = tenant.account().id;
    let found =
        store::affiliate::commission::list(room.affiliate.store(), account, &said.filter, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_COMMISSION, id));
    Ok(Listed::of(found.rows.iter().map(CommissionObject::from).collect(), next))
}

fn one(line: &Commission) -> One<OneCommission> {
    One::of(&OneCommission { commission: CommissionObject::from(line) }).at(line.rev)
}

/// `GET /affiliate-commissions/{id}`.
///
/// # Errors
/// No such commission; the store cannot be read.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<OfCommission>,
) -> Result<One<OneCommission>, Problem> {
    let id = asked.open(&room, &tenant).await?.said.id(Noun::Commission)?;
    let found = store::affiliate::commission::get(room.affiliate.store(), tenant.account().id, id).await?;
    found.as_ref().map(one).ok_or_else(|| Problem::not_found(Noun::Commission.as_str()))
}

/// What `PATCH /affiliate-commissions/{id}` takes.
#[derive(Debug)]
pub struct Reverse {
    of: OfCommission,
    reason: Reason,
    note: Option<String>,
}

impl Input for Reverse {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ReverseAffiliateCommission", |_| {
            let mut reason = schema::words(REASONS, "Why; with `fraud` the recruiter's share goes too");
            reason["default"] = json!(Reason::Manual.as_str());
            let fields = [
                ("status", json!({"type": "string", "const": "reversed", "description": "It is taken back"})),
                ("reason", reason),
                (
                    "note",
                    nullable_text_schema(NOTE_BYTES_MAX, "What your team says of it; told with the event"),
                ),
            ];
            let mut schema = schema::object_with("A commission is taken back", &["status"], fields);
            schema["examples"] = json!([{"status": "reversed", "reason": "fraud", "note": "stolen card"}]);
            schema
        });
        Takes {
            parameters: vec![OfCommission::parameter()],
            body: Some(body),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("status", "reason", "note");
        let mut given = Fields::of(call, &NAMES)?;
        given.need("status");
        given.take("status", |value| word(&["reversed"], |text| (text == "reversed").then_some(()), value));
        let of_word = |text: &str| Reason::of_word(text).filter(|reason| REASONS.contains(&reason.as_str()));
        let reason = given.take("reason", |value| word(REASONS, of_word, value));
        let note = given.change("note", |value| fields::lines(value, NOTE_BYTES_MAX)).flatten();
        given.end()?;
        let note = note.filter(|note| !note.trim().is_empty());
        Ok(Self { of: OfCommission::of(call), reason: reason.unwrap_or(Reason::Manual), note })
    }
}

/// `PATCH /affiliate-commissions/{id}`: a commission is taken back. One that is so already stays as it is.
///
/// # Errors
/// What is wrong with it; it is paid or in a payout; it was changed meanwhile; no such commission.
pub async fn reverse(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Change<Reverse>,
) -> Result<One<OneCommission>, Problem> {
    let Opened { program, said: Reverse { of, reason, note }, seen, .. } = asked.open(&room, &tenant).await?;
    let of = (program.account, of.id(Noun::Commission)?);
    let reversal = Reversal { reason, note, seen };
    let done = room.affiliate.ledger().reverse(of, &reversal, &nothing_beside).await;
    done.map(|line| one(&line)).map_err(|refusal| refused(&room, refusal))
}

/// `POST /dashboard/api/affiliate-program/commissions/{id}/reinstate`.
///
/// # Errors
/// It was not taken back, or its referral earns nothing; no such commission.
pub async fn reinstate(
    room: Arc<Room>,
    owner: Owner,
    asked: Act<OfCommission>,
) -> Result<One<OneCommission>, Problem> {
    let Opened { program, said, seen, claim } = asked.open_any(&room, owner.tenant()).await?;
    let of = (program.account, said.id(Noun::Commission)?);
    let doing = match begin_own(&room, &owner, "reinstate_affiliate_commission", claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let done = room.affiliate.ledger().reinstate(of, seen.as_ref(), &keep).await;
    drop(keep);
    doing.end(&room, done, one).await
}
