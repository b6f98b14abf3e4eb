//! `…/affiliate-referrals`: persons whom partners brought.

use std::sync::Arc;

use ::affiliate::object::ReferralObject;
use ::affiliate::referrals::{Bringer, ReferralDraft, Referred};
use ::affiliate::refusal::Noun;
use http::StatusCode;
use mail::address::Address;
use mail::affiliate::partner::Token;
use mail::affiliate::referral::{ReferralSource, ReferralStatus};
use mail::idempotency::Operation;
use serde_json::json;
use store::access::Tenant;
use store::affiliate::referral::Filter;

use super::answer::{Begun, One, begin};
use super::asked::{Make, Opened, Read};
use super::fields::{Fields, nullable_text_schema, parsed, text_schema};
use super::view::{Listed, OneReferral, ToldReferral};
use super::{OfReferral, filter, refused, several, wanted};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::fields::Names;
use crate::page::{self, KIND_REFERRAL, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest id of a customer: what the processor's ids have.
const CUSTOMER_BYTES_MAX: usize = 255;
/// The longest tag of a partner.
const SUB_ID_BYTES_MAX: usize = 255;
/// A name of a partner that is longer is nobody's.
const NAMED_BYTES_MAX: usize = 100;

/// What `GET /affiliate-referrals` takes.
#[derive(Debug)]
pub struct ListReferrals {
    page: Page,
    filter: Filter,
}

impl Input for ListReferrals {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        parameters.extend([
            several("status", ReferralStatus::WORDS, "Where it stands; of several, one"),
            several("source", ReferralSource::WORDS, "By which way it came; of several, one"),
            schema::query_parameter("affiliate_id", "Who brought it (`aff_…`)", json!({"type": "string"})),
            schema::query_parameter(
                "email",
                "Who it is, exactly; case does not count",
                json!({"type": "string", "format": "email"}),
            ),
            schema::time_parameter("created_after", "Only those made at this time or later"),
            schema::time_parameter("created_before", "Only those made before this time"),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let filter = Filter {
            statuses: page::words(&call.query, "status", ReferralStatus::WORDS, ReferralStatus::of_word)?,
            sources: page::words(&call.query, "source", ReferralSource::WORDS, ReferralSource::of_word)?,
            partner: filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            email: filter(&given, "email", "an email address")?,
            created_after: page::time(&given, "created_after")?,
            created_before: page::time(&given, "created_before")?,
        };
        Ok(Self { page: Page::read(&call.query)?, filter })
    }
}

/// `GET /affiliate-referrals`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListReferrals>,
) -> Result<Listed<ReferralObject>, Problem> {
    let said = asked.open(&room, &tenant).await?.said;
    let wanted = wanted(&said.page, KIND_REFERRAL)?;
    let found = room.affiliate.referrals(tenant.account().id, &said.filter, wanted).await;
    let found = found.map_err(|refusal| refused(&room, refusal))?;
    let next = found.next.map(|id| page::after_id(KIND_REFERRAL, id));
    Ok(Listed::of(found.rows.iter().map(ReferralObject::from).collect(), next))
}

/// `GET /affiliate-referrals/{id}`.
///
/// # Errors
/// No such referral; the store cannot be read.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<OfReferral>,
) -> Result<One<OneReferral>, Problem> {
    let id = asked.open(&room, &tenant).await?.said.id(Noun::Referral)?;
    let found = room.affiliate.referral(tenant.account().id, id).await;
    let referral = found.map_err(|refusal| refused(&room, refusal))?;
    Ok(One::of(&OneReferral { referral: ReferralObject::from(&referral) }).at(referral.rev))
}

/// What `POST /affiliate-referrals` takes.
#[derive(Debug)]
pub struct CreateReferral(ReferralDraft);

impl Input for CreateReferral {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CreateAffiliateReferral", |_| {
            let fields = [
                ("email", json!({"type": "string", "format": "email", "description": "Who it is"})),
                (
                    "affiliate_id",
                    text_schema(NAMED_BYTES_MAX, "Who brought the person (`aff_…`); this or `token`"),
                ),
                ("token", text_schema(NAMED_BYTES_MAX, "The token of one of the partner's links")),
                (
                    "processor_customer_id",
                    nullable_text_schema(
                        CUSTOMER_BYTES_MAX,
                        "The processor's id of the customer: ties later payments to the referral",
                    ),
                ),
                ("sub_id", nullable_text_schema(SUB_ID_BYTES_MAX, "A tag for reports")),
            ];
            let mut schema = schema::object_with(
                "A person whom a partner brought; `affiliate_id` or `token` says which",
                &["email"],
                fields,
            );
            schema["examples"] = json!([{"token": "ada", "email": "grace@example.net", "sub_id": "spring"}]);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("affiliate_id", "token", "email", "processor_customer_id", "sub_id");
        let mut given = Fields::of(call, &NAMES)?;
        let by = (
            given.words("affiliate_id", NAMED_BYTES_MAX).flatten(),
            given.words("token", NAMED_BYTES_MAX).flatten(),
        );
        match (given.has("affiliate_id"), given.has("token")) {
            (true, true) => given.wrong("token", "is not given together with `affiliate_id`"),
            (false, false) => given.wrong("affiliate_id", "is required, or `token`"),
            (true, false) if by.0.is_none() => given.wrong("affiliate_id", "is empty"),
            (false, true) if by.1.is_none() => given.wrong("token", "is empty"),
            _ => {}
        }
        given.need("email");
        let email = given.take("email", parsed::<Address>);
        let customer = given.words("processor_customer_id", CUSTOMER_BYTES_MAX).flatten();
        let sub_id = given.words("sub_id", SUB_ID_BYTES_MAX).flatten();
        given.end()?;
        let email = email.ok_or_else(|| Problem::field("email", "is required"))?;
        let by = match by {
            (Some(id), _) => id.parse().map_or(Bringer::Nobody, Bringer::Id),
            (None, Some(token)) => Token::exactly(&token).map_or(Bringer::Nobody, Bringer::Token),
            (None, None) => Bringer::Nobody,
        };
        Ok(Self(ReferralDraft { by, email, customer, sub_id }))
    }
}

fn told(referred: &Referred) -> One<ToldReferral> {
    let Referred { referral, created } = referred;
    let status = if *created { StatusCode::CREATED } else { StatusCode::OK };
    let told = ToldReferral { referral: ReferralObject::from(referral), created: *created };
    One::of(&told).with(status).at(referral.rev)
}

/// `POST /affiliate-referrals`.
///
/// # Errors
/// What is wrong with it; the program is not live; no active partner has that id or token.
pub async fn create(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Make<CreateReferral>,
) -> Result<One<ToldReferral>, Problem> {
    let Opened { said, claim, .. } = asked.open(&room, &tenant).await?;
    let doing = match begin(&room, &tenant, Operation::CreateReferral, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(told);
    let done = room.affiliate.refer(tenant.account().id, &said.0, &keep).await;
    drop(keep);
    doing.end(&room, done, told).await
}
