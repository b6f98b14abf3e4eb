//! Attribution: finds the referral that a paying customer belongs to.
//!
//! ```text
//! invoice ─► its customer's referral ─► metadata of customer, subscription, invoice ─► a lead with that email
//! visit ─► the referral it became ─► the referral with that email ─► a new referral of the visit's partner
//! ```
//!
//! A customer is linked once, to the first referral found. All its invoices paid since the referral was claimed then
//! belong to that referral. A referral from a visit is claimed at the time of the click. A referral has a set of
//! customers: a person who checks out again as a new customer is linked by the same rules, at any time.

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::program::ProgramStatus;
use model::affiliate::referral::{Referral, ReferralSource, RejectReason};
use model::affiliate::visit::{PartnerVisit, REFERRALS_MAX};
use model::id::{ReferralId, VisitId};
use store::affiliate::visit::{self, VisitorIdentity};

use super::leads::{assign_customer, enrol};
use super::processor_state::PaidInvoice;
use super::prospect::{Prospect, lowercase_address};
use super::unit_of_work::UnitOfWork;
use crate::error::LedgerResult as Result;
use crate::processor::ReferralHint;

/// The buyer as far as known, and the source that names the referral.
#[derive(Debug, Clone)]
pub(super) struct Buyer {
    /// The processor's customer id; `None` for a guest checkout.
    pub(super) customer: Option<String>,
    pub(super) email: Option<String>,
    /// The processor's time.
    pub(super) at: Timestamp,
    /// The source of a referral created for this buyer.
    pub(super) source: ReferralSource,
}

impl Buyer {
    fn address(&self) -> Option<Address> {
        self.email.as_deref().and_then(|text| text.parse().ok()).map(|email| lowercase_address(&email))
    }
}

/// Returns the referral of an invoice; matches and stores it if it is not known yet.
pub(super) async fn attribute(work: &mut UnitOfWork, invoice: &str) -> Result<Option<ReferralId>> {
    let row = work.processor.invoice(invoice).await?;
    let (referral_id, paid) = (row.referral, row.paid().cloned());
    let Some(mut paid) = paid.filter(|_| referral_id.is_none()) else { return Ok(referral_id) };
    // The session of the payment may know the buyer better than the invoice, which replaces its sale.
    for session in work.processor.sessions_of(invoice).await? {
        if let Some(session) = session.paid() {
            paid.hints.extend(&session.hints);
            paid.email = paid.email.or_else(|| session.email.clone());
        }
    }
    let found = match &paid.customer {
        Some(customer) => referral_of_customer(work, customer, &paid).await?,
        None => referral_of_guest(work, &paid).await?,
    };
    let Some(id) = found else { return Ok(None) };
    let counts = work.referrals.load(id).await?.is_some_and(|found| paid.sale.paid_at >= counts_from(found));
    if counts {
        work.processor.invoice(invoice).await?.referral = Some(id);
    }
    Ok(counts.then_some(id))
}

async fn referral_of_customer(work: &mut UnitOfWork, customer: &str, paid: &PaidInvoice) -> Result<Option<ReferralId>> {
    let row = work.processor.customer(customer).await?;
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
    link_by_hints(work, &buyer, &hints).await?;
    if work.processor.customer(customer).await?.referral.is_none()
        && let Some(referral) = referral_by_address(work, &buyer).await?
    {
        link_customer(work, customer, referral, paid.sale.paid_at).await?;
    }
    Ok(work.processor.customer(customer).await?.referral)
}

/// Matches a guest checkout. A guest has no customer to link, so each purchase is matched by itself.
async fn referral_of_guest(work: &mut UnitOfWork, paid: &PaidInvoice) -> Result<Option<ReferralId>> {
    let (at, source) = (paid.sale.paid_at, ReferralSource::Checkout);
    let buyer = Buyer { customer: None, email: paid.email.clone(), at, source };
    for hint in &paid.hints {
        let Some(id) = referral_of_hint(work, *hint, &buyer).await? else { continue };
        let accepts = |found: &mut Referral| accepts_customer_at(found, paid.sale.paid_at);
        if work.referrals.load(id).await?.is_some_and(accepts) {
            return Ok(Some(id));
        }
    }
    referral_by_address(work, &buyer).await
}

