//! Whose customer it is that pays (completions-affiliate.md 2.2, "Matching order").
//!
//! ```text
//! invoice ─► its customer's referral ─► metadata of the customer, the subscription, the invoice ─► a lead of that address
//! visit ─► whom it became ─► who holds the address ─► a new referral of the visit's partner
//! ```
//!
//! A customer is linked once, to the first referral that is found. From then on all of its invoices are that one's that
//! were paid since it was claimed; who came by a visit is claimed with the click. A referral has a set of customers: who
//! checks out again as a new customer is linked in the same ways as the first, however late.

use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::program::ProgramStatus;
use mail::affiliate::referral::{Referral, ReferralSource, RejectReason};
use mail::affiliate::visit::{PartnerVisit, REFERRALS_MAX};
use mail::id::{ReferralId, VisitId};
use store::affiliate::visit::{self, VisitorIdentity};

use super::heard::PaidInvoice;
use super::leads::Prospect;
use super::{LedgerError, UnitOfWork};
use crate::processor::ReferralHint;
use crate::referrals::lowercase_address;

/// Who buys, as far as that is known, and where the hint stood.
#[derive(Debug, Clone)]
pub(super) struct Buyer {
    /// The processor's customer; none of a guest.
    pub(super) customer: Option<String>,
    /// The address.
    pub(super) email: Option<String>,
    /// By the processor's clock.
    pub(super) at: Timestamp,
    /// By which way a new referral comes.
    pub(super) source: ReferralSource,
}

impl Buyer {
    fn address(&self) -> Option<Address> {
        self.email.as_deref().and_then(|text| text.parse().ok()).map(|email| lowercase_address(&email))
    }
}

