//! `…/affiliate-referrals`: persons referred by partners.

use ::affiliate::api_objects::ReferralObject;
use ::affiliate::referrals::{PartnerSelector, ReferralDraft, ReferralResult};
use httpd::paging::KIND_REFERRAL;
use httpd::request_object::RequestValue;
use model::affiliate::partner::PartnerLinkToken;
use model::idempotency::IdempotencyScope;
use store::affiliate::referral::ReferralFilter;

use super::fields::{ClearableLine, EmailAddress};
use super::list_query::page_query;
use super::path::ReferralPath;
use super::request::{CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{ResponseWriter, VersionedResponse, once};
use super::view::{CreateReferralResponse, ListResponse, ReferralResponse, VersionedReferral};
use crate::prelude::*;

/// Maximum length of the payment processor's customer id.
const CUSTOMER_BYTES_MAX: usize = 255;
const SUB_ID_BYTES_MAX: usize = 255;
/// Longer partner ids and tokens cannot exist and are treated as unknown.
const PARTNER_NAME_BYTES_MAX: usize = 100;

/// Query of `GET /affiliate-referrals`.
#[derive(Debug)]
pub struct ListReferrals {
    page: PageParameters,
    filter: ReferralFilter,
}

impl RequestQuery for ListReferrals {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let filter = ReferralFilter {
            statuses: query.words("status", "Filter by status; several separated by commas")?,
            sources: query.words("source", "Filter by source; several separated by commas")?,
            partner: query.value("affiliate_id", "The partner (`aff_…`)", "a partner's id (`aff_…`)")?,
            email: query.email()?,
            created_after: query.time("created_after", "Only those created at this time or later")?,
            created_before: query.time("created_before", "Only those created before this time")?,
        };
        Ok(Self { page, filter })
    }
}

/// `GET /affiliate-referrals`.
pub async fn list(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ListReferrals>,
) -> Result<ListResponse<ReferralObject>> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_REFERRAL)?;
    let found = state.affiliate.ledger.list_referrals(tenant.account().id, &input.filter, page_request).await;
    let found = found.or_problem(&state)?;
    let next = found.next.map(|id| paging::after_id(KIND_REFERRAL, id));
    Ok(ListResponse::new(found.rows.iter().map(ReferralObject::from).collect(), next))
}

/// `GET /affiliate-referrals/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    request: ReadRequest<ReferralPath>,
) -> Result<VersionedResponse<ReferralResponse>> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id()?;
    let referral = state.affiliate.ledger.get_referral(tenant.account().id, id).await.or_problem(&state)?;
    Ok(VersionedResponse::new(&ReferralResponse { referral: ReferralObject::from(&referral) }).with_etag(referral.rev))
}

/// A person referred by a partner; `affiliate_id` or `token` names the partner
#[derive(Debug, RequestObject)]
#[schema(
    name = "CreateAffiliateReferral", examples = [{"token": "ada", "email": "grace@example.net", "sub_id": "spring"}],
)]
struct ReferralFields {
    /// The partner's id (`aff_…`); either this or `token` is required
    #[field(parse = ClearableLine::<PARTNER_NAME_BYTES_MAX>::parse, schema = partner_name_schema)]
    affiliate_id: Option<PartnerName>,
    /// The token of a link of the partner
    #[field(parse = ClearableLine::<PARTNER_NAME_BYTES_MAX>::parse, schema = partner_name_schema)]
    token: Option<PartnerName>,
    /// The person's email address
    #[field(required, reader = EmailAddress)]
    email: Option<Address>,
    /// The payment processor's customer id; assigns later payments to the referral
    #[field(reader = ClearableLine<CUSTOMER_BYTES_MAX>, null = None)]
    processor_customer_id: Option<Option<String>>,
    /// A tag for the partner's reports
    #[field(reader = ClearableLine<SUB_ID_BYTES_MAX>, null = None)]
    sub_id: Option<Option<String>>,
}

/// `None` if it is empty.
type PartnerName = Option<String>;

fn partner_name_schema(schemas: &mut Schemas) -> Value {
    ClearableLine::<PARTNER_NAME_BYTES_MAX>::schema(schemas)
}

impl ReferralFields {
    fn check(&self, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
        let is_given = |name| fields.is_present_or_misnamed(name);
        let is_empty = |name: &Option<PartnerName>| name.as_ref().is_none_or(Option::is_none);
        match (is_given("affiliate_id"), is_given("token")) {
            (true, true) => notes.errors.add("token", "cannot be combined with `affiliate_id`"),
            (false, false) => notes.errors.add("affiliate_id", "is required unless `token` is given"),
            (true, false) if is_empty(&self.affiliate_id) => notes.errors.add("affiliate_id", "is empty"),
            (false, true) if is_empty(&self.token) => notes.errors.add("token", "is empty"),
            _ => {}
        }
    }
}

/// Body of `POST /affiliate-referrals`.
#[derive(Debug)]
pub struct CreateReferral(ReferralDraft);

impl FromRequest for CreateReferral {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(ReferralFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let ReferralFields { affiliate_id, token, email, processor_customer_id, sub_id } =
            read_checked_body(call, ReferralFields::check)?;
        let email = email.ok_or_else(|| Problem::field("email", "is required"))?;
        let partner = match (affiliate_id.flatten(), token.flatten()) {
            (Some(id), _) => id.parse().map_or(PartnerSelector::Nobody, PartnerSelector::Id),
            (None, Some(token)) => {
                PartnerLinkToken::parse(&token).map_or(PartnerSelector::Nobody, PartnerSelector::Token)
            }
            (None, None) => PartnerSelector::Nobody,
        };
        let (customer, sub_id) = (processor_customer_id.flatten(), sub_id.flatten());
        Ok(Self(ReferralDraft { partner, email, customer, sub_id }))
    }
}

fn created_referral_response(result: &ReferralResult) -> VersionedResponse<CreateReferralResponse> {
    let ReferralResult { referral, created } = result;
    let status = if *created { StatusCode::CREATED } else { StatusCode::OK };
    let response = CreateReferralResponse { referral: ReferralObject::from(referral), created: *created };
    VersionedResponse::new(&response).with_status(status).with_etag(referral.rev)
}

/// `POST /affiliate-referrals`.
///
/// # Errors
/// The input is invalid, the program is not live, or no active partner has that id or token.
pub async fn create(state: State, tenant: Tenant, request: CreateRequest<CreateReferral>) -> Result<VersionedReferral> {
    let ResolvedRequest { input, claim, .. } = request.require_set_up_program(&state, &tenant).await?;
    let service = &state.affiliate;
    let account = tenant.account().id;
    let change = |store: ResponseWriter<_>| async move { service.ledger.refer(account, &input.0, &store).await };
    let response = once(&state, &tenant, (IdempotencyScope::CreateReferral, claim), created_referral_response, change);
    response.await.map(VersionedReferral)
}
