//! Reports of receivers about email from the domain (DMARC aggregate reports, RFC 7489 7.2).

use super::{PATH, TITLE, domain_call, domain_tabs};
use crate::dashboard::prelude::*;

/// Below this number of messages a share says little.
const ENOUGH: u64 = 100;

#[answer]
struct DmarcReport {
    domain: String,
    policy: Option<DmarcPolicy>,
    totals: DmarcTally,
    sources: Vec<DmarcSource>,
    reporters: Vec<DmarcReporter>,
    days: Vec<DmarcDay>,
}

#[derive(Debug, Clone, Deserialize)]
struct DmarcPolicy {
    p: String,
    sp: Option<String>,
    adkim: String,
    aspf: String,
}

#[answer]
struct DmarcTally {
    messages: u64,
    passed: u64,
    failed: u64,
    dkim_aligned: u64,
    spf_aligned: u64,
    quarantined: u64,
    rejected: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct DmarcSource {
    ip: Option<String>,
    host: Option<String>,
    ours: bool,
    #[serde(flatten)]
    tally: DmarcTally,
}

#[derive(Debug, Clone, Deserialize)]
struct DmarcReporter {
    domain: String,
    name: String,
    reports: u64,
    messages: u64,
    last_report_at: String,
}

#[derive(Debug, Clone, Deserialize)]
struct DmarcDay {
    date: String,
    sent: Option<u64>,
    reported: u64,
    passed: u64,
    failed: u64,
}

/// A part in percent: `98.7%`.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    // Rounded down, so that 100% means all.
    let tenths = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

impl DmarcReport {
    /// The advice that fits the figures.
    fn advice(&self) -> (Tone, String) {
        let Some(policy) = &self.policy else {
            return (
                Tone::Warning,
                "No DMARC policy was found. Publish the DMARC record: it makes receivers send these reports, and \
                 large receivers require it."
                    .into(),
            );
        };
        let ours_failed: u64 = self.sources.iter().filter(|source| source.ours).map(|source| source.tally.failed).sum();
        let (messages, failed) = (self.totals.messages, self.totals.failed);
        match policy.p.as_str() {
            _ if ours_failed > 0 => (
                Tone::Warning,
                format!("{} sent by this service failed. Check the domain's records.", counted(ours_failed, "email")),
            ),
            _ if messages < ENOUGH => {
                (Tone::Neutral, "There are too few reports to say more yet. They arrive once a day.".into())
            }
            "none" if failed == 0 => (
                Tone::Good,
                "Everything passes. You can ask receivers to act on failures: change p=none to p=quarantine in the \
                 DMARC record, and to p=reject a few weeks later."
                    .into(),
            ),
            "none" => (
                Tone::Warning,
                "Some email fails. Look at the sources below: the ones that you use must sign with DKIM or be in your \
                 SPF record before you make the policy stricter; the others are sending in your name."
                    .into(),
            ),
            "quarantine" if failed == 0 => {
                (Tone::Good, "Everything passes. You can change p=quarantine to p=reject in the DMARC record.".into())
            }
            _ => (Tone::Good, "Receivers act on email that fails, which protects your name.".into()),
        }
    }

    fn totals(&self) -> impl Renderable {
        let totals = &self.totals;
        let share = |part: u64| format!("{} ({})", grouped(part), percent(part, totals.messages));
        let alignment = |word: &str| if word == "strict" { "strict" } else { "relaxed" }.to_owned();
        Facts::new()
            .row("Messages reported", grouped(totals.messages))
            .row("Passed", share(totals.passed))
            .row("Failed", share(totals.failed))
            .row("By DKIM", share(totals.dkim_aligned))
            .row("By SPF", share(totals.spf_aligned))
            .row("Quarantined", grouped(totals.quarantined))
            .row("Rejected", grouped(totals.rejected))
            .optional(
                "Policy",
                self.policy.as_ref().map(|policy| {
                    let subdomains = policy.sp.as_ref().map(|sp| format!(", subdomains {sp}")).unwrap_or_default();
                    format!(
                        "{}{subdomains} (DKIM {}, SPF {})",
                        policy.p,
                        alignment(&policy.adkim),
                        alignment(&policy.aspf)
                    )
                }),
            )
    }

