//! The background tasks of events, in one list.

use std::sync::Arc;

use queue::services::Services;

use crate::subsystems::EventSubsystems;

/// Starts dispatching events, sending webhooks and counting product events.
pub fn start(services: &Services, events: &EventSubsystems) {
    services.spawn(Arc::clone(&events.outbox).run());
    services.outbox_wakeup.notify_one();
    services.spawn(Arc::clone(&events.analytics).run());
    events.analytics.wake();
    services.spawn(Arc::clone(&events.exporter).run());
    services.spawn(Arc::clone(&events.webhooks).run());
}
