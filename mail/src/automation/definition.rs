//! What an automation does, as its customer wrote it: a trigger, and steps in their order.
//!
//! A definition is stored and shown as the JSON that [`Definition::to_json`] writes, and [`super::read`] reads:
//! there is one form of it. References in it are not filled in yet.

use serde_json::{Map, Value, json};

use super::condition::Condition;
use super::span::TimeSpan;
use super::window::TimeWindow;
use crate::email::Category;
use crate::suppression::category_word;

/// What an automation does.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationDefinition {
    /// What starts a run.
    pub trigger: Trigger,
    /// What a run does, in order.
    pub steps: Vec<AutomationStep>,
}

/// What starts a run, and what ends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// The event.
    pub event: String,
    /// Only those that this holds of.
    pub filter: Option<Condition>,
    /// Events that end the runs of the person that they are about.
    pub cancel_on_events: Vec<String>,
    /// Whether one person may have several runs.
    pub reentry: Reentry,
    /// Opens and clicks by machines count as well.
    pub include_machine: bool,
}

/// Whether one person may have several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reentry {
    /// Each event starts one.
    #[default]
    Always,
    /// One for ever.
    Once,
    /// One at a time.
    WhileNotRunning,
}

impl Reentry {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["always", "once", "while_not_running"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "always" => Some(Self::Always),
            "once" => Some(Self::Once),
            "while_not_running" => Some(Self::WhileNotRunning),
            _ => None,
        }
    }

    /// How it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Once => "once",
            Self::WhileNotRunning => "while_not_running",
        }
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationStep {
    /// By what other steps name it.
    pub key: Option<String>,
    /// What people call it.
    pub name: Option<String>,
    /// What it does.
    pub action: StepAction,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    /// Sends an email.
    SendEmail(Box<SendEmailStep>),
    /// Lets time pass.
    Delay(DelayStep),
    /// Waits for another event.
    WaitForEvent(WaitForEventStep),
    /// Goes on only if something holds.
    Condition(ConditionStep),
    /// Sends a text message.
    Sms(SmsStep),
}

impl StepAction {
    /// All kinds, as they are written.
    pub const WORDS: &'static [&'static str] = &["send_email", "delay", "wait_for_event", "condition", "sms"];

    /// How its kind is written.
    #[must_use]
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

/// An email to send.
#[derive(Debug, Clone, PartialEq)]
pub struct SendEmailStep {
    /// The template, by alias or id; none when the email has bodies of its own.
    pub template: Option<TemplateSelector>,
    /// The subject; with a template, instead of its own.
    pub subject: Option<String>,
    /// The HTML body.
    pub html: Option<String>,
    /// The plain-text body.
    pub text: Option<String>,
    /// What is filled in beside what the run knows.
    pub variables: Map<String, Value>,
    /// The author; the template's where none is given.
    pub from: Option<String>,
    /// To whom.
    pub to: Vec<String>,
    /// Where answers go.
    pub reply_to: Vec<String>,
    /// What it is for.
    pub category: Option<Category>,
    /// What is hung on it.
    pub tags: Vec<(String, String)>,
}

/// To whom a step sends that does not say.
pub const TO_DEFAULT: &str = "{{event.email}}";

/// A template and which version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSelector {
    /// Its alias or id.
    pub name: String,
    /// This version; the published one where none is given.
    pub version: Option<u32>,
}

/// A time to let pass.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayStep {
    /// How long.
    pub length: DelayLength,
    /// It ends only then.
    pub window: Option<TimeWindow>,
}

/// How long a delay lasts.
#[derive(Debug, Clone, PartialEq)]
pub enum DelayLength {
    /// So long.
    For(TimeSpan),
    /// Until the time that this text comes to.
    Until(String),
}

/// An event to wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitForEventStep {
    /// Which.
    pub event: String,
    /// How it is known that it is about the same person.
    pub by: MatchBy,
    /// Only one that this holds of.
    pub filter: Option<Condition>,
    /// For so long.
    pub timeout: TimeSpan,
    /// And then?
    pub on_timeout: OnTimeout,
    /// Opens and clicks by machines count as well.
    pub include_machine: bool,
}

/// How it is known that an event is about the same person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchBy {
    /// By user id.
    UserId,
    /// By address.
    Email,
    /// By user id, or where one of both has none, by address.
    #[default]
    Auto,
}

impl MatchBy {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["user_id", "email", "auto"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "user_id" => Some(Self::UserId),
            "email" => Some(Self::Email),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }

    /// How it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::UserId => "user_id",
            Self::Email => "email",
            Self::Auto => "auto",
        }
    }
}

