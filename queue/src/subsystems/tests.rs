//! Subsystems for tests, without background jobs and with an unreachable name server.

use mail::classify::ReplyRules;

use super::*;
use crate::client::http::{HttpClient, HttpClientSettings};
use crate::retry_schedule::RetrySchedule;
use crate::routing::RouterSettings;
use crate::smarthosts::Smarthosts;
use crate::webhooks::RETRY_SCHEDULE;

/// Creates idle subsystems on a store.
pub(crate) fn idle(store: Store) -> Subsystems {
    let hostname: DomainName = "mx.acme.example".parse().unwrap();
    let resolver = dns::resolver::Resolver::new(&dns::resolver::ResolverSettings {
        servers: vec!["127.0.0.1:9".parse().unwrap()],
        ..dns::resolver::ResolverSettings::default()
    })
    .unwrap();
    let webhooks = WebhooksParts {
        client: HttpClient::new(resolver.clone(), HttpClientSettings::default()).unwrap(),
        vault: std::sync::Arc::new(dns::secrets::Vault::new(&[2; 32]).unwrap()),
        retry_schedule: RETRY_SCHEDULE.to_vec(),
    };
    let plan = RouterSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let parts = SubsystemParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        router: MxRouter::new(resolver, plan),
        dialer: SmtpDialer::new(hostname.clone()).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks,
        node: "test".to_owned(),
        predecessor_node: None,
    };
    let settings = SubsystemSettings {
        hostname,
        delivery_policy: DeliveryPolicy {
            schedule: RetrySchedule::default(),
            paused: true,
            retention: Duration::from_secs(1),
            shaping: ReplyRules::default(),
        },
        pace: Vec::new(),
        tls: TlsSecurityLevel::Off,
        source_addresses: Vec::new(),
        pools: Vec::new(),
        connections_max: 1,
        in_flight_max: 10,
        ready_max: 10,
        body_bytes_max: 1 << 20,
    };
    Subsystems::new(parts, settings)
}
