//! JSON objects of automations, versions and runs.

use model::automation::condition::{CLAUSES_MAX, FIELD_BYTES_MAX, Op};
use model::automation::definition::{Reentry, StepAction};
use model::automation::parse::{CANCEL_ON_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX};
use model::automation::run::{AutomationRun, CancelSource, CompletionReason, RunMode, RunStatus, StepStatus};
use model::automation::{Automation, AutomationDefinition, AutomationStatus, AutomationVersion, RunCounts, STEPS_MAX};
use model::product_event::NAME_BYTES_MAX as EVENT_NAME_BYTES_MAX;

use crate::prelude::*;

/// An automation
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Automation")]
pub struct AutomationView {
    /// The automation's id (`aut_…`)
    id: AutomationId,
    /// The name
    name: String,
    /// The status
    status: AutomationStatus,
    /// The version that new runs follow
    version: u32,
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(with = trigger_schema)]
    trigger: Value,
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(with = steps_schema)]
    steps: Value,
    counts: RunCountsView,
    /// When it was created
    created_at: JsonTimestamp,
    /// When it was last changed
    updated_at: JsonTimestamp,
    /// When it was last activated
    activated_at: Option<JsonTimestamp>,
}

/// Number of runs by status
#[derive(Debug, Serialize, ToSchema)]
struct RunCountsView {
    /// Runs that execute a step
    running: u64,
    /// Runs that wait for a time or an event
    waiting: u64,
    /// Runs that completed
    completed: u64,
    /// Runs that failed
    failed: u64,
    /// Runs that were cancelled
    cancelled: u64,
}

impl RunCountsView {
    fn from_counts(counts: RunCounts) -> Self {
        let RunCounts { running, waiting, completed, failed, cancelled } = counts;
        Self { running, waiting, completed, failed, cancelled }
    }
}

impl AutomationView {
    pub fn from_automation(automation: &Automation, definition: &AutomationDefinition, counts: RunCounts) -> Self {
        let mut json = definition.to_json();
        Self {
            id: automation.id,
            name: automation.name.clone(),
            status: automation.status,
            version: automation.version,
            trigger: json["trigger"].take(),
            steps: json["steps"].take(),
            counts: RunCountsView::from_counts(counts),
            created_at: JsonTimestamp(automation.created_at),
            updated_at: JsonTimestamp(automation.updated_at),
            activated_at: automation.activated_at.map(JsonTimestamp),
        }
    }

    /// Drops the bodies of email steps, which may be large; for lists.
    #[must_use]
    pub fn without_bodies(mut self) -> Self {
        for step in self.steps.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            step.retain(|name, _| name != "html" && name != "text");
        }
        self
    }
}

object_response! { "A response with an automation", pub AutomationResponse { automation: AutomationView } }

list_response! { pub AutomationList { automations: AutomationView } }

/// A version
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AutomationVersion")]
pub struct AutomationVersionView {
    /// 1, 2, 3 …
    version: u32,
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(with = trigger_schema)]
    trigger: Value,
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(with = steps_schema)]
    steps: Value,
    /// When it was created
    created_at: JsonTimestamp,
}

impl AutomationVersionView {
    pub fn from_version(version: &AutomationVersion) -> Self {
        let mut json = version.definition.to_json();
        let (trigger, steps) = (json["trigger"].take(), json["steps"].take());
        Self { version: version.number, trigger, steps, created_at: JsonTimestamp(version.created_at) }
    }
}

list_response! { pub AutomationVersionList { versions: AutomationVersionView } }

/// A step of a run
#[derive(Debug, Serialize, ToSchema)]
struct RunStepView {
    /// The position, from 0
    index: usize,
    /// The step's key
    key: Option<String>,
    /// The step type
    #[schema(enum = StepAction::WORDS)]
    r#type: String,
    /// The status
    status: StepStatus,
    /// The result: `email_id`, or `withheld` with the reason why no reply was sent
    #[schema(type = ["object", "null"])]
    output: Option<Value>,
    /// The error, if the step failed
    error: Option<String>,
    /// When it started
    started_at: Option<JsonTimestamp>,
    /// When it ended
    completed_at: Option<JsonTimestamp>,
}

/// The current wait
#[derive(Debug, Serialize, ToSchema)]
struct RunWaitView {
    /// The awaited event; null if the run waits for a time only
    event: Option<String>,
    /// End of the wait
    until: JsonTimestamp,
}

/// A run: one person's execution of an automation
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AutomationRun")]
pub struct AutomationRunView {
    /// The run's id (`run_…`)
    id: RunId,
    /// The automation
    automation_id: AutomationId,
    /// The version of the automation
    automation_version: u32,
    /// The status
    status: RunStatus,
    /// Whether the run is live or a test
    mode: RunMode,
    /// The event that started it (`ae_…`, `evt_…`)
    event_id: String,
    /// The event's name
    event_name: String,
    /// The person's `user_id` in the product
    user_id: Option<String>,
    /// The person's email address
    email: Option<String>,
    /// The current step
    current_step_index: usize,
    /// All steps, in order
    steps: Vec<RunStepView>,
    wait: Option<RunWaitView>,
    /// How the run completed
    ended_by: Option<CompletionReason>,
    /// The cause of the cancellation
    cancelled_by: Option<CancelSource>,
    /// The error, if it failed
    error: Option<String>,
    /// When it was created
    created_at: JsonTimestamp,
    /// When the first step started
    started_at: Option<JsonTimestamp>,
    /// When it ended
    completed_at: Option<JsonTimestamp>,
}