/// What becomes of a run whose wait is over without the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// It goes on.
    #[default]
    Continue,
    /// It is completed.
    Stop,
    /// It has failed.
    Fail,
}

impl OnTimeout {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["continue", "stop", "fail"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "continue" => Some(Self::Continue),
            "stop" => Some(Self::Stop),
            "fail" => Some(Self::Fail),
            _ => None,
        }
    }

    /// How it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop => "stop",
            Self::Fail => "fail",
        }
    }
}

/// A condition, and what follows when it does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionStep {
    /// The condition.
    pub condition: Condition,
    /// The later step that it goes on with when it does not hold; none when the run is completed then.
    pub skip_to: Option<SkipTarget>,
}

/// A later step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipTarget {
    /// As it was named: by its key, or by its number.
    pub target: Value,
    /// Its place.
    pub index: usize,
}

/// A text message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmsStep {
    /// To which number.
    pub to: String,
    /// What it says.
    pub body: String,
}

impl AutomationDefinition {
    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let steps: Value = self.steps.iter().map(AutomationStep::to_json).collect();
        json!({"trigger": self.trigger.to_json(), "steps": steps})
    }

    /// The events that runs of it may wait for.
    pub fn awaited_events(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.action {
            StepAction::WaitForEvent(wait) => Some(wait.event.as_str()),
            _ => None,
        })
    }

    /// Whether it sends text messages.
    #[must_use]
    pub fn has_sms(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, StepAction::Sms(_)))
    }
}

impl Trigger {
    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = json!({"event": self.event});
        if let Some(filter) = &self.filter {
            json["filter"] = filter.to_json();
        }
        json["cancel_on_events"] = json!(self.cancel_on_events);
        json["reentry"] = json!(self.reentry.word());
        if self.include_machine {
            json["include_machine"] = json!(true);
        }
        json
    }
}

impl AutomationStep {
    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("type".to_owned(), json!(self.action.word()));
        for (name, value) in [("key", &self.key), ("name", &self.name)] {
            if let Some(value) = value {
                json.insert(name.to_owned(), json!(value));
            }
        }
        let more = match &self.action {
            StepAction::SendEmail(email) => email.to_json(),
            StepAction::Delay(delay) => delay.to_json(),
            StepAction::WaitForEvent(wait) => wait.to_json(),
            StepAction::Condition(gate) => gate.to_json(),
            StepAction::Sms(SmsStep { to, body }) => json!({"to": to, "body": body}),
        };
        if let Value::Object(more) = more {
            json.extend(more);
        }
        Value::Object(json)
    }
}

impl SendEmailStep {
    fn to_json(&self) -> Value {
        let one_or_many = |texts: &[String]| match texts {
            [one] => json!(one),
            many => json!(many),
        };
        let mut json = json!({});
        if let Some(TemplateSelector { name, version }) = &self.template {
            json["template"] = match version {
                None => json!(name),
                Some(version) => json!({"id": name, "version": version}),
            };
        }
        for (name, text) in
            [("subject", &self.subject), ("html", &self.html), ("text", &self.text), ("from", &self.from)]
        {
            if let Some(text) = text {
                json[name] = json!(text);
            }
        }
        json["to"] = one_or_many(&self.to);
        if !self.variables.is_empty() {
            json["variables"] = Value::Object(self.variables.clone());
        }
        if !self.reply_to.is_empty() {
            json["reply_to"] = one_or_many(&self.reply_to);
        }
        if let Some(category) = self.category {
            json["category"] = json!(category_word(category));
        }
        if !self.tags.is_empty() {
            let tag = |(name, value): &(String, String)| json!({"name": name, "value": value});
            json["tags"] = self.tags.iter().map(tag).collect();
        }
        json
    }
}

impl DelayStep {
    fn to_json(&self) -> Value {
        let mut json = match &self.length {
            DelayLength::For(span) => json!({"duration": span.to_string()}),
            DelayLength::Until(text) => json!({"until": text}),
        };
        if let Some(window) = &self.window {
            json["window"] = window.to_json();
        }
        json
    }
}

impl WaitForEventStep {
    fn to_json(&self) -> Value {
        let mut json = json!({"event": self.event, "match": self.by.word()});
        if let Some(filter) = &self.filter {
            json["filter"] = filter.to_json();
        }
        json["timeout"] = json!(self.timeout.to_string());
        json["on_timeout"] = json!(self.on_timeout.word());
        if self.include_machine {
            json["include_machine"] = json!(true);
        }
        json
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
