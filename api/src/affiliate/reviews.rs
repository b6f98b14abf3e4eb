//! `/dashboard/api/affiliate-program/reviews`: referrals that stand out, and what the owner says of them.

use std::sync::Arc;

use ::affiliate::ledger::ReferralDecision;
use ::affiliate::object::{ApiTimestamp, ReferralObject};
use ::affiliate::office::no_extension;
use ::affiliate::refusal::AffiliateNoun;
use mail::affiliate::referral::{FraudFlag, Referral, ReferralReview, ReviewStatus};
use mail::id::{PartnerId, ReferralId};
use serde::Serialize;
use serde_json::Value;

use super::asked::{ReadRequest, ResolvedRequest, UpdateRequest};
use super::view::ListResponse;
use super::{ReferralPath, list_filter_parameter, page_query, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec};
use crate::page::{self, KIND_REVIEW, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// A referral that is or was to be looked at.
#[derive(Debug, Serialize)]
pub struct ReviewObject {
    referral_id: ReferralId,
    affiliate_id: PartnerId,
    flags: Vec<FraudFlag>,
    status: ReviewStatus,
    created_at: ApiTimestamp,
    decided_at: Option<ApiTimestamp>,
}

impl ReviewObject {
    /// That of a referral, if it has one.
    fn from_referral(referral: &Referral) -> Option<Self> {
        let ReferralReview { flags, status, created_at, decided_at } = referral.review.clone()?;
        Some(Self {
            referral_id: referral.id,
            affiliate_id: referral.partner,
            flags,
            status,
            created_at: ApiTimestamp(created_at),
            decided_at: decided_at.map(ApiTimestamp),
        })
    }
}

impl ToSchema for ReviewObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let flags = schema::list(schema::string_enum(FraudFlag::WORDS, "One of them"), "What stands out");
        let fields = [
            ("referral_id", schema::string("Which referral (`ref_…`)")),
            ("affiliate_id", schema::string("Who brought it (`aff_…`)")),
            ("flags", flags),
            ("status", schema::string_enum(ReviewStatus::WORDS, "What the owner said")),
            ("created_at", schema::time("Since when it is to be looked at")),
            ("decided_at", schema::nullable_time("When the owner said it")),
        ];
        schemas.component("AffiliateReview", |_| schema::object("A referral that stands out", fields))
    }
}

/// What `GET …/reviews` takes.
#[derive(Debug)]
pub struct ListReviews {
    page: PageParameters,
    statuses: Vec<ReviewStatus>,
}

impl FromRequest for ListReviews {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        parameters.push(list_filter_parameter("status", ReviewStatus::WORDS, "What the owner said; of several, one"));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let statuses = page::parse_words(&call.query, "status", ReviewStatus::WORDS, ReviewStatus::from_word)?;
        Ok(Self { page: PageParameters::from_query(&call.query)?, statuses })
    }
}

/// `GET …/reviews`.
///
/// # Errors
/// The cursor is none of this list's; there is no program.
pub async fn list(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<ListReviews>,
) -> Result<ListResponse<ReviewObject>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let wanted = page_query(&said.page, KIND_REVIEW)?;
    let store = room.affiliate.store();
    let found = store::affiliate::referral::list_reviews(store, program.account, &said.statuses, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_REVIEW, id));
    Ok(ListResponse::new(found.rows.iter().filter_map(ReviewObject::from_referral).collect(), next))
}

/// What was said, and of whom.
#[derive(Debug, Serialize)]
pub struct DecideReviewResponse {
    review: Option<ReviewObject>,
    referral: ReferralObject,
}

impl ToSchema for DecideReviewResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let (review, referral) = (ReviewObject::schema(schemas), ReferralObject::schema(schemas));
        schemas.component("DecidedAffiliateReview", |_| {
            schema::object("What was said, and of whom", [("review", review), ("referral", referral)])
        })
    }
}

/// `POST …/reviews/{id}/allow`.
///
/// # Errors
/// No such referral; it lapsed, and another partner has its place.
pub async fn allow(
    room: Arc<AppState>,
    owner: Owner,
    asked: UpdateRequest<ReferralPath>,
) -> Result<DecideReviewResponse, Problem> {
    decide(&room, &owner, asked, ReferralDecision::Allow).await
}

/// `POST …/reviews/{id}/reject`.
///
/// # Errors
/// As [`allow`].
pub async fn reject(
    room: Arc<AppState>,
    owner: Owner,
    asked: UpdateRequest<ReferralPath>,
) -> Result<DecideReviewResponse, Problem> {
    decide(&room, &owner, asked, ReferralDecision::Reject).await
}

async fn decide(
    room: &AppState,
    owner: &Owner,
    asked: UpdateRequest<ReferralPath>,
    verdict: ReferralDecision,
) -> Result<DecideReviewResponse, Problem> {
    let ResolvedRequest { program, input: said, if_match: seen, .. } =
        asked.require_program(room, owner.tenant()).await?;
    let of = (program.account, said.id(AffiliateNoun::Referral)?);
    let decided = room.affiliate.ledger().decide_referral(of, verdict, seen.as_ref(), &no_extension).await;
    let referral = decided.map_err(|refusal| refusal_problem(room, refusal))?;
    Ok(DecideReviewResponse {
        review: ReviewObject::from_referral(&referral),
        referral: ReferralObject::from(&referral),
    })
}
