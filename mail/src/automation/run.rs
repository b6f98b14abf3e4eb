//! A run: one person's way through an automation, as a value that moves.
//!
//! ```text
//! queued ─► running ─► (waiting ─► running)* ─► completed | failed          any that is not over ─► cancelled
//! ```
//!
//! A move changes the run and says which facts have become true; who makes it commits both at once. Moves know
//! no clock and no store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::person::{self, PersonKey};
use super::{Automation, AutomationDefinition};
use crate::event::EventKind;
use crate::id::{AccountId, AutomationId, RunId};
use crate::moment;

/// A run's way by automations that started one another through their mail, at most.
pub const LINEAGE_MAX: usize = 8;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them, as they are written.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The one that is written like this.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// How it is written.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

words! {
    /// Where a run stands.
    RunStatus {
        /// It is about to begin.
        Queued "queued",
        /// It is at a step.
        Running "running",
        /// It waits for a time or an event.
        Waiting "waiting",
        /// It has ended well.
        Completed "completed",
        /// It was ended by an error.
        Failed "failed",
        /// It was ended from outside.
        Cancelled "cancelled",
    }
}

impl RunStatus {
    /// Whether it goes on.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

words! {
    /// Where a step of a run stands.
    StepStatus {
        /// Its turn has not come.
        Pending "pending",
        /// It is being done.
        Running "running",
        /// It waits.
        Waiting "waiting",
        /// It is done.
        Completed "completed",
        /// It could not be done.
        Failed "failed",
        /// The run ended before it, or went past it.
        Skipped "skipped",
    }
}

words! {
    /// Who ended a run from outside.
    CancelSource {
        /// An event of `cancel_on_events`.
        Event "event",
        /// Somebody, over the API.
        Api "api",
    }
}

words! {
    /// How a run ended well.
    CompletionReason {
        /// All steps are done.
        AllSteps "all_steps",
        /// A condition did not hold.
        Condition "condition",
    }
}

words! {
    /// For what a run was made.
    RunMode {
        /// An event started it.
        Live "live",
        /// Tried out: nothing is sent.
        DryRun "dry_run",
        /// Tried out with real mail.
        TestSend "test_send",
    }
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its kind.
    pub r#type: String,
    /// Where it stands.
    pub status: StepStatus,
    /// What came of it; null while nothing has.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWait {
    /// The event; none when it waits for the time alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The keys of the person that the event must be about, one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonKey>,
    /// Since when: what happened before was not waited for.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// One person's way through an automation.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationRun {
    /// Its id.
    pub id: RunId,
    /// Whose it is.
    pub account: AccountId,
    /// The automation.
    pub automation: AutomationId,
    /// What it was called then.
    pub automation_name: String,
    /// The version that it follows.
    pub version: u32,
    /// Whose owner goes on with it.
    pub partition: u16,
    /// Where it stands.
    pub status: RunStatus,
    /// The id of the event that began it, as it is written.
    pub source: String,
    /// What that event is called.
    pub event_name: String,
    /// The person, by the product's own id.
    pub user_id: Option<String>,
    /// The person, by address.
    pub email: Option<String>,
    /// The step whose turn it is; the last one when it has ended.
    pub index: usize,
    /// All steps.
    pub steps: Vec<StepState>,
    /// What it waits for.
    pub waiting: Option<RunWait>,
    /// When it goes on by itself; none when it has ended or is held.
    pub due: Option<Timestamp>,
    /// Its automation is paused: it goes on when that is activated.
    pub held: bool,
    /// How often this step was tried in vain.
    pub tries: u32,
    /// Since when.
    pub trying_since: Option<Timestamp>,
    /// Who ended it from outside.
    pub cancelled_by: Option<CancelSource>,
    /// How it ended well.
    pub ended_by: Option<CompletionReason>,
    /// Why it failed.
    pub error: Option<String>,
    /// The automations whose mail led to it.
    pub lineage: Vec<AutomationId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its first step began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

/// Something that has become true of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFact {
    /// What.
    pub kind: EventKind,
    /// What its webhooks say, but for the id.
    pub detail: Value,
}

/// What begins a run.
#[derive(Debug, Clone)]
pub struct RunStart<'a> {
    /// The run's id.
    pub id: RunId,
    /// The partition that it lies in.
    pub partition: u16,
    /// The event's id, as it is written.
    pub source: String,
    /// What the event is called.
    pub event_name: &'a str,
    /// The person, by the product's own id.
    pub user_id: Option<&'a str>,
    /// The person, by address.
    pub email: Option<&'a str>,
    /// The automations whose mail led to it.
    pub lineage: Vec<AutomationId>,
    /// Now.
    pub at: Timestamp,
}

