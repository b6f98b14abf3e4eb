//! Referrals and commissions: I1, I4 to I7, and whether every stored fact is applied (I9).

use std::collections::BTreeSet;

use model::affiliate::arithmetic::rate::RateShare;
use model::affiliate::commission::{Commission, CommissionLevel, CommissionState};
use model::affiliate::recompute::ReferralBar;
use model::affiliate::referral::{Referral, RejectReason};
use model::id::ReferralId;
use store::affiliate::processor_state::{self, ProcessorObjectKind};
use store::affiliate::referral::ReferralClaim;
use store::affiliate::{commission, referral};

use super::auditor::{Auditor, PAGE_ROWS, REMEMBERED_MAX, next_page};
use super::events::{check_commission_events, check_referral_events};
use super::payouts::check_payout_of_line;
use super::report::Invariant;
use crate::error::LedgerResult as Result;
use crate::ledger::processor_state::{CustomerState, InvoiceState};
use crate::ledger::recompute::recompute_invoice;
use crate::ledger::unit_of_work::UnitOfWork;

pub(super) async fn referrals(audit: &mut Auditor<'_>) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let mut page = None;
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = referral::list(store, account, &referral::ReferralFilter::default(), wanted).await?;
        for referral in &next.rows {
            if audit.is_over() {
                return Ok(());
            }
            audit.checked.referrals += 1;
            check_claims(audit, referral).await?;
            check_no_recompute_pending(audit, referral).await?;
            check_sums(audit, referral).await?;
            check_referral_events(audit, referral).await?;
        }
        page = Some(next);
        // An audit whose thread is to end is dropped here.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// A referral holds the claim on its email and on each of its customers.
async fn check_claims(audit: &mut Auditor<'_>, referral: &Referral) -> Result<()> {
    if referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
        return Ok(());
    }
    let email = referral.email.clone().map(ReferralClaim::Email);
    for claim in email.into_iter().chain(referral.customers().cloned().map(ReferralClaim::Customer)) {
        let claim_holder = referral::find_claim_holder(&audit.context.store, audit.account(), &claim).await?;
        let is_held_by_referral = claim_holder.is_some_and(|claim_holder| claim_holder.id == referral.id);
        audit.check(is_held_by_referral, Invariant::I7, referral.id, || {
            format!("does not hold its own claim, {claim:?}")
        });
    }
    Ok(())
}

/// No recompute is pending for a referral or one of its customers.
async fn check_no_recompute_pending(audit: &mut Auditor<'_>, referral: &Referral) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let mut is_under_way = referral.dealings.going_through.is_some();
    for customer in referral.customers() {
        let read: processor_state::StoredProcessorObject<CustomerState> =
            processor_state::get(store, account, ProcessorObjectKind::Customer, customer).await?;
        is_under_way |= read.value.is_some_and(|row| row.going_through.is_some());
    }
    audit.check(!is_under_way, Invariant::I9, referral.id, || "has invoices whose recompute is pending".to_owned());
    Ok(())
}

/// The invoices of a referral's customers do not exceed the referral's own revenue and count. Invoices of guest
/// checkouts have no index by customer, so the referral's sums may be higher.
async fn check_sums(audit: &mut Auditor<'_>, referral: &Referral) -> Result<()> {
    let (mut revenue, mut count) = (0_i128, 0_u32);
    for customer in referral.customers() {
        let (invoice_revenue, invoice_count) = invoice_totals(audit, referral, customer).await?;
        revenue += invoice_revenue;
        count = count.saturating_add(invoice_count);
    }
    let holds = count <= referral.dealings.invoices && revenue <= i128::from(referral.revenue_cents);
    audit.check(holds, Invariant::I4, referral.id, || {
        format!("has {count} invoices with revenue {revenue}, more than the referral's own totals")
    });
    Ok(())
}

