//! Applies a signal to the automations of its account, in the caller's commit.
//!
//! ```text
//! signal ─► has a trigger? ─► cancel runs ─► resume runs ─► start runs
//! ```
//!
//! The batch checks everything that was read. One commit changes a bounded number of runs and bytes. If a signal
//! matches more runs, they are all counted (at most [`MATCHED_MAX`] of them), and a job changes the rest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::automation::context::{self, RunContext, WaitResult};
use model::automation::definition::{MatchBy, Reentry, StepAction};
use model::automation::job::{AutomationJobKind, SealedBytes};
use model::automation::run::{AutomationRun, CancelSource, LINEAGE_MAX, NextStep, RunStart, RunWait};
use model::automation::{AutomationDefinition, AutomationStatus, STARTED_MAX};
use model::id::{AccountId, AutomationId, ProductEventId, RunId};
use model::trigger_event::TriggerEvent;
use serde_json::{Value, json};
use store::automation::TriggerRole;
use store::automation_run::{RunKey, StoredRun, run_indexes, wait};
use store::engine::{Batch, CommitError, ReadError, Store};
use store::product_event::ProductEventFilter;
use store::{RetriesExhausted, retry_on_conflict};
use thiserror::Error;

use super::engine::{AutomationEngine, SignalEffects};
use super::step;
use super::trigger_signal::TriggerSignal;

/// Limit of the runs of a person, or waiting for an event about a person, that a signal is matched against.
const MATCHED_MAX: usize = 10_000;
/// Runs read at once.
const PAGE: usize = 200;
/// Runs changed in one commit.
const CHANGED_MAX: usize = 1_000;
/// Approximate bytes that the changes of one commit may write.
const CHANGED_BYTES_MAX: usize = 4 << 20;
/// Approximate bytes of one change besides the run's context.
const CHANGE_BYTES: usize = 4 << 10;
/// Stored events of a person that a wait is matched against when it begins.
const EARLIER_MAX: usize = 100;
/// Approximate bytes of the event of a condition that follows a wait.
const CONDITION_BYTES: usize = 1 << 10;

/// Counts the conditions after a step, which may be executed with its end.
fn count_conditions(definition: &AutomationDefinition, index: usize) -> usize {
    let later = definition.steps.iter().skip(index + 1);
    later.filter(|step| matches!(step.action, StepAction::Condition(_))).count()
}

/// Remaining changes that one commit may make.
pub(super) struct CommitBudget {
    runs: usize,
    bytes: usize,
}

impl CommitBudget {
    pub(super) fn new() -> Self {
        Self { runs: CHANGED_MAX, bytes: CHANGED_BYTES_MAX }
    }

    fn try_consume(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_add(CHANGE_BYTES);
        if self.runs == 0 || self.bytes < bytes {
            // Later runs wait too, to preserve the order.
            self.runs = 0;
            return false;
        }
        (self.runs, self.bytes) = (self.runs - 1, self.bytes - bytes);
        true
    }
}

/// Runs could not be resumed after the commit of an event.
#[derive(Debug, Error)]
pub enum LateResumeError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Conflict(#[from] RetriesExhausted),
}

/// Result of matching a signal against runs.
#[derive(Debug, Default)]
pub(super) struct MatchedRuns {
    pub(super) matched: u64,
    /// Cursors of the runs that a job must process; `None` if none are left.
    pub(super) left: Option<Vec<Option<SealedBytes>>>,
}

impl AutomationEngine {
    fn store(&self) -> &Store {
        &self.0.services.store
    }

    /// Writes the effects of an event into `batch`. The batch checks what was read: after a conflict, build a new batch
    /// with a new call. After the commit, call [`AutomationEngine::wake`].
    pub async fn apply_event(&self, signal: &TriggerEvent<'_>, batch: &mut Batch) -> Result<SignalEffects, ReadError> {
        if !self.0.trigger_index.has_trigger(self.store(), signal.account, signal.name, self.now()).await? {
            return Ok(SignalEffects::default());
        }
        self.apply_signal(&TriggerSignal::from_product_event(signal), batch).await
    }

