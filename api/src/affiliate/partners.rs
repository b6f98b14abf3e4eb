//! `…/affiliates`: partners of the affiliate program.

use std::sync::Arc;

use ::affiliate::error::AffiliateNoun;
use ::affiliate::partners::{PartnerChange, PartnerDraft, PartnerQuery, PartnerStatusChange, PartnerView};
use ::affiliate::service::IfMatch;
use mail::address::Address;
use mail::affiliate::money::BasisPoints;
use mail::affiliate::partner::{PartnerAction, PartnerLinkToken, PartnerSource, PartnerStatus, TAGS_MAX, TOKEN_BYTES};
use mail::affiliate::partner_fields::{self, NAME_BYTES_MAX, NOTES_BYTES_MAX, TAG_BYTES_MAX, WEBSITE_BYTES_MAX};
use mail::idempotency::IdempotencyScope;
use queue::client::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::access::Tenant;

use super::fields::{
    BodyFieldReader, nullable_text_schema, parse_basis_points, parse_from_text, parse_multiline_text, parse_word,
    text_schema,
};
use super::list_query::{list_filter_parameter, page_query, parse_filter};
use super::path::PartnerPath;
use super::refusal::refusal_problem;
use super::request::{ActionRequest, CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::view::{CommissionOverride, CreatedResponse, ListResponse, PartnerResponse};
use crate::fields::{self, FieldNames};
use crate::ok_response::OkResponse;
use crate::paging::{self, KIND_PARTNER, PageParameters};
use crate::problem::Problem;
use crate::request::{FromRequest, Media, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas, ToSchema};
use crate::state::AppState;

const REASON_BYTES_MAX: usize = 1_000;
/// Statuses that a new partner can have.
const INITIAL_STATUSES: &[&str] = &["active", "pending", "invited"];

fn partner_response(view: &PartnerView) -> VersionedResponse<PartnerResponse> {
    VersionedResponse::new(&PartnerResponse::from_partner(view)).with_etag(view.partner.rev)
}

fn created_partner_response(view: &PartnerView) -> VersionedResponse<CreatedResponse<PartnerResponse>> {
    VersionedResponse::new(&PartnerResponse::from_partner(view)).with_etag(view.partner.rev)
}

/// Query of `GET /affiliates`.
#[derive(Debug)]
pub struct ListPartners {
    page: PageParameters,
    query: PartnerQuery,
}

impl FromRequest for ListPartners {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = |name, description| schema::query_parameter(name, description, json!({"type": "string"}));
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", PartnerStatus::WORDS, "Filter by status; several separated by commas"),
            text("campaign_id", "The campaign, by id (`cmp_…`) or name"),
            schema::query_parameter(
                "email",
                "The exact email address, case-insensitive",
                json!({"type": "string", "format": "email"}),
            ),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let filter = PartnerQuery {
            statuses: paging::parse_words(&call.query, "status", PartnerStatus::WORDS, PartnerStatus::from_word)?,
            campaign: paging::single_value(&parameters, "campaign_id")?.map(str::to_owned),
            email: parse_filter(&parameters, "email", "an email address")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, query: filter })
    }
}

/// `GET /affiliates`.
///
/// # Errors
/// The cursor is invalid; the store cannot be read.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ListPartners>,
) -> Result<ListResponse<::affiliate::api_objects::PartnerObject>, Problem> {
    let ResolvedRequest { program, input, .. } = request.require_set_up_program(&state, &tenant).await?;
    let page_request = page_query(&input.page, KIND_PARTNER)?;
    let found = state.affiliate.list_partners(&program, &input.query, page_request).await;
    let found = found.map_err(|refusal| refusal_problem(&state, refusal))?;
    let next = found.next.map(|id| paging::after_id(KIND_PARTNER, id));
    Ok(ListResponse::new(found.partners.iter().map(PartnerView::object).collect(), next))
}

/// `GET /affiliates/{id}`.
///
/// # Errors
/// The partner does not exist; the store cannot be read.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<PartnerPath>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id(AffiliateNoun::Partner)?;
    let view = state.affiliate.get_partner_view(tenant.account().id, id).await;
    view.map(|view| partner_response(&view)).map_err(|refusal| refusal_problem(&state, refusal))
}

fn parse_token(value: &RawValue) -> Result<PartnerLinkToken, String> {
    parse_token_text(&fields::parse_text(value)?)
}

