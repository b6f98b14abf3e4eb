//! New leads: creation, fraud checks and bounty.
//!
//! ```text
//! API, sign-up, checkout ─► prospect ─► self-referral? blocked · suspicious? frozen ─► lead ─► bounty
//! ```
//!
//! The fraud checks are in [`super::fraud_review`].

use std::net::IpAddr;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::partner::Partner;
use mail::affiliate::periods;
use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::recompute::{self, LeadInput, ProgramRules, ReferralBar};
use mail::affiliate::referral::{
    FraudFlag, Referral, ReferralActivity, ReferralBlock, ReferralRejection, ReferralSource, ReferralStatus,
    RejectReason,
};
use mail::affiliate::visit::PartnerVisit;
use mail::event::EventKind;
use mail::id::{CommissionId, PartnerLinkId, ReferralId};
use store::affiliate::limit_guard::LimitGuard;
use store::affiliate::self_referral_guard;
use store::engine::Batch;

use super::recompute::is_self_referral;
use super::{Ledger, LedgerError, UnitOfWork};
use crate::referrals::lowercase_address;

/// A person whom a partner referred and who has no referral yet.
#[derive(Debug, Clone)]
pub(crate) struct Prospect {
    pub(crate) source: ReferralSource,
    /// Lowercase.
    pub(crate) email: Option<Address>,
    /// The processor's customer id.
    pub(crate) customer: Option<String>,
    /// The partner's own tag (`sub_id` of its link).
    pub(crate) sub_id: Option<String>,
    pub(crate) link: Option<PartnerLinkId>,
    /// The visit; its tag, link and attribution window apply.
    pub(crate) visit: Option<PartnerVisit>,
    /// IP address of the sign-up.
    pub(crate) from: Option<IpAddr>,
}

impl Prospect {
    /// Creates a prospect without further details.
    pub(crate) fn new(source: ReferralSource, email: Option<Address>) -> Self {
        Self { source, email, customer: None, sub_id: None, link: None, visit: None, from: None }
    }

    /// Creates a prospect from a visit, with its tag and link.
    pub(crate) fn from_visit(source: ReferralSource, email: Option<Address>, visit: PartnerVisit) -> Self {
        let (sub_id, link) = (visit.sub_id.clone(), Some(visit.link));
        Self { sub_id, link, visit: Some(visit), ..Self::new(source, email) }
    }
}

/// The pending commit of a referral.
pub(crate) struct ReferralCommit {
    pub(crate) batch: Batch,
    /// The referral as it is after the commit.
    pub(crate) referral: Referral,
    /// True if nothing is left to do. False for a customer with many invoices: call [`Ledger::follow_up`] after the
    /// commit.
    pub(crate) is_whole: bool,
}

impl Ledger {
    /// Creates a lead of a partner; replaces `lapsed_referral`, if any.
    pub(crate) async fn create_lead(
        &self,
        program: AffiliateProgram,
        partner: &Partner,
        prospect: Prospect,
        lapsed_referral: Option<Referral>,
    ) -> Result<ReferralCommit, LedgerError> {
        let mut work = UnitOfWork::for_program(self, program);
        let new = work.enrol(partner, prospect, lapsed_referral).await?;
        work.recompute_referral(new, Batch::intake()).await
    }

    /// Links a further customer to an existing referral, and continues a pending recompute of its customers' invoices.
    pub(crate) async fn follow_up(
        &self,
        program: AffiliateProgram,
        referral: Referral,
        customer: Option<&str>,
    ) -> Result<ReferralCommit, LedgerError> {
        let mut work = UnitOfWork::for_program(self, program);
        work.referral(referral.id).await?;
        let mut is_changed = referral.dealings.going_through.is_some();
        if let Some(customer) = customer
            && work.customer(customer).await?.referral.is_none()
        {
            is_changed |= work.link_customer(customer, referral.id, work.now).await?;
        }
        for customer in referral.customers() {
            is_changed |= work.customer(customer).await?.going_through.is_some();
        }
        if !is_changed {
            return Ok(ReferralCommit { batch: Batch::intake(), referral, is_whole: true });
        }
        work.touched.customers.extend(referral.customers().cloned());
        work.recompute_referral(referral, Batch::progress()).await
    }

