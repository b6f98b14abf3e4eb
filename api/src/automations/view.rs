//! Automations, their versions and their runs as clients see them (completions-email.md 2.12).

use mail::automation::condition::Op;
use mail::automation::definition::{Reentry, StepAction};
use mail::automation::run::{AutomationRun, CancelSource, CompletionReason, RunMode, RunStatus, StepStatus};
use mail::automation::{Automation, AutomationDefinition, AutomationStatus, AutomationVersion, RunCounts, STEPS_MAX};
use mail::id::{AutomationId, RunId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::emails::view::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// An automation.
#[derive(Debug, Serialize)]
pub struct AutomationView {
    id: AutomationId,
    name: String,
    status: AutomationStatus,
    version: u32,
    #[serde(serialize_with = "mail::number::serialize")]
    trigger: Value,
    #[serde(serialize_with = "mail::number::serialize")]
    steps: Value,
    counts: RunCounts,
    created_at: JsonTimestamp,
    updated_at: JsonTimestamp,
    activated_at: Option<JsonTimestamp>,
}

impl AutomationView {
    /// What is shown of an automation by itself.
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

    /// What a list shows of it: without the bodies of emails, which may be large.
    #[must_use]
    pub fn without_bodies(mut self) -> Self {
        for step in self.steps.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            step.retain(|name, _| name != "html" && name != "text");
        }
        self
    }
}

/// One automation, in answer to whatever changes or shows it.
#[derive(Debug, Serialize)]
pub struct AutomationResponse {
    /// The automation.
    pub automation: AutomationView,
}

