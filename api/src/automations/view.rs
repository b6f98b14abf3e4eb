//! JSON objects of automations, versions and runs.

use model::automation::condition::{CLAUSES_MAX, FIELD_BYTES_MAX, Op};
use model::automation::definition::{Reentry, StepAction};
use model::automation::parse::{CANCEL_ON_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX};
use model::automation::run::{AutomationRun, CancelSource, CompletionReason, RunMode, RunStatus, StepStatus};
use model::automation::{Automation, AutomationDefinition, AutomationStatus, AutomationVersion, RunCounts, STEPS_MAX};
use model::product_event::NAME_BYTES_MAX as EVENT_NAME_BYTES_MAX;

use crate::prelude::*;

object_view! {
    /// An automation
    #[schema(name = "Automation")]
    pub struct AutomationView, pub fn from_automation(
        automation: &Automation, definition: &AutomationDefinition, counts: RunCounts;
        let mut json = definition.to_json()
    ) {
        /// The automation's id (`aut_…`)
        id: AutomationId = automation.id,
        /// The name
        name: String = automation.name.clone(),
        /// The status
        status: AutomationStatus = automation.status,
        /// The version that new runs follow
        version: u32 = automation.version,
        #[serde(serialize_with = "model::raw_number::serialize")]
        #[schema(with = trigger_schema)]
        trigger: Value = json["trigger"].take(),
        #[serde(serialize_with = "model::raw_number::serialize")]
        #[schema(with = steps_schema)]
        steps: Value = json["steps"].take(),
        counts: RunCountsView = RunCountsView::from_counts(counts),
        /// When it was created
        created_at: JsonTimestamp = JsonTimestamp(automation.created_at),
        /// When it was last changed
        updated_at: JsonTimestamp = JsonTimestamp(automation.updated_at),
        /// When it was last activated
        activated_at: Option<JsonTimestamp> = automation.activated_at.map(JsonTimestamp),
    }
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

object_view! {
    /// A run: one person's execution of an automation
    #[schema(name = "AutomationRun")]
    pub struct AutomationRunView,
    /// The view of a run in the given mode; a dry run passes its own mode.
    pub fn from_run_in_mode(
        run: &AutomationRun, mode: RunMode;
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
        let wait = run.waiting.as_ref()
    ) {
        /// The run's id (`run_…`)
        id: RunId = run.id,
        /// The automation
        automation_id: AutomationId = run.automation,
        /// The version of the automation
        automation_version: u32 = run.version,
        /// The status
        status: RunStatus = run.status,
        /// Whether the run is live or a test
        mode: RunMode = mode,
        /// The event that started it (`ae_…`, `evt_…`)
        event_id: String = run.source.clone(),
        /// The event's name
        event_name: String = run.event_name.clone(),
        /// The person's `user_id` in the product
        user_id: Option<String> = run.user_id.clone(),
        /// The person's email address
        email: Option<String> = run.email.clone(),
        /// The current step
        current_step_index: usize = run.index,
        /// All steps, in order
        steps: Vec<RunStepView> = steps.collect(),
        wait: Option<RunWaitView> =
            wait.map(|wait| RunWaitView { event: wait.event.clone(), until: JsonTimestamp(wait.until) }),
        /// How the run completed
        ended_by: Option<CompletionReason> = run.ended_by,
        /// The cause of the cancellation
        cancelled_by: Option<CancelSource> = run.cancelled_by,
        /// The error, if it failed
        error: Option<String> = run.error.clone(),
        /// When it was created
        created_at: JsonTimestamp = JsonTimestamp(run.created_at),
        /// When the first step started
        started_at: Option<JsonTimestamp> = run.started_at.map(JsonTimestamp),
        /// When it ended
        completed_at: Option<JsonTimestamp> = run.completed_at.map(JsonTimestamp),
    }
}

impl AutomationRunView {
    /// The view of a run that was started by an event.
    pub fn from_run(run: &AutomationRun) -> Self {
        Self::from_run_in_mode(run, RunMode::Live)
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
