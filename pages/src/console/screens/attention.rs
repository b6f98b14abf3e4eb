//! The list of what needs the operator: the problems of the status, and what the doctor found.

use super::doctor::{DoctorFinding, fix_view};
use super::server_status::ServerStatus;
use crate::dashboard::form::{capitalized, plain};
use crate::dashboard::prelude::*;

/// An entry, the most severe first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AttentionEntry {
    pub(super) is_severe: bool,
    /// Sentences, one a line.
    pub(super) text: String,
    /// Sentences and lines to copy.
    pub(super) fix: Option<String>,
    /// Path and label of the page where to act.
    pub(super) page: Option<(&'static str, &'static str)>,
}

/// The entries of a status and of the doctor's last findings.
pub(super) fn entries(status: &ServerStatus, findings: &[DoctorFinding]) -> Vec<AttentionEntry> {
    let problems = status.problems.iter().map(|problem| AttentionEntry {
        is_severe: true,
        text: capitalized(&plain(problem)),
        fix: None,
        page: Some(page_for(problem)),
    });
    let found = findings.iter().filter(|finding| finding.needs_attention()).map(|finding| AttentionEntry {
        is_severe: finding.status == "failed",
        text: finding.worst_notes().join("\n"),
        fix: finding.fix.clone(),
        page: Some(("/console/doctor", "All checks")),
    });
    let mut entries: Vec<_> = problems.chain(found).collect();
    entries.sort_by_key(|entry| !entry.is_severe);
    entries
}

/// The page where a problem of the status is solved or explained.
fn page_for(problem: &str) -> (&'static str, &'static str) {
    if problem.contains("queue is held") {
        ("/console/mail/release", "Release the queue")
    } else if problem.contains("overdue") || problem.contains("the queue") {
        ("/console/queue", "See what limits delivery")
    } else if problem.contains("the store") || problem.contains("nodes") {
        ("/console/server", "Server")
    } else {
        ("/console/doctor", "Check the server")
    }
}

/// The entries as a section of a page.
pub(super) fn attention_section(entries: &[AttentionEntry]) -> impl Renderable {
    let badge = |entry: &AttentionEntry| match entry.is_severe {
        true => Badge::new("Problem", Tone::Bad),
        false => Badge::new("Warning", Tone::Warning),
    };
    maud! {
        section {
            h2 { "Needs attention" }
            @if entries.is_empty() {
                p.card.calm { "Nothing at the moment." }
            } @else {
                ul.attention {
                    @for entry in entries {
                        li {
                            (badge(entry))
                            div {
                                @for line in entry.text.lines() { p { (plain(line)) } }
                                @if let Some(fix) = &entry.fix { (fix_view(fix)) }
                                @if let Some((path, label)) = entry.page { p.help { a href=(path) { (label) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}
