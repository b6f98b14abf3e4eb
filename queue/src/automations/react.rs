//! Reacting: what a signal does to the automations of its account, written into the commit of who hears it.
//!
//! ```text
//! signal ─► does anybody hear it? ─► cancel ─► resume ─► start
//! ```
//!
//! All that is read is checked by the batch. What one commit changes is bounded, by runs and by bytes: when a
//! signal matches more, they are counted all the same ([`COUNTED_MAX`] of them at most) and a job does the others.

use std::collections::HashSet;
use std::sync::Arc;

use mail::automation::context::{self, RunContext, WaitResult};
use mail::automation::definition::{MatchBy, Reentry, StepAction};
use mail::automation::job::{AutomationJobKind, SealedBytes};
use mail::automation::person;
use mail::automation::run::{AutomationRun, CancelSource, LINEAGE_MAX, NextStep, RunStart, RunWait};
use mail::automation::{AutomationDefinition, AutomationStatus, STARTED_MAX};
use mail::id::{AccountId, AutomationId, RunId};
use mail::signal::TriggerEvent;
use serde_json::{Value, json};
use store::automation::TriggerRole;
use store::engine::{Batch, ReadError, Store};
use store::run::{RunKey, StoredRun};

use super::heard::TriggerSignal;
use super::{AutomationEngine, SignalEffects};

/// Runs of a person, or that wait for an event about one, that a signal is held against.
const MATCHED_MAX: usize = 10_000;
/// Runs read at once.
const PAGE: usize = 200;
/// Runs that one commit changes.
const CHANGED_MAX: usize = 1_000;
/// What they write, about, in bytes.
const CHANGED_BYTES_MAX: usize = 4 << 20;
/// What a change writes beside what a run knows, about.
const CHANGE_BYTES: usize = 4 << 10;

/// What may still be written into a commit.
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
            // What comes later waits for its turn.
            self.runs = 0;
            return false;
        }
        (self.runs, self.bytes) = (self.runs - 1, self.bytes - bytes);
        true
    }
}

/// What came of holding a signal against runs.
#[derive(Debug, Default)]
pub(super) struct MatchedRuns {
    /// Runs that matched.
    pub(super) matched: u64,
    /// Some of them are left for later: after which keys.
    pub(super) left: Option<Vec<Option<SealedBytes>>>,
}

impl AutomationEngine {
    fn store(&self) -> &Store {
        &self.0.worker.store
    }

