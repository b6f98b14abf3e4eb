//! New leads: creation, fraud checks and bounty.
//!
//! ```text
//! API, sign-up, checkout ─► prospect ─► self-referral? blocked · suspicious? frozen ─► lead ─► bounty
//! ```
//!
//! The fraud checks are in [`super::fraud_review`].

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::Address;
use model::affiliate::partner::Partner;
use model::affiliate::periods;
use model::affiliate::recompute::{self, LeadInput, ProgramRules, ReferralBar};
use model::affiliate::referral::{
    FraudFlag, Referral, ReferralActivity, ReferralBlock, ReferralRejection, ReferralStatus, RejectReason,
};
use model::affiliate::visit::PartnerVisit;
use model::event::EventKind;
use model::id::{CommissionId, ReferralId};
use store::affiliate::limit_guard::{GuardedLimit, LimitGuard};
use store::affiliate::self_referral_guard;

use super::fraud_review::{collect_flags, flags_of_address, freeze_for_review};
use super::prospect::{Prospect, is_self_referral, lowercase_address};
use super::unit_of_work::UnitOfWork;
use crate::error::LedgerResult as Result;

/// Adds a new lead of a partner; replaces `lapsed_referral`. Its customer is linked; if it paid before,
/// the referral is blocked when it is recomputed. The bounty follows at the end of the recompute.
pub(super) fn enrol<'a>(
    work: &'a mut UnitOfWork,
    partner: &'a Partner,
    prospect: Prospect,
    lapsed_referral: Option<Referral>,
) -> BoxFuture<'a, Result<Referral>> {
    Box::pin(async move {
        // Loaded so that the commit conflicts if the partner is deleted concurrently.
        work.partner(partner.id).await?;
        // Read before leads are counted for the velocity limit.
        let latest = LimitGuard::read(&work.context.store, work.account(), partner.id, GuardedLimit::Leads).await?;
        let new = draft_referral(work, partner, &prospect).await?;
        // A partner above the velocity limit gets frozen leads anyway, so concurrent leads need not conflict.
        if !new.is_flagged(FraudFlag::Velocity) {
            work.referrals.record_latest_lead(latest, &new);
        }
        if let Some(visit) = &prospect.visit
            && let Some(visit) = work.visit(visit.id).await?
        {
            visit.referrals.push(new.id);
        }
        work.add_referral(new.clone(), lapsed_referral.map(|before| (before.clone(), expire(before))));
        if let Some(customer) = prospect.customer {
            assign_customer(work, &customer, new.id).await?;
        }
        work.referrals.awaiting_bounty.push(new.id);
        Ok(new)
    })
}

async fn draft_referral(work: &mut UnitOfWork, partner: &Partner, prospect: &Prospect) -> Result<Referral> {
    let cookie_days = work.campaign(partner.campaign).await?.terms.cookie_days;
    let now = work.now;
    let (claimed_at, expires_at) = match &prospect.visit {
        Some(visit) => (visit.clicked_at, visit.expires_at),
        None => (now, periods::binds_until(now, cookie_days).unwrap_or(Timestamp::MAX)),
    };
    let is_own = match &prospect.email {
        Some(email) if is_self_referral(partner, &email.to_string()) => true,
        _ => is_own_browser(work, partner, prospect.visit.as_ref()).await?,
    };
    let mut new = Referral {
        id: ReferralId::new(now, work.context.random()),
        account: work.account(),
        partner: partner.id,
        status: ReferralStatus::Lead,
        source: prospect.source,
        email: prospect.email.clone(),
        customer: prospect.customer.clone(),
        later_customers: Vec::new(),
        sub_id: prospect.sub_id.clone(),
        link: prospect.link,
        visit: prospect.visit.as_ref().map(|visit| visit.id),
        blocked: is_own.then_some(ReferralBlock::SelfReferral),
        rejection: None,
        review: None,
        dealings: ReferralActivity::default(),
        revenue_cents: 0,
        currency: None,
        claimed_at,
        converted_at: None,
        expires_at,
        rev: 1,
        created_at: now,
        updated_at: now,
    };
    let flags = collect_flags(work, &new, partner, prospect).await?;
    freeze_for_review(work, &mut new, flags);
    Ok(new)
}

