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

use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::sale::SaleLine;
use mail::id::AccountId;
use queue::courier::http::ResponsePermit;

use crate::asking::{StripeClient, StripeError, StripeList, escaped};
use crate::ledger::{EnrichedFact, Enricher, Ledger, LedgerError, UnitOfWork};
use crate::office::AffiliateService;
use crate::processor::{
    InvoicePayment, JsonReadError, MetadataKeys, ProcessorJson, ReadContext, StateVersion, WebhookFact, invoice_line,
};

/// Pages of an invoice's lines: so many hundreds are read of it ([`crate::processor`]). One with more is booked by its
/// total.
const LINE_PAGES_MAX: usize = 10;
/// Pages of payments, which are a few.
const PAYMENT_PAGES_MAX: usize = 5;

/// What a payment of an invoice is looked for by.
pub(crate) enum PaymentLookup<'a> {
    /// The invoice.
    Invoice(&'a str),
    /// The payment intent.
    Payment(&'a str),
}

impl Enricher for AffiliateService {
    async fn enrich(
        &self,
        (ledger, program): (&Ledger, &AffiliateProgram),
        (fact, keys): (WebhookFact, &MetadataKeys),
    ) -> Result<EnrichedFact, LedgerError> {
        let Some(asker) = self.stripe_client(program) else { return Ok(EnrichedFact::from_fact(fact)) };
        let of = match fact {
            WebhookFact::InvoicePaid(mut invoice) if !invoice.has_all_lines => {
                if let Some(lines) = asker.list_invoice_lines(&invoice.sale.invoice).await? {
                    (invoice.sale.lines, invoice.has_all_lines) = (lines, true);
                }
                return Ok(EnrichedFact::from_fact(WebhookFact::InvoicePaid(invoice)));
            }
            WebhookFact::Charge(ref charge) if charge.invoice.is_none() => {
                (Some(charge.id.clone()), charge.payment_intent.clone())
            }
            WebhookFact::Refund(ref refund) => (refund.charge.clone(), refund.payment_intent.clone()),
            WebhookFact::Dispute(ref dispute) => (dispute.charge.clone(), dispute.payment_intent.clone()),
            _ => return Ok(EnrichedFact::from_fact(fact)),
        };
        let mut book = UnitOfWork::for_program(ledger, program.clone());
        let Some(payment) = book.find_unlinked_payment(of).await? else {
            return Ok(EnrichedFact::from_fact(fact));
        };
        let mut permit = asker.permit();
        let found = asker.list_payments(PaymentLookup::Payment(&payment), &mut permit).await?;
        let reading = ReadContext { keys, as_of: StateVersion::fetched(found.at) };
        let read = |found: &ProcessorJson| {
            found.check_size()?;
            InvoicePayment::read(found.text(), &reading).map(WebhookFact::InvoicePayment)
        };
        let before = found.objects.iter().map(read).collect::<Result<_, JsonReadError>>()?;
        Ok(EnrichedFact { before, fact })
    }

    async fn permit(&self, account: AccountId, bytes: usize) -> Result<Option<ResponsePermit>, LedgerError> {
        self.reserve_memory(account, bytes).await.map(Some)
    }
}

impl From<StripeError> for LedgerError {
    fn from(why: StripeError) -> Self {
        match why {
            StripeError::NoResponse(why) | StripeError::KeyRejected(why) | StripeError::TooLarge(why) => {
                Self::Unanswered(why)
            }
            StripeError::KeyNotPermitted(why) => Self::Barred(why),
            StripeError::MemoryBusy(busy) => Self::Budget(busy),
        }
    }
}

impl StripeClient {
    /// Payments that paid an invoice; none where the processor does not know of such.
    pub(crate) async fn list_payments(
        &self,
        by: PaymentLookup<'_>,
        permit: &mut ResponsePermit,
    ) -> Result<StripeList, StripeError> {
        let path = match by {
            PaymentLookup::Invoice(id) => format!("/v1/invoice_payments?invoice={}", escaped(id)),
            PaymentLookup::Payment(id) => format!(
                "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
                escaped(id)
            ),
        };
        let told = self.list_objects(&path, PAYMENT_PAGES_MAX, permit).await?;
        let mut told = told.unwrap_or_else(|_| StripeList::empty());
        // The list holds attempts that did not pay, too.
        told.objects.retain(|payment| payment.text_in("status").is_none_or(|status| status == "paid"));
        Ok(told)
    }

    /// All lines of an invoice; none where the processor does not tell them, or there are more than are read.
    async fn list_invoice_lines(&self, invoice: &str) -> Result<Option<Vec<SaleLine>>, LedgerError> {
        let path = format!("/v1/invoices/{}/lines?", escaped(invoice));
        let mut permit = self.permit();
        let told = self.list_objects(&path, LINE_PAGES_MAX, &mut permit).await?;
        let Some(told) = told.ok().filter(|told| !told.has_more) else { return Ok(None) };
        let read = |(nth, line): (usize, &ProcessorJson)| {
            line.check_size()?;
            invoice_line(line.text(), nth)
        };
        Ok(Some(told.objects.iter().enumerate().map(read).collect::<Result<_, JsonReadError>>()?))
    }
}
