//! Reconciliation of one invoice with Stripe.
//!
//! ```text
//! invoice ─► charges, payments ─► GET each ─► refunded, disputed? ─► [`FactIngest::ingest_fetched_object`]
//! ```
//!
//! A definite refusal counts as an answer, e.g. that the charge does not exist. A missing permission of the key does
//! not.

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::program::AffiliateProgram;
use model::id::AccountId;
use net::http_client::ResponsePermit;
use store::affiliate::program;

use crate::error::{LedgerError, LedgerResult as Result};
use crate::ledger::ingest::{FactIngest, IngestOutcome};
use crate::ledger::unit_of_work::{PaymentSource, ProcessorRows};
use crate::processor::ProcessorJson;
use crate::reconciliation::{ReconcileOutcome, Reconciler};
use crate::stripe::client::{
    PaymentLookup, StripeAnswer, StripeClient, StripeError, StripeList, StripeProcessor, escaped,
};

/// Minimum time between two batches of invoices. With up to three requests per invoice this stays below the processor's
/// rate limit (Stripe: 100 requests per second, 25 in test mode) and leaves capacity for other requests.
const PACE: SignedDuration = SignedDuration::from_secs(1);
/// Time limit of one invoice; no request is sent after it.
const INVOICE_TURN: SignedDuration = SignedDuration::from_secs(30);

struct InvoiceReconciliation {
    client: StripeClient,
    ingest: FactIngest,
    program: AffiliateProgram,
    /// No request is sent after this time.
    until: Timestamp,
}

impl Reconciler for StripeProcessor {
    fn reconcile<'a>(&'a self, account: AccountId, invoice: &'a str) -> BoxFuture<'a, Result<ReconcileOutcome>> {
        Box::pin(async move {
            let program = program::get(&self.context.store, account).await?.ok_or(LedgerError::NotSetUp)?;
            // Without a key there is no processor to query, so nothing can be reconciled.
            let Some(client) = self.client_of(&program) else { return Ok(ReconcileOutcome::Reconciled) };
            let until = self.context.now().checked_add(INVOICE_TURN).unwrap_or(Timestamp::MAX);
            let ingest = FactIngest::new(&self.context, None);
            InvoiceReconciliation { client, ingest, program, until }.reconcile_invoice(invoice).await
        })
    }

    fn pace(&self) -> BoxFuture<'_, ()> {
        let next = self.context.now().checked_add(PACE).unwrap_or(Timestamp::MAX);
        Box::pin(async move { self.context.clock.sleep_until(next).await })
    }
}

impl InvoiceReconciliation {
    async fn reconcile_invoice(&self, invoice: &str) -> Result<ReconcileOutcome> {
        let mut paid_by = self.paid_by(invoice).await?;
        if paid_by.is_empty() {
            // Since API version 2025-03-31 (basil) an invoice does not list its payments.
            let mut permit = self.client.permit();
            match self.client.list_payments(PaymentLookup::Invoice(invoice), &mut permit).await {
                Ok(StripeList { objects, at, .. }) => {
                    for payment in &objects {
                        self.ingest("invoice_payment.paid", payment, at).await?;
                    }
                }
                Err(reason) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {reason}"))),
            }
            paid_by = self.paid_by(invoice).await?;
        }
        for source in paid_by {
            if let ReconcileOutcome::Unanswered(reason) = self.reconcile_payment(&source).await? {
                return Ok(ReconcileOutcome::Unanswered(reason));
            }
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn paid_by(&self, invoice: &str) -> Result<Vec<PaymentSource>> {
        Ok(ProcessorRows::of_account(&self.ingest.context, self.program.account).payment_sources(invoice).await?)
    }

    async fn reconcile_payment(&self, paid_by: &PaymentSource) -> Result<ReconcileOutcome> {
        let mut permit = self.client.permit();
        let answer = match paid_by {
            PaymentSource::Charge(id) => self.fetch_charge(id, &mut permit).await,
            PaymentSource::Payment(id) => {
                self.fetch_list(&format!("/v1/charges?payment_intent={}", escaped(id)), &mut permit).await
            }
        };
        let StripeList { objects, at, .. } = match answer {
            Ok(answer) => answer,
            Err(reason) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {reason}"))),
        };
        for charge in &objects {
            if charge.is_too_large() || charge.number_in("amount_refunded").unwrap_or(0) > 0 {
                self.ingest("charge.refunded", charge, at).await?;
            }
            if charge.flag_in("disputed").unwrap_or(false)
                && let Some(id) = charge.id()
                && let ReconcileOutcome::Unanswered(reason) = self.reconcile_disputes(&id).await?
            {
                return Ok(ReconcileOutcome::Unanswered(reason));
            }
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn reconcile_disputes(&self, charge: &str) -> Result<ReconcileOutcome> {
        let mut permit = self.client.permit();
        let path = format!("/v1/disputes?charge={}", escaped(charge));
        let StripeList { objects, at, .. } = match self.fetch_list(&path, &mut permit).await {
            Ok(answer) => answer,
            Err(reason) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {reason}"))),
        };
        for dispute in &objects {
            self.ingest(dispute_event_type(dispute), dispute, at).await?;
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn fetch_charge(&self, id: &str, permit: &mut ResponsePermit) -> Result<StripeList, StripeError> {
        self.check_deadline()?;
        Ok(match self.client.get_object(&format!("/v1/charges/{}", escaped(id)), permit).await? {
            StripeAnswer::Object(charge, at) => StripeList { objects: vec![charge], at, has_more: false },
            StripeAnswer::Refused(_) => StripeList::empty(),
        })
    }

    async fn fetch_list(&self, path: &str, permit: &mut ResponsePermit) -> Result<StripeList, StripeError> {
        self.check_deadline()?;
        Ok(self.client.list_objects(path, 1, permit).await?.unwrap_or_else(|_| StripeList::empty()))
    }

    fn check_deadline(&self) -> Result<(), StripeError> {
        let is_late = self.ingest.context.now() > self.until;
        if is_late { Err(StripeError::NoResponse("takes too long to answer".to_owned())) } else { Ok(()) }
    }

    /// Applies a fetched object. One that cannot be applied is stored among the failed events, to be replayed from
    /// there.
    async fn ingest(&self, kind: &str, object: &ProcessorJson, at: Timestamp) -> Result<()> {
        match self.ingest.ingest_fetched_object(&self.program, kind, object, at).await {
            IngestOutcome::Failed(
                fault @ (LedgerError::Read(_) | LedgerError::Commit(_) | LedgerError::RetriesExhausted),
            ) => Err(fault),
            _ => Ok(()),
        }
    }
}

/// Returns the event type that matches a dispute's status.
pub(crate) fn dispute_event_type(dispute: &ProcessorJson) -> &'static str {
    match dispute.text_in("status").as_deref() {
        Some("won" | "lost" | "warning_closed") => "charge.dispute.closed",
        _ => "charge.dispute.created",
    }
}
