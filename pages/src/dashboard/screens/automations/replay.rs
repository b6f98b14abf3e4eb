//! Replay: past events against steps, to see who would have got what.
//!
//! ```text
//! past events of the trigger ─► dry run of each ─► emails that would be sent, beside the run that was
//! ```
//!
//! Steps that are not saved, and a trigger with a filter, are stored as a draft automation for the time of the replay: a
//! draft starts no runs. The filter becomes its first step, because a dry run does not check the trigger.

use std::collections::{BTreeMap, BTreeSet};

use hypertext::{Buffer, prelude::*};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::editor::entered_definition;
use super::runs::{RunDetail, run_badge, step_label};
use super::test_run::{PastEvent, dry_run};
use super::{AutomationDetail, OneAutomation, automation_page, call, path, read_automation};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field, Form};
use crate::dashboard::kit::table::{Row, Table};
use crate::dashboard::kit::time::time_or_dash;
use crate::dashboard::screens::encode;
use crate::dashboard::table::{Outcome, View};

/// The name of the draft that exists during a replay.
const DRAFT_NAME: &str = "Replay (deleted when it ends)";
/// Events of one replay.
const EVENTS: [usize; 4] = [25, 100, 250, 1_000];
const EVENTS_DEFAULT: usize = 100;
/// The longest time that a replay takes.
const TIME_MAX: SignedDuration = SignedDuration::from_secs(8);
const PAGE: usize = 100;
/// Rows that the result shows.
const ROWS_MAX: usize = 200;

#[derive(Debug, Deserialize)]
struct EventPage {
    events: Vec<PastEvent>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct PastRunPage {
    runs: Vec<RunDetail>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct DraftPage {
    automations: Vec<AutomationDetail>,
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
            "Past " code { (automation.event()) } " events go through the saved steps as a test: you see who would have got "
            "which email, and what happened then. Nothing is sent. To try a change before you save it, use “Replay past "
            "events” below the steps."
        }
        div.card { (form.within(context)) }
    };
    let list = Call::new("list_events").query("name", automation.event());
    Ok(automation_page(context, automation, "Replay", body).same_as(list).into())
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
    let number = if EVENTS.contains(&entered) { entered } else { EVENTS_DEFAULT };
    let event = definition["trigger"]["event"].as_str().unwrap_or_default();
    let events = past_events(context, event, number).await?;
    let runs = past_runs(context, &automation.id, number).await?;
    let has_filter = definition["trigger"]["filter"].is_object();
    let replayed = if is_saved && !has_filter {
        replay_events(context, &automation.id, definition, &events).await?
    } else {
        let draft = create_draft(context, definition).await?;
        let replayed = replay_events(context, &draft, definition, &events).await;
        // A draft that stays is deleted by the next replay.
        drop(context.perform(&call("delete_automation", &draft)).await);
        replayed?
    };
    let result = ReplayResult { automation, definition, events: &events, runs: &runs, replayed: &replayed, is_saved };
    let page = automation_page(context, automation, "Replay result", result)
        .below(format!("{}/replay", path(&automation.id)), "Replay")
        .same_as(Call::new("list_events").query("name", event));
    Ok(Outcome::Once(Box::new(page)))
}

/// Stores the steps as a draft, with the trigger's filter as the first one, and returns its id.
async fn create_draft(context: &Context<'_>, definition: &Value) -> Result<String, Failure> {
    let drafts = Call::new("list_automations").query("status", "draft").query("limit", PAGE.to_string());
    for draft in context.read::<DraftPage>(&drafts).await?.automations {
        if draft.name == DRAFT_NAME {
            drop(context.perform(&call("delete_automation", &draft.id)).await);
        }
    }
    let body = json!({
        "name": DRAFT_NAME,
        "trigger": {"event": definition["trigger"]["event"]},
        "steps": with_filter_step(definition),
    });
    let created: OneAutomation = context.read(&Call::new("create_automation").json(body)).await?;
    Ok(created.automation.id)
}

