//! Automation run: the state machine of one person's execution of an automation.
//!
//! ```text
//! queued ─► running ─► (waiting ─► running)* ─► completed | failed          any active state ─► cancelled
//! ```
//!
//! A transition changes the run and returns the resulting events ([`RunFact`]). The caller writes both in one commit.
//! Transitions read neither the clock nor the store.

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::person_key::{PersonIdentity, PersonKey};
use super::{Automation, AutomationDefinition};
use crate::event::EventKind;
use crate::id::{AccountId, AutomationId, ProductEventId, RunId};
use crate::timestamp;

/// Maximum length of a chain of automations that start each other by their emails.
pub const LINEAGE_MAX: usize = 8;

words! {
    RunStatus {
        /// Created; the first step has not begun.
        Queued = "queued",
        /// Executing a step, or ready to.
        Running = "running",
        /// Waiting for a time or an event.
        Waiting = "waiting",
        Completed = "completed",
        Failed = "failed",
        /// Ended by an event or by an API request.
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    /// True if the run has not ended.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

words! {
    StepStatus {
        Pending = "pending",
        Running = "running",
        Waiting = "waiting",
        Completed = "completed",
        Failed = "failed",
        /// The run ended before this step, or skipped it.
        Skipped = "skipped",
    }
}

words! {
    /// The cause of a cancellation.
    CancelSource {
        /// An event in `cancel_on_events`.
        Event = "event",
        /// An API request.
        Api = "api",
    }
}

words! {
    /// How a run was completed.
    CompletionReason {
        /// All steps were executed.
        AllSteps = "all_steps",
        /// A condition was false.
        Condition = "condition",
    }
}

words! {
    /// The purpose of a run.
    RunMode {
        /// A real run, started by an event.
        Live = "live",
        /// A test without sending anything.
        DryRun = "dry_run",
        /// A test that sends real email.
        TestSend = "test_send",
    }
}

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    pub key: Option<String>,
    /// Type in the API.
    pub r#type: String,
    pub status: StepStatus,
    /// Result of the step; null before its end.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Set if the step failed.
    pub error: Option<String>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

/// The condition that a waiting run waits for.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWait {
    /// Event name; `None` if the run waits for a time only.
    pub event: Option<String>,
    /// Keys of the run's person. The event must match one of them.
    pub persons: Vec<PersonKey>,
    /// Events before this time do not count.
    pub since: Timestamp,
    /// The timeout.
    pub until: Timestamp,
    /// True until the stored events since `since` were read: a step that sent something was executed in that time.
    pub unread: bool,
}

/// One person's execution of an automation.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationRun {
    pub id: RunId,
    pub account: AccountId,
    pub automation: AutomationId,
    /// Name of the automation when the run was created.
    pub automation_name: String,
    /// The version that the run executes.
    pub version: u32,
    /// The partition that the run is stored in; the node that owns the partition executes the run.
    pub partition: u16,
    pub status: RunStatus,
    /// Id of the event that started the run, as text.
    pub source: String,
    pub event_name: String,
    /// The person's id in the customer's product.
    pub user_id: Option<String>,
    /// The person's email address.
    pub email: Option<String>,
    /// Index of the current step; of the last step after the end.
    pub index: usize,
    pub steps: Vec<StepState>,
    /// Set while the run waits.
    pub waiting: Option<RunWait>,
    /// When the run continues by itself; `None` if it has ended or is held.
    pub due: Option<Timestamp>,
    /// True while the automation is paused. The run continues when it is activated again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Number of failed tries of the current step.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub tries: u32,
    /// Time of the first failed try.
    pub trying_since: Option<Timestamp>,
    pub cancelled_by: Option<CancelSource>,
    pub ended_by: Option<CompletionReason>,
    /// Set if the run failed.
    pub error: Option<String>,
    /// The automations whose emails led to this run, to stop loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<AutomationId>,
    pub created_at: Timestamp,
    /// When the first step began.
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

/// An event that a transition caused.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFact {
    pub kind: EventKind,
    /// The payload for webhooks, without the event id.
    pub detail: Value,
}

/// The parameters of a new run.
#[derive(Debug, Clone)]
pub struct RunStart<'a> {
    pub id: RunId,
    /// The partition that the run is stored in.
    pub partition: u16,
    /// Id of the starting event, as text.
    pub source: String,
    pub event_name: &'a str,
    /// The person's id in the customer's product.
    pub user_id: Option<&'a str>,
    /// The person's email address.
    pub email: Option<&'a str>,
    /// The automations whose emails led to this run.
    pub lineage: Vec<AutomationId>,
    /// The current time.
    pub at: Timestamp,
}

