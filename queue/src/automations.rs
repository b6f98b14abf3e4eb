//! Automations: what follows, step by step, from what happens in a customer's product.
//!
//! ```text
//! signal ─► react ─[ runs + automation.started + due work | runs go on | runs cancelled ]
//! due work ─► advance ─[ step done + automation.step_completed + the next due work ] ─► … ─► completed | failed
//! ```
//!
//! [`react`] writes what a signal does into the commit of whoever hears it: `POST /events`; or a job that telling
//! leaves for an event of ours ([`ears`]). [`engine`] keeps going through what is due in our partitions, [`step`]
//! decides what a step does, [`send`] and [`sms`] do it; [`jobs`] is what there is to do beside steps;
//! [`turns`] says who goes next.
//! [`rehearse`] goes through a run at once, for who tries an automation out.
//!
//! All lies on disk: a run that waits costs no memory. Every change of a run checks it as it was read, and the
//! change, its event and the next due work are one commit; the email of a step is in that commit too, so that
//! no crash sends it twice, or not at all.

mod definitions;
pub(crate) mod ears;
mod engine;
mod heard;
mod jobs;
mod letter;
mod react;
mod rehearse;
mod retention;
mod send;
mod sms;
mod step;
mod turns;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use dns::seal::Vault;
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

use self::definitions::DefinitionCache;
pub use self::rehearse::DryRunError;
pub use self::sms::SmsProvider;
use crate::worker::Worker;

/// Text messages on their way at once.
const SMS_CONCURRENCY: usize = 64;

/// What a signal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignalEffects {
    /// Automations whose trigger it matched: each has a new run.
    pub matched: u64,
    /// Runs that waited for it and go on.
    pub resumed: u64,
    /// Runs that it ended.
    pub cancelled: u64,
}

/// The automations of all accounts. Clones are the same.
#[derive(Clone)]
pub struct AutomationEngine(Arc<AutomationState>);

struct AutomationState {
    worker: Arc<Worker>,
    vault: Arc<Vault>,
    definition_cache: DefinitionCache,
    sms_provider: OnceLock<SmsProvider>,
    sms_permits: Arc<Semaphore>,
}

impl AutomationEngine {
    /// The automations of this worker's store; the vault seals what runs know.
    #[must_use]
    pub(crate) fn new(worker: Arc<Worker>, vault: Arc<Vault>) -> Self {
        Self(Arc::new(AutomationState {
            worker,
            vault,
            definition_cache: DefinitionCache::default(),
            sms_provider: OnceLock::new(),
            sms_permits: Arc::new(Semaphore::new(SMS_CONCURRENCY)),
        }))
    }

    /// Says who sends text messages. The first word counts.
    pub fn set_sms_provider(&self, gate: SmsProvider) {
        let _ = self.0.sms_provider.set(gate);
    }

    /// Whether somebody sends text messages.
    #[must_use]
    pub fn has_sms_provider(&self) -> bool {
        self.0.sms_provider.get().is_some()
    }

    /// Says that a batch was committed that brought something to do in these partitions
    /// ([`store::run::due::partitions_of`]): it is gone about now. Whoever commits says so for the own batch and
    /// after the own commit: a look before it would find nothing.
    pub fn wake(&self, partitions: &HashSet<u16>) {
        let worker = &self.0.worker;
        worker.trigger_index.wake_at(partitions, worker.clock.now());
        worker.outbox_wakeup.notify_one();
    }

    /// An automation of the account was made, changed or deleted: what is remembered of it is read anew.
    pub fn invalidate(&self, account: AccountId) {
        self.0.worker.trigger_index.invalidate(account);
    }

    /// Writes a job that is to be done now.
    pub fn enqueue_job(&self, batch: &mut Batch, account: AccountId, work: AutomationJobKind) {
        let (id, due) = (EventId::new(self.now(), self.random_bits()), self.now());
        let partition = self.choose_partition();
        store::run::due::put_job(batch, &AutomationJob { id, account, partition, due, work });
    }

    fn now(&self) -> Timestamp {
        self.0.worker.clock.now()
    }

    fn random_bits(&self) -> u128 {
        self.0.worker.entropy.unique_bits()
    }

    /// A partition for something new: one of ours, while we have any.
    fn choose_partition(&self) -> u16 {
        let (active, random) = (self.0.worker.leases.active(), self.0.worker.entropy.u64());
        let at = |count: usize| usize::try_from(random % count.max(1) as u64).unwrap_or(0);
        let partition = active.get(at(active.len())).copied();
        partition.unwrap_or_else(|| u16::try_from(at(PARTITIONS.into())).unwrap_or(0))
    }

    /// Writes facts of a run as events, in their order.
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

    /// Seals what a run knows.
    fn seal_context(&self, run: RunId, context: &RunContext) -> Result<Vec<u8>, ReadError> {
        self.seal_json(&run.to_bytes(), context)
    }

    fn seal_json<T: Serialize>(&self, row: &[u8], what: &T) -> Result<Vec<u8>, ReadError> {
        let text = serde_json::to_vec(what).map_err(corrupt)?;
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
