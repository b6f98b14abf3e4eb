//! Automation definition: the trigger and the ordered steps, as the customer configured them.
//!
//! A definition is stored and returned as the JSON of [`AutomationDefinition::to_json`], which [`super::parse`] parses.
//! It is the canonical form. References in texts are not resolved here.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use message::words;
use serde_json::{Map, Value, json};

use super::condition::Condition;
use super::time_span::TimeSpan;
use super::time_window::{self, TimeWindow};
use crate::email::Category;
use crate::timestamp;

/// The trigger and the steps of an automation.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationDefinition {
    pub trigger: Trigger,
    pub steps: Vec<AutomationStep>,
}

/// The events that start and cancel runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Name of the event that starts a run.
    pub event: String,
    /// Only events that match this condition start a run.
    pub filter: Option<Condition>,
    /// Names of events that cancel the runs of the event's person.
    pub cancel_on_events: Vec<String>,
    pub reentry: Reentry,
    /// True if opens and clicks by machines start runs too.
    pub include_machine: bool,
}

words! {
    /// The rule for several runs of one person.
    #[derive(Default)]
    Reentry {
        /// Every event starts a run.
        #[default]
        Always = "always",
        /// One run per person, ever.
        Once = "once",
        /// One active run per person at a time.
        WhileNotRunning = "while_not_running",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AutomationStep {
    /// The key that other steps refer to.
    pub key: Option<String>,
    /// Display name.
    pub name: Option<String>,
    pub action: StepAction,
}

/// The type and the parameters of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    SendEmail(Box<SendEmailStep>),
    /// Waits for a duration or until a time.
    Delay(DelayStep),
    WaitForEvent(WaitForEventStep),
    /// Continues only if a condition is true.
    Condition(ConditionStep),
    Sms(SmsStep),
}

impl StepAction {
    /// All types in the API.
    pub const WORDS: &'static [&'static str] = &["send_email", "delay", "wait_for_event", "condition", "sms"];

    /// The type in the API.
    pub fn word(&self) -> &'static str {
        match self {
            Self::SendEmail(_) => "send_email",
            Self::Delay(_) => "delay",
            Self::WaitForEvent(_) => "wait_for_event",
            Self::Condition(_) => "condition",
            Self::Sms(_) => "sms",
        }
    }
}

/// The parameters of an email. All texts can contain references.
#[derive(Debug, Clone, PartialEq)]
pub struct SendEmailStep {
    /// The template; `None` if the step has bodies of its own.
    pub template: Option<TemplateSelector>,
    /// The subject; it replaces the template's.
    pub subject: Option<String>,
    pub html: Option<String>,
    pub text: Option<String>,
    /// Template variables, in addition to the run context.
    pub variables: Map<String, Value>,
    /// From; the template's if `None`.
    pub from: Option<String>,
    /// Recipients; [`TO_DEFAULT`] if none is configured.
    pub to: Vec<String>,
    pub reply_to: Vec<String>,
    pub category: Option<Category>,
    pub tags: Vec<(String, String)>,
}

/// The recipient of a step without `to`.
pub const TO_DEFAULT: &str = "{{event.email}}";

/// A reference to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSelector {
    /// Alias or id.
    pub name: String,
    /// Version number; the published version if `None`.
    pub version: Option<u32>,
}

/// The parameters of a delay.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayStep {
    pub length: DelayLength,
    /// The delay ends only within this window.
    pub window: Option<TimeWindow>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DelayLength {
    /// A duration.
    For(TimeSpan),
    /// Until a time, given as a text with references.
    Until(String),
}

/// The parameters of a wait for an event.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitForEventStep {
    pub event: String,
    /// How the event is matched to the run's person.
    pub by: MatchBy,
    /// Only an event that matches this condition ends the wait.
    pub filter: Option<Condition>,
    /// Maximum time to wait.
    pub timeout: TimeSpan,
    pub on_timeout: OnTimeout,
    /// True if opens and clicks by machines end the wait too.
    pub include_machine: bool,
}

words! {
    /// How an event is matched to the person of a run.
    #[derive(Default)]
    MatchBy {
        UserId = "user_id",
        /// By email address.
        Email = "email",
        /// By user id; by email address if the event or the run has no user id.
        #[default]
        Auto = "auto",
    }
}

words! {
    /// The effect of a wait that times out.
    #[derive(Default)]
    OnTimeout {
        /// The run continues.
        #[default]
        Continue = "continue",
        /// The run is completed.
        Stop = "stop",
        /// The run fails.
        Fail = "fail",
    }
}

/// The parameters of a condition step.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionStep {
    pub condition: Condition,
    /// The step to continue with if the condition is false; if `None`, the run is completed.
    pub skip_to: Option<SkipTarget>,
}

