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
use mail::affiliate::program::Program;
use mail::affiliate::recompute::{self, Barred, Lead, Rules};
use mail::affiliate::referral::{
    Blocked, Dealings, Flag, Referral, ReferralSource, ReferralStatus, RejectReason, Rejection,
};
use mail::affiliate::visit::Visit;
use mail::affiliate::window;
use mail::event::EventKind;
use mail::id::{CommissionId, PartnerLinkId, ReferralId};
use store::affiliate::latest::Latest;
use store::affiliate::own_visitor;
use store::engine::Batch;

use super::settle::is_self;
use super::{Book, Fault, Ledger};
use crate::referrals::lower;

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
    pub(crate) visit: Option<Visit>,
    /// From where they signed up.
    pub(crate) from: Option<IpAddr>,
}

impl Prospect {
    /// Of whom nothing else is known.
    pub(crate) fn new(source: ReferralSource, email: Option<Address>) -> Self {
        Self { source, email, customer: None, sub_id: None, link: None, visit: None, from: None }
    }

    /// Who came by a visit.
    pub(crate) fn by_visit(source: ReferralSource, email: Option<Address>, visit: Visit) -> Self {
        let (sub_id, link) = (visit.sub_id.clone(), Some(visit.link));
        Self { sub_id, link, visit: Some(visit), ..Self::new(source, email) }
    }
}

/// What is to be committed of a referral.
pub(crate) struct Part {
    /// The commit.
    pub(crate) batch: Batch,
    /// How the referral is then.
    pub(crate) referral: Referral,
    /// Whether it is all. Of a customer with many invoices it is not: [`Ledger::follow_up`] says what follows.
    pub(crate) is_whole: bool,
}

impl Ledger {
    /// A new lead of a partner, in the place of one that has lapsed perhaps.
    pub(crate) async fn enrol(
        &self,
        program: Program,
        partner: &Partner,
        (prospect, lapsed): (Prospect, Option<Referral>),
    ) -> Result<Part, Fault> {
        let mut book = Book::of(self, program);
        let new = book.enrol(partner, prospect, lapsed).await?;
        book.settled(new, Batch::intake()).await
    }

    /// A referral that stands is told of again, with a customer perhaps that is not linked yet. What is left to do is done,
    /// where invoices of its customers are gone through.
    pub(crate) async fn follow_up(
        &self,
        program: Program,
        (referral, customer): (Referral, Option<&str>),
    ) -> Result<Part, Fault> {
        let mut book = Book::of(self, program);
        book.referral(referral.id).await?;
        let mut is_changed = referral.dealings.going_through.is_some();
        if let Some(customer) = customer
            && book.customer(customer).await?.referral.is_none()
        {
            is_changed |= book.bind(customer, referral.id, book.now).await?;
        }
        for customer in referral.customers() {
            is_changed |= book.customer(customer).await?.going_through.is_some();
        }
        if !is_changed {
            return Ok(Part { batch: Batch::intake(), referral, is_whole: true });
        }
        book.touched.customers.extend(referral.customers().cloned());
        book.settled(referral, Batch::progress()).await
    }

    /// What is to be committed when somebody who bought before signs up: the address of whom their visit became. `None`:
    /// it became nobody without an address.
    pub(crate) async fn name_buyer(
        &self,
        program: Program,
        visit: &Visit,
        email: &Address,
    ) -> Result<Option<Part>, Fault> {
        let mut book = Book::of(self, program);
        match book.name_one_of(visit, email).await? {
            Some(named) => book.settled(named, Batch::progress()).await.map(Some),
            None => Ok(None),
        }
    }
}

