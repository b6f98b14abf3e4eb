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
use std::future::ready;
use std::ops::RangeInclusive;

use futures_util::future::{BoxFuture, join_all};
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::{Commission, ReconciliationState};
use model::id::{AccountId, CommissionId};
use store::affiliate::commission::{self, DueCommission};
use store::engine::Batch;

use crate::context::Context;
use crate::error::LedgerResult as Result;
use crate::ledger::hold_release::{HoldReleaseCounts, next_due};

/// Invoices that are reconciled concurrently.
const AT_ONCE: usize = 16;
/// Accounts that are reconciled concurrently.
const ACCOUNTS_AT_ONCE: usize = 16;
/// Page size of the query for due lines.
const LINES_AT_ONCE: usize = 200;
/// Maximum lines of one account per round.
const LINES_OF_EACH: usize = 200;
/// Time limit of one account per round, so that other accounts get their turn.
const TURN: SignedDuration = SignedDuration::from_secs(10);
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
pub trait Reconciler: Send + Sync {
    /// Fetches the state and applies it to the ledger.
    fn reconcile<'a>(&'a self, account: AccountId, invoice: &'a str) -> BoxFuture<'a, Result<ReconcileOutcome>>;

    /// Waits before the next batch of invoices, to stay below the processor's rate limit.
    fn pace(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
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
    client: &dyn Reconciler,
    account: AccountId,
    invoices: &BTreeSet<String>,
    is_time_up: &(dyn Fn() -> bool + Send + Sync),
) -> Result<ReconcileAnswers> {
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

/// Reconciles lines before they are earned.
pub struct Reconciliation<'a> {
    context: &'a Context,
    reconciler: &'a dyn Reconciler,
}

impl<'a> Reconciliation<'a> {
    pub fn new(context: &'a Context, reconciler: &'a dyn Reconciler) -> Self {
        Self { context, reconciler }
    }

    /// Reconciles the due lines of these partitions: some of each account, concurrently, so that a slow processor
    /// delays only its own account.
    pub async fn reconcile_due(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<ReconcileRound> {
        let mut waiting = DueLines::new();
        let has_more = self.collect_due_lines(partitions, now, &mut waiting).await?;
        let round = self.reconcile_accounts(waiting).await;
        Ok(ReconcileRound { has_more: has_more || round.has_more, ..round })
    }

    /// Adds due lines, up to [`LINES_OF_EACH`] per account. Returns true if there are more.
    async fn collect_due_lines(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        waiting: &mut DueLines,
    ) -> Result<bool> {
        let (mut has_more, mut after) = (false, None::<DueCommission>);
        loop {
            let mut due =
                commission::list_due(&self.context.store, partitions.clone(), now, after.as_ref(), LINES_AT_ONCE)
                    .await?;
            let is_last = due.len() < LINES_AT_ONCE;
            after = due.last().cloned();
            // Skip accounts that have reached their limit without reading the lines.
            let found = due.len();
            due.retain(|due| waiting.get(&due.account).is_none_or(|lines| lines.len() < LINES_OF_EACH));
            has_more |= due.len() < found;
            for line in commission::get_due(&self.context.store, &due).await? {
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
    async fn reconcile_accounts(&self, waiting: DueLines) -> ReconcileRound {
        let rounds = waiting.into_iter().map(|(account, ids)| async move {
            self.reconcile_account(account, &ids).await.unwrap_or_else(|fault| {
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

    async fn reconcile_account(&self, account: AccountId, ids: &[CommissionId]) -> Result<ReconcileRound> {
        let lines = commission::get_each(&self.context.store, account, ids).await?;
        let invoice = |line: &Commission| line.sold_invoice().map(|sale| sale.invoice.clone());
        let invoices: BTreeSet<String> = lines.iter().filter_map(invoice).collect();
        let end = self.context.now().checked_add(TURN).unwrap_or(Timestamp::MAX);
        let ReconcileAnswers { unanswered, not_requested } =
            reconcile_all(self.reconciler, account, &invoices, &|| self.context.now() >= end).await?;
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
    ) -> Result<()> {
        let (now, Some(before)) = (self.context.now(), commission::get(&self.context.store, account, id).await?) else {
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
        if self.context.commit(batch).await? && !matches!(comparison, ReconciliationState::Due(_)) && after.is_due(now)
        {
            counts.count(id, self.context.release_hold(account, id).await);
        }
        Ok(())
    }

    /// Runs reconciliation for this node's partitions until dropped.
    pub(crate) fn run(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let now = self.context.now();
                let (mut waiting, mut has_more) = (DueLines::new(), false);
                for partitions in self.context.leases.owned_ranges() {
                    match self.collect_due_lines(partitions, now, &mut waiting).await {
                        Ok(found_more) => has_more |= found_more,
                        Err(fault) => tracing::warn!(%fault, "cannot list lines to reconcile"),
                    }
                }
                let round = self.reconcile_accounts(waiting).await;
                if !(has_more || round.has_more) {
                    self.context.clock.sleep_until(next_due(self.context, now).await).await;
                }
            }
        })
    }
}
