//! Bodies of `POST /automations` and `POST /automations/{id}`.

use mail::automation::parse::{self, ParseNotes as ReadNotes};
use mail::automation::{AutomationDefinition, DEFINITION_BYTES_MAX, NAME_BYTES_MAX};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::path::AutomationPath;
use super::view::{steps_schema, trigger_schema};
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::problem::Problem;
use crate::request::{FromRequest, Media, Request, RequestSpec};
use crate::schema::{self, Schemas};
use crate::sdk::SdkAction;

/// Twice the size of a definition, because JSON escapes it, plus the other fields.
pub const REQUEST_BYTES_MAX: usize = 2 * DEFINITION_BYTES_MAX + (64 << 10);

const NAMES: FieldNames = FieldNames {
    known: &[("name", "name"), ("trigger", "trigger"), ("steps", "steps"), ("action", "action")],
    foreign: &[("Name", "name"), ("Trigger", "trigger"), ("Steps", "steps"), ("Action", "action")],
};

#[derive(Debug)]
pub struct CreateAutomation {
    pub name: String,
    pub definition: AutomationDefinition,
}

/// An action on an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutomationAction {
    /// Events start new runs.
    Activate,
    /// Events start no new runs; existing runs pause.
    Pause,
    /// Events start no new runs; existing runs are cancelled.
    Archive,
    /// All runs are cancelled.
    CancelRuns,
}

impl AutomationAction {
    const WORDS: &'static [&'static str] = &["activate", "pause", "archive", "cancel_runs"];

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "activate" => Some(Self::Activate),
            "pause" => Some(Self::Pause),
            "archive" => Some(Self::Archive),
            "cancel_runs" => Some(Self::CancelRuns),
            _ => None,
        }
    }
}

/// A method of the SDKs for each action.
pub const SDK_ACTIONS: &[SdkAction] = &[
    SdkAction {
        id: "activate_automation",
        name: "automations.activate",
        summary: "Activate an automation, so that events start runs",
        field: "action",
        value: "activate",
    },
    SdkAction {
        id: "pause_automation",
        name: "automations.pause",
        summary: "Pause an automation and its runs",
        field: "action",
        value: "pause",
    },
    SdkAction {
        id: "archive_automation",
        name: "automations.archive",
        summary: "Archive an automation and cancel its runs",
        field: "action",
        value: "archive",
    },
    SdkAction {
        id: "cancel_automation_runs",
        name: "automations.cancelRuns",
        summary: "Cancel all runs of an automation",
        field: "action",
        value: "cancel_runs",
    },
];

#[derive(Debug)]
pub enum AutomationChange {
    Act(AutomationAction),
    Edit(Box<AutomationEdit>),
}

/// The fields to change; `None` leaves a field unchanged.
#[derive(Debug)]
pub struct AutomationEdit {
    pub name: Option<String>,
    trigger: Option<Value>,
    steps: Option<Value>,
}

impl AutomationEdit {
    /// The definition with the changes applied.
    ///
    /// # Errors
    /// The errors of the new definition by field.
    pub fn apply(&self, before: &AutomationDefinition) -> Result<AutomationDefinition, Problem> {
        let before = before.to_json();
        let mut notes = FieldDiagnostics::default();
        let part = |given: &Option<Value>, name: &str| given.clone().unwrap_or_else(|| before[name].clone());
        let trigger = part(&self.trigger, "trigger");
        let read = read_definition(&trigger, &part(&self.steps, "steps"), &mut notes);
        read.ok_or_else(|| notes.errors.into())
    }
}

/// Parses a definition; unknown fields become warnings.
fn read_definition(trigger: &Value, steps: &Value, notes: &mut FieldDiagnostics) -> Option<AutomationDefinition> {
    let mut found = ReadNotes::default();
    let definition = parse::parse_definition(trigger, steps, &mut found);
    for (field, text) in found.errors {
        notes.errors.add(&field, text);
    }
    for field in found.ignored {
        notes.warn(format!("`{field}` is not a known field and was ignored"));
    }
    definition
}

fn parse_name(value: &RawValue) -> Result<String, String> {
    let name = fields::parse_header_line(value, NAME_BYTES_MAX)?;
    if name.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(name) }
}

