//! What a client says of an automation: the bodies of `POST /automations` and `POST /automations/{id}`.

use mail::automation::read::{self, Notes as ReadNotes};
use mail::automation::{DEFINITION_BYTES_MAX, Definition, NAME_BYTES_MAX};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::OfAutomation;
use super::view::{steps_schema, trigger_schema};
use crate::call::{Call, Input, Media, Takes};
use crate::fields::{self, Given, Names, Notes};
use crate::problem::Problem;
use crate::schema::{self, Schemas};

/// A definition, at twice its size in JSON, and the rest.
pub const REQUEST_BYTES_MAX: usize = 2 * DEFINITION_BYTES_MAX + (64 << 10);

const NAMES: Names = Names {
    known: &[("name", "name"), ("trigger", "trigger"), ("steps", "steps"), ("action", "action")],
    foreign: &[("Name", "name"), ("Trigger", "trigger"), ("Steps", "steps"), ("Action", "action")],
};

/// A new automation.
#[derive(Debug)]
pub struct CreateAutomation {
    /// Its name.
    pub name: String,
    /// What it does.
    pub definition: Definition,
}

/// What is to be done with an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Events start runs.
    Activate,
    /// No new runs; those that there are hold.
    Pause,
    /// It is over.
    Archive,
    /// All its runs are ended.
    CancelRuns,
}

impl Action {
    const WORDS: &'static [&'static str] = &["activate", "pause", "archive", "cancel_runs"];

    fn of_word(word: &str) -> Option<Self> {
        match word {
            "activate" => Some(Self::Activate),
            "pause" => Some(Self::Pause),
            "archive" => Some(Self::Archive),
            "cancel_runs" => Some(Self::CancelRuns),
            _ => None,
        }
    }
}

/// A change of an automation.
#[derive(Debug)]
pub enum Change {
    /// Something is to be done with it.
    Act(Action),
    /// It is to be another.
    Edit(Box<Edit>),
}

/// What is to be another.
#[derive(Debug)]
pub struct Edit {
    /// The name.
    pub name: Option<String>,
    trigger: Option<Value>,
    steps: Option<Value>,
}

impl Edit {
    /// The definition as it is then.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply(&self, before: &Definition) -> Result<Definition, Problem> {
        let before = before.to_json();
        let mut notes = Notes::default();
        let part = |given: &Option<Value>, name: &str| given.clone().unwrap_or_else(|| before[name].clone());
        let trigger = part(&self.trigger, "trigger");
        let read = definition(&trigger, &part(&self.steps, "steps"), &mut notes);
        read.ok_or_else(|| notes.errors.into())
    }
}

/// Reads a definition; what nobody knows of it is a warning.
fn definition(trigger: &Value, steps: &Value, notes: &mut Notes) -> Option<Definition> {
    let mut found = ReadNotes::default();
    let definition = read::definition(trigger, steps, &mut found);
    for (field, text) in found.errors {
        notes.errors.add(&field, text);
    }
    for field in found.ignored {
        notes.warn(format!("`{field}` is not a known field and was ignored"));
    }
    definition
}

fn name(value: &RawValue) -> Result<String, String> {
    let name = fields::line(value, NAME_BYTES_MAX)?;
    if name.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
}

fn json_of(given: &Given<'_>, field: &str) -> Option<Value> {
    given.value(field).and_then(|raw| mail::number::read(raw.get()).ok())
}

fn told(call: &Call, notes: &mut Notes) {
    call.ignored.borrow_mut().append(&mut notes.warnings);
}

