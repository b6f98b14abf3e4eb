//! What a step does, as far as nothing goes out: a pure decision about a run, its definition and what it knows.

use std::time::Duration;

use jiff::Timestamp;
use mail::automation::context::{Context, Waited};
use mail::automation::definition::{Delay, Gate, Lasts, MatchBy, OnTimeout, WaitForEvent};
use mail::automation::person::{self, PersonKey};
use mail::automation::run::{EndedBy, Fact, Run, StepStatus, Then, Waiting};
use mail::automation::span::{SECONDS_MAX, Span};
use mail::automation::{condition::Condition, context};
use mail::moment;
use serde_json::{Value, json};

/// How long a step of a suspended account waits before it is looked at again.
const HELD_FOR: Duration = Duration::from_secs(3_600);
/// For how long a step is tried again that cannot be done at the moment.
pub(super) const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// How soon is tried again, by the number of tries.
const WAITS_S: [u64; 7] = [5, 15, 60, 300, 900, 1_800, 3_600];

/// A run after a step, with what has become true and what it knows now, if that is something else.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) run: Run,
    pub(super) facts: Vec<Fact>,
    pub(super) known: Option<Context>,
}

impl Moved {
    fn to(run: Run, facts: Vec<Fact>) -> Self {
        Self { run, facts, known: None }
    }
}

/// Whether the step whose turn it is has waited, and is due now.
fn has_waited(run: &Run) -> bool {
    run.steps.get(run.index).is_some_and(|step| step.status == StepStatus::Waiting)
}

/// A delay begins or ends.
pub(super) fn delay(mut run: Run, delay: &Delay, known: &Context, now: Timestamp) -> Moved {
    if has_waited(&run) {
        let until = run.waiting.as_ref().map(|waiting| moment::write(waiting.until));
        let facts = run.complete(json!({"until": until}), Then::Next, now);
        return Moved::to(run, facts);
    }
    match delay_until(delay, known, now) {
        Ok(until) if until <= now => {
            let facts = run.complete(json!({"until": moment::write(until)}), Then::Next, now);
            Moved::to(run, facts)
        }
        Ok(until) => {
            run.wait(Waiting { event: None, persons: Vec::new(), since: now, until }, now);
            Moved::to(run, Vec::new())
        }
        Err(error) => {
            let facts = run.fail(&error, now);
            Moved::to(run, facts)
        }
    }
}

/// When a delay that begins now ends.
pub(super) fn delay_until(delay: &Delay, known: &Context, now: Timestamp) -> Result<Timestamp, String> {
    let until = match &delay.lasts {
        Lasts::For(span) => span.after(now),
        Lasts::Until(text) => {
            let filled =
                context::fill_text(text, &known.to_json()).map_err(|error| format!("`until`: {error}"))?;
            let until = time(filled.trim(), delay).map_err(|error| format!("`until` {error}"))?;
            let days = Span::read("365d").map_or(now, |span| span.after(now));
            if until > days {
                return Err(format!("`until` lies more than {} days ahead", SECONDS_MAX / 86_400));
            }
            until
        }
    };
    Ok(delay.window.as_ref().map_or(until, |window| window.first(until.max(now))))
}

/// A time, or a day, which begins in the zone of the delay's window, or in UTC.
fn time(text: &str, delay: &Delay) -> Result<Timestamp, String> {
    let Ok(day) = text.parse::<jiff::civil::Date>().map_err(drop).and_then(|day| {
        // A date reads out of a time too, without its hours.
        if text.len() == "2030-01-31".len() { Ok(day) } else { Err(()) }
    }) else {
        return moment::read(text).map_err(str::to_owned);
    };
    let tz = delay.window.as_ref().map_or("UTC", |window| window.tz.as_str());
    let zone = mail::automation::window::zone(tz)?;
    zone.to_timestamp(day.to_datetime(jiff::civil::Time::midnight())).map_err(|error| error.to_string())
}

/// A wait begins, or its time is over.
pub(super) fn wait(mut run: Run, wait: &WaitForEvent, known: &Context, now: Timestamp) -> Moved {
    if !has_waited(&run) {
        let persons = persons(&run, wait.by);
        let until = wait.timeout.after(now);
        run.wait(Waiting { event: Some(wait.event.clone()), persons, since: now, until }, now);
        return Moved::to(run, Vec::new());
    }
    let facts = match wait.on_timeout {
        OnTimeout::Continue => run.complete(json!({"received": false}), Then::Next, now),
        OnTimeout::Stop => run.complete(json!({"received": false}), Then::Stop(None), now),
        OnTimeout::Fail => run.fail(&format!("`{}` did not come within {}", wait.event, wait.timeout), now),
    };
    let waited = Some(Waited { received: false, facts: None });
    let known = run.status.is_active().then(|| Context { wait: waited, ..known.clone() });
    Moved { run, facts, known }
}

fn persons(run: &Run, by: MatchBy) -> Vec<PersonKey> {
    let user = run.user_id.as_deref().filter(|_| by != MatchBy::Email).map(person::of_user);
    let email = run.email.as_deref().filter(|_| by != MatchBy::UserId).map(person::of_email);
    user.into_iter().chain(email).collect()
}

/// A condition is asked.
pub(super) fn gate(mut run: Run, gate: &Gate, known: &Context, now: Timestamp) -> Moved {
    let holds = holds(&gate.condition, known);
    let then = after_gate(gate, holds);
    let facts = run.complete(json!({"result": holds}), then, now);
    Moved::to(run, facts)
}

pub(super) fn holds(condition: &Condition, known: &Context) -> bool {
    let known: Value = known.to_json();
    condition.holds(&known, &known)
}

pub(super) fn after_gate(gate: &Gate, holds: bool) -> Then {
    match (&gate.skip_to, holds) {
        (_, true) => Then::Next,
        (Some(target), false) => Then::SkipTo(target.index),
        (None, false) => Then::Stop(Some(EndedBy::Condition)),
    }
}

/// The step cannot be done at the moment: it is tried again, or given up when it was tried for long enough.
pub(super) fn put_off(mut run: Run, why: &str, now: Timestamp) -> Moved {
    let since = run.trying_since.unwrap_or(now);
    let until = since.checked_add(TRIED_FOR).unwrap_or(Timestamp::MAX);
    if now >= until {
        let facts = run.fail(why, now);
        return Moved::to(run, facts);
    }
    let tries = usize::try_from(run.tries).unwrap_or(usize::MAX).min(WAITS_S.len() - 1);
    let wait = Duration::from_secs(WAITS_S.get(tries).copied().unwrap_or(3_600));
    run.put_off(now.checked_add(wait).unwrap_or(Timestamp::MAX), now);
    Moved::to(run, Vec::new())
}

/// The account is suspended: the step is looked at again in an hour, and that counts as no try.
pub(super) fn held(mut run: Run, now: Timestamp) -> Moved {
    let (tries, trying_since) = (run.tries, run.trying_since);
    run.put_off(now.checked_add(HELD_FOR).unwrap_or(Timestamp::MAX), now);
    (run.tries, run.trying_since) = (tries, trying_since);
    Moved::to(run, Vec::new())
}

/// The step is done.
pub(super) fn done(mut run: Run, output: Value, now: Timestamp) -> Moved {
    let facts = run.complete(output, Then::Next, now);
    Moved::to(run, facts)
}

/// The step cannot be done at all.
pub(super) fn failed(mut run: Run, why: &str, now: Timestamp) -> Moved {
    let facts = run.fail(why, now);
    Moved::to(run, facts)
}