    /// Writes into `batch` what a signal does. The batch checks what was read: when its commit conflicts, it
    /// is built anew, from a new reaction. Once it is committed, [`Automations::wake`] sets it going.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn apply_event(&self, signal: &TriggerEvent<'_>, batch: &mut Batch) -> Result<SignalEffects, ReadError> {
        let named = (signal.account, signal.name);
        if !self.0.worker.trigger_index.has_trigger(self.store(), named, self.now()).await? {
            return Ok(SignalEffects::default());
        }
        self.apply_signal(&TriggerSignal::from_product_event(signal), batch).await
    }

    pub(super) async fn apply_signal(
        &self,
        heard: &TriggerSignal,
        batch: &mut Batch,
    ) -> Result<SignalEffects, ReadError> {
        let hearers = store::automation::list_triggered(self.store(), heard.account, &heard.facts.name).await?;
        let of = |role| hearers.iter().filter(move |(r, _)| *r == role).map(|(_, id)| *id).collect::<Vec<_>>();
        let (mut room, mut done) = (CommitBudget::new(), HashSet::new());
        let cancelled = self.cancel_matching(heard, &of(TriggerRole::Cancels), (&mut room, &mut done), batch).await?;
        let resumed = match of(TriggerRole::Awaits).is_empty() {
            true => MatchedRuns::default(),
            false => self.resume_waiting(heard, &[], (&mut room, &done), batch).await?,
        };
        for (swept, cancels) in [(&cancelled, true), (&resumed, false)] {
            if let Some(after) = &swept.left {
                self.enqueue_remaining(heard, cancels, after.clone(), batch)?;
            }
        }
        let matched = self.start_runs(heard, &of(TriggerRole::Starts), &done, batch).await?;
        Ok(SignalEffects { matched, resumed: resumed.matched, cancelled: cancelled.matched })
    }

    fn enqueue_remaining(
        &self,
        heard: &TriggerSignal,
        cancels: bool,
        after: Vec<Option<SealedBytes>>,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let signal = SealedBytes(self.seal_json(heard.source.as_bytes(), heard)?);
        // Who opens it must know for what it was sealed.
        let signal = SealedBytes(
            [&[u8::try_from(heard.source.len()).unwrap_or(0)], heard.source.as_bytes(), &signal.0].concat(),
        );
        self.enqueue_job(batch, heard.account, AutomationJobKind::Rest { signal, cancels, after });
        Ok(())
    }

    /// Opens a signal that was left.
    pub(super) fn unseal_signal(&self, SealedBytes(bytes): &SealedBytes) -> Result<TriggerSignal, ReadError> {
        let cut = || {
            let (length, rest) = bytes.split_first()?;
            rest.split_at_checked(usize::from(*length))
        };
        let (source, sealed) = cut().ok_or_else(|| super::corrupt("a signal that was left is cut"))?;
        self.unseal_json(source, sealed)
    }

    /// Ends the runs of the person whose automations want that.
    pub(super) async fn cancel_matching(
        &self,
        heard: &TriggerSignal,
        automations: &[AutomationId],
        (room, done): (&mut CommitBudget, &mut HashSet<RunId>),
        batch: &mut Batch,
    ) -> Result<MatchedRuns, ReadError> {
        let (mut swept, now) = (MatchedRuns::default(), self.now());
        for automation in automations {
            for person in heard.person_keys() {
                let of = (heard.account, *automation);
                let ids = store::run::by::list_active(self.store(), of, person, MATCHED_MAX).await?;
                for page in ids.chunks(PAGE) {
                    let page: Vec<RunKey> = page.iter().map(|id| (of.0, of.1, *id)).collect();
                    for (found, _) in store::run::get_each(self.store(), &page).await? {
                        if done.contains(&found.run.id) || !self.is_cancelled_by(&found.run, heard).await? {
                            continue;
                        }
                        swept.matched += 1;
                        done.insert(found.run.id);
                        if !room.try_consume(0) {
                            swept.left = Some(Vec::new());
                            continue;
                        }
                        let mut after = found.run.clone();
                        after.cancel(CancelSource::Event, now);
                        store::run::update(batch, &found, &after);
                    }
                }
            }
        }
        Ok(swept)
    }

    async fn is_cancelled_by(&self, run: &AutomationRun, heard: &TriggerSignal) -> Result<bool, ReadError> {
        let who = (run.user_id.as_deref(), run.email.as_deref());
        if !run.status.is_active()
            || run.created_at > heard.at
            || !person::is_same_person(who, heard.user_and_address())
        {
            return Ok(false);
        }
        if !heard.is_personal() {
            return Ok(false);
        }
        let Some(definition) = self.definition(run.account, (run.automation, run.version)).await? else {
            return Ok(false);
        };
        let trigger = &definition.trigger;
        let machine = heard.machine && !trigger.include_machine;
        Ok(!machine && trigger.cancel_on_events.contains(&heard.facts.name))
    }

    pub(super) async fn definition(
        &self,
        account: AccountId,
        version: (AutomationId, u32),
    ) -> Result<Option<Arc<AutomationDefinition>>, ReadError> {
        self.0.definition_cache.get(self.store(), account, version).await
    }

    /// Lets the runs go on that wait for this, those after these keys.
    pub(super) async fn resume_waiting(
        &self,
        heard: &TriggerSignal,
        after: &[Option<SealedBytes>],
        (room, done): (&mut CommitBudget, &HashSet<RunId>),
        batch: &mut Batch,
    ) -> Result<MatchedRuns, ReadError> {
        let here = context::event_context(&heard.facts);
        let (mut swept, mut seen) = (MatchedRuns::default(), done.clone());
        let (mut places, mut left) = (Vec::new(), false);
        for (n, person) in heard.person_keys().into_iter().enumerate() {
            let mut behind = after.get(n).cloned().flatten().map(|SealedBytes(at)| at);
            let (mut place, mut looked_at) = (behind.clone(), 0);
            while looked_at < MATCHED_MAX {
                let named = (heard.account, heard.facts.name.as_str(), person);
                let page = store::run::wait::list_waiting_for(self.store(), named, behind.as_deref(), PAGE).await?;
                looked_at += page.len();
                let abouts: Vec<RunKey> = page.iter().map(|(_, about)| *about).collect();
                for (found, sealed) in store::run::get_each(self.store(), &abouts).await? {
                    if seen.contains(&found.run.id) || !self.is_waiting_for(&found.run, &sealed, heard, &here).await? {
                        continue;
                    }
                    seen.insert(found.run.id);
                    swept.matched += 1;
                    let bytes = sealed.as_ref().map_or(0, |sealed| 2 * sealed.len());
                    if room.try_consume(bytes) {
                        self.resume_run(&found, sealed.as_deref(), heard, batch)?;
                    } else {
                        left = true;
                    }
                }
                behind = page.last().map(|(at, _)| at.to_vec()).or(behind);
                if !left {
                    place.clone_from(&behind);
                }
                if page.len() < PAGE {
                    break;
                }
            }
            left |= looked_at >= MATCHED_MAX;
            places.push(place.map(SealedBytes));
        }
        swept.left = left.then_some(places);
        Ok(swept)
    }

    async fn is_waiting_for(
        &self,
        run: &AutomationRun,
        sealed: &Option<bytes::Bytes>,
        heard: &TriggerSignal,
        here: &Value,
    ) -> Result<bool, ReadError> {
        let Some(RunWait { event: Some(event), since, .. }) = &run.waiting else { return Ok(false) };
        if *event != heard.facts.name || *since > heard.at {
            return Ok(false);
        }
        let Some(definition) = self.definition(run.account, (run.automation, run.version)).await? else {
            return Ok(false);
        };
        let Some(StepAction::WaitForEvent(wait)) = definition.steps.get(run.index).map(|step| &step.action) else {
            return Ok(false);
        };
        let who = (run.user_id.as_deref(), run.email.as_deref());
        let (user, email) = heard.user_and_address();
        let same = match wait.by {
            MatchBy::UserId => user.is_some() && who.0 == user,
            MatchBy::Email => person::is_same_person((None, who.1), (None, email)),
            MatchBy::Auto => person::is_same_person(who, (user, email)),
        };
        if !same || !heard.is_personal() || (heard.machine && !wait.include_machine) {
            return Ok(false);
        }
        let Some(filter) = &wait.filter else { return Ok(true) };
        let known = match sealed {
            Some(sealed) => self.unseal_json::<RunContext>(&run.id.to_bytes(), sealed)?.to_json(),
            None => Value::Null,
        };
        Ok(filter.evaluate(here, &known))
    }

    fn resume_run(
        &self,
        found: &StoredRun,
        sealed: Option<&[u8]>,
        heard: &TriggerSignal,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let (mut run, now) = (found.run.clone(), self.now());
        let facts = run.complete_step(json!({"received": true, "event_id": heard.source}), NextStep::Next, now);
        store::run::update(batch, found, &run);
        if let Some(sealed) = sealed.filter(|_| run.status.is_active()) {
            let mut known: RunContext = self.unseal_json(&run.id.to_bytes(), sealed)?;
            known.wait = Some(WaitResult { received: true, facts: Some(heard.facts.clone()) });
            store::run::put_sealed(batch, store::run::run_key(&run), self.seal_context(run.id, &known)?);
        }
        self.record_facts(batch, &run, &facts, now);
        Ok(())
    }

    /// Starts runs.
    async fn start_runs(
        &self,
        heard: &TriggerSignal,
        automations: &[AutomationId],
        done: &HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (here, now) = (context::event_context(&heard.facts), self.now());
        let mut matched = 0;
        let automations = automations.get(..automations.len().min(STARTED_MAX)).unwrap_or_default();
        for found in store::automation::get_many(self.store(), heard.account, automations).await? {
            let automation = &found.automation;
            let guarded = heard.lineage.contains(&automation.id) || heard.lineage.len() >= LINEAGE_MAX;
            if automation.status != AutomationStatus::Active || guarded {
                continue;
            }
            let version = (automation.id, automation.version);
            let Some(definition) = self.definition(heard.account, version).await? else { continue };
            let trigger = &definition.trigger;
            let filter = trigger.filter.as_ref().is_none_or(|filter| filter.evaluate(&here, &here));
            if trigger.event != heard.facts.name || !filter || (heard.machine && !trigger.include_machine) {
                continue;
            }
            let beginning = RunStart {
                id: RunId::new(now, self.random_bits()),
                partition: self.choose_partition(),
                source: heard.source.clone(),
                event_name: &heard.facts.name,
                user_id: heard.facts.user_id.as_deref(),
                email: heard.facts.email.as_deref(),
                lineage: heard.lineage.clone(),
                at: now,
            };
            let (run, fact) = AutomationRun::begin(automation, &definition, beginning);
            if !self.check_reentry(&run, trigger.reentry, done, batch).await? {
                continue;
            }
            store::automation::check_start_trigger(batch, (heard.account, automation.id), &trigger.event);
            let known = RunContext { answering: heard.answering.clone(), ..RunContext::new(heard.facts.clone()) };
            store::run::create(batch, &run, self.seal_context(run.id, &known)?);
            self.record_facts(batch, &run, &[fact], now);
            matched += 1;
        }
        Ok(matched)
    }

    /// Whether the person may have another run; if that depends on the runs they have, a second one at the same
    /// time conflicts. Who names neither a user id nor an address is nobody, and may.
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
        let of = (run.account, run.automation);
        let mut lasts = Vec::new();
        for person in run.persons().into_iter().flatten() {
            let last = store::run::by::find_last(self.store(), of, person).await?;
            if let Some(id) = last.run {
                let earlier = store::run::get(self.store(), (of.0, of.1, id)).await?;
                let who = (run.user_id.as_deref(), run.email.as_deref());
                let is_same = |earlier: &AutomationRun| {
                    person::is_same_person((earlier.user_id.as_deref(), earlier.email.as_deref()), who)
                };
                let stands = match (&earlier, reentry) {
                    // Forgotten, but it was there.
                    (None, Reentry::Once) => true,
                    (None, _) => false,
                    (Some(found), Reentry::Once) => is_same(&found.run),
                    (Some(found), _) => found.run.status.is_active() && !done.contains(&id) && is_same(&found.run),
                };
                if stands {
                    return Ok(false);
                }
            }
            lasts.push((person, last));
        }
        for (person, last) in &lasts {
            store::run::by::put_last(batch, run, *person, last);
        }
        Ok(true)
    }
}
