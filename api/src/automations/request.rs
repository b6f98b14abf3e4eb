//! Bodies of `POST /automations` and `POST /automations/{id}`.

use httpd::request_object::bounded_text_schema;
use model::automation::parse::{self, ParseNotes as ReadNotes};
use model::automation::{AutomationDefinition, DEFINITION_BYTES_MAX, NAME_BYTES_MAX};

use super::view::{steps_schema, trigger_schema};
use crate::prelude::*;
use crate::sdk::SdkAction;

/// Twice the size of a definition, because JSON escapes it, plus the other fields.
pub const REQUEST_BYTES_MAX: usize = 2 * DEFINITION_BYTES_MAX + (64 << 10);

#[derive(Debug)]
pub struct CreateAutomation {
    pub name: String,
    pub definition: AutomationDefinition,
}

message::words! {
    AutomationAction {
        /// Events start new runs.
        Activate = "activate",
        /// Events start no new runs; existing runs pause.
        Pause = "pause",
        /// Events start no new runs; existing runs are cancelled.
        Archive = "archive",
        /// All runs are cancelled.
        CancelRuns = "cancel_runs",
    }
}

httpd::word_readers!(AutomationAction);

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
    /// The trigger and steps of a definition that is not stored.
    pub fn unsaved(trigger: Option<Value>, steps: Option<Value>) -> Self {
        Self { name: None, trigger, steps }
    }

    /// The definition with the changes applied.
    ///
    /// # Errors
    /// The errors of the new definition by field.
    pub fn apply(&self, before: &AutomationDefinition) -> Result<AutomationDefinition> {
        let before = before.to_json();
        let mut notes = FieldDiagnostics::default();
        let part = |given: &Option<Value>, name: &str| given.clone().unwrap_or_else(|| before[name].clone());
        let trigger = part(&self.trigger, "trigger");
        let found = if self.steps.is_some() { ReadNotes::default() } else { ReadNotes::of_stored_steps() };
        let read = read_definition(&trigger, &part(&self.steps, "steps"), found, &mut notes);
        read.ok_or_else(|| notes.errors.into())
    }
}

/// Parses a definition; unknown fields become warnings.
fn read_definition(
    trigger: &Value,
    steps: &Value,
    mut found: ReadNotes,
    notes: &mut FieldDiagnostics,
) -> Option<AutomationDefinition> {
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

fn name_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(1, NAME_BYTES_MAX)
}

fn json_field(fields: &ObjectFields<'_>, field: &str) -> Option<Value> {
    fields.value(field).and_then(|raw| model::raw_number::parse(raw.get()).ok())
}

/// The definition's parser reports its errors.
pub(super) fn read_trigger(fields: &ObjectFields<'_>, _: &mut FieldDiagnostics) -> Option<Value> {
    json_field(fields, "trigger")
}

pub(super) fn read_steps(fields: &ObjectFields<'_>, _: &mut FieldDiagnostics) -> Option<Value> {
    json_field(fields, "steps")
}

/// A new automation
#[derive(Debug, RequestObject)]
#[schema(name = "CreateAutomation", examples = [{
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
}])]
struct AutomationFields {
    /// The name
    #[field(foreign = ["Name"], required, parse = parse_name, schema = name_schema)]
    name: Option<String>,
    #[field(foreign = ["Trigger"], required, read = read_trigger, schema = trigger_schema)]
    trigger: Option<Value>,
    #[field(foreign = ["Steps"], required, read = read_steps, schema = steps_schema)]
    steps: Option<Value>,
}

impl FromRequest for CreateAutomation {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(AutomationFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let mut definition = None;
        let AutomationFields { name, .. } = read_checked_body(call, |given: &AutomationFields, _, notes| {
            let part = |part: &Option<Value>| part.clone().unwrap_or_default();
            definition = read_definition(&part(&given.trigger), &part(&given.steps), ReadNotes::default(), notes);
        })?;
        let whole = name.zip(definition).map(|(name, definition)| Self { name, definition });
        whole.ok_or_else(|| Problem::internal("an incomplete automation and no error"))
    }
}

/// An `action`, or the fields to change
#[derive(Debug, RequestObject)]
#[schema(name = "UpdateAutomation", examples = [{"action": "activate"}])]
struct AutomationChangeFields {
    /// The action to perform
    #[field(foreign = ["Action"])]
    action: Option<AutomationAction>,
    /// The name
    #[field(foreign = ["Name"], parse = parse_name, schema = name_schema)]
    name: Option<String>,
    #[field(foreign = ["Trigger"], read = read_trigger, schema = trigger_schema)]
    trigger: Option<Value>,
    #[field(foreign = ["Steps"], read = read_steps, schema = steps_schema)]
    steps: Option<Value>,
}

impl AutomationChangeFields {
    fn check(&self, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
        let edits = ["name", "trigger", "steps"].iter().any(|field| fields.is_present_or_misnamed(field));
        if fields.is_present_or_misnamed("action") && edits {
            notes.errors.add("action", "cannot be combined with name, trigger or steps");
        } else if !fields.is_present_or_misnamed("action") && !edits {
            notes.errors.add("action", "is required unless name, trigger or steps is given");
        }
        if let (Some(trigger), Some(steps)) = (&self.trigger, &self.steps) {
            // With both parts given, the definition is validated before the automation is read; otherwise the stored
            // part is needed.
            let _whole = read_definition(trigger, steps, ReadNotes::default(), notes);
        }
    }
}

impl FromRequest for AutomationChange {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(AutomationChangeFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let AutomationChangeFields { action, name, trigger, steps } =
            read_checked_body(call, AutomationChangeFields::check)?;
        let edit = || AutomationChange::Edit(Box::new(AutomationEdit { name, trigger, steps }));
        Ok(action.map_or_else(edit, AutomationChange::Act))
    }
}

/// Options of the copy
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = 16 << 10, optional_body)]
pub struct DuplicateAutomation {
    /// The name; derived from the original's if absent
    #[field(foreign = ["Name"], parse = parse_name, schema = name_schema)]
    pub name: Option<String>,
}
