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

use std::time::Duration;

use model::affiliate::program::AffiliateProgram;
use model::id::AccountId;
use net::http_client::ResponsePermit;
use tokio::time::Instant;

use crate::error::LedgerResult as Result;
use crate::ledger::unit_of_work::ProcessorRows;
use crate::processor::{
    InvoicePayment, JsonReadError, MetadataKeys, ProcessorJson, ReadContext, StateVersion, StripeObject as _,
    WebhookFact,
};
use crate::stripe::client::{PaymentLookup, StripeProcessor};

/// Wait limit of [`Enrichment::reserve_memory`].
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// The fact of an event, and the facts fetched for it.
#[derive(Debug)]
pub(crate) struct EnrichedFact {
    /// Facts to apply before the event's own, in the same commit.
    pub(crate) before: Vec<WebhookFact>,
    pub(crate) fact: WebhookFact,
}

impl EnrichedFact {
    /// Wraps a fact that needs no enrichment.
    pub(crate) fn from_fact(fact: WebhookFact) -> Self {
        Self { before: Vec::new(), fact }
    }
}

/// Fetches from the processor what an event leaves out.
#[derive(Clone)]
pub struct Enrichment {
    processor: StripeProcessor,
}

impl Enrichment {
    pub(crate) fn new(processor: &StripeProcessor) -> Self {
        Self { processor: processor.clone() }
    }

    /// Adds the facts that the event's fact needs and does not contain.
    pub(crate) async fn enrich(
        &self,
        program: &AffiliateProgram,
        fact: WebhookFact,
        keys: &MetadataKeys,
    ) -> Result<EnrichedFact> {
        let Some(client) = self.processor.client_of(program) else { return Ok(EnrichedFact::from_fact(fact)) };
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
        let mut work = ProcessorRows::of_account(&self.processor.context, program.account);
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

    /// Reserves memory for reading an event of an account; waits up to [`MEMORY_WAIT`].
    ///
    /// # Errors
    /// The memory is not free in time.
    pub(crate) async fn reserve_memory(&self, account: AccountId, bytes: usize) -> Result<ResponsePermit> {
        let mut permit = self.processor.webhooks.response_permit(account);
        permit.grow_until(bytes, Instant::now() + MEMORY_WAIT).await?;
        Ok(permit)
    }
}
