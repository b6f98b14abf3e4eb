//! All subsystems of the mail server: delivery and events here, those of accounts in [`accounts`].
//!
//! Only the code that builds, starts and stops the server uses [`Subsystems`] and [`AccountSubsystems`]. A subsystem gets the
//! handles that it needs in its constructor.

mod accounts;
pub mod idle;

use std::sync::Arc;
use std::time::Duration;

use events::subsystems::EventSubsystems;
use events::webhooks::WebhooksParts;
use futures_util::future::BoxFuture;
use net::clock::Clock;
use net::entropy::Entropy;
use queue::cluster::ClusterMember;
use queue::delivery::client::smtp::SmtpDialer;
use queue::delivery::keys::DeliveryKeys;
use queue::routing::MxRouter;
use queue::services::Services;
use queue::subsystems::{DeliveryParts, DeliverySubsystems, SubsystemSettings};
use store::engine::Store;

pub use accounts::{AccountParts, AccountSubsystems};

/// Longest wait for attempts in progress at shutdown. A mail host may take ten minutes for its final reply, but the
/// service manager does not wait that long: `TimeoutStopSec` of the unit also includes the commits of aborted attempts,
/// the release of partitions and the last checkpoint.
const DRAIN_MAX: Duration = Duration::from_secs(25);

/// Dependencies of the subsystems.
pub struct SubsystemParts {
    pub store: Store,
    pub clock: Clock,
    pub entropy: Entropy,
    pub router: MxRouter,
    pub dialer: SmtpDialer,
    pub keys: DeliveryKeys,
    /// Name of this node in the cluster, new at every start.
    pub node: String,
    pub webhooks: WebhooksParts,
    /// Node that is known to be dead because this one replaces it.
    pub predecessor_node: Option<String>,
}

/// All subsystems of delivery and events.
pub struct Subsystems {
    pub services: Services,
    pub delivery: DeliverySubsystems,
    pub events: EventSubsystems,
    pub cluster: Arc<ClusterMember>,
}

impl Subsystems {
    /// Builds the subsystems; [`start`](crate::background_tasks::start) starts their tasks.
    #[must_use]
    pub fn new(parts: SubsystemParts, settings: SubsystemSettings) -> Self {
        let services = Services::new(parts.store, parts.clock, parts.entropy);
        let events = EventSubsystems::new(&services, parts.webhooks);
        let delivery = DeliveryParts { router: parts.router, dialer: parts.dialer, keys: parts.keys };
        let delivery = DeliverySubsystems::new(&services, delivery, settings);
        let listener = Arc::new(events.clone());
        let cluster = delivery.cluster_member(&services, parts.node, parts.predecessor_node, listener);
        Self { services, delivery, events, cluster: Arc::new(cluster) }
    }

    /// Stops delivery after attempts in progress have finished. Those that take longer than [`DRAIN_MAX`] are aborted:
    /// attempts that may have been delivered are recorded as unconfirmed, all others are repeated after the next start.
    /// Waiting tasks stay on disk.
    pub async fn drain(&self) {
        self.drain_within(DRAIN_MAX).await;
    }

    /// Like [`Self::drain`], with another time limit.
    pub fn drain_within(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.delivery.shut_down(&self.services, &self.cluster, patience))
    }
}
