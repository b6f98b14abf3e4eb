//! Audit of the affiliate ledger: checks invariants I1 to I12 and reports violations.
//!
//! ```text
//! request ─► [runner]: a result that it may use? ─yes─► it
//!                        └─no─► one audit per account, on a blocking thread ─► result, kept for a short time
//! ```
//!
//! The audit reads page by page and collects at most [`VIOLATIONS_MAX`] violations. A ledger too large to be read within
//! the time limit is checked in part: payouts first, then partners, commissions and referrals, newest first. The audit
//! does not repeat what the types guarantee:
//! - A reversed or pending line has no payout, and a paid line has one (half of I3 and I6).
//! - Every line is in exactly one state (I4).
//! - The paid balance equals the sum of paid payouts: a payout equals its lines (I2), and a line is paid if its payout
//!   is (I3).
//!
//! The `events` module lists the parts of I10 that cannot be checked afterwards. I12 holds by the table of operations, and
//! a test checks it there: no operation that takes an API key changes a payout run.

mod events;
mod ledger;
mod partners;
mod payouts;
pub mod runner;

use std::collections::{HashMap, HashSet};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, PayoutId, ReferralId};
use schema::ToSchema;
use serde::Serialize;
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::program;

use crate::api_timestamp::ApiTimestamp;
use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};

/// Maximum number of reported violations.
pub const VIOLATIONS_MAX: usize = 1_000;
const PAGE_ROWS: usize = 200;
/// Maximum number of referrals and payouts that are remembered, because many lines name the same ones.
const REMEMBERED_MAX: usize = 10_000;

mail::words! {
    /// An invariant of the ledger.
    Invariant {
        /// One line per invoice and level, one bounty per referral.
        I1 = "I1",
        /// A payout equals the sum of its lines and adjustments, a run the sum of its payouts.
        I2 = "I2",
        /// A line is paid if its payout is paid, and belongs to at most one payout.
        I3 = "I3",
        /// Stored counts and sums (paying customers, referrals by link, revenue, balances) equal what the rows add up
        /// to.
        I4 = "I4",
        /// A referral that may not earn has no open line.
        I5 = "I5",
        /// Amounts are positive and times are in order.
        I6 = "I6",
        /// An email or customer is claimed by one referral only.
        I7 = "I7",
        /// There is one default campaign, each partner has one primary link, and tokens are unique.
        I8 = "I8",
        /// Every stored fact of the processor is reflected in the ledger.
        I9 = "I9",
        /// Each state change emitted exactly one event.
        I10 = "I10",
        /// No partner is its own recruiter, directly or through others.
        I11 = "I11",
        /// No API key changes a payout run, or a commission except by reversing it.
        I12 = "I12",
    }
}

impl Invariant {
    /// The rule, in a sentence without its full stop.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::I1 => "One line per invoice and level, and one bounty per referral",
            Self::I2 => "Every payout equals its lines and deductions, and every run its payouts",
            Self::I3 => "A line is paid if its payout is paid, and is in one payout at most",
            Self::I4 => "Stored counts, revenue and balances equal what the rows add up to",
            Self::I5 => "A referral that may not earn has no open line",
            Self::I6 => "Amounts are positive, and times are in order",
            Self::I7 => "A person is claimed by one referral only",
            Self::I8 => "One default campaign, one primary link per partner, and no link token twice",
            Self::I9 => "Everything that the processor reported is in the ledger",
            Self::I10 => "Every change was reported by exactly one event",
            Self::I11 => "No partner is its own recruiter, directly or through others",
            Self::I12 => "No API key changes a payout run, or a commission except by reversing it",
        }
    }
}

/// An invariant with its result
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditedInvariant {
    /// The invariant
    #[schema(as = String, enum = Invariant::WORDS)]
    pub invariant: Invariant,
    /// The rule
    pub description: &'static str,
    /// The number of violations in `broken`
    pub violations: usize,
}

/// A violated invariant
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Violation {
    /// The invariant
    #[schema(as = String, enum = Invariant::WORDS)]
    pub invariant: Invariant,
    /// The id of the object that violates it
    pub subject: String,
    /// A description
    pub message: String,
}

/// Number of objects checked
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditCounts {
    /// Partners
    pub partners: usize,
    /// Referrals
    pub referrals: usize,
    /// Commissions
    pub commissions: usize,
    /// Payouts
    pub payouts: usize,
}

mail::words! {
    /// The state of an audit.
    AuditStatus {
        /// The audit has not ended.
        Running = "running",
        Done = "done",
    }
}

