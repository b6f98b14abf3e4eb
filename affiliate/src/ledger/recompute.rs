//! Recompute: brings every touched customer, referral, invoice and line to the state that the stored facts require.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use message::address::Address;
use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::campaign::Campaign;
use model::affiliate::commission::{Commission, CommissionLevel, ReversalReason};
use model::affiliate::partner::Partner;
use model::affiliate::payout::LineCursor;
use model::affiliate::program::AfterPayout;
use model::affiliate::recompute::{
    self, AccrualStatus, CustomerInput, InvoiceInput, LedgerLine, LineChange, LineUpdate, NoCommission, ProgramRules,
    RecomputeFacts, RecomputeOutcome, RecruiterInput, SaleWorth, SellerInput,
};
use model::affiliate::referral::{Referral, ReferralBlock};
use model::affiliate::sale::{Sale, SaleReturns};
use model::event::EventKind;
use model::id::{AdjustmentId, CommissionId, PartnerId, ReferralId};
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{commission, processor_state};

use super::attribution::{attribute, counts_from};
use super::leads::{set_referral_address, write_bounty};
use super::processor_state::{ChargeState, CountedRevenue, CustomerState, InvoiceState, PaidInvoice};
use super::prospect::is_self_referral;
use super::unit_of_work::{PendingEvent, UnitOfWork};
use crate::error::{LedgerError, LedgerResult as Result};

/// Maximum invoices of a customer that one commit recomputes; the rest is left to the next commit.
const INVOICES_AT_ONCE: usize = 100;
/// Maximum rounds in which a unit of work recomputes what its own changes touched.
const ROUNDS_MAX: usize = 8;

/// All input to the recompute of one invoice.
struct RecomputeInput {
    referral: Referral,
    sale: Sale,
    charge: Option<String>,
    returned: SaleReturns,
    is_excluded: bool,
    /// True if the sale is a checkout session's, and the invoice of its payment counts instead.
    is_replaced: bool,
    nothing: Option<NoCommission>,
    partner: Option<Partner>,
    campaign: Campaign,
    recruiter: Option<RecruiterInput>,
    lines: Vec<Commission>,
    orphans: BTreeSet<PartnerId>,
    /// Lines in approved payouts, which cannot leave them.
    locked: BTreeSet<CommissionId>,
    /// Sum of each line's adjustments.
    adjusted: BTreeMap<CommissionId, i64>,
    ids: [CommissionId; 3],
}

/// Recomputes everything touched. Returns false if the work exceeds one commit: the caller may commit the changes
/// so far, and must then apply the same fact again.
pub(crate) fn recompute_all(work: &mut UnitOfWork) -> BoxFuture<'_, Result<bool>> {
    Box::pin(async move {
        let mut turned = BTreeSet::new();
        for _ in 0..ROUNDS_MAX {
            recompute_touched(work).await?;
            continue_customers(work).await?;
            continue_guests(work).await?;
            let before = turned.len();
            for referral in work.referrals.with_changed_eligibility() {
                if turned.insert(referral) {
                    recompute_referral_lines(work, referral).await?;
                }
            }
            // After a change of eligibility one more round recomputes the referral's invoices, also those of
            // guests: nothing else leads to the invoices of a lapsed referral.
            if work.touched.is_empty() && turned.len() == before {
                break;
            }
        }
        // Bounties come last, because only now it is known whether the new referrals may earn.
        for id in std::mem::take(&mut work.referrals.awaiting_bounty) {
            write_bounty(work, id).await?;
        }
        let is_in_progress =
            !work.processor.customers_in_progress().is_empty() || !work.referrals.guests_in_progress().is_empty();
        Ok(work.touched.is_empty() && !is_in_progress)
    })
}

/// Referrals come first: their eligibility decides whether their invoices earn.
async fn recompute_touched(work: &mut UnitOfWork) -> Result<()> {
    let mut objects = std::mem::take(&mut work.touched);
    for customer in &objects.customers {
        objects.referrals.extend(work.processor.customer(customer).await?.referral);
    }
    for referral in &objects.referrals {
        update_referral_status(work, *referral).await?;
    }
    for invoice in &objects.invoices {
        Box::pin(recompute_invoice(work, invoice)).await?;
    }
    Ok(())
}

