//! The background tasks of delivery, in one list.

use std::sync::Arc;

use crate::dsn::dsn_builder::DsnReporter;
use crate::scheduler::queue_counter::run_queue_counter;
use crate::services::Services;
use crate::subsystems::DeliverySubsystems;

/// Starts delivery.
pub fn start(services: &Services, delivery: &DeliverySubsystems) {
    let DeliverySubsystems { policy, dispatcher, pending_dsns, .. } = delivery;
    let dsn_reporter = DsnReporter {
        services: services.clone(),
        pending: Arc::clone(pending_dsns),
        dispatcher: Arc::clone(dispatcher),
        policy: Arc::clone(policy),
        hostname: delivery.hostname.clone(),
    };
    services.spawn(Arc::new(dsn_reporter).run());
    services.spawn(Arc::clone(&delivery.tls_stats).run());
    services.spawn(Arc::clone(&delivery.admin).run());
    services.spawn(Arc::clone(dispatcher).run_deadlines());
    services.spawn(Arc::clone(dispatcher).run_delay_recorder());
    services.spawn(run_queue_counter(services.clone()));
    services.spawn(Arc::clone(&delivery.queues).log_queue_hold());
    services.spawn(Arc::clone(dispatcher).run_queue_loader());
}
