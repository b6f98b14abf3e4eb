//! A test of an automation: a run of one event to its end, at once, without sending anything or as a test email.

use super::editor::entered_definition;
use super::runs::{RunDetail, run_steps};
use super::{AutomationDetail, automation_page, call, path, read_automation};
use crate::dashboard::kit::mail_frame::framed_html;
use crate::dashboard::prelude::*;

/// Past events that are offered as examples.
const EXAMPLES: usize = 8;
/// The longest event data in the address of a frame.
const DATA_BYTES_MAX: usize = 6_000;

/// A stored event of the product.
#[answer]
pub struct PastEvent {
    pub id: String,
    pub name: String,
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub data: Value,
    pub created_at: Option<String>,
}

impl PastEvent {
    /// The person: email address, or user id.
    pub fn person(&self) -> &str {
        self.email.as_deref().or(self.user_id.as_deref()).unwrap_or("nobody")
    }
}

/// The call that runs an automation with an event. `mode` is `dry_run` or `test_send`.
pub fn test_call(automation: &str, mode: &str, event: &PastEvent) -> Call {
    let mut body = json!({"name": event.name, "data": event.data, "automation_id": automation, mode: true});
    for (name, value) in [("user_id", &event.user_id), ("email", &event.email)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    Call::new("send_event").json(body)
}

/// Runs an automation with an event to its end, without sending anything.
pub async fn dry_run(context: &Context<'_>, automation: &str, event: &PastEvent) -> Result<RunDetail, Failure> {
    context.read_field("run", &test_call(automation, "dry_run", event)).await
}

fn test_form(event: &PastEvent) -> Form<'static> {
    let data = if event.data.is_null() { json!({"name": "Grace", "plan": "trial"}) } else { event.data.clone() };
    let modes = [
        ("dry_run", "Only show what would be sent"),
        ("test_send", "Send the emails and text messages for real, to the addresses of the event"),
    ];
    let modes = choices(&modes);
    let fields = vec![
        Field::new("email", "Email address", Control::Email).value(event.email.clone().unwrap_or_default()),
        Field::text("user_id", "User id").value(event.user_id.clone().unwrap_or_default()),
        Field::new("data", "Event data", Control::Json { rows: 7 })
            .value(serde_json::to_string_pretty(&data).unwrap_or_default()),
        Field::new("mode", "What to do", Control::Radio(modes)).value("dry_run").ignored(),
    ];
    Form::new("test", "Run the test", fields)
}

/// The event that a form or an address describes.
fn read_event(name: &str, fields: &Fields) -> Result<PastEvent, Failure> {
    let body = test_form(&PastEvent::default()).read(fields)?;
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let data = if body["data"].is_null() { json!({}) } else { body["data"].clone() };
    Ok(PastEvent { name: name.into(), user_id: text("user_id"), email: text("email"), data, ..PastEvent::default() })
}

/// The form, and past events as examples.
pub async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let latest = Call::new("list_events").query("name", automation.event()).query("limit", EXAMPLES.to_string());
    let examples: Vec<PastEvent> = context.read_allowed("events", &latest).await.unwrap_or_default();
    let chosen = context.query().get("event");
    let event = match chosen {
        "" => PastEvent { email: context.viewer.map(|viewer| viewer.email.clone()), ..PastEvent::default() },
        id => context.read_field::<PastEvent>("event", &Call::new("get_event").id(id)).await?,
    };
    let form = test_form(&event);
    let body = maud! {
        p.help {
            "A test runs the saved steps with one " code { (automation.event()) } " event, at once and to the end: \
             delays are "
            "skipped, and events that a step waits for do not occur. The run is not stored."
        }
        div.columns.wide-first {
            div.card { (form.within(context)) }
            section.card {
                h2 { "Take a past event" }
                @if examples.is_empty() {
                    p.soft { "There have been no events with this name yet." }
                } @else {
                    ul.bare {
                        @for example in &examples {
                            li {
                                a href={ (context.request.path) "?event=" (encode(&example.id)) } { (example.person()) }
                                " " span.soft { (time_or_dash(example.created_at.as_deref())) }
                            }
                        }
                    }
                }
            }
        }
    };
    let example = PastEvent { name: automation.event().into(), ..event };
    let same = test_call(&automation.id, "dry_run", &example);
    Ok(automation_page(context, automation, "Test", body).same_as(same).into())
}

/// Runs the test and shows the result once.
pub async fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let event = &read_event(automation.event(), context.form())?;
    let mode = if context.form().get("mode") == "test_send" { "test_send" } else { "dry_run" };
    let same = test_call(&automation.id, mode, event);
    let run = context.read_field::<RunDetail>("run", &same).await?;
    let form = test_form(&event.clone());
    let is_sent = mode == "test_send";
    let body = maud! {
        (TestResult { automation, event, run: &run, is_sent, is_entered: false }.view())
        section.card { h2 { "Again" } (form.within(context)) }
    };
    let page = automation_page(context, automation, "Test result", body)
        .below(format!("{}/test", path(&automation.id)), "Test")
        .same_as(same);
    Ok(Outcome::once(page))
}

