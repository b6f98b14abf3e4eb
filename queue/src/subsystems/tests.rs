//! Subsystems for tests, without background jobs.

use super::*;

/// Creates idle subsystems on a store.
pub(crate) fn idle(store: Store) -> Subsystems {
    let mut settings = SubsystemSettings {
        hostname: "mx.acme.example".parse().unwrap(),
        in_flight_max: 10,
        ready_max: 10,
        ..idle::settings()
    };
    settings.delivery_policy.retention = Duration::from_secs(1);
    Subsystems::new(idle::parts(store), settings)
}
