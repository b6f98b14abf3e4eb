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
use mail::product_event::visit::SiteVisit;
use mail::signal::TriggerEvent;
use serde_json::Value;
use store::access::Tenant;
use store::engine::{Batch, CommitError};
use store::product_event::StoredProductEvent;
use store::uncounted::AnalyticsEvent;

use crate::accept::Intake;
use crate::automations::{AutomationEngine, SignalEffects};
use crate::refusal::SubmitError;
use crate::worker::Worker;

pub use count::AnalyticsError;
pub use export::{ConversionExportSettings, ConversionExporter};

/// How often a commit is tried, when what it rests on is changed meanwhile.
const COMMIT_TRIES_MAX: usize = 20;
/// Where events come from that come by the API.
const API_SOURCE: &str = "api";

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingProductEvent {
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
pub struct IngestedProductEvent {
    /// The copy that is stored.
    pub event: ProductEvent,
    /// What automations do because of it.
    pub effects: SignalEffects,
}

/// Takes product events and visits in.
#[derive(Clone)]
pub struct ProductEventService {
    worker: Arc<Worker>,
    automations: AutomationEngine,
}

impl Intake {
    /// Takes product events and visits in.
    #[must_use]
    pub fn product_events(&self) -> ProductEventService {
        ProductEventService { worker: Arc::clone(&self.worker), automations: self.automations().clone() }
    }
}

impl ProductEventService {
    /// An event as it came, with an id and a time.
    #[must_use]
    pub fn with_id_and_time(&self, tenant: &Tenant, told: IncomingProductEvent) -> ProductEvent {
        let now = self.worker.clock.now();
        ProductEvent {
            id: ProductEventId::new(now, self.worker.entropy.unique_bits()),
            account: tenant.account().id,
            name: told.name,
            user_id: told.user_id,
            email: told.email,
            data: told.data,
            source: API_SOURCE.to_owned(),
            created_at: now,
        }
    }

    /// Takes an event in, and writes something more in the same commit.
    ///
    /// # Errors
    /// [`Refusal`]; [`Refusal::DoneMeanwhile`] when what was to be written is there already.
    pub async fn ingest(
        &self,
        tenant: &Tenant,
        told: IncomingProductEvent,
        also: &(dyn Fn(&IngestedProductEvent, &mut Batch) + Send + Sync),
    ) -> Result<IngestedProductEvent, SubmitError> {
        let original = self.with_id_and_time(tenant, told);
        let kept = StoredProductEvent { event: original.redacted(), sent_by: tenant.confined_to() };
        for _ in 0..COMMIT_TRIES_MAX {
            let (mut batch, partition) = self.begin_batch().await?;
            store::product_event::record(&mut batch, &kept);
            let entry = (kept.event.account, AnalyticsEvent::Event(kept.event.id));
            store::uncounted::enqueue(&mut batch, partition, kept.event.id.to_bytes(), entry);
            let reaction = self.automations.apply_event(&TriggerEvent::from(&original), &mut batch).await?;
            let taken = IngestedProductEvent { event: kept.event.clone(), effects: reaction };
            also(&taken, &mut batch);
            let partitions = store::run::due::partitions_of(&batch);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.worker.analytics_wakeup.notify_one();
                    if !partitions.is_empty() {
                        self.automations.wake(&partitions);
                    }
                    metrics::counter!("postrider_product_events_total").increment(1);
                    return Ok(taken);
                }
                Err(CommitError::Conflict { key }) if store::idempotency::caused_conflict(&key) => {
                    return Err(SubmitError::DoneConcurrently);
                }
                // A run or an automation was changed meanwhile, or the partition is another node's.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    /// Takes a visit in.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn ingest_visit(&self, account: AccountId, visit: SiteVisit) -> Result<(), SubmitError> {
        let id = ProductEventId::new(visit.at, self.worker.entropy.unique_bits()).to_bytes();
        for _ in 0..COMMIT_TRIES_MAX {
            let (mut batch, partition) = self.begin_batch().await?;
            let entry = (account, AnalyticsEvent::Visit(visit.clone()));
            store::uncounted::enqueue(&mut batch, partition, id, entry);
            match self.worker.store.commit(batch).await {
                Ok(()) => {
                    self.worker.analytics_wakeup.notify_one();
                    return Ok(());
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    /// A batch that holds only while a partition is ours, and which.
    async fn begin_batch(&self) -> Result<(Batch, u16), SubmitError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let partition = self.worker.leases.any().ok_or(SubmitError::Unavailable)?;
            let mut batch = Batch::intake();
            if self.worker.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
                return Ok((batch, partition));
            }
            self.worker.wait_for_membership_change().await;
        }
        Err(SubmitError::Unavailable)
    }

    /// Counts what was taken in: what follows from it is in the store when this returns.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn aggregate(&self) -> Result<(), AnalyticsError> {
        self.worker.aggregate_all().await
    }

    /// Has conversions told from now on. The first word counts.
    pub fn set_exporter(&self, exporter: ConversionExporter) {
        self.worker.set_conversion_exporter(exporter);
    }

    /// Tries the exports that are due now. Says how many were tried.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn export_due_now(&self) -> Result<usize, AnalyticsError> {
        self.worker.export_due_conversions().await.map(|(tried, _)| tried)
    }
}
