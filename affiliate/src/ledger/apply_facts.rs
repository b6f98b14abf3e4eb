//! Applies each kind of fact to the stored processor state and marks what must be recomputed.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::affiliate::payout::PayoutState;
use mail::affiliate::program::PayoutMethod;
use mail::affiliate::referral::ReferralSource;
use store::affiliate::{partner, payout};

use super::attribution::Buyer;
use super::{LedgerError, PayoutOutcome, UnitOfWork};
use crate::processor::{
    Charge, ChargeDispute, Checkout, ConnectedAccount, CreditNote, Invoice, InvoicePayment, Payment, Refund,
    ReversedTransfer, Subscription, WebhookFact,
};

/// Maximum partners with the same connected account that one event updates.
const PARTNERS_OF_ACCOUNT_MAX: usize = 100;

/// Why a fact has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoEffect(pub(crate) &'static str);

impl UnitOfWork<'_> {
    /// Applies a fact; the inner error is the reason why it has no effect.
    pub(crate) fn apply<'a>(
        &'a mut self,
        fact: &'a WebhookFact,
    ) -> BoxFuture<'a, Result<Result<(), NoEffect>, LedgerError>> {
        Box::pin(async move {
            match fact {
                WebhookFact::CheckoutCompleted(checkout) => self.apply_checkout(checkout).await?,
                WebhookFact::Customer(customer) => {
                    self.customer(&customer.id).await?.apply(customer);
                    self.touched.customers.insert(customer.id.clone());
                    let buyer = self.buyer(&customer.id, customer.as_of.at, ReferralSource::Metadata).await?;
                    self.link_by_hints(&buyer, &customer.marks.hints).await?;
                    self.recheck_customer_address(&customer.id).await?;
                }
                WebhookFact::Subscription(subscription) => self.apply_subscription(subscription).await?,
                WebhookFact::InvoicePaid(invoice) => self.apply_invoice(invoice).await?,
                WebhookFact::InvoicePayment(payment) => self.apply_payment(payment).await?,
                WebhookFact::Charge(charge) => self.apply_charge(charge).await?,
                WebhookFact::Refund(refund) => self.apply_refund(refund).await?,
                WebhookFact::CreditNote(note) => self.apply_credit_note(note).await?,
                WebhookFact::Dispute(dispute) => self.apply_dispute(dispute).await?,
                WebhookFact::TransferReversed(transfer) => {
                    return self.apply_transfer_reversal(transfer).await;
                }
                WebhookFact::AccountUpdated(account) => return self.apply_account(account).await,
                WebhookFact::Other(_) => {
                    return Ok(Err(NoEffect("this event type is not used")));
                }
            }
            Ok(Ok(()))
        })
    }

    async fn apply_checkout(&mut self, checkout: &Checkout) -> Result<(), LedgerError> {
        if let Some(invoice) = &checkout.invoice {
            let payment = Payment { charge: None, payment_intent: checkout.payment_intent.clone() };
            self.link_payment(invoice, &payment).await?;
            if checkout.marks.excluded {
                self.invoice(invoice).await?.apply_exclusion();
            }
        }
        if self.program.settings.count_invoiceless_payments
            && let Some(sale) = checkout.sale()
        {
            let payment = Payment { charge: None, payment_intent: Some(sale.invoice.clone()) };
            let id = sale.invoice.clone();
            self.invoice(&id).await?.apply_checkout(checkout, sale)?;
            self.link_payment(&id, &payment).await?;
            self.apply_sale(&id).await?;
        }
        if let Some(customer) = &checkout.customer {
            self.customer(customer).await?.apply_email(checkout.as_of, checkout.email.as_deref());
            self.touched.customers.insert(customer.clone());
            let buyer = self.buyer(customer, checkout.as_of.at, ReferralSource::Checkout).await?;
            self.link_by_hints(&buyer, &checkout.marks.hints).await?;
            self.recheck_customer_address(customer).await?;
        }
        Ok(())
    }

    async fn apply_subscription(&mut self, subscription: &Subscription) -> Result<(), LedgerError> {
        let Some(customer) = &subscription.customer else { return Ok(()) };
        self.customer(customer).await?.apply_subscription(subscription);
        self.touched.customers.insert(customer.clone());
        let buyer = self.buyer(customer, subscription.as_of.at, ReferralSource::Metadata).await?;
        self.link_by_hints(&buyer, &subscription.marks.hints).await
    }

    /// Builds the buyer from what is stored of the customer.
    async fn buyer(&mut self, customer: &str, at: Timestamp, source: ReferralSource) -> Result<Buyer, LedgerError> {
        let email = self.customer(customer).await?.email().map(str::to_owned);
        Ok(Buyer { customer: Some(customer.to_owned()), email, at, source })
    }

    async fn apply_invoice(&mut self, invoice: &Invoice) -> Result<(), LedgerError> {
        let id = &invoice.sale.invoice;
        self.invoice(id).await?.apply(invoice)?;
        for payment in &invoice.payments {
            self.link_payment(id, payment).await?;
        }
        for charge in &invoice.charges {
            self.apply_charge(charge).await?;
        }
        if let Some(customer) = &invoice.customer {
            self.customer(customer).await?.apply_email(invoice.as_of, invoice.email.as_deref());
            self.recheck_customer_address(customer).await?;
        }
        self.apply_sale(id).await
    }

    /// Marks a paid invoice for recompute, indexes it by customer and records the customer's payment.
    async fn apply_sale(&mut self, id: &str) -> Result<(), LedgerError> {
        self.touched.invoices.insert(id.to_owned());
        let Some(paid) = self.invoice(id).await?.paid().cloned() else { return Ok(()) };
        let Some(customer) = &paid.customer else { return Ok(()) };
        self.index_invoice(customer, id).await?;
        self.touched.customers.insert(customer.clone());
        if mail::affiliate::arithmetic::base::commissionable_base(&paid.sale)?.is_some() {
            self.customer(customer).await?.apply_payment(paid.sale.paid_at);
        }
        Ok(())
    }

    async fn apply_payment(&mut self, payment: &InvoicePayment) -> Result<(), LedgerError> {
        self.link_payment(&payment.invoice, &payment.payment).await
    }

    /// Links an invoice, its payment intent and its charge to each other.
    async fn link_payment(&mut self, invoice: &str, payment: &Payment) -> Result<(), LedgerError> {
        self.touched.invoices.insert(invoice.to_owned());
        self.invoice(invoice).await?.add_payment(payment)?;
        if let Some(charge) = &payment.charge {
            let charge = self.charge(charge).await?;
            charge.add_invoice(invoice)?;
            charge.add_payment(payment.payment_intent.as_deref())?;
        }
        if let Some(id) = &payment.payment_intent {
            let payment_state = self.payment(id).await?;
            payment_state.add_invoice(invoice)?;
            if let Some(charge) = &payment.charge {
                payment_state.add_charge(charge)?;
            }
        }
        Ok(())
    }

    async fn apply_charge(&mut self, charge: &Charge) -> Result<(), LedgerError> {
        self.charge(&charge.id).await?.apply(charge)?;
        for refund in &charge.refunds {
            self.charge(&charge.id).await?.apply_refund(refund)?;
        }
        if let Some(dispute) = &charge.dispute {
            self.charge(&charge.id).await?.apply_dispute(dispute)?;
        }
        self.touch_charge(&charge.id).await
    }

    async fn apply_refund(&mut self, refund: &Refund) -> Result<(), LedgerError> {
        // A refund normally names its charge. If it does not, the payment intent takes the charge's place.
        let Some(id) = refund.charge.as_ref().or(refund.payment_intent.as_ref()) else { return Ok(()) };
        self.charge(id).await?.apply_refund(refund)?;
        self.touch_charge(id).await
    }

    async fn apply_dispute(&mut self, dispute: &ChargeDispute) -> Result<(), LedgerError> {
        let Some(id) = dispute.charge.as_ref().or(dispute.payment_intent.as_ref()) else { return Ok(()) };
        self.charge(id).await?.apply_dispute(dispute)?;
        self.touch_charge(id).await
    }

    /// Marks the invoices of a charge for recompute: those linked directly, and those of its payments.
    async fn touch_charge(&mut self, id: &str) -> Result<(), LedgerError> {
        let charge = self.charge(id).await?;
        let (invoices, payments) = (charge.invoices().clone(), charge.payments().clone());
        for payment in payments {
            let payment_state = self.payment(&payment).await?;
            payment_state.add_charge(id)?;
            let payment_invoices = payment_state.invoices().clone();
            self.touched.invoices.extend(payment_invoices);
        }
        for invoice in invoices {
            self.invoice(&invoice).await?.add_charge(id)?;
            self.touched.invoices.insert(invoice);
        }
        Ok(())
    }

    /// A reversed transfer fails its payout. If the transfer's response has not arrived yet, its metadata names the
    /// payout.
    async fn apply_transfer_reversal(
        &mut self,
        transfer: &ReversedTransfer,
    ) -> Result<Result<(), NoEffect>, LedgerError> {
        let (store, account) = (self.ledger.store.clone(), self.account());
        let found = payout::find_by_transfer(&store, account, &transfer.id).await?.map(|payout| payout.id);
        let Some(id) = found.or(transfer.payout) else {
            return Ok(Err(NoEffect("the transfer belongs to no payout")));
        };
        let Some(payout) = self.payout(id).await?.map(|payout| payout.clone()) else {
            return Ok(Err(NoEffect("the transfer belongs to no payout")));
        };
        if payout.method.is_manual() || payout.transfer.as_ref().is_some_and(|transfer_id| *transfer_id != transfer.id)
        {
            return Ok(Err(NoEffect("the transfer belongs to no payout")));
        }
        if !transfer.is_whole {
            return Ok(Err(NoEffect("the transfer was reversed only in part")));
        }
        let is_approved = self.run(payout.run).await?.is_some_and(|run| run.is_approved());
        if !is_approved || !matches!(payout.state, PayoutState::Open | PayoutState::Paid) {
            return Ok(Err(NoEffect("the payout of the transfer is settled already")));
        }
        let reason = "The transfer was reversed".to_owned();
        let outcome = PayoutOutcome::Failed { reason, transfer: Some(transfer.id.clone()) };
        self.settle_payout(id, outcome).await?;
        Ok(Ok(()))
    }

    /// Applies whether a connected account takes transfers to the partners who are paid there.
    async fn apply_account(&mut self, account: &ConnectedAccount) -> Result<Result<(), NoEffect>, LedgerError> {
        let (store, program) = (self.ledger.store.clone(), self.account());
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
        let is_able = self.connected_account(&account.id).await?.apply(account);
        for partner in partners {
            self.set_destination_able(partner, is_able).await?;
        }
        Ok(Ok(()))
    }

    async fn apply_credit_note(&mut self, note: &CreditNote) -> Result<(), LedgerError> {
        self.invoice(&note.invoice).await?.apply_credit_note(note)?;
        self.touched.invoices.insert(note.invoice.clone());
        Ok(())
    }
}