/// The steps, with the trigger's filter as the first one. Positions that conditions go to move by one.
fn with_filter_step(definition: &Value) -> Vec<Value> {
    let steps = definition["steps"].as_array().cloned().unwrap_or_default();
    let Some(filter) = definition["trigger"]["filter"].as_object() else { return steps };
    let mut condition: Map<String, Value> = filter.clone();
    condition.insert("type".into(), "condition".into());
    condition.insert("on_false".into(), "stop".into());
    let moved = steps.into_iter().map(|mut step| {
        if let Some(target) = step["target"].as_u64() {
            step["target"] = json!(target + 1);
        }
        step
    });
    std::iter::once(Value::Object(condition)).chain(moved).collect()
}

/// The latest events of a name, newest first.
async fn past_events(context: &Context<'_>, name: &str, number: usize) -> Result<Vec<PastEvent>, Failure> {
    let (mut events, mut cursor) = (Vec::new(), String::new());
    while events.len() < number {
        let limit = PAGE.min(number - events.len()).to_string();
        let list = Call::new("list_events").query("name", name).query("limit", limit).query("cursor", cursor);
        let found: EventPage = context.read(&list).await?;
        events.extend(found.events);
        match found.next_cursor {
            Some(next) => cursor = next,
            None => break,
        }
    }
    Ok(events)
}

/// The latest runs by the event that started them.
async fn past_runs(
    context: &Context<'_>,
    automation: &str,
    number: usize,
) -> Result<BTreeMap<String, RunDetail>, Failure> {
    let (mut runs, mut cursor) = (BTreeMap::new(), String::new());
    for _ in 0..number.div_ceil(PAGE) {
        let list = call("list_automation_runs", automation).query("limit", PAGE.to_string()).query("cursor", cursor);
        let found: PastRunPage = context.read(&list).await?;
        runs.extend(found.runs.into_iter().map(|run| (run.event_id.clone(), run)));
        match found.next_cursor {
            Some(next) => cursor = next,
            None => break,
        }
    }
    Ok(runs)
}

/// The result of the steps for an event.
#[derive(Debug, Clone, PartialEq)]
enum ReplayedEvent {
    /// The trigger's filter refuses it.
    Filtered,
    /// The person had a run already.
    OncePerPerson,
    /// The messages with their steps, and where the run ends if not at the last step.
    Ran { messages: Vec<ReplayedMessage>, end: Option<String>, is_failed: bool },
}

/// A message that would be sent.
#[derive(Debug, Clone, PartialEq)]
struct ReplayedMessage {
    /// The number of its step, from 1.
    step: usize,
    /// The subject, or the text of a text message.
    text: String,
}