/// Schedules the recompute of a referral's bounty and of everything its customers bought, after its eligibility
/// changed.
pub(super) async fn recompute_referral_lines(work: &mut UnitOfWork, id: ReferralId) -> Result<()> {
    recompute_bounty(work, id).await?;
    let Some(found) = work.referrals.load(id).await? else { return Ok(()) };
    let customers: Vec<String> = found.customers().cloned().collect();
    if customers.is_empty() {
        found.dealings.going_through = Some(LineCursor::default());
    }
    for customer in customers {
        recompute_customer_invoices(work, &customer).await?;
    }
    Ok(())
}

/// Schedules the recompute of everything a customer bought.
pub(super) async fn recompute_customer_invoices(work: &mut UnitOfWork, customer: &str) -> Result<()> {
    work.processor.customer(customer).await?.going_through = Some(String::new());
    work.touched.customers.insert(customer.to_owned());
    Ok(())
}

/// Continues the recompute of customers' invoices.
async fn continue_customers(work: &mut UnitOfWork) -> Result<()> {
    let mut limit = INVOICES_AT_ONCE;
    for (customer, after) in work.processor.customers_in_progress() {
        let account = work.account();
        let after = Some(after.as_str()).filter(|after| !after.is_empty());
        let store = &work.context.store;
        let invoices = processor_state::list_customer_invoices(store, account, &customer, after, limit).await?;
        let linked = work.processor.customer(&customer).await?.referral;
        for invoice in &invoices {
            Box::pin(recompute_invoice(work, invoice)).await?;
        }
        let is_whole = invoices.len() < limit;
        limit = limit.saturating_sub(invoices.len());
        let last = invoices.last().cloned().or(after.map(str::to_owned)).unwrap_or_default();
        let row = work.processor.customer(&customer).await?;
        // An invoice linked the customer: start again, for the invoices before it.
        if row.referral == linked {
            row.going_through = (!is_whole).then_some(last);
        }
    }
    Ok(())
}

/// Continues the recompute of the lines of guest checkouts.
async fn continue_guests(work: &mut UnitOfWork) -> Result<()> {
    let (store, account) = (work.context.store.clone(), work.account());
    for (referral, trail) in work.referrals.guests_in_progress() {
        let filter =
            commission::CommissionFilter { referral: Some(referral), ..commission::CommissionFilter::default() };
        let before = trail.after.map(CommissionId::to_bytes);
        let wanted = ListPageRequest { before, limit: INVOICES_AT_ONCE, from: None };
        let page = commission::list(&store, account, &filter, wanted).await?;
        let invoices = page.rows.iter().filter_map(Commission::sold_invoice).map(|sale| &sale.invoice);
        for invoice in invoices.collect::<BTreeSet<_>>() {
            Box::pin(recompute_invoice(work, invoice)).await?;
        }
        if let Some(found) = work.referrals.load(referral).await? {
            let next = page.next.map(CommissionId::from_bytes);
            found.dealings.going_through = next.map(|after| LineCursor { after: Some(after) });
        }
    }
    Ok(())
}

/// Computes a referral's status, block and email from everything known of its customers.
async fn update_referral_status(work: &mut UnitOfWork, id: ReferralId) -> Result<()> {
    set_referral_address(work, id).await?;
    let Some(found) = work.referrals.load(id).await? else { return Ok(()) };
    let mut now = found.clone();
    let mut customers = Vec::new();
    for customer in now.customers() {
        customers.push(work.processor.customer(customer).await?.clone());
    }
    if !customers.is_empty() {
        CustomerState::summarize_subscriptions(&customers, &mut now.dealings);
    }
    let had_paid = customers.iter().any(|state| state.had_paid_before(counts_from(&now)));
    if now.blocked.is_none() && had_paid && work.program.settings.new_customers_only {
        now.blocked = Some(ReferralBlock::ExistingCustomer);
    }
    let mut emails = customers.iter().filter_map(CustomerState::email);
    if now.blocked.is_none()
        && let Some(partner) = work.partner(now.partner).await?
        && emails.any(|email| is_self_referral(&partner, email))
    {
        now.blocked = Some(ReferralBlock::SelfReferral);
    }
    let standing = now.dealings.status();
    match &mut now.rejection {
        // A rejected referral stays rejected; the computed status is what it returns to if it is allowed again.
        Some(rejection) => rejection.was = standing,
        None => now.status = standing,
    }
    if let Some(found) = work.referrals.load(id).await? {
        *found = now;
    }
    Ok(())
}