/// The continuation of a run after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    Next,
    /// The step with this index.
    SkipTo(usize),
    /// None: the run is completed.
    Stop(Option<CompletionReason>),
}

impl AutomationRun {
    /// Creates a queued run, and the event for its start.
    pub fn begin(
        automation: &Automation,
        definition: &AutomationDefinition,
        beginning: RunStart<'_>,
    ) -> (Self, RunFact) {
        let RunStart { id, partition, source, event_name, user_id, email, lineage, at } = beginning;
        let step = |step: &super::definition::AutomationStep| StepState {
            key: step.key.clone(),
            r#type: step.action.word().to_owned(),
            status: StepStatus::Pending,
            output: Value::Null,
            error: None,
            started_at: None,
            completed_at: None,
        };
        let run = Self {
            id,
            account: automation.account,
            automation: automation.id,
            automation_name: automation.name.clone(),
            version: automation.version,
            partition,
            status: RunStatus::Queued,
            source,
            event_name: event_name.to_owned(),
            user_id: user_id.map(str::to_owned),
            email: email.map(str::to_owned),
            index: 0,
            steps: definition.steps.iter().map(step).collect(),
            waiting: None,
            due: Some(at),
            held: false,
            tries: 0,
            trying_since: None,
            cancelled_by: None,
            ended_by: None,
            error: None,
            lineage,
            created_at: at,
            started_at: None,
            completed_at: None,
        };
        let fact = RunFact { kind: EventKind::AutomationStarted, detail: run.event_detail("running", None) };
        (run, fact)
    }

    /// The keys that the run is indexed by: of the user id and of the email address.
    pub fn persons(&self) -> [Option<PersonKey>; 2] {
        self.identity().keys()
    }

