//! Replay: past events against steps, to see who would have got what.
//!
//! ```text
//! saved or entered steps ─► replay_automation ─► what each past event would do, beside the run that was
//! ```
//!
//! The API runs the steps and stores nothing.

use std::collections::BTreeMap;

use super::editor::entered_definition;
use super::runs::{run_badge, step_label};
use super::{AutomationDetail, automation_page, call, path, read_automation};
use crate::dashboard::prelude::*;

/// Events of one replay.
const EVENTS: [usize; 4] = [25, 100, 250, 1_000];
const EVENTS_DEFAULT: usize = 100;
/// Rows that the result shows.
const ROWS_MAX: usize = 200;

#[answer]
struct Replay {
    totals: ReplayTotals,
    events: Vec<ReplayedEvent>,
    complete: bool,
}

#[answer]
struct ReplayTotals {
    events: usize,
    reached: usize,
    messages: usize,
    suppressed: usize,
    failed: usize,
    past_runs: usize,
    past_messages: usize,
}

/// A past event with the result of the steps.
#[answer]
struct ReplayedEvent {
    created_at: Option<String>,
    user_id: Option<String>,
    email: Option<String>,
    effect: String,
    messages: Vec<ReplayedMessage>,
    status: Option<String>,
    ended_by: Option<String>,
    last_step_index: Option<usize>,
    error: Option<String>,
    past_run: Option<PastRun>,
}

/// A message that would be sent, unless it is suppressed.
#[answer]
struct ReplayedMessage {
    step_index: usize,
    text: String,
    suppressed: bool,
}

/// The run that the event started then.
#[answer]
struct PastRun {
    id: String,
    automation_version: u32,
    status: String,
    messages_sent: usize,
}

fn replay_form() -> Form<'static> {
    let choices = EVENTS.map(|number| (number.to_string(), format!("The latest {number}")));
    let number = Field::new("events", "Past events", Control::Select(choices.into())).value(EVENTS_DEFAULT.to_string());
    Form::new("saved", "Replay", vec![number])
}

/// The form.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let form = replay_form();
    let body = maud! {
        p.help {
            "Past " code { (automation.event()) } " events are replayed through the saved steps as a test: you see \
             who would have gotten "
            "which email, and what happened then. Nothing is sent. To try a change before you save it, use “Replay \
             past "
            "events” below the steps."
        }
        div.card { (form.within(context)) }
    };
    let example = call("replay_automation", &automation.id).json(json!({"limit": EVENTS_DEFAULT}));
    Ok(automation_page(context, automation, "Replay", body).same_as(example).into())
}

/// Replays on the saved steps.
pub async fn replay_saved(context: &Context<'_>) -> Result<Outcome, Failure> {
    let automation = read_automation(context, &call("get_automation", context.id())).await?;
    let definition = json!({"trigger": automation.trigger, "steps": automation.steps});
    replay(context, &automation, &definition, true).await
}

/// Replays on the steps of the editor's form.
pub async fn replay_entered(context: &Context<'_>) -> Result<Outcome, Failure> {
    let automation = read_automation(context, &call("get_automation", context.id())).await?;
    replay(context, &automation, &entered_definition(context)?, false).await
}

async fn replay(
    context: &Context<'_>,
    automation: &AutomationDetail,
    definition: &Value,
    is_saved: bool,
) -> Result<Outcome, Failure> {
    let entered = context.form().get("events").parse().unwrap_or(EVENTS_DEFAULT);
    let limit = if EVENTS.contains(&entered) { entered } else { EVENTS_DEFAULT };
    let mut body = json!({"limit": limit});
    if !is_saved {
        (body["trigger"], body["steps"]) = (definition["trigger"].clone(), definition["steps"].clone());
    }
    let call = call("replay_automation", &automation.id).json(body);
    let replay = context.read_field::<Replay>("replay", &call).await?;
    let result = ReplayResult { automation, definition, replay: &replay, limit, is_saved };
    let page = automation_page(context, automation, "Replay result", result.view())
        .below(format!("{}/replay", path(&automation.id)), "Replay")
        .same_as(call);
    Ok(Outcome::once(page))
}

impl ReplayedEvent {
    /// The person: email address, or user id.
    fn person(&self) -> &str {
        self.email.as_deref().or(self.user_id.as_deref()).unwrap_or("nobody")
    }

    fn is_failed(&self) -> bool {
        self.status.as_deref() == Some("failed")
    }

    /// Where the run ends, if not at the last step.
    fn end(&self, steps: &Value) -> Option<String> {
        let index = self.last_step_index?;
        match (self.is_failed(), self.ended_by.as_deref()) {
            (true, _) => {
                let kind = step_label(steps[index]["type"].as_str().unwrap_or_default()).to_lowercase();
                let error = self.error.as_deref().unwrap_or_default();
                Some(format!("Step {} ({kind}) fails: {error}", index + 1))
            }
            (false, Some("condition")) => Some(format!("Ends at step {}", index + 1)),
            _ => None,
        }
    }
}

