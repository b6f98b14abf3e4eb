//! Reconciliation: fetches the current state of a charge from the processor before its commission is earned and before
//! it is paid. This catches refunds and disputes whose events were lost (docs/FLOW.md, "Payment to
//! commission").
//!
//! ```text
//! line ─► its invoice ─► charges, payments ─► GET each ─► refunded, disputed? ─► [Ledger::ingest_fetched_object]
//! ```
//!
//! A definite refusal counts as an answer, e.g. that the charge does not exist. A missing permission of the key does
//! not. Without an answer, a line waits up to `ANSWER_WAIT_MAX` and is then earned anyway: the payout run that pays
//! it reconciles again (`affiliate/src/payouts/reconcile.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::ops::RangeInclusive;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::{Commission, ReconciliationState};
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, CommissionId};
use queue::client::http::ResponsePermit;
use store::affiliate::commission::{self, DueCommission};
use store::affiliate::program;
use store::engine::Batch;

use crate::enrichment::PaymentLookup;
use crate::ledger::{HoldReleaseCounts, IngestOutcome, Ledger, LedgerError, NoEnricher, PaymentSource, UnitOfWork};
use crate::processor::ProcessorJson;
use crate::service::AffiliateService;
use crate::stripe_client::{StripeAnswer, StripeClient, StripeError, StripeList, escaped};

/// Invoices that are reconciled concurrently.
const AT_ONCE: usize = 16;
/// Minimum time between two batches of invoices. With up to three requests per invoice this stays below the processor's
/// rate limit (Stripe: 100 requests per second, 25 in test mode) and leaves capacity for other requests.
const PACE: SignedDuration = SignedDuration::from_secs(1);
/// Accounts that are reconciled concurrently.
const ACCOUNTS_AT_ONCE: usize = 16;
/// Page size of the query for due lines.
const LINES_AT_ONCE: usize = 200;
/// Maximum lines of one account per round.
const LINES_OF_EACH: usize = 200;
/// Time limit of one account per round, so that other accounts get their turn.
const TURN: SignedDuration = SignedDuration::from_secs(10);
/// Time limit of one invoice; no request is sent after it.
const INVOICE_TURN: SignedDuration = SignedDuration::from_secs(30);
/// Retry interval after a failed reconciliation.
const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// Maximum time that an earned line waits for an answer.
const ANSWER_WAIT_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Result of reconciling one invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// The processor's state is applied to the ledger.
    Reconciled,
    /// No usable answer; the text is the cause.
    Unanswered(String),
}

/// Fetches the current state of an invoice's payments from the processor.
pub trait Reconciler: Sync {
    /// Fetches the state and applies it to the ledger.
    fn reconcile(
        &self,
        account: AccountId,
        invoice: &str,
    ) -> impl Future<Output = Result<ReconcileOutcome, LedgerError>> + Send;

