//! Automations: multi-step workflows that events of a customer's product trigger.
//!
//! ```text
//! signal ─► match ─[ new runs + automation.started + due work | waiting runs resumed | runs cancelled ]
//! due work ─► advance ─[ step result + automation.step_completed + next due work ] ─► … ─► completed | failed
//! ```
//!
//! [`signal_matching`] writes the effects of a signal into the caller's commit: the one of `POST /events`, or of a job that the
//! outbox dispatcher enqueues for an event of the service ([`trigger_index`]). [`engine`] processes the due work of this node's
//! partitions, [`step`] decides the effect of a step, and [`email_step`] and [`sms_step`] execute it. [`jobs`] is background work
//! other than steps, [`round_robin`] the round-robin over accounts, and [`dry_run`] a dry run for users who test an
//! automation.
//!
//! All state is on disk: a waiting run uses no memory. Each change of a run checks the version that was read. The
//! change, its event and the next due work are one commit. An email of a step is part of that commit, so a crash
//! neither repeats nor loses it.

mod definition_cache;
mod dry_run;
mod email_step;
mod engine;
mod jobs;
mod render_email;
mod round_robin;
mod signal_matching;
mod sms_step;
mod step;
pub(crate) mod trigger_index;
mod trigger_signal;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use dns::secrets::Vault;
use jiff::Timestamp;
use mail::automation::context::RunContext;
use mail::automation::job::{AutomationJob, AutomationJobKind};
use mail::automation::run::{AutomationRun, RunFact};
use mail::event::Event;
use mail::id::{AccountId, EventId, RunId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::engine::{Batch, ReadError};
use store::task::PARTITIONS;
use tokio::sync::Semaphore;

use self::definition_cache::DefinitionCache;
pub use self::dry_run::{DryRun, DryRunError};
pub use self::sms_step::SmsProvider;
use crate::automations::trigger_index::TriggerIndex;
use crate::services::Services;

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
}

/// The automations of all accounts. Clones share one state.
#[derive(Clone)]
pub struct AutomationEngine(Arc<AutomationState>);

struct AutomationState {
    services: Services,
    trigger_index: Arc<TriggerIndex>,
    vault: Arc<Vault>,
    definition_cache: DefinitionCache,
    sms_provider: OnceLock<SmsProvider>,
    sms_permits: Arc<Semaphore>,
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

    /// Wakes the engine for partitions that a committed batch added due work to ([`store::automation_run::due_work::partitions_of`]).
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

    fn now(&self) -> Timestamp {
        self.0.services.clock.now()
    }

    fn random_bits(&self) -> u128 {
        self.0.services.entropy.unique_bits()
    }

    /// Chooses a partition for a new row: a random one that this node holds, or any if it holds none.
    fn choose_partition(&self) -> u16 {
        let (active, random) = (self.0.services.leases.active(), self.0.services.entropy.u64());
        let at = |count: usize| usize::try_from(random % count.max(1) as u64).unwrap_or(0);
        let partition = active.get(at(active.len())).copied();
        partition.unwrap_or_else(|| u16::try_from(at(PARTITIONS.into())).unwrap_or(0))
    }

    /// Records facts of a run as events, in their order.
    fn record_facts(&self, batch: &mut Batch, run: &AutomationRun, facts: &[RunFact], at: Timestamp) {
        let first = self.random_bits();
        for (n, fact) in (0_u128..).zip(facts) {
            let event = Event {
                id: EventId::new(at, first + n),
                account: run.account,
                subject: run.id.into(),
                kind: fact.kind,
                recipient: None,
                created_at: at,
                detail: fact.detail.clone(),
            };
            store::event::record(batch, &event, run.partition);
        }
    }

    /// Seals the context of a run.
    fn seal_context(&self, run: RunId, context: &RunContext) -> Result<Vec<u8>, ReadError> {
        self.seal_json(&run.to_bytes(), context)
    }

    fn seal_json<T: Serialize>(&self, row: &[u8], value: &T) -> Result<Vec<u8>, ReadError> {
        let text = serde_json::to_vec(value).map_err(corrupt)?;
        self.0.vault.seal(row, &text).map_err(corrupt)
    }

    fn unseal_json<T: DeserializeOwned>(&self, row: &[u8], sealed: &[u8]) -> Result<T, ReadError> {
        let text = self.0.vault.open(row, sealed).map_err(corrupt)?;
        serde_json::from_slice(&text).map_err(corrupt)
    }
}

fn corrupt(error: impl std::fmt::Display) -> ReadError {
    ReadError::Corrupt(Arc::from(error.to_string()))
}