/// Runs the events, newest first, as long as there is time.
async fn replay_events(
    context: &Context<'_>,
    automation: &str,
    definition: &Value,
    events: &[PastEvent],
) -> Result<Vec<ReplayedEvent>, Failure> {
    let begin = context.now();
    let has_filter = definition["trigger"]["filter"].is_object();
    let repeated = match definition["trigger"]["reentry"].as_str() {
        Some("once") => repeated_persons(events),
        _ => BTreeSet::new(),
    };
    let mut replayed = Vec::with_capacity(events.len());
    for event in events {
        if context.now().duration_since(begin) > TIME_MAX {
            break;
        }
        match dry_run(context, automation, event).await {
            Ok(run) => replayed.push(judge(&run, has_filter, repeated.contains(&event.id))),
            // The events so far are shown; the page says that there were more events.
            Err(failure) if failure.status == 429 && !replayed.is_empty() => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(replayed)
}

/// The events of persons who have an earlier one among them.
fn repeated_persons(events: &[PastEvent]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let later = events.iter().rev().filter(|event| {
        let person = event.user_id.as_ref().or(event.email.as_ref());
        person.is_some_and(|person| !seen.insert(person.clone()))
    });
    later.map(|event| event.id.clone()).collect()
}

fn judge(run: &RunDetail, has_filter: bool, is_repeated: bool) -> ReplayedEvent {
    if has_filter && run.steps.first().is_some_and(|step| step.output["result"] == false) {
        return ReplayedEvent::Filtered;
    }
    if is_repeated {
        return ReplayedEvent::OncePerPerson;
    }
    let shift = usize::from(has_filter);
    let number = |index: usize| index.saturating_add(1).saturating_sub(shift);
    let messages = run.steps.iter().filter_map(|step| {
        let text = match step.r#type.as_str() {
            "send_email" => step.output["subject"].as_str(),
            "sms" => step.output["body"].as_str(),
            _ => None,
        };
        Some(ReplayedMessage { step: number(step.index), text: text?.to_owned() })
    });
    let failed = run.steps.iter().find(|step| step.status == "failed");
    let end = match (failed, run.ended_by.as_deref()) {
        (Some(step), _) => Some(format!(
            "Step {} ({}) fails: {}",
            number(step.index),
            step_label(&step.r#type).to_lowercase(),
            step.error.as_deref().unwrap_or_default(),
        )),
        (None, Some("condition")) => Some(format!("Ends at step {}", number(run.current_step_index))),
        _ => None,
    };
    ReplayedEvent::Ran { messages: messages.collect(), end, is_failed: failed.is_some() }
}

struct ReplayResult<'r> {
    automation: &'r AutomationDetail,
    definition: &'r Value,
    events: &'r [PastEvent],
    runs: &'r BTreeMap<String, RunDetail>,
    replayed: &'r [ReplayedEvent],
    is_saved: bool,
}

impl ReplayResult<'_> {
    fn rows(&self) -> impl Iterator<Item = (&PastEvent, &ReplayedEvent)> {
        self.events.iter().zip(self.replayed)
    }

    /// The number of events for which a message would be sent, of messages, and of runs that fail.
    fn sums(&self) -> (usize, usize, usize) {
        self.replayed.iter().fold((0, 0, 0), |(people, sent, failed), replayed| match replayed {
            ReplayedEvent::Ran { messages, is_failed, .. } => {
                (people + usize::from(!messages.is_empty()), sent + messages.len(), failed + usize::from(*is_failed))
            }
            _ => (people, sent, failed),
        })
    }

    /// The number of messages by step, with one of their texts.
    fn by_step(&self) -> Table {
        let mut steps = BTreeMap::<usize, (usize, &str)>::new();
        for replayed in self.replayed {
            if let ReplayedEvent::Ran { messages, .. } = replayed {
                messages.iter().for_each(|message| steps.entry(message.step).or_insert((0, &message.text)).0 += 1);
            }
        }
        let mut table = Table::new("Messages by step", &["Step", "Messages", "For example"]).numbers(&["Messages"]);
        for (step, (number, text)) in steps {
            table.push(Row::new().cell(maud! { "Step " (step) }).cell(number).cell(maud! { "“" (text) "”" }));
        }
        table
    }

    fn table(&self) -> Table {
        let mut table = Table::new("Replayed events", &["Event", "Person", "With these steps", "What happened then"]);
        for (event, replayed) in self.rows().take(ROWS_MAX) {
            let target = format!("{}/runs/", path(&self.automation.id));
            let run = self.runs.get(&event.id);
            table.push(
                Row::new().cell(time_or_dash(event.created_at.as_deref())).cell(event.person()).cell(replayed).cell(
                    maud! {
                        @match run {
                            None => { span.soft { "No run" } }
                            Some(run) => {
                                a href={ (target) (encode(&run.id)) } { "Version " (run.automation_version) } " "
                                (run_badge(&run.status))
                            }
                        }
                    },
                ),
            );
        }
        table
    }
}

