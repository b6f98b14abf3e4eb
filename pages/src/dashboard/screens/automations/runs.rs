//! Runs of an automation: the list, one run step by step, cancel.

use super::step_form::StepKind;
use super::{automation_page, call, path, read_automation};
use crate::dashboard::csv::{CsvColumn, export_list, text};
use crate::dashboard::prelude::*;

const STATUSES: [&str; 6] = ["queued", "running", "waiting", "completed", "failed", "cancelled"];

/// A run of a person.
#[answer]
pub struct RunDetail {
    pub id: String,
    pub automation_version: u32,
    pub status: String,
    pub mode: String,
    pub event_id: String,
    pub event_name: String,
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub current_step_index: usize,
    pub steps: Vec<RunStepDetail>,
    pub wait: Option<RunWait>,
    pub ended_by: Option<String>,
    pub cancelled_by: Option<String>,
    pub error: Option<String>,
    pub created_at: Option<String>,
    pub completed_at: Option<String>,
}

#[answer]
pub struct RunStepDetail {
    pub index: usize,
    pub key: Option<String>,
    pub r#type: String,
    pub status: String,
    pub output: Value,
    pub error: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
}

/// The time or event that a run waits for.
#[answer]
pub struct RunWait {
    pub event: Option<String>,
    pub until: Option<String>,
}

impl RunDetail {
    /// The person: email address, or user id.
    pub fn person(&self) -> &str {
        self.email.as_deref().or(self.user_id.as_deref()).unwrap_or("nobody")
    }

    fn is_active(&self) -> bool {
        matches!(self.status.as_str(), "queued" | "running" | "waiting")
    }

    /// Where the run is, or how it ended.
    fn place(&self) -> String {
        let step = self.steps.get(self.current_step_index);
        let label = step.map_or("", |step| step_label(&step.r#type));
        let number = self.current_step_index + 1;
        match self.status.as_str() {
            "completed" if self.ended_by.as_deref() == Some("condition") => {
                format!("Ended by the condition in step {number}")
            }
            "completed" => "All steps".into(),
            "cancelled" => match self.cancelled_by.as_deref() {
                Some("event") => "By an event".into(),
                _ => "By hand".into(),
            },
            _ => format!("Step {number}: {label}"),
        }
    }
}

/// The label of a step's kind.
pub fn step_label(word: &str) -> &str {
    StepKind::from_word(word).map_or(word, |kind| kind.label())
}

/// The badge of a run's or step's status.
pub fn run_badge(status: &str) -> Badge {
    match status {
        "cancelled" => Badge::new("Cancelled", Tone::Neutral),
        other => Badge::of(other),
    }
}

fn run_path(automation: &str, run: &str) -> String {
    format!("{}/runs/{}", path(automation), encode(run))
}

/// The list.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let filters = [
        Filter::words("status", "Status", &STATUSES),
        Filter::text("email", "Email address", "grace@example.net"),
        Filter::text("user_id", "User id", "u_42"),
    ];
    let query = context.query();
    let list = filtered(context).query("cursor", query.get("cursor"));
    let found = &context.read_list::<RunDetail>("runs", &list).await?;
    let bar = FilterBar { context, filters: &filters };
    let table = Table::of("Runs", &found.entries)
        .column("Person", |run| link(run_path(&automation.id, &run.id), run.person()))
        .column("Status", |run| run_badge(&run.status))
        .column("Step", |run| run.place())
        .number("Version", |run| run.automation_version)
        .column("Began", |run| time_or_dash(run.created_at.as_deref()))
        .column("Ended", |run| time_or_dash(run.completed_at.as_deref()));
    let is_filtered = bar.is_active();
    let test = format!("{}/test", path(&automation.id));
    let empty = if is_filtered {
        EmptyState { title: "No matching runs", text: "No runs match these filters.", action: None }
    } else {
        EmptyState {
            title: "No runs yet",
            text: "While the automation is active, each event that triggers it starts a run for one person, listed \
                here with every step and its time. Try it with a test event first.",
            action: context.allows("send_event").then_some((test.as_str(), "Test it")),
        }
    };
    let body = maud! {
        @if is_filtered || !table.is_empty() { (bar) }
        (found.fragment(context, &table, empty.clone()))
    };
    let export =
        format!("{}/runs/export?{}", path(&automation.id), query.with("cursor", "").with("done", "").to_query());
    let page = automation_page(context, automation, "Runs", body);
    let page = if found.entries.is_empty() {
        page
    } else {
        page.actions(maud! { a.button href=(export) { "Export as CSV" } })
    };
    Ok(page.same_as(list).live().into())
}

