//! `/dashboard/api/affiliate-program/reviews`: referrals that stand out, and what the owner says of them.

use std::sync::Arc;

use ::affiliate::ledger::Verdict;
use ::affiliate::object::{Moment, ReferralObject};
use ::affiliate::office::nothing_beside;
use ::affiliate::refusal::Noun;
use mail::affiliate::referral::{Flag, Referral, Review, ReviewStatus};
use mail::id::{PartnerId, ReferralId};
use serde::Serialize;
use serde_json::Value;

use super::asked::{Change, Opened, Read};
use super::view::Listed;
use super::{OfReferral, refused, several, wanted};
use crate::call::{Call, Input, Owner, Takes};
use crate::page::{self, KIND_REVIEW, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// A referral that is or was to be looked at.
#[derive(Debug, Serialize)]
pub struct ReviewObject {
    referral_id: ReferralId,
    affiliate_id: PartnerId,
    flags: Vec<Flag>,
    status: ReviewStatus,
    created_at: Moment,
    decided_at: Option<Moment>,
}

impl ReviewObject {
    /// That of a referral, if it has one.
    fn of(referral: &Referral) -> Option<Self> {
        let Review { flags, status, created_at, decided_at } = referral.review.clone()?;
        Some(Self {
            referral_id: referral.id,
            affiliate_id: referral.partner,
            flags,
            status,
            created_at: Moment(created_at),
            decided_at: decided_at.map(Moment),
        })
    }
}

impl Describe for ReviewObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let flags = schema::list(schema::words(Flag::WORDS, "One of them"), "What stands out");
        let fields = [
            ("referral_id", schema::string("Which referral (`ref_…`)")),
            ("affiliate_id", schema::string("Who brought it (`aff_…`)")),
            ("flags", flags),
            ("status", schema::words(ReviewStatus::WORDS, "What the owner said")),
            ("created_at", schema::time("Since when it is to be looked at")),
            ("decided_at", schema::nullable_time("When the owner said it")),
        ];
        schemas.named("AffiliateReview", |_| schema::object("A referral that stands out", fields))
    }
}

/// What `GET …/reviews` takes.
#[derive(Debug)]
pub struct ListReviews {
    page: Page,
    statuses: Vec<ReviewStatus>,
}

impl Input for ListReviews {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        parameters.push(several("status", ReviewStatus::WORDS, "What the owner said; of several, one"));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let statuses = page::words(&call.query, "status", ReviewStatus::WORDS, ReviewStatus::of_word)?;
        Ok(Self { page: Page::read(&call.query)?, statuses })
    }
}

/// `GET …/reviews`.
///
/// # Errors
/// The cursor is none of this list's; there is no program.
pub async fn list(
    room: Arc<Room>,
    owner: Owner,
    asked: Read<ListReviews>,
) -> Result<Listed<ReviewObject>, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let wanted = wanted(&said.page, KIND_REVIEW)?;
    let store = room.affiliate.store();
    let found = store::affiliate::referral::reviews(store, program.account, &said.statuses, wanted).await?;
    let next = found.next.map(|id| page::after_id(KIND_REVIEW, id));
    Ok(Listed::of(found.rows.iter().filter_map(ReviewObject::of).collect(), next))
}

/// What was said, and of whom.
#[derive(Debug, Serialize)]
pub struct Decided {
    review: Option<ReviewObject>,
    referral: ReferralObject,
}

impl Describe for Decided {
    fn schema(schemas: &mut Schemas) -> Value {
        let (review, referral) = (ReviewObject::schema(schemas), ReferralObject::schema(schemas));
        schemas.named("DecidedAffiliateReview", |_| {
            schema::object("What was said, and of whom", [("review", review), ("referral", referral)])
        })
    }
}

/// `POST …/reviews/{id}/allow`.
///
/// # Errors
/// No such referral; it lapsed, and another partner has its place.
pub async fn allow(room: Arc<Room>, owner: Owner, asked: Change<OfReferral>) -> Result<Decided, Problem> {
    decide(&room, &owner, asked, Verdict::Allow).await
}

/// `POST …/reviews/{id}/reject`.
///
/// # Errors
/// As [`allow`].
pub async fn reject(room: Arc<Room>, owner: Owner, asked: Change<OfReferral>) -> Result<Decided, Problem> {
    decide(&room, &owner, asked, Verdict::Reject).await
}

async fn decide(
    room: &Room,
    owner: &Owner,
    asked: Change<OfReferral>,
    verdict: Verdict,
) -> Result<Decided, Problem> {
    let Opened { program, said, seen, .. } = asked.open_any(room, owner.tenant()).await?;
    let of = (program.account, said.id(Noun::Referral)?);
    let decided = room.affiliate.ledger().decide(of, verdict, seen.as_ref(), &nothing_beside).await;
    let referral = decided.map_err(|refusal| refused(room, refusal))?;
    Ok(Decided { review: ReviewObject::of(&referral), referral: ReferralObject::from(&referral) })
}
