//! Events: what follows from an event after the commit that recorded it.
//!
//! [`outbox`] dispatches the events of this node's partitions: in one commit, it writes the event log, usage, metrics,
//! webhook deliveries and automation jobs. [`webhooks`] sends the deliveries, and [`automations`] runs the workflows.
//! [`product_events`] accepts and counts the events of a customer's product, [`email_tracking`] records opens and clicks, and
//! [`owner_alerts`] writes to the owners of accounts.
//!
//! [`subsystems`] builds these, and [`background_tasks`] starts them.

pub mod automations;
pub mod background_tasks;
pub mod email_tracking;
pub mod outbox;
pub mod owner_alert_queue;
pub mod owner_alerts;
pub mod product_events;
pub mod subsystems;
pub mod webhooks;