/// Returns the referral that claims the buyer's email, or that of the visit which a page linked to this email.
async fn referral_by_address(work: &mut UnitOfWork, buyer: &Buyer) -> Result<Option<ReferralId>> {
    if let Some(claimed) = claim_by_address(work, buyer.email.as_deref(), buyer.at).await? {
        return Ok(Some(claimed));
    }
    let Some(visit) = visit_by_address(work, buyer.address()).await? else { return Ok(None) };
    let buyer = Buyer { source: ReferralSource::Checkout, ..buyer.clone() };
    referral_of_visit(work, visit, &buyer).await
}

/// Returns the current visit that a page linked to this email.
async fn visit_by_address(work: &UnitOfWork, email: Option<Address>) -> Result<Option<VisitId>> {
    let Some(email) = email else { return Ok(None) };
    let found = visit::find_current(&work.context.store, work.account(), &VisitorIdentity::Person(email)).await?;
    Ok(found.visit.map(|visit| visit.id))
}

/// Returns the referral that claims this email, if it accepts a customer at this time.
async fn claim_by_address(work: &mut UnitOfWork, email: Option<&str>, at: Timestamp) -> Result<Option<ReferralId>> {
    let Some(email) = email.and_then(|text| text.parse::<Address>().ok()) else { return Ok(None) };
    let held = work.referrals.claim_holder(&email).await?;
    Ok(held.filter(|held| accepts_customer_at(held, at)).map(|held| held.id))
}

/// Called when a customer's email becomes known. If a referral or visit matches it, the customer's invoices are
/// recomputed, including those that arrived before the email.
pub(super) async fn recheck_customer_address(work: &mut UnitOfWork, customer: &str) -> Result<()> {
    let row = work.processor.customer(customer).await?;
    let (email, is_linked) = (row.email().map(str::to_owned), row.referral.is_some());
    if is_linked {
        return Ok(());
    }
    let address = email.as_deref().and_then(|text| text.parse::<Address>().ok());
    // Each recomputed invoice checks the time itself.
    if claim_by_address(work, email.as_deref(), Timestamp::MIN).await?.is_some()
        || visit_by_address(work, address).await?.is_some()
    {
        work.processor.customer(customer).await?.going_through = Some(String::new());
    }
    Ok(())
}

/// Links a customer by the first hint that leads to a referral which accepts it.
pub(super) async fn link_by_hints(work: &mut UnitOfWork, buyer: &Buyer, hints: &[ReferralHint]) -> Result<()> {
    let Some(customer) = &buyer.customer else { return Ok(()) };
    let is_linked = work.processor.customer(customer).await?.referral.is_some();
    for hint in hints {
        // A linked customer keeps its referral, and its hints create no new one.
        if !is_linked
            && let Some(id) = referral_of_hint(work, *hint, buyer).await?
            && link_customer(work, customer, id, buyer.at).await?
        {
            break;
        }
    }
    prefer_checkout_source(work, customer, buyer.source).await
}

/// Sets the source to checkout if it was metadata, so that the result does not depend on the order of arrival.
async fn prefer_checkout_source(work: &mut UnitOfWork, customer: &str, source: ReferralSource) -> Result<()> {
    if source == ReferralSource::Checkout
        && let Some(id) = work.processor.customer(customer).await?.referral
        && let Some(found) = work.referrals.load(id).await?
        && found.source == ReferralSource::Metadata
    {
        found.source = source;
    }
    Ok(())
}