/// Recomputes an invoice's lines and its contribution to the referral.
pub(crate) async fn recompute_invoice(work: &mut UnitOfWork, id: &str) -> Result<()> {
    let Some(referral) = attribute(work, id).await? else { return Ok(()) };
    // Attribution may have linked a customer, which can block the referral.
    update_referral_status(work, referral).await?;
    let Some(input) = Box::pin(load_recompute_input(work, id, referral)).await? else { return Ok(()) };
    // First the invoice's worth, which does not depend on its lines; then the lines, with the customer converted.
    let worth = input.recompute(work, 1)?.worth;
    update_referral_revenue(work, id, &input, worth).await?;
    update_referral_status(work, referral).await?;
    let Some(input) = Box::pin(load_recompute_input(work, id, referral)).await? else { return Ok(()) };
    let paying = work.referrals.paying_customers_with(referral, input.referral.partner).await?;
    let outcome = input.recompute(work, paying)?;
    work.processor.invoice(id).await?.nothing = outcome.no_commission.filter(|nothing| nothing.is_permanent());
    for adjustment in &outcome.adjustments {
        let adjustment_id = AdjustmentId::new(work.now, work.context.random());
        work.payouts.add_adjustment(adjustment, adjustment_id, work.now)?;
    }
    write_lines(work, id, referral, outcome.updates).await
}

async fn load_recompute_input(work: &mut UnitOfWork, id: &str, referral: ReferralId) -> Result<Option<RecomputeInput>> {
    let row = work.processor.invoice(id).await?;
    let Some(mut paid) = row.paid().cloned() else { return Ok(None) };
    let Some(mut referral) = work.referrals.get(referral).await? else {
        return Ok(None);
    };
    let charges = work.processor.charges_of(id).await?;
    let row = work.processor.invoice(id).await?;
    let mut returned = returned(row, &charges);
    let payments = row.payments.clone();
    // The sale of a session is the same sale as its invoice.
    let first_earning = &mut referral.dealings.first_earning;
    let is_first_by_session = first_earning.as_ref().is_some_and(|first| payments.contains(first));
    if is_first_by_session {
        *first_earning = Some(id.to_owned());
    }
    let is_replaced = work.processor.is_replaced_by_invoice(id).await?;
    if is_replaced {
        // The whole amount moves to the invoice: nothing remains paid here.
        returned.refunded = returned.refunded.max(std::mem::take(&mut paid.sale.amount_paid));
    }
    let charge = charges.iter().map(|(id, _)| id).find(|id| !payments.contains(*id)).cloned();
    let lines = work.lines_of(id).await?;
    let is_excluded = is_excluded(work, id, &charges, &lines).await?;
    // Before the payment was known, the session's sale looked like an earlier one.
    let nothing = work.processor.invoice(id).await?.nothing;
    let nothing = nothing.filter(|nothing| *nothing != NoCommission::OnlyOnce || !is_first_by_session);
    let partner = work.partner(referral.partner).await?;
    let campaign = partner.as_ref().map(|partner| partner.campaign);
    let Some(campaign) = campaign.or(work.program.default_campaign) else {
        return Err(LedgerError::NotSetUp);
    };
    let email = match &paid.customer {
        Some(customer) => work.processor.customer(customer).await?.email().map(str::to_owned),
        None => None,
    };
    let email = email.or(paid.email).and_then(|text| text.parse().ok()).or(referral.email.clone());
    let mut orphans = BTreeSet::new();
    for line in &lines {
        if work.partner(line.partner).await?.is_none() {
            orphans.insert(line.partner);
        }
    }
    Ok(Some(RecomputeInput {
        sale: paid.sale,
        charge,
        returned,
        is_excluded,
        is_replaced,
        nothing,
        recruiter: recruiter_of(work, partner.as_ref(), email.as_ref()).await?,
        campaign: work.campaign(campaign).await?,
        partner,
        locked: work.payouts.locked_lines(&lines).await?,
        adjusted: work.payouts.adjustment_totals(&lines).await?,
        lines,
        orphans,
        ids: [new_line(work), new_line(work), new_line(work)],
        referral,
    }))
}

/// Returns the refunds, credit notes and disputes of an invoice, as far as known.
pub(super) async fn money_returned(work: &mut UnitOfWork, invoice: &str) -> Result<SaleReturns> {
    let charges = work.processor.charges_of(invoice).await?;
    Ok(returned(work.processor.invoice(invoice).await?, &charges))
}

fn new_line(work: &UnitOfWork) -> CommissionId {
    CommissionId::new(work.now, work.context.random())
}