    /// Sets the email of a referral without one, when a person who bought after the same visit signs up. `None` if the
    /// visit has no such referral.
    pub(crate) async fn set_buyer_address(
        &self,
        program: AffiliateProgram,
        visit: &PartnerVisit,
        email: &Address,
    ) -> Result<Option<ReferralCommit>, LedgerError> {
        let mut work = UnitOfWork::for_program(self, program);
        match work.set_address_of_visit_referral(visit, email).await? {
            Some(named) => work.recompute_referral(named, Batch::progress()).await.map(Some),
            None => Ok(None),
        }
    }
}

impl UnitOfWork<'_> {
    /// Recomputes a referral, or as much of it as one commit takes.
    async fn recompute_referral(mut self, referral: Referral, batch: Batch) -> Result<ReferralCommit, LedgerError> {
        let is_whole = self.recompute_all().await?;
        let referral = self.referral(referral.id).await?.map_or(referral, |found| found.clone());
        Ok(ReferralCommit { batch: self.build_batch(batch).await?, referral, is_whole })
    }

    /// Adds a new lead of a partner; replaces `lapsed_referral`. Its customer is linked; if it paid before,
    /// the referral is blocked when it is recomputed. The bounty follows at the end of the recompute.
    pub(super) fn enrol<'a>(
        &'a mut self,
        partner: &'a Partner,
        prospect: Prospect,
        lapsed_referral: Option<Referral>,
    ) -> BoxFuture<'a, Result<Referral, LedgerError>> {
        Box::pin(async move {
            // Loaded so that the commit conflicts if the partner is deleted concurrently.
            self.partner(partner.id).await?;
            // Read before leads are counted for the velocity limit.
            let latest = LimitGuard::for_leads(self.ledger.store(), self.account(), partner.id).await?;
            let new = self.draft_referral(partner, &prospect).await?;
            // A partner above the velocity limit gets frozen leads anyway, so concurrent leads need not conflict.
            if !new.is_flagged(FraudFlag::Velocity) {
                self.record_latest_lead(latest, &new);
            }
            if let Some(visit) = &prospect.visit
                && let Some(visit) = self.visit(visit.id).await?
            {
                visit.referrals.push(new.id);
            }
            self.add_referral(new.clone(), lapsed_referral.map(|before| (before.clone(), self.expire(before))));
            if let Some(customer) = prospect.customer {
                self.assign_customer(&customer, new.id).await?;
            }
            self.awaiting_bounty.push(new.id);
            Ok(new)
        })
    }

    async fn draft_referral(&mut self, partner: &Partner, prospect: &Prospect) -> Result<Referral, LedgerError> {
        let cookie_days = self.campaign(partner.campaign).await?.terms.cookie_days;
        let now = self.now;
        let (claimed_at, expires_at) = match &prospect.visit {
            Some(visit) => (visit.clicked_at, visit.expires_at),
            None => (now, periods::binds_until(now, cookie_days).unwrap_or(Timestamp::MAX)),
        };
        let is_own = match &prospect.email {
            Some(email) if is_self_referral(partner, &email.to_string()) => true,
            _ => self.is_own_browser(partner, prospect.visit.as_ref()).await?,
        };
        let mut new = Referral {
            id: ReferralId::new(now, self.ledger.random()),
            account: self.account(),
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
        let flags = self.collect_flags(&new, partner, prospect).await?;
        self.freeze_for_review(&mut new, flags);
        Ok(new)
    }

    /// True if the visitor's browser was signed in to this partner's portal.
    async fn is_own_browser(&self, partner: &Partner, visit: Option<&PartnerVisit>) -> Result<bool, LedgerError> {
        for visitor in visit.into_iter().flat_map(|visit| &visit.visitors) {
            if self_referral_guard::is_own_browser(self.ledger.store(), self.account(), partner.id, visitor).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the email of a referral of this visit that has none. No other referral may claim the email.
    async fn set_address_of_visit_referral(
        &mut self,
        visit: &PartnerVisit,
        email: &Address,
    ) -> Result<Option<Referral>, LedgerError> {
        for id in &visit.referrals {
            let found = self.referral(*id).await?.filter(|found| found.email.is_none());
            if let Some(unidentified) = found.map(|found| found.clone()) {
                self.apply_address(unidentified.clone(), email.clone()).await?;
                return Ok(Some(unidentified));
            }
        }
        Ok(None)
    }

    /// Gives a referral without an email the first of its customers' emails that no other referral claims.
    pub(super) async fn set_referral_address(&mut self, id: ReferralId) -> Result<(), LedgerError> {
        let Some(found) = self.referral(id).await?.map(|found| found.clone()) else { return Ok(()) };
        if found.email.is_some() {
            return Ok(());
        }
        let mut free = None;
        for customer in found.customers() {
            let email = self.customer(customer).await?.email().and_then(|text| text.parse::<Address>().ok());
            let Some(email) = email.map(|email| lowercase_address(&email)) else { continue };
            if self.claim_holder(&email).await?.is_none() {
                free = Some(email);
                break;
            }
        }
        match free {
            Some(email) => self.apply_address(found, email).await,
            None => Ok(()),
        }
    }

    /// Sets a referral's email, which no other referral claims. It may block the referral as a self-referral, or flag
    /// it.
    async fn apply_address(&mut self, unidentified: Referral, email: Address) -> Result<(), LedgerError> {
        let partner = self.partner(unidentified.partner).await?;
        let mut now = Referral { email: Some(email.clone()), ..unidentified };
        if let Some(partner) = partner {
            if now.blocked.is_none() && is_self_referral(&partner, &email.to_string()) {
                now.blocked = Some(ReferralBlock::SelfReferral);
            }
            self.freeze_for_review(&mut now, super::fraud_review::flags_of_address(&partner, &email));
        }
        let id = now.id;
        if let Some(found) = self.referral(id).await? {
            *found = now;
        }
        self.touched.referrals.insert(id);
        Ok(())
    }

    pub(super) fn expire(&self, before: Referral) -> Referral {
        Referral {
            rejection: Some(ReferralRejection { reason: RejectReason::Expired, was: before.status }),
            status: ReferralStatus::Rejected,
            ..before
        }
    }

    /// Creates the bounty of a new lead.
    pub(super) async fn write_bounty(&mut self, id: ReferralId) -> Result<(), LedgerError> {
        let Some(referral) = self.referral(id).await?.map(|found| found.clone()) else { return Ok(()) };
        let Some(partner) = self.partner(referral.partner).await? else { return Ok(()) };
        let campaign = self.campaign(partner.campaign).await?;
        let lead = LeadInput {
            referral: id,
            created_at: referral.created_at,
            bar: ReferralBar::from_referral(&referral),
            is_under_review: referral.is_frozen(),
            partner: partner.id,
            campaign: campaign.id,
            campaign_rev: campaign.rev,
            terms: &campaign.terms,
            id: CommissionId::new(self.now, self.ledger.random()),
            now: self.now,
        };
        if let Some(written) = recompute::bounty_line(&ProgramRules::from_program(&self.program), &lead)? {
            let is_earned = written.changes.contains(&recompute::LineChange::Earned);
            let event_kinds = [Some(EventKind::CommissionCreated), is_earned.then_some(EventKind::CommissionEarned)];
            self.put_line(written.line, event_kinds.into_iter().flatten());
        }
        Ok(())
    }
}
