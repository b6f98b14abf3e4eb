//! Intake of product events and site visits, and their follow-up work.
//!
//! ```text
//! event ─► redacted ─►[ event + lists + pending key + automation effects + idempotent response ] ─► aggregation
//! visit ─►[ pending row ] ─► aggregation ─►[ counts + people + conversions + exports − pending ]
//! ```
//!
//! Intake is one commit that writes no row shared with other events. [`aggregation`] updates the shared rows later, many
//! events per commit. [`conversion_export`] posts conversions to the URL that the operator configured.

pub(crate) mod aggregation;
mod analytics_batch;
pub(crate) mod conversion_export;

use std::sync::Arc;
use std::time::Duration;

use model::automation::context::EventFacts;
use model::id::{AccountId, ProductEventId};
use model::product_event::ProductEvent;
use model::product_event::site_visit::SiteVisit;
use model::trigger_event::TriggerEvent;
use queue::intake::submit_error::SubmitError;
use queue::services::Services;
use store::access::Tenant;
use store::engine::{Batch, CommitError};
use store::pending_analytics::AnalyticsEvent;
use store::product_event::StoredProductEvent;

use crate::automations::engine::{AutomationEngine, SignalEffects};

pub use aggregation::AnalyticsAggregator;
pub use conversion_export::{ConversionExportSettings, ConversionExporter, ConversionTarget};

/// Commit tries when rows that the commit depends on change concurrently.
const COMMIT_TRIES_MAX: usize = 20;
/// How long the response to an event waits for runs whose wait began at the same time.
const RESUME_PATIENCE: Duration = Duration::from_secs(3);
/// `source` of events received by the API.
const API_SOURCE: &str = "api";

#[derive(Debug, Clone, PartialEq)]
pub struct IngestedProductEvent {
    /// The stored, redacted event.
    pub event: ProductEvent,
    /// Automation runs started, resumed or cancelled by the event.
    pub effects: SignalEffects,
}

/// Ingests product events and visits.
#[derive(Clone)]
pub struct ProductEventService {
    pub(crate) services: Services,
    pub(crate) automations: AutomationEngine,
    pub aggregator: Arc<AnalyticsAggregator>,
    pub exporter: Arc<ConversionExporter>,
}

impl ProductEventService {
    /// Assigns an id and the current time to a received event.
    #[must_use]
    pub fn with_id_and_time(&self, tenant: &Tenant, incoming: EventFacts) -> ProductEvent {
        let now = self.services.clock.now();
        ProductEvent {
            id: ProductEventId::new(now, self.services.entropy.unique_bits()),
            account: tenant.account().id,
            name: incoming.name,
            user_id: incoming.user_id,
            email: incoming.email,
            data: incoming.data,
            source: API_SOURCE.to_owned(),
            created_at: now,
        }
    }

    /// Ingests an event and lets `extend_commit` add rows to its commit.
    ///
    /// # Errors
    /// [`SubmitError`]; [`SubmitError::DoneConcurrently`] when the idempotency key was used concurrently.
    pub async fn ingest(
        &self,
        tenant: &Tenant,
        incoming: EventFacts,
        extend_commit: &(dyn Fn(&IngestedProductEvent, &mut Batch) + Send + Sync),
    ) -> Result<IngestedProductEvent, SubmitError> {
        let original = self.with_id_and_time(tenant, incoming);
        let stored = StoredProductEvent { event: original.redacted(), sent_by: tenant.confined_to() };
        for _ in 0..COMMIT_TRIES_MAX {
            let (mut batch, partition) = self.begin_batch().await?;
            store::product_event::record(&mut batch, &stored);
            let (id, account) = (stored.event.id, stored.event.account);
            let happened = AnalyticsEvent::Event(id);
            store::pending_analytics::enqueue(&mut batch, partition, id.to_bytes(), account, happened);
            let reaction = self.automations.apply_event(&TriggerEvent::from(&original), &mut batch).await?;
            let ingested = IngestedProductEvent { event: stored.event.clone(), effects: reaction };
            extend_commit(&ingested, &mut batch);
            let partitions = store::automation_run::due_work::partitions_of(&batch);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    self.aggregator.wake();
                    if !partitions.is_empty() {
                        self.automations.wake(&partitions);
                    }
                    metrics::counter!("postrider_product_events_total").increment(1);
                    if reaction.is_awaited {
                        self.resume_after_commit(original).await;
                    }
                    return Ok(ingested);
                }
                Err(CommitError::Conflict { key }) if store::idempotency::caused_conflict(&key) => {
                    return Err(SubmitError::DoneConcurrently);
                }
                // A run or automation changed concurrently, or another node took over the partition.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    /// Resumes runs whose wait began while the event was committed. The event is stored: the response waits a limited
    /// time, and the task continues without it.
    async fn resume_after_commit(&self, event: ProductEvent) {
        let (automations, store) = (self.automations.clone(), self.services.store.clone());
        let resumed = tokio::spawn(async move {
            if let Err(error) = automations.resume_after_commit(&TriggerEvent::from(&event)).await {
                store::warn_unless_away!(store, %error, "cannot match a stored event with waiting runs");
            }
        });
        let _ = tokio::time::timeout(RESUME_PATIENCE, resumed).await;
    }

    /// Ingests a visit.
    ///
    /// # Errors
    /// `Unavailable` when this node owns no partition or conflicts persist; the store does not accept the commit.
    pub async fn ingest_visit(&self, account: AccountId, visit: SiteVisit) -> Result<(), SubmitError> {
        let id = ProductEventId::new(visit.at, self.services.entropy.unique_bits()).to_bytes();
        for _ in 0..COMMIT_TRIES_MAX {
            let (mut batch, partition) = self.begin_batch().await?;
            store::pending_analytics::enqueue(&mut batch, partition, id, account, AnalyticsEvent::Visit(visit.clone()));
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    self.aggregator.wake();
                    return Ok(());
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SubmitError::Unavailable)
    }

    /// Returns a batch fenced on a partition of this node, and the partition.
    async fn begin_batch(&self) -> Result<(Batch, u16), SubmitError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let partition = self.services.leases.any().ok_or(SubmitError::Unavailable)?;
            let mut batch = Batch::intake();
            if self.services.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
                return Ok((batch, partition));
            }
            self.services.leases.wait_for_change().await;
        }
        Err(SubmitError::Unavailable)
    }
}
