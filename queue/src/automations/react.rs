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

use mail::automation::context::{self, Context, Waited};
use mail::automation::definition::{Action, MatchBy, Reentry};
use mail::automation::job::{Sealed, Work};
use mail::automation::person;
use mail::automation::run::{Beginning, CancelledBy, LINEAGE_MAX, Run, Then, Waiting};
use mail::automation::{AutomationStatus, Definition, STARTED_MAX};
use mail::id::{AccountId, AutomationId, RunId};
use mail::signal::Signal;
use serde_json::{Value, json};
use store::automation::Role;
use store::engine::{Batch, ReadError, Store};
use store::run::{About, Found};

use super::heard::Heard;
use super::{Automations, Reaction};

/// Runs of a person, or that wait for an event about one, that a signal is held against.
const COUNTED_MAX: usize = 10_000;
/// Runs read at once.
const PAGE: usize = 200;
/// Runs that one commit changes.
const CHANGED_MAX: usize = 1_000;
/// What they write, about, in bytes.
const CHANGED_BYTES_MAX: usize = 4 << 20;
/// What a change writes beside what a run knows, about.
const CHANGE_BYTES: usize = 4 << 10;

/// What may still be written into a commit.
pub(super) struct Room {
    runs: usize,
    bytes: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { runs: CHANGED_MAX, bytes: CHANGED_BYTES_MAX }
    }

    fn take(&mut self, bytes: usize) -> bool {
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
pub(super) struct Swept {
    /// Runs that matched.
    pub(super) matched: u64,
    /// Some of them are left for later: after which keys.
    pub(super) left: Option<Vec<Option<Sealed>>>,
}

impl Automations {
    fn store(&self) -> &Store {
        &self.0.worker.store
    }

    /// Writes into `batch` what a signal does. The batch checks what was read: when its commit conflicts, it
    /// is built anew, from a new reaction. Once it is committed, [`Automations::wake`] sets it going.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn react(&self, signal: &Signal<'_>, batch: &mut Batch) -> Result<Reaction, ReadError> {
        let named = (signal.account, signal.name);
        if !self.0.worker.ears.hear(self.store(), named, self.now()).await? {
            return Ok(Reaction::default());
        }
        self.hear(&Heard::of_product(signal), batch).await
    }

    pub(super) async fn hear(&self, heard: &Heard, batch: &mut Batch) -> Result<Reaction, ReadError> {
        let hearers = store::automation::hearers(self.store(), heard.account, &heard.facts.name).await?;
        let of =
            |role| hearers.iter().filter(move |(r, _)| *r == role).map(|(_, id)| *id).collect::<Vec<_>>();
        let (mut room, mut done) = (Room::new(), HashSet::new());
        let cancelled = self.cancel_by(heard, &of(Role::Cancels), (&mut room, &mut done), batch).await?;
        let resumed = match of(Role::Awaits).is_empty() {
            true => Swept::default(),
            false => self.resume(heard, &[], (&mut room, &done), batch).await?,
        };
        for (swept, cancels) in [(&cancelled, true), (&resumed, false)] {
            if let Some(after) = &swept.left {
                self.leave(heard, cancels, after.clone(), batch)?;
            }
        }
        let matched = self.start(heard, &of(Role::Starts), &done, batch).await?;
        Ok(Reaction { matched, resumed: resumed.matched, cancelled: cancelled.matched })
    }

    fn leave(
        &self,
        heard: &Heard,
        cancels: bool,
        after: Vec<Option<Sealed>>,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let signal = Sealed(self.seal_as(heard.source.as_bytes(), heard)?);
        // Who opens it must know for what it was sealed.
        let signal = Sealed(
            [&[u8::try_from(heard.source.len()).unwrap_or(0)], heard.source.as_bytes(), &signal.0].concat(),
        );
        self.plan(batch, heard.account, Work::Rest { signal, cancels, after });
        Ok(())
    }

    /// Opens a signal that was left.
    pub(super) fn left(&self, Sealed(bytes): &Sealed) -> Result<Heard, ReadError> {
        let cut = || {
            let (length, rest) = bytes.split_first()?;
            rest.split_at_checked(usize::from(*length))
        };
        let (source, sealed) = cut().ok_or_else(|| super::corrupt("a signal that was left is cut"))?;
        self.open(source, sealed)
    }

    /// Ends the runs of the person whose automations want that.
    pub(super) async fn cancel_by(
        &self,
        heard: &Heard,
        automations: &[AutomationId],
        (room, done): (&mut Room, &mut HashSet<RunId>),
        batch: &mut Batch,
    ) -> Result<Swept, ReadError> {
        let (mut swept, now) = (Swept::default(), self.now());
        for automation in automations {
            for person in heard.persons() {
                let of = (heard.account, *automation);
                let ids = store::run::by::active_of(self.store(), of, person, COUNTED_MAX).await?;
                for page in ids.chunks(PAGE) {
                    let page: Vec<About> = page.iter().map(|id| (of.0, of.1, *id)).collect();
                    for (found, _) in store::run::get_each(self.store(), &page).await? {
                        if done.contains(&found.run.id) || !self.is_cancelled_by(&found.run, heard).await? {
                            continue;
                        }
                        swept.matched += 1;
                        done.insert(found.run.id);
                        if !room.take(0) {
                            swept.left = Some(Vec::new());
                            continue;
                        }
                        let mut after = found.run.clone();
                        after.cancel(CancelledBy::Event, now);
                        store::run::update(batch, &found, &after);
                    }
                }
            }
        }
        Ok(swept)
    }

    async fn is_cancelled_by(&self, run: &Run, heard: &Heard) -> Result<bool, ReadError> {
        let who = (run.user_id.as_deref(), run.email.as_deref());
        if !run.status.is_active() || run.created_at > heard.at || !person::is_same(who, heard.who()) {
            return Ok(false);
        }
        if !heard.is_of_a_person() {
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
    ) -> Result<Option<Arc<Definition>>, ReadError> {
        self.0.definitions.get(self.store(), account, version).await
    }

    /// Lets the runs go on that wait for this, those after these keys.
    pub(super) async fn resume(
        &self,
        heard: &Heard,
        after: &[Option<Sealed>],
        (room, done): (&mut Room, &HashSet<RunId>),
        batch: &mut Batch,
    ) -> Result<Swept, ReadError> {
        let here = context::at_hand(&heard.facts);
        let (mut swept, mut seen) = (Swept::default(), done.clone());
        let (mut places, mut left) = (Vec::new(), false);
        for (n, person) in heard.persons().into_iter().enumerate() {
            let mut behind = after.get(n).cloned().flatten().map(|Sealed(at)| at);
            let (mut place, mut looked_at) = (behind.clone(), 0);
            while looked_at < COUNTED_MAX {
                let named = (heard.account, heard.facts.name.as_str(), person);
                let page = store::run::wait::for_event(self.store(), named, behind.as_deref(), PAGE).await?;
                looked_at += page.len();
                let abouts: Vec<About> = page.iter().map(|(_, about)| *about).collect();
                for (found, sealed) in store::run::get_each(self.store(), &abouts).await? {
                    if seen.contains(&found.run.id)
                        || !self.is_awaited(&found.run, &sealed, heard, &here).await?
                    {
                        continue;
                    }
                    seen.insert(found.run.id);
                    swept.matched += 1;
                    let bytes = sealed.as_ref().map_or(0, |sealed| 2 * sealed.len());
                    if room.take(bytes) {
                        self.go_on(&found, sealed.as_deref(), heard, batch)?;
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
            left |= looked_at >= COUNTED_MAX;
            places.push(place.map(Sealed));
        }
        swept.left = left.then_some(places);
        Ok(swept)
    }

    async fn is_awaited(
        &self,
        run: &Run,
        sealed: &Option<bytes::Bytes>,
        heard: &Heard,
        here: &Value,
    ) -> Result<bool, ReadError> {
        let Some(Waiting { event: Some(event), since, .. }) = &run.waiting else { return Ok(false) };
        if *event != heard.facts.name || *since > heard.at {
            return Ok(false);
        }
        let Some(definition) = self.definition(run.account, (run.automation, run.version)).await? else {
            return Ok(false);
        };
        let Some(Action::WaitForEvent(wait)) = definition.steps.get(run.index).map(|step| &step.action)
        else {
            return Ok(false);
        };
        let who = (run.user_id.as_deref(), run.email.as_deref());
        let (user, email) = heard.who();
        let same = match wait.by {
            MatchBy::UserId => user.is_some() && who.0 == user,
            MatchBy::Email => person::is_same((None, who.1), (None, email)),
            MatchBy::Auto => person::is_same(who, (user, email)),
        };
        if !same || !heard.is_of_a_person() || (heard.machine && !wait.include_machine) {
            return Ok(false);
        }
        let Some(filter) = &wait.filter else { return Ok(true) };
        let known = match sealed {
            Some(sealed) => self.open::<Context>(&run.id.to_bytes(), sealed)?.to_json(),
            None => Value::Null,
        };
        Ok(filter.holds(here, &known))
    }

    fn go_on(
        &self,
        found: &Found,
        sealed: Option<&[u8]>,
        heard: &Heard,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let (mut run, now) = (found.run.clone(), self.now());
        let facts = run.complete(json!({"received": true, "event_id": heard.source}), Then::Next, now);
        store::run::update(batch, found, &run);
        if let Some(sealed) = sealed.filter(|_| run.status.is_active()) {
            let mut known: Context = self.open(&run.id.to_bytes(), sealed)?;
            known.wait = Some(Waited { received: true, facts: Some(heard.facts.clone()) });
            store::run::put_sealed(batch, store::run::about(&run), self.seal(run.id, &known)?);
        }
        self.record(batch, &run, &facts, now);
        Ok(())
    }

    /// Starts runs.
    async fn start(
        &self,
        heard: &Heard,
        automations: &[AutomationId],
        done: &HashSet<RunId>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (here, now) = (context::at_hand(&heard.facts), self.now());
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
            let filter = trigger.filter.as_ref().is_none_or(|filter| filter.holds(&here, &here));
            if trigger.event != heard.facts.name || !filter || (heard.machine && !trigger.include_machine) {
                continue;
            }
            let beginning = Beginning {
                id: RunId::new(now, self.random()),
                partition: self.partition(),
                source: heard.source.clone(),
                event_name: &heard.facts.name,
                user_id: heard.facts.user_id.as_deref(),
                email: heard.facts.email.as_deref(),
                lineage: heard.lineage.clone(),
                at: now,
            };
            let (run, fact) = Run::begin(automation, &definition, beginning);
            if !self.may_enter(&run, trigger.reentry, done, batch).await? {
                continue;
            }
            store::automation::check_starts(batch, (heard.account, automation.id), &trigger.event);
            let known = Context { answering: heard.answering.clone(), ..Context::new(heard.facts.clone()) };
            store::run::create(batch, &run, self.seal(run.id, &known)?);
            self.record(batch, &run, &[fact], now);
            matched += 1;
        }
        Ok(matched)
    }

    /// Whether the person may have another run; if that depends on the runs they have, a second one at the same
    /// time conflicts. Who names neither a user id nor an address is nobody, and may.
    async fn may_enter(
        &self,
        run: &Run,
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
            let last = store::run::by::last_of(self.store(), of, person).await?;
            if let Some(id) = last.run {
                let earlier = store::run::get(self.store(), (of.0, of.1, id)).await?;
                let who = (run.user_id.as_deref(), run.email.as_deref());
                let is_same = |earlier: &Run| {
                    person::is_same((earlier.user_id.as_deref(), earlier.email.as_deref()), who)
                };
                let stands = match (&earlier, reentry) {
                    // Forgotten, but it was there.
                    (None, Reentry::Once) => true,
                    (None, _) => false,
                    (Some(found), Reentry::Once) => is_same(&found.run),
                    (Some(found), _) => {
                        found.run.status.is_active() && !done.contains(&id) && is_same(&found.run)
                    }
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
