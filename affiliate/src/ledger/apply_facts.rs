//! Applies each kind of fact to the stored processor state and marks what must be recomputed.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::affiliate::payout::PayoutState;
use model::affiliate::program::PayoutMethod;
use model::affiliate::referral::ReferralSource;
use store::affiliate::{partner, payout};

use super::attribution::{Buyer, link_by_hints, recheck_customer_address};
use super::recompute::recompute_customer_invoices;
use super::settlement::{PayoutOutcome, set_destination_able, settle_payout};
use super::unit_of_work::UnitOfWork;
use crate::error::LedgerResult as Result;
use crate::processor::{
    Charge, ChargeDispute, Checkout, ConnectedAccount, CreditNote, Invoice, InvoicePayment, Payment, Refund,
    ReversedTransfer, Subscription, WebhookFact,
};

/// Maximum partners with the same connected account that one event updates.
const PARTNERS_OF_ACCOUNT_MAX: usize = 100;

/// Why a fact has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoEffect(pub(crate) &'static str);

/// Applies a fact; the inner error is the reason why it has no effect.
pub(crate) fn apply<'a>(
    work: &'a mut UnitOfWork,
    fact: &'a WebhookFact,
) -> BoxFuture<'a, Result<Result<(), NoEffect>>> {
    Box::pin(async move {
        match fact {
            WebhookFact::CheckoutCompleted(checkout) => apply_checkout(work, checkout).await?,
            WebhookFact::Customer(customer) => {
                if work.processor.customer(&customer.id).await?.apply(customer) {
                    recompute_customer_invoices(work, &customer.id).await?;
                }
                work.touched.customers.insert(customer.id.clone());
                let buyer = buyer(work, &customer.id, customer.as_of.at, ReferralSource::Metadata).await?;
                link_by_hints(work, &buyer, &customer.marks.hints).await?;
                recheck_customer_address(work, &customer.id).await?;
            }
            WebhookFact::Subscription(subscription) => apply_subscription(work, subscription).await?,
            WebhookFact::InvoicePaid(invoice) => apply_invoice(work, invoice).await?,
            WebhookFact::InvoicePayment(payment) => apply_payment(work, payment).await?,
            WebhookFact::Charge(charge) => apply_charge(work, charge).await?,
            WebhookFact::Refund(refund) => apply_refund(work, refund).await?,
            WebhookFact::CreditNote(note) => apply_credit_note(work, note).await?,
            WebhookFact::Dispute(dispute) => apply_dispute(work, dispute).await?,
            WebhookFact::TransferReversed(transfer) => {
                return apply_transfer_reversal(work, transfer).await;
            }
            WebhookFact::AccountUpdated(account) => return apply_account(work, account).await,
            WebhookFact::Other(_) => {
                return Ok(Err(NoEffect("this event type is not used")));
            }
        }
        Ok(Ok(()))
    })
}

async fn apply_checkout(work: &mut UnitOfWork, checkout: &Checkout) -> Result<()> {
    if let Some(invoice) = &checkout.invoice {
        let payment = Payment { charge: None, payment_intent: checkout.payment_intent.clone() };
        link_payment(work, invoice, &payment).await?;
        if checkout.marks.excluded {
            work.processor.invoice(invoice).await?.is_excluded = true;
        }
    } else if let Some(payment) = &checkout.payment_intent {
        apply_invoiceless_checkout(work, checkout, payment).await?;
    }
    if let Some(customer) = &checkout.customer {
        work.processor.customer(customer).await?.apply_email(checkout.as_of, checkout.email.as_deref());
        work.touched.customers.insert(customer.clone());
        let buyer = buyer(work, customer, checkout.as_of.at, ReferralSource::Checkout).await?;
        link_by_hints(work, &buyer, &checkout.marks.hints).await?;
        recheck_customer_address(work, customer).await?;
    }
    Ok(())
}

