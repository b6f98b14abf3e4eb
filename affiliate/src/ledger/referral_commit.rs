//! Commits of one referral: a new lead, a further customer, or the email of a buyer.

use message::address::Address;
use model::affiliate::partner::Partner;
use model::affiliate::program::AffiliateProgram;
use model::affiliate::referral::Referral;
use model::affiliate::visit::PartnerVisit;
use store::engine::Batch;

use super::attribution::link_customer;
use super::commit_batch::build_batch;
use super::leads::{enrol, set_address_of_visit_referral};
use super::prospect::Prospect;
use super::recompute::recompute_all;
use super::unit_of_work::UnitOfWork;
use crate::context::Context;
use crate::error::LedgerResult as Result;

/// The pending commit of a referral.
pub(crate) struct ReferralCommit {
    pub(crate) batch: Batch,
    pub(crate) referral: Referral,
    /// True if nothing is left to do. False for a customer with many invoices: call [`follow_up`] after the
    /// commit.
    pub(crate) is_whole: bool,
}

/// Creates a lead of a partner; replaces `lapsed_referral`, if any.
pub(crate) async fn create_lead(
    context: &Context,
    program: AffiliateProgram,
    partner: &Partner,
    prospect: Prospect,
    lapsed_referral: Option<Referral>,
) -> Result<ReferralCommit> {
    let mut work = UnitOfWork::for_program(context, program);
    let new = enrol(&mut work, partner, prospect, lapsed_referral).await?;
    recompute_referral(work, new, Batch::intake()).await
}

/// Links a further customer to an existing referral, and continues a pending recompute of its customers' invoices.
pub(crate) async fn follow_up(
    context: &Context,
    program: AffiliateProgram,
    referral: Referral,
    customer: Option<&str>,
) -> Result<ReferralCommit> {
    let mut work = UnitOfWork::for_program(context, program);
    work.referrals.load(referral.id).await?;
    let mut is_changed = referral.dealings.going_through.is_some();
    if let Some(customer) = customer
        && work.processor.customer(customer).await?.referral.is_none()
    {
        let now = work.now;
        is_changed |= link_customer(&mut work, customer, referral.id, now).await?;
    }
    for customer in referral.customers() {
        is_changed |= work.processor.customer(customer).await?.going_through.is_some();
    }
    if !is_changed {
        return Ok(ReferralCommit { batch: Batch::intake(), referral, is_whole: true });
    }
    work.touched.customers.extend(referral.customers().cloned());
    recompute_referral(work, referral, Batch::progress()).await
}

/// Sets the email of a referral without one, when a person who bought after the same visit signs up. `None` if the
/// visit has no such referral.
pub(crate) async fn set_buyer_address(
    context: &Context,
    program: AffiliateProgram,
    visit: &PartnerVisit,
    email: &Address,
) -> Result<Option<ReferralCommit>> {
    let mut work = UnitOfWork::for_program(context, program);
    match set_address_of_visit_referral(&mut work, visit, email).await? {
        Some(named) => recompute_referral(work, named, Batch::progress()).await.map(Some),
        None => Ok(None),
    }
}

/// Recomputes a referral, or as much of it as one commit takes.
async fn recompute_referral(mut work: UnitOfWork, referral: Referral, batch: Batch) -> Result<ReferralCommit> {
    let is_whole = recompute_all(&mut work).await?;
    let referral = work.referrals.load(referral.id).await?.map_or(referral, |found| found.clone());
    Ok(ReferralCommit { batch: build_batch(work, batch).await?, referral, is_whole })
}