    fn sources(&self) -> Table {
        Table::of("Sources", &self.sources)
            .column("Source", |source| {
                maud_borrow! {
                    @match &source.ip { Some(ip) => code { (ip) }, None => "All others" }
                    @if let Some(host) = &source.host { div.small.soft { (host) } }
                }
            })
            .column("Sender", |source| {
                if source.ours { Badge::new("This service", Tone::Good) } else { Badge::new("Other", Tone::Neutral) }
            })
            .number("Messages", |source| grouped(source.tally.messages))
            .number("Passed", |source| percent(source.tally.passed, source.tally.messages))
            .number("DKIM", |source| percent(source.tally.dkim_aligned, source.tally.messages))
            .number("SPF", |source| percent(source.tally.spf_aligned, source.tally.messages))
            .number("Stopped", |source| grouped(source.tally.quarantined + source.tally.rejected))
            .into()
    }

    fn reporters(&self) -> Table {
        Table::of("Reporters", &self.reporters)
            .column("Reporter", |one| maud_borrow! { (one.name) div.small.soft { (one.domain) } })
            .number("Reports", |one| grouped(one.reports))
            .number("Messages", |one| grouped(one.messages))
            .column("Last report", |one| time_or_dash(Some(&one.last_report_at)))
            .into()
    }

    fn days(&self) -> Table {
        Table::of("Days", self.days.iter().rev().filter(|day| day.reported > 0 || day.sent.unwrap_or(0) > 0))
            .column("Day", |day| &day.date)
            .number("Sent by this service", |day| day.sent.map_or_else(|| "–".into(), grouped))
            .number("Reported", |day| grouped(day.reported))
            .number("Passed", |day| grouped(day.passed))
            .number("Failed", |day| grouped(day.failed))
            .into()
    }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [Filter::date("from", "From date"), Filter::date("to", "To date")];
    let query = context.query();
    let call = domain_call("get_domain_dmarc", context).filters(query, &["from", "to"]);
    let report: DmarcReport = context.read_field("dmarc", &call).await?;
    let (tone, text) = report.advice();
    let empty = EmptyState {
        title: "No reports in this period",
        text: "Receivers such as Gmail send one report a day once the DMARC record is published and they have \
            received email from the domain.",
        action: None,
    };
    let (sources, reporters, days) = (report.sources(), report.reporters(), report.days());
    let body = maud_borrow! {
        (domain_tabs(context, context.id(), "/dmarc"))
        (FilterBar { context, filters: &filters })
        div data-fragment="list" {
            (Notice { tone, text: &text })
            @if report.totals.messages == 0 { (empty) } @else { div.card { (report.totals()) } }
            @if !sources.is_empty() {
                section { h2 { "Who sends in the domain's name" } (sources) }
            }
            @if !reporters.is_empty() { section { h2 { "Who reports" } (reporters) } }
            @if !days.is_empty() { section { h2 { "Day by day" } (days) } }
        }
    };
    Ok(Page::new(report.domain.clone(), body).below(PATH, TITLE).same_as(call).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(policy: Option<&str>, ours_failed: u64, failed: u64) -> DmarcReport {
        let tally = DmarcTally { messages: 1_000, failed: ours_failed, ..DmarcTally::default() };
        DmarcReport {
            domain: "example.com".into(),
            policy: policy.map(|p| DmarcPolicy {
                p: p.into(),
                sp: None,
                adkim: "relaxed".into(),
                aspf: "strict".into(),
            }),
            totals: DmarcTally { messages: 1_000, passed: 1_000 - failed, failed, ..DmarcTally::default() },
            sources: vec![DmarcSource { ip: None, host: None, ours: true, tally }],
            reporters: Vec::new(),
            days: Vec::new(),
        }
    }

    #[test]
    fn the_advice_fits_the_figures() {
        assert!(report(None, 0, 0).advice().1.contains("Publish the DMARC record"));
        assert!(report(Some("none"), 0, 0).advice().1.contains("p=quarantine"));
        assert!(report(Some("none"), 0, 5).advice().1.contains("sources"));
        assert!(report(Some("reject"), 3, 3).advice().1.contains("sent by this service failed"));
        assert_eq!(
            (percent(999, 1_000), percent(0, 0), percent(9_999, 10_000)),
            ("99.9%".into(), "–".into(), "99.9%".into())
        );
    }
}
