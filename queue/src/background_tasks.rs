//! The background tasks of delivery, in one list.

use std::sync::Arc;

use crate::dsn::dsn_builder::DsnReporter;
use crate::scheduler::deadlines::DeadlineJob;
use crate::scheduler::delays::DelayRecorder;
use crate::scheduler::queue_counter::run_queue_counter;
use crate::scheduler::queue_loader::QueueLoader;
use crate::services::Services;
use crate::subsystems::DeliverySubsystems;

/// Starts delivery.
pub fn start(services: &Services, delivery: &DeliverySubsystems) {
    let DeliverySubsystems { policy, dispatcher, pending_dsns, .. } = delivery;
    let delays = Arc::new(DelayRecorder::new(
        services.clone(),
        Arc::clone(&dispatcher.agent),
        Arc::clone(policy),
        Arc::clone(&dispatcher.deadlines),
        Arc::clone(pending_dsns),
    ));
    let dsn_reporter = DsnReporter::new(
        services.clone(),
        Arc::clone(pending_dsns),
        Arc::clone(dispatcher),
        Arc::clone(policy),
        delivery.hostname.clone(),
    );
    services.spawn(Arc::new(dsn_reporter).run());
    services.spawn(Arc::clone(&delivery.tls_stats).run());
    services.spawn(Arc::clone(&delivery.admin).run());
    services.spawn(Arc::new(DeadlineJob::new(services.clone(), dispatcher, Arc::clone(&delays))).run());
    services.spawn(delays.run());
    services.spawn(run_queue_counter(services.clone()));
    services.spawn(Arc::clone(&delivery.queues).log_queue_hold());
    services.spawn(Arc::new(QueueLoader::new(services.clone(), Arc::clone(dispatcher))).run());
}