impl Renderable for &ReplayedEvent {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            @match self {
                ReplayedEvent::Filtered => { span.soft { "No run: the filter refuses the event" } }
                ReplayedEvent::OncePerPerson => { span.soft { "No run: one per person" } }
                ReplayedEvent::Ran { messages, end, is_failed } => {
                    @if messages.is_empty() && end.is_none() { span.soft { "No message" } }
                    @if !messages.is_empty() { ul.bare { @for message in messages { li { (message.step) ". “" (message.text) "”" } } } }
                    @if let Some(end) = end { p.soft[!is_failed].error[*is_failed] { (end) } }
                }
            }
        }
        .render_to(buffer);
    }
}

impl Renderable for ReplayResult<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (people, sent, failed) = self.sums();
        let (replayed, found) = (self.replayed.len(), self.events.len());
        let event = self.definition["trigger"]["event"].as_str().unwrap_or_default();
        let base = path(&self.automation.id);
        let by_step = self.by_step();
        maud! {
            @if found == 0 {
                div.empty {
                    p.empty-title { "No past event" }
                    p { "There was no event with the name " code { (event) } ". Test the steps with an event of your own instead." }
                    p { a.button href={ (base) "/test" } { "Test" } }
                }
            } @else {
                p {
                    (replayed) " past events went through "
                    @if self.is_saved { "the saved steps" } @else { "the steps as you entered them; they are not saved" }
                    ": " strong { (people) } " would have got " strong { (sent) } " messages. Failed runs: " strong { (failed) } "."
                    @if replayed < found { " There was no time for " (found - replayed) " more events." }
                }
                p.help {
                    "Waits count as timed out, and delays are skipped. Stored events hold no secrets such as codes, and "
                    "runs that another event would have canceled are not taken into account."
                }
                @if !self.is_saved {
                    p.help { "Go back in your browser to continue editing." }
                }
                @if !by_step.is_empty() { section { h2 { "Messages" } (by_step) } }
                section { h2 { "Events" } (self.table()) }
                @if replayed > ROWS_MAX { p.soft { "The table shows the latest " (ROWS_MAX) "; the sums are of all." } }
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_becomes_a_step() {
        let definition = json!({
            "trigger": {"event": "e", "filter": {"any": [{"field": "event.email", "op": "exists"}]}},
            "steps": [{"type": "condition", "on_false": "skip_to", "target": 1}, {"type": "delay", "duration": "1d"}],
        });
        let steps = with_filter_step(&definition);
        assert_eq!(
            steps[0],
            json!({"type": "condition", "any": [{"field": "event.email", "op": "exists"}], "on_false": "stop"})
        );
        assert_eq!((&steps[1]["target"], steps.len()), (&json!(2), 3));
    }

    #[test]
    fn later_events_of_a_person_are_repeated() {
        let event =
            |id: &str, user: &str| PastEvent { id: id.into(), user_id: Some(user.into()), ..PastEvent::default() };
        let newest_first = [event("3", "a"), event("2", "b"), event("1", "a")];
        assert_eq!(repeated_persons(&newest_first), BTreeSet::from(["3".to_owned()]));
    }

    #[test]
    fn runs_are_judged() {
        let run: RunDetail = serde_json::from_value(json!({
            "ended_by": "condition", "current_step_index": 2,
            "steps": [
                {"index": 0, "type": "condition", "status": "completed", "output": {"result": true}},
                {"index": 1, "type": "send_email", "status": "completed", "output": {"subject": "Hi"}},
                {"index": 2, "type": "condition", "status": "completed", "output": {"result": false}},
            ],
        }))
        .unwrap();
        let expected = ReplayedEvent::Ran {
            messages: vec![ReplayedMessage { step: 1, text: "Hi".into() }],
            end: Some("Ends at step 2".into()),
            is_failed: false,
        };
        assert_eq!(judge(&run, true, false), expected);
        assert_eq!(judge(&run, true, true), ReplayedEvent::OncePerPerson);
    }
}
