//! Audit of the ledger: the invariants with their names and results.

use super::{PATH, set_up_first};
use crate::dashboard::prelude::*;

/// Violations that are shown.
const SHOWN_MAX: usize = 200;

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/audit" => show, reads ["audit_affiliate_program"];
};

#[answer]
pub struct AuditResult {
    /// `running` or `done`.
    pub status: String,
    pub ok: bool,
    pub complete: bool,
    pub audited_at: Option<String>,
    pub checked: AuditedRows,
    pub broken: Vec<BrokenInvariant>,
    /// I1 to I12.
    pub invariants: Vec<AuditedInvariant>,
}

/// The state of the books according to an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditVerdict {
    /// The audit has not ended.
    Running,
    /// An invariant is violated.
    Broken,
    /// No invariant is violated by the rows that were checked, but others were not checked.
    Incomplete,
    /// All rows were checked, and all invariants hold.
    Holds,
}

impl AuditResult {
    pub fn verdict(&self) -> AuditVerdict {
        match (self.status.as_str(), self.ok, self.complete) {
            ("done", true, true) => AuditVerdict::Holds,
            ("done", true, false) => AuditVerdict::Incomplete,
            ("done", false, _) => AuditVerdict::Broken,
            _ => AuditVerdict::Running,
        }
    }
}

/// An invariant of the ledger with its result.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditedInvariant {
    pub invariant: String,
    pub description: String,
    pub violations: usize,
}

/// The number of rows that were checked.
#[answer]
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

/// Audits the ledger, and waits for the result. A large ledger takes seconds.
pub async fn run_audit(context: &Context<'_>) -> Result<AuditResult, Failure> {
    context.read(&Call::new("audit_affiliate_program")).await
}

/// The last result, if it is some minutes old at most; without one, an audit is begun that has not ended.
pub async fn read_audit(context: &Context<'_>) -> Result<AuditResult, Failure> {
    context.read(&Call::new("audit_affiliate_program").query("wait", "false")).await
}

/// The result with all invariants.
pub fn audit_view(audit: &AuditResult) -> Fragment {
    let verdict = audit.verdict();
    if verdict == AuditVerdict::Running {
        return Fragment::new(maud! {
            (Notice { tone: Tone::Active, text: "The audit is running. Reload this page in a moment to see the result." })
            p { a.button href={ (PATH) "/audit" } { "Wait for the result" } }
        });
    }
    let rows = &audit.checked;
    let checked = format!(
        "Checked {}, {}, {} and {}.",
        counted(rows.partners, "partner"),
        counted(rows.referrals, "referral"),
        counted(rows.commissions, "commission"),
        counted(rows.payouts, "payout")
    );
    Fragment::new(maud! {
        @if !audit.complete {
            (Notice { tone: Tone::Warning, text: "The ledger is so large that the audit stopped before checking all rows. It checked the newest ones." })
        }
        @if verdict == AuditVerdict::Holds {
            (Notice { tone: Tone::Good, text: &format!("The ledger is consistent: all {} invariants hold. {checked}", audit.invariants.len()) })
        } @else if verdict == AuditVerdict::Incomplete {
            p { "No violations found so far. " (checked) }
        } @else {
            div.notice.bad role="alert" {
                p { "The ledger is inconsistent. Do not pay anyone until the cause is found. " (checked) }
            }
            (broken_table(&audit.broken))
        }
        div.card { (invariant_list(audit)) }
        p.small.soft { "Audited " (time_or_dash(audit.audited_at.as_deref())) "." }
    })
}

fn invariant_list(result: &AuditResult) -> impl Renderable {
    let badge = |invariant: &AuditedInvariant| match invariant.violations {
        0 if result.complete => Badge::new("Holds", Tone::Good),
        0 => Badge::new("No violations so far", Tone::Neutral),
        1 => Badge::new("Violated once", Tone::Bad),
        count => Badge::new(format!("Violated {count} times"), Tone::Bad),
    };
    maud! {
        ul.invariants {
            @for one in &result.invariants { li { strong { (one.invariant) } span { (one.description) } (badge(one)) } }
        }
    }
}

