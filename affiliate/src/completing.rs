//! Completing: what an event leaves out and its booking needs is asked for first, where the program has a key
//! (completions-affiliate.md 2.2).
//!
//! ```text
//! an invoice with more than ten lines ─► GET its lines ────────────────────────────► the event with all of them
//! a refund, a dispute of a payment that no invoice is known of ─► GET its invoices ─► facts that are heard with it
//! ```
//!
//! Nothing is held meanwhile; who is not answered, or may not ask, takes the event as failed, so that it is sent again. An
//! answer once and for all, also that there is nothing, is one: then the event is booked as it is.

use jiff::Timestamp;
use mail::affiliate::program::Program;
use serde_json::Value;

use crate::asking::{Asker, NoAnswer, escaped};
use crate::ledger::{Book, Completed, Completes, Fault, Ledger};
use crate::office::Office;
use crate::processor::{AsOf, Event, Fact, InvoicePayment, MetadataKeys, Reading};

/// Pages of an invoice's lines: so many hundreds are read of it ([`crate::processor`]). One with more is booked by its
/// total.
const LINE_PAGES_MAX: usize = 10;
/// Pages of payments, which are a few.
const PAYMENT_PAGES_MAX: usize = 5;

/// What a payment of an invoice is looked for by.
pub(crate) enum By<'a> {
    /// The invoice.
    Invoice(&'a str),
    /// The payment intent.
    Payment(&'a str),
}

impl Completes for Office {
    async fn complete(
        &self,
        (ledger, program): (&Ledger, &Program),
        (event, keys): (Event, &MetadataKeys),
    ) -> Result<Completed, Fault> {
        let Some(asker) = self.asker(program) else { return Ok(Completed::of(event)) };
        let of = match event.fact(keys)? {
            Fact::InvoicePaid(invoice) if !invoice.has_all_lines => {
                let lines = asker.lines(&invoice.sale.invoice).await?;
                return Ok(Completed::of(match lines {
                    Some(lines) => event.with_lines(lines),
                    None => event,
                }));
            }
            Fact::ChargeRefunded(charge) if charge.invoice.is_none() => {
                (Some(charge.id), charge.payment_intent)
            }
            Fact::Refund(refund) => (refund.charge, refund.payment_intent),
            Fact::Dispute(dispute) => (dispute.charge, dispute.payment_intent),
            _ => return Ok(Completed::of(event)),
        };
        let mut book = Book::of(ledger, program.clone());
        let Some(payment) = book.payment_of_unknown(of).await? else { return Ok(Completed::of(event)) };
        let (found, at) = asker.payments(By::Payment(&payment)).await?;
        let reading = Reading { keys, as_of: AsOf::fetched(at) };
        let before =
            found.iter().map(|found| InvoicePayment::read(found, &reading).map(Fact::InvoicePayment));
        Ok(Completed { before: before.collect::<Result<_, _>>()?, event })
    }
}

impl From<NoAnswer> for Fault {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Silent(why) => Self::Unanswered(why),
            NoAnswer::Barred(why) => Self::Barred(why),
        }
    }
}

impl Asker {
    /// Payments that paid an invoice, and as of when; none where the processor does not know of such.
    pub(crate) async fn payments(&self, by: By<'_>) -> Result<(Vec<Value>, Timestamp), NoAnswer> {
        let path = match by {
            By::Invoice(id) => format!("/v1/invoice_payments?invoice={}", escaped(id)),
            By::Payment(id) => format!(
                "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
                escaped(id)
            ),
        };
        let Ok(told) = self.list(&path, PAYMENT_PAGES_MAX).await? else {
            return Ok((Vec::new(), Timestamp::UNIX_EPOCH));
        };
        // The list holds attempts that did not pay, too.
        let paid = |payment: &Value| payment["status"].as_str().is_none_or(|status| status == "paid");
        Ok((told.objects.into_iter().filter(paid).collect(), told.at))
    }

    /// All lines of an invoice; none where the processor does not tell them, or there are more than are read.
    async fn lines(&self, invoice: &str) -> Result<Option<Vec<Value>>, NoAnswer> {
        let path = format!("/v1/invoices/{}/lines?", escaped(invoice));
        let told = self.list(&path, LINE_PAGES_MAX).await?;
        Ok(told.ok().filter(|told| !told.has_more).map(|told| told.objects))
    }
}
