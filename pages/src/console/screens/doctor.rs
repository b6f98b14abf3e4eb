//! The doctor: its checks run in the background, and the findings of the last run with what to do.

use crate::dashboard::form::plain;
use crate::dashboard::kit::progress::Progress;
use crate::dashboard::prelude::*;

pub(super) const LIST: &str = "/console/doctor";

pub const PAGES: &[PageRow] = page_rows! {
    "/doctor" => show, reads ["doctor_findings"], forms {
        "run" => run, calls "doctor";
    };
};

#[answer]
pub(super) struct LastRun {
    pub(super) run: Option<DoctorRun>,
}

#[answer]
pub(super) struct DoctorRun {
    pub(super) started_at: String,
    pub(super) ended_at: Option<String>,
    /// Checks that are not finished.
    pub(super) running: Vec<String>,
    pub(super) error: Option<String>,
    pub(super) findings: Vec<DoctorFinding>,
}

#[answer]
pub(super) struct DoctorFinding {
    pub(super) name: String,
    /// `failed`, `warning`, `ok` or `skipped`.
    pub(super) status: String,
    /// The worst first.
    pub(super) notes: Vec<DoctorNote>,
    pub(super) fix: Option<String>,
}

#[answer]
pub(super) struct DoctorNote {
    pub(super) status: String,
    pub(super) text: String,
}

impl DoctorFinding {
    pub(super) fn needs_attention(&self) -> bool {
        matches!(self.status.as_str(), "failed" | "warning")
    }

    /// The texts with the status of the finding.
    pub(super) fn worst_notes(&self) -> Vec<&str> {
        self.notes.iter().filter(|note| note.status == self.status).map(|note| note.text.as_str()).collect()
    }

    fn severity(&self) -> u8 {
        match self.status.as_str() {
            "failed" => 0,
            "warning" => 1,
            "ok" => 2,
            _ => 3,
        }
    }
}

impl LastRun {
    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        context.read(&Call::new("doctor_findings")).await
    }

    /// The findings of the last run.
    pub(super) fn findings(&self) -> &[DoctorFinding] {
        self.run.as_ref().map_or(&[], |run| &run.findings)
    }
}

pub(super) fn status_badge(status: &str) -> Badge {
    match status {
        "failed" => Badge::new("Failed", Tone::Bad),
        "warning" => Badge::new("Warning", Tone::Warning),
        "ok" => Badge::new("OK", Tone::Good),
        _ => Badge::new("Not checked", Tone::Neutral),
    }
}

/// The advice: sentences, and lines to copy such as DNS records and commands.
pub(super) fn fix_view(fix: &str) -> impl Renderable {
    let is_record = fix.contains(" IN ");
    maud! {
        @if is_record || fix.contains('\n') { (Code::new("what to do", fix).wrapped()) } @else { p.help { (plain(fix)) } }
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let mut last = LastRun::read(context).await?;
    if let Some(run) = &mut last.run {
        run.findings.sort_by_key(DoctorFinding::severity);
    }
    let is_running = last.run.as_ref().is_some_and(|run| run.ended_at.is_none());
    let form = Form::new("run", if last.run.is_some() { "Run the checks again" } else { "Run the checks" }, Vec::new());
    let body = maud_borrow! {
        div data-fragment="list" {
            @match &last.run {
                None => {
                    (EmptyState {
                        title: "The checks have not run since the server started",
                        text: "They check names, addresses, ports, certificates, blocklists, the clock and the disk, \
                            and tell you what to do. They take up to 20 seconds and change nothing.",
                        action: None,
                    })
                }
                Some(run) => { (doctor_run_view(run)) }
            }
        }
    };
    let mut page = Page::new("Checks", body)
        .lead("What postrider doctor finds about this server, its names and its network.")
        .same_as(Call::new("doctor"));
    if is_running {
        page = page.live();
    } else {
        page = page.actions(maud_borrow! { div.tools { (form.within(context)) } });
    }
    Ok(page.into())
}

fn doctor_run_view(run: &DoctorRun) -> impl Renderable {
    let (done, all) = (run.findings.len() as u64, (run.findings.len() + run.running.len()) as u64);
    maud! {
        @if let Some(error) = &run.error { div.notice.bad role="alert" { p { "The checks did not finish: " (error) } } }
        @match &run.ended_at {
            Some(at) => { p.soft { "Checked " (time_or_dash(Some(at))) "." } }
            None => {
                div.card {
                    (Progress { label: "Checking", done, total: Some(all), is_ended: false })
                    p.help { (run.running.join(", ").replace('_', " ")) }
                }
            }
        }
        div.sections {
            section {
                h2.hidden { "Findings" }
                @for finding in &run.findings { (finding_view(finding)) }
            }
        }
    }
}

fn finding_view(finding: &DoctorFinding) -> impl Renderable {
    maud! {
        div.card.finding {
            (status_badge(&finding.status))
            div {
                h3 { (title(&finding.name)) }
                ul.lines {
                    @for note in &finding.notes {
                        li {
                            @for line in note.text.lines() { p { (plain(line)) } }
                        }
                    }
                }
                @if let Some(fix) = &finding.fix { (fix_view(fix)) }
            }
        }
    }
}

/// The name of a check in words.
fn title(name: &str) -> String {
    let title = match name {
        "dns" => "Name servers",
        "dnssec" => "DNSSEC",
        "hostname" => "Host name",
        "ptr" => "Reverse DNS (PTR)",
        "spf" => "SPF",
        "return_path" => "Return path",
        "postmaster" => "Postmaster",
        "dmarc_reports" => "DMARC reports",
        "domain_connect" => "Domain Connect",
        "port_25_out" => "Port 25, outgoing",
        "port_25_in" => "Port 25, incoming",
        "blocklists" => "Blocklists",
        "disk_sync" => "Disk speed",
        "file_limit" => "Open files",
        other => return crate::dashboard::kit::text::sentence_case(other),
    };
    title.to_owned()
}

async fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.perform(&Call::new("doctor")).await?;
    Ok(Outcome::SeeOther(LIST.to_owned()))
}