fn json_field(fields: &ObjectFields<'_>, field: &str) -> Option<Value> {
    fields.value(field).and_then(|raw| mail::raw_number::parse(raw.get()).ok())
}

fn report_warnings(call: &Request, notes: &mut FieldDiagnostics) {
    call.warnings.borrow_mut().append(&mut notes.warnings);
}

impl FromRequest for CreateAutomation {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let body = schemas.component("CreateAutomation", |_| {
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
        RequestSpec { parameters: Vec::new(), body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames {
            known: &[("name", "name"), ("trigger", "trigger"), ("steps", "steps")],
            foreign: &[("Name", "name"), ("Trigger", "trigger"), ("Steps", "steps")],
        };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let name = match fields.value("name") {
            None => Err("is required".to_owned()),
            Some(value) => self::parse_name(value),
        };
        let name = name.map_err(|text| notes.errors.add("name", text)).ok();
        let part = |field: &str| json_field(&fields, field).unwrap_or_default();
        let definition = read_definition(&part("trigger"), &part("steps"), &mut notes);
        report_warnings(call, &mut notes);
        match (name, definition) {
            (Some(name), Some(definition)) if notes.errors.is_empty() => Ok(Self { name, definition }),
            _ => Err(notes.errors.into()),
        }
    }
}

fn name_schema() -> Value {
    json!({"type": "string", "maxLength": NAME_BYTES_MAX, "description": "The name"})
}

impl FromRequest for (AutomationPath, AutomationChange) {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let body = schemas.component("UpdateAutomation", |_| {
            let mut body = schema::object_with(
                "An `action`, or the fields to change",
                &[],
                [
                    ("action", schema::string_enum(AutomationAction::WORDS, "The action to perform")),
                    ("name", name_schema()),
                    ("trigger", trigger),
                    ("steps", steps),
                ],
            );
            body["examples"] = json!([{"action": "activate"}]);
            body
        });
        let parameters = vec![AutomationPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let action = fields.value("action").map(|value| {
            let word = fields::parse_text(value)?;
            let text = || format!("must be one of {}", AutomationAction::WORDS.join(", "));
            AutomationAction::from_word(&word).ok_or_else(text)
        });
        let action = action.transpose().map_err(|text| notes.errors.add("action", text)).unwrap_or_default();
        let name = fields.value("name").map(parse_name).transpose();
        let name = name.map_err(|text| notes.errors.add("name", text)).unwrap_or_default();
        let edit =
            AutomationEdit { name, trigger: json_field(&fields, "trigger"), steps: json_field(&fields, "steps") };
        let edits = ["name", "trigger", "steps"].iter().any(|field| fields.is_present_or_misnamed(field));
        if fields.is_present_or_misnamed("action") && edits {
            notes.errors.add("action", "cannot be combined with name, trigger or steps");
        } else if !fields.is_present_or_misnamed("action") && !edits {
            notes.errors.add("action", "is required unless name, trigger or steps is given");
        }
        if let (Some(trigger), Some(steps)) = (&edit.trigger, &edit.steps) {
            // With both parts given, the definition is validated before the automation is read; otherwise the stored
            // part is needed.
            let _whole = read_definition(trigger, steps, &mut notes);
        }
        report_warnings(call, &mut notes);
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let change = action.map_or_else(|| AutomationChange::Edit(Box::new(edit)), AutomationChange::Act);
        Ok((AutomationPath::from_request(call), change))
    }
}

/// Body of `POST /automations/{id}/duplicate`.
#[derive(Debug)]
pub struct DuplicateAutomation {
    /// Derived from the original's name if absent.
    pub name: Option<String>,
}

impl FromRequest for (AutomationPath, DuplicateAutomation) {
    const BODY_BYTES_MAX: Option<usize> = Some(16 << 10);
    const MEDIA: Media = Media::OptionalJson;

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object_with("Options of the copy", &[], [("name", name_schema())]);
        let parameters = vec![AutomationPath::parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[("name", "name")], foreign: &[("Name", "name")] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.optional_body_fields(&NAMES, &mut notes)?;
        let name = fields.value("name").map(parse_name).transpose();
        let name = name.map_err(|text| Problem::field("name", text))?;
        Ok((AutomationPath::from_request(call), DuplicateAutomation { name }))
    }
}
