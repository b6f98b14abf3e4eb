//! Completing: what an event leaves out and its booking needs is asked for first, where the program has a key
//! (completions-affiliate.md 2.2).
//!
//! ```text
//! an invoice with more than ten lines ─► GET its lines ────────────────────────────► the event with all of them
//! a refund, a dispute, a flag of a payment that no invoice is known of ─► GET its invoices ─► facts heard with it
//! ```
//!
//! Nothing is held meanwhile; who is not answered, or may not ask, takes the event as failed, so that it is sent again. An
//! answer once and for all, also that there is nothing, is one: then the event is booked as it is.

use mail::affiliate::program::Program;
use mail::affiliate::sale::SaleLine;
use mail::id::AccountId;
use queue::courier::http::AnswerPermit;

use crate::asking::{Asker, NoAnswer, Told, escaped};
use crate::ledger::{Book, Completed, Completes, Fault, Ledger};
use crate::office::Office;
use crate::processor::{AsOf, Fact, InvoicePayment, Json, MetadataKeys, Reading, Unreadable, invoice_line};

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
        (fact, keys): (Fact, &MetadataKeys),
    ) -> Result<Completed, Fault> {
        let Some(asker) = self.asker(program) else { return Ok(Completed::of(fact)) };
        let of = match fact {
            Fact::InvoicePaid(mut invoice) if !invoice.has_all_lines => {
                if let Some(lines) = asker.lines(&invoice.sale.invoice).await? {
                    (invoice.sale.lines, invoice.has_all_lines) = (lines, true);
                }
                return Ok(Completed::of(Fact::InvoicePaid(invoice)));
            }
            Fact::Charge(ref charge) if charge.invoice.is_none() => {
                (Some(charge.id.clone()), charge.payment_intent.clone())
            }
            Fact::Refund(ref refund) => (refund.charge.clone(), refund.payment_intent.clone()),
            Fact::Dispute(ref dispute) => (dispute.charge.clone(), dispute.payment_intent.clone()),
            _ => return Ok(Completed::of(fact)),
        };
        let mut book = Book::of(ledger, program.clone());
        let Some(payment) = book.payment_of_unknown(of).await? else { return Ok(Completed::of(fact)) };
        let mut permit = asker.permit();
        let found = asker.payments(By::Payment(&payment), &mut permit).await?;
        let reading = Reading { keys, as_of: AsOf::fetched(found.at) };
        let read = |found: &Json| {
            found.check_size()?;
            InvoicePayment::read(found.text(), &reading).map(Fact::InvoicePayment)
        };
        let before = found.objects.iter().map(read).collect::<Result<_, Unreadable>>()?;
        Ok(Completed { before, fact })
    }

    async fn permit(&self, account: AccountId, bytes: usize) -> Result<Option<AnswerPermit>, Fault> {
        self.memory(account, bytes).await.map(Some)
    }
}

impl From<NoAnswer> for Fault {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Silent(why) | NoAnswer::Denied(why) | NoAnswer::TooMuch(why) => Self::Unanswered(why),
            NoAnswer::Barred(why) => Self::Barred(why),
            NoAnswer::Busy(busy) => Self::Budget(busy),
        }
    }
}

impl Asker {
    /// Payments that paid an invoice; none where the processor does not know of such.
    pub(crate) async fn payments(&self, by: By<'_>, permit: &mut AnswerPermit) -> Result<Told, NoAnswer> {
        let path = match by {
            By::Invoice(id) => format!("/v1/invoice_payments?invoice={}", escaped(id)),
            By::Payment(id) => format!(
                "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
                escaped(id)
            ),
        };
        let told = self.list(&path, PAYMENT_PAGES_MAX, permit).await?;
        let mut told = told.unwrap_or_else(|_| Told::nothing());
        // The list holds attempts that did not pay, too.
        told.objects.retain(|payment| payment.text_in("status").is_none_or(|status| status == "paid"));
        Ok(told)
    }

    /// All lines of an invoice; none where the processor does not tell them, or there are more than are read.
    async fn lines(&self, invoice: &str) -> Result<Option<Vec<SaleLine>>, Fault> {
        let path = format!("/v1/invoices/{}/lines?", escaped(invoice));
        let mut permit = self.permit();
        let told = self.list(&path, LINE_PAGES_MAX, &mut permit).await?;
        let Some(told) = told.ok().filter(|told| !told.has_more) else { return Ok(None) };
        let read = |(nth, line): (usize, &Json)| {
            line.check_size()?;
            invoice_line(line.text(), nth)
        };
        Ok(Some(told.objects.iter().enumerate().map(read).collect::<Result<_, Unreadable>>()?))
    }
}