/// True if a flag excludes the sale: one of the invoice, its sessions or its charges, whenever it was set; or one that
/// the customer or the subscription carried from its creation until the payment. A flag that they carry now excludes
/// the sale permanently if it has no line yet. It also keeps lines reversed if the flag of the creation is not known
/// any more.
async fn is_excluded(
    work: &mut UnitOfWork,
    id: &str,
    charges: &[(String, ChargeState)],
    lines: &[Commission],
) -> Result<bool> {
    let is_session_excluded = work.processor.sessions_of(id).await?.iter().any(|session| session.is_excluded);
    let row = work.processor.invoice(id).await?;
    let is_sale_excluded = row.is_excluded || row.was_excluded || is_session_excluded;
    if is_sale_excluded || charges.iter().any(|(_, charge)| charge.is_excluded) {
        return Ok(true);
    }
    let Some(PaidInvoice { sale, customer: Some(customer), subscription, .. }) = row.paid().cloned() else {
        return Ok(false);
    };
    let (state, subscription) = (work.processor.customer(&customer).await?, subscription.as_deref());
    if state.was_excluded_at(sale.paid_at, subscription) {
        // Not permanently: the event of an earlier removal may still arrive.
        return Ok(true);
    }
    let is_reversed = |line: &Commission| matches!(line.status.reversed(), Some((_, ReversalReason::Excluded)));
    let is_excluded_now = state.is_excluded(subscription) && lines.iter().all(is_reversed);
    if is_excluded_now && lines.is_empty() {
        work.processor.invoice(id).await?.was_excluded = true;
    }
    Ok(is_excluded_now)
}

async fn recruiter_of(
    work: &mut UnitOfWork,
    partner: Option<&Partner>,
    customer: Option<&Address>,
) -> Result<Option<RecruiterInput>> {
    let Some(parent) = partner.and_then(|partner| partner.parent) else { return Ok(None) };
    Ok(work.partner(parent).await?.map(|parent| RecruiterInput::from_parent(&parent, customer)))
}

/// Replaces the invoice's former contribution to its referral.
async fn update_referral_revenue(
    work: &mut UnitOfWork,
    id: &str,
    input: &RecomputeInput,
    sale_worth: Option<SaleWorth>,
) -> Result<()> {
    let before = work.processor.invoice(id).await?.counted;
    let Some(found) = work.referrals.load(input.referral.id).await? else { return Ok(()) };
    let paid_at = input.sale.paid_at;
    if let Some(first) = found.converted_at.as_mut().filter(|_| input.is_replaced) {
        // The session may have been the first to convert the referral, in another order of arrival.
        *first = paid_at.min(*first);
        found.dealings.last_paid_at = found.dealings.last_paid_at.max(Some(paid_at));
    }
    let mut is_first = false;
    let now = sale_worth.map(|sale_worth| {
        let currency = *found.currency.get_or_insert(input.sale.currency);
        let revenue = if currency == input.sale.currency { sale_worth.remaining } else { 0 };
        is_first = found.converted_at.is_none();
        found.converted_at = Some(found.converted_at.map_or(paid_at, |first| first.min(paid_at)));
        let last = &mut found.dealings.last_paid_at;
        *last = (*last).max(Some(paid_at));
        CountedRevenue { revenue, is_gone: sale_worth.is_gone }
    });
    let swap = |sum: u32, before: bool, now: bool| sum.saturating_sub(before.into()).saturating_add(now.into());
    let activity = &mut found.dealings;
    activity.invoices = swap(activity.invoices, before.is_some(), now.is_some());
    let is_lost = |counted: Option<CountedRevenue>| counted.is_some_and(|counted| counted.is_gone);
    activity.gone = swap(activity.gone, is_lost(before), is_lost(now));
    let revenue = |counted: Option<CountedRevenue>| counted.map_or(0, |counted| counted.revenue);
    let less = found.revenue_cents.checked_sub(revenue(before));
    let sum = less.and_then(|reduced| reduced.checked_add(revenue(now)));
    found.revenue_cents = sum.ok_or(ArithmeticError::TooLarge)?;
    work.processor.invoice(id).await?.counted = now;
    if is_first {
        work.emit(PendingEvent::Referral(EventKind::ReferralConverted, input.referral.id));
    }
    Ok(())
}

