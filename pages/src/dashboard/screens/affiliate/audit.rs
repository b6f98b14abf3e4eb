//! Audit of the ledger: the invariants with their names and results.

use hypertext::{Buffer, prelude::*};
use serde::Deserialize;

use super::{PATH, set_up_first};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::kit::badge::{Badge, Tone};
use crate::dashboard::kit::notice::Notice;
use crate::dashboard::kit::table::{Row, Table};
use crate::dashboard::kit::text::grouped;
use crate::dashboard::page::Page;
use crate::dashboard::table::{PageAccess, PageRow, View};

/// Violations that are shown.
const SHOWN_MAX: usize = 200;

pub const PAGES: &[PageRow] = &[PageRow {
    path: "/affiliate/audit",
    access: PageAccess::SignedIn,
    reads: &["audit_affiliate_program"],
    show: |context| Box::pin(show(context)),
    forms: &[],
}];

/// The invariants of the ledger. The last one holds because the API has no operation that could break it.
const INVARIANTS: &[(&str, &str)] = &[
    ("I1", "One line per invoice and level, and one bounty per referral"),
    ("I2", "Every payout equals its lines and deductions, and every run its payouts"),
    ("I3", "A line is paid if its payout is paid, and in one payout at most"),
    ("I4", "Stored counts, revenue and balances equal what the rows add up to"),
    ("I5", "A referral that may not earn has no open line"),
    ("I6", "Amounts are positive, and times are in order"),
    ("I7", "A person is claimed by one referral only"),
    ("I8", "One default campaign, one primary link per partner, and no link token twice"),
    ("I9", "Everything that the processor reported is in the ledger"),
    ("I10", "Every change was reported by exactly one event"),
    ("I11", "No partner is its own recruiter, directly or through others"),
    ("I12", "No API key can change a payout run: there is no such operation"),
];

/// The result of an audit.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct AuditResult {
    pub ok: bool,
    #[serde(default)]
    pub checked: AuditedRows,
    #[serde(default)]
    pub broken: Vec<BrokenInvariant>,
}

/// The number of rows that were checked.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuditedRows {
    pub partners: u64,
    pub referrals: u64,
    pub commissions: u64,
    pub payouts: u64,
}

/// A violation.
#[derive(Debug, Clone, Deserialize)]
pub struct BrokenInvariant {
    pub invariant: String,
    pub subject: String,
    pub message: String,
}

/// Audits the ledger.
///
/// # Errors
/// There is no program, or the operation failed.
pub async fn run_audit(context: &Context<'_>) -> Result<AuditResult, Failure> {
    context.read(&Call::new("audit_affiliate_program")).await
}

impl AuditResult {
    fn count(&self, invariant: &str) -> usize {
        self.broken.iter().filter(|broken| broken.invariant == invariant).count()
    }
}

/// The result with all invariants.
pub struct AuditView<'a> {
    pub audit: &'a AuditResult,
}

impl Renderable for AuditView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let audit = self.audit;
        let rows = &audit.checked;
        let checked = format!(
            "Checked {} partners, {} referrals, {} commissions and {} payouts.",
            grouped(rows.partners),
            grouped(rows.referrals),
            grouped(rows.commissions),
            grouped(rows.payouts)
        );
        maud! {
            @if audit.ok {
                (Notice { tone: Tone::Good, text: &format!("The books add up: all 12 invariants hold. {checked}") })
            } @else {
                div.notice.bad role="alert" {
                    p { "The books do not add up. Do not pay before the cause is found. " (checked) }
                }
                (BrokenTable(&audit.broken))
            }
            div.card { (InvariantList(audit)) }
        }
        .render_to(buffer);
    }
}

struct InvariantList<'a>(&'a AuditResult);

impl Renderable for InvariantList<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let badge = |id: &str| match self.0.count(id) {
            0 => Badge::new("Holds", Tone::Good),
            1 => Badge::new("Broken once", Tone::Bad),
            count => Badge::new(format!("Broken {count} times"), Tone::Bad),
        };
        maud! {
            ul.invariants { @for (id, name) in INVARIANTS { li { strong { (*id) } span { (*name) } (badge(id)) } } }
        }
        .render_to(buffer);
    }
}

struct BrokenTable<'a>(&'a [BrokenInvariant]);

impl Renderable for BrokenTable<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let mut table = Table::new("What does not add up", &["Invariant", "Where", "What is wrong"]);
        for broken in self.0.iter().take(SHOWN_MAX) {
            table.push(
                Row::new().cell(&broken.invariant).cell(maud! { code { (broken.subject) } }).cell(&broken.message),
            );
        }
        maud! {
            (table)
            @if self.0.len() > SHOWN_MAX { p.small.soft { "The first " (SHOWN_MAX) " of " (self.0.len()) } }
        }
        .render_to(buffer);
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let audit = match run_audit(context).await {
        Ok(audit) => audit,
        Err(failure) => return set_up_first("Audit", failure),
    };
    let body = maud! {
        (AuditView { audit: &audit })
        p.small.soft { "Events are checked for the last 30 days. Changes made during the audit can look like violations: repeat it then." }
        p { a.button href={ (PATH) "/audit" } { "Audit again" } }
    };
    let page = Page::new("Audit", body)
        .below(PATH, "Affiliate program")
        .lead("Checks every row of the ledger against the others.");
    Ok(page.same_as(Call::new("audit_affiliate_program")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn broken_invariants_are_shown_first_and_escaped() {
        let broken = BrokenInvariant { invariant: "I2".into(), subject: "pay_<1>".into(), message: "x".into() };
        let audit = AuditResult { ok: false, broken: vec![broken.clone(), broken], ..AuditResult::default() };
        let html = render(AuditView { audit: &audit });
        assert!(html.contains("Broken 2 times") && html.contains("pay_&lt;1&gt;"));
        assert_eq!(html.matches("Holds").count(), 11);
        let html = render(AuditView { audit: &AuditResult { ok: true, ..AuditResult::default() } });
        assert!(html.contains("all 12 invariants hold"));
        assert_eq!(html.matches("Holds").count(), 12);
    }
}
