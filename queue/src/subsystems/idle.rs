//! Parts and settings of a queue that delivers nothing, for tests and benchmarks: delivery is paused, and no name server
//! answers. Callers change the fields that they need.

#![expect(clippy::unwrap_used, reason = "every value is fixed")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dns::resolver::{Resolver, ResolverSettings};
use dns::secrets::Vault;
use futures_util::future::BoxFuture;
use message::classify::ReplyRules;
use model::verp::VerpKey;
use net::clock::Clock;
use net::entropy::Entropy;
use store::engine::{ReadError, Store};

use super::{DeliveryParts, DeliverySubsystems, SubsystemSettings};
use crate::cluster::{ClusterMember, PartitionListener};
use crate::delivery::client::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::delivery::delivery_policy::DeliveryPolicy;
use crate::delivery::keys::DeliveryKeys;
use crate::delivery::retry_schedule::RetrySchedule;
use crate::routing::smarthosts::Smarthosts;
use crate::routing::{MxRouter, RouterSettings};
use crate::services::Services;

/// A port of this host where nothing answers.
pub const NO_NAME_SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

/// Name of the node.
pub const NODE: &str = "test";

/// A queue without other subsystems.
pub struct IdleQueue {
    pub services: Services,
    pub delivery: DeliverySubsystems,
    pub cluster: Arc<ClusterMember>,
}

impl IdleQueue {
    pub fn new(store: Store, settings: SubsystemSettings) -> Self {
        let services = Services::new(store, Clock::default(), Entropy::default());
        Self::with_listener(services, settings, Arc::new(NoListener))
    }

    /// A queue with a subsystem above it.
    #[must_use]
    pub fn with_listener(
        services: Services,
        settings: SubsystemSettings,
        listener: Arc<dyn PartitionListener>,
    ) -> Self {
        let delivery = DeliverySubsystems::new(&services, parts(), settings);
        let cluster = Arc::new(delivery.cluster_member(&services, NODE.to_owned(), None, listener));
        Self { services, delivery, cluster }
    }
}

/// No subsystem above the queue.
struct NoListener;

impl PartitionListener for NoListener {
    fn in_progress(&self, _: u16) -> usize {
        0
    }

    fn load_partition(&self, _: u16) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn joined(&self) {}
}

/// Parts of delivery.
pub fn parts() -> DeliveryParts {
    let router = RouterSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    DeliveryParts {
        router: MxRouter::new(resolver(NO_NAME_SERVER), router),
        dialer: SmtpDialer::new(settings().hostname).unwrap(),
        keys: DeliveryKeys { verp: VerpKey::new([1; 32]), vault: Arc::new(Vault::new(&[2; 32]).unwrap()) },
    }
}

pub fn settings() -> SubsystemSettings {
    SubsystemSettings {
        hostname: "mx.example.test".parse().unwrap(),
        delivery_policy: DeliveryPolicy {
            schedule: RetrySchedule::default(),
            paused: true,
            retention: Duration::from_secs(30 * 24 * 3600),
            shaping: ReplyRules::default(),
        },
        pace: Vec::new(),
        tls: TlsSecurityLevel::Off,
        source_addresses: Vec::new(),
        pools: Vec::new(),
        connections_max: 1,
        in_flight_max: 100,
        ready_max: 100,
        body_bytes_max: 1 << 20,
    }
}

/// A resolver that uses this name server.
pub fn resolver(server: SocketAddr) -> Resolver {
    Resolver::new(&ResolverSettings { servers: vec![server], ..ResolverSettings::default() }).unwrap()
}