/// A page of automations.
#[derive(Debug, Serialize)]
pub struct AutomationList {
    /// The automations, newest first.
    pub automations: Vec<AutomationView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

/// A version.
#[derive(Debug, Serialize)]
pub struct AutomationVersionView {
    version: u32,
    #[serde(serialize_with = "mail::number::serialize")]
    trigger: Value,
    #[serde(serialize_with = "mail::number::serialize")]
    steps: Value,
    created_at: JsonTimestamp,
}

impl AutomationVersionView {
    /// What is shown of a version.
    #[must_use]
    pub fn from_version(version: &AutomationVersion) -> Self {
        let mut json = version.definition.to_json();
        let (trigger, steps) = (json["trigger"].take(), json["steps"].take());
        Self { version: version.number, trigger, steps, created_at: JsonTimestamp(version.created_at) }
    }
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct AutomationVersionList {
    /// The versions, newest first.
    pub versions: Vec<AutomationVersionView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
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

/// A run.
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
    /// What is shown of a run that an event started.
    #[must_use]
    pub fn from_run(run: &AutomationRun) -> Self {
        Self::from_run_in_mode(run, RunMode::Live)
    }

    /// What is shown of a run of any mode.
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

/// One run.
#[derive(Debug, Serialize)]
pub struct AutomationRunResponse {
    /// The run.
    pub run: AutomationRunView,
}

/// A page of runs.
#[derive(Debug, Serialize)]
pub struct AutomationRunList {
    /// The runs, newest first.
    pub runs: Vec<AutomationRunView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

fn condition_schema(schemas: &mut Schemas) -> Value {
    schemas.component("AutomationCondition", |_| {
        let question = schema::object_with(
            "A question",
            &["field", "op"],
            [
                ("field", schema::string("Of what: `event.data.plan`, `event.email`, `wait.received`")),
                ("op", schema::string_enum(Op::WORDS, "What is asked")),
                ("value", json!({"description": "What it is compared with; may be a reference"})),
            ],
        );
        let questions = |text: &str| schema::list(question.clone(), text);
        let mut condition = schema::object_with(
            "Questions, all or any of which must hold",
            &[],
            [("all", questions("All must hold")), ("any", questions("One must hold"))],
        );
        schema::allow_null_for_optional(&mut condition);
        condition
    })
}

/// The schema of a trigger.
#[must_use]
pub fn trigger_schema(schemas: &mut Schemas) -> Value {
    let condition = condition_schema(schemas);
    schemas.component("AutomationTrigger", |_| {
        let mut trigger = schema::object_with(
            "What starts a run",
            &["event"],
            [
                ("event", schema::string("The event: `user.created`, or one of ours: `email.opened`")),
                ("filter", condition),
                ("cancel_on_events", schema::list(json!({"type": "string"}), "Events that end the person's runs")),
                ("reentry", schema::string_enum(Reentry::WORDS, "Whether one person may have several runs")),
                ("include_machine", schema::boolean("Opens and clicks by machines count as well")),
            ],
        );
        schema::allow_null_for_optional(&mut trigger);
        trigger["examples"] = json!([{
            "event": "user.created", "cancel_on_events": ["subscription.started"], "reentry": "always",
        }]);
        trigger
    })
}

/// The schema of steps.
#[must_use]
pub fn steps_schema(schemas: &mut Schemas) -> Value {
    let step = schemas.component("AutomationStep", |_| {
        let mut step = schema::object_with(
            "A step; its other fields follow from its type",
            &["type"],
            [
                ("type", schema::string_enum(StepAction::WORDS, "What it does")),
                ("key", schema::string("By what other steps name it")),
                ("name", schema::string("What people call it")),
            ],
        );
        schema::allow_null_for_optional(&mut step);
        step["additionalProperties"] = json!(true);
        step["examples"] = json!([{"type": "delay", "duration": "2d4h"}]);
        step
    });
    json!({"type": "array", "items": step, "maxItems": STEPS_MAX, "description": "What a run does, in order"})
}

impl ToSchema for AutomationView {
    fn schema(schemas: &mut Schemas) -> Value {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        schemas.component("Automation", |_| {
            let counts = schema::object(
                "How many runs there are",
                [
                    ("running", schema::count("At a step")),
                    ("waiting", schema::count("Waiting for a time or an event")),
                    ("completed", schema::count("Ended well")),
                    ("failed", schema::count("Ended by an error")),
                    ("cancelled", schema::count("Ended from outside")),
                ],
            );
            schema::object(
                "An automation",
                [
                    ("id", schema::string("Its id (`aut_…`)")),
                    ("name", schema::string("Its name, for people")),
                    ("status", schema::string_enum(AutomationStatus::WORDS, "Where it stands")),
                    ("version", schema::count("The version that new runs follow")),
                    ("trigger", trigger),
                    ("steps", steps),
                    ("counts", counts),
                    ("created_at", schema::time("When it was created")),
                    ("updated_at", schema::time("When anything of it was changed")),
                    ("activated_at", schema::nullable_time("When it was last activated")),
                ],
            )
        })
    }
}

impl ToSchema for AutomationResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let automation = AutomationView::schema(schemas);
        schema::object("One automation", [("automation", automation)])
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
                    ("created_at", schema::time("When it was made")),
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
            ("index", schema::count("Its place")),
            ("key", schema::nullable_string("Its key")),
            ("type", schema::string_enum(StepAction::WORDS, "What it does")),
            ("status", schema::string_enum(StepStatus::WORDS, "Where it stands")),
            (
                "output",
                json!({
                    "type": ["object", "null"],
                    "description": "What came of it: `email_id`; `withheld` says why somebody was not answered",
                }),
            ),
            ("error", schema::nullable_string("Why it could not be done")),
            ("started_at", schema::nullable_time("When it began")),
            ("completed_at", schema::nullable_time("When it ended")),
        ],
    )
}

impl ToSchema for AutomationRunView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("AutomationRun", |_| {
            let mut wait = schema::object(
                "What it waits for",
                [
                    ("event", schema::nullable_string("The event; null when it waits for the time alone")),
                    ("until", schema::time("Until when")),
                ],
            );
            schema::allow_null(&mut wait);
            let nullable_words = |words: &[&str], text: &str| {
                let mut schema = schema::string_enum(words, text);
                schema::allow_null(&mut schema);
                schema
            };
            schema::object(
                "A run: one person's way through an automation",
                [
                    ("id", schema::string("Its id (`run_…`)")),
                    ("automation_id", schema::string("The automation")),
                    ("automation_version", schema::count("The version that it follows")),
                    ("status", schema::string_enum(RunStatus::WORDS, "Where it stands")),
                    ("mode", schema::string_enum(RunMode::WORDS, "For what it was made")),
                    ("event_id", schema::string("The event that started it (`ae_…`, `evt_…`)")),
                    ("event_name", schema::string("What that is called")),
                    ("user_id", schema::nullable_string("The person, by the product's own id")),
                    ("email", schema::nullable_string("The person, by address")),
                    ("current_step_index", schema::count("The step whose turn it is")),
                    ("steps", schema::list(step_state_schema(), "All steps, in order")),
                    ("wait", wait),
                    ("ended_by", nullable_words(CompletionReason::WORDS, "How it ended well")),
                    ("cancelled_by", nullable_words(CancelSource::WORDS, "Who ended it from outside")),
                    ("error", schema::nullable_string("Why it failed")),
                    ("created_at", schema::time("When it was made")),
                    ("started_at", schema::nullable_time("When its first step began")),
                    ("completed_at", schema::nullable_time("When it ended")),
                ],
            )
        })
    }
}

impl ToSchema for AutomationRunResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let run = AutomationRunView::schema(schemas);
        schema::object("One run", [("run", run)])
    }
}

impl ToSchema for AutomationRunList {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::list_page("runs", AutomationRunView::schema(schemas))
    }
}
