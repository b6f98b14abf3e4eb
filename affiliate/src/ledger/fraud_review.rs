//! Fraud review: flags on a new lead that freeze it until the owner decides.
//!
//! Flags computed from addresses are in `model/src/affiliate/fraud_checks.rs`. This file computes the flags that need
//! stored data: the partner's rate of referrals, its networks, and shared payout destinations.

use jiff::{SignedDuration, Timestamp};
use message::address::Address;
use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::fraud_checks::{is_company_address, is_disposable};
use model::affiliate::partner::Partner;
use model::affiliate::referral::{FraudFlag, Referral, ReferralReview, ReviewStatus};
use store::affiliate::{commission, partner, referral, self_referral_guard};

use super::prospect::Prospect;
use super::unit_of_work::UnitOfWork;
use crate::error::LedgerResult as Result;

/// Period of the limit on bounties.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Period of the limit on referrals.
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Returns the flags that follow from a person's email.
pub(super) fn flags_of_address(partner: &Partner, email: &Address) -> Vec<FraudFlag> {
    let found = [
        (FraudFlag::CompanyDomain, is_company_address(partner, email)),
        (FraudFlag::DisposableDomain, is_disposable(email)),
    ];
    found.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag).collect()
}

/// Returns all flags of a new referral. A blocked referral never earns, so it is not checked.
pub(super) async fn collect_flags(
    work: &mut UnitOfWork,
    new: &Referral,
    partner: &Partner,
    prospect: &Prospect,
) -> Result<Vec<FraudFlag>> {
    if new.blocked.is_some() {
        return Ok(Vec::new());
    }
    let mut flags: Vec<FraudFlag> = prospect.visit.iter().flat_map(|visit| visit.flags.clone()).collect();
    flags.extend(new.email.iter().flat_map(|email| flags_of_address(partner, email)));
    if shares_network_with_partner(work, partner, prospect).await? {
        flags.push(FraudFlag::SameIp);
    }
    if exceeds_velocity(work, partner).await? {
        flags.push(FraudFlag::Velocity);
    }
    if partner::shares_destination(&work.context.store, partner).await? {
        flags.push(FraudFlag::PayoutDestination);
    }
    Ok(flags)
}

/// Freezes a flagged referral for review, unless it has been reviewed before.
pub(super) fn freeze_for_review(work: &UnitOfWork, referral: &mut Referral, mut flags: Vec<FraudFlag>) {
    flags.sort_unstable();
    flags.dedup();
    if !flags.is_empty() && referral.review.is_none() {
        let (status, created_at) = (ReviewStatus::Open, work.now);
        referral.review = Some(ReferralReview { flags, status, created_at, decided_at: None });
    }
}

async fn shares_network_with_partner(work: &UnitOfWork, partner: &Partner, prospect: &Prospect) -> Result<bool> {
    let visit = prospect.visit.as_ref();
    let clicked = visit.and_then(|visit| Some((visit.from?, visit.clicked_at)));
    let signed_up = prospect.from.map(|from| (from, work.now));
    for (from, at) in [clicked, signed_up].into_iter().flatten() {
        if self_referral_guard::was_on_network(&work.context.store, work.account(), partner.id, from, at).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if a partner has reached its limit of referrals per hour or bounties per day. The counts include this unit
/// of work, and a guard row makes the commit conflict if they change ([`store::affiliate::limit_guard`]).
async fn exceeds_velocity(work: &mut UnitOfWork, partner: &Partner) -> Result<bool> {
    let (store, account) = (work.context.store.clone(), work.account());
    let limit = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
    let (in_an_hour, in_a_day) = {
        let settings = &work.program.settings;
        (limit(settings.velocity_per_hour), limit(settings.max_bounties_per_day))
    };
    let new_referrals = work.referrals.count_new_of(partner.id);
    if referral::count_since(&store, account, partner.id, since(work, HOUR)?, in_an_hour).await? + new_referrals
        >= in_an_hour
    {
        return Ok(true);
    }
    if work.campaign(partner.campaign).await?.terms.lead_bounty == 0 {
        return Ok(false);
    }
    let bounties = commission::count_bounties_since(&store, account, partner.id, since(work, DAY)?, in_a_day).await?;
    Ok(bounties + new_referrals >= in_a_day)
}

fn since(work: &UnitOfWork, span: SignedDuration) -> Result<Timestamp> {
    let since = work.now.checked_sub(span).map_err(|_| ArithmeticError::BeyondTime)?;
    Ok(since.max(Timestamp::UNIX_EPOCH))
}