async fn referral_of_hint(work: &mut UnitOfWork, hint: ReferralHint, buyer: &Buyer) -> Result<Option<ReferralId>> {
    match hint {
        ReferralHint::Referral(id) => Ok(work.referrals.load(id).await?.map(|found| found.id)),
        ReferralHint::Visit(id) => referral_of_visit(work, id, buyer).await,
    }
}

/// Returns the referral of a visit: the one that it became, else the one that claims the buyer's email, else a new
/// one.
async fn referral_of_visit(work: &mut UnitOfWork, id: VisitId, buyer: &Buyer) -> Result<Option<ReferralId>> {
    let Some(visit) = work.visit(id).await?.map(|found| found.clone()) else { return Ok(None) };
    if let Some(matched) = match_visit_referral(work, &visit, buyer).await? {
        return Ok(Some(matched));
    }
    let email = buyer.address();
    let held = match &email {
        Some(email) => work.referrals.claim_holder(email).await?,
        None => None,
    };
    let lapsed_referral = match held {
        Some(held) if held.has_lapsed(buyer.at) => Some(held),
        Some(held) => return Ok(Some(held.id)),
        None => None,
    };
    let cannot_attribute = buyer.at >= visit.expires_at || visit.referrals.len() >= REFERRALS_MAX;
    if cannot_attribute || work.program.status != ProgramStatus::Live {
        return Ok(None);
    }
    // A deleted partner gets no referral. A suspended partner keeps the referrals that visits have already become.
    let Some(partner) = work.partner(visit.partner).await? else { return Ok(None) };
    let prospect = Prospect::from_visit(buyer.source, email, visit);
    Ok(Some(enrol(work, &partner, prospect, lapsed_referral).await?.id))
}

/// Returns the referral of a visit that matches the buyer: by customer, else by email, else one that has no
/// customer yet (the person may have signed up with another email). Two buyers who share a browser are two
/// referrals.
async fn match_visit_referral(
    work: &mut UnitOfWork,
    visit: &PartnerVisit,
    buyer: &Buyer,
) -> Result<Option<ReferralId>> {
    let email = buyer.address();
    let allows_any_buyer = buyer.customer.is_some() || email.is_none();
    let mut best: Option<(u8, ReferralId)> = None;
    for id in &visit.referrals {
        let Some(found) = work.referrals.load(*id).await? else { continue };
        let has_customer =
            buyer.customer.as_ref().is_some_and(|customer| found.customers().any(|other| other == customer));
        let likeness = if has_customer {
            3
        } else if found.email.is_some() && found.email == email {
            2
        } else if allows_any_buyer && found.customer.is_none() && accepts_customer_at(found, buyer.at) {
            1
        } else {
            continue;
        };
        if best.is_none_or(|(best_likeness, _)| likeness > best_likeness) {
            best = Some((likeness, *id));
        }
    }
    Ok(best.map(|(_, id)| id))
}

/// Links a customer to a referral unless it belongs to another: the first one wins. Returns true if it belongs to
/// this one now.
pub(super) async fn link_customer(
    work: &mut UnitOfWork,
    customer: &str,
    id: ReferralId,
    at: Timestamp,
) -> Result<bool> {
    if let Some(linked) = work.processor.customer(customer).await?.referral {
        return Ok(linked == id);
    }
    let Some(found) = work.referrals.load(id).await? else { return Ok(false) };
    if !accepts_customer_at(found, at) || !found.add_customer(customer) {
        return Ok(false);
    }
    assign_customer(work, customer, id).await?;
    Ok(true)
}

/// True if a referral accepts a new customer at this time (the processor's clock).
fn accepts_customer_at(referral: &Referral, at: Timestamp) -> bool {
    let was_expired = referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired);
    !was_expired && (referral.customer.is_some() || at < referral.expires_at)
}

/// Start of the period whose payments belong to a referral. The processor's clock has whole seconds, so a payment in
/// the second of the claim counts.
pub(super) fn counts_from(referral: &Referral) -> Timestamp {
    Timestamp::from_second(referral.claimed_at.as_second()).unwrap_or(referral.claimed_at)
}
