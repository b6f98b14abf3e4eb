//! `…/affiliates`: partners of the affiliate program.

use ::affiliate::partners::changes::{PartnerChange, PartnerQuery, PartnerStatusChange};
use ::affiliate::partners::lookup::PartnerView;
use httpd::paging::KIND_PARTNER;
use httpd::request_object::{RejectedFields, RequestValue, read_body_rejecting, read_nested};
use model::affiliate::money::BasisPoints;
use model::affiliate::partner::{PartnerAction, PartnerLinkToken, PartnerSource, PartnerStatus, TAGS_MAX, TOKEN_BYTES};
use model::affiliate::partner_fields::{
    self, NAME_BYTES_MAX, NOTES_BYTES_MAX, PartnerDraft, PartnerOrigin, TAG_BYTES_MAX, WEBSITE_BYTES_MAX,
};
use model::idempotency::IdempotencyScope;
use net::http_client::URL_BYTES_MAX;

use super::fields::{ClearableLine, EmailAddress, Multiline, parse_word};
use super::list_query::page_query;
use super::path::PartnerPath;
use super::request::{ActionRequest, CreateRequest, ReadRequest, ResolvedRequest, UpdateRequest};
use super::response::{ResponseWriter, VersionedResponse, once};
use super::view::{CommissionOverride, CreatedResponse, ListResponse, PartnerResponse};
use crate::prelude::*;

const REASON_BYTES_MAX: usize = 1_000;
/// Statuses that a new partner can have.
const INITIAL_STATUSES: &[&str] = &["active", "pending", "invited"];

pub(super) fn partner_response(view: &PartnerView) -> VersionedResponse<PartnerResponse> {
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

impl RequestQuery for ListPartners {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let filter = PartnerQuery {
            statuses: query.words("status", "Filter by status; several separated by commas")?,
            campaign: query.text("campaign_id", "The campaign, by id (`cmp_…`) or name")?,
            email: query.email()?,
        };
        Ok(Self { page, query: filter })
    }
}

/// `GET /affiliates`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ListPartners>,
) -> Result<ListResponse<::affiliate::api_objects::PartnerObject>> {
    let ResolvedRequest { program, input, .. } = request.require_set_up_program(&state, &tenant).await?;
    let page_request = page_query(&input.page, KIND_PARTNER)?;
    let found =
        state.affiliate.partners.list_partners(&program, &input.query, page_request).await.or_problem(&state)?;
    let next = found.next.map(|id| paging::after_id(KIND_PARTNER, id));
    Ok(ListResponse::new(found.rows.iter().map(PartnerView::object).collect(), next))
}

/// `GET /affiliates/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    request: ReadRequest<PartnerPath>,
) -> Result<VersionedResponse<PartnerResponse>> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id()?;
    let view = state.affiliate.context.get_partner_view(tenant.account().id, id).await;
    view.map(|view| partner_response(&view)).or_problem(&state)
}

pub(super) struct LinkTokenText;

impl RequestValue for LinkTokenText {
    type Value = PartnerLinkToken;

    fn schema(_: &mut Schemas) -> Value {
        json!({
            "type": "string", "minLength": TOKEN_BYTES.start(), "maxLength": TOKEN_BYTES.end(),
            "pattern": "^[A-Za-z0-9_-]+$",
        })
    }

