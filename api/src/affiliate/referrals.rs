//! `…/affiliate-referrals`: persons referred by partners.

use std::sync::Arc;

use ::affiliate::api_objects::ReferralObject;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::referrals::{PartnerSelector, ReferralDraft, ReferralResult};
use http::StatusCode;
use mail::address::Address;
use mail::affiliate::partner::PartnerLinkToken;
use mail::affiliate::referral::{ReferralSource, ReferralStatus};
use mail::idempotency::IdempotencyScope;
use serde_json::json;
use store::access::Tenant;
use store::affiliate::referral::ReferralFilter;

use super::fields::{BodyFieldReader, nullable_text_schema, parse_from_text, text_schema};
use super::list_query::{list_filter_parameter, page_query, parse_filter};
use super::path::ReferralPath;
use super::refusal::refusal_problem;
use super::request::{CreateRequest, ReadRequest, ResolvedRequest};
use super::response::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::view::{CreateReferralResponse, ListResponse, ReferralResponse};
use crate::fields::FieldNames;
use crate::paging::{self, KIND_REFERRAL, PageParameters};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::schema::{self, Schemas};
use crate::state::AppState;

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
///
/// # Errors
/// The cursor is invalid; the store cannot be read.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ListReferrals>,
) -> Result<ListResponse<ReferralObject>, Problem> {
    let input = request.require_set_up_program(&state, &tenant).await?.input;
    let page_request = page_query(&input.page, KIND_REFERRAL)?;
    let found = state.affiliate.list_referrals(tenant.account().id, &input.filter, page_request).await;
    let found = found.map_err(|refusal| refusal_problem(&state, refusal))?;
    let next = found.next.map(|id| paging::after_id(KIND_REFERRAL, id));
    Ok(ListResponse::new(found.rows.iter().map(ReferralObject::from).collect(), next))
}

/// `GET /affiliate-referrals/{id}`.
///
/// # Errors
/// The referral does not exist; the store cannot be read.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    request: ReadRequest<ReferralPath>,
) -> Result<VersionedResponse<ReferralResponse>, Problem> {
    let id = request.require_set_up_program(&state, &tenant).await?.input.id(AffiliateNoun::Referral)?;
    let found = state.affiliate.get_referral(tenant.account().id, id).await;
    let referral = found.map_err(|refusal| refusal_problem(&state, refusal))?;
    Ok(VersionedResponse::new(&ReferralResponse { referral: ReferralObject::from(&referral) }).with_etag(referral.rev))
}

/// Body of `POST /affiliate-referrals`.
#[derive(Debug)]
pub struct CreateReferral(ReferralDraft);

impl FromRequest for CreateReferral {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliateReferral", |_| {
            let fields = [
                ("email", json!({"type": "string", "format": "email", "description": "The person's email address"})),
                (
                    "affiliate_id",
                    text_schema(
                        PARTNER_NAME_BYTES_MAX,
                        "The partner's id (`aff_…`); either this or `token` is required",
                    ),
                ),
                ("token", text_schema(PARTNER_NAME_BYTES_MAX, "The token of a link of the partner")),
                (
                    "processor_customer_id",
                    nullable_text_schema(
                        CUSTOMER_BYTES_MAX,
                        "The payment processor's customer id; assigns later payments to the referral",
                    ),
                ),
                ("sub_id", nullable_text_schema(SUB_ID_BYTES_MAX, "A tag for the partner's reports")),
            ];
            let mut schema = schema::object_with(
                "A person referred by a partner; `affiliate_id` or `token` names the partner",
                &["email"],
                fields,
            );
            schema["examples"] = json!([{"token": "ada", "email": "grace@example.net", "sub_id": "spring"}]);
            schema
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("affiliate_id", "token", "email", "processor_customer_id", "sub_id");
        let mut reader = BodyFieldReader::from_body(call, &NAMES)?;
        let by = (
            reader.read_nullable_text("affiliate_id", PARTNER_NAME_BYTES_MAX).flatten(),
            reader.read_nullable_text("token", PARTNER_NAME_BYTES_MAX).flatten(),
        );
        match (reader.has("affiliate_id"), reader.has("token")) {
            (true, true) => reader.add_error("token", "cannot be combined with `affiliate_id`"),
            (false, false) => reader.add_error("affiliate_id", "is required unless `token` is given"),
            (true, false) if by.0.is_none() => reader.add_error("affiliate_id", "is empty"),
            (false, true) if by.1.is_none() => reader.add_error("token", "is empty"),
            _ => {}
        }
        reader.require("email");
        let email = reader.read_optional("email", parse_from_text::<Address>);
        let customer = reader.read_nullable_text("processor_customer_id", CUSTOMER_BYTES_MAX).flatten();
        let sub_id = reader.read_nullable_text("sub_id", SUB_ID_BYTES_MAX).flatten();
        reader.finish()?;
        let email = email.ok_or_else(|| Problem::field("email", "is required"))?;
        let by = match by {
            (Some(id), _) => id.parse().map_or(PartnerSelector::Nobody, PartnerSelector::Id),
            (None, Some(token)) => {
                PartnerLinkToken::parse(&token).map_or(PartnerSelector::Nobody, PartnerSelector::Token)
            }
            (None, None) => PartnerSelector::Nobody,
        };
        Ok(Self(ReferralDraft { partner: by, email, customer, sub_id }))
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
    let done = state.affiliate.record_referral(tenant.account().id, &input.0, &store_response).await;
    drop(store_response);
    in_progress.finish(&state, done, created_referral_response).await
}
