//! Effects of steps that send nothing: pure decisions from a run, its definition and its context.
//!
//! ```text
//! new run, or end of a step ─► the conditions that follow ─► a wait for an event ─[ one commit ]─► response
//! ```
//!
//! So a run waits for an event when the program that caused the commit learns of it.

use std::time::Duration;

use jiff::Timestamp;
use model::automation::AutomationDefinition;
use model::automation::condition::Condition;
use model::automation::context::{self, RunContext, WaitResult};
use model::automation::definition::{
    ConditionStep, DelayLength, DelayStep, MatchBy, OnTimeout, StepAction, WaitForEventStep,
};
use model::automation::person_key::{self, PersonKey};
use model::automation::run::{AutomationRun, CompletionReason, NextStep, RunFact, RunWait, StepStatus};
use model::automation::time_span::{SECONDS_MAX, TimeSpan};
use model::timestamp;
use serde_json::{Value, json};

/// Delay before a held step of a suspended account is checked again.
const HOLD_RETRY_DELAY: Duration = Duration::from_secs(3_600);
/// Time limit for retries of a step.
pub(super) const RETRY_FOR: Duration = Duration::from_secs(24 * 3600);
/// Retry delays by number of attempts, in seconds.
const RETRY_DELAYS_S: [u64; 7] = [5, 15, 60, 300, 900, 1_800, 3_600];

/// State of a run after a step, with the facts to record and its new context, if that changed.
#[derive(Debug)]
pub(super) struct RunUpdate {
    pub(super) run: AutomationRun,
    pub(super) facts: Vec<RunFact>,
    pub(super) run_context: Option<RunContext>,
}

impl RunUpdate {
    fn new(run: AutomationRun, facts: Vec<RunFact>) -> Self {
        Self { run, facts, run_context: None }
    }

    /// Adds the steps that follow at once ([`start_next_steps`]); `run_context` is the context before this update.
    #[must_use]
    pub(super) fn with_next_steps(
        mut self,
        definition: &AutomationDefinition,
        run_context: &RunContext,
        now: Timestamp,
    ) -> Self {
        let run_context = self.run_context.as_ref().unwrap_or(run_context);
        let facts = start_next_steps(&mut self.run, definition, run_context, now);
        self.facts.extend(facts);
        // An ended run has no context.
        self.run_context = self.run_context.filter(|_| self.run.status.is_active());
        self
    }
}

/// Executes the conditions that are due next, then starts the wait for an event that follows, if one does. Returns the
/// facts to record.
pub(super) fn start_next_steps(
    run: &mut AutomationRun,
    definition: &AutomationDefinition,
    run_context: &RunContext,
    now: Timestamp,
) -> Vec<RunFact> {
    let mut facts = Vec::new();
    while run.is_next_step_due() {
        match definition.steps.get(run.index).map(|step| &step.action) {
            Some(StepAction::Condition(gate)) => facts.extend(complete_condition(run, gate, run_context, now)),
            Some(StepAction::WaitForEvent(wait)) => start_wait(run, wait, now),
            _ => break,
        }
    }
    facts
}

/// Returns whether the current step was waiting and is due now.
fn is_wait_over(run: &AutomationRun) -> bool {
    run.steps.get(run.index).is_some_and(|step| step.status == StepStatus::Waiting)
}

/// Starts a delay, or completes it when it is due.
pub(super) fn delay_step(
    mut run: AutomationRun,
    delay: &DelayStep,
    run_context: &RunContext,
    now: Timestamp,
) -> RunUpdate {
    if is_wait_over(&run) {
        let until = run.waiting.as_ref().map(|waiting| timestamp::to_rfc3339(waiting.until));
        let facts = run.complete_step(json!({"until": until}), NextStep::Next, now);
        return RunUpdate::new(run, facts);
    }
    match delay_until(delay, run_context, now) {
        Ok(until) if until <= now => {
            let facts = run.complete_step(json!({"until": timestamp::to_rfc3339(until)}), NextStep::Next, now);
            RunUpdate::new(run, facts)
        }
        Ok(until) => {
            run.wait_for(RunWait { event: None, persons: Vec::new(), since: now, until, unread: false }, now);
            RunUpdate::new(run, Vec::new())
        }
        Err(error) => {
            let facts = run.fail_step(&error, now);
            RunUpdate::new(run, facts)
        }
    }
}

/// Computes the end of a delay that begins now.
pub(super) fn delay_until(delay: &DelayStep, run_context: &RunContext, now: Timestamp) -> Result<Timestamp, String> {
    let until = match &delay.length {
        DelayLength::For(span) => span.added_to(now),
        DelayLength::Until(text) => {
            let rendered =
                context::render_text(text, &run_context.to_json()).map_err(|error| format!("`until`: {error}"))?;
            let until = delay.parse_until(rendered.trim()).map_err(|error| format!("`until` {error}"))?;
            let days = TimeSpan::parse("365d").map_or(now, |span| span.added_to(now));
            if until > days {
                return Err(format!("`until` is more than {} days ahead", SECONDS_MAX / 86_400));
            }
            until
        }
    };
    Ok(delay.window.as_ref().map_or(until, |window| window.first_at_or_after(until.max(now))))
}

