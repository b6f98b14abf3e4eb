//! Automations, their versions and their runs as clients see them (completions-email.md 2.12).

use mail::automation::condition::Op;
use mail::automation::definition::{Action, Reentry};
use mail::automation::run::{CancelledBy, EndedBy, Mode, Run, RunStatus, StepStatus};
use mail::automation::{Automation, AutomationStatus, Counts, Definition, STEPS_MAX, Version};
use mail::id::{AutomationId, RunId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::emails::view::Moment;
use crate::schema::{self, Describe, Schemas};

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
    counts: Counts,
    created_at: Moment,
    updated_at: Moment,
    activated_at: Option<Moment>,
}

impl AutomationView {
    /// What is shown of an automation by itself.
    #[must_use]
    pub fn of(automation: &Automation, definition: &Definition, counts: Counts) -> Self {
        let mut json = definition.to_json();
        Self {
            id: automation.id,
            name: automation.name.clone(),
            status: automation.status,
            version: automation.version,
            trigger: json["trigger"].take(),
            steps: json["steps"].take(),
            counts,
            created_at: Moment(automation.created_at),
            updated_at: Moment(automation.updated_at),
            activated_at: automation.activated_at.map(Moment),
        }
    }

    /// What a list shows of it: without the bodies of emails, which may be large.
    #[must_use]
    pub fn listed(mut self) -> Self {
        for step in self.steps.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            step.retain(|name, _| name != "html" && name != "text");
        }
        self
    }
}

