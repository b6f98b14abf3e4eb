//! New leads: who they are, what is known of them already, and what they earn.
//!
//! ```text
//! API, sign-up, checkout ─► prospect ─► itself? blocked · stands out? frozen ([`super::suspicion`]) ─► lead ─► bounty
//! ```

use std::net::IpAddr;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::partner::Partner;
use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::recompute::{self, LeadInput, ProgramRules, ReferralBar};
use mail::affiliate::referral::{
    FraudFlag, Referral, ReferralActivity, ReferralBlock, ReferralRejection, ReferralSource, ReferralStatus,
    RejectReason,
};
use mail::affiliate::visit::PartnerVisit;
use mail::affiliate::window;
use mail::event::EventKind;
use mail::id::{CommissionId, PartnerLinkId, ReferralId};
use store::affiliate::latest::LimitGuard;
use store::affiliate::own_visitor;
use store::engine::Batch;

use super::settle::is_self_referral;
use super::{Ledger, LedgerError, UnitOfWork};
use crate::referrals::lowercase_address;

/// Somebody whom a partner brought, and who is nobody's yet.
#[derive(Debug, Clone)]
pub(crate) struct Prospect {
    /// By which way.
    pub(crate) source: ReferralSource,
    /// The address, in lower case.
    pub(crate) email: Option<Address>,
    /// The processor's customer.
    pub(crate) customer: Option<String>,
    /// The partner's own tag.
    pub(crate) sub_id: Option<String>,
    /// By which link.
    pub(crate) link: Option<PartnerLinkId>,
    /// By which visit: its tag, link and window hold.
    pub(crate) visit: Option<PartnerVisit>,
    /// From where they signed up.
    pub(crate) from: Option<IpAddr>,
}

impl Prospect {
    /// Of whom nothing else is known.
    pub(crate) fn new(source: ReferralSource, email: Option<Address>) -> Self {
        Self { source, email, customer: None, sub_id: None, link: None, visit: None, from: None }
    }

    /// Who came by a visit.
    pub(crate) fn from_visit(source: ReferralSource, email: Option<Address>, visit: PartnerVisit) -> Self {
        let (sub_id, link) = (visit.sub_id.clone(), Some(visit.link));
        Self { sub_id, link, visit: Some(visit), ..Self::new(source, email) }
    }
}

/// What is to be committed of a referral.
pub(crate) struct ReferralCommit {
    /// The commit.
    pub(crate) batch: Batch,
    /// How the referral is then.
    pub(crate) referral: Referral,
    /// Whether it is all. Of a customer with many invoices it is not: [`Ledger::follow_up`] says what follows.
    pub(crate) is_whole: bool,
}

impl Ledger {
    /// A new lead of a partner, in the place of one that has lapsed perhaps.
    pub(crate) async fn create_lead(
        &self,
        program: AffiliateProgram,
        partner: &Partner,
        (prospect, lapsed): (Prospect, Option<Referral>),
    ) -> Result<ReferralCommit, LedgerError> {
        let mut book = UnitOfWork::for_program(self, program);
        let new = book.enrol(partner, prospect, lapsed).await?;
        book.recompute_referral(new, Batch::intake()).await
    }

    /// A referral that stands is told of again, with a customer perhaps that is not linked yet. What is left to do is done,
    /// where invoices of its customers are gone through.
    pub(crate) async fn follow_up(
        &self,
        program: AffiliateProgram,
        (referral, customer): (Referral, Option<&str>),
    ) -> Result<ReferralCommit, LedgerError> {
        let mut book = UnitOfWork::for_program(self, program);
        book.referral(referral.id).await?;
        let mut is_changed = referral.dealings.going_through.is_some();
        if let Some(customer) = customer
            && book.customer(customer).await?.referral.is_none()
        {
            is_changed |= book.link_customer(customer, referral.id, book.now).await?;
        }
        for customer in referral.customers() {
            is_changed |= book.customer(customer).await?.going_through.is_some();
        }
        if !is_changed {
            return Ok(ReferralCommit { batch: Batch::intake(), referral, is_whole: true });
        }
        book.touched.customers.extend(referral.customers().cloned());
        book.recompute_referral(referral, Batch::progress()).await
    }

    /// What is to be committed when somebody who bought before signs up: the address of whom their visit became. `None`:
    /// it became nobody without an address.
    pub(crate) async fn set_buyer_address(
        &self,
        program: AffiliateProgram,
        visit: &PartnerVisit,
        email: &Address,
    ) -> Result<Option<ReferralCommit>, LedgerError> {
        let mut book = UnitOfWork::for_program(self, program);
        match book.set_address_of_visit_referral(visit, email).await? {
            Some(named) => book.recompute_referral(named, Batch::progress()).await.map(Some),
            None => Ok(None),
        }
    }
}

