//! JSON objects of automations, versions and runs.

use mail::automation::condition::Op;
use mail::automation::definition::{Reentry, StepAction};
use mail::automation::run::{AutomationRun, CancelSource, CompletionReason, RunMode, RunStatus, StepStatus};
use mail::automation::{Automation, AutomationDefinition, AutomationStatus, AutomationVersion, RunCounts, STEPS_MAX};
use mail::id::{AutomationId, RunId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

#[derive(Debug, Serialize)]
pub struct AutomationView {
    id: AutomationId,
    name: String,
    status: AutomationStatus,
    version: u32,
    #[serde(serialize_with = "mail::raw_number::serialize")]
    trigger: Value,
    #[serde(serialize_with = "mail::raw_number::serialize")]
    steps: Value,
    counts: RunCounts,
    created_at: JsonTimestamp,
    updated_at: JsonTimestamp,
    activated_at: Option<JsonTimestamp>,
}

impl AutomationView {
    #[must_use]
    pub fn from_automation(automation: &Automation, definition: &AutomationDefinition, counts: RunCounts) -> Self {
        let mut json = definition.to_json();
        Self {
            id: automation.id,
            name: automation.name.clone(),
            status: automation.status,
            version: automation.version,
            trigger: json["trigger"].take(),
            steps: json["steps"].take(),
            counts,
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

#[derive(Debug, Serialize)]
pub struct AutomationResponse {
    pub automation: AutomationView,
}

#[derive(Debug, Serialize)]
pub struct AutomationList {
    pub automations: Vec<AutomationView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct AutomationVersionView {
    version: u32,
    #[serde(serialize_with = "mail::raw_number::serialize")]
    trigger: Value,
    #[serde(serialize_with = "mail::raw_number::serialize")]
    steps: Value,
    created_at: JsonTimestamp,
}

impl AutomationVersionView {
    #[must_use]
    pub fn from_version(version: &AutomationVersion) -> Self {
        let mut json = version.definition.to_json();
        let (trigger, steps) = (json["trigger"].take(), json["steps"].take());
        Self { version: version.number, trigger, steps, created_at: JsonTimestamp(version.created_at) }
    }
}

#[derive(Debug, Serialize)]
pub struct AutomationVersionList {
    pub versions: Vec<AutomationVersionView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct RunStepView {
    index: usize,
    key: Option<String>,
    r#type: String,
    status: StepStatus,
    output: Option<Value>,
    error: Option<String>,
    started_at: Option<JsonTimestamp>,
    completed_at: Option<JsonTimestamp>,
}

#[derive(Debug, Serialize)]
struct RunWaitView {
    event: Option<String>,
    until: JsonTimestamp,
}

#[derive(Debug, Serialize)]
pub struct AutomationRunView {
    id: RunId,
    automation_id: AutomationId,
    automation_version: u32,
    status: RunStatus,
    mode: RunMode,
    event_id: String,
    event_name: String,
    user_id: Option<String>,
    email: Option<String>,
    current_step_index: usize,
    steps: Vec<RunStepView>,
    wait: Option<RunWaitView>,
    ended_by: Option<CompletionReason>,
    cancelled_by: Option<CancelSource>,
    error: Option<String>,
    created_at: JsonTimestamp,
    started_at: Option<JsonTimestamp>,
    completed_at: Option<JsonTimestamp>,
}

impl AutomationRunView {
    /// The view of a run that was started by an event.
    #[must_use]
    pub fn from_run(run: &AutomationRun) -> Self {
        Self::from_run_in_mode(run, RunMode::Live)
    }

    /// The view of a run in the given mode; a dry run passes its own mode.
    #[must_use]
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

#[derive(Debug, Serialize)]
pub struct AutomationRunResponse {
    pub run: AutomationRunView,
}

#[derive(Debug, Serialize)]
pub struct AutomationRunList {
    pub runs: Vec<AutomationRunView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

fn condition_schema(schemas: &mut Schemas) -> Value {
    schemas.component("AutomationCondition", |_| {
        let question = schema::object_with(
            "A comparison",
            &["field", "op"],
            [
                ("field", schema::string("The field to compare: `event.data.plan`, `event.email`, `wait.received`")),
                ("op", schema::string_enum(Op::WORDS, "The comparison operator")),
                ("value", json!({"description": "The value to compare with; may be a reference"})),
            ],
        );
        let condition_list = |text: &str| schema::list(question.clone(), text);
        let mut condition = schema::object_with(
            "Comparisons of which all or any must be true",
            &[],
            [("all", condition_list("All must be true")), ("any", condition_list("At least one must be true"))],
        );
        schema::allow_null_for_optional(&mut condition);
        condition
    })
}

/// Schema of a trigger.
#[must_use]
pub fn trigger_schema(schemas: &mut Schemas) -> Value {
    let condition = condition_schema(schemas);
    schemas.component("AutomationTrigger", |_| {
        let mut trigger = schema::object_with(
            "The trigger that starts a run",
            &["event"],
            [
                (
                    "event",
                    schema::string("The event name: your own (`user.created`) or the service's (`email.opened`)"),
                ),
                ("filter", condition),
                ("cancel_on_events", schema::list(json!({"type": "string"}), "Events that cancel the person's runs")),
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
#[must_use]
pub fn steps_schema(schemas: &mut Schemas) -> Value {
    let step = schemas.component("AutomationStep", |_| {
        let mut step = schema::object_with(
            "A step; its other fields depend on its type",
            &["type"],
            [
                ("type", schema::string_enum(StepAction::WORDS, "The step type")),
                ("key", schema::string("Key by which other steps refer to this step")),
                ("name", schema::string("The name")),
            ],
        );
        schema::allow_null_for_optional(&mut step);
        step["additionalProperties"] = json!(true);
        step["examples"] = json!([{"type": "delay", "duration": "2d4h"}]);
        step
    });
    json!({"type": "array", "items": step, "maxItems": STEPS_MAX, "description": "The steps of a run, in order"})
}

impl ToSchema for AutomationView {
    fn schema(schemas: &mut Schemas) -> Value {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        schemas.component("Automation", |_| {
            let counts = schema::object(
                "Number of runs by status",
                [
                    ("running", schema::count("Runs that execute a step")),
                    ("waiting", schema::count("Runs that wait for a time or an event")),
                    ("completed", schema::count("Runs that completed")),
                    ("failed", schema::count("Runs that failed")),
                    ("cancelled", schema::count("Runs that were cancelled")),
                ],
            );
            schema::object(
                "An automation",
                [
                    ("id", schema::string("The automation's id (`aut_…`)")),
                    ("name", schema::string("The name")),
                    ("status", schema::string_enum(AutomationStatus::WORDS, "The status")),
                    ("version", schema::count("The version that new runs follow")),
                    ("trigger", trigger),
                    ("steps", steps),
                    ("counts", counts),
                    ("created_at", schema::time("When it was created")),
                    ("updated_at", schema::time("When it was last changed")),
                    ("activated_at", schema::nullable_time("When it was last activated")),
                ],
            )
        })
    }
}

impl ToSchema for AutomationResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let automation = AutomationView::schema(schemas);
        schema::object("A response with an automation", [("automation", automation)])
    }
}

impl ToSchema for AutomationList {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::list_page("automations", AutomationView::schema(schemas))
    }
}

impl ToSchema for AutomationVersionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let version = schemas.component("AutomationVersion", |_| {
            schema::object(
                "A version",
                [
                    ("version", schema::count("1, 2, 3 …")),
                    ("trigger", trigger),
                    ("steps", steps),
                    ("created_at", schema::time("When it was created")),
                ],
            )
        });
        schema::list_page("versions", version)
    }
}

fn step_state_schema() -> Value {
    schema::object(
        "A step of a run",
        [
            ("index", schema::count("The position, from 0")),
            ("key", schema::nullable_string("The step's key")),
            ("type", schema::string_enum(StepAction::WORDS, "The step type")),
            ("status", schema::string_enum(StepStatus::WORDS, "The status")),
            (
                "output",
                json!({
                    "type": ["object", "null"],
                    "description": "The result: `email_id`, or `withheld` with the reason why no reply was sent",
                }),
            ),
            ("error", schema::nullable_string("The error, if the step failed")),
            ("started_at", schema::nullable_time("When it started")),
            ("completed_at", schema::nullable_time("When it ended")),
        ],
    )
}

impl ToSchema for AutomationRunView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("AutomationRun", |_| {
            let mut wait = schema::object(
                "The current wait",
                [
                    ("event", schema::nullable_string("The awaited event; null if the run waits for a time only")),
                    ("until", schema::time("End of the wait")),
                ],
            );
            schema::allow_null(&mut wait);
            let nullable_words = |words: &[&str], text: &str| {
                let mut schema = schema::string_enum(words, text);
                schema::allow_null(&mut schema);
                schema
            };
            schema::object(
                "A run: one person's execution of an automation",
                [
                    ("id", schema::string("The run's id (`run_…`)")),
                    ("automation_id", schema::string("The automation")),
                    ("automation_version", schema::count("The version of the automation")),
                    ("status", schema::string_enum(RunStatus::WORDS, "The status")),
                    ("mode", schema::string_enum(RunMode::WORDS, "Whether the run is live or a test")),
                    ("event_id", schema::string("The event that started it (`ae_…`, `evt_…`)")),
                    ("event_name", schema::string("The event's name")),
                    ("user_id", schema::nullable_string("The person's `user_id` in the product")),
                    ("email", schema::nullable_string("The person's email address")),
                    ("current_step_index", schema::count("The current step")),
                    ("steps", schema::list(step_state_schema(), "All steps, in order")),
                    ("wait", wait),
                    ("ended_by", nullable_words(CompletionReason::WORDS, "How the run completed")),
                    ("cancelled_by", nullable_words(CancelSource::WORDS, "What cancelled the run")),
                    ("error", schema::nullable_string("The error, if it failed")),
                    ("created_at", schema::time("When it was created")),
                    ("started_at", schema::nullable_time("When the first step started")),
                    ("completed_at", schema::nullable_time("When it ended")),
                ],
            )
        })
    }
}

impl ToSchema for AutomationRunResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let run = AutomationRunView::schema(schemas);
        schema::object("A response with a run", [("run", run)])
    }
}

impl ToSchema for AutomationRunList {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::list_page("runs", AutomationRunView::schema(schemas))
    }
}