    pub(super) async fn apply_signal(
        &self,
        trigger_signal: &TriggerSignal,
        batch: &mut Batch,
    ) -> Result<SignalEffects, ReadError> {
        let triggered =
            store::automation::list_triggered(self.store(), trigger_signal.account, &trigger_signal.facts.name).await?;
        let with_role = |role| triggered.iter().filter(move |(r, _)| *r == role).map(|(_, id)| *id).collect::<Vec<_>>();
        let (mut budget, mut done) = (CommitBudget::new(), HashSet::new());
        let cancelled = self
            .cancel_matching(trigger_signal, &with_role(TriggerRole::Cancels), &mut budget, &mut done, batch)
            .await?;
        let is_awaited = !with_role(TriggerRole::Awaits).is_empty();
        let resumed = match is_awaited {
            false => MatchedRuns::default(),
            true => self.resume_waiting(trigger_signal, &[], &mut budget, &done, batch).await?,
        };
        for (matched_runs, cancels) in [(&cancelled, true), (&resumed, false)] {
            if let Some(after) = &matched_runs.left {
                self.enqueue_remaining(trigger_signal, cancels, after.clone(), batch)?;
            }
        }
        let matched = self.start_runs(trigger_signal, &with_role(TriggerRole::Starts), &done, batch).await?;
        Ok(SignalEffects { matched, resumed: resumed.matched, cancelled: cancelled.matched, is_awaited })
    }

