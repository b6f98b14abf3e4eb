//! Shared state of the automations: cached definitions, triggers, the key that seals runs, and the SMS provider.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use dns::secrets::Vault;
use jiff::Timestamp;
use model::automation::context::RunContext;
use model::automation::job::{AutomationJob, AutomationJobKind};
use model::automation::run::{AutomationRun, RunFact};
use model::event::Event;
use model::id::{AccountId, EventId, RunId};
use queue::services::Services;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::automation_run::StoredRun;
use store::engine::{Batch, ReadError};
use store::task::PARTITIONS;
use tokio::sync::Semaphore;

use super::definition_cache::DefinitionCache;
use super::sms_provider::SmsProvider;
use super::step::RunUpdate;
use super::trigger_index::TriggerIndex;

/// Limit of concurrent requests to the SMS provider.
const SMS_CONCURRENCY: usize = 64;

/// Numbers of automations and runs that a signal affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignalEffects {
    /// Automations whose trigger matched; each has a new run.
    pub matched: u64,
    /// Waiting runs that were resumed.
    pub resumed: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
    /// True if an automation waits for events of this name.
    pub is_awaited: bool,
}

/// The automations of all accounts. Clones share one state.
#[derive(Clone)]
pub struct AutomationEngine(pub(super) Arc<AutomationState>);

pub(super) struct AutomationState {
    pub(super) services: Services,
    pub(super) trigger_index: Arc<TriggerIndex>,
    pub(super) vault: Arc<Vault>,
    pub(super) definition_cache: DefinitionCache,
    pub(super) sms_provider: OnceLock<SmsProvider>,
    pub(super) sms_permits: Arc<Semaphore>,
}

impl AutomationEngine {
    /// Creates the engine; `vault` seals the context of runs.
    #[must_use]
    pub(crate) fn new(services: Services, trigger_index: Arc<TriggerIndex>, vault: Arc<Vault>) -> Self {
        Self(Arc::new(AutomationState {
            services,
            trigger_index,
            vault,
            definition_cache: DefinitionCache::default(),
            sms_provider: OnceLock::new(),
            sms_permits: Arc::new(Semaphore::new(SMS_CONCURRENCY)),
        }))
    }

    /// Sets the SMS provider. Only the first call has an effect.
    pub fn set_sms_provider(&self, gate: SmsProvider) {
        let _ = self.0.sms_provider.set(gate);
    }

    /// True if an SMS provider is configured.
    #[must_use]
    pub fn has_sms_provider(&self) -> bool {
        self.0.sms_provider.get().is_some()
    }

    /// Wakes the engine for partitions that a committed batch added due work to
    /// ([`store::automation_run::due_work::partitions_of`]).
    /// Call it after the commit: a scan before it finds nothing.
    pub fn wake(&self, partitions: &HashSet<u16>) {
        let state = &self.0;
        state.trigger_index.wake_at(partitions, state.services.clock.now());
        state.services.outbox_wakeup.notify_one();
    }

    /// Invalidates the cached triggers of an account after an automation was created, changed or deleted.
    pub fn invalidate(&self, account: AccountId) {
        self.0.trigger_index.invalidate(account);
    }

    /// Adds a job that is due now to the batch.
    pub fn enqueue_job(&self, batch: &mut Batch, account: AccountId, work: AutomationJobKind) {
        let (id, due) = (EventId::new(self.now(), self.random_bits()), self.now());
        let partition = self.choose_partition();
        store::automation_run::due_work::put_job(batch, &AutomationJob { id, account, partition, due, work });
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.services.clock.now()
    }

    pub(super) fn random_bits(&self) -> u128 {
        self.0.services.entropy.unique_bits()
    }

    /// Chooses a partition for a new row: a random one that this node holds, or any if it holds none.
    pub(super) fn choose_partition(&self) -> u16 {
        let (active, random) = (self.0.services.leases.active(), self.0.services.entropy.u64());
        let at = |count: usize| usize::try_from(random % count.max(1) as u64).unwrap_or(0);
        let partition = active.get(at(active.len())).copied();
        partition.unwrap_or_else(|| u16::try_from(at(PARTITIONS.into())).unwrap_or(0))
    }

    /// Records facts of a run as events, in their order.
    pub(super) fn record_facts(&self, batch: &mut Batch, run: &AutomationRun, facts: &[RunFact], at: Timestamp) {
        let first = self.random_bits();
        for (n, fact) in (0_u128..).zip(facts) {
            let id = EventId::new(at, first + n);
            let event = Event::new(id, run.account, run.id, fact.kind, at, fact.detail.clone());
            store::event::record(batch, &event, run.partition);
        }
    }

    pub(super) fn seal_context(&self, run: RunId, context: &RunContext) -> Result<Vec<u8>, ReadError> {
        self.seal_json(&run.to_bytes(), context)
    }

    pub(super) fn seal_json<T: Serialize>(&self, row: &[u8], value: &T) -> Result<Vec<u8>, ReadError> {
        let text = serde_json::to_vec(value).map_err(corrupt)?;
        self.0.vault.seal(row, &text).map_err(corrupt)
    }

    pub(super) fn unseal_json<T: DeserializeOwned>(&self, row: &[u8], sealed: &[u8]) -> Result<T, ReadError> {
        let text = self.0.vault.open(row, sealed).map_err(corrupt)?;
        serde_json::from_slice(&text).map_err(corrupt)
    }
}

impl AutomationEngine {
    /// Writes the run's state after a step. The batch is fenced: it conflicts if the run's partition has moved to
    /// another node.
    pub(super) fn write_run_update(&self, found: &StoredRun, update: &RunUpdate, now: Timestamp, batch: &mut Batch) {
        let run = &update.run;
        let _fenced = self.0.services.leases.fence_partitions(batch, std::iter::once(run.partition));
        store::automation_run::update(batch, found, run);
        if let Some(run_context) = &update.run_context {
            match self.seal_context(run.id, run_context) {
                Ok(sealed) => store::automation_run::put_sealed(batch, store::automation_run::run_key(run), sealed),
                // Sealing fails if the system provides no random numbers: the stored context stays.
                Err(error) => tracing::error!(%error, run.id = %run.id, "cannot seal the context of a run"),
            }
        }
        self.record_facts(batch, run, &update.facts, now);
    }
}

pub(super) fn corrupt(error: impl std::fmt::Display) -> ReadError {
    ReadError::Corrupt(Arc::from(error.to_string()))
}
