//! A worker for tests: nothing of it runs, and nobody answers it.

use super::*;
use crate::courier::http::{Poster, PosterSettings};
use crate::plan::PlanSettings;
use crate::smarthosts::Smarthosts;
use crate::webhooks::LADDER;

/// A worker on a store.
pub(crate) fn idle(store: Store) -> Arc<Worker> {
    let hostname: Name = "mx.acme.example".parse().unwrap();
    let resolver = dns::lookup::Resolver::new(&dns::lookup::Settings {
        servers: vec!["127.0.0.1:9".parse().unwrap()],
        ..dns::lookup::Settings::default()
    })
    .unwrap();
    let webhooks = WebhooksParts {
        poster: Poster::new(resolver.clone(), PosterSettings::default()).unwrap(),
        vault: std::sync::Arc::new(dns::seal::Vault::new(&[2; 32]).unwrap()),
        ladder: LADDER.to_vec(),
    };
    let plan = PlanSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let parts = WorkerParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        planner: Planner::new(resolver, plan),
        dialer: Dialer::new(hostname.clone()).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks,
        node: "test".to_owned(),
        former_node: None,
    };
    let settings = WorkerSettings {
        hostname,
        manners: Manners {
            schedule: Schedule::default(),
            paused: true,
            retention: Duration::from_secs(1),
            shaping: Shaping::default(),
        },
        pace: Vec::new(),
        tls: TlsMode::Off,
        source_addresses: Vec::new(),
        pools: Vec::new(),
        connections_max: 1,
        places_max: 10,
        ready_max: 10,
        body_bytes_max: 1 << 20,
    };
    Worker::new(parts, settings)
}
