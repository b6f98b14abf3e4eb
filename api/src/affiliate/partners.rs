//! `…/affiliates`: partners.

use std::sync::Arc;

use ::affiliate::office::IfMatch;
use ::affiliate::partners::{PartnerChange, PartnerDraft, PartnerQuery, PartnerStatusChange, PartnerView};
use ::affiliate::refusal::AffiliateNoun;
use mail::address::Address;
use mail::affiliate::money::BasisPoints;
use mail::affiliate::particulars::{self, NAME_BYTES_MAX, NOTES_BYTES_MAX, TAG_BYTES_MAX, WEBSITE_BYTES_MAX};
use mail::affiliate::partner::{PartnerAction, PartnerLinkToken, PartnerSource, PartnerStatus, TAGS_MAX, TOKEN_BYTES};
use mail::idempotency::IdempotencyScope;
use queue::courier::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::access::Tenant;

use super::answer::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::asked::{ActionRequest, CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::fields::{
    BodyFieldReader, nullable_text_schema, parse_basis_points, parse_from_text, parse_multiline_text, parse_word,
    text_schema,
};
use super::view::{CreatedResponse, ListResponse, PartnerResponse, override_schema};
use super::{PartnerPath, list_filter_parameter, page_query, parse_filter, refusal_problem};
use crate::call::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::done::OkResponse;
use crate::fields::{self, FieldNames};
use crate::page::{self, KIND_PARTNER, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest reason.
const REASON_BYTES_MAX: usize = 1_000;
/// In which standing a partner begins.
const INITIAL_STATUSES: &[&str] = &["active", "pending", "invited"];

fn partner_response(shown: &PartnerView) -> VersionedResponse<PartnerResponse> {
    VersionedResponse::new(&PartnerResponse::from_partner(shown)).with_etag(shown.partner.rev)
}

fn created_partner_response(shown: &PartnerView) -> VersionedResponse<CreatedResponse<PartnerResponse>> {
    VersionedResponse::new(&PartnerResponse::from_partner(shown)).with_etag(shown.partner.rev)
}

/// What `GET /affiliates` takes.
#[derive(Debug)]
pub struct ListPartners {
    page: PageParameters,
    wish: PartnerQuery,
}

impl FromRequest for ListPartners {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = |name, about| schema::query_parameter(name, about, json!({"type": "string"}));
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", PartnerStatus::WORDS, "Where it stands; of several, one"),
            text("campaign_id", "Its campaign, by id (`cmp_…`) or name"),
            schema::query_parameter(
                "email",
                "Its address, exactly; case does not count",
                json!({"type": "string", "format": "email"}),
            ),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let wish = PartnerQuery {
            statuses: page::parse_words(&call.query, "status", PartnerStatus::WORDS, PartnerStatus::from_word)?,
            campaign: page::single_value(&given, "campaign_id")?.map(str::to_owned),
            email: parse_filter(&given, "email", "an email address")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, wish })
    }
}

/// `GET /affiliates`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListPartners>,
) -> Result<ListResponse<::affiliate::object::PartnerObject>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let wanted = page_query(&said.page, KIND_PARTNER)?;
    let found = room.affiliate.list_partners(&program, &said.wish, wanted).await;
    let found = found.map_err(|refusal| refusal_problem(&room, refusal))?;
    let next = found.next.map(|id| page::after_id(KIND_PARTNER, id));
    Ok(ListResponse::new(found.partners.iter().map(PartnerView::object).collect(), next))
}

/// `GET /affiliates/{id}`.
///
/// # Errors
/// No such partner; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<PartnerPath>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let id = asked.require_set_up_program(&room, &tenant).await?.input.id(AffiliateNoun::Partner)?;
    let shown = room.affiliate.get_partner_view(tenant.account().id, id).await;
    shown.map(|shown| partner_response(&shown)).map_err(|refusal| refusal_problem(&room, refusal))
}

fn parse_token(value: &RawValue) -> Result<PartnerLinkToken, String> {
    parse_token_text(&fields::parse_text(value)?)
}

pub(super) fn parse_token_text(text: &str) -> Result<PartnerLinkToken, String> {
    PartnerLinkToken::parse(text).map_err(|why| why.to_string())
}

pub(super) fn token_schema(description: &str) -> Value {
    json!({
        "type": "string", "minLength": TOKEN_BYTES.start(), "maxLength": TOKEN_BYTES.end(),
        "pattern": "^[A-Za-z0-9_-]+$", "description": description,
    })
}

