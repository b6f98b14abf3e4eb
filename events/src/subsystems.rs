//! The subsystems of events: the outbox dispatcher, webhooks, analytics and owner alerts.

pub mod idle;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use dns::secrets::Vault;
use futures_util::future::BoxFuture;
use queue::cluster::PartitionListener;
use queue::intake::quota_tracker::QuotaTracker;
use queue::services::Services;
use store::engine::ReadError;

use crate::automations::AutomationEngine;
use crate::automations::trigger_index::TriggerIndex;
use crate::email_tracking::EmailTracking;
use crate::outbox::OutboxDispatcher;
use crate::owner_alert_queue::OwnerAlertQueue;
use crate::product_events::ProductEventService;
use crate::product_events::aggregation::AnalyticsAggregator;
use crate::product_events::conversion_export::ConversionExporter;
use crate::webhooks::{WebhookSender, WebhooksParts};

/// Subsystems that process events. Clones share them.
#[derive(Clone)]
pub struct EventSubsystems {
    pub outbox: Arc<OutboxDispatcher>,
    pub quota_tracker: QuotaTracker,
    pub(crate) trigger_index: Arc<TriggerIndex>,
    pub webhooks: Arc<WebhookSender>,
    pub(crate) analytics: Arc<AnalyticsAggregator>,
    pub(crate) exporter: Arc<ConversionExporter>,
    pub owner_alerts: OwnerAlertQueue,
    /// One for all listeners: it serialises the opens and clicks of an email.
    pub email_tracking: Arc<EmailTracking>,
}

impl EventSubsystems {
    /// Builds the subsystems; [`start`](crate::background_tasks::start) starts their tasks.
    #[must_use]
    pub fn new(services: &Services, webhooks: WebhooksParts) -> Self {
        let owner_alerts = OwnerAlertQueue::new(services.clone());
        let webhooks = Arc::new(WebhookSender::new(services.clone(), Arc::clone(&owner_alerts.timers), webhooks));
        let quota_tracker = QuotaTracker::default();
        let trigger_index = Arc::<TriggerIndex>::default();
        let outbox = Arc::new(OutboxDispatcher {
            services: services.clone(),
            webhooks: Arc::clone(&webhooks),
            quota_tracker: quota_tracker.clone(),
            trigger_index: Arc::clone(&trigger_index),
            lock: tokio::sync::Mutex::default(),
            dispatched_until_ms: AtomicI64::default(),
        });
        let exporter = Arc::new(ConversionExporter::new(services.clone()));
        let analytics = Arc::new(AnalyticsAggregator::new(services.clone(), Arc::clone(&exporter)));
        let email_tracking = Arc::new(EmailTracking::new(services.clone()));
        Self { outbox, quota_tracker, trigger_index, webhooks, analytics, exporter, owner_alerts, email_tracking }
    }

    /// The engine of automations; `vault` seals the context of runs.
    #[must_use]
    pub fn automation_engine(&self, services: &Services, vault: Arc<Vault>) -> AutomationEngine {
        AutomationEngine::new(services.clone(), Arc::clone(&self.trigger_index), vault)
    }

    /// Accepts product events and visits.
    #[must_use]
    pub fn product_event_service(&self, services: &Services, engine: AutomationEngine) -> ProductEventService {
        let (aggregator, exporter) = (Arc::clone(&self.analytics), Arc::clone(&self.exporter));
        ProductEventService { services: services.clone(), automations: engine, aggregator, exporter }
    }
}

impl PartitionListener for EventSubsystems {
    fn in_progress(&self, partition: u16) -> usize {
        self.webhooks.endpoint_queues.serving_in(partition)
    }

    fn load_partition(&self, partition: u16) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(async move {
            self.webhooks.load_endpoint_queues(partition).await?;
            // Scan again for rows that another node may have added.
            self.owner_alerts.timers.reset(partition);
            Ok(())
        })
    }

    fn joined(&self) {
        self.outbox.start_backlog();
    }
}