/// Applies a session without an invoice: a sale of its own, if the settings count it. An invoice of its payment, which
/// may be known already or come later, takes its exclusion flag and replaces the sale.
async fn apply_invoiceless_checkout(work: &mut UnitOfWork, checkout: &Checkout, payment: &str) -> Result<()> {
    if checkout.marks.excluded {
        work.processor.invoice(payment).await?.is_excluded = true;
    }
    if work.program.settings.count_invoiceless_payments
        && let Some(sale) = checkout.sale()
    {
        work.processor.invoice(payment).await?.apply_checkout(checkout, sale)?;
        link_payment(work, payment, &Payment { charge: None, payment_intent: Some(payment.to_owned()) }).await?;
        apply_sale(work, payment).await?;
    }
    let invoices = work.processor.payment(payment).await?.invoices.clone();
    work.touched.invoices.extend(invoices);
    Ok(())
}

async fn apply_subscription(work: &mut UnitOfWork, subscription: &Subscription) -> Result<()> {
    let Some(customer) = &subscription.customer else { return Ok(()) };
    if work.processor.customer(customer).await?.apply_subscription(subscription) {
        recompute_customer_invoices(work, customer).await?;
    }
    work.touched.customers.insert(customer.clone());
    let buyer = buyer(work, customer, subscription.as_of.at, ReferralSource::Metadata).await?;
    link_by_hints(work, &buyer, &subscription.marks.hints).await
}

/// Builds the buyer from what is stored of the customer.
async fn buyer(work: &mut UnitOfWork, customer: &str, at: Timestamp, source: ReferralSource) -> Result<Buyer> {
    let email = work.processor.customer(customer).await?.email().map(str::to_owned);
    Ok(Buyer { customer: Some(customer.to_owned()), email, at, source })
}

async fn apply_invoice(work: &mut UnitOfWork, invoice: &Invoice) -> Result<()> {
    let id = &invoice.sale.invoice;
    work.processor.invoice(id).await?.apply(invoice)?;
    for payment in &invoice.payments {
        link_payment(work, id, payment).await?;
    }
    for charge in &invoice.charges {
        apply_charge(work, charge).await?;
    }
    if let Some(customer) = &invoice.customer {
        work.processor.customer(customer).await?.apply_email(invoice.as_of, invoice.email.as_deref());
        recheck_customer_address(work, customer).await?;
    }
    apply_sale(work, id).await
}

/// Marks a paid invoice for recompute, indexes it by customer and records the customer's payment.
async fn apply_sale(work: &mut UnitOfWork, id: &str) -> Result<()> {
    work.touched.invoices.insert(id.to_owned());
    for payment in work.processor.invoice(id).await?.payments.clone() {
        // The sale of a checkout session, which the paid invoice replaces.
        if payment != id && work.processor.payment(&payment).await?.invoices.contains(&payment) {
            work.touched.invoices.insert(payment);
        }
    }
    let Some(paid) = work.processor.invoice(id).await?.paid().cloned() else { return Ok(()) };
    let Some(customer) = &paid.customer else { return Ok(()) };
    work.processor.index_invoice(customer, id).await?;
    work.touched.customers.insert(customer.clone());
    if model::affiliate::arithmetic::base::commissionable_base(&paid.sale)?.is_some() {
        work.processor.customer(customer).await?.apply_payment(paid.sale.paid_at);
    }
    Ok(())
}

async fn apply_payment(work: &mut UnitOfWork, payment: &InvoicePayment) -> Result<()> {
    link_payment(work, &payment.invoice, &payment.payment).await
}

/// Links an invoice, its payment intent and its charge to each other.
async fn link_payment(work: &mut UnitOfWork, invoice: &str, payment: &Payment) -> Result<()> {
    work.touched.invoices.insert(invoice.to_owned());
    work.processor.invoice(invoice).await?.add_payment(payment)?;
    if let Some(charge) = &payment.charge {
        let charge = work.processor.charge(charge).await?;
        charge.add_invoice(invoice)?;
        charge.add_payment(payment.payment_intent.as_deref())?;
    }
    if let Some(id) = &payment.payment_intent {
        let payment_state = work.processor.payment(id).await?;
        payment_state.add_invoice(invoice)?;
        if let Some(charge) = &payment.charge {
            payment_state.add_charge(charge)?;
        }
        // A checkout session may have counted the payment as a sale of its own, which the invoice replaces.
        if payment_state.invoices.contains(id) {
            work.touched.invoices.insert(id.clone());
        }
    }
    Ok(())
}