/// Where a run goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// With the next step.
    Next,
    /// With that one.
    SkipTo(usize),
    /// Nowhere: it is completed.
    Stop(Option<CompletionReason>),
}

impl AutomationRun {
    /// A run that is about to begin, and the fact that it is there.
    #[must_use]
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

    /// The keys by which the person is found.
    #[must_use]
    pub fn persons(&self) -> [Option<PersonKey>; 2] {
        [self.user_id.as_deref().map(person::user_key), self.email.as_deref().map(person::email_key)]
    }

    /// The step whose turn it is begins, if it has not.
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

    /// The step waits.
    pub fn wait_for(&mut self, waiting: RunWait, now: Timestamp) {
        self.start_step(now);
        if let Some(step) = self.steps.get_mut(self.index) {
            step.status = StepStatus::Waiting;
        }
        self.status = RunStatus::Waiting;
        self.due = Some(waiting.until);
        self.waiting = Some(waiting);
    }

    /// The step is tried again later.
    pub fn defer_step(&mut self, due: Timestamp, now: Timestamp) {
        self.start_step(now);
        self.tries = self.tries.saturating_add(1);
        self.trying_since.get_or_insert(now);
        self.due = Some(due);
    }

    /// The automation is paused: nothing is due any more.
    pub fn hold(&mut self) {
        self.held = true;
        self.due = None;
    }

    /// The automation is active again: what it held for is due as it was.
    pub fn release(&mut self, now: Timestamp) {
        if self.held {
            self.held = false;
            self.due = Some(self.waiting.as_ref().map_or(now, |waiting| waiting.until));
        }
    }

    /// The step is done.
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

    /// The step could not be done, and the run has failed.
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

    /// It is ended from outside, which is no fact that anybody is told of.
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

    /// `automation.started`, `completed`, `failed` (completions-email.md 2.10). A run starts for who is told of it
    /// when `automation.started` says so, in all of its events: when it was made.
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
            "started_at": moment::to_rfc3339(self.created_at),
            "completed_at": self.completed_at.map(moment::to_rfc3339),
        })
    }

    /// `automation.step_completed`.
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
    use crate::automation::read;

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
        let definition = read::parse_stored(&json!({"trigger": {"event": "a"}, "steps": steps})).unwrap();
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
    fn a_run_goes_forward_and_ends() {
        let (mut run, started) = run();
        assert_eq!(started.kind, EventKind::AutomationStarted);
        assert_eq!((&started.detail["status"], &started.detail["step_index"]), (&json!("running"), &Value::Null));
        let waiting = RunWait { event: None, persons: Vec::new(), since: at(11), until: at(20) };
        run.wait_for(waiting, at(11));
        assert_eq!((run.status, run.due, run.steps[0].status), (RunStatus::Waiting, Some(at(20)), StepStatus::Waiting));
        let facts = run.complete_step(json!({"a": 1}), NextStep::SkipTo(2), at(20));
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0].detail["output"], json!({"a": 1}));
        assert_eq!((run.index, run.steps[1].status, run.due), (2, StepStatus::Skipped, Some(at(20))));
        run.defer_step(at(30), at(21));
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
        let (mut one, _) = run();
        let facts = one.complete_step(Value::Null, NextStep::Stop(Some(CompletionReason::Condition)), at(11));
        assert_eq!(
            (facts[1].detail["ended_by"].as_str(), one.steps[3].status),
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
    fn a_run_that_is_held_keeps_its_time() {
        let (mut run, _) = run();
        run.wait_for(RunWait { event: None, persons: Vec::new(), since: at(11), until: at(20) }, at(11));
        run.hold();
        assert_eq!(run.due, None);
        run.release(at(15));
        assert_eq!((run.due, run.held), (Some(at(20)), false));
    }
}
