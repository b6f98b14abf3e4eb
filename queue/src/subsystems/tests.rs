//! Subsystems for tests, without background jobs.

use store::engine::Store;

pub(crate) use super::idle::IdleQueue;
use super::{SubsystemSettings, idle};

/// Creates an idle queue on a store.
pub(crate) fn idle(store: Store) -> IdleQueue {
    let mut settings = SubsystemSettings {
        hostname: "mx.acme.example".parse().unwrap(),
        in_flight_max: 10,
        ready_max: 10,
        ..idle::settings()
    };
    settings.delivery_policy.retention = std::time::Duration::from_secs(1);
    IdleQueue::new(store, settings)
}