async fn apply_charge(work: &mut UnitOfWork, charge: &Charge) -> Result<()> {
    work.processor.charge(&charge.id).await?.apply(charge)?;
    for refund in &charge.refunds {
        work.processor.charge(&charge.id).await?.apply_refund(refund)?;
    }
    if let Some(dispute) = &charge.dispute {
        work.processor.charge(&charge.id).await?.apply_dispute(dispute)?;
    }
    touch_charge(work, &charge.id).await
}

async fn apply_refund(work: &mut UnitOfWork, refund: &Refund) -> Result<()> {
    // A refund normally names its charge. If it does not, the payment intent takes the charge's place.
    let Some(id) = refund.charge.as_ref().or(refund.payment_intent.as_ref()) else { return Ok(()) };
    work.processor.charge(id).await?.apply_refund(refund)?;
    touch_charge(work, id).await
}

async fn apply_dispute(work: &mut UnitOfWork, dispute: &ChargeDispute) -> Result<()> {
    let Some(id) = dispute.charge.as_ref().or(dispute.payment_intent.as_ref()) else { return Ok(()) };
    work.processor.charge(id).await?.apply_dispute(dispute)?;
    touch_charge(work, id).await
}

/// Marks the invoices of a charge for recompute: those linked directly, and those of its payments.
async fn touch_charge(work: &mut UnitOfWork, id: &str) -> Result<()> {
    let charge = work.processor.charge(id).await?;
    let (invoices, payments) = (charge.invoices.clone(), charge.payments.clone());
    for payment in payments {
        let payment_state = work.processor.payment(&payment).await?;
        payment_state.add_charge(id)?;
        let payment_invoices = payment_state.invoices.clone();
        work.touched.invoices.extend(payment_invoices);
    }
    for invoice in invoices {
        work.processor.invoice(&invoice).await?.add_charge(id)?;
        work.touched.invoices.insert(invoice);
    }
    Ok(())
}

/// A reversed transfer fails its payout. If the transfer's response has not arrived yet, its metadata names the
/// payout.
async fn apply_transfer_reversal(work: &mut UnitOfWork, transfer: &ReversedTransfer) -> Result<Result<(), NoEffect>> {
    let (store, account) = (work.context.store.clone(), work.account());
    let found = payout::find_by_transfer(&store, account, &transfer.id).await?.map(|payout| payout.id);
    let Some(id) = found.or(transfer.payout) else {
        return Ok(Err(NoEffect("the transfer does not belong to any payout")));
    };
    let Some(payout) = work.payouts.get(id).await? else {
        return Ok(Err(NoEffect("the transfer does not belong to any payout")));
    };
    if payout.method.is_manual() || payout.transfer.as_ref().is_some_and(|transfer_id| *transfer_id != transfer.id) {
        return Ok(Err(NoEffect("the transfer does not belong to any payout")));
    }
    if !transfer.is_whole {
        return Ok(Err(NoEffect("the transfer was only partly reversed")));
    }
    let is_approved = work.payouts.run(payout.run).await?.is_some_and(|run| run.is_approved());
    if !is_approved || !matches!(payout.state, PayoutState::Open | PayoutState::Paid) {
        return Ok(Err(NoEffect("the payout of the transfer is settled already")));
    }
    let reason = "The transfer was reversed".to_owned();
    let outcome = PayoutOutcome::Failed { reason, transfer: Some(transfer.id.clone()) };
    settle_payout(work, id, outcome).await?;
    Ok(Ok(()))
}

/// Applies whether a connected account takes transfers to the partners who are paid there.
async fn apply_account(work: &mut UnitOfWork, account: &ConnectedAccount) -> Result<Result<(), NoEffect>> {
    let (store, program) = (work.context.store.clone(), work.account());
    let partners = partner::list_by_destination(
        &store,
        program,
        PayoutMethod::Stripe,
        account.id.as_str(),
        PARTNERS_OF_ACCOUNT_MAX,
    )
    .await?;
    if partners.is_empty() {
        return Ok(Err(NoEffect("no partner has this account")));
    }
    let is_able = work.processor.connected_account(&account.id).await?.apply(account);
    for partner in partners {
        set_destination_able(work, partner, is_able).await?;
    }
    Ok(Ok(()))
}

async fn apply_credit_note(work: &mut UnitOfWork, note: &CreditNote) -> Result<()> {
    work.processor.invoice(&note.invoice).await?.apply_credit_note(note)?;
    work.touched.invoices.insert(note.invoice.clone());
    Ok(())
}
