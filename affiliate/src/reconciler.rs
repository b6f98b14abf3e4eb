//! Reconciler: fetches the current state of an invoice's payments from the processor, in batches at its pace.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;

use futures_util::future::{BoxFuture, join_all};
use mail::id::AccountId;

use crate::error::LedgerResult as Result;

/// Invoices that are reconciled concurrently.
const AT_ONCE: usize = 16;

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