    fn parse(value: &RawValue) -> Result<PartnerLinkToken, String> {
        PartnerLinkToken::parse(&fields::parse_text(value)?).map_err(|error| error.to_string())
    }
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

fn tags_schema(_: &mut Schemas) -> Value {
    let tag = json!({"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX, "pattern": "\\S"});
    json!({"type": "array", "items": tag, "maxItems": TAGS_MAX})
}

/// A website; an empty text clears it.
struct Website;

impl RequestValue for Website {
    type Value = Option<String>;

    fn schema(schemas: &mut Schemas) -> Value {
        ClearableLine::<WEBSITE_BYTES_MAX>::schema(schemas)
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        let text = ClearableLine::<WEBSITE_BYTES_MAX>::parse(value)?;
        text.map(|text| partner_fields::parse_website(&text)).transpose()
    }
}

/// Fields of a new and of a changed partner.
#[derive(Debug, RequestObject)]
struct PartnerFields {
    /// The given name
    #[field(reader = ClearableLine<NAME_BYTES_MAX>, null = None)]
    first_name: Option<Option<String>>,
    /// The family name
    #[field(reader = ClearableLine<NAME_BYTES_MAX>, null = None)]
    last_name: Option<Option<String>>,
    /// The company
    #[field(reader = ClearableLine<NAME_BYTES_MAX>, null = None)]
    company: Option<Option<String>>,
    /// The website; `https://` is optional
    #[field(reader = Website, null = None)]
    website: Option<Option<String>>,
    /// Two letters (ISO 3166-1)
    #[field(parse = parse_country, schema = json!({"type": "string", "pattern": "^[A-Za-z]{2}$"}))]
    country: Option<Option<String>>,
    /// The campaign, by id (`cmp_…`) or name
    #[field(parse = ClearableLine::<NAME_BYTES_MAX>::parse, schema = ClearableLine::<NAME_BYTES_MAX>::schema)]
    campaign_id: Option<CampaignName>,
    /// Tags for the owner's use
    #[field(parse = parse_tags, schema = tags_schema, null = Vec::new())]
    tags: Option<Vec<String>>,
    /// Private notes
    #[field(reader = Multiline<NOTES_BYTES_MAX>)]
    notes: Option<Option<String>>,
}

/// `None` if it is empty.
type CampaignName = Option<String>;

/// A new partner
#[derive(Debug, RequestObject)]
#[schema(name = "CreateAffiliate", examples = [{
    "email": "ada@example.org", "first_name": "Ada", "last_name": "Lovelace", "country": "GB", "tags": ["podcast"],
    "send_invite": false,
}])]
struct NewPartnerFields {
    /// The person's email address
    #[field(reader = EmailAddress)]
    email: Address,
    #[field(flatten)]
    partner: PartnerFields,
    /// The token of the partner's link; derived from the name if omitted
    #[field(reader = LinkTokenText)]
    token: Option<PartnerLinkToken>,
    /// The initial status; defaults to `active`
    #[field(
        parse = parse_initial_status,
        schema = json!({"type": "string", "enum": INITIAL_STATUSES}),
        absent = PartnerStatus::Active,
    )]
    status: PartnerStatus,
    /// The address for PayPal payouts
    #[field(reader = EmailAddress)]
    paypal_email: Option<Address>,
    /// Whether to notify the partner by email; defaults to true
    #[field(absent = true)]
    send_invite: bool,
}

fn parse_initial_status(value: &RawValue) -> Result<PartnerStatus, String> {
    let is_initial = |text: &str| PartnerStatus::from_word(text).filter(|_| INITIAL_STATUSES.contains(&text));
    parse_word(INITIAL_STATUSES, is_initial, value)
}

const UPDATE_ONLY: &str = "is not accepted here; set it with `PATCH /affiliates/{id}`";
/// Fields that only an update accepts.
const UPDATE_ONLY_FIELDS: RejectedFields = &[
    ("parent_affiliate_id", UPDATE_ONLY),
    ("postback_url", UPDATE_ONLY),
    ("email_opt_out", UPDATE_ONLY),
    ("commission_override", UPDATE_ONLY),
];

/// Body of `POST /affiliates`.
#[derive(Debug)]
pub struct CreatePartner(PartnerDraft);

impl FromRequest for CreatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(NewPartnerFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let NewPartnerFields { email, partner, token, status, paypal_email, send_invite } =
            read_body_rejecting(call, UPDATE_ONLY_FIELDS)?;
        Ok(Self(PartnerDraft {
            email,
            first_name: partner.first_name.flatten(),
            last_name: partner.last_name.flatten(),
            company: partner.company.flatten(),
            website: partner.website.flatten(),
            country: partner.country.flatten(),
            campaign: partner.campaign_id.flatten(),
            token,
            status,
            paypal_email,
            tags: partner.tags.unwrap_or_default(),
            notes: partner.notes.flatten().filter(|notes| !notes.is_empty()),
            origin: PartnerOrigin::entered(PartnerSource::Api),
            parent: None,
            send_invite,
        }))
    }
}

/// `POST /affiliates`.
///
/// # Errors
/// The input is invalid, or another partner has the email address or token.
pub async fn create(
    state: State,
    tenant: Tenant,
    request: CreateRequest<CreatePartner>,
) -> Result<VersionedResponse<CreatedResponse<PartnerResponse>>> {
    let ResolvedRequest { input, claim, .. } = request.require_set_up_program(&state, &tenant).await?;
    let service = &state.affiliate;
    let account = tenant.account().id;
    let change =
        |store: ResponseWriter<_>| async move { service.partners.create_partner(account, &input.0, &store).await };
    once(&state, &tenant, (IdempotencyScope::CreatePartner, claim), created_partner_response, change).await
}