    /// Waits before the next batch of invoices, to stay below the processor's rate limit.
    fn pace(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Reconciliation of one invoice.
struct InvoiceReconciliation {
    client: StripeClient,
    ledger: Ledger,
    program: AffiliateProgram,
    /// No request is sent after this time.
    until: Timestamp,
}

impl Reconciler for AffiliateService {
    async fn reconcile(&self, account: AccountId, invoice: &str) -> Result<ReconcileOutcome, LedgerError> {
        let program = program::get(self.store(), account).await?.ok_or(LedgerError::NotSetUp)?;
        // Without a key there is no processor to query, so nothing can be reconciled.
        let Some(client) = self.stripe_client(&program) else { return Ok(ReconcileOutcome::Reconciled) };
        let until = self.now().checked_add(INVOICE_TURN).unwrap_or(Timestamp::MAX);
        InvoiceReconciliation { client, ledger: self.ledger(), program, until }.reconcile_invoice(invoice).await
    }

    async fn pace(&self) {
        let next = self.now().checked_add(PACE).unwrap_or(Timestamp::MAX);
        self.intake.clock().sleep_until(next).await;
    }
}

impl InvoiceReconciliation {
    async fn reconcile_invoice(&self, invoice: &str) -> Result<ReconcileOutcome, LedgerError> {
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

    async fn paid_by(&self, invoice: &str) -> Result<Vec<PaymentSource>, LedgerError> {
        UnitOfWork::for_program(&self.ledger, self.program.clone()).payment_sources(invoice).await
    }

    async fn reconcile_payment(&self, paid_by: &PaymentSource) -> Result<ReconcileOutcome, LedgerError> {
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

    async fn reconcile_disputes(&self, charge: &str) -> Result<ReconcileOutcome, LedgerError> {
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
        let is_late = self.ledger.now() > self.until;
        if is_late { Err(StripeError::NoResponse("takes too long to answer".to_owned())) } else { Ok(()) }
    }

    /// Applies a fetched object. One that cannot be applied is stored among the failed events, to be replayed from
    /// there.
    async fn ingest(&self, kind: &str, object: &ProcessorJson, at: Timestamp) -> Result<(), LedgerError> {
        match self.ledger.ingest_fetched_object(&self.program, kind, object, at, &NoEnricher).await {
            IngestOutcome::Failed(fault @ (LedgerError::Read(_) | LedgerError::Commit(_) | LedgerError::Contended)) => {
                Err(fault)
            }
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

/// Results of reconciling several invoices.
#[derive(Debug, Default)]
pub(crate) struct ReconcileAnswers {
    /// Invoices without an answer, with the cause.
    pub(crate) unanswered: BTreeMap<String, String>,
    /// Invoices that were not tried because the time was up.
    pub(crate) not_requested: BTreeSet<String>,
}

/// Reconciles invoices in concurrent batches, and starts no new batch after the time is up. After a batch without any
/// answer, the rest counts as unanswered.
pub(crate) async fn reconcile_all(
    client: &impl Reconciler,
    account: AccountId,
    invoices: &BTreeSet<String>,
    is_time_up: impl Fn() -> bool,
) -> Result<ReconcileAnswers, LedgerError> {
    let invoices: Vec<&String> = invoices.iter().collect();
    let (mut answers, mut silent) = (ReconcileAnswers::default(), None::<String>);
    for (index, batch) in invoices.chunks(AT_ONCE).enumerate() {
        if let Some(reason) = &silent {
            // The last batch had no answer at all: skip the rest.
            answers.unanswered.extend(batch.iter().map(|invoice| ((*invoice).clone(), reason.clone())));
            continue;
        }
        if index > 0 && is_time_up() {
            answers.not_requested.extend(batch.iter().map(|invoice| (*invoice).clone()));
            continue;
        }
        if index > 0 {
            client.pace().await;
        }
        let outcomes = join_all(batch.iter().map(|invoice| client.reconcile(account, invoice))).await;
        let mut any = false;
        for (invoice, outcome) in batch.iter().zip(outcomes) {
            match outcome? {
                ReconcileOutcome::Reconciled => any = true,
                ReconcileOutcome::Unanswered(reason) => {
                    answers.unanswered.insert((*invoice).clone(), reason);
                }
            }
        }
        silent = answers.unanswered.values().next().filter(|_| !any).cloned();
    }
    Ok(answers)
}

/// Lines due for reconciliation, by account.
type DueLines = BTreeMap<AccountId, Vec<CommissionId>>;

/// Result of one reconciliation round.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReconcileRound {
    /// Holds that were released at once, because their hold time had already ended.
    pub ended: HoldReleaseCounts,
    /// True if due lines remain.
    pub has_more: bool,
}

impl Ledger {
    /// Reconciles the due lines of these partitions: some of each account, concurrently, so that a slow processor
    /// delays only its own account.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reconcile_due(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        client: &impl Reconciler,
    ) -> Result<ReconcileRound, LedgerError> {
        let mut waiting = DueLines::new();
        let has_more = self.collect_due_lines(partitions, now, &mut waiting).await?;
        let round = self.reconcile_accounts(waiting, client).await;
        Ok(ReconcileRound { has_more: has_more || round.has_more, ..round })
    }

    /// Adds due lines, up to [`LINES_OF_EACH`] per account. Returns true if there are more.
    async fn collect_due_lines(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        waiting: &mut DueLines,
    ) -> Result<bool, LedgerError> {
        let (mut has_more, mut after) = (false, None::<DueCommission>);
        loop {
            let mut due =
                commission::list_due(self.store(), partitions.clone(), now, after.as_ref(), LINES_AT_ONCE).await?;
            let is_last = due.len() < LINES_AT_ONCE;
            after = due.last().cloned();
            // Skip accounts that have reached their limit without reading the lines.
            let found = due.len();
            due.retain(|due| waiting.get(&due.account).is_none_or(|lines| lines.len() < LINES_OF_EACH));
            has_more |= due.len() < found;
            for line in commission::get_due(self.store(), &due).await? {
                if matches!(line.comparison, ReconciliationState::Due(at) if at <= now) {
                    waiting.entry(line.account).or_default().push(line.id);
                }
            }
            if is_last {
                return Ok(has_more);
            }
        }
    }

    /// Reconciles accounts concurrently; errors of one account are logged.
    async fn reconcile_accounts(&self, waiting: DueLines, client: &impl Reconciler) -> ReconcileRound {
        let rounds = waiting.into_iter().map(|(account, ids)| async move {
            self.reconcile_account(account, &ids, client).await.unwrap_or_else(|fault| {
                tracing::warn!(%account, %fault, "reconciliation failed");
                ReconcileRound::default()
            })
        });
        let sum = |sum: ReconcileRound, round: ReconcileRound| async move {
            let earned = sum.ended.earned.saturating_add(round.ended.earned);
            let failed = sum.ended.failed.saturating_add(round.ended.failed);
            ReconcileRound { ended: HoldReleaseCounts { earned, failed }, has_more: sum.has_more || round.has_more }
        };
        stream::iter(rounds).buffer_unordered(ACCOUNTS_AT_ONCE).fold(ReconcileRound::default(), sum).await
    }

    async fn reconcile_account(
        &self,
        account: AccountId,
        ids: &[CommissionId],
        client: &impl Reconciler,
    ) -> Result<ReconcileRound, LedgerError> {
        let lines = commission::get_each(self.store(), account, ids).await?;
        let invoice = |line: &Commission| line.sold_invoice().map(|sale| sale.invoice.clone());
        let invoices: BTreeSet<String> = lines.iter().filter_map(invoice).collect();
        let end = self.now().checked_add(TURN).unwrap_or(Timestamp::MAX);
        let ReconcileAnswers { unanswered, not_requested } =
            reconcile_all(client, account, &invoices, || self.now() >= end).await?;
        if let Some(reason) = unanswered.values().next() {
            tracing::warn!(%account, invoices = unanswered.len(), why = reason, "charges not reconciled: no answer from the processor");
        }
        let mut round = ReconcileRound { has_more: !not_requested.is_empty(), ..ReconcileRound::default() };
        for line in &lines {
            let invoice = invoice(line).unwrap_or_default();
            if not_requested.contains(&invoice) {
                continue;
            }
            self.record_answer(account, line.id, !unanswered.contains_key(&invoice), &mut round.ended).await?;
        }
        Ok(round)
    }

    /// Stores whether a line was reconciled, and releases its hold if nothing else is left to wait for.
    async fn record_answer(
        &self,
        account: AccountId,
        id: CommissionId,
        has_answer: bool,
        counts: &mut HoldReleaseCounts,
    ) -> Result<(), LedgerError> {
        let (now, Some(before)) = (self.now(), commission::get(self.store(), account, id).await?) else {
            return Ok(());
        };
        let waited = before.earns_at.checked_add(ANSWER_WAIT_MAX).is_ok_and(|end| end <= now);
        let comparison = match (has_answer, waited) {
            (true, _) => ReconciliationState::Done(now),
            (false, true) => ReconciliationState::Needless,
            (false, false) => ReconciliationState::Due(now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX)),
        };
        let after = Commission { comparison, ..before.clone() };
        let mut batch = Batch::progress();
        commission::update(&mut batch, &before, &after);
        // After a conflict the line stays due and is found again in the next round.
        if self.commit(batch).await? && !matches!(comparison, ReconciliationState::Due(_)) && after.is_due(now) {
            counts.count(id, self.release_hold(account, id).await);
        }
        Ok(())
    }
}

impl AffiliateService {
    /// Runs reconciliation for this node's partitions until dropped.
    pub fn run_reconciliation(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let (now, ledger) = (self.now(), self.ledger());
                let (mut waiting, mut has_more) = (DueLines::new(), false);
                for partitions in self.intake.partition_ranges() {
                    match ledger.collect_due_lines(partitions, now, &mut waiting).await {
                        Ok(found_more) => has_more |= found_more,
                        Err(fault) => tracing::warn!(%fault, "cannot list lines to reconcile"),
                    }
                }
                let round = ledger.reconcile_accounts(waiting, self).await;
                if !(has_more || round.has_more) {
                    self.intake.clock().sleep_until(self.next_due(now).await).await;
                }
            }
        })
    }
}