fn parse_country(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?;
    if text.len() != 2 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err("must be two letters (ISO 3166-1), like `DE`".to_owned());
    }
    Ok(text.to_ascii_uppercase())
}

fn parse_tags(value: &RawValue) -> Result<Vec<String>, String> {
    let mut tags: Vec<String> = Vec::new();
    for entry in fields::parse_list(value, TAGS_MAX)? {
        let tag = fields::parse_header_line(entry, TAG_BYTES_MAX)?.trim().to_owned();
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
fn read_website(given: &mut BodyFieldReader<'_>) -> Option<Option<String>> {
    let text = given.read_nullable_text("website", WEBSITE_BYTES_MAX)?;
    let read = text.map(|text| particulars::parse_website(&text)).transpose();
    read.map_err(|why| given.add_error("website", why)).ok()
}

fn parse_notes(value: &RawValue) -> Result<String, String> {
    parse_multiline_text(value, NOTES_BYTES_MAX)
}

/// The fields that a partner is made with and changed by alike.
fn shared_fields_schema() -> Vec<(&'static str, Value)> {
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
const UPDATE_ONLY_FIELDS: &[&str] = &["parent_affiliate_id", "postback_url", "email_opt_out", "commission_override"];

/// What `POST /affiliates` takes.
#[derive(Debug)]
pub struct CreatePartner(PartnerDraft);

impl FromRequest for CreatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliate", |_| {
            let address = |about: &str| json!({"type": "string", "format": "email", "description": about});
            let mut fields = vec![("email", address("Who it is"))];
            fields.extend(shared_fields_schema());
            fields.extend([
                ("token", token_schema("The token of its link, exactly; made of the name when left out")),
                ("status", schema::string_enum(INITIAL_STATUSES, "Where it stands at first; active")),
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
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!(
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
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        given.reject_fields(UPDATE_ONLY_FIELDS, "is not taken here: set it with `PATCH /affiliates/{id}`");
        given.require("email");
        let email = given.read_optional("email", parse_from_text::<Address>);
        let first_name = given.read_nullable_text("first_name", NAME_BYTES_MAX).flatten();
        let last_name = given.read_nullable_text("last_name", NAME_BYTES_MAX).flatten();
        let company = given.read_nullable_text("company", NAME_BYTES_MAX).flatten();
        let website = read_website(&mut given).flatten();
        let country = given.read_optional("country", parse_country);
        let campaign = given.read_nullable_text("campaign_id", NAME_BYTES_MAX).flatten();
        let token = given.read_optional("token", parse_token);
        let begins = |text: &str| PartnerStatus::from_word(text).filter(|_| INITIAL_STATUSES.contains(&text));
        let status = given.read_optional("status", |value| parse_word(INITIAL_STATUSES, begins, value));
        let paypal_email = given.read_optional("paypal_email", parse_from_text::<Address>);
        let tags = given.read_optional("tags", parse_tags).unwrap_or_default();
        let notes = given.read_optional("notes", parse_notes).filter(|notes| !notes.is_empty());
        let send_invite = given.read_optional("send_invite", fields::parse_bool).unwrap_or(true);
        given.finish()?;
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
    room: Arc<AppState>,
    tenant: Tenant,
    asked: CreateRequest<CreatePartner>,
) -> Result<VersionedResponse<CreatedResponse<PartnerResponse>>, Problem> {
    let ResolvedRequest { input: said, claim, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let doing = match begin_for_tenant(&room, &tenant, IdempotencyScope::CreatePartner, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(created_partner_response);
    let done = room.affiliate.create_partner(tenant.account().id, &said.0, &keep).await;
    drop(keep);
    doing.finish(&room, done, created_partner_response).await
}

/// What `PATCH /affiliates/{id}` takes.
#[derive(Debug)]
pub struct UpdatePartner(PartnerPath, PartnerChange);

impl FromRequest for UpdatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("UpdateAffiliate", |_| {
            let mut own_rate = override_schema();
            schema::allow_null(&mut own_rate);
            let mut fields = shared_fields_schema();
            fields.extend([
                ("parent_affiliate_id", schema::nullable_string("Who recruited it (`aff_…`)")),
                ("postback_url", nullable_text_schema(URL_BYTES_MAX, "Where its own events are posted to")),
                ("email_opt_out", schema::boolean("Whether it wants no mail but what it asks for")),
                ("commission_override", own_rate),
                ("token", token_schema("The new token of its primary link; the old one leads nobody any more")),
            ]);
            let mut schema = schema::object_with("What changes about a partner", &[], fields);
            schema["examples"] = json!([{
                "company": "Analytical Engines", "tags": ["podcast", "friend"],
                "commission_override": {"commission_type": "percent", "commission_bps": 3000},
            }]);
            schema
        });
        let parameters = vec![PartnerPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!(
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
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        given.reject_fields(
            &["status"],
            "is not changed here: use `POST /affiliates/{id}/approve`, `/reject` or `/suspend`",
        );
        given.reject_fields(&["email", "send_invite"], "is taken by `POST /affiliates` alone: it cannot be changed");
        given.reject_fields(
            &["paypal_email"],
            "is taken by `POST /affiliates` alone: afterwards the partner changes it in the portal",
        );
        let mut change = PartnerChange {
            first_name: given.read_nullable_text("first_name", NAME_BYTES_MAX),
            last_name: given.read_nullable_text("last_name", NAME_BYTES_MAX),
            company: given.read_nullable_text("company", NAME_BYTES_MAX),
            website: read_website(&mut given),
            country: given.read_nullable("country", parse_country),
            notes: given.read_nullable("notes", parse_notes).map(|notes| notes.filter(|notes| !notes.is_empty())),
            tags: given.read_nullable("tags", parse_tags).map(Option::unwrap_or_default),
            campaign: given.read_nullable_text("campaign_id", NAME_BYTES_MAX).flatten(),
            parent: given.read_nullable("parent_affiliate_id", |value| {
                fields::parse_text(value)?.parse().map_err(|_| "is no partner of this program".to_owned())
            }),
            postback_url: given.read_nullable_text("postback_url", URL_BYTES_MAX),
            email_opt_out: given.read_optional("email_opt_out", fields::parse_bool),
            commission_override: None,
            token: given.read_optional("token", parse_token),
        };
        change.commission_override = read_commission_override(&mut given);
        given.finish()?;
        Ok(Self(PartnerPath::of(call), change))
    }
}

/// A rate of the partner's own: `{commission_type: percent, commission_bps}`, or null for none.
fn read_commission_override(given: &mut BodyFieldReader<'_>) -> Option<Option<BasisPoints>> {
    const NAMES: FieldNames = names!("commission_type", "commission_bps");
    let place = "commission_override";
    let Some(value) = given.raw_value(place) else {
        return given.read_nullable(place, |_| Err(String::new()));
    };
    let mut inside = BodyFieldReader::from_nested_object(value, (&NAMES, place), given.diagnostics_mut())?;
    inside.read_optional("commission_type", |value| {
        parse_word(&["percent"], |text| (text == "percent").then_some(()), value)
    });
    inside.require("commission_bps");
    let points = inside.read_optional("commission_bps", parse_basis_points);
    *given.diagnostics_mut() = inside.into_diagnostics();
    points.map(Some)
}

/// `PATCH /affiliates/{id}`.
///
/// # Errors
/// What is wrong with it; no such partner; it was changed meanwhile; the token is taken.
pub async fn update(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: UpdateRequest<UpdatePartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: UpdatePartner(of, change), if_match: seen, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, of.id(AffiliateNoun::Partner)?);
    let shown = room.affiliate.change_partner(of, seen.as_ref(), &change).await;
    shown.map(|shown| partner_response(&shown)).map_err(|refusal| refusal_problem(&room, refusal))
}

/// `DELETE /affiliates/{id}`.
///
/// # Errors
/// No such partner; it was paid once, or is in a payout.
pub async fn delete(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: UpdateRequest<PartnerPath>,
) -> Result<OkResponse, Problem> {
    let ResolvedRequest { input: said, if_match: seen, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let of = (tenant.account().id, said.id(AffiliateNoun::Partner)?);
    let deleted = room.affiliate.delete_partner(of, seen.as_ref()).await;
    deleted.map(|()| OkResponse::OK).map_err(|refusal| refusal_problem(&room, refusal))
}

/// What `POST /affiliates/{id}/approve` takes.
#[derive(Debug)]
pub struct ApprovePartner(PartnerPath, TransitionOptions);

/// What `POST /affiliates/{id}/reject` takes.
#[derive(Debug)]
pub struct RejectPartner(PartnerPath, TransitionOptions);

/// What `POST /affiliates/{id}/suspend` takes.
#[derive(Debug)]
pub struct SuspendPartner(PartnerPath, TransitionOptions);

/// How a partner is moved.
#[derive(Debug)]
struct TransitionOptions {
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

fn optional_body_spec(body: Value) -> RequestSpec {
    let parameters = vec![PartnerPath::parameter()];
    RequestSpec { parameters, body: Some(body), body_bytes_max: Some(SMALL_BYTES_MAX) }
}

/// How a body says that a partner is moved.
fn read_transition_options(call: &Request, names: &FieldNames) -> Result<TransitionOptions, Problem> {
    let mut given = BodyFieldReader::from_optional_body(call, names)?;
    let reason = given.read_nullable_text("reason", REASON_BYTES_MAX).flatten();
    let send_email = given.read_optional("send_email", fields::parse_bool).unwrap_or(true);
    given.finish().map(|()| TransitionOptions { reason, send_email })
}

impl FromRequest for ApprovePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("ApproveAffiliate", |_| {
            schema::object_with("How a partner is approved", &[], [send_email_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("send_email");
        read_transition_options(call, &NAMES).map(|manner| Self(PartnerPath::of(call), manner))
    }
}

impl FromRequest for RejectPartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("RejectAffiliate", |_| {
            schema::object_with("How a partner is refused", &[], [reason_schema(), send_email_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reason", "send_email");
        read_transition_options(call, &NAMES).map(|manner| Self(PartnerPath::of(call), manner))
    }
}

impl FromRequest for SuspendPartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("SuspendAffiliate", |_| {
            schema::object_with("How a partner is suspended", &[], [reason_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reason");
        read_transition_options(call, &NAMES).map(|manner| Self(PartnerPath::of(call), manner))
    }
}

/// What is done with a partner, and why.
struct PartnerTransition {
    partner: PartnerPath,
    action: PartnerAction,
    options: TransitionOptions,
    if_match: Option<IfMatch>,
}

async fn apply_transition(
    room: &AppState,
    tenant: &Tenant,
    claim: Option<queue::once::IdempotencyKey>,
    step: PartnerTransition,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let PartnerTransition { partner: of, action, options: TransitionOptions { reason, send_email }, if_match: seen } =
        step;
    let of = (tenant.account().id, of.id(AffiliateNoun::Partner)?);
    // Each action is of its own: one key may stand for one of each.
    let claim = claim.map(|claim| queue::once::IdempotencyKey {
        fingerprint: format!("{} {}", action.as_str(), claim.fingerprint),
        ..claim
    });
    let doing = match begin_for_tenant(room, tenant, IdempotencyScope::MovePartner, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(partner_response);
    let done = room
        .affiliate
        .change_partner_status(of, &PartnerStatusChange { action, seen, reason, send_email }, &keep)
        .await;
    drop(keep);
    doing.finish(room, done, partner_response).await
}

/// `POST /affiliates/{id}/approve`.
///
/// # Errors
/// No such partner, or one who is active or suspended; it was changed meanwhile.
pub async fn approve(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ActionRequest<ApprovePartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: ApprovePartner(of, manner), if_match: seen, claim, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    apply_transition(
        &room,
        &tenant,
        claim,
        PartnerTransition { partner: of, action: PartnerAction::Approve, options: manner, if_match: seen },
    )
    .await
}

/// `POST /affiliates/{id}/reject`.
///
/// # Errors
/// No such partner, or one who is neither pending nor invited; it was changed meanwhile.
pub async fn reject(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ActionRequest<RejectPartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: RejectPartner(of, manner), if_match: seen, claim, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    apply_transition(
        &room,
        &tenant,
        claim,
        PartnerTransition { partner: of, action: PartnerAction::Reject, options: manner, if_match: seen },
    )
    .await
}

/// `POST /affiliates/{id}/suspend`.
///
/// # Errors
/// No such partner, or one who is suspended or rejected; it was changed meanwhile.
pub async fn suspend(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ActionRequest<SuspendPartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: SuspendPartner(of, manner), if_match: seen, claim, .. } =
        asked.require_set_up_program(&room, &tenant).await?;
    apply_transition(
        &room,
        &tenant,
        claim,
        PartnerTransition { partner: of, action: PartnerAction::Suspend, options: manner, if_match: seen },
    )
    .await
}