/// One automation, in answer to whatever changes or shows it.
#[derive(Debug, Serialize)]
pub struct OneAutomation {
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
pub struct VersionView {
    version: u32,
    #[serde(serialize_with = "mail::number::serialize")]
    trigger: Value,
    #[serde(serialize_with = "mail::number::serialize")]
    steps: Value,
    created_at: Moment,
}

impl VersionView {
    /// What is shown of a version.
    #[must_use]
    pub fn of(version: &Version) -> Self {
        let mut json = version.definition.to_json();
        let (trigger, steps) = (json["trigger"].take(), json["steps"].take());
        Self { version: version.number, trigger, steps, created_at: Moment(version.created_at) }
    }
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct VersionList {
    /// The versions, newest first.
    pub versions: Vec<VersionView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct StepView {
    index: usize,
    key: Option<String>,
    r#type: String,
    status: StepStatus,
    output: Option<Value>,
    error: Option<String>,
    started_at: Option<Moment>,
    completed_at: Option<Moment>,
}

#[derive(Debug, Serialize)]
struct WaitView {
    event: Option<String>,
    until: Moment,
}

/// A run.
#[derive(Debug, Serialize)]
pub struct RunView {
    id: RunId,
    automation_id: AutomationId,
    automation_version: u32,
    status: RunStatus,
    mode: Mode,
    event_id: String,
    event_name: String,
    user_id: Option<String>,
    email: Option<String>,
    current_step_index: usize,
    steps: Vec<StepView>,
    wait: Option<WaitView>,
    ended_by: Option<EndedBy>,
    cancelled_by: Option<CancelledBy>,
    error: Option<String>,
    created_at: Moment,
    started_at: Option<Moment>,
    completed_at: Option<Moment>,
}

impl RunView {
    /// What is shown of a run that an event started.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self::in_mode(run, Mode::Live)
    }

    /// What is shown of a run of any mode.
    #[must_use]
    pub fn in_mode(run: &Run, mode: Mode) -> Self {
        let steps = run.steps.iter().enumerate().map(|(index, step)| StepView {
            index,
            key: step.key.clone(),
            r#type: step.r#type.clone(),
            status: step.status,
            output: Some(step.output.clone()).filter(|output| !output.is_null()),
            error: step.error.clone(),
            started_at: step.started_at.map(Moment),
            completed_at: step.completed_at.map(Moment),
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
            wait: wait.map(|wait| WaitView { event: wait.event.clone(), until: Moment(wait.until) }),
            ended_by: run.ended_by,
            cancelled_by: run.cancelled_by,
            error: run.error.clone(),
            created_at: Moment(run.created_at),
            started_at: run.started_at.map(Moment),
            completed_at: run.completed_at.map(Moment),
        }
    }
}

/// One run.
#[derive(Debug, Serialize)]
pub struct OneRun {
    /// The run.
    pub run: RunView,
}

/// A page of runs.
#[derive(Debug, Serialize)]
pub struct RunList {
    /// The runs, newest first.
    pub runs: Vec<RunView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

fn condition_schema(schemas: &mut Schemas) -> Value {
    schemas.named("AutomationCondition", |_| {
        let question = schema::object_with(
            "A question",
            &["field", "op"],
            [
                ("field", schema::string("Of what: `event.data.plan`, `event.email`, `wait.received`")),
                ("op", schema::words(Op::WORDS, "What is asked")),
                ("value", json!({"description": "What it is compared with; may be a reference"})),
            ],
        );
        let questions = |text: &str| schema::list(question.clone(), text);
        let mut condition = schema::object_with(
            "Questions, all or any of which must hold",
            &[],
            [("all", questions("All must hold")), ("any", questions("One must hold"))],
        );
        schema::left_out_or_null(&mut condition);
        condition
    })
}

/// The schema of a trigger.
#[must_use]
pub fn trigger_schema(schemas: &mut Schemas) -> Value {
    let condition = condition_schema(schemas);
    schemas.named("AutomationTrigger", |_| {
        let mut trigger = schema::object_with(
            "What starts a run",
            &["event"],
            [
                ("event", schema::string("The event: `user.created`, or one of ours: `email.opened`")),
                ("filter", condition),
                (
                    "cancel_on_events",
                    schema::list(json!({"type": "string"}), "Events that end the person's runs"),
                ),
                ("reentry", schema::words(Reentry::WORDS, "Whether one person may have several runs")),
                ("include_machine", schema::boolean("Opens and clicks by machines count as well")),
            ],
        );
        schema::left_out_or_null(&mut trigger);
        trigger["examples"] = json!([{
            "event": "user.created", "cancel_on_events": ["subscription.started"], "reentry": "always",
        }]);
        trigger
    })
}

/// The schema of steps.
#[must_use]
pub fn steps_schema(schemas: &mut Schemas) -> Value {
    let step = schemas.named("AutomationStep", |_| {
        let mut step = schema::object_with(
            "A step; its other fields follow from its type",
            &["type"],
            [
                ("type", schema::words(Action::WORDS, "What it does")),
                ("key", schema::string("By what other steps name it")),
                ("name", schema::string("What people call it")),
            ],
        );
        schema::left_out_or_null(&mut step);
        step["additionalProperties"] = json!(true);
        step["examples"] = json!([{"type": "delay", "duration": "2d4h"}]);
        step
    });
    json!({"type": "array", "items": step, "maxItems": STEPS_MAX, "description": "What a run does, in order"})
}

impl Describe for AutomationView {
    fn schema(schemas: &mut Schemas) -> Value {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        schemas.named("Automation", |_| {
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
                    ("status", schema::words(AutomationStatus::WORDS, "Where it stands")),
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

impl Describe for OneAutomation {
    fn schema(schemas: &mut Schemas) -> Value {
        let automation = AutomationView::schema(schemas);
        schema::object("One automation", [("automation", automation)])
    }
}

impl Describe for AutomationList {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::page("automations", AutomationView::schema(schemas))
    }
}

impl Describe for VersionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let (trigger, steps) = (trigger_schema(schemas), steps_schema(schemas));
        let version = schemas.named("AutomationVersion", |_| {
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
        schema::page("versions", version)
    }
}

fn step_state_schema() -> Value {
    schema::object(
        "A step of a run",
        [
            ("index", schema::count("Its place")),
            ("key", schema::nullable_string("Its key")),
            ("type", schema::words(Action::WORDS, "What it does")),
            ("status", schema::words(StepStatus::WORDS, "Where it stands")),
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

impl Describe for RunView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("AutomationRun", |_| {
            let mut wait = schema::object(
                "What it waits for",
                [
                    ("event", schema::nullable_string("The event; null when it waits for the time alone")),
                    ("until", schema::time("Until when")),
                ],
            );
            schema::or_null(&mut wait);
            let nullable_words = |words: &[&str], text: &str| {
                let mut schema = schema::words(words, text);
                schema::or_null(&mut schema);
                schema
            };
            schema::object(
                "A run: one person's way through an automation",
                [
                    ("id", schema::string("Its id (`run_…`)")),
                    ("automation_id", schema::string("The automation")),
                    ("automation_version", schema::count("The version that it follows")),
                    ("status", schema::words(RunStatus::WORDS, "Where it stands")),
                    ("mode", schema::words(Mode::WORDS, "For what it was made")),
                    ("event_id", schema::string("The event that started it (`ae_…`, `evt_…`)")),
                    ("event_name", schema::string("What that is called")),
                    ("user_id", schema::nullable_string("The person, by the product's own id")),
                    ("email", schema::nullable_string("The person, by address")),
                    ("current_step_index", schema::count("The step whose turn it is")),
                    ("steps", schema::list(step_state_schema(), "All steps, in order")),
                    ("wait", wait),
                    ("ended_by", nullable_words(EndedBy::WORDS, "How it ended well")),
                    ("cancelled_by", nullable_words(CancelledBy::WORDS, "Who ended it from outside")),
                    ("error", schema::nullable_string("Why it failed")),
                    ("created_at", schema::time("When it was made")),
                    ("started_at", schema::nullable_time("When its first step began")),
                    ("completed_at", schema::nullable_time("When it ended")),
                ],
            )
        })
    }
}

impl Describe for OneRun {
    fn schema(schemas: &mut Schemas) -> Value {
        let run = RunView::schema(schemas);
        schema::object("One run", [("run", run)])
    }
}

impl Describe for RunList {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::page("runs", RunView::schema(schemas))
    }
}