/// Sums the revenue and the number of a customer's invoices that count for its referral.
async fn invoice_totals(audit: &mut Auditor<'_>, referral: &Referral, customer: &str) -> Result<(i128, u32)> {
    let (store, account) = (&audit.context.store, audit.account());
    let (mut revenue, mut count, mut after) = (0_i128, 0_u32, None::<String>);
    loop {
        let ids =
            processor_state::list_customer_invoices(store, account, customer, after.as_deref(), PAGE_ROWS).await?;
        for id in &ids {
            let read: processor_state::StoredProcessorObject<InvoiceState> =
                processor_state::get(store, account, ProcessorObjectKind::Invoice, id).await?;
            let Some(row) = read.value.filter(|row| row.referral == Some(referral.id)) else {
                check_invoice(audit, id).await?;
                continue;
            };
            let Some(counted) = row.counted else { continue };
            revenue += i128::from(counted.revenue);
            count = count.saturating_add(1);
        }
        after = ids.last().cloned();
        if ids.len() < PAGE_ROWS {
            return Ok((revenue, count));
        }
    }
}

pub(super) async fn commissions(audit: &mut Auditor<'_>) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let mut page = None;
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = commission::list(store, account, &commission::CommissionFilter::default(), wanted).await?;
        for line in &next.rows {
            if audit.is_over() {
                return Ok(());
            }
            audit.checked.commissions += 1;
            check_uniqueness(audit, line).await?;
            check_amounts(audit, line);
            check_referral(audit, line).await?;
            check_payout_of_line(audit, line).await?;
            check_commission_events(audit, line).await?;
        }
        let sale = next.rows.iter().filter_map(Commission::sold_invoice).map(|sale| sale.invoice.clone());
        for invoice in sale.collect::<BTreeSet<_>>() {
            check_invoice(audit, &invoice).await?;
        }
        page = Some(next);
        // An audit whose thread is to end is dropped here.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The index for the line's invoice, or for its bounty, points to this line.
async fn check_uniqueness(audit: &mut Auditor<'_>, line: &Commission) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let named = match line.sold_invoice() {
        Some(sale) => commission::list_by_invoice(store, account, &sale.invoice).await?,
        None => commission::find_bounty(store, account, line.referral).await?.into_iter().collect(),
    };
    let is_listed = named.iter().any(|named| named.id == line.id);
    audit.check(is_listed, Invariant::I1, line.id, || "the index names another line".to_owned());
    Ok(())
}

fn check_amounts(audit: &mut Auditor<'_>, line: &Commission) {
    audit.check(line.amount > 0, Invariant::I6, line.id, || format!("has the amount {}", line.amount));
    if let Some(sale) = line.sold_invoice().filter(|_| line.level() == CommissionLevel::One) {
        let calculation = &sale.calculation;
        let is_percent = calculation.groups.iter().all(|group| matches!(group.share, RateShare::Percent(_)));
        let maximum = calculation.base.saturating_add(line.currency.payout_step());
        audit.check(!is_percent || line.amount < maximum, Invariant::I6, line.id, || {
            format!("is {} of a base of {}", line.amount, calculation.base)
        });
    }
    if let CommissionState::Paid { earned_at, paid_at, .. } = line.status {
        audit.check(earned_at <= paid_at, Invariant::I6, line.id, || "was paid before it was earned".to_owned());
    }
}

async fn check_referral(audit: &mut Auditor<'_>, line: &Commission) -> Result<()> {
    // Lines in a payout or paid can no longer be reversed.
    let is_open = matches!(line.status, CommissionState::Pending { .. } | CommissionState::Earned { .. });
    let is_barred = is_open && is_barred(audit, line.referral).await?;
    audit.check(!is_barred, Invariant::I5, line.id, || "is open, but its referral cannot earn".to_owned());
    Ok(())
}

/// Whether a referral may not earn, or does not exist.
async fn is_barred(audit: &mut Auditor<'_>, id: ReferralId) -> Result<bool> {
    if let Some(is_barred) = audit.barred.get(&id) {
        return Ok(*is_barred);
    }
    let found = referral::get(&audit.context.store, audit.account(), id).await?;
    let is_barred = found.as_ref().is_none_or(|found| ReferralBar::from_referral(found).is_some());
    if audit.barred.len() >= REMEMBERED_MAX {
        audit.barred.clear();
    }
    audit.barred.insert(id, is_barred);
    Ok(is_barred)
}

/// Recomputing the invoice from the stored facts changes nothing.
async fn check_invoice(audit: &mut Auditor<'_>, invoice: &str) -> Result<()> {
    let mut work = UnitOfWork::for_program(audit.context, audit.program.clone());
    recompute_invoice(&mut work, invoice).await?;
    audit.check(!work.has_changes(), Invariant::I9, invoice, || {
        "differs from the result of the stored facts".to_owned()
    });
    Ok(())
}