/// The call of the list with the filters of the address.
fn filtered(context: &Context<'_>) -> Call {
    let filters = ["status", "email", "user_id"].into_iter();
    filters.fold(call("list_automation_runs", context.id()), |list, name| list.query(name, context.query().get(name)))
}

/// The filtered list as CSV.
pub async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let columns: &[CsvColumn<RunDetail>] = &[
        ("id", |run| run.id.clone()),
        ("status", |run| run.status.clone()),
        ("user_id", |run| text(&run.user_id)),
        ("email", |run| text(&run.email)),
        ("event", |run| run.event_name.clone()),
        ("event_id", |run| run.event_id.clone()),
        ("version", |run| run.automation_version.to_string()),
        ("step", |run| (run.current_step_index + 1).to_string()),
        ("error", |run| text(&run.error)),
        ("began", |run| text(&run.created_at)),
        ("ended", |run| text(&run.completed_at)),
    ];
    export_list(context, "runs", "runs", filtered(context), columns).await
}

fn run_call(operation: &'static str, context: &Context<'_>) -> Call {
    call(operation, context.id()).parameter("run", context.parameter("run"))
}

pub async fn show_run(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let get = run_call("get_automation_run", context);
    let run = &context.read_field::<RunDetail>("run", &get).await?;
    let event = format!("/dashboard/events/{}", encode(&run.event_id));
    let facts = Facts::new()
        .row("Status", run_badge(&run.status))
        .row("Where", run.place())
        .row("Event", maud! { a href=(event) { (run.event_name) } })
        .row("User id", run.user_id.as_deref().unwrap_or("–"))
        .row("Email", run.email.as_deref().unwrap_or("–"))
        .row("Version", run.automation_version)
        .row("Began", time_or_dash(run.created_at.as_deref()))
        .row("Ended", time_or_dash(run.completed_at.as_deref()));
    let cancel = Form::new("cancel", "Cancel the run", Vec::new()).danger();
    let may_cancel = run.is_active() && context.allows("cancel_automation_run");
    let body = maud! {
        @if let Some(error) = &run.error { div.notice.bad { p { (error) } } }
        @if let Some(wait) = &run.wait {
            div.notice {
                p {
                    @if let Some(event) = &wait.event { "Waiting for " code { (event) } ", no later than \
                        " } @else { "Waiting until " }
                    (time_or_dash(wait.until.as_deref())) "."
                }
            }
        }
        div.card { (facts) }
        section { h2 { "Steps" } (run_steps(&run.steps)) }
        @if may_cancel {
            section.card {
                h2 { "Cancel" }
                p.help { "No further steps are carried out. Sent emails are not affected." }
                (cancel.within(context))
            }
        }
    };
    Ok(automation_page(context, automation, run.person(), body)
        .below(format!("{}/runs", path(&automation.id)), "Runs")
        .same_as(get)
        .live()
        .into())
}

/// The steps of a run with their times and results.
pub fn run_steps(steps: &[RunStepDetail]) -> impl Renderable {
    Table::of("Steps of this run", steps)
        .column("Step", |step| maud! { (step.index + 1) ". " (step_label(&step.r#type)) })
        .column("Status", |step| run_badge(&step.status))
        .column("Result", step_result)
        .column("Began", |step| time_or_dash(step.started_at.as_deref()))
        .column("Ended", |step| time_or_dash(step.completed_at.as_deref()))
}

/// The result of a step in words.
pub fn step_result(step: &RunStepDetail) -> impl Renderable {
    let output = &step.output;
    let email = output["email_id"].as_str().map(|id| format!("/dashboard/emails/{}", encode(id)));
    let text = move |name: &str| output[name].as_str();
    maud! {
        @if let Some(error) = &step.error {
            span.error { (error) }
        } @else if let Some(email) = &email {
            a href=(email) { (text("subject").unwrap_or("Email")) }
            @if output["suppressed"] == true { " (suppressed)" }
        } @else if let Some(subject) = text("subject") {
            "“" (subject) "”"
        } @else if let Some(reason) = text("withheld") {
            "Not sent: " (reason)
        } @else if let Some(holds) = output["result"].as_bool() {
            @if holds { "True" } @else { "False" }
        } @else if let Some(received) = output["received"].as_bool() {
            @if received { "The event occurred" } @else { "The event did not occur" }
        } @else if let Some(until) = text("until") {
            "Ends " (time_or_dash(Some(until)))
        } @else if let Some(body) = text("body") {
            (body)
        } @else {
            span.dash { "–" }
        }
    }
}

/// Cancels a run.
pub async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&run_call("cancel_automation_run", context), &context.request.path, "cancelled").await
}
