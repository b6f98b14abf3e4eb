//! Product events on their way in, and what follows from them.
//!
//! ```text
//! event ─► redacted ─►[ event + lists + uncounted key + what automations do + answer under the key ] ─► count
//! visit ─►[ uncounted row ] ─► count ─►[ counts + people + conversions + exports − uncounted ]
//! ```
//!
//! Taking in is one commit, which writes nothing that other events write too; [`count`] does what they have in
//! common, afterwards, many at a time. [`export`] tells conversions to whom the operator names.

mod count;
mod export;
mod slice;

use std::sync::Arc;

use mail::id::{AccountId, ProductEventId};
use mail::product_event::ProductEvent;
use mail::product_event::visit::Visit;
use mail::signal::Signal;
use serde_json::Value;
use store::access::Tenant;
use store::engine::{Batch, CommitError};
use store::product_event::Kept;
use store::uncounted::Happened;

use crate::accept::Hall;
use crate::automations::{Automations, Reaction};
use crate::refusal::Refusal;
use crate::worker::Worker;

pub use count::CountError;
pub use export::{ExportSettings, Exporter};

/// How often a commit is tried, when what it rests on is changed meanwhile.
const TRIES_MAX: usize = 20;
/// Where events come from that come by the API.
const SOURCE: &str = "api";

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What happened.
    pub name: String,
    /// Whom it happened to, by the product's own id.
    pub user_id: Option<String>,
    /// Whom it happened to, by address.
    pub email: Option<String>,
    /// Particulars: a JSON object.
    pub data: Value,
}

/// An event that was taken in.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The copy that is stored.
    pub event: ProductEvent,
    /// What automations do because of it.
    pub reaction: Reaction,
}

/// Takes product events and visits in.
#[derive(Clone)]
pub struct ProductEvents {
    worker: Arc<Worker>,
    automations: Automations,
}

impl Hall {
    /// Takes product events and visits in.
    #[must_use]
    pub fn product_events(&self) -> ProductEvents {
        ProductEvents { worker: Arc::clone(&self.worker), automations: self.automations().clone() }
    }
}

impl ProductEvents {
    /// An event as it came, with an id and a time.
    #[must_use]
    pub fn original(&self, tenant: &Tenant, told: Told) -> ProductEvent {
        let now = self.worker.clock.now();
        ProductEvent {
            id: ProductEventId::new(now, self.worker.entropy.id()),
            account: tenant.account().id,
            name: told.name,
            user_id: told.user_id,
            email: told.email,
            data: told.data,
            source: SOURCE.to_owned(),
            created_at: now,
        }
    }

    /// Takes an event in, and writes something more in the same commit.
    ///
    /// # Errors
    /// [`Refusal`]; [`Refusal::DoneMeanwhile`] when what was to be written is there already.
    pub async fn take(
        &self,
        tenant: &Tenant,
        told: Told,
        also: &(dyn Fn(&Taken, &mut Batch) + Send + Sync),
    ) -> Result<Taken, Refusal> {
        let original = self.original(tenant, told);
        let kept = Kept { event: original.redacted(), sent_by: tenant.confined_to() };
        for _ in 0..TRIES_MAX {
            let (mut batch, partition) = self.begin().await?;
            store::product_event::record(&mut batch, &kept);
            let entry = (kept.event.account, Happened::Event(kept.event.id));
            store::uncounted::put(&mut batch, partition, kept.event.id.to_bytes(), entry);
            let reaction = self.automations.react(&Signal::from(&original), &mut batch).await?;
            let taken = Taken { event: kept.event.clone(), reaction };
            also(&taken, &mut batch);
            let partitions = store::run::due::partitions_of(&batch);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.worker.uncounted.notify_one();
                    if !partitions.is_empty() {
                        self.automations.wake(&partitions);
                    }
                    metrics::counter!("postrider_product_events_total").increment(1);
                    return Ok(taken);
                }
                Err(CommitError::Conflict { key }) if store::idempotency::is_about_one(&key) => {
                    return Err(Refusal::DoneMeanwhile);
                }
                // A run or an automation was changed meanwhile, or the partition is another node's.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Unavailable)
    }

    /// Takes a visit in.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn visited(&self, account: AccountId, visit: Visit) -> Result<(), Refusal> {
        let id = ProductEventId::new(visit.at, self.worker.entropy.id()).to_bytes();
        for _ in 0..TRIES_MAX {
            let (mut batch, partition) = self.begin().await?;
            let entry = (account, Happened::Visit(visit.clone()));
            store::uncounted::put(&mut batch, partition, id, entry);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.worker.uncounted.notify_one();
                    return Ok(());
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Unavailable)
    }

    /// A batch that holds only while a partition is ours, and which.
    async fn begin(&self) -> Result<(Batch, u16), Refusal> {
        for _ in 0..TRIES_MAX {
            let partition = self.worker.leases.any().ok_or(Refusal::Unavailable)?;
            let mut batch = Batch::intake();
            if self.worker.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
                return Ok((batch, partition));
            }
            self.worker.look_soon().await;
        }
        Err(Refusal::Unavailable)
    }

    /// Counts what was taken in: what follows from it is in the store when this returns.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn count(&self) -> Result<(), CountError> {
        self.worker.count_all().await
    }

    /// Has conversions told from now on. The first word counts.
    pub fn export_to(&self, exporter: Exporter) {
        self.worker.export_conversions(exporter);
    }

    /// Tries the exports that are due now. Says how many were tried.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn export(&self) -> Result<usize, CountError> {
        self.worker.export_due().await.map(|(tried, _)| tried)
    }
}
