//! Enrichment: fetches what an event leaves out and its booking needs, if the program has an API key
//! (docs/FLOW.md, "Payment to commission").
//!
//! ```text
//! an invoice with more than ten lines ─► GET its lines ────────────────────────► the event with all of them
//! a refund, dispute or flagged charge without a known invoice ─► GET its invoice payments ─► facts ingested with it
//! ```
//!
//! No rows are held meanwhile. Without an answer or a permission the event fails, so that the processor sends it again.
//! A definite refusal, e.g. that nothing exists, counts as an answer: the event is then booked as it is.

use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::sale::SaleLine;
use mail::id::AccountId;
use queue::client::http::ResponsePermit;

use crate::ledger::{EnrichedFact, Enricher, Ledger, LedgerError, UnitOfWork};
use crate::processor::{
    InvoicePayment, JsonReadError, MetadataKeys, ProcessorJson, ReadContext, StateVersion, WebhookFact, invoice_line,
};
use crate::service::AffiliateService;
use crate::stripe_client::{StripeClient, StripeError, StripeList, escaped};

/// Maximum pages of an invoice's lines. An invoice with more lines is booked by its total.
const LINE_PAGES_MAX: usize = 10;
/// Maximum pages of an invoice's payments; there are normally few.
const PAYMENT_PAGES_MAX: usize = 5;

/// Filter of the processor's invoice payments.
pub(crate) enum PaymentLookup<'a> {
    Invoice(&'a str),
    Payment(&'a str),
}

impl Enricher for AffiliateService {
    async fn enrich(
        &self,
        ledger: &Ledger,
        program: &AffiliateProgram,
        fact: WebhookFact,
        keys: &MetadataKeys,
    ) -> Result<EnrichedFact, LedgerError> {
        let Some(client) = self.stripe_client(program) else { return Ok(EnrichedFact::from_fact(fact)) };
        let (charge, payment) = match fact {
            WebhookFact::InvoicePaid(mut invoice) if !invoice.has_all_lines => {
                if let Some(lines) = client.list_invoice_lines(&invoice.sale.invoice).await? {
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
        let mut work = UnitOfWork::for_program(ledger, program.clone());
        let Some(payment) = work.find_unlinked_payment(charge, payment).await? else {
            return Ok(EnrichedFact::from_fact(fact));
        };
        let mut permit = client.permit();
        let found = client.list_payments(PaymentLookup::Payment(&payment), &mut permit).await?;
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
    fn from(error: StripeError) -> Self {
        match error {
            StripeError::NoResponse(error) | StripeError::KeyRejected(error) | StripeError::TooLarge(error) => {
                Self::Unanswered(error)
            }
            StripeError::KeyNotPermitted(error) => Self::Barred(error),
            StripeError::MemoryBusy(budget_error) => Self::Budget(budget_error),
        }
    }
}

impl StripeClient {
    /// Lists the payments that paid an invoice; empty if the processor refuses, e.g. because it has no such list.
    pub(crate) async fn list_payments(
        &self,
        lookup: PaymentLookup<'_>,
        permit: &mut ResponsePermit,
    ) -> Result<StripeList, StripeError> {
        let path = match lookup {
            PaymentLookup::Invoice(id) => format!("/v1/invoice_payments?invoice={}", escaped(id)),
            PaymentLookup::Payment(id) => format!(
                "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
                escaped(id)
            ),
        };
        let fetched = self.list_objects(&path, PAYMENT_PAGES_MAX, permit).await?;
        let mut fetched = fetched.unwrap_or_else(|_| StripeList::empty());
        // The list also contains attempts that did not pay.
        fetched.objects.retain(|payment| payment.text_in("status").is_none_or(|status| status == "paid"));
        Ok(fetched)
    }

    /// Lists all lines of an invoice; `None` if the processor refuses or there are more than [`LINE_PAGES_MAX`] pages.
    async fn list_invoice_lines(&self, invoice: &str) -> Result<Option<Vec<SaleLine>>, LedgerError> {
        let path = format!("/v1/invoices/{}/lines?", escaped(invoice));
        let mut permit = self.permit();
        let fetched = self.list_objects(&path, LINE_PAGES_MAX, &mut permit).await?;
        let Some(fetched) = fetched.ok().filter(|fetched| !fetched.has_more) else { return Ok(None) };
        let read = |(nth, line): (usize, &ProcessorJson)| {
            line.check_size()?;
            invoice_line(line.text(), nth)
        };
        Ok(Some(fetched.objects.iter().enumerate().map(read).collect::<Result<_, JsonReadError>>()?))
    }
}