/// The effect of the steps on an event.
fn effect_view(event: &ReplayedEvent, end: Option<String>) -> impl Renderable {
    maud! {
        @match event.effect.as_str() {
            "filtered" => { span.soft { "No run: the filter excludes the event" } }
            "repeated" => { span.soft { "No run: one per person" } }
            _ => {
                @if event.messages.is_empty() && end.is_none() { span.soft { "No message" } }
                @if !event.messages.is_empty() {
                    ul.bare {
                        @for message in &event.messages {
                            li {
                                (message.step_index + 1) ". “" (message.text) "”"
                                @if message.suppressed { span.soft { " – not sent: suppressed" } }
                            }
                        }
                    }
                }
                @if let Some(end) = &end { p.soft[!event.is_failed()].error[event.is_failed()] { (end) } }
            }
        }
    }
}

struct ReplayResult<'r> {
    automation: &'r AutomationDetail,
    definition: &'r Value,
    replay: &'r Replay,
    /// The number of events that was asked for.
    limit: usize,
    is_saved: bool,
}

impl ReplayResult<'_> {
    /// The number of messages by step, with one of their texts.
    fn by_step(&self) -> Table {
        let mut steps = BTreeMap::<usize, (usize, &str)>::new();
        let messages = self.replay.events.iter().flat_map(|event| &event.messages);
        for message in messages.filter(|message| !message.suppressed) {
            steps.entry(message.step_index).or_insert((0, &message.text)).0 += 1;
        }
        Table::of("Messages by step", steps)
            .column("Step", |(step, _)| maud! { "Step " (step + 1) })
            .number("Messages", |(_, (number, _))| number)
            .column("For example", |(_, (_, text))| maud! { "“" (text) "”" })
            .into()
    }

    fn table(&self) -> Table {
        let mut table = Table::new("Replayed events", &["Event", "Person", "With these steps", "What happened then"]);
        let steps = &self.definition["steps"];
        for event in self.replay.events.iter().take(ROWS_MAX) {
            let effect = effect_view(event, event.end(steps));
            let base = path(&self.automation.id);
            let cell = maud! {
                @match &event.past_run {
                    None => { span.soft { "No run" } }
                    Some(run) => {
                        a href={ (base) "/runs/" (encode(&run.id)) } { "Version " (run.automation_version) } " "
                        (run_badge(&run.status)) " "
                        span.soft { @match run.messages_sent { 1 => { "1 message" } number => { (number) " messages" } } }
                    }
                }
            };
            table.push(
                Row::new().cell(time_or_dash(event.created_at.as_deref())).cell(event.person()).cell(effect).cell(cell),
            );
        }
        table
    }

    fn view(&self) -> impl Renderable {
        let (replay, totals) = (self.replay, &self.replay.totals);
        let event = self.definition["trigger"]["event"].as_str().unwrap_or_default();
        let base = path(&self.automation.id);
        let by_step = self.by_step();
        maud! {
            @if totals.events == 0 {
                div.empty {
                    p.empty-title { "No past events" }
                    p { "There were no events with the name " code { (event) } ". Test the steps with your own event \
                        instead." }
                    p { a.button href={ (base) "/test" } { "Test" } }
                }
            } @else {
                p {
                    (counted(totals.events as u64, "past event")) " went through "
                    @if self.is_saved { "the saved steps" } @else { "the steps as you entered them; they are not \
                        saved" }
                    ": for " strong { (totals.reached) } " of them would have been sent a message, "
                    strong { (totals.messages) } " in all. "
                    @if totals.suppressed > 0 {
                        strong { (totals.suppressed) } " more would not be sent, because the recipients are \
                            suppressed or have opted out. "
                    }
                    "Failed runs: " strong { (totals.failed) } "."
                    @if !replay.complete { " There was no time for more of the " (self.limit) " events." }
                }
                p { "Then, " (totals.past_runs) " of these events started a run. Messages sent: " (totals.past_messages) "." }
                p.help {
                    "Waits count as timed out, and delays are skipped. Stored events contain no secrets such as \
                     codes, and "
                    "cancellations by other events are not taken into account."
                }
                @if !self.is_saved {
                    p.help { "Go back in your browser to continue editing." }
                }
                @if !by_step.is_empty() { section { h2 { "Messages" } (by_step) } }
                section { h2 { "Events" } (self.table()) }
                @if replay.events.len() > ROWS_MAX { p.soft { "The table shows the latest " (ROWS_MAX) "; the sums are of all." } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_explained() {
        let steps = json!([{"type": "send_email"}, {"type": "condition"}]);
        let event = |status: &str, ended_by: Option<&str>| ReplayedEvent {
            status: Some(status.into()),
            ended_by: ended_by.map(str::to_owned),
            last_step_index: Some(1),
            error: Some("no such field".into()),
            ..ReplayedEvent::default()
        };
        assert_eq!(event("completed", Some("condition")).end(&steps).as_deref(), Some("Ends at step 2"));
        assert_eq!(event("completed", Some("all_steps")).end(&steps), None);
        assert_eq!(
            event("failed", None).end(&steps).as_deref(),
            Some("Step 2 (check a condition) fails: no such field")
        );
    }
}
