//! State of a running audit: what is checked, and the violations found.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use model::affiliate::program::AffiliateProgram;
use model::id::{AccountId, PayoutId, ReferralId};
use store::affiliate::listing::{ListPage, ListPageRequest};

use super::report::{AuditCounts, Invariant, VIOLATIONS_MAX, Violation};
use crate::context::Context;

pub(super) const PAGE_ROWS: usize = 200;
/// Maximum number of referrals and payouts that are remembered, because many lines name the same ones.
pub(super) const REMEMBERED_MAX: usize = 10_000;

/// Period in which every change must have its event.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditedPeriod {
    pub(super) from: Timestamp,
    /// Start of the first silent back-fill.
    pub(super) until: Option<Timestamp>,
}

impl AuditedPeriod {
    pub(super) fn contains(self, at: Timestamp) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}
/// State of a running audit.
pub(super) struct Auditor<'l> {
    pub(super) context: &'l Context,
    pub(super) program: AffiliateProgram,
    /// The period for which every change must have its event.
    pub(super) period: AuditedPeriod,
    /// Time at which the audit ends early.
    pub(super) deadline: Option<Timestamp>,
    pub(super) is_complete: bool,
    /// Whether these referrals may not earn.
    pub(super) barred: HashMap<ReferralId, bool>,
    pub(super) existing_payouts: HashSet<PayoutId>,
    pub(super) checked: AuditCounts,
    pub(super) broken: Vec<Violation>,
    /// Number of violations in the order of [`Invariant::ALL`], also of those that `broken` has no room for.
    pub(super) counts: [usize; Invariant::ALL.len()],
}

impl Auditor<'_> {
    pub(super) fn account(&self) -> AccountId {
        self.program.account
    }

    /// Returns whether the audit must end; its report is then not complete.
    pub(super) fn is_over(&mut self) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| self.context.now() >= deadline);
        self.is_complete &= !is_over;
        is_over
    }

    /// Records a violation unless `holds`.
    pub(super) fn check(
        &mut self,
        holds: bool,
        invariant: Invariant,
        subject: impl ToString,
        message: impl FnOnce() -> String,
    ) {
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
pub(super) fn next_page<T>(page: Option<&ListPage<T>>) -> Option<ListPageRequest> {
    let before = match page {
        None => None,
        Some(page) => Some(page.next?),
    };
    Some(ListPageRequest { before, limit: PAGE_ROWS, from: None })
}