/// True if the visitor's browser was signed in to this partner's portal.
async fn is_own_browser(work: &UnitOfWork, partner: &Partner, visit: Option<&PartnerVisit>) -> Result<bool> {
    for visitor in visit.into_iter().flat_map(|visit| &visit.visitors) {
        if self_referral_guard::is_own_browser(&work.context.store, work.account(), partner.id, visitor).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sets the email of a referral of this visit that has none. No other referral may claim the email.
pub(super) async fn set_address_of_visit_referral(
    work: &mut UnitOfWork,
    visit: &PartnerVisit,
    email: &Address,
) -> Result<Option<Referral>> {
    for id in &visit.referrals {
        let found = work.referrals.load(*id).await?.filter(|found| found.email.is_none());
        if let Some(unidentified) = found.map(|found| found.clone()) {
            apply_address(work, unidentified.clone(), email.clone()).await?;
            return Ok(Some(unidentified));
        }
    }
    Ok(None)
}

/// Gives a referral without an email the first of its customers' emails that no other referral claims.
pub(super) async fn set_referral_address(work: &mut UnitOfWork, id: ReferralId) -> Result<()> {
    let Some(found) = work.referrals.get(id).await? else { return Ok(()) };
    if found.email.is_some() {
        return Ok(());
    }
    let mut free = None;
    for customer in found.customers() {
        let email = work.processor.customer(customer).await?.email().and_then(|text| text.parse::<Address>().ok());
        let Some(email) = email.map(|email| lowercase_address(&email)) else { continue };
        if work.referrals.claim_holder(&email).await?.is_none() {
            free = Some(email);
            break;
        }
    }
    match free {
        Some(email) => apply_address(work, found, email).await,
        None => Ok(()),
    }
}

/// Sets a referral's email, which no other referral claims. It may block the referral as a work-referral, or flag
/// it.
async fn apply_address(work: &mut UnitOfWork, unidentified: Referral, email: Address) -> Result<()> {
    let partner = work.partner(unidentified.partner).await?;
    let mut now = Referral { email: Some(email.clone()), ..unidentified };
    if let Some(partner) = partner {
        if now.blocked.is_none() && is_self_referral(&partner, &email.to_string()) {
            now.blocked = Some(ReferralBlock::SelfReferral);
        }
        freeze_for_review(work, &mut now, flags_of_address(&partner, &email));
    }
    let id = now.id;
    if let Some(found) = work.referrals.load(id).await? {
        *found = now;
    }
    work.touched.referrals.insert(id);
    Ok(())
}

fn expire(before: Referral) -> Referral {
    Referral {
        rejection: Some(ReferralRejection { reason: RejectReason::Expired, was: before.status }),
        status: ReferralStatus::Rejected,
        ..before
    }
}

/// Creates the bounty of a new lead.
pub(super) async fn write_bounty(work: &mut UnitOfWork, id: ReferralId) -> Result<()> {
    let Some(referral) = work.referrals.get(id).await? else { return Ok(()) };
    let Some(partner) = work.partner(referral.partner).await? else { return Ok(()) };
    let campaign = work.campaign(partner.campaign).await?;
    let lead = LeadInput {
        referral: id,
        created_at: referral.created_at,
        bar: ReferralBar::from_referral(&referral),
        is_under_review: referral.is_frozen(),
        partner: partner.id,
        campaign: campaign.id,
        campaign_rev: campaign.rev,
        terms: &campaign.terms,
        id: CommissionId::new(work.now, work.context.random()),
        now: work.now,
    };
    if let Some(written) = recompute::bounty_line(&ProgramRules::from_program(&work.program), &lead)? {
        let is_earned = written.changes.contains(&recompute::LineChange::Earned);
        let event_kinds = [Some(EventKind::CommissionCreated), is_earned.then_some(EventKind::CommissionEarned)];
        work.put_line(written.line, event_kinds.into_iter().flatten());
    }
    Ok(())
}

/// Assigns a customer to a referral and schedules the recompute of all its invoices.
pub(super) async fn assign_customer(work: &mut UnitOfWork, customer: &str, id: ReferralId) -> Result<()> {
    let row = work.processor.customer(customer).await?;
    row.referral = Some(id);
    row.going_through = Some(String::new());
    work.touched.customers.insert(customer.to_owned());
    work.touched.referrals.insert(id);
    Ok(())
}