/// The fields of a partner to change
#[derive(Debug, RequestObject)]
#[schema(name = "UpdateAffiliate", examples = [{
    "company": "Analytical Engines", "tags": ["podcast", "friend"],
    "commission_override": {"commission_type": "percent", "commission_bps": 3000},
}])]
struct ChangedPartnerFields {
    #[field(flatten)]
    partner: PartnerFields,
    /// The partner that recruited this one (`aff_…`)
    #[field(parse = parse_parent, schema = String::schema)]
    parent_affiliate_id: Option<Option<PartnerId>>,
    /// The URL that receives the partner's own events
    #[field(reader = ClearableLine<URL_BYTES_MAX>, null = None)]
    postback_url: Option<Option<String>>,
    /// Whether the partner has opted out of email, except security email and email it requests
    email_opt_out: Option<bool>,
    #[field(read = read_commission_override, schema = CommissionOverride::schema)]
    commission_override: Option<Option<BasisPoints>>,
    /// The new token of the primary link; the old one stops working
    #[field(reader = LinkTokenText)]
    token: Option<PartnerLinkToken>,
}

fn parse_parent(value: &RawValue) -> Result<PartnerId, String> {
    fields::parse_text(value)?.parse().map_err(|_| "is not a partner of this program".to_owned())
}

/// The partner's own rate; null clears it.
fn read_commission_override(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Option<BasisPoints>> {
    const NAME: &str = "commission_override";
    if fields.is_null(NAME) {
        return Some(None);
    }
    let rate: OverrideFields = read_nested(fields.value(NAME)?, NAME, notes)?;
    Some(Some(rate.commission_bps))
}

/// A rate of one partner.
#[derive(Debug, RequestObject)]
struct OverrideFields {
    #[field(parse = parse_percent, schema = String::schema)]
    #[expect(dead_code, reason = "only one value is accepted")]
    commission_type: Option<Percent>,
    commission_bps: BasisPoints,
}

/// The only type of an own rate.
#[derive(Debug)]
struct Percent;

fn parse_percent(value: &RawValue) -> Result<Percent, String> {
    parse_word(&["percent"], |text| (text == "percent").then_some(Percent), value)
}

const CREATE_ONLY: &str = "is accepted only by `POST /affiliates` and cannot be changed";
/// Fields that an update does not accept.
const CREATE_ONLY_FIELDS: RejectedFields = &[
    ("status", "cannot be changed here; use `POST /affiliates/{id}/approve`, `/reject` or `/suspend`"),
    ("email", CREATE_ONLY),
    ("send_invite", CREATE_ONLY),
    ("paypal_email", "is accepted only by `POST /affiliates`; afterwards, the partner changes it in the portal"),
];

/// Body of `PATCH /affiliates/{id}`.
#[derive(Debug)]
pub struct UpdatePartner(PartnerChange);

impl FromRequest for UpdatePartner {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(ChangedPartnerFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let change: ChangedPartnerFields = read_body_rejecting(call, CREATE_ONLY_FIELDS)?;
        let partner = change.partner;
        Ok(Self(PartnerChange {
            first_name: partner.first_name,
            last_name: partner.last_name,
            company: partner.company,
            website: partner.website,
            country: partner.country,
            notes: partner.notes.map(|notes| notes.filter(|notes| !notes.is_empty())),
            tags: partner.tags,
            campaign: partner.campaign_id.flatten(),
            parent: change.parent_affiliate_id,
            postback_url: change.postback_url,
            email_opt_out: change.email_opt_out,
            commission_override: change.commission_override,
            token: change.token,
        }))
    }
}

/// `PATCH /affiliates/{id}`.
///
/// # Errors
/// The input is invalid, the partner does not exist, it was changed concurrently, or the token is in use.
pub async fn update(
    state: State,
    tenant: Tenant,
    request: UpdateRequest<(PartnerPath, UpdatePartner)>,
) -> Result<VersionedResponse<PartnerResponse>> {
    let ResolvedRequest { input: (target, UpdatePartner(change)), if_match, .. } =
        request.require_set_up_program(&state, &tenant).await?;
    let id = target.id()?;
    let view = state.affiliate.partners.change_partner(tenant.account().id, id, if_match.as_ref(), &change).await;
    view.map(|view| partner_response(&view)).or_problem(&state)
}

/// `DELETE /affiliates/{id}`.
///
/// # Errors
/// The partner does not exist, was paid before, or is in a payout.
pub async fn delete(state: State, tenant: Tenant, request: UpdateRequest<PartnerPath>) -> Result<OkResponse> {
    let ResolvedRequest { input, if_match, .. } = request.require_set_up_program(&state, &tenant).await?;
    let (account, id) = (tenant.account().id, input.id()?);
    let deleted = state.affiliate.partners.delete_partner(account, id, if_match.as_ref()).await;
    deleted.map(|()| OkResponse::OK).or_problem(&state)
}

/// Options of a status change.
struct TransitionOptions {
    /// The owner's free-text reason.
    reason: Option<String>,
    /// Whether the partner is notified by email.
    send_email: bool,
}

/// Options of the approval
#[derive(Debug, RequestObject)]
#[schema(name = "ApproveAffiliate", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct ApprovalFields {
    /// Whether to notify the partner by email; defaults to true
    #[field(absent = true)]
    send_email: bool,
}

