//! Views of payouts and runs: the status of an open payout is that of its run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mail::affiliate::payout::{Payout, PayoutRun, PayoutRunStatus, PayoutState, PayoutStatus, SkippedPartner};
use mail::id::{AccountId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::{payout, payout_run};
use store::engine::ReadError;

use crate::ledger::Ledger;

/// A payout with its visible status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutView {
    pub payout: Payout,
    pub status: PayoutStatus,
    pub approved_at: Option<Timestamp>,
}

impl PayoutView {
    /// Builds the view of a payout; `None` if the payout was dropped or its run cancelled.
    #[must_use]
    pub fn from_payout(payout: Payout, run: &PayoutRun) -> Option<Self> {
        let status = payout.status(run.status)?;
        Some(Self { payout, status, approved_at: run.approved_at })
    }

    /// Time of the last change of the payout or its status.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.approved_at.map_or(self.payout.updated_at, |at| at.max(self.payout.updated_at))
    }

    /// Version number; grows with each change of the payout and with its run's approval.
    #[must_use]
    pub fn rev(&self) -> u64 {
        self.payout.rev.saturating_add(u64::from(self.approved_at.is_some()))
    }
}

/// Filter of a list of payouts.
#[derive(Debug, Clone, Default)]
pub struct PayoutQuery {
    /// Any status if empty.
    pub statuses: Vec<PayoutStatus>,
    pub partner: Option<PartnerId>,
    pub run: Option<PayoutRunId>,
}

#[derive(Debug)]
pub struct PayoutPage {
    /// Newest first.
    pub payouts: Vec<PayoutView>,
    /// Cursor of the next page, if there may be one.
    pub next: Option<[u8; 16]>,
}

fn states(statuses: &[PayoutStatus]) -> Vec<PayoutState> {
    let state = |status: &PayoutStatus| match status {
        PayoutStatus::Draft | PayoutStatus::Processing => PayoutState::Open,
        PayoutStatus::Paid => PayoutState::Paid,
        PayoutStatus::Failed => PayoutState::Failed,
    };
    let mut states: Vec<_> = statuses.iter().map(state).collect();
    states.sort_unstable();
    states.dedup();
    states
}

impl Ledger {
    /// Lists payouts, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_payouts(
        &self,
        account: AccountId,
        query: &PayoutQuery,
        wanted: ListPageRequest,
    ) -> Result<PayoutPage, ReadError> {
        // At most one run is a draft, and it is newer than all payouts of other runs. So the range of ids separates
        // drafts from payouts in progress.
        let open = payout_run::find_open(self.store(), account).await?;
        let started = open.as_ref().map(|run| PayoutId::new(run.created_at, 0).to_bytes());
        let wanted = match (query.statuses.as_slice(), started) {
            ([PayoutStatus::Draft], Some(started)) => ListPageRequest { from: Some(started), ..wanted },
            ([PayoutStatus::Draft], None) => return Ok(PayoutPage { payouts: Vec::new(), next: None }),
            ([PayoutStatus::Processing], Some(started)) => {
                ListPageRequest { before: Some(wanted.before.map_or(started, |before| before.min(started))), ..wanted }
            }
            _ => wanted,
        };
        let fits = |payout: &Payout| {
            let payout_run = open.as_ref().filter(|open| open.id == payout.run);
            let status = payout.status(payout_run.map_or(PayoutRunStatus::Approved, |open| open.status));
            status.is_some_and(|status| query.statuses.is_empty() || query.statuses.contains(&status))
        };
        let mut states = states(&query.statuses);
        if states.is_empty() {
            states = vec![PayoutState::Open, PayoutState::Paid, PayoutState::Failed];
        }
        let filter = payout::PayoutFilter { run: query.run, partner: query.partner, states };
        let ListPage { rows, next } = payout::list(self.store(), account, &filter, wanted, &fits).await?;
        // A run may have changed since the query; compute each status from its current run.
        let mut payouts = self.to_views(account, rows).await?;
        payouts.retain(|view| query.statuses.is_empty() || query.statuses.contains(&view.status));
        Ok(PayoutPage { payouts, next })
    }

    /// Adds the visible status to payouts, and drops those that have none.
    pub(super) async fn to_views(
        &self,
        account: AccountId,
        payouts: Vec<Payout>,
    ) -> Result<Vec<PayoutView>, ReadError> {
        let mut ids: Vec<PayoutRunId> = payouts.iter().map(|payout| payout.run).collect();
        ids.sort_unstable();
        ids.dedup();
        let runs = payout_run::get_each(self.store(), account, &ids).await?;
        let runs: BTreeMap<_, _> = runs.into_iter().flatten().map(|run| (run.id, run)).collect();
        let to_view = |payout: Payout| {
            let run = runs.get(&payout.run)?;
            PayoutView::from_payout(payout, run)
        };
        Ok(payouts.into_iter().filter_map(to_view).collect())
    }

    /// Lists runs, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_runs(
        &self,
        account: AccountId,
        wanted: ListPageRequest,
    ) -> Result<ListPage<PayoutRun>, ReadError> {
        payout_run::list(self.store(), account, wanted).await
    }

    /// Lists payouts of a run, oldest first, reading at most `limit`. Returns the cursor of the next page as well.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_payouts_of_run(
        &self,
        run: &PayoutRun,
        after: Option<PayoutId>,
        limit: usize,
    ) -> Result<(Vec<PayoutView>, Option<PayoutId>), ReadError> {
        let found = payout::list_by_run(self.store(), run.account, run.id, after, limit).await?;
        let next = found.last().map(|last| last.id).filter(|_| found.len() == limit);
        Ok((found.into_iter().filter_map(|payout| PayoutView::from_payout(payout, run)).collect(), next))
    }

    /// Lists partners skipped by a run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_skipped(
        &self,
        run: &PayoutRun,
        after: Option<&SkippedPartner>,
        limit: usize,
    ) -> Result<Vec<SkippedPartner>, ReadError> {
        payout_run::list_skipped(self.store(), run.account, run.id, after, limit).await
    }
}