async fn write_lines(
    work: &mut UnitOfWork,
    invoice: &str,
    referral: ReferralId,
    written: Vec<LineUpdate>,
) -> Result<()> {
    for LineUpdate { line, changes: steps } in written {
        let is_new = steps.contains(&LineChange::Created) && line.level() == CommissionLevel::One;
        if is_new && let Some(found) = work.referrals.load(referral).await? {
            found.dealings.first_earning.get_or_insert_with(|| invoice.to_owned());
        }
        work.put_line(line, steps.iter().filter_map(event_of_step));
    }
    Ok(())
}

pub(super) async fn recompute_bounty(work: &mut UnitOfWork, id: ReferralId) -> Result<()> {
    let Some(line) = work.bounty_of(id).await? else { return Ok(()) };
    let Some(referral) = work.referrals.get(id).await? else { return Ok(()) };
    let is_orphan = work.partner(line.partner).await?.is_none();
    let customer = customer_of(&referral);
    let is_locked = work.payouts.locked_lines(std::slice::from_ref(&line)).await?.contains(&line.id);
    let booked = LedgerLine { is_locked, is_orphan, ..LedgerLine::new(&line) };
    if let Some(LineUpdate { line, changes: steps }) = recompute::update_bounty(&booked, &customer, work.now) {
        work.put_line(line, steps.iter().filter_map(event_of_step));
    }
    Ok(())
}

impl RecomputeInput {
    fn recompute(&self, work: &UnitOfWork, paying_customers: u32) -> Result<RecomputeOutcome> {
        let seller = match &self.partner {
            Some(partner) => SellerInput::from_partner(partner, &self.campaign, paying_customers),
            // The partner was deleted: existing lines are settled, and no new ones are created.
            None => SellerInput {
                partner: self.referral.partner,
                accrual: AccrualStatus::Outside,
                campaign: self.campaign.id,
                campaign_rev: self.campaign.rev,
                offer: model::affiliate::arithmetic::rate::RateOffer {
                    terms: &self.campaign.terms,
                    commission_override: None,
                    paying_customers,
                },
            },
        };
        let booked = |line| self.booked(line);
        let lines: Vec<LedgerLine<'_>> = self.lines.iter().map(booked).collect();
        let mut rules = ProgramRules::from_program(&work.program);
        if self.is_replaced {
            // The invoice earns its own commission, so one that was paid for the session is deducted in any case.
            rules.after_payout = AfterPayout::Offset;
        }
        let facts = RecomputeFacts {
            rules,
            invoice: InvoiceInput {
                sale: &self.sale,
                charge: self.charge.as_deref(),
                returned: &self.returned,
                is_excluded: self.is_excluded,
                no_commission: self.nothing,
            },
            customer: customer_of(&self.referral),
            seller,
            recruiter: self.recruiter,
            lines: &lines,
            ids: self.ids,
            now: work.now,
        };
        Ok(recompute::recompute(&facts)?)
    }

    /// Combines a line with the data that the recompute needs about it.
    fn booked<'l>(&self, line: &'l Commission) -> LedgerLine<'l> {
        LedgerLine {
            line,
            is_locked: self.locked.contains(&line.id),
            adjusted: self.adjusted.get(&line.id).copied().unwrap_or(0),
            is_orphan: self.orphans.contains(&line.partner),
        }
    }
}

fn returned(row: &InvoiceState, charges: &[(String, ChargeState)]) -> SaleReturns {
    let charges: Vec<_> = charges.iter().map(|(_, charge)| charge).collect();
    row.paid().map(|paid| row.money_returned(&paid.sale, &charges)).unwrap_or_default()
}

fn customer_of(referral: &Referral) -> CustomerInput<'_> {
    let first_earning = referral.dealings.first_earning.as_deref();
    CustomerInput { counts_from: counts_from(referral), ..CustomerInput::from_referral(referral, first_earning) }
}

/// Returns the event of a change, if the API has one.
fn event_of_step(step: &LineChange) -> Option<EventKind> {
    match step {
        LineChange::Created => Some(EventKind::CommissionCreated),
        LineChange::Earned => Some(EventKind::CommissionEarned),
        LineChange::Reversed(_) => Some(EventKind::CommissionReversed),
        LineChange::ReasonChanged(_)
        | LineChange::Reopened
        | LineChange::Amount { .. }
        | LineChange::Frozen
        | LineChange::Thawed
        | LineChange::LeftPayout(_)
        | LineChange::Charge
        | LineChange::RefundSplit => None,
    }
}
