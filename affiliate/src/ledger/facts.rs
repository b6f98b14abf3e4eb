//! What each fact does: it is put to what was heard before, and says what is to be looked at.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::affiliate::payout::PayoutState;
use mail::affiliate::program::PayoutMethod;
use mail::affiliate::referral::ReferralSource;
use store::affiliate::{partner, payout};

use super::attribution::Buyer;
use super::{Book, Fault, Outlay};
use crate::processor::{
    Charge, ChargeDispute, Checkout, ConnectedAccount, CreditNote, Fact, Invoice, InvoicePayment, Payment,
    Refund, ReversedTransfer, Subscription,
};

/// Partners who share an account and are told by one event.
const PARTNERS_OF_ACCOUNT_MAX: usize = 100;

/// Why nothing follows from a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nothing(pub(crate) &'static str);

impl Book<'_> {
    /// Hears a fact; the inner error says why nothing follows from it.
    pub(crate) fn hear<'a>(
        &'a mut self,
        fact: &'a Fact,
    ) -> BoxFuture<'a, Result<Result<(), Nothing>, Fault>> {
        Box::pin(async move {
            match fact {
                Fact::CheckoutCompleted(checkout) => self.hear_checkout(checkout).await?,
                Fact::Customer(customer) => {
                    self.customer(&customer.id).await?.hear(customer);
                    self.touched.customers.insert(customer.id.clone());
                    let buyer =
                        self.buyer(&customer.id, (customer.as_of.at, ReferralSource::Metadata)).await?;
                    self.link(&buyer, &customer.marks.hints).await?;
                    self.look_for_lead(&customer.id).await?;
                }
                Fact::Subscription(subscription) => self.hear_subscription(subscription).await?,
                Fact::InvoicePaid(invoice) => self.hear_invoice(invoice).await?,
                Fact::InvoicePayment(payment) => self.hear_payment(payment).await?,
                Fact::Charge(charge) => self.hear_charge(charge).await?,
                Fact::Refund(refund) => self.hear_refund(refund).await?,
                Fact::CreditNote(note) => self.hear_note(note).await?,
                Fact::Dispute(dispute) => self.hear_dispute(dispute).await?,
                Fact::TransferReversed(transfer) => return self.hear_reversal(transfer).await,
                Fact::AccountUpdated(account) => return self.hear_account(account).await,
                Fact::Other(_) => return Ok(Err(Nothing("nothing follows from events of this type"))),
            }
            Ok(Ok(()))
        })
    }

    async fn hear_checkout(&mut self, checkout: &Checkout) -> Result<(), Fault> {
        if let Some(invoice) = &checkout.invoice {
            let payment = Payment { charge: None, payment_intent: checkout.payment_intent.clone() };
            self.tie(invoice, &payment).await?;
            if checkout.marks.excluded {
                self.invoice(invoice).await?.hear_exclusion();
            }
        }
        if self.program.settings.count_invoiceless_payments
            && let Some(sale) = checkout.sale()
        {
            let payment = Payment { charge: None, payment_intent: Some(sale.invoice.clone()) };
            let id = sale.invoice.clone();
            self.invoice(&id).await?.hear_checkout(checkout, sale)?;
            self.tie(&id, &payment).await?;
            self.hear_sale(&id).await?;
        }
        if let Some(customer) = &checkout.customer {
            self.customer(customer).await?.hear_email(checkout.as_of, checkout.email.as_deref());
            self.touched.customers.insert(customer.clone());
            let buyer = self.buyer(customer, (checkout.as_of.at, ReferralSource::Checkout)).await?;
            self.link(&buyer, &checkout.marks.hints).await?;
            self.look_for_lead(customer).await?;
        }
        Ok(())
    }

    async fn hear_subscription(&mut self, subscription: &Subscription) -> Result<(), Fault> {
        let Some(customer) = &subscription.customer else { return Ok(()) };
        self.customer(customer).await?.hear_subscription(subscription);
        self.touched.customers.insert(customer.clone());
        let buyer = self.buyer(customer, (subscription.as_of.at, ReferralSource::Metadata)).await?;
        self.link(&buyer, &subscription.marks.hints).await
    }

    /// A customer who buys, by what is known of it by now.
    async fn buyer(
        &mut self,
        customer: &str,
        (at, source): (Timestamp, ReferralSource),
    ) -> Result<Buyer, Fault> {
        let email = self.customer(customer).await?.email().map(str::to_owned);
        Ok(Buyer { customer: Some(customer.to_owned()), email, at, source })
    }

    async fn hear_invoice(&mut self, invoice: &Invoice) -> Result<(), Fault> {
        let id = &invoice.sale.invoice;
        self.invoice(id).await?.hear(invoice)?;
        for payment in &invoice.payments {
            self.tie(id, payment).await?;
        }
        for charge in &invoice.charges {
            self.hear_charge(charge).await?;
        }
        if let Some(customer) = &invoice.customer {
            self.customer(customer).await?.hear_email(invoice.as_of, invoice.email.as_deref());
            self.look_for_lead(customer).await?;
        }
        self.hear_sale(id).await
    }

    /// Its customer hears of an invoice that is paid.
    async fn hear_sale(&mut self, id: &str) -> Result<(), Fault> {
        self.touched.invoices.insert(id.to_owned());
        let Some(paid) = self.invoice(id).await?.paid().cloned() else { return Ok(()) };
        let Some(customer) = &paid.customer else { return Ok(()) };
        self.list_invoice(customer, id).await?;
        self.touched.customers.insert(customer.clone());
        if mail::affiliate::arithmetic::base::base(&paid.sale)?.is_some() {
            self.customer(customer).await?.hear_payment(paid.sale.paid_at);
        }
        Ok(())
    }

    async fn hear_payment(&mut self, payment: &InvoicePayment) -> Result<(), Fault> {
        self.tie(&payment.invoice, &payment.payment).await
    }

    /// A payment paid an invoice: each of the three knows the others from now on.
    async fn tie(&mut self, invoice: &str, payment: &Payment) -> Result<(), Fault> {
        self.touched.invoices.insert(invoice.to_owned());
        self.invoice(invoice).await?.hear_payment(payment)?;
        if let Some(charge) = &payment.charge {
            let charge = self.charge(charge).await?;
            charge.hear_invoice(invoice)?;
            charge.hear_payment(payment.payment_intent.as_deref())?;
        }
        if let Some(id) = &payment.payment_intent {
            let known = self.payment(id).await?;
            known.hear_invoice(invoice)?;
            if let Some(charge) = &payment.charge {
                known.hear_charge(charge)?;
            }
        }
        Ok(())
    }

    async fn hear_charge(&mut self, charge: &Charge) -> Result<(), Fault> {
        self.charge(&charge.id).await?.hear(charge)?;
        for refund in &charge.refunds {
            self.charge(&charge.id).await?.hear_refund(refund)?;
        }
        if let Some(dispute) = &charge.dispute {
            self.charge(&charge.id).await?.hear_dispute(dispute)?;
        }
        self.touch_charge(&charge.id).await
    }

    async fn hear_refund(&mut self, refund: &Refund) -> Result<(), Fault> {
        // A refund names its charge. One that does not is its payment's, which then stands for the charge.
        let Some(id) = refund.charge.as_ref().or(refund.payment_intent.as_ref()) else { return Ok(()) };
        self.charge(id).await?.hear_refund(refund)?;
        self.touch_charge(id).await
    }

    async fn hear_dispute(&mut self, dispute: &ChargeDispute) -> Result<(), Fault> {
        let Some(id) = dispute.charge.as_ref().or(dispute.payment_intent.as_ref()) else { return Ok(()) };
        self.charge(id).await?.hear_dispute(dispute)?;
        self.touch_charge(id).await
    }

    /// The invoices of a charge are to be looked at: those that it names, and those of its payments.
    async fn touch_charge(&mut self, id: &str) -> Result<(), Fault> {
        let charge = self.charge(id).await?;
        let (invoices, payments) = (charge.invoices().clone(), charge.payments().clone());
        for payment in payments {
            let known = self.payment(&payment).await?;
            known.hear_charge(id)?;
            let theirs = known.invoices().clone();
            self.touched.invoices.extend(theirs);
        }
        for invoice in invoices {
            self.invoice(&invoice).await?.hear_charge(id)?;
            self.touched.invoices.insert(invoice);
        }
        Ok(())
    }

    /// A transfer came back: its payout failed. One whose answer was not heard yet names its payout itself.
    async fn hear_reversal(&mut self, transfer: &ReversedTransfer) -> Result<Result<(), Nothing>, Fault> {
        let (store, account) = (self.ledger.store.clone(), self.account());
        let found = payout::of_transfer(&store, account, &transfer.id).await?.map(|payout| payout.id);
        let Some(id) = found.or(transfer.payout) else {
            return Ok(Err(Nothing("it is of a transfer that no payout made")));
        };
        let Some(payout) = self.payout(id).await?.map(|payout| payout.clone()) else {
            return Ok(Err(Nothing("it is of a transfer that no payout made")));
        };
        if payout.method.is_manual() || payout.transfer.as_ref().is_some_and(|its| *its != transfer.id) {
            return Ok(Err(Nothing("it is of a transfer that no payout made")));
        }
        if !transfer.is_whole {
            return Ok(Err(Nothing("only a part of the transfer came back")));
        }
        let is_approved = self.run(payout.run).await?.is_some_and(|run| run.is_approved());
        if !is_approved || !matches!(payout.state, PayoutState::Open | PayoutState::Paid) {
            return Ok(Err(Nothing("the payout of the transfer is settled already")));
        }
        let reason = "The transfer was reversed".to_owned();
        let outlay = Outlay::Failed { reason, transfer: Some(transfer.id.clone()) };
        self.settle_payout(id, outlay).await?;
        Ok(Ok(()))
    }

    /// An account takes transfers, or does not: partners who are paid there can be paid, or cannot.
    async fn hear_account(&mut self, account: &ConnectedAccount) -> Result<Result<(), Nothing>, Fault> {
        let (store, program) = (self.ledger.store.clone(), self.account());
        let to = (PayoutMethod::Stripe, account.id.as_str());
        let partners = partner::paid_to(&store, program, to, PARTNERS_OF_ACCOUNT_MAX).await?;
        if partners.is_empty() {
            return Ok(Err(Nothing("it is of an account that no partner has")));
        }
        let is_able = self.paid_account(&account.id).await?.hear(account);
        for partner in partners {
            self.set_able(partner, is_able).await?;
        }
        Ok(Ok(()))
    }

    async fn hear_note(&mut self, note: &CreditNote) -> Result<(), Fault> {
        self.invoice(&note.invoice).await?.hear_note(note)?;
        self.touched.invoices.insert(note.invoice.clone());
        Ok(())
    }
}