    /// Resumes runs whose wait was committed at the same time as an event: the event was read for no wait, and the wait
    /// read no event. Call it after the commit of an event that is awaited.
    ///
    /// # Errors
    /// The store cannot be read or written, or the same runs change all the time.
    pub async fn resume_after_commit(&self, event: &TriggerEvent<'_>) -> Result<(), LateResumeError> {
        let trigger_signal = TriggerSignal::from_product_event(event);
        retry_on_conflict(async || {
            let (mut batch, mut budget) = (Batch::progress(), CommitBudget::new());
            let resumed = self.resume_waiting(&trigger_signal, &[], &mut budget, &HashSet::new(), &mut batch).await?;
            if resumed.matched == 0 {
                return Ok(Some(()));
            }
            if let Some(after) = resumed.left {
                self.enqueue_remaining(&trigger_signal, false, after, &mut batch)?;
            }
            let partitions = store::automation_run::due_work::partitions_of(&batch);
            match self.store().commit(batch).await {
                Ok(()) => {
                    self.wake(&partitions);
                    Ok(Some(()))
                }
                // The runner, or another event, has changed a run.
                Err(CommitError::Conflict { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    fn enqueue_remaining(
        &self,
        trigger_signal: &TriggerSignal,
        cancels: bool,
        after: Vec<Option<SealedBytes>>,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let signal = SealedBytes(self.seal_json(trigger_signal.source.as_bytes(), trigger_signal)?);
        // Prefix the source, which is the associated data of the seal.
        let signal = SealedBytes(
            [&[u8::try_from(trigger_signal.source.len()).unwrap_or(0)], trigger_signal.source.as_bytes(), &signal.0]
                .concat(),
        );
        self.enqueue_job(batch, trigger_signal.account, AutomationJobKind::Rest { signal, cancels, after });
        Ok(())
    }

    /// Unseals a signal that a job stored.
    pub(super) fn unseal_signal(&self, SealedBytes(bytes): &SealedBytes) -> Result<TriggerSignal, ReadError> {
        let cut = || {
            let (length, rest) = bytes.split_first()?;
            rest.split_at_checked(usize::from(*length))
        };
        let (source, sealed) =
            cut().ok_or_else(|| super::engine::corrupt("the stored signal of a job is truncated"))?;
        self.unseal_json(source, sealed)
    }

    /// Cancels runs of the signal's person whose automations list the event in `cancel_on_events`.
    pub(super) async fn cancel_matching(
        &self,
        trigger_signal: &TriggerSignal,
        automations: &[AutomationId],
        budget: &mut CommitBudget,
        done: &mut HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<MatchedRuns, ReadError> {
        let (mut matched_runs, now) = (MatchedRuns::default(), self.now());
        for automation in automations {
            for person_key in trigger_signal.person_keys() {
                let (store, account) = (self.store(), trigger_signal.account);
                let ids = run_indexes::list_active(store, account, *automation, person_key, MATCHED_MAX).await?;
                for page in ids.chunks(PAGE) {
                    let page: Vec<RunKey> = page.iter().map(|id| (account, *automation, *id)).collect();
                    for (found, _) in store::automation_run::get_each(self.store(), &page).await? {
                        if done.contains(&found.run.id) || !self.is_cancelled_by(&found.run, trigger_signal).await? {
                            continue;
                        }
                        matched_runs.matched += 1;
                        done.insert(found.run.id);
                        if !budget.try_consume(0) {
                            matched_runs.left = Some(Vec::new());
                            continue;
                        }
                        let mut after = found.run.clone();
                        after.cancel(CancelSource::Event, now);
                        store::automation_run::update(batch, &found, &after);
                    }
                }
            }
        }
        Ok(matched_runs)
    }

    async fn is_cancelled_by(&self, run: &AutomationRun, trigger_signal: &TriggerSignal) -> Result<bool, ReadError> {
        if !run.status.is_active()
            || run.created_at > trigger_signal.at
            || !run.identity().is_same_person(trigger_signal.identity())
        {
            return Ok(false);
        }
        if !trigger_signal.is_personal() {
            return Ok(false);
        }
        let Some(definition) = self.definition(run.account, run.automation, run.version).await? else {
            return Ok(false);
        };
        let trigger = &definition.trigger;
        let machine = trigger_signal.machine && !trigger.include_machine;
        Ok(!machine && trigger.cancel_on_events.contains(&trigger_signal.facts.name))
    }

    pub(super) async fn definition(
        &self,
        account: AccountId,
        automation: AutomationId,
        version: u32,
    ) -> Result<Option<Arc<AutomationDefinition>>, ReadError> {
        self.0.definition_cache.get(self.store(), account, automation, version).await
    }

    /// Resumes runs that wait for this event, starting after the given cursors.
    pub(super) async fn resume_waiting(
        &self,
        trigger_signal: &TriggerSignal,
        after: &[Option<SealedBytes>],
        budget: &mut CommitBudget,
        done: &HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<MatchedRuns, ReadError> {
        let event_json = context::event_context(&trigger_signal.facts);
        let (mut matched_runs, mut processed) = (MatchedRuns::default(), done.clone());
        let (mut positions, mut has_more) = (Vec::new(), false);
        let mut is_active_by_automation = HashMap::new();
        for (n, person_key) in trigger_signal.person_keys().into_iter().enumerate() {
            let mut last_read = after.get(n).cloned().flatten().map(|SealedBytes(at)| at);
            let (mut position, mut read_count) = (last_read.clone(), 0);
            while read_count < MATCHED_MAX {
                let (account, event) = (trigger_signal.account, trigger_signal.facts.name.as_str());
                let page = wait::list_waiting_for(self.store(), account, event, person_key, last_read.as_deref(), PAGE)
                    .await?;
                read_count += page.len();
                let runs: Vec<RunKey> = page.iter().map(|(_, run_key)| *run_key).collect();
                for (found, sealed) in store::automation_run::get_each(self.store(), &runs).await? {
                    if processed.contains(&found.run.id) {
                        continue;
                    }
                    let Some(definition) =
                        self.find_awaiting(&found.run, sealed.as_deref(), trigger_signal, &event_json).await?
                    else {
                        continue;
                    };
                    processed.insert(found.run.id);
                    matched_runs.matched += 1;
                    let bytes = sealed.as_ref().map_or(0, |sealed| 2 * sealed.len());
                    let conditions = count_conditions(&definition, found.run.index);
                    let is_active = self.is_active(&found.run, &mut is_active_by_automation).await?;
                    let definition = Some(definition).filter(|_| is_active);
                    if budget.try_consume(bytes + CONDITION_BYTES * conditions) {
                        let signal = (trigger_signal, false);
                        self.resume_run(&found, definition.as_deref(), sealed.as_deref(), signal, batch)?;
                    } else {
                        has_more = true;
                    }
                }
                last_read = page.last().map(|(at, _)| at.to_vec()).or(last_read);
                if !has_more {
                    position.clone_from(&last_read);
                }
                if page.len() < PAGE {
                    break;
                }
            }
            has_more |= read_count >= MATCHED_MAX;
            positions.push(position.map(SealedBytes));
        }
        matched_runs.left = has_more.then_some(positions);
        Ok(matched_runs)
    }

    /// Resumes a run by the oldest stored product event since the start of its wait that it waits for. Returns whether
    /// there is one.
    pub(super) async fn resume_by_earlier_event(
        &self,
        found: &StoredRun,
        sealed: Option<&[u8]>,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        let run = &found.run;
        let Some(RunWait { event: Some(name), since, .. }) = &run.waiting else { return Ok(false) };
        let of_person = ProductEventFilter {
            name: Some(name.clone()),
            since: Some(ProductEventId::new(*since, 0)),
            ..ProductEventFilter::default()
        };
        let by_user = run.user_id.clone().map(|id| ProductEventFilter { user_id: Some(id), ..of_person.clone() });
        let by_email = run.email.clone().map(|email| ProductEventFilter { email: Some(email), ..of_person.clone() });
        let mut events = Vec::new();
        for filter in by_user.into_iter().chain(by_email) {
            events.extend(store::product_event::list(self.store(), run.account, &filter, EARLIER_MAX).await?.events);
        }
        events.sort_unstable_by_key(|event| event.id);
        for event in &events {
            let trigger_signal = TriggerSignal::from_product_event(&TriggerEvent::from(event));
            let event_json = context::event_context(&trigger_signal.facts);
            if let Some(definition) = self.find_awaiting(run, sealed, &trigger_signal, &event_json).await? {
                self.resume_run(found, Some(&definition), sealed, (&trigger_signal, true), batch)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the definition of a run that waits for this event; `None` if it does not.
    async fn find_awaiting(
        &self,
        run: &AutomationRun,
        sealed: Option<&[u8]>,
        trigger_signal: &TriggerSignal,
        event_json: &Value,
    ) -> Result<Option<Arc<AutomationDefinition>>, ReadError> {
        let Some(RunWait { event: Some(event), since, .. }) = &run.waiting else { return Ok(None) };
        // The time alone does not tell whether the wait is older than the event: times are in milliseconds.
        if *event != trigger_signal.facts.name
            || *since > trigger_signal.at
            || run.has_used_event(&trigger_signal.source)
        {
            return Ok(None);
        }
        let Some(definition) = self.definition(run.account, run.automation, run.version).await? else {
            return Ok(None);
        };
        let Some(StepAction::WaitForEvent(wait)) = definition.steps.get(run.index).map(|step| &step.action) else {
            return Ok(None);
        };
        let (of_run, of_event) = (run.identity(), trigger_signal.identity());
        let is_same_person = match wait.by {
            MatchBy::UserId => of_event.user_id.is_some() && of_run.user_id == of_event.user_id,
            MatchBy::Email => of_run.has_same_email(of_event),
            MatchBy::Auto => of_run.is_same_person(of_event),
        };
        if !is_same_person || !trigger_signal.is_personal() || (trigger_signal.machine && !wait.include_machine) {
            return Ok(None);
        }
        if let Some(filter) = &wait.filter {
            let run_context = match sealed {
                Some(sealed) => self.unseal_json::<RunContext>(&run.id.to_bytes(), sealed)?.to_json(),
                None => Value::Null,
            };
            if !filter.evaluate(event_json, &run_context) {
                return Ok(None);
            }
        }
        Ok(Some(definition))
    }

    /// True if the automation of a run is active, neither paused nor archived. `known` has those read before.
    pub(super) async fn is_active(
        &self,
        run: &AutomationRun,
        known: &mut HashMap<AutomationId, bool>,
    ) -> Result<bool, ReadError> {
        if let Some(is_active) = known.get(&run.automation) {
            return Ok(*is_active);
        }
        let found = store::automation::get(self.store(), run.account, run.automation).await?;
        let is_active = found.is_some_and(|found| found.automation.status == AutomationStatus::Active);
        known.insert(run.automation, is_active);
        Ok(is_active)
    }

    /// Ends the wait of a run by an event. Without `definition`, because the automation is paused, the next step is left
    /// to the runner, which holds the run. If the event `is_earlier` than the wait, so may be those of a wait that follows.
    fn resume_run(
        &self,
        found: &StoredRun,
        definition: Option<&AutomationDefinition>,
        sealed: Option<&[u8]>,
        (trigger_signal, is_earlier): (&TriggerSignal, bool),
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let (mut run, now) = (found.run.clone(), self.now());
        let mut facts =
            run.complete_step(json!({"received": true, "event_id": trigger_signal.source}), NextStep::Next, now);
        let mut next_context = None;
        if let Some(sealed) = sealed.filter(|_| run.status.is_active()) {
            let mut run_context: RunContext = self.unseal_json(&run.id.to_bytes(), sealed)?;
            run_context.wait = Some(WaitResult { received: true, facts: Some(trigger_signal.facts.clone()) });
            if let Some(definition) = definition {
                facts.extend(step::start_next_steps(&mut run, definition, &run_context, now));
            }
            next_context = Some(run_context).filter(|_| run.status.is_active());
        }
        if is_earlier {
            run.read_events_since(trigger_signal.at);
        }
        store::automation_run::update(batch, found, &run);
        if let Some(run_context) = next_context {
            let sealed = self.seal_context(run.id, &run_context)?;
            store::automation_run::put_sealed(batch, store::automation_run::run_key(&run), sealed);
        }
        self.record_facts(batch, &run, &facts, now);
        Ok(())
    }

    /// Starts runs of automations that the event triggers.
    async fn start_runs(
        &self,
        trigger_signal: &TriggerSignal,
        automations: &[AutomationId],
        done: &HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (event_json, now) = (context::event_context(&trigger_signal.facts), self.now());
        let mut matched = 0;
        let automations = automations.get(..automations.len().min(STARTED_MAX)).unwrap_or_default();
        for found in store::automation::get_many(self.store(), trigger_signal.account, automations).await? {
            let automation = &found.automation;
            let is_guarded =
                trigger_signal.lineage.contains(&automation.id) || trigger_signal.lineage.len() >= LINEAGE_MAX;
            if automation.status != AutomationStatus::Active || is_guarded {
                continue;
            }
            let Some(definition) = self.definition(trigger_signal.account, automation.id, automation.version).await?
            else {
                continue;
            };
            let trigger = &definition.trigger;
            let filter = trigger.filter.as_ref().is_none_or(|filter| filter.evaluate(&event_json, &event_json));
            if trigger.event != trigger_signal.facts.name
                || !filter
                || (trigger_signal.machine && !trigger.include_machine)
            {
                continue;
            }
            let start = RunStart {
                id: RunId::new(now, self.random_bits()),
                partition: self.choose_partition(),
                source: trigger_signal.source.clone(),
                event_name: &trigger_signal.facts.name,
                user_id: trigger_signal.facts.user_id.as_deref(),
                email: trigger_signal.facts.email.as_deref(),
                lineage: trigger_signal.lineage.clone(),
                at: now,
            };
            let (mut run, fact) = AutomationRun::begin(automation, &definition, start);
            if !self.check_reentry(&run, trigger.reentry, done, batch).await? {
                continue;
            }
            store::automation::check_start_trigger(batch, trigger_signal.account, automation.id, &trigger.event);
            let run_context = RunContext {
                answering: trigger_signal.answering.clone(),
                ..RunContext::new(trigger_signal.facts.clone())
            };
            let mut facts = vec![fact];
            facts.extend(step::start_next_steps(&mut run, &definition, &run_context, now));
            store::automation_run::create(batch, &run, self.seal_context(run.id, &run_context)?);
            self.record_facts(batch, &run, &facts, now);
            matched += 1;
        }
        Ok(matched)
    }

    /// Returns whether the person may have another run. If that depends on earlier runs, a second start at the same
    /// time conflicts. A signal without user id and address is always allowed.
    async fn check_reentry(
        &self,
        run: &AutomationRun,
        reentry: Reentry,
        done: &HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        if reentry == Reentry::Always {
            return Ok(true);
        }
        let (account, automation) = (run.account, run.automation);
        let mut last_runs = Vec::new();
        for person_key in run.persons().into_iter().flatten() {
            let last = run_indexes::find_last(self.store(), account, automation, person_key).await?;
            if let Some(id) = last.run {
                let earlier = store::automation_run::get(self.store(), (account, automation, id)).await?;
                let is_same = |earlier: &AutomationRun| earlier.identity().is_same_person(run.identity());
                let blocks_start = match (&earlier, reentry) {
                    // The earlier run was deleted by retention, but it existed.
                    (None, Reentry::Once) => true,
                    (None, _) => false,
                    (Some(found), Reentry::Once) => is_same(&found.run),
                    (Some(found), _) => found.run.status.is_active() && !done.contains(&id) && is_same(&found.run),
                };
                if blocks_start {
                    return Ok(false);
                }
            }
            last_runs.push((person_key, last));
        }
        for (person_key, last) in &last_runs {
            run_indexes::put_last(batch, run, *person_key, last);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use model::automation::{Automation, AutomationVersion, parse};
    use model::id::ProductEventId;
    use net::clock::Clock;
    use net::entropy::Entropy;
    use queue::services::Services;

    use super::*;

    fn engine() -> AutomationEngine {
        let services = Services::new(Store::memory(), Clock::default(), Entropy::default());
        let vault = dns::secrets::Vault::new(&[7; dns::secrets::KEY_BYTES]).unwrap();
        AutomationEngine::new(services, Arc::default(), Arc::new(vault))
    }

    async fn activate(engine: &AutomationEngine, definition: Value) -> Automation {
        let now = engine.now();
        let automation = Automation {
            id: AutomationId::new(now, 1),
            account: AccountId::new(now, 1),
            name: "Trial".to_owned(),
            status: AutomationStatus::Active,
            version: 1,
            created_at: now,
            updated_at: now,
            activated_at: Some(now),
        };
        let definition = parse::parse_stored(&definition).unwrap();
        let mut batch = Batch::progress();
        store::automation::create(&mut batch, &automation);
        store::automation::add_triggers(&mut batch, &automation, &definition);
        let version = AutomationVersion { number: 1, definition, created_at: now };
        store::automation::put_version(&mut batch, &automation, &version);
        engine.store().commit(batch).await.unwrap();
        automation
    }

    async fn apply(engine: &AutomationEngine, account: AccountId, name: &str, data: Value) -> (u64, u64) {
        let at = engine.now();
        let id = ProductEventId::new(at, engine.random_bits()).to_bytes();
        let (mut batch, user_id) = (Batch::intake(), Some("7"));
        let event = TriggerEvent { account, name, id, user_id, email: None, data: &data, at };
        let effects = engine.apply_event(&event, &mut batch).await.unwrap();
        engine.store().commit(batch).await.unwrap();
        (effects.matched, effects.resumed)
    }

    /// The steps between these events are executed in the commits of the events.
    #[tokio::test]
    async fn a_run_waits_before_the_response_to_an_event() {
        let engine = engine();
        let wait = json!({"type": "wait_for_event", "event": "act", "match": "user_id", "timeout": "1h"});
        let is = |field: &str, value: Value| {
            let all = json!([{"field": field, "op": "eq", "value": value}]);
            json!({"type": "condition", "all": all})
        };
        let steps = json!([is("event.data.plan", json!("trial")), wait, is("wait.data.n", json!(2)), wait, wait]);
        let automation = activate(&engine, json!({"trigger": {"event": "act"}, "steps": steps})).await;
        let apply = async |data| apply(&engine, automation.account, "act", data).await;
        let active_index = async || {
            let (account, id) = (automation.account, automation.id);
            let runs = store::automation_run::list_newest(engine.store(), account, id, 9).await.unwrap();
            runs.iter().find(|run| run.status.is_active()).map(|run| run.index)
        };
        assert_eq!(
            (apply(json!({"plan": "paid"})).await, active_index().await),
            ((1, 0), None),
            "the condition is false"
        );
        // The event does not resume the run that it starts.
        assert_eq!((apply(json!({"plan": "trial"})).await, active_index().await), ((1, 0), Some(1)));
        assert_eq!((apply(json!({"n": 2})).await, active_index().await), ((1, 1), Some(3)));
        assert_eq!((apply(json!({"n": 3})).await, active_index().await), ((1, 1), Some(4)));
    }

    /// A paused automation executes nothing: the event ends the wait, and the condition after it is left to the runner.
    #[tokio::test]
    async fn a_paused_automation_executes_no_step_after_a_wait() {
        let engine = engine();
        let steps = json!([
            {"type": "wait_for_event", "event": "act", "match": "user_id", "timeout": "1h"},
            {"type": "condition", "all": [{"field": "wait.data.n", "op": "eq", "value": 2}]},
        ]);
        let automation = activate(&engine, json!({"trigger": {"event": "act"}, "steps": steps})).await;
        let (account, id) = (automation.account, automation.id);
        assert_eq!(apply(&engine, account, "act", json!({})).await, (1, 0));
        let stored = store::automation::get(engine.store(), account, id).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        let paused = Automation { status: AutomationStatus::Paused, ..automation };
        store::automation::update(&mut batch, &stored, &paused);
        engine.store().commit(batch).await.unwrap();
        assert_eq!(apply(&engine, account, "act", json!({"n": 1})).await, (0, 1));
        let runs = store::automation_run::list_newest(engine.store(), account, id, 9).await.unwrap();
        assert_eq!((runs[0].index, runs[0].status.is_active()), (1, true));
    }
}