fn broken_table(invariants: &[BrokenInvariant]) -> impl Renderable {
    let table = Table::of("Violations", invariants.iter().take(SHOWN_MAX))
        .column("Invariant", |broken| &broken.invariant)
        .column("Where", |broken| maud! { code { (broken.subject) } })
        .column("What is wrong", |broken| &broken.message);
    maud! {
        (table)
        @if invariants.len() > SHOWN_MAX { p.small.soft { "The first " (SHOWN_MAX) " of " (invariants.len()) } }
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let Some(audit) = if_found(run_audit(context).await)? else { return Ok(set_up_first("Audit")) };
    let body = maud! {
        (audit_view(&audit))
        p.small.soft { "Events are checked for the last 30 days. Changes made during the audit can look like violations; if so, repeat it." }
        p { a.button href={ (PATH) "/audit" } { "Audit again" } }
    };
    let page = Page::new("Audit", body).below(PATH, "Affiliate program").lead("Cross-checks every row of the ledger.");
    Ok(page.same_as(Call::new("audit_affiliate_program")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    fn invariant(invariant: &str, violations: usize) -> AuditedInvariant {
        AuditedInvariant { invariant: invariant.into(), description: "<b>".into(), violations }
    }

    /// A result of three invariants; the second one is violated twice unless `ok`.
    fn ended(ok: bool, complete: bool) -> AuditResult {
        let broken = BrokenInvariant { invariant: "I2".into(), subject: "pay_<1>".into(), message: "x".into() };
        AuditResult {
            status: "done".into(),
            ok,
            complete,
            broken: if ok { Vec::new() } else { vec![broken.clone(), broken] },
            invariants: vec![invariant("I1", 0), invariant("I2", if ok { 0 } else { 2 }), invariant("I12", 0)],
            checked: AuditedRows { partners: 1, referrals: 2, commissions: 0, payouts: 1 },
            ..AuditResult::default()
        }
    }

    #[test]
    fn broken_invariants_are_shown_first_and_escaped() {
        let html = render(audit_view(&ended(false, true)));
        assert!(html.contains("The ledger is inconsistent") && !html.contains("before checking all rows"));
        assert!(html.contains("Violated 2 times") && html.contains("pay_&lt;1&gt;") && !html.contains("<b>"));
        assert_eq!(html.matches("Holds").count(), 2);
    }

    #[test]
    fn books_add_up_only_if_all_rows_were_checked() {
        let html = render(audit_view(&ended(true, true)));
        assert!(html.contains("Checked 1 partner, 2 referrals, 0 commissions and 1 payout."), "{html}");
        assert!(html.contains("all 3 invariants hold") && !html.contains("before checking all rows"), "{html}");
        assert_eq!(html.matches("Holds").count(), 3);
        for ok in [true, false] {
            let html = render(audit_view(&ended(ok, false)));
            assert!(html.contains("before checking all rows") && !html.contains("ledger is consistent"), "{html}");
            assert!(!html.contains("Holds") && html.contains("No violations so far"), "{html}");
            assert_eq!(html.contains("The ledger is inconsistent"), !ok, "{html}");
        }
    }

    #[test]
    fn a_running_audit_says_nothing_about_the_books() {
        let running = AuditResult { status: "running".into(), ..AuditResult::default() };
        let html = render(audit_view(&running));
        assert!(html.contains("The audit is running") && !html.contains("add up"), "{html}");
        let verdicts = [(true, true), (true, false), (false, true), (false, false)].map(|(ok, complete)| {
            (ended(ok, complete).verdict(), AuditResult { ok, complete, ..AuditResult::default() }.verdict())
        });
        let ended = [AuditVerdict::Holds, AuditVerdict::Incomplete, AuditVerdict::Broken, AuditVerdict::Broken];
        assert_eq!(verdicts, ended.map(|verdict| (verdict, AuditVerdict::Running)));
    }
}
