//! A payout as API clients see it: the status of an open payout is that of its run.

use jiff::Timestamp;
use model::affiliate::payout::{Payout, PayoutRun, PayoutStatus};

/// A payout with its visible status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutView {
    pub payout: Payout,
    pub status: PayoutStatus,
    pub approved_at: Option<Timestamp>,
}

impl PayoutView {
    /// Builds the view of a payout; `None` if the payout was dropped or its run cancelled.
    pub fn from_payout(payout: Payout, run: &PayoutRun) -> Option<Self> {
        let status = payout.status(run.status)?;
        Some(Self { payout, status, approved_at: run.approved_at })
    }

    /// Time of the last change of the payout or its status.
    pub fn updated_at(&self) -> Timestamp {
        self.approved_at.map_or(self.payout.updated_at, |at| at.max(self.payout.updated_at))
    }

    /// Version number; grows with each change of the payout and with its run's approval.
    pub fn rev(&self) -> u64 {
        self.payout.rev.saturating_add(u64::from(self.approved_at.is_some()))
    }
}