    pub fn identity(&self) -> PersonIdentity<'_> {
        PersonIdentity { user_id: self.user_id.as_deref(), email: self.email.as_deref() }
    }

    /// True if the current step is due and has not begun.
    pub fn is_next_step_due(&self) -> bool {
        self.due.is_some() && self.steps.get(self.index).is_some_and(|step| step.status == StepStatus::Pending)
    }

    /// True if the current step sends something.
    pub fn is_sending(&self) -> bool {
        self.steps.get(self.index).is_some_and(|step| matches!(step.r#type.as_str(), "send_email" | "sms"))
    }

    /// True if the event with this id started the run, or ended one of its waits.
    pub fn has_used_event(&self, event_id: &str) -> bool {
        self.source == event_id || self.steps.iter().any(|step| step.output["event_id"] == event_id)
    }

    /// Starts the current step if it has not begun.
    pub fn start_step(&mut self, now: Timestamp) {
        if self.status == RunStatus::Queued {
            self.status = RunStatus::Running;
        }
        self.started_at.get_or_insert(now);
        if let Some(step) = self.steps.get_mut(self.index)
            && step.status == StepStatus::Pending
        {
            step.status = StepStatus::Running;
            step.started_at = Some(now);
        }
    }

    /// Makes the current step wait.
    pub fn wait_for(&mut self, waiting: RunWait, now: Timestamp) {
        self.start_step(now);
        if let Some(step) = self.steps.get_mut(self.index) {
            step.status = StepStatus::Waiting;
        }
        self.status = RunStatus::Waiting;
        self.due = Some(waiting.until);
        self.waiting = Some(waiting);
    }

    /// The end of the last delay before the current step, the event of the last wait, or the start of the run. `None` if
    /// no step sent anything since: then the run waits when the response to the event before it is given. Conditions are executed in
    /// the commit that ends the step before them.
    pub fn sending_since(&self) -> Option<Timestamp> {
        let mut has_sent = false;
        for step in self.steps.get(..self.index).unwrap_or_default().iter().rev() {
            match (step.status, step.r#type.as_str()) {
                (StepStatus::Completed, "send_email" | "sms") => has_sent = true,
                (StepStatus::Completed, "delay" | "wait_for_event") => {
                    let event = step.output["event_id"].as_str().and_then(|id| id.parse::<ProductEventId>().ok());
                    return event.map(ProductEventId::born_at).or(step.completed_at).filter(|_| has_sent);
                }
                _ => {}
            }
        }
        has_sent.then_some(self.created_at)
    }

    /// Lets a wait for an event that has just begun count the stored events since a time.
    pub fn read_events_since(&mut self, since: Timestamp) {
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.event.is_some()) {
            (waiting.since, waiting.unread) = (since, true);
        }
    }

    /// True if the run waits for an event, and those before the wait were not read yet.
    pub fn has_unread_events(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.unread)
    }

    /// Notes that the stored events before the wait were read, and none of them ends it.
    pub fn mark_wait_read(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.unread = false;
        }
    }

    /// Schedules a retry of the current step.
    pub fn defer_step(&mut self, due: Timestamp, now: Timestamp) {
        self.start_step(now);
        self.tries = self.tries.saturating_add(1);
        self.trying_since.get_or_insert(now);
        self.due = Some(due);
    }

    /// Holds the run because its automation was paused.
    pub fn hold(&mut self) {
        self.held = true;
        self.due = None;
    }

    /// Resumes a held run. A wait ends at its original time.
    pub fn release(&mut self, now: Timestamp) {
        if self.held {
            self.held = false;
            self.due = Some(self.waiting.as_ref().map_or(now, |waiting| waiting.until));
        }
    }

    /// Completes the current step, then continues with `then` or completes the run.
    pub fn complete_step(&mut self, output: Value, then: NextStep, now: Timestamp) -> Vec<RunFact> {
        self.start_step(now);
        if let Some(step) = self.steps.get_mut(self.index) {
            step.status = StepStatus::Completed;
            step.output = output;
            step.completed_at = Some(now);
        }
        self.status = RunStatus::Running;
        self.waiting = None;
        (self.tries, self.trying_since) = (0, None);
        let mut facts = vec![self.step_completed()];
        let next = match then {
            NextStep::Next => self.index + 1,
            NextStep::SkipTo(index) => index.max(self.index + 1),
            NextStep::Stop(ended_by) => {
                facts.push(self.end(ended_by, now));
                return facts;
            }
        };
        if next >= self.steps.len() {
            facts.push(self.end(Some(CompletionReason::AllSteps), now));
            return facts;
        }
        for step in self.steps.iter_mut().take(next).skip(self.index + 1) {
            step.status = StepStatus::Skipped;
        }
        self.index = next;
        self.due = if self.held { None } else { Some(now) };
        facts
    }

    /// Fails the current step and the run.
    pub fn fail_step(&mut self, error: &str, now: Timestamp) -> Vec<RunFact> {
        self.start_step(now);
        if let Some(step) = self.steps.get_mut(self.index) {
            step.status = StepStatus::Failed;
            step.error = Some(error.to_owned());
            step.completed_at = Some(now);
        }
        self.error = Some(error.to_owned());
        self.set_final_status(RunStatus::Failed, now);
        vec![RunFact { kind: EventKind::AutomationFailed, detail: self.event_detail("failed", Some(self.index)) }]
    }

    /// Cancels the run. No event is emitted.
    pub fn cancel(&mut self, by: CancelSource, now: Timestamp) {
        if let Some(step) = self.steps.get_mut(self.index)
            && matches!(step.status, StepStatus::Running | StepStatus::Waiting)
        {
            step.status = StepStatus::Skipped;
            step.completed_at = Some(now);
        }
        self.cancelled_by = Some(by);
        self.set_final_status(RunStatus::Cancelled, now);
    }

    fn end(&mut self, ended_by: Option<CompletionReason>, now: Timestamp) -> RunFact {
        self.ended_by = ended_by;
        self.set_final_status(RunStatus::Completed, now);
        RunFact { kind: EventKind::AutomationCompleted, detail: self.event_detail("completed", Some(self.index)) }
    }

    fn set_final_status(&mut self, status: RunStatus, now: Timestamp) {
        self.status = status;
        (self.waiting, self.due, self.held) = (None, None, false);
        self.completed_at = Some(now);
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::Pending) {
            step.status = StepStatus::Skipped;
        }
    }

    /// The payload of `automation.started`, `completed` and `failed`. `started_at` is the
    /// creation time in all of them, because `automation.started` is emitted at creation.
    fn event_detail(&self, status: &str, step: Option<usize>) -> Value {
        json!({
            "automation_id": self.automation,
            "automation_name": self.automation_name,
            "run_id": self.id,
            "status": status,
            "event_name": self.event_name,
            "source_event_id": self.source,
            "user_id": self.user_id,
            "email": self.email,
            "step_index": step,
            "step_type": step.and_then(|step| self.steps.get(step)).map(|step| step.r#type.as_str()),
            "error": self.error,
            "ended_by": self.ended_by.map(CompletionReason::word),
            "started_at": timestamp::to_rfc3339(self.created_at),
            "completed_at": self.completed_at.map(timestamp::to_rfc3339),
        })
    }

    /// The event `automation.step_completed`.
    fn step_completed(&self) -> RunFact {
        let step = self.steps.get(self.index);
        let output = step.map(|step| step.output.clone()).filter(|output| !output.is_null());
        let detail = json!({
            "automation_id": self.automation,
            "automation_name": self.automation_name,
            "run_id": self.id,
            "status": RunStatus::Running.word(),
            "event_name": self.event_name,
            "step_index": self.index,
            "step_type": step.map(|step| step.r#type.as_str()),
            "error": Value::Null,
            "output": output.unwrap_or_else(|| json!({})),
        });
        RunFact { kind: EventKind::AutomationStepCompleted, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automation::AutomationStatus;
    use crate::automation::parse;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run() -> (AutomationRun, RunFact) {
        let automation = Automation {
            id: AutomationId::new(at(0), 1),
            account: AccountId::new(at(0), 1),
            name: "Trial".to_owned(),
            status: AutomationStatus::Active,
            version: 1,
            created_at: at(0),
            updated_at: at(0),
            activated_at: None,
        };
        let steps = json!([
            {"type": "delay", "duration": "1d"}, {"type": "delay", "duration": "1d"},
            {"type": "sms", "to": "1", "body": "x"}, {"type": "delay", "duration": "1d"},
        ]);
        let definition = parse::parse_stored(&json!({"trigger": {"event": "a"}, "steps": steps})).unwrap();
        let beginning = RunStart {
            id: RunId::new(at(0), 1),
            partition: 3,
            source: "ae_x".to_owned(),
            event_name: "a",
            user_id: Some("7"),
            email: None,
            lineage: Vec::new(),
            at: at(10),
        };
        AutomationRun::begin(&automation, &definition, beginning)
    }

    #[test]
    fn a_run_advances_to_its_end() {
        let (mut run, started) = run();
        assert_eq!(started.kind, EventKind::AutomationStarted);
        assert_eq!((&started.detail["status"], &started.detail["step_index"]), (&json!("running"), &Value::Null));
        let waiting = RunWait { event: None, persons: Vec::new(), since: at(11), until: at(20), unread: false };
        run.wait_for(waiting, at(11));
        assert_eq!((run.status, run.due, run.steps[0].status), (RunStatus::Waiting, Some(at(20)), StepStatus::Waiting));
        let facts = run.complete_step(json!({"a": 1}), NextStep::SkipTo(2), at(20));
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0].detail["output"], json!({"a": 1}));
        assert_eq!((run.index, run.steps[1].status, run.due), (2, StepStatus::Skipped, Some(at(20))));
        assert!(run.is_next_step_due(), "it has not begun");
        run.defer_step(at(30), at(21));
        assert!(!run.is_next_step_due(), "it has begun");
        assert_eq!((run.tries, run.trying_since), (1, Some(at(21))));
        assert_eq!(run.complete_step(Value::Null, NextStep::Next, at(30)).len(), 1);
        let facts = run.complete_step(Value::Null, NextStep::Next, at(31));
        assert_eq!(facts[1].detail["ended_by"], "all_steps");
        assert_eq!((run.status, run.due, run.started_at), (RunStatus::Completed, None, Some(at(11))));
        let names: Vec<&String> = facts[1].detail.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 14);
    }

    #[test]
    fn a_run_ends_early_in_three_ways() {
        let (mut completed, _) = run();
        let facts = completed.complete_step(Value::Null, NextStep::Stop(Some(CompletionReason::Condition)), at(11));
        assert_eq!(
            (facts[1].detail["ended_by"].as_str(), completed.steps[3].status),
            (Some("condition"), StepStatus::Skipped)
        );
        let (mut two, _) = run();
        let facts = two.fail_step("no", at(11));
        assert_eq!((facts[0].detail["error"].as_str(), two.steps[0].error.as_deref()), (Some("no"), Some("no")));
        let (mut three, _) = run();
        three.cancel(CancelSource::Api, at(11));
        assert_eq!((three.status, three.due, three.completed_at), (RunStatus::Cancelled, None, Some(at(11))));
    }

    #[test]
    fn an_event_counts_once_for_a_run() {
        let (mut run, _) = run();
        assert!(run.has_used_event("ae_x") && !run.has_used_event("ae_y"));
        run.complete_step(json!({"received": true, "event_id": "ae_y"}), NextStep::Next, at(11));
        assert!(run.has_used_event("ae_x") && run.has_used_event("ae_y") && !run.has_used_event("ae_z"));
    }

    #[test]
    fn a_held_run_keeps_its_due_time() {
        let (mut run, _) = run();
        run.wait_for(RunWait { event: None, persons: Vec::new(), since: at(11), until: at(20), unread: false }, at(11));
        run.hold();
        assert_eq!(run.due, None);
        run.release(at(15));
        assert_eq!((run.due, run.held), (Some(at(20)), false));
    }
}