pub(super) fn parse_token_text(text: &str) -> Result<PartnerLinkToken, String> {
    PartnerLinkToken::parse(text).map_err(|error| error.to_string())
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

/// Reads a website; null or an empty text clears it.
fn read_website(reader: &mut BodyFieldReader<'_>) -> Option<Option<String>> {
    let text = reader.read_nullable_text("website", WEBSITE_BYTES_MAX)?;
    let parsed = text.map(|text| partner_fields::parse_website(&text)).transpose();
    parsed.map_err(|reason| reader.add_error("website", reason)).ok()
}

fn parse_notes(value: &RawValue) -> Result<String, String> {
    parse_multiline_text(value, NOTES_BYTES_MAX)
}

/// Schemas of the fields that creation and update share.
fn shared_fields_schema() -> Vec<(&'static str, Value)> {
    let name = |description| nullable_text_schema(NAME_BYTES_MAX, description);
    let mut tags = schema::list(
        json!({"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX, "pattern": "\\S"}),
        "Tags for the owner's use",
    );
    tags["maxItems"] = json!(TAGS_MAX);
    vec![
        ("first_name", name("The given name")),
        ("last_name", name("The family name")),
        ("company", name("The company")),
        ("website", nullable_text_schema(WEBSITE_BYTES_MAX, "The website; `https://` is optional")),
        (
            "country",
            json!({"type": ["string", "null"], "pattern": "^[A-Za-z]{2}$", "description": "Two letters (ISO 3166-1)"}),
        ),
        ("campaign_id", text_schema(NAME_BYTES_MAX, "The campaign, by id (`cmp_…`) or name")),
        ("tags", tags),
        ("notes", nullable_text_schema(NOTES_BYTES_MAX, "Private notes")),
    ]
}

/// Fields that only an update accepts.
const UPDATE_ONLY_FIELDS: &[&str] = &["parent_affiliate_id", "postback_url", "email_opt_out", "commission_override"];

/// Body of `POST /affiliates`.
#[derive(Debug)]
pub struct CreatePartner(PartnerDraft);

impl FromRequest for CreatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliate", |_| {
            let address = |description: &str| json!({"type": "string", "format": "email", "description": description});
            let mut fields = vec![("email", address("The person's email address"))];
            fields.extend(shared_fields_schema());
            fields.extend([
                ("token", token_schema("The token of the partner's link; derived from the name if omitted")),
                ("status", schema::string_enum(INITIAL_STATUSES, "The initial status; defaults to `active`")),
                ("paypal_email", address("The address for PayPal payouts")),
                ("send_invite", schema::boolean("Whether to notify the partner by email; defaults to true")),
            ]);
            let mut schema = schema::object_with("A new partner", &["email"], fields);
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
        let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
        reader.reject_fields(UPDATE_ONLY_FIELDS, "is not accepted here; set it with `PATCH /affiliates/{id}`");
        reader.require("email");
        let email = reader.read_optional("email", parse_from_text::<Address>);
        let first_name = reader.read_nullable_text("first_name", NAME_BYTES_MAX).flatten();
        let last_name = reader.read_nullable_text("last_name", NAME_BYTES_MAX).flatten();
        let company = reader.read_nullable_text("company", NAME_BYTES_MAX).flatten();
        let website = read_website(&mut reader).flatten();
        let country = reader.read_optional("country", parse_country);
        let campaign = reader.read_nullable_text("campaign_id", NAME_BYTES_MAX).flatten();
        let token = reader.read_optional("token", parse_token);
        let is_initial = |text: &str| PartnerStatus::from_word(text).filter(|_| INITIAL_STATUSES.contains(&text));
        let status = reader.read_optional("status", |value| parse_word(INITIAL_STATUSES, is_initial, value));
        let paypal_email = reader.read_optional("paypal_email", parse_from_text::<Address>);
        let tags = reader.read_optional("tags", parse_tags).unwrap_or_default();
        let notes = reader.read_optional("notes", parse_notes).filter(|notes| !notes.is_empty());
        let send_invite = reader.read_optional("send_invite", fields::parse_bool).unwrap_or(true);
        reader.finish()?;
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
/// The input is invalid, or another partner has the email address or token.
pub async fn create(
    state: Arc<AppState>,
    tenant: Tenant,
    request: CreateRequest<CreatePartner>,
) -> Result<VersionedResponse<CreatedResponse<PartnerResponse>>, Problem> {
    let ResolvedRequest { input, claim, .. } = request.require_set_up_program(&state, &tenant).await?;
    let in_progress = match begin_for_tenant(&state, &tenant, IdempotencyScope::CreatePartner, claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(created_partner_response);
    let done = state.affiliate.create_partner(tenant.account().id, &input.0, &store_response).await;
    drop(store_response);
    in_progress.finish(&state, done, created_partner_response).await
}

/// Body of `PATCH /affiliates/{id}`.
#[derive(Debug)]
pub struct UpdatePartner(PartnerPath, PartnerChange);

impl FromRequest for UpdatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("UpdateAffiliate", |schemas| {
            let mut own_rate = CommissionOverride::schema(schemas);
            schema::allow_null(&mut own_rate);
            let mut fields = shared_fields_schema();
            fields.extend([
                ("parent_affiliate_id", schema::nullable_string("The partner that recruited this one (`aff_…`)")),
                ("postback_url", nullable_text_schema(URL_BYTES_MAX, "The URL that receives the partner's own events")),
                (
                    "email_opt_out",
                    schema::boolean(
                        "Whether the partner has opted out of email, except security email and email it requests",
                    ),
                ),
                ("commission_override", own_rate),
                ("token", token_schema("The new token of the primary link; the old one stops working")),
            ]);
            let mut schema = schema::object_with("The fields of a partner to change", &[], fields);
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
        let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
        reader.reject_fields(
            &["status"],
            "cannot be changed here; use `POST /affiliates/{id}/approve`, `/reject` or `/suspend`",
        );
        reader.reject_fields(&["email", "send_invite"], "is accepted by `POST /affiliates` only and cannot be changed");
        reader.reject_fields(
            &["paypal_email"],
            "is accepted by `POST /affiliates` only; afterwards the partner changes it in the portal",
        );
        let mut change = PartnerChange {
            first_name: reader.read_nullable_text("first_name", NAME_BYTES_MAX),
            last_name: reader.read_nullable_text("last_name", NAME_BYTES_MAX),
            company: reader.read_nullable_text("company", NAME_BYTES_MAX),
            website: read_website(&mut reader),
            country: reader.read_nullable("country", parse_country),
            notes: reader.read_nullable("notes", parse_notes).map(|notes| notes.filter(|notes| !notes.is_empty())),
            tags: reader.read_nullable("tags", parse_tags).map(Option::unwrap_or_default),
            campaign: reader.read_nullable_text("campaign_id", NAME_BYTES_MAX).flatten(),
            parent: reader.read_nullable("parent_affiliate_id", |value| {
                fields::parse_text(value)?.parse().map_err(|_| "is not a partner of this program".to_owned())
            }),
            postback_url: reader.read_nullable_text("postback_url", URL_BYTES_MAX),
            email_opt_out: reader.read_optional("email_opt_out", fields::parse_bool),
            commission_override: None,
            token: reader.read_optional("token", parse_token),
        };
        change.commission_override = read_commission_override(&mut reader);
        reader.finish()?;
        Ok(Self(PartnerPath::of(call), change))
    }
}

/// Reads the partner's own rate: `{commission_type: percent, commission_bps}`; null clears it.
fn read_commission_override(reader: &mut BodyFieldReader<'_>) -> Option<Option<BasisPoints>> {
    const NAMES: FieldNames = names!("commission_type", "commission_bps");
    let name = "commission_override";
    let Some(value) = reader.raw_value(name) else {
        return reader.read_nullable(name, |_| Err(String::new()));
    };
    let mut override_reader = BodyFieldReader::from_nested_object(value, &NAMES, name, reader.diagnostics_mut())?;
    override_reader.read_optional("commission_type", |value| {
        parse_word(&["percent"], |text| (text == "percent").then_some(()), value)
    });
    override_reader.require("commission_bps");
    let basis_points = override_reader.read_optional("commission_bps", parse_basis_points);
    *reader.diagnostics_mut() = override_reader.into_diagnostics();
    basis_points.map(Some)
}

/// `PATCH /affiliates/{id}`.
///
/// # Errors
/// The input is invalid, the partner does not exist, it was changed concurrently, or the token is in use.
pub async fn update(
    state: Arc<AppState>,
    tenant: Tenant,
    request: UpdateRequest<UpdatePartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: UpdatePartner(target, change), if_match, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let id = target.id(AffiliateNoun::Partner)?;
    let view = state.affiliate.change_partner(tenant.account().id, id, if_match.as_ref(), &change).await;
    view.map(|view| partner_response(&view)).map_err(|refusal| refusal_problem(&state, refusal))
}

/// `DELETE /affiliates/{id}`.
///
/// # Errors
/// The partner does not exist, was paid before, or is in a payout.
pub async fn delete(
    state: Arc<AppState>,
    tenant: Tenant,
    request: UpdateRequest<PartnerPath>,
) -> Result<OkResponse, Problem> {
    let ResolvedRequest { input, if_match, .. } = request.require_set_up_program(&state, &tenant).await?;
    let (account, id) = (tenant.account().id, input.id(AffiliateNoun::Partner)?);
    let deleted = state.affiliate.delete_partner(account, id, if_match.as_ref()).await;
    deleted.map(|()| OkResponse::OK).map_err(|refusal| refusal_problem(&state, refusal))
}

/// Path and body of `POST /affiliates/{id}/approve`.
#[derive(Debug)]
pub struct ApprovePartner(PartnerPath, TransitionOptions);

/// Path and body of `POST /affiliates/{id}/reject`.
#[derive(Debug)]
pub struct RejectPartner(PartnerPath, TransitionOptions);

/// Path and body of `POST /affiliates/{id}/suspend`.
#[derive(Debug)]
pub struct SuspendPartner(PartnerPath, TransitionOptions);

/// Options of a status change.
#[derive(Debug)]
struct TransitionOptions {
    /// The owner's free-text reason.
    reason: Option<String>,
    /// Whether the partner is notified by email.
    send_email: bool,
}

fn reason_schema() -> (&'static str, Value) {
    ("reason", nullable_text_schema(REASON_BYTES_MAX, "The reason, as free text"))
}

fn send_email_schema() -> (&'static str, Value) {
    ("send_email", schema::boolean("Whether to notify the partner by email; defaults to true"))
}

fn optional_body_spec(body: Value) -> RequestSpec {
    let parameters = vec![PartnerPath::parameter()];
    RequestSpec { parameters, body: Some(body), body_bytes_max: Some(SMALL_BYTES_MAX) }
}

/// Reads the options of a status change from an optional body.
fn read_transition_options(call: &Request, names: &FieldNames) -> Result<TransitionOptions, Problem> {
    let mut reader = BodyFieldReader::from_optional_body(call, names)?;
    let reason = reader.read_nullable_text("reason", REASON_BYTES_MAX).flatten();
    let send_email = reader.read_optional("send_email", fields::parse_bool).unwrap_or(true);
    reader.finish().map(|()| TransitionOptions { reason, send_email })
}

impl FromRequest for ApprovePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("ApproveAffiliate", |_| {
            schema::object_with("Options of the approval", &[], [send_email_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("send_email");
        read_transition_options(call, &NAMES).map(|options| Self(PartnerPath::of(call), options))
    }
}

impl FromRequest for RejectPartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("RejectAffiliate", |_| {
            schema::object_with("Options of the rejection", &[], [reason_schema(), send_email_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reason", "send_email");
        read_transition_options(call, &NAMES).map(|options| Self(PartnerPath::of(call), options))
    }
}

impl FromRequest for SuspendPartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        optional_body_spec(schemas.component("SuspendAffiliate", |_| {
            schema::object_with("Options of the suspension", &[], [reason_schema()])
        }))
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("reason");
        read_transition_options(call, &NAMES).map(|options| Self(PartnerPath::of(call), options))
    }
}

/// A requested status change of a partner.
struct PartnerTransition {
    partner: PartnerPath,
    action: PartnerAction,
    options: TransitionOptions,
    if_match: Option<IfMatch>,
}

async fn apply_transition(
    state: &AppState,
    tenant: &Tenant,
    claim: Option<queue::idempotency::IdempotencyKey>,
    step: PartnerTransition,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let PartnerTransition { partner: target, action, options: TransitionOptions { reason, send_email }, if_match } =
        step;
    let id = target.id(AffiliateNoun::Partner)?;
    // The fingerprint includes the action, so that one key can be used once per action.
    let claim = claim.map(|claim| queue::idempotency::IdempotencyKey {
        fingerprint: format!("{} {}", action.as_str(), claim.fingerprint),
        ..claim
    });
    let in_progress = match begin_for_tenant(state, tenant, IdempotencyScope::MovePartner, claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(partner_response);
    let done = state
        .affiliate
        .change_partner_status(
            tenant.account().id,
            id,
            &PartnerStatusChange { action, seen: if_match, reason, send_email },
            &store_response,
        )
        .await;
    drop(store_response);
    in_progress.finish(state, done, partner_response).await
}

/// `POST /affiliates/{id}/approve`.
///
/// # Errors
/// The partner does not exist, is active or suspended, or was changed concurrently.
pub async fn approve(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ActionRequest<ApprovePartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: ApprovePartner(target, options), if_match: seen, claim, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    apply_transition(
        &state,
        &tenant,
        claim,
        PartnerTransition { partner: target, action: PartnerAction::Approve, options, if_match: seen },
    )
    .await
}

/// `POST /affiliates/{id}/reject`.
///
/// # Errors
/// The partner does not exist, is neither pending nor invited, or was changed concurrently.
pub async fn reject(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ActionRequest<RejectPartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: RejectPartner(target, options), if_match: seen, claim, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    apply_transition(
        &state,
        &tenant,
        claim,
        PartnerTransition { partner: target, action: PartnerAction::Reject, options, if_match: seen },
    )
    .await
}

/// `POST /affiliates/{id}/suspend`.
///
/// # Errors
/// The partner does not exist, is suspended or rejected, or was changed concurrently.
pub async fn suspend(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ActionRequest<SuspendPartner>,
) -> Result<VersionedResponse<PartnerResponse>, Problem> {
    let ResolvedRequest { input: SuspendPartner(target, options), if_match: seen, claim, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    apply_transition(
        &state,
        &tenant,
        claim,
        PartnerTransition { partner: target, action: PartnerAction::Suspend, options, if_match: seen },
    )
    .await
}
