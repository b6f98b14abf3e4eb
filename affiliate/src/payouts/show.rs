//! Payouts and runs as they are shown: an open payout stands where its run stands.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mail::affiliate::payout::{Payout, PayoutRun, PayoutRunStatus, PayoutState, PayoutStatus, SkippedPartner};
use mail::id::{AccountId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::{payout, payout_run};
use store::engine::ReadError;

use crate::ledger::Ledger;

/// A payout, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutView {
    /// The payout.
    pub payout: Payout,
    /// Where it stands.
    pub status: PayoutStatus,
    /// When its run was approved.
    pub approved_at: Option<Timestamp>,
}

impl PayoutView {
    /// A payout of a run; nothing when it is gone.
    #[must_use]
    pub fn from_payout(payout: Payout, run: &PayoutRun) -> Option<Self> {
        let status = payout.status(run.status)?;
        Some(Self { payout, status, approved_at: run.approved_at })
    }

    /// When it, or where it stands, was changed last.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.approved_at.map_or(self.payout.updated_at, |at| at.max(self.payout.updated_at))
    }

    /// Grows with each change of it, and of where it stands.
    #[must_use]
    pub fn rev(&self) -> u64 {
        self.payout.rev.saturating_add(u64::from(self.approved_at.is_some()))
    }
}

/// Which payouts are listed.
#[derive(Debug, Clone, Default)]
pub struct PayoutQuery {
    /// Those that stand in one of these; in any when empty.
    pub statuses: Vec<PayoutStatus>,
    /// Those of this partner.
    pub partner: Option<PartnerId>,
    /// Those of this run.
    pub run: Option<PayoutRunId>,
}

/// A page of payouts.
#[derive(Debug)]
pub struct PayoutPage {
    /// The payouts, newest first.
    pub payouts: Vec<PayoutView>,
    /// After which id the next page begins, if there may be one.
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
    /// A page of payouts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_payouts(
        &self,
        account: AccountId,
        wish: &PayoutQuery,
        wanted: ListPageRequest,
    ) -> Result<PayoutPage, ReadError> {
        // Of open payouts all of one run are drafts, if there is a draft, and those of all others are under way. It is
        // younger than they: so neither is looked for among the others.
        let open = payout_run::find_open(self.store(), account).await?;
        let began = open.as_ref().map(|run| PayoutId::new(run.created_at, 0).to_bytes());
        let wanted = match (wish.statuses.as_slice(), began) {
            ([PayoutStatus::Draft], Some(began)) => ListPageRequest { from: Some(began), ..wanted },
            ([PayoutStatus::Draft], None) => return Ok(PayoutPage { payouts: Vec::new(), next: None }),
            ([PayoutStatus::Processing], Some(began)) => {
                ListPageRequest { before: Some(wanted.before.map_or(began, |before| before.min(began))), ..wanted }
            }
            _ => wanted,
        };
        let fits = |payout: &Payout| {
            let of = open.as_ref().filter(|open| open.id == payout.run);
            let status = payout.status(of.map_or(PayoutRunStatus::Approved, |open| open.status));
            status.is_some_and(|status| wish.statuses.is_empty() || wish.statuses.contains(&status))
        };
        let mut states = states(&wish.statuses);
        if states.is_empty() {
            states = vec![PayoutState::Open, PayoutState::Paid, PayoutState::Failed];
        }
        let filter = payout::PayoutFilter { run: wish.run, partner: wish.partner, states };
        let ListPage { rows, next } = payout::list(self.store(), account, &filter, (wanted, &fits)).await?;
        // Runs may have moved since: where each payout stands, its run says now.
        let mut payouts = self.to_views(account, rows).await?;
        payouts.retain(|shown| wish.statuses.is_empty() || wish.statuses.contains(&shown.status));
        Ok(PayoutPage { payouts, next })
    }

    /// Payouts with where they stand; those that are gone are left out.
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
        let shown = |payout: Payout| {
            let run = runs.get(&payout.run)?;
            PayoutView::from_payout(payout, run)
        };
        Ok(payouts.into_iter().filter_map(shown).collect())
    }

    /// A page of runs.
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

    /// Payouts of a run, oldest first, after one of them, at most `limit` looked at; and after which one it goes on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_payouts_of_run(
        &self,
        run: &PayoutRun,
        after: Option<PayoutId>,
        limit: usize,
    ) -> Result<(Vec<PayoutView>, Option<PayoutId>), ReadError> {
        let found = payout::list_by_run(self.store(), (run.account, run.id), after, limit).await?;
        let next = found.last().map(|last| last.id).filter(|_| found.len() == limit);
        Ok((found.into_iter().filter_map(|payout| PayoutView::from_payout(payout, run)).collect(), next))
    }

    /// Partners who are not in a run, after one of them, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_skipped(
        &self,
        run: &PayoutRun,
        after: Option<&SkippedPartner>,
        limit: usize,
    ) -> Result<Vec<SkippedPartner>, ReadError> {
        payout_run::list_skipped(self.store(), (run.account, run.id), after, limit).await
    }
}