/// An audit of the ledger
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(name = "AffiliateAudit")]
pub struct AuditReport {
    /// `running` if the audit has not ended: then nothing else is known, and `ok` is false
    #[schema(as = String, enum = AuditStatus::WORDS)]
    pub status: AuditStatus,
    /// When it was begun; null while it is running
    pub audited_at: Option<ApiTimestamp>,
    /// Whether all rows were checked. The audit of a very large ledger ends early: then the newest rows were checked
    pub complete: bool,
    /// Whether all invariants hold for the checked rows
    pub ok: bool,
    pub checked: AuditCounts,
    /// Violated invariants, at most 1,000
    #[schema(maxItems = VIOLATIONS_MAX)]
    pub broken: Vec<Violation>,
    /// All invariants, I1 to I12
    pub invariants: Vec<AuditedInvariant>,
}

impl AuditReport {
    /// The report of an audit that has not ended.
    #[must_use]
    pub fn running() -> Self {
        Self {
            status: AuditStatus::Running,
            audited_at: None,
            complete: false,
            ok: false,
            checked: AuditCounts::default(),
            broken: Vec::new(),
            invariants: Vec::new(),
        }
    }
}

/// The result for each invariant; `counts` has the number of violations in the order of [`Invariant::ALL`].
fn invariants(counts: &[usize]) -> Vec<AuditedInvariant> {
    let result = |(invariant, violations): (&Invariant, &usize)| AuditedInvariant {
        invariant: *invariant,
        description: invariant.description(),
        violations: *violations,
    };
    Invariant::ALL.iter().zip(counts).map(result).collect()
}

/// State of a running audit.
struct Auditor<'l> {
    context: &'l Context,
    program: AffiliateProgram,
    /// The period for which every change must have its event.
    period: events::AuditedPeriod,
    /// Time at which the audit ends early.
    deadline: Option<Timestamp>,
    is_complete: bool,
    /// Whether these referrals may not earn.
    barred: HashMap<ReferralId, bool>,
    /// Payouts that exist.
    existing_payouts: HashSet<PayoutId>,
    checked: AuditCounts,
    broken: Vec<Violation>,
    /// Number of violations in the order of [`Invariant::ALL`], also of those that `broken` has no room for.
    counts: [usize; Invariant::ALL.len()],
}

/// Audits an account's ledger. Concurrent writes may cause false violations, because rows are read one after another.
///
/// # Errors
/// The account has no program; the store cannot be read.
pub fn audit(context: &Context, account: AccountId) -> BoxFuture<'_, Result<AuditReport>> {
    audit_within(context, account, None)
}

/// Audits an account's ledger as [`audit`], and ends early after a time.
///
/// # Errors
/// The account has no program; the store cannot be read.
pub fn audit_within(
    context: &Context,
    account: AccountId,
    limit: Option<SignedDuration>,
) -> BoxFuture<'_, Result<AuditReport>> {
    Box::pin(async move {
        let begun_at = context.now();
        let mut auditor = Auditor {
            context,
            program: program::get(&context.store, account).await?.ok_or(LedgerError::NotSetUp)?,
            period: events::audited_period(context, account).await?,
            deadline: limit.and_then(|limit| begun_at.checked_add(limit).ok()),
            is_complete: true,
            barred: HashMap::new(),
            existing_payouts: HashSet::new(),
            checked: AuditCounts::default(),
            broken: Vec::new(),
            counts: [0; Invariant::ALL.len()],
        };
        auditor.payouts().await?;
        auditor.partners().await?;
        auditor.commissions().await?;
        auditor.referrals().await?;
        let Auditor { checked, broken, counts, is_complete, .. } = auditor;
        Ok(AuditReport {
            status: AuditStatus::Done,
            audited_at: Some(ApiTimestamp(begun_at)),
            complete: is_complete,
            ok: broken.is_empty(),
            checked,
            broken,
            invariants: invariants(&counts),
        })
    })
}

impl Auditor<'_> {
    fn account(&self) -> AccountId {
        self.program.account
    }

    /// Returns whether the audit must end; its report is then not complete.
    fn is_over(&mut self) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| self.context.now() >= deadline);
        self.is_complete &= !is_over;
        is_over
    }

    /// Records a violation unless `holds`.
    fn check(&mut self, holds: bool, invariant: Invariant, subject: impl ToString, message: impl FnOnce() -> String) {
        if holds {
            return;
        }
        if let Some(count) =
            Invariant::ALL.iter().position(|one| *one == invariant).and_then(|n| self.counts.get_mut(n))
        {
            *count += 1;
        }
        if self.broken.len() < VIOLATIONS_MAX {
            self.broken.push(Violation { invariant, subject: subject.to_string(), message: message() });
        }
    }
}

/// Returns the request for the page after `page`; the first page for `None`, no request after the last.
fn next_page<T>(page: Option<&ListPage<T>>) -> Option<ListPageRequest> {
    let before = match page {
        None => None,
        Some(page) => Some(page.next?),
    };
    Some(ListPageRequest { before, limit: PAGE_ROWS, from: None })
}
