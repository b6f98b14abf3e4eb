//! The audit: whether the books are as they must be (completions-affiliate.md 3, invariants I1 to I12).
//!
//! It reads page by page and keeps nothing but what is broken, of that at most [`BROKEN_MAX`]. What the types make
//! impossible is not asked again: a line that is reversed or pending has no payout, one that is paid has one (half of I3
//! and of I6), and all states of a line add up (I4); what was paid is what paid payouts come to, since each comes to its
//! lines (I2), and a line is paid where its payout is (I3). What of I10 cannot be asked afterwards stands in [`events`].
//! I12 is of the doors: there is no operation of an API key's that moves a run.

mod events;
mod ledger;
mod partners;
mod payouts;

use futures_util::future::BoxFuture;
use mail::affiliate::program::AffiliateProgram;
use mail::id::AccountId;
use serde::Serialize;
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::program;

use crate::ledger::{Ledger, LedgerError};

/// Findings that are kept.
pub const VIOLATIONS_MAX: usize = 1_000;
/// Rows of a page.
const PAGE_ROWS: usize = 200;

mail::words! {
    /// An invariant.
    Invariant {
        /// One line of an invoice and level, one bounty of a referral.
        I1 = "I1",
        /// A payout comes to its lines and adjustments, a run to its payouts.
        I2 = "I2",
        /// A line is paid where its payout is, and in one payout at most.
        I3 = "I3",
        /// The number of a partner's paying customers and of whom it brought, a referral's sums: the lines of the books add up.
        I4 = "I4",
        /// What may not earn has no open line.
        I5 = "I5",
        /// Amounts and times are possible.
        I6 = "I6",
        /// A person is claimed once.
        I7 = "I7",
        /// There is one default campaign, each partner has its primary link, and no two links have one token.
        I8 = "I8",
        /// All that was heard is worked into the ledger.
        I9 = "I9",
        /// Each move was told of once.
        I10 = "I10",
        /// Nobody recruits itself.
        I11 = "I11",
    }
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What it breaks.
    pub invariant: Invariant,
    /// Whose id.
    pub subject: String,
    /// In words.
    pub message: String,
}

/// How many rows were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AuditCounts {
    /// Partners.
    pub partners: usize,
    /// Referrals.
    pub referrals: usize,
    /// Commissions.
    pub commissions: usize,
    /// Payouts.
    pub payouts: usize,
}

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Whether nothing is broken.
    pub ok: bool,
    /// What was looked at.
    pub checked: AuditCounts,
    /// What is broken.
    pub broken: Vec<Violation>,
}

/// An audit under way.
struct Auditor<'l> {
    ledger: &'l Ledger,
    program: AffiliateProgram,
    /// When events must tell of everything.
    period: events::AuditedPeriod,
    checked: AuditCounts,
    broken: Vec<Violation>,
}

/// Audits an account's books. Of books that are written meanwhile it may find what is only half read.
///
/// # Errors
/// There is no program; the store cannot be read.
pub fn audit<'a>(ledger: &'a Ledger, account: AccountId) -> BoxFuture<'a, Result<AuditReport, LedgerError>> {
    Box::pin(async move {
        let program = program::get(ledger.store(), account).await?.ok_or(LedgerError::NotSetUp)?;
        let period = events::audited_period(ledger, account).await?;
        let mut auditor = Auditor { ledger, program, period, checked: AuditCounts::default(), broken: Vec::new() };
        auditor.partners().await?;
        auditor.referrals().await?;
        auditor.commissions().await?;
        auditor.payouts().await?;
        let Auditor { checked, broken, .. } = auditor;
        Ok(AuditReport { ok: broken.is_empty(), checked, broken })
    })
}

impl Auditor<'_> {
    fn account(&self) -> AccountId {
        self.program.account
    }

    /// Notes that something is broken, unless it is not.
    fn check(&mut self, holds: bool, invariant: Invariant, subject: impl ToString, message: impl FnOnce() -> String) {
        if !holds && self.broken.len() < VIOLATIONS_MAX {
            self.broken.push(Violation { invariant, subject: subject.to_string(), message: message() });
        }
    }
}

/// The next page after another.
fn next_page<T>(page: Option<&ListPage<T>>) -> Option<ListPageRequest> {
    let before = match page {
        None => None,
        Some(page) => Some(page.next?),
    };
    Some(ListPageRequest { before, limit: PAGE_ROWS, from: None })
}