impl Book<'_> {
    /// Settles all that follows for a referral, or a part of it.
    async fn settled(mut self, referral: Referral, batch: Batch) -> Result<Part, Fault> {
        let is_whole = self.settle().await?;
        let referral = self.referral(referral.id).await?.map_or(referral, |found| found.clone());
        Ok(Part { batch: self.close(batch).await?, referral, is_whole })
    }

    /// Writes a new lead of a partner, in the place of one that has lapsed perhaps. A customer that it names is linked, and
    /// says whether it was there before. Its bounty follows when all is settled.
    pub(super) fn enrol<'a>(
        &'a mut self,
        partner: &'a Partner,
        prospect: Prospect,
        lapsed: Option<Referral>,
    ) -> BoxFuture<'a, Result<Referral, Fault>> {
        Box::pin(async move {
            // It is held to what it is: a partner who is deleted this very moment brings nobody.
            self.partner(partner.id).await?;
            // Before any is counted.
            let latest = Latest::lead(self.ledger.store(), (self.account(), partner.id)).await?;
            let new = self.draft(partner, &prospect).await?;
            // Of a partner who has had more than it may, others are frozen by whatever they count: they need not wait.
            if !new.is_flagged(Flag::Velocity) {
                self.add_lead(latest, &new);
            }
            if let Some(visit) = &prospect.visit
                && let Some(visit) = self.visit(visit.id).await?
            {
                visit.referrals.push(new.id);
            }
            self.add_referral(new.clone(), lapsed.map(|before| (before.clone(), self.expired(before))));
            if let Some(customer) = prospect.customer {
                self.take_customer(&customer, new.id).await?;
            }
            self.unrewarded.push(new.id);
            Ok(new)
        })
    }

    async fn draft(&mut self, partner: &Partner, prospect: &Prospect) -> Result<Referral, Fault> {
        let cookie_days = self.campaign(partner.campaign).await?.terms.cookie_days;
        let now = self.now;
        let (claimed_at, expires_at) = match &prospect.visit {
            Some(visit) => (visit.clicked_at, visit.expires_at),
            None => (now, window::binds_until(now, cookie_days).unwrap_or(Timestamp::MAX)),
        };
        let is_own = match &prospect.email {
            Some(email) if is_self(partner, &email.to_string()) => true,
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
            blocked: is_own.then_some(Blocked::SelfReferral),
            rejection: None,
            review: None,
            dealings: Dealings::default(),
            revenue_cents: 0,
            currency: None,
            claimed_at,
            converted_at: None,
            expires_at,
            rev: 1,
            created_at: now,
            updated_at: now,
        };
        let flags = self.suspicions(&new, partner, prospect).await?;
        self.flag(&mut new, flags);
        Ok(new)
    }

    /// Whether the partner was in its portal with the visitor's browser.
    async fn is_own_browser(&self, partner: &Partner, visit: Option<&Visit>) -> Result<bool, Fault> {
        for visitor in visit.into_iter().flat_map(|visit| &visit.visitors) {
            let of = (self.account(), partner.id);
            if own_visitor::is_own_browser(self.ledger.store(), of, visitor).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whom a visit became without an address: it has this one from now on, which is nobody else's.
    async fn name_one_of(&mut self, visit: &Visit, email: &Address) -> Result<Option<Referral>, Fault> {
        for id in &visit.referrals {
            let found = self.referral(*id).await?.filter(|found| found.email.is_none());
            if let Some(nameless) = found.map(|found| found.clone()) {
                self.name(nameless.clone(), email.clone()).await?;
                return Ok(Some(nameless));
            }
        }
        Ok(None)
    }

    /// A referral whose address was not known gets the first of its customers' that is nobody else's.
    pub(super) async fn name_person(&mut self, id: ReferralId) -> Result<(), Fault> {
        let Some(found) = self.referral(id).await?.map(|found| found.clone()) else { return Ok(()) };
        if found.email.is_some() {
            return Ok(());
        }
        let mut free = None;
        for customer in found.customers() {
            let email = self.customer(customer).await?.email().and_then(|text| text.parse::<Address>().ok());
            let Some(email) = email.map(|email| lower(&email)) else { continue };
            if self.holder_of(&email).await?.is_none() {
                free = Some(email);
                break;
            }
        }
        match free {
            Some(email) => self.name(found, email).await,
            None => Ok(()),
        }
    }

    /// A referral has this address, which is nobody else's: it may bar it, or stand out.
    async fn name(&mut self, nameless: Referral, email: Address) -> Result<(), Fault> {
        let partner = self.partner(nameless.partner).await?;
        let mut now = Referral { email: Some(email.clone()), ..nameless };
        if let Some(partner) = partner {
            if now.blocked.is_none() && is_self(&partner, &email.to_string()) {
                now.blocked = Some(Blocked::SelfReferral);
            }
            self.flag(&mut now, super::suspicion::of_address(&partner, &email));
        }
        let id = now.id;
        if let Some(found) = self.referral(id).await? {
            *found = now;
        }
        self.touched.referrals.insert(id);
        Ok(())
    }

    pub(super) fn expired(&self, before: Referral) -> Referral {
        Referral {
            rejection: Some(Rejection { reason: RejectReason::Expired, was: before.status }),
            status: ReferralStatus::Rejected,
            ..before
        }
    }

    /// Writes the bounty of a new lead.
    pub(super) async fn write_bounty(&mut self, id: ReferralId) -> Result<(), Fault> {
        let Some(referral) = self.referral(id).await?.map(|found| found.clone()) else { return Ok(()) };
        let Some(partner) = self.partner(referral.partner).await? else { return Ok(()) };
        let campaign = self.campaign(partner.campaign).await?;
        let lead = Lead {
            referral: id,
            created_at: referral.created_at,
            barred: Barred::of(&referral),
            is_under_review: referral.is_frozen(),
            partner: partner.id,
            campaign: campaign.id,
            campaign_rev: campaign.rev,
            terms: &campaign.terms,
            id: CommissionId::new(self.now, self.ledger.random()),
            now: self.now,
        };
        if let Some(written) = recompute::bounty(&Rules::of(&self.program), &lead)? {
            let is_earned = written.steps.contains(&recompute::Step::Earned);
            let news = [Some(EventKind::CommissionCreated), is_earned.then_some(EventKind::CommissionEarned)];
            self.write_line(written.line, news.into_iter().flatten());
        }
        Ok(())
    }
}
