//! Commands that take long: started by other pages, with their progress and their results.

use crate::console::PATH;
use crate::console::command::command_line;
use crate::dashboard::prelude::*;

const LIST: &str = "/console/commands";

pub const PAGES: &[PageRow] = page_rows! {
    "/commands" => show_list, reads ["command_runs"];
    "/commands/{number}" => show, reads ["command_run"];
};

#[answer]
struct CommandRun {
    number: u64,
    request: Value,
    started_at: Option<String>,
    progress: Option<String>,
    ended_at: Option<String>,
    result: Option<Value>,
    error: Option<String>,
}

impl CommandRun {
    /// The call that was made.
    fn call(&self) -> Option<Call> {
        let operation = match self.request["ask"].as_str()? {
            "queue_many" => "queue_many",
            "store_check" => "store_check",
            _ => return None,
        };
        Some(Call::new(operation).json(self.request.clone()))
    }

    fn line(&self) -> String {
        self.call().as_ref().and_then(command_line).unwrap_or_else(|| "A command".to_owned())
    }

    fn badge(&self) -> Badge {
        match (&self.ended_at, &self.error) {
            (None, _) => Badge::new("Running", Tone::Active),
            (Some(_), None) => Badge::new("Done", Tone::Good),
            (Some(_), Some(_)) => Badge::new("Failed", Tone::Bad),
        }
    }

    /// The result in a sentence.
    fn outcome(&self) -> String {
        let Some(result) = &self.result else { return self.progress.clone().unwrap_or_default() };
        let number = |name: &str| result[name].as_u64().map(grouped);
        if let Some(sound) = result["sound"].as_bool() {
            let verdict = if sound { "The store is intact" } else { "The store is damaged" };
            let rows = number("rows").unwrap_or_default();
            return format!("{verdict}: {rows} rows and {} messages were read.", number("bodies").unwrap_or_default());
        }
        let changed = match (result["recipients"].as_u64().unwrap_or(0), result["has_more"] == true) {
            (0, true) => "The changed recipients were not counted: the queue is too long.".to_owned(),
            (count, true) => format!("At least {} recipients were changed.", grouped(count)),
            (1, false) => "1 recipient was changed.".to_owned(),
            (count, false) => format!("{} recipients were changed.", grouped(count)),
        };
        match result["being_tried"].as_u64() {
            Some(busy @ 1..) => {
                format!("{changed} Still being attempted, to be changed afterwards: {}.", grouped(busy))
            }
            _ => changed,
        }
    }

    fn problems(&self) -> Vec<&str> {
        let problems = self.result.as_ref().and_then(|result| result["problems"].as_array());
        problems.into_iter().flatten().filter_map(Value::as_str).take(200).collect()
    }
}

/// Starts a command and goes to its page.
pub(super) async fn start(context: &Context<'_>, call: &Call) -> Result<Outcome, Failure> {
    let run: CommandRun = context.read(call).await?;
    Ok(Outcome::SeeOther(format!("{LIST}/{}", run.number)))
}

async fn show_list(context: &Context<'_>) -> Result<View, Failure> {
    let runs: Vec<CommandRun> = context.read_field("runs", &Call::new("command_runs")).await?;
    let table = Table::of("Commands", &runs)
        .column("Command", |run| link(format!("{LIST}/{}", run.number), run.line()))
        .column("State", |run| run.badge())
        .column("Result", |run| run.error.clone().unwrap_or_else(|| run.outcome()))
        .column("Started", |run| time_or_dash(run.started_at.as_deref()));
    let body = maud_borrow! {
        @if table.is_empty() {
            (EmptyState { title: "No commands yet", text: "Commands on many emails and checks of the store run in the \
                background. The last 20 are listed here until the server \
                restarts.", action: Some(("/console/mail", "Queued mail")) })
        } @else {
            (table)
        }
    };
    let is_running = runs.iter().any(|run| run.ended_at.is_none());
    let page = Page::new("Commands", body).lead("Commands started in this console since the server started.");
    Ok(if is_running { page.live() } else { page }.into())
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let number: u64 = context.parameter("number").parse().map_err(|_| Failure::not_found())?;
    let run: CommandRun = context.read(&Call::new("command_run").json(json!({"number": number}))).await?;
    let line = run.line();
    let (outcome, problems) = (run.outcome(), run.problems());
    let facts = Facts::new()
        .row("State", run.badge())
        .row("Started", time_or_dash(run.started_at.as_deref()))
        .optional("Ended", run.ended_at.as_deref().map(|at| time_or_dash(Some(at))));
    let body = maud_borrow! {
        div.card {
            (facts)
            @if !outcome.is_empty() { p { (outcome) } }
            @if run.ended_at.is_none() {
                p.help { "It continues when you leave this page. " a href=(context.request.path) { "Reload" } }
            }
            @if let Some(error) = &run.error { div.notice.bad role="alert" { p { (error) } } }
            @if !problems.is_empty() { ul.plain { @for problem in &problems { li { (problem) } } } }
            (Code::new("The command", &line).wrapped())
            p { a.button href=(format!("{PATH}/queue")) { "Go to the queue" } }
        }
    };
    let page = Page::new(format!("Command {number}"), body).below(LIST, "Commands");
    Ok(if run.ended_at.is_none() { page.live() } else { page }.into())
}