impl AutomationRunView {
    /// The view of a run that was started by an event.
    pub fn from_run(run: &AutomationRun) -> Self {
        Self::from_run_in_mode(run, RunMode::Live)
    }

    /// The view of a run in the given mode; a dry run passes its own mode.
    pub fn from_run_in_mode(run: &AutomationRun, mode: RunMode) -> Self {
        let steps = run.steps.iter().enumerate().map(|(index, step)| RunStepView {
            index,
            key: step.key.clone(),
            r#type: step.r#type.clone(),
            status: step.status,
            output: Some(step.output.clone()).filter(|output| !output.is_null()),
            error: step.error.clone(),
            started_at: step.started_at.map(JsonTimestamp),
            completed_at: step.completed_at.map(JsonTimestamp),
        });
        let wait = run.waiting.as_ref();
        Self {
            id: run.id,
            automation_id: run.automation,
            automation_version: run.version,
            status: run.status,
            mode,
            event_id: run.source.clone(),
            event_name: run.event_name.clone(),
            user_id: run.user_id.clone(),
            email: run.email.clone(),
            current_step_index: run.index,
            steps: steps.collect(),
            wait: wait.map(|wait| RunWaitView { event: wait.event.clone(), until: JsonTimestamp(wait.until) }),
            ended_by: run.ended_by,
            cancelled_by: run.cancelled_by,
            error: run.error.clone(),
            created_at: JsonTimestamp(run.created_at),
            started_at: run.started_at.map(JsonTimestamp),
            completed_at: run.completed_at.map(JsonTimestamp),
        }
    }
}

object_response! { "A response with a run", pub AutomationRunResponse { run: AutomationRunView } }

list_response! { pub AutomationRunList { runs: AutomationRunView } }

fn condition_schema(schemas: &mut Schemas) -> Value {
    schemas.component("AutomationCondition", |_| {
        let question = schema::object_with(
            "A comparison",
            &["field", "op"],
            [
                (
                    "field",
                    schema::bounded_string(
                        FIELD_BYTES_MAX,
                        "The field to compare: `event.data.plan`, `event.email`, `wait.received`",
                    ),
                ),
                ("op", schema::string_enum(Op::WORDS, "The comparison operator")),
                ("value", json!({"description": "The value to compare with; may be a reference"})),
            ],
        );
        let condition_list =
            |text: &str| json!({"type": "array", "items": question, "maxItems": CLAUSES_MAX, "description": text});
        let mut condition = schema::object_with(
            "Comparisons of which all or any must be true",
            &[],
            [("all", condition_list("All must be true")), ("any", condition_list("At least one must be true"))],
        );
        schema::allow_null_for_optional(&mut condition);
        condition
    })
}

fn event_name_schema(description: &str) -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": EVENT_NAME_BYTES_MAX, "description": description,
    })
}

pub fn trigger_schema(schemas: &mut Schemas) -> Value {
    let condition = condition_schema(schemas);
    schemas.component("AutomationTrigger", |_| {
        let mut trigger = schema::object_with(
            "The trigger that starts a run",
            &["event"],
            [
                (
                    "event",
                    event_name_schema("The event name: your own (`user.created`) or the service's (`email.opened`)"),
                ),
                ("filter", condition),
                (
                    "cancel_on_events",
                    json!({
                        "type": "array", "items": event_name_schema("An event name"), "maxItems": CANCEL_ON_MAX,
                        "description": "Events that cancel the person's runs",
                    }),
                ),
                ("reentry", schema::string_enum(Reentry::WORDS, "Whether a person can have several runs")),
                ("include_machine", schema::boolean("Whether opens and clicks by machines trigger as well")),
            ],
        );
        schema::allow_null_for_optional(&mut trigger);
        trigger["examples"] = json!([{
            "event": "user.created", "cancel_on_events": ["subscription.started"], "reentry": "always",
        }]);
        trigger
    })
}

/// Schema of the list of steps.
pub fn steps_schema(schemas: &mut Schemas) -> Value {
    let step = schemas.component("AutomationStep", |_| {
        let mut step = schema::object_with(
            "A step; its other fields depend on its type",
            &["type"],
            [
                ("type", schema::string_enum(StepAction::WORDS, "The step type")),
                (
                    "key",
                    json!({
                        "type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "pattern": "^[A-Za-z0-9_.-]+$",
                        "description": "Key by which other steps refer to this step",
                    }),
                ),
                ("name", schema::bounded_string(NAME_BYTES_MAX, "The name")),
            ],
        );
        schema::allow_null_for_optional(&mut step);
        step["additionalProperties"] = json!(true);
        step["examples"] = json!([{"type": "delay", "duration": "2d4h"}]);
        step
    });
    json!({"type": "array", "items": step, "maxItems": STEPS_MAX, "description": "The steps of a run, in order"})
}