impl UnitOfWork<'_> {
    /// Settles all that follows for a referral, or a part of it.
    async fn recompute_referral(mut self, referral: Referral, batch: Batch) -> Result<ReferralCommit, LedgerError> {
        let is_whole = self.recompute_all().await?;
        let referral = self.referral(referral.id).await?.map_or(referral, |found| found.clone());
        Ok(ReferralCommit { batch: self.build_batch(batch).await?, referral, is_whole })
    }

    /// Writes a new lead of a partner, in the place of one that has lapsed perhaps. A customer that it names is linked, and
    /// says whether it was there before. Its bounty follows when all is settled.
    pub(super) fn enrol<'a>(
        &'a mut self,
        partner: &'a Partner,
        prospect: Prospect,
        lapsed: Option<Referral>,
    ) -> BoxFuture<'a, Result<Referral, LedgerError>> {
        Box::pin(async move {
            // It is held to what it is: a partner who is deleted this very moment brings nobody.
            self.partner(partner.id).await?;
            // Before any is counted.
            let latest = LimitGuard::for_leads(self.ledger.store(), (self.account(), partner.id)).await?;
            let new = self.draft_referral(partner, &prospect).await?;
            // Of a partner who has had more than it may, others are frozen by whatever they count: they need not wait.
            if !new.is_flagged(FraudFlag::Velocity) {
                self.record_latest_lead(latest, &new);
            }
            if let Some(visit) = &prospect.visit
                && let Some(visit) = self.visit(visit.id).await?
            {
                visit.referrals.push(new.id);
            }
            self.add_referral(new.clone(), lapsed.map(|before| (before.clone(), self.expire(before))));
            if let Some(customer) = prospect.customer {
                self.assign_customer(&customer, new.id).await?;
            }
            self.unrewarded.push(new.id);
            Ok(new)
        })
    }

    async fn draft_referral(&mut self, partner: &Partner, prospect: &Prospect) -> Result<Referral, LedgerError> {
        let cookie_days = self.campaign(partner.campaign).await?.terms.cookie_days;
        let now = self.now;
        let (claimed_at, expires_at) = match &prospect.visit {
            Some(visit) => (visit.clicked_at, visit.expires_at),
            None => (now, window::binds_until(now, cookie_days).unwrap_or(Timestamp::MAX)),
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

    /// Whether the partner was in its portal with the visitor's browser.
    async fn is_own_browser(&self, partner: &Partner, visit: Option<&PartnerVisit>) -> Result<bool, LedgerError> {
        for visitor in visit.into_iter().flat_map(|visit| &visit.visitors) {
            let of = (self.account(), partner.id);
            if own_visitor::is_own_browser(self.ledger.store(), of, visitor).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whom a visit became without an address: it has this one from now on, which is nobody else's.
    async fn set_address_of_visit_referral(
        &mut self,
        visit: &PartnerVisit,
        email: &Address,
    ) -> Result<Option<Referral>, LedgerError> {
        for id in &visit.referrals {
            let found = self.referral(*id).await?.filter(|found| found.email.is_none());
            if let Some(nameless) = found.map(|found| found.clone()) {
                self.apply_address(nameless.clone(), email.clone()).await?;
                return Ok(Some(nameless));
            }
        }
        Ok(None)
    }

    /// A referral whose address was not known gets the first of its customers' that is nobody else's.
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

    /// A referral has this address, which is nobody else's: it may bar it, or stand out.
    async fn apply_address(&mut self, nameless: Referral, email: Address) -> Result<(), LedgerError> {
        let partner = self.partner(nameless.partner).await?;
        let mut now = Referral { email: Some(email.clone()), ..nameless };
        if let Some(partner) = partner {
            if now.blocked.is_none() && is_self_referral(&partner, &email.to_string()) {
                now.blocked = Some(ReferralBlock::SelfReferral);
            }
            self.freeze_for_review(&mut now, super::suspicion::flags_of_address(&partner, &email));
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

    /// Writes the bounty of a new lead.
    pub(super) async fn write_bounty(&mut self, id: ReferralId) -> Result<(), LedgerError> {
        let Some(referral) = self.referral(id).await?.map(|found| found.clone()) else { return Ok(()) };
        let Some(partner) = self.partner(referral.partner).await? else { return Ok(()) };
        let campaign = self.campaign(partner.campaign).await?;
        let lead = LeadInput {
            referral: id,
            created_at: referral.created_at,
            barred: ReferralBar::of(&referral),
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
            let news = [Some(EventKind::CommissionCreated), is_earned.then_some(EventKind::CommissionEarned)];
            self.put_line(written.line, news.into_iter().flatten());
        }
        Ok(())
    }
}
