//! `/dashboard/api/affiliate-program/reviews`: referrals held for review, and the owner's decisions.

use ::affiliate::api_objects::{ApiTimestamp, ReferralObject};
use ::affiliate::context::no_extension;
use ::affiliate::ledger::manual_actions::ReferralDecision;
use httpd::paging::KIND_REVIEW;
use model::affiliate::referral::{FraudFlag, Referral, ReferralReview, ReviewStatus};

use super::list_query::page_query;
use super::path::ReferralPath;
use super::request::{ReadRequest, ResolvedRequest, UpdateRequest};
use super::view::ListResponse;
use crate::prelude::*;

/// A referral held for review
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliateReview")]
pub struct ReviewObject {
    /// The referral (`ref_…`)
    referral_id: ReferralId,
    /// The partner (`aff_…`)
    affiliate_id: PartnerId,
    /// Why the referral is held for review
    #[schema(items = {"type": "string", "enum": FraudFlag::WORDS, "description": "A reason for the review"})]
    flags: Vec<FraudFlag>,
    /// The owner's decision
    status: ReviewStatus,
    /// When the referral was held for review
    created_at: ApiTimestamp,
    /// When the owner decided
    decided_at: Option<ApiTimestamp>,
}

impl ReviewObject {
    /// Returns `None` if the referral was never held for review.
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

/// Query of `GET …/reviews`.
#[derive(Debug)]
pub struct ListReviews {
    page: PageParameters,
    statuses: Vec<ReviewStatus>,
}

impl RequestQuery for ListReviews {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        Ok(Self { page, statuses: query.words("status", "Filter by decision; several separated by commas")? })
    }
}

/// `GET …/reviews`.
pub async fn list(state: State, owner: Owner, request: ReadRequest<ListReviews>) -> Result<ListResponse<ReviewObject>> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let page_request = page_query(&input.page, KIND_REVIEW)?;
    let store = state.affiliate.ledger.store();
    let found = store::affiliate::referral::list_reviews(store, program.account, &input.statuses, page_request).await?;
    let next = found.next.map(|id| paging::after_id(KIND_REVIEW, id));
    Ok(ListResponse::new(found.rows.iter().filter_map(ReviewObject::from_referral).collect(), next))
}

object_response! { "A response with a single object", pub ReviewResponse { review: ReviewObject } as "OneAffiliateReview" }

/// `GET …/reviews/{id}`.
///
/// # Errors
/// The referral does not exist, or was never held for review.
pub async fn get(state: State, owner: Owner, request: ReadRequest<ReferralPath>) -> Result<ReviewResponse> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let id = input.id()?;
    let found = store::affiliate::referral::get(state.affiliate.ledger.store(), program.account, id).await?;
    let review = found.as_ref().and_then(ReviewObject::from_referral);
    review.map(|review| ReviewResponse { review }).ok_or_else(|| Problem::not_found("review"))
}

/// The decision on a referral
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "DecidedAffiliateReview")]
pub struct DecideReviewResponse {
    review: Option<ReviewObject>,
    referral: ReferralObject,
}

/// `POST …/reviews/{id}/allow`.
///
/// # Errors
/// The referral does not exist; it expired and the customer was referred by another partner since.
pub async fn allow(state: State, owner: Owner, request: UpdateRequest<ReferralPath>) -> Result<DecideReviewResponse> {
    decide(&state, &owner, request, ReferralDecision::Allow).await
}

/// `POST …/reviews/{id}/reject`.
pub async fn reject(state: State, owner: Owner, request: UpdateRequest<ReferralPath>) -> Result<DecideReviewResponse> {
    decide(&state, &owner, request, ReferralDecision::Reject).await
}

async fn decide(
    state: &AppState,
    owner: &Owner,
    request: UpdateRequest<ReferralPath>,
    decision: ReferralDecision,
) -> Result<DecideReviewResponse> {
    let ResolvedRequest { program, input, if_match, .. } = request.require_program(state, owner.tenant()).await?;
    let id = input.id()?;
    let referral = state
        .affiliate
        .ledger
        .decide_referral(program.account, id, decision, if_match.as_ref(), &no_extension)
        .await
        .or_problem(state)?;
    Ok(DecideReviewResponse {
        review: ReviewObject::from_referral(&referral),
        referral: ReferralObject::from(&referral),
    })
}
