//! `…/affiliate-referrals`: persons referred by partners.

use ::affiliate::api_objects::ReferralObject;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::referrals::{PartnerSelector, ReferralDraft, ReferralResult};
use http::StatusCode;
use httpd::fields::{FieldDiagnostics, ObjectFields};
use httpd::paging::KIND_REFERRAL;
use httpd::request_object::{RequestValue, read_checked_body};
use message::address::Address;
use model::affiliate::partner::PartnerLinkToken;
use model::affiliate::referral::{ReferralSource, ReferralStatus};
use model::idempotency::IdempotencyScope;
use store::affiliate::referral::ReferralFilter;

use super::fields::{ClearableLine, EmailAddress};
use super::list_query::{list_filter_parameter, page_query, parse_filter};
use super::path::ReferralPath;
use super::refusal::refusal_problem;
use super::request::{CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::view::{CreateReferralResponse, ListResponse, ReferralResponse};
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

impl FromRequest for ListReferrals {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", ReferralStatus::WORDS, "Filter by status; several separated by commas"),
            list_filter_parameter("source", ReferralSource::WORDS, "Filter by source; several separated by commas"),
            schema::query_parameter("affiliate_id", "The partner (`aff_…`)", json!({"type": "string"})),
            schema::query_parameter(
                "email",
                "The exact email address, case-insensitive",
                json!({"type": "string", "format": "email"}),
            ),
            schema::time_parameter("created_after", "Only those created at this time or later"),
            schema::time_parameter("created_before", "Only those created before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let filter = ReferralFilter {
            statuses: paging::parse_words(&call.query, "status", ReferralStatus::WORDS, ReferralStatus::from_word)?,
            sources: paging::parse_words(&call.query, "source", ReferralSource::WORDS, ReferralSource::from_word)?,
            partner: parse_filter(&parameters, "affiliate_id", "a partner's id (`aff_…`)")?,
            email: parse_filter(&parameters, "email", "an email address")?,
            created_after: paging::parse_time(&parameters, "created_after")?,
            created_before: paging::parse_time(&parameters, "created_before")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter })
    }
}

/// `GET /affiliate-referrals`.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ListReferrals>,
) -> Result<ListResponse<ReferralObject>, Problem> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_REFERRAL)?;
    let found = state.affiliate.ledger.referrals.list_referrals(tenant.account().id, &input.filter, page_request).await;
    let found = found.map_err(|refusal| refusal_problem(&state, refusal))?;
    let next = found.next.map(|id| paging::after_id(KIND_REFERRAL, id));
    Ok(ListResponse::new(found.rows.iter().map(ReferralObject::from).collect(), next))
}

/// `GET /affiliate-referrals/{id}`.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ReferralPath>,
) -> Result<VersionedResponse<ReferralResponse>, Problem> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id(AffiliateNoun::Referral)?;
    let found = state.affiliate.ledger.referrals.get_referral(tenant.account().id, id).await;
    let referral = found.map_err(|refusal| refusal_problem(&state, refusal))?;
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

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        body_spec::<ReferralFields>(schemas, Vec::new(), Self::BODY_BYTES_MAX)
    }

    fn read(call: &Request) -> Result<Self, Problem> {
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
pub async fn create(
    state: Arc<AppState>,
    tenant: Tenant,
    request: CreateRequest<CreateReferral>,
) -> Result<VersionedResponse<CreateReferralResponse>, Problem> {
    let ResolvedRequest { input, claim, .. } = request.require_set_up_program(&state, &tenant).await?;
    let in_progress = match begin_for_tenant(&state, &tenant, IdempotencyScope::CreateReferral, claim).await? {
        BeginDecision::Replay(body) => return Ok(body),
        BeginDecision::Proceed(in_progress) => in_progress,
    };
    let store_response = in_progress.response_writer(created_referral_response);
    let done = state.affiliate.ledger.referrals.refer(tenant.account().id, &input.0, &store_response).await;
    drop(store_response);
    in_progress.finish(&state, done, created_referral_response).await
}