/// Runs the steps of the editor's form, which are not saved, with the latest event of the trigger's name.
pub async fn run_entered(context: &Context<'_>) -> Result<Outcome, Failure> {
    let automation = &read_automation(context, &call("get_automation", context.id())).await?;
    let definition = entered_definition(context)?;
    let name = definition["trigger"]["event"].as_str().unwrap_or_default();
    let latest = Call::new("list_events").query("name", name).query("limit", "1");
    let past: Vec<PastEvent> = context.read_allowed("events", &latest).await.unwrap_or_default();
    let is_past = !past.is_empty();
    let own = || PastEvent {
        name: name.to_owned(),
        email: context.viewer.map(|viewer| viewer.email.clone()),
        data: json!({}),
        ..PastEvent::default()
    };
    let event = &past.into_iter().next().unwrap_or_else(own);
    let mut body = json!({"trigger": definition["trigger"], "steps": definition["steps"], "data": event.data});
    for (name, value) in [("user_id", &event.user_id), ("email", &event.email)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let same = call("dry_run_automation", &automation.id).json(body);
    let run = context.read_field::<RunDetail>("run", &same).await?;
    let page = maud! {
        p {
            "The steps as you entered them, which are not saved, ran "
            @if is_past { "with the latest " code { (name) } " event" } @else { "with an example of the event " code { (name) } }
            " of " (event.person()) "."
        }
        p.help { "Go back in your browser to continue editing." }
        (TestResult { automation, event, run: &run, is_sent: false, is_entered: true }.view())
    };
    let page = automation_page(context, automation, "Test result", page).same_as(same);
    Ok(Outcome::once(page))
}

/// A test run with its emails.
struct TestResult<'r> {
    automation: &'r AutomationDetail,
    event: &'r PastEvent,
    run: &'r RunDetail,
    is_sent: bool,
    /// The steps are not saved: their emails have no address for a frame.
    is_entered: bool,
}

impl TestResult<'_> {
    /// The path of a rendered email; it is rendered again from the same event.
    fn mail_path(&self, step: usize) -> Option<String> {
        let data = self.event.data.to_string();
        let text = |value: &Option<String>| encode(value.as_deref().unwrap_or_default());
        let (email, user) = (text(&self.event.email), text(&self.event.user_id));
        let base = path(&self.automation.id);
        let has_address = !self.is_entered && data.len() <= DATA_BYTES_MAX;
        has_address.then(|| format!("{base}/mail?step={step}&email={email}&user_id={user}&data={}", encode(&data)))
    }

    fn view(&self) -> impl Renderable {
        let run = self.run;
        let (tone, text) = match (run.status.as_str(), self.is_sent) {
            ("failed", _) => (Tone::Bad, "The run fails: the steps show where and why."),
            (_, true) => (Tone::Good, "The run completed, and its emails were accepted."),
            (_, false) => (Tone::Good, "The run completes. Nothing was sent."),
        };
        let emails = run.steps.iter().filter(|step| step.output["html"].is_string() || step.output["text"].is_string());
        let emails: Vec<_> = emails.collect();
        maud! {
            (Notice { tone, text })
            section { h2 { "Steps" } (run_steps(&run.steps)) }
            @for step in &emails {
                @let output = &step.output;
                section.card {
                    h2 { "Step " (step.index + 1) ": " (output["subject"].as_str().unwrap_or("(no subject)")) }
                    dl.facts {
                        @for (label, name) in [("From", "from"), ("To", "to"), ("Category", "category")] {
                            @if let Some(text) = words(&output[name]) { div { dt { (label) } dd { (text) } } }
                        }
                    }
                    @match (output["html"].is_string(), self.mail_path(step.index)) {
                        (true, Some(source)) => {
                            iframe.mail sandbox="" src=(source) loading="lazy" title={ "The email of step " (step.index + 1) } {}
                        }
                        _ if output["text"].is_null() => { p.soft { "The HTML is shown once the steps are saved." } }
                        _ => { pre.wrap tabindex="0" { (output["text"].as_str().unwrap_or_default()) } }
                    }
                }
            }
        }
    }
}

/// A text, or texts with commas between.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(entries) => Some(entries.iter().filter_map(words).collect::<Vec<_>>().join(", ")),
        Value::Object(address) => address.get("email").and_then(words),
        _ => None,
    }
}

/// A rendered email of a test, for its frame.
pub async fn show_mail(context: &Context<'_>) -> Result<View, Failure> {
    let automation = read_automation(context, &call("get_automation", context.id())).await?;
    let event = read_event(automation.event(), context.query())?;
    let step: usize = context.query().get("step").parse().map_err(|_| Failure::not_found())?;
    let run = dry_run(context, &automation.id, &event).await?;
    let step = run.steps.get(step).ok_or_else(Failure::not_found)?;
    Ok(View::Foreign { html: framed_html(step.output["html"].as_str().unwrap_or_default()), remote: false })
}