/// A reference to a later step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipTarget {
    /// The reference as configured: a key or an index.
    pub target: Value,
    /// Index of the step.
    pub index: usize,
}

/// The parameters of a text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmsStep {
    /// Phone number.
    pub to: String,
    pub body: String,
}

impl AutomationDefinition {
    /// The canonical JSON form.
    pub fn to_json(&self) -> Value {
        let steps: Value = self.steps.iter().map(AutomationStep::to_json).collect();
        json!({"trigger": self.trigger.to_json(), "steps": steps})
    }

    /// Names of the events that runs wait for.
    pub fn awaited_events(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.action {
            StepAction::WaitForEvent(wait) => Some(wait.event.as_str()),
            _ => None,
        })
    }

    /// True if a step sends a text message.
    pub fn has_sms(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, StepAction::Sms(_)))
    }
}

impl Trigger {
    /// The canonical JSON form.
    pub fn to_json(&self) -> Value {
        without_nulls(json!({
            "event": self.event,
            "filter": self.filter.as_ref().map(Condition::to_json),
            "cancel_on_events": self.cancel_on_events,
            "reentry": self.reentry.word(),
            "include_machine": self.include_machine.then_some(true),
        }))
    }
}

/// An object without its fields that are null.
fn without_nulls(mut json: Value) -> Value {
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    json
}

impl AutomationStep {
    /// The canonical JSON form.
    pub fn to_json(&self) -> Value {
        let mut json = without_nulls(json!({"type": self.action.word(), "key": self.key, "name": self.name}));
        let settings = match &self.action {
            StepAction::SendEmail(email) => email.to_json(),
            StepAction::Delay(delay) => delay.to_json(),
            StepAction::WaitForEvent(wait) => wait.to_json(),
            StepAction::Condition(gate) => gate.to_json(),
            StepAction::Sms(SmsStep { to, body }) => json!({"to": to, "body": body}),
        };
        if let (Some(json), Value::Object(settings)) = (json.as_object_mut(), settings) {
            json.extend(settings);
        }
        json
    }
}

impl SendEmailStep {
    fn to_json(&self) -> Value {
        let one_or_many = |texts: &[String]| match texts {
            [single] => json!(single),
            many => json!(many),
        };
        let template = self.template.as_ref().map(|TemplateSelector { name, version }| match version {
            None => json!(name),
            Some(version) => json!({"id": name, "version": version}),
        });
        let tags: Vec<Value> = self.tags.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        without_nulls(json!({
            "template": template,
            "subject": self.subject,
            "html": self.html,
            "text": self.text,
            "from": self.from,
            "to": one_or_many(&self.to),
            "variables": (!self.variables.is_empty()).then_some(&self.variables),
            "reply_to": (!self.reply_to.is_empty()).then(|| one_or_many(&self.reply_to)),
            "category": self.category.map(Category::word),
            "tags": (!tags.is_empty()).then_some(tags),
        }))
    }
}

impl DelayStep {
    /// Parses a time with its offset, or a day: the midnight in the time zone of the window, or in UTC.
    ///
    /// # Errors
    /// Returns the reason, to be appended to `until`.
    pub fn parse_until(&self, text: &str) -> Result<Timestamp, String> {
        // `Date` also parses a full time and drops its hours: accept a plain date only.
        let day = text.parse::<Date>().ok().filter(|_| text.len() == "2030-01-31".len());
        let Some(day) = day else { return timestamp::parse(text).map_err(str::to_owned) };
        let zone = time_window::parse_zone(self.window.as_ref().map_or("UTC", |window| window.tz.as_str()))?;
        zone.to_timestamp(day.to_datetime(Time::midnight())).map_err(|error| error.to_string())
    }

    fn to_json(&self) -> Value {
        let (duration, until) = match &self.length {
            DelayLength::For(span) => (Some(span.to_string()), None),
            DelayLength::Until(text) => (None, Some(text)),
        };
        let window = self.window.as_ref().map(TimeWindow::to_json);
        without_nulls(json!({"duration": duration, "until": until, "window": window}))
    }
}

impl WaitForEventStep {
    fn to_json(&self) -> Value {
        without_nulls(json!({
            "event": self.event,
            "match": self.by.word(),
            "filter": self.filter.as_ref().map(Condition::to_json),
            "timeout": self.timeout.to_string(),
            "on_timeout": self.on_timeout.word(),
            "include_machine": self.include_machine.then_some(true),
        }))
    }
}

impl ConditionStep {
    fn to_json(&self) -> Value {
        let mut json = self.condition.to_json();
        match &self.skip_to {
            None => json["on_false"] = json!("stop"),
            Some(SkipTarget { target, .. }) => {
                json["on_false"] = json!("skip_to");
                json["target"] = target.clone();
            }
        }
        json
    }
}
