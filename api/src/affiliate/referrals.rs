//! `…/affiliate-referrals`: persons whom partners brought.

use std::sync::Arc;

use ::affiliate::object::ReferralObject;
use ::affiliate::referrals::{PartnerSelector, ReferralDraft, ReferralResult};
use ::affiliate::refusal::AffiliateNoun;
use http::StatusCode;
use mail::address::Address;
use mail::affiliate::partner::PartnerLinkToken;
use mail::affiliate::referral::{ReferralSource, ReferralStatus};
use mail::idempotency::IdempotencyScope;
use serde_json::json;
use store::access::Tenant;
use store::affiliate::referral::ReferralFilter;

use super::answer::{BeginDecision, VersionedResponse, begin_for_tenant};
use super::asked::{CreateRequest, ReadRequest, ResolvedRequest};
use super::fields::{BodyFieldReader, nullable_text_schema, parse_from_text, text_schema};
use super::view::{CreateReferralResponse, ListResponse, ReferralResponse};
use super::{ReferralPath, list_filter_parameter, page_query, parse_filter, refusal_problem};
use crate::call::{FromRequest, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::fields::FieldNames;
use crate::page::{self, KIND_REFERRAL, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// The longest id of a customer: what the processor's ids have.
const CUSTOMER_BYTES_MAX: usize = 255;
/// The longest tag of a partner.
const SUB_ID_BYTES_MAX: usize = 255;
/// A name of a partner that is longer is nobody's.
const PARTNER_NAME_BYTES_MAX: usize = 100;

/// What `GET /affiliate-referrals` takes.
#[derive(Debug)]
pub struct ListReferrals {
    page: PageParameters,
    filter: ReferralFilter,
}

impl FromRequest for ListReferrals {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        parameters.extend([
            list_filter_parameter("status", ReferralStatus::WORDS, "Where it stands; of several, one"),
            list_filter_parameter("source", ReferralSource::WORDS, "By which way it came; of several, one"),
            schema::query_parameter("affiliate_id", "Who brought it (`aff_…`)", json!({"type": "string"})),
            schema::query_parameter(
                "email",
                "Who it is, exactly; case does not count",
                json!({"type": "string", "format": "email"}),
            ),
            schema::time_parameter("created_after", "Only those made at this time or later"),
            schema::time_parameter("created_before", "Only those made before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let filter = ReferralFilter {
            statuses: page::parse_words(&call.query, "status", ReferralStatus::WORDS, ReferralStatus::from_word)?,
            sources: page::parse_words(&call.query, "source", ReferralSource::WORDS, ReferralSource::from_word)?,
            partner: parse_filter(&given, "affiliate_id", "a partner's id (`aff_…`)")?,
            email: parse_filter(&given, "email", "an email address")?,
            created_after: page::parse_time(&given, "created_after")?,
            created_before: page::parse_time(&given, "created_before")?,
        };
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter })
    }
}

/// `GET /affiliate-referrals`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ListReferrals>,
) -> Result<ListResponse<ReferralObject>, Problem> {
    let said = asked.require_set_up_program(&room, &tenant).await?.input;
    let wanted = page_query(&said.page, KIND_REFERRAL)?;
    let found = room.affiliate.list_referrals(tenant.account().id, &said.filter, wanted).await;
    let found = found.map_err(|refusal| refusal_problem(&room, refusal))?;
    let next = found.next.map(|id| page::after_id(KIND_REFERRAL, id));
    Ok(ListResponse::new(found.rows.iter().map(ReferralObject::from).collect(), next))
}

/// `GET /affiliate-referrals/{id}`.
///
/// # Errors
/// No such referral; the store cannot be read.
pub async fn get(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: ReadRequest<ReferralPath>,
) -> Result<VersionedResponse<ReferralResponse>, Problem> {
    let id = asked.require_set_up_program(&room, &tenant).await?.input.id(AffiliateNoun::Referral)?;
    let found = room.affiliate.get_referral(tenant.account().id, id).await;
    let referral = found.map_err(|refusal| refusal_problem(&room, refusal))?;
    Ok(VersionedResponse::new(&ReferralResponse { referral: ReferralObject::from(&referral) }).with_etag(referral.rev))
}

/// What `POST /affiliate-referrals` takes.
#[derive(Debug)]
pub struct CreateReferral(ReferralDraft);

impl FromRequest for CreateReferral {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CreateAffiliateReferral", |_| {
            let fields = [
                ("email", json!({"type": "string", "format": "email", "description": "Who it is"})),
                (
                    "affiliate_id",
                    text_schema(PARTNER_NAME_BYTES_MAX, "Who brought the person (`aff_…`); this or `token`"),
                ),
                ("token", text_schema(PARTNER_NAME_BYTES_MAX, "The token of one of the partner's links")),
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
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = names!("affiliate_id", "token", "email", "processor_customer_id", "sub_id");
        let mut given = BodyFieldReader::from_body(call, &NAMES)?;
        let by = (
            given.read_nullable_text("affiliate_id", PARTNER_NAME_BYTES_MAX).flatten(),
            given.read_nullable_text("token", PARTNER_NAME_BYTES_MAX).flatten(),
        );
        match (given.has("affiliate_id"), given.has("token")) {
            (true, true) => given.add_error("token", "is not given together with `affiliate_id`"),
            (false, false) => given.add_error("affiliate_id", "is required, or `token`"),
            (true, false) if by.0.is_none() => given.add_error("affiliate_id", "is empty"),
            (false, true) if by.1.is_none() => given.add_error("token", "is empty"),
            _ => {}
        }
        given.require("email");
        let email = given.read_optional("email", parse_from_text::<Address>);
        let customer = given.read_nullable_text("processor_customer_id", CUSTOMER_BYTES_MAX).flatten();
        let sub_id = given.read_nullable_text("sub_id", SUB_ID_BYTES_MAX).flatten();
        given.finish()?;
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

fn created_referral_response(referred: &ReferralResult) -> VersionedResponse<CreateReferralResponse> {
    let ReferralResult { referral, created } = referred;
    let status = if *created { StatusCode::CREATED } else { StatusCode::OK };
    let told = CreateReferralResponse { referral: ReferralObject::from(referral), created: *created };
    VersionedResponse::new(&told).with_status(status).with_etag(referral.rev)
}

/// `POST /affiliate-referrals`.
///
/// # Errors
/// What is wrong with it; the program is not live; no active partner has that id or token.
pub async fn create(
    room: Arc<AppState>,
    tenant: Tenant,
    asked: CreateRequest<CreateReferral>,
) -> Result<VersionedResponse<CreateReferralResponse>, Problem> {
    let ResolvedRequest { input: said, claim, .. } = asked.require_set_up_program(&room, &tenant).await?;
    let doing = match begin_for_tenant(&room, &tenant, IdempotencyScope::CreateReferral, claim).await? {
        BeginDecision::Replay(answer) => return Ok(answer),
        BeginDecision::Proceed(doing) => doing,
    };
    let keep = doing.response_writer(created_referral_response);
    let done = room.affiliate.record_referral(tenant.account().id, &said.0, &keep).await;
    drop(keep);
    doing.finish(&room, done, created_referral_response).await
}