impl Input for CreateAutomation {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let body = schemas.named("CreateAutomation", |_| {
            let mut body = schema::object_with(
                "A new automation",
                &["name", "trigger", "steps"],
                [("name", name_schema()), ("trigger", trigger), ("steps", steps)],
            );
            body["examples"] = json!([{
                "name": "Trial",
                "trigger": {"event": "user.created", "cancel_on_events": ["subscription.started"]},
                "steps": [
                    {"type": "send_email", "template": "welcome", "variables": {"name": "{{event.data.name}}"}},
                    {"type": "wait_for_event", "event": "user.activated", "match": "user_id", "timeout": "3d",
                     "on_timeout": "continue"},
                    {"type": "condition", "all": [{"field": "event.data.plan", "op": "eq", "value": "trial"}]},
                    {"type": "delay", "until": "{{event.data.trial_ends_at}}"},
                    {"type": "send_email", "template": "trial-ending"},
                ],
            }]);
            body
        });
        Takes { parameters: Vec::new(), body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[("name", "name"), ("trigger", "trigger"), ("steps", "steps")],
            foreign: &[("Name", "name"), ("Trigger", "trigger"), ("Steps", "steps")],
        };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let name = match given.value("name") {
            None => Err("is required".to_owned()),
            Some(value) => self::name(value),
        };
        let name = name.map_err(|text| notes.errors.add("name", text)).ok();
        let part = |field: &str| json_of(&given, field).unwrap_or_default();
        let definition = definition(&part("trigger"), &part("steps"), &mut notes);
        told(call, &mut notes);
        match (name, definition) {
            (Some(name), Some(definition)) if notes.errors.is_empty() => Ok(Self { name, definition }),
            _ => Err(notes.errors.into()),
        }
    }
}

fn name_schema() -> Value {
    json!({"type": "string", "maxLength": NAME_BYTES_MAX, "description": "Its name, for people"})
}

impl Input for (OfAutomation, Change) {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let body = schemas.named("UpdateAutomation", |_| {
            let mut body = schema::object_with(
                "An `action`, or what is to be changed",
                &[],
                [
                    ("action", schema::words(Action::WORDS, "What is to be done with it")),
                    ("name", name_schema()),
                    ("trigger", trigger),
                    ("steps", steps),
                ],
            );
            body["examples"] = json!([{"action": "activate"}]);
            body
        });
        let parameters = vec![OfAutomation::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let action = given.value("action").map(|value| {
            let word = fields::text(value)?;
            let text = || format!("must be one of {}", Action::WORDS.join(", "));
            Action::of_word(&word).ok_or_else(text)
        });
        let action = action.transpose().map_err(|text| notes.errors.add("action", text)).unwrap_or_default();
        let name = given.value("name").map(name).transpose();
        let name = name.map_err(|text| notes.errors.add("name", text)).unwrap_or_default();
        let edit = Edit { name, trigger: json_of(&given, "trigger"), steps: json_of(&given, "steps") };
        let edits = ["name", "trigger", "steps"].iter().any(|field| given.is_meant(field));
        if given.is_meant("action") && edits {
            notes
                .errors
                .add("action", "is one thing, a change of the definition another: ask for one of them");
        } else if !given.is_meant("action") && !edits {
            notes.errors.add("action", "is required, or one of name, trigger and steps");
        }
        if let (Some(trigger), Some(steps)) = (&edit.trigger, &edit.steps) {
            // Said before anything is looked up; else what was there decides.
            let _whole = definition(trigger, steps, &mut notes);
        }
        told(call, &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let change = action.map_or_else(|| Change::Edit(Box::new(edit)), Change::Act);
        Ok((OfAutomation::of(call), change))
    }
}

/// A copy of an automation.
#[derive(Debug)]
pub struct CopyAutomation {
    /// Its name; made of the other's where none is given.
    pub name: Option<String>,
}

impl Input for (OfAutomation, CopyAutomation) {
    const BODY_BYTES_MAX: Option<usize> = Some(16 << 10);
    const MEDIA: Media = Media::JsonOrNothing;

    fn describe(_: &mut Schemas) -> Takes {
        let body = schema::object_with("A copy", &[], [("name", name_schema())]);
        let parameters = vec![OfAutomation::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[("name", "name")], foreign: &[("Name", "name")] };
        let mut notes = Notes::default();
        let given = call.given_if_any(&NAMES, &mut notes)?;
        let name = given.value("name").map(name).transpose();
        let name = name.map_err(|text| Problem::field("name", text))?;
        Ok((OfAutomation::of(call), CopyAutomation { name }))
    }
}