/// Starts a wait for an event, or handles its timeout.
pub(super) fn wait_step(
    mut run: AutomationRun,
    wait: &WaitForEventStep,
    run_context: &RunContext,
    now: Timestamp,
) -> RunUpdate {
    if !is_wait_over(&run) {
        start_wait(&mut run, wait, now);
        return RunUpdate::new(run, Vec::new());
    }
    let facts = match wait.on_timeout {
        OnTimeout::Continue => run.complete_step(json!({"received": false}), NextStep::Next, now),
        OnTimeout::Stop => run.complete_step(json!({"received": false}), NextStep::Stop(None), now),
        OnTimeout::Fail => run.fail_step(&format!("`{}` was not received within {}", wait.event, wait.timeout), now),
    };
    let wait_result = Some(WaitResult { received: false, facts: None });
    let run_context = run.status.is_active().then(|| RunContext { wait: wait_result, ..run_context.clone() });
    RunUpdate { run, facts, run_context }
}

fn start_wait(run: &mut AutomationRun, wait: &WaitForEventStep, now: Timestamp) {
    let persons = person_keys(run, wait.by);
    let until = wait.timeout.added_to(now);
    let (since, unread) = run.sending_since().map_or((now, false), |since| (since, true));
    run.wait_for(RunWait { event: Some(wait.event.clone()), persons, since, until, unread }, now);
}

fn person_keys(run: &AutomationRun, by: MatchBy) -> Vec<PersonKey> {
    let user = run.user_id.as_deref().filter(|_| by != MatchBy::Email).map(person_key::user_key);
    let email = run.email.as_deref().filter(|_| by != MatchBy::UserId).map(person_key::email_key);
    user.into_iter().chain(email).collect()
}

/// Evaluates a condition.
pub(super) fn condition_step(
    mut run: AutomationRun,
    gate: &ConditionStep,
    run_context: &RunContext,
    now: Timestamp,
) -> RunUpdate {
    let facts = complete_condition(&mut run, gate, run_context, now);
    RunUpdate::new(run, facts)
}

fn complete_condition(
    run: &mut AutomationRun,
    gate: &ConditionStep,
    run_context: &RunContext,
    now: Timestamp,
) -> Vec<RunFact> {
    let holds = condition_holds(&gate.condition, run_context);
    run.complete_step(json!({"result": holds}), next_step_after(gate, holds), now)
}

pub(super) fn condition_holds(condition: &Condition, run_context: &RunContext) -> bool {
    let run_context: Value = run_context.to_json();
    condition.evaluate(&run_context, &run_context)
}

pub(super) fn next_step_after(gate: &ConditionStep, holds: bool) -> NextStep {
    match (&gate.skip_to, holds) {
        (_, true) => NextStep::Next,
        (Some(target), false) => NextStep::SkipTo(target.index),
        (None, false) => NextStep::Stop(Some(CompletionReason::Condition)),
    }
}

/// Schedules a retry of the step, or fails it after [`RETRY_FOR`].
pub(super) fn defer_step(mut run: AutomationRun, reason: &str, now: Timestamp) -> RunUpdate {
    let since = run.trying_since.unwrap_or(now);
    let until = since.checked_add(RETRY_FOR).unwrap_or(Timestamp::MAX);
    if now >= until {
        let facts = run.fail_step(reason, now);
        return RunUpdate::new(run, facts);
    }
    let tries = usize::try_from(run.tries).unwrap_or(usize::MAX).min(RETRY_DELAYS_S.len() - 1);
    let wait = Duration::from_secs(RETRY_DELAYS_S.get(tries).copied().unwrap_or(3_600));
    run.defer_step(now.checked_add(wait).unwrap_or(Timestamp::MAX), now);
    RunUpdate::new(run, Vec::new())
}

/// Holds a step of a suspended account for an hour; this does not count as an attempt.
pub(super) fn hold_step(mut run: AutomationRun, now: Timestamp) -> RunUpdate {
    let (tries, trying_since) = (run.tries, run.trying_since);
    run.defer_step(now.checked_add(HOLD_RETRY_DELAY).unwrap_or(Timestamp::MAX), now);
    (run.tries, run.trying_since) = (tries, trying_since);
    RunUpdate::new(run, Vec::new())
}

pub(super) fn complete_step(mut run: AutomationRun, output: Value, now: Timestamp) -> RunUpdate {
    let facts = run.complete_step(output, NextStep::Next, now);
    RunUpdate::new(run, facts)
}

pub(super) fn fail_step(mut run: AutomationRun, reason: &str, now: Timestamp) -> RunUpdate {
    let facts = run.fail_step(reason, now);
    RunUpdate::new(run, facts)
}
