//! `…/affiliates`: partners.

use std::sync::Arc;

use ::affiliate::office::Seen;
use ::affiliate::partners::{Moving, PartnerChange, PartnerDraft, Shown, Wish};
use ::affiliate::refusal::Noun;
use mail::address::Address;
use mail::affiliate::money::BasisPoints;
use mail::affiliate::particulars::{self, NAME_BYTES_MAX, NOTES_BYTES_MAX, TAG_BYTES_MAX, WEBSITE_BYTES_MAX};
use mail::affiliate::partner::{Move, PartnerSource, PartnerStatus, TAGS_MAX, TOKEN_BYTES, Token};
use mail::idempotency::Operation;
use queue::courier::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::access::Tenant;

use super::answer::{Begun, One, begin};
use super::asked::{Act, Change, Make, Opened, Read};
use super::fields::{Fields, bps, lines, nullable_text_schema, parsed, text_schema, word};
use super::view::{Listed, Made, OnePartner, override_schema};
use super::{OfPartner, filter, refused, several, wanted};
use crate::call::{Call, Input, Media, SMALL_BYTES_MAX, Takes};
use crate::done::Done;
use crate::fields::{self, Names};
use crate::page::{self, KIND_PARTNER, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The longest reason.
const REASON_BYTES_MAX: usize = 1_000;
/// In which standing a partner begins.
const BEGINS: &[&str] = &["active", "pending", "invited"];

fn one(shown: &Shown) -> One<OnePartner> {
    One::of(&OnePartner::of(shown)).at(shown.partner.rev)
}

fn made(shown: &Shown) -> One<Made<OnePartner>> {
    One::of(&OnePartner::of(shown)).at(shown.partner.rev)
}

/// What `GET /affiliates` takes.
#[derive(Debug)]
pub struct ListPartners {
    page: Page,
    wish: Wish,
}

impl Input for ListPartners {
    fn describe(_: &mut Schemas) -> Takes {
        let text = |name, about| schema::query_parameter(name, about, json!({"type": "string"}));
        let mut parameters = Page::parameters();
        parameters.extend([
            several("status", PartnerStatus::WORDS, "Where it stands; of several, one"),
            text("campaign_id", "Its campaign, by id (`cmp_…`) or name"),
            schema::query_parameter(
                "email",
                "Its address, exactly; case does not count",
                json!({"type": "string", "format": "email"}),
            ),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let wish = Wish {
            statuses: page::words(&call.query, "status", PartnerStatus::WORDS, PartnerStatus::of_word)?,
            campaign: page::one(&given, "campaign_id")?.map(str::to_owned),
            email: filter(&given, "email", "an email address")?,
        };
        Ok(Self { page: Page::read(&call.query)?, wish })
    }
}

/// `GET /affiliates`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<ListPartners>,
) -> Result<Listed<::affiliate::object::PartnerObject>, Problem> {
    let Opened { program, said, .. } = asked.open(&room, &tenant).await?;
    let wanted = wanted(&said.page, KIND_PARTNER)?;
    let found = room.affiliate.partners(&program, &said.wish, wanted).await;
    let found = found.map_err(|refusal| refused(&room, refusal))?;
    let next = found.next.map(|id| page::after_id(KIND_PARTNER, id));
    Ok(Listed::of(found.partners.iter().map(Shown::object).collect(), next))
}

/// `GET /affiliates/{id}`.
///
/// # Errors
/// No such partner; the store cannot be read.
pub async fn get(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Read<OfPartner>,
) -> Result<One<OnePartner>, Problem> {
    let id = asked.open(&room, &tenant).await?.said.id(Noun::Partner)?;
    let shown = room.affiliate.show_partner(tenant.account().id, id).await;
    shown.map(|shown| one(&shown)).map_err(|refusal| refused(&room, refusal))
}

fn token(value: &RawValue) -> Result<Token, String> {
    parsed_token(&fields::text(value)?)
}

pub(super) fn parsed_token(text: &str) -> Result<Token, String> {
    Token::exactly(text).map_err(|why| why.to_string())
}

pub(super) fn token_schema(description: &str) -> Value {
    json!({
        "type": "string", "minLength": TOKEN_BYTES.start(), "maxLength": TOKEN_BYTES.end(),
        "pattern": "^[A-Za-z0-9_-]+$", "description": description,
    })
}

fn country(value: &RawValue) -> Result<String, String> {
    let text = fields::text(value)?;
    if text.len() != 2 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err("must be two letters (ISO 3166-1), like `DE`".to_owned());
    }
    Ok(text.to_ascii_uppercase())
}

fn tags(value: &RawValue) -> Result<Vec<String>, String> {
    let mut tags: Vec<String> = Vec::new();
    for entry in fields::list(value, TAGS_MAX)? {
        let tag = fields::line(entry, TAG_BYTES_MAX)?.trim().to_owned();
        if tag.is_empty() {
            return Err("has an empty entry".to_owned());
        }
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// A website that null, or nothing in it, takes away.
fn website(given: &mut Fields<'_>) -> Option<Option<String>> {
    let text = given.words("website", WEBSITE_BYTES_MAX)?;
    let read = text.map(|text| particulars::website(&text)).transpose();
    read.map_err(|why| given.wrong("website", why)).ok()
}

fn notes(value: &RawValue) -> Result<String, String> {
    lines(value, NOTES_BYTES_MAX)
}

/// The fields that a partner is made with and changed by alike.
fn common_schema() -> Vec<(&'static str, Value)> {
    let name = |description| nullable_text_schema(NAME_BYTES_MAX, description);
    let mut tags = schema::list(
        json!({"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX, "pattern": "\\S"}),
        "The owner's words for it",
    );
    tags["maxItems"] = json!(TAGS_MAX);
    vec![
        ("first_name", name("The given name")),
        ("last_name", name("The family name")),
        ("company", name("The company")),
        ("website", nullable_text_schema(WEBSITE_BYTES_MAX, "The website; `https://` may be left out")),
        (
            "country",
            json!({"type": ["string", "null"], "pattern": "^[A-Za-z]{2}$", "description": "Two letters (ISO 3166-1)"}),
        ),
        ("campaign_id", text_schema(NAME_BYTES_MAX, "Its campaign, by id (`cmp_…`) or name")),
        ("tags", tags),
        ("notes", nullable_text_schema(NOTES_BYTES_MAX, "Private notes")),
    ]
}

/// Fields that a change takes, and the creation does not.
const OF_CHANGES: &[&str] = &["parent_affiliate_id", "postback_url", "email_opt_out", "commission_override"];

/// What `POST /affiliates` takes.
#[derive(Debug)]
pub struct CreatePartner(PartnerDraft);

impl Input for CreatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CreateAffiliate", |_| {
            let address = |about: &str| json!({"type": "string", "format": "email", "description": about});
            let mut fields = vec![("email", address("Who it is"))];
            fields.extend(common_schema());
            fields.extend([
                ("token", token_schema("The token of its link, exactly; made of the name when left out")),
                ("status", schema::words(BEGINS, "Where it stands at first; active")),
                ("paypal_email", address("Where PayPal payouts go")),
                ("send_invite", schema::boolean("Whether it is written to; true")),
            ]);
            let mut schema = schema::object_with("A partner to be added", &["email"], fields);
            schema["examples"] = json!([{
                "email": "ada@example.org", "first_name": "Ada", "last_name": "Lovelace", "country": "GB",
                "tags": ["podcast"], "send_invite": false,
            }]);
            schema
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!(
            "email",
            "first_name",
            "last_name",
            "company",
            "website",
            "country",
            "campaign_id",
            "token",
            "status",
            "paypal_email",
            "tags",
            "notes",
            "send_invite",
            "parent_affiliate_id",
            "postback_url",
            "email_opt_out",
            "commission_override",
        );
        let mut given = Fields::of(call, &NAMES)?;
        given.refuse(OF_CHANGES, "is not taken here: set it with `PATCH /affiliates/{id}`");
        given.need("email");
        let email = given.take("email", parsed::<Address>);
        let first_name = given.words("first_name", NAME_BYTES_MAX).flatten();
        let last_name = given.words("last_name", NAME_BYTES_MAX).flatten();
        let company = given.words("company", NAME_BYTES_MAX).flatten();
        let website = website(&mut given).flatten();
        let country = given.take("country", country);
        let campaign = given.words("campaign_id", NAME_BYTES_MAX).flatten();
        let token = given.take("token", token);
        let begins = |text: &str| PartnerStatus::of_word(text).filter(|_| BEGINS.contains(&text));
        let status = given.take("status", |value| word(BEGINS, begins, value));
        let paypal_email = given.take("paypal_email", parsed::<Address>);
        let tags = given.take("tags", tags).unwrap_or_default();
        let notes = given.take("notes", notes).filter(|notes| !notes.is_empty());
        let send_invite = given.take("send_invite", fields::boolean).unwrap_or(true);
        given.end()?;
        let email = email.ok_or_else(|| Problem::field("email", "is required"))?;
        Ok(Self(PartnerDraft {
            email,
            first_name,
            last_name,
            company,
            website,
            country,
            campaign,
            token,
            status: status.unwrap_or(PartnerStatus::Active),
            paypal_email,
            tags,
            notes,
            source: PartnerSource::Api,
            parent: None,
            send_invite,
            terms_accepted: false,
        }))
    }
}

/// `POST /affiliates`.
///
/// # Errors
/// What is wrong with it; the address or the token is another partner's.
pub async fn create(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Make<CreatePartner>,
) -> Result<One<Made<OnePartner>>, Problem> {
    let Opened { said, claim, .. } = asked.open(&room, &tenant).await?;
    let doing = match begin(&room, &tenant, Operation::CreatePartner, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(made);
    let done = room.affiliate.create_partner(tenant.account().id, &said.0, &keep).await;
    drop(keep);
    doing.end(&room, done, made).await
}

/// What `PATCH /affiliates/{id}` takes.
#[derive(Debug)]
pub struct ChangePartner(OfPartner, PartnerChange);

impl Input for ChangePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("UpdateAffiliate", |_| {
            let mut own_rate = override_schema();
            schema::or_null(&mut own_rate);
            let mut fields = common_schema();
            fields.extend([
                ("parent_affiliate_id", schema::nullable_string("Who recruited it (`aff_…`)")),
                ("postback_url", nullable_text_schema(URL_BYTES_MAX, "Where its own events are posted to")),
                ("email_opt_out", schema::boolean("Whether it wants no mail but what it asks for")),
                ("commission_override", own_rate),
                (
                    "token",
                    token_schema("The new token of its primary link; the old one leads nobody any more"),
                ),
            ]);
            let mut schema = schema::object_with("What changes about a partner", &[], fields);
            schema["examples"] = json!([{
                "company": "Analytical Engines", "tags": ["podcast", "friend"],
                "commission_override": {"commission_type": "percent", "commission_bps": 3000},
            }]);
            schema
        });
        let parameters = vec![OfPartner::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!(
            "first_name",
            "last_name",
            "company",
            "website",
            "country",
            "notes",
            "tags",
            "campaign_id",
            "parent_affiliate_id",
            "postback_url",
            "email_opt_out",
            "commission_override",
            "token",
            "status",
            "email",
            "paypal_email",
            "send_invite",
        );
        let mut given = Fields::of(call, &NAMES)?;
        given.refuse(
            &["status"],
            "is not changed here: use `POST /affiliates/{id}/approve`, `/reject` or `/suspend`",
        );
        given.refuse(&["email", "send_invite"], "is taken by `POST /affiliates` alone: it cannot be changed");
        given.refuse(
            &["paypal_email"],
            "is taken by `POST /affiliates` alone: afterwards the partner changes it in the portal",
        );
        let mut change = PartnerChange {
            first_name: given.words("first_name", NAME_BYTES_MAX),
            last_name: given.words("last_name", NAME_BYTES_MAX),
            company: given.words("company", NAME_BYTES_MAX),
            website: website(&mut given),
            country: given.change("country", country),
            notes: given.change("notes", notes).map(|notes| notes.filter(|notes| !notes.is_empty())),
            tags: given.change("tags", tags).map(Option::unwrap_or_default),
            campaign: given.words("campaign_id", NAME_BYTES_MAX).flatten(),
            parent: given.change("parent_affiliate_id", |value| {
                fields::text(value)?.parse().map_err(|_| "is no partner of this program".to_owned())
            }),
            postback_url: given.words("postback_url", URL_BYTES_MAX),
            email_opt_out: given.take("email_opt_out", fields::boolean),
            commission_override: None,
            token: given.take("token", token),
        };
        change.commission_override = own_rate(&mut given);
        given.end()?;
        Ok(Self(OfPartner::of(call), change))
    }
}

/// A rate of the partner's own: `{commission_type: percent, commission_bps}`, or null for none.
fn own_rate(given: &mut Fields<'_>) -> Option<Option<BasisPoints>> {
    const NAMES: Names = names!("commission_type", "commission_bps");
    let place = "commission_override";
    let Some(value) = given.raw(place) else { return given.change(place, |_| Err(String::new())) };
    let mut inside = Fields::inside(value, (&NAMES, place), given.notes())?;
    inside
        .take("commission_type", |value| word(&["percent"], |text| (text == "percent").then_some(()), value));
    inside.need("commission_bps");
    let points = inside.take("commission_bps", bps);
    *given.notes() = inside.leave();
    points.map(Some)
}

/// `PATCH /affiliates/{id}`.
///
/// # Errors
/// What is wrong with it; no such partner; it was changed meanwhile; the token is taken.
pub async fn change(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Change<ChangePartner>,
) -> Result<One<OnePartner>, Problem> {
    let Opened { said: ChangePartner(of, change), seen, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(Noun::Partner)?);
    let shown = room.affiliate.change_partner(of, seen.as_ref(), &change).await;
    shown.map(|shown| one(&shown)).map_err(|refusal| refused(&room, refusal))
}

/// `DELETE /affiliates/{id}`.
///
/// # Errors
/// No such partner; it was paid once, or is in a payout.
pub async fn delete(room: Arc<Room>, tenant: Tenant, asked: Change<OfPartner>) -> Result<Done, Problem> {
    let Opened { said, seen, .. } = asked.open(&room, &tenant).await?;
    let of = (tenant.account().id, said.id(Noun::Partner)?);
    let deleted = room.affiliate.delete_partner(of, seen.as_ref()).await;
    deleted.map(|()| Done::OK).map_err(|refusal| refused(&room, refusal))
}

/// What `POST /affiliates/{id}/approve` takes.
#[derive(Debug)]
pub struct Approve(OfPartner, Manner);

/// What `POST /affiliates/{id}/reject` takes.
#[derive(Debug)]
pub struct Reject(OfPartner, Manner);

/// What `POST /affiliates/{id}/suspend` takes.
#[derive(Debug)]
pub struct Suspend(OfPartner, Manner);

/// How a partner is moved.
#[derive(Debug)]
struct Manner {
    /// Why, in the owner's words.
    reason: Option<String>,
    /// Whether it is written to.
    send_email: bool,
}

fn reason_schema() -> (&'static str, Value) {
    ("reason", nullable_text_schema(REASON_BYTES_MAX, "Why, in the owner's words"))
}

fn send_email_schema() -> (&'static str, Value) {
    ("send_email", schema::boolean("Whether it is written to; true"))
}

fn takes(body: Value) -> Takes {
    let parameters = vec![OfPartner::parameter()];
    Takes { parameters, body: Some(body), body_bytes_max: Some(SMALL_BYTES_MAX) }
}

/// How a body says that a partner is moved.
fn manner(call: &Call, names: &Names) -> Result<Manner, Problem> {
    let mut given = Fields::of_any(call, names)?;
    let reason = given.words("reason", REASON_BYTES_MAX).flatten();
    let send_email = given.take("send_email", fields::boolean).unwrap_or(true);
    given.end().map(|()| Manner { reason, send_email })
}

impl Input for Approve {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        takes(schemas.named("ApproveAffiliate", |_| {
            schema::object_with("How a partner is approved", &[], [send_email_schema()])
        }))
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("send_email");
        manner(call, &NAMES).map(|manner| Self(OfPartner::of(call), manner))
    }
}

impl Input for Reject {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        takes(schemas.named("RejectAffiliate", |_| {
            schema::object_with("How a partner is refused", &[], [reason_schema(), send_email_schema()])
        }))
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("reason", "send_email");
        manner(call, &NAMES).map(|manner| Self(OfPartner::of(call), manner))
    }
}

impl Input for Suspend {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(schemas: &mut Schemas) -> Takes {
        takes(schemas.named("SuspendAffiliate", |_| {
            schema::object_with("How a partner is suspended", &[], [reason_schema()])
        }))
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = names!("reason");
        manner(call, &NAMES).map(|manner| Self(OfPartner::of(call), manner))
    }
}

/// What is done with a partner, and why.
struct Step {
    of: OfPartner,
    action: Move,
    manner: Manner,
    seen: Option<Seen>,
}

async fn step(
    room: &Room,
    tenant: &Tenant,
    claim: Option<queue::once::Claim>,
    step: Step,
) -> Result<One<OnePartner>, Problem> {
    let Step { of, action, manner: Manner { reason, send_email }, seen } = step;
    let of = (tenant.account().id, of.id(Noun::Partner)?);
    // Each action is of its own: one key may stand for one of each.
    let claim = claim.map(|claim| queue::once::Claim {
        fingerprint: format!("{} {}", action.as_str(), claim.fingerprint),
        ..claim
    });
    let doing = match begin(room, tenant, Operation::MovePartner, claim).await? {
        Begun::Done(answer) => return Ok(answer),
        Begun::Go(doing) => doing,
    };
    let keep = doing.keeper(one);
    let done = room.affiliate.move_partner(of, &Moving { action, seen, reason, send_email }, &keep).await;
    drop(keep);
    doing.end(room, done, one).await
}

/// `POST /affiliates/{id}/approve`.
///
/// # Errors
/// No such partner, or one who is active or suspended; it was changed meanwhile.
pub async fn approve(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Act<Approve>,
) -> Result<One<OnePartner>, Problem> {
    let Opened { said: Approve(of, manner), seen, claim, .. } = asked.open(&room, &tenant).await?;
    step(&room, &tenant, claim, Step { of, action: Move::Approve, manner, seen }).await
}

/// `POST /affiliates/{id}/reject`.
///
/// # Errors
/// No such partner, or one who is neither pending nor invited; it was changed meanwhile.
pub async fn reject(room: Arc<Room>, tenant: Tenant, asked: Act<Reject>) -> Result<One<OnePartner>, Problem> {
    let Opened { said: Reject(of, manner), seen, claim, .. } = asked.open(&room, &tenant).await?;
    step(&room, &tenant, claim, Step { of, action: Move::Reject, manner, seen }).await
}

/// `POST /affiliates/{id}/suspend`.
///
/// # Errors
/// No such partner, or one who is suspended or rejected; it was changed meanwhile.
pub async fn suspend(
    room: Arc<Room>,
    tenant: Tenant,
    asked: Act<Suspend>,
) -> Result<One<OnePartner>, Problem> {
    let Opened { said: Suspend(of, manner), seen, claim, .. } = asked.open(&room, &tenant).await?;
    step(&room, &tenant, claim, Step { of, action: Move::Suspend, manner, seen }).await
}