/// Options of the rejection
#[derive(Debug, RequestObject)]
#[schema(name = "RejectAffiliate", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct RejectionFields {
    #[field(flatten)]
    suspension: SuspensionFields,
    #[field(flatten)]
    approval: ApprovalFields,
}

/// Options of the suspension
#[derive(Debug, RequestObject)]
#[schema(name = "SuspendAffiliate", body_bytes_max = SMALL_BYTES_MAX, optional_body)]
pub struct SuspensionFields {
    /// The reason, as free text
    #[field(reader = ClearableLine<REASON_BYTES_MAX>, null = None)]
    reason: Option<Option<String>>,
}

impl From<ApprovalFields> for TransitionOptions {
    fn from(ApprovalFields { send_email }: ApprovalFields) -> Self {
        Self { reason: None, send_email }
    }
}

impl From<RejectionFields> for TransitionOptions {
    fn from(RejectionFields { suspension, approval }: RejectionFields) -> Self {
        Self { reason: suspension.reason.flatten(), send_email: approval.send_email }
    }
}

impl From<SuspensionFields> for TransitionOptions {
    fn from(SuspensionFields { reason }: SuspensionFields) -> Self {
        Self { reason: reason.flatten(), send_email: true }
    }
}

async fn apply_transition<F: Into<TransitionOptions>>(
    state: &AppState,
    tenant: &Tenant,
    request: ActionRequest<(PartnerPath, F)>,
    action: PartnerAction,
) -> Result<VersionedResponse<PartnerResponse>> {
    let ResolvedRequest { input: (target, fields), if_match, claim, .. } =
        request.require_set_up_program(state, tenant).await?;
    let TransitionOptions { reason, send_email } = fields.into();
    let id = target.id()?;
    // The fingerprint includes the action, so that one key can be used once per action.
    let claim = claim.map(|claim| queue::intake::idempotency::IdempotencyKey {
        fingerprint: format!("{} {}", action.word(), claim.fingerprint),
        ..claim
    });
    let service = &state.affiliate;
    let account = tenant.account().id;
    let change = |store: ResponseWriter<_>| async move {
        service
            .partners
            .change_partner_status(
                account,
                id,
                &PartnerStatusChange { action, seen: if_match, reason, send_email },
                &store,
            )
            .await
    };
    once(state, tenant, (IdempotencyScope::MovePartner, claim), partner_response, change).await
}

/// `POST /affiliates/{id}/approve`.
///
/// # Errors
/// The partner does not exist, is active or suspended, or was changed concurrently.
pub async fn approve(
    state: State,
    tenant: Tenant,
    request: ActionRequest<(PartnerPath, ApprovalFields)>,
) -> Result<VersionedResponse<PartnerResponse>> {
    apply_transition(&state, &tenant, request, PartnerAction::Approve).await
}

/// `POST /affiliates/{id}/reject`.
///
/// # Errors
/// The partner does not exist, is neither pending nor invited, or was changed concurrently.
pub async fn reject(
    state: State,
    tenant: Tenant,
    request: ActionRequest<(PartnerPath, RejectionFields)>,
) -> Result<VersionedResponse<PartnerResponse>> {
    apply_transition(&state, &tenant, request, PartnerAction::Reject).await
}

/// `POST /affiliates/{id}/suspend`.
///
/// # Errors
/// The partner does not exist, is suspended or rejected, or was changed concurrently.
pub async fn suspend(
    state: State,
    tenant: Tenant,
    request: ActionRequest<(PartnerPath, SuspensionFields)>,
) -> Result<VersionedResponse<PartnerResponse>> {
    apply_transition(&state, &tenant, request, PartnerAction::Suspend).await
}
