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

mod auditor;
mod events;
mod ledger;
mod partners;
mod payouts;
pub mod report;
pub mod runner;

use std::collections::{HashMap, HashSet};

use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use model::id::AccountId;
use store::affiliate::program;

use self::auditor::Auditor;
use self::events::audited_period;
use self::report::{AuditCounts, AuditReport, AuditStatus, Invariant, invariants};
use crate::api_timestamp::ApiTimestamp;
use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};

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
            period: audited_period(context, account).await?,
            deadline: limit.and_then(|limit| begun_at.checked_add(limit).ok()),
            is_complete: true,
            barred: HashMap::new(),
            existing_payouts: HashSet::new(),
            checked: AuditCounts::default(),
            broken: Vec::new(),
            counts: [0; Invariant::ALL.len()],
        };
        payouts::payouts(&mut auditor).await?;
        partners::partners(&mut auditor).await?;
        ledger::commissions(&mut auditor).await?;
        ledger::referrals(&mut auditor).await?;
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