impl UnitOfWork<'_> {
    /// The referral that an invoice is of, found now if it was not before.
    pub(super) async fn attribute(&mut self, invoice: &str) -> Result<Option<ReferralId>, LedgerError> {
        let row = self.invoice(invoice).await?;
        let (known, paid) = (row.referral, row.paid().cloned());
        let Some(paid) = paid.filter(|_| known.is_none()) else { return Ok(known) };
        let found = match &paid.customer {
            Some(customer) => self.referral_of_customer(customer, &paid).await?,
            None => self.referral_of_guest(&paid).await?,
        };
        let Some(id) = found else { return Ok(None) };
        let counts = self.referral(id).await?.is_some_and(|found| paid.sale.paid_at >= counts_from(found));
        if counts {
            self.invoice(invoice).await?.referral = Some(id);
        }
        Ok(counts.then_some(id))
    }

    async fn referral_of_customer(
        &mut self,
        customer: &str,
        paid: &PaidInvoice,
    ) -> Result<Option<ReferralId>, LedgerError> {
        let row = self.customer(customer).await?;
        if row.referral.is_some() {
            return Ok(row.referral);
        }
        let mut hints = row.hints(paid.subscription.as_deref());
        hints.extend(&paid.hints);
        let buyer = Buyer {
            customer: Some(customer.to_owned()),
            email: paid.email.clone().or(row.email().map(str::to_owned)),
            at: paid.sale.paid_at,
            source: ReferralSource::Metadata,
        };
        self.link_by_hints(&buyer, &hints).await?;
        if self.customer(customer).await?.referral.is_none()
            && let Some(known) = self.referral_by_address(&buyer).await?
        {
            self.link_customer(customer, known, paid.sale.paid_at).await?;
        }
        Ok(self.customer(customer).await?.referral)
    }

    /// Who buys as a guest is nobody's customer: each purchase is looked at by itself.
    async fn referral_of_guest(&mut self, paid: &PaidInvoice) -> Result<Option<ReferralId>, LedgerError> {
        let (at, source) = (paid.sale.paid_at, ReferralSource::Checkout);
        let buyer = Buyer { customer: None, email: paid.email.clone(), at, source };
        for hint in &paid.hints {
            let Some(id) = self.referral_of_hint(*hint, &buyer).await? else { continue };
            let binds = |found: &mut Referral| accepts_customer_at(found, paid.sale.paid_at);
            if self.referral(id).await?.is_some_and(binds) {
                return Ok(Some(id));
            }
        }
        self.referral_by_address(&buyer).await
    }

    /// Who holds the buyer's address; or whom a visit brought that a page has named.
    async fn referral_by_address(&mut self, buyer: &Buyer) -> Result<Option<ReferralId>, LedgerError> {
        if let Some(claimed) = self.claim_by_address(buyer.email.as_deref(), buyer.at).await? {
            return Ok(Some(claimed));
        }
        let Some(visit) = self.visit_by_address(buyer.address()).await? else { return Ok(None) };
        let buyer = Buyer { source: ReferralSource::Checkout, ..buyer.clone() };
        self.referral_of_visit(visit, &buyer).await
    }

    /// The visit of whom a page has named by this address.
    async fn visit_by_address(&self, email: Option<Address>) -> Result<Option<VisitId>, LedgerError> {
        let Some(email) = email else { return Ok(None) };
        let found = visit::find_current(&self.ledger.store, self.account(), &VisitorIdentity::Person(email)).await?;
        Ok(found.visit.map(|visit| visit.id))
    }

    /// The referral that claims this address, if it takes a customer at this time.
    async fn claim_by_address(
        &mut self,
        email: Option<&str>,
        at: Timestamp,
    ) -> Result<Option<ReferralId>, LedgerError> {
        let Some(email) = email.and_then(|text| text.parse::<Address>().ok()) else { return Ok(None) };
        let held = self.claim_holder(&email).await?;
        Ok(held.filter(|held| accepts_customer_at(held, at)).map(|held| held.id))
    }

    /// A customer whose address is known by now may be somebody's who was brought, to whom invoices bind it that came
    /// before the address did.
    pub(super) async fn recheck_customer_address(&mut self, customer: &str) -> Result<(), LedgerError> {
        let row = self.customer(customer).await?;
        let (email, is_linked) = (row.email().map(str::to_owned), row.referral.is_some());
        if is_linked {
            return Ok(());
        }
        let address = email.as_deref().and_then(|text| text.parse::<Address>().ok());
        // Whether it binds in time, each invoice says for itself.
        if self.claim_by_address(email.as_deref(), Timestamp::MIN).await?.is_some()
            || self.visit_by_address(address).await?.is_some()
        {
            self.customer(customer).await?.going_through = Some(String::new());
        }
        Ok(())
    }

    /// Links a customer by the first of these that leads to a referral that takes it.
    pub(super) async fn link_by_hints(&mut self, buyer: &Buyer, hints: &[ReferralHint]) -> Result<(), LedgerError> {
        let Some(customer) = &buyer.customer else { return Ok(()) };
        let is_linked = self.customer(customer).await?.referral.is_some();
        for hint in hints {
            // Who is linked already is brought by nobody new.
            if !is_linked
                && let Some(id) = self.referral_of_hint(*hint, buyer).await?
                && self.link_customer(customer, id, buyer.at).await?
            {
                break;
            }
        }
        self.prefer_checkout_source(customer, buyer.source).await
    }

    /// A checkout that led to a referral counts before metadata that did, whichever was heard of first.
    async fn prefer_checkout_source(&mut self, customer: &str, source: ReferralSource) -> Result<(), LedgerError> {
        if source == ReferralSource::Checkout
            && let Some(id) = self.customer(customer).await?.referral
            && let Some(found) = self.referral(id).await?
            && found.source == ReferralSource::Metadata
        {
            found.source = source;
        }
        Ok(())
    }

    /// The referral that a hint leads to.
    async fn referral_of_hint(&mut self, hint: ReferralHint, buyer: &Buyer) -> Result<Option<ReferralId>, LedgerError> {
        match hint {
            ReferralHint::Referral(id) => Ok(self.referral(id).await?.map(|found| found.id)),
            ReferralHint::Visit(id) => self.referral_of_visit(id, buyer).await,
        }
    }

    /// The referral that a visit leads to: the one that it became; else that of who holds the buyer's address; else a new
    /// one.
    async fn referral_of_visit(&mut self, id: VisitId, buyer: &Buyer) -> Result<Option<ReferralId>, LedgerError> {
        let Some(visit) = self.visit(id).await?.map(|found| found.clone()) else { return Ok(None) };
        if let Some(became) = self.match_visit_referral(&visit, buyer).await? {
            return Ok(Some(became));
        }
        let email = buyer.address();
        let held = match &email {
            Some(email) => self.claim_holder(email).await?,
            None => None,
        };
        let lapsed = match held {
            Some(held) if held.has_lapsed(buyer.at) => Some(held),
            Some(held) => return Ok(Some(held.id)),
            None => None,
        };
        let is_late = buyer.at >= visit.expires_at || visit.referrals.len() >= REFERRALS_MAX;
        if is_late || self.program.status != ProgramStatus::Live {
            return Ok(None);
        }
        // Whose partner is deleted is nobody's. Of a suspended one's visits those stay that there are.
        let Some(partner) = self.partner(visit.partner).await? else { return Ok(None) };
        let prospect = Prospect::from_visit(buyer.source, email, visit);
        Ok(Some(self.enrol(&partner, prospect, lapsed).await?.id))
    }

    /// Which of those whom a visit became is the buyer: the same customer, the same address, or else one who is no
    /// customer yet, and signed up by another address perhaps. Who share a browser and buy are two.
    async fn match_visit_referral(
        &mut self,
        visit: &PartnerVisit,
        buyer: &Buyer,
    ) -> Result<Option<ReferralId>, LedgerError> {
        let email = buyer.address();
        let may_be_anybody = buyer.customer.is_some() || email.is_none();
        let mut best: Option<(u8, ReferralId)> = None;
        for id in &visit.referrals {
            let Some(found) = self.referral(*id).await? else { continue };
            let has_customer = buyer.customer.as_ref().is_some_and(|its| found.customers().any(|has| has == its));
            let likeness = if has_customer {
                3
            } else if found.email.is_some() && found.email == email {
                2
            } else if may_be_anybody && found.customer.is_none() && accepts_customer_at(found, buyer.at) {
                1
            } else {
                continue;
            };
            if best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, *id));
            }
        }
        Ok(best.map(|(_, id)| id))
    }

    /// Makes a customer a referral's, unless it is another one's: the first wins. Whether it is so now.
    pub(super) async fn link_customer(
        &mut self,
        customer: &str,
        id: ReferralId,
        at: Timestamp,
    ) -> Result<bool, LedgerError> {
        if let Some(linked) = self.customer(customer).await?.referral {
            return Ok(linked == id);
        }
        let Some(found) = self.referral(id).await? else { return Ok(false) };
        if !accepts_customer_at(found, at) || !found.add_customer(customer) {
            return Ok(false);
        }
        self.assign_customer(customer, id).await?;
        Ok(true)
    }

    /// A customer is this referral's from now on, and all of its invoices are looked at again.
    pub(super) async fn assign_customer(&mut self, customer: &str, id: ReferralId) -> Result<(), LedgerError> {
        let row = self.customer(customer).await?;
        row.referral = Some(id);
        row.going_through = Some(String::new());
        self.touched.customers.insert(customer.to_owned());
        self.touched.referrals.insert(id);
        Ok(())
    }
}

/// Whether a referral still takes a customer at this time, by the processor's clock.
fn accepts_customer_at(referral: &Referral, at: Timestamp) -> bool {
    let is_passed_on = referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired);
    !is_passed_on && (referral.customer.is_some() || at < referral.expires_at)
}

/// From when on payments are a referral's. The processor's clock tells whole seconds: what is paid in the second of the
/// claim is paid after it.
pub(super) fn counts_from(referral: &Referral) -> Timestamp {
    Timestamp::from_second(referral.claimed_at.as_second()).unwrap_or(referral.claimed_at)
}
