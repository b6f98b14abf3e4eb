//! Webhooks: endpoints, their deliveries, and the stream of events.
//!
//! ```text
//! /webhooks ─┬─► /webhooks/new ─► the secret, once
//!            ├─► /webhooks/events (live)
//!            └─► /webhooks/{id} ─┬─► /edit, /secret, /delete
//!                                ├─► /replay (a range of time)
//!                                └─► /deliveries/{delivery}
//! ```

mod change;
mod deliveries;
mod delivery;
mod detail;
mod event_choices;
mod events;
mod list;
mod object;
mod remove;
mod replay;
mod secret;
#[cfg(test)]
mod tests;

use super::encode;
use crate::dashboard::table::{FormRow, PageAccess, PageRow};

const LIST: &str = "/dashboard/webhooks";
const EVENTS: &str = "/dashboard/webhooks/events";
const SIGNED_IN: PageAccess = PageAccess::SignedIn;

/// The page of an endpoint.
fn webhook_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}

/// The page of a delivery.
fn delivery_path(webhook: &str, id: &str) -> String {
    format!("{}/deliveries/{}", webhook_path(webhook), encode(id))
}

/// The pages of webhooks.
pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/webhooks",
        access: SIGNED_IN,
        reads: &["list_webhooks", "list_webhook_deliveries"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/webhooks/new",
        access: SIGNED_IN,
        reads: &["create_webhook"],
        show: |context| Box::pin(change::show_new(context)),
        forms: &[FormRow {
            name: "create",
            operation: "create_webhook",
            submit: |context| Box::pin(change::create(context)),
        }],
    },
    PageRow {
        path: "/webhooks/events",
        access: SIGNED_IN,
        reads: &["list_webhook_events"],
        show: |context| Box::pin(events::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/webhooks/{id}",
        access: SIGNED_IN,
        reads: &["get_webhook", "list_webhook_deliveries"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[
            FormRow { name: "test", operation: "test_webhook", submit: |context| Box::pin(detail::test(context)) },
            FormRow {
                name: "enable",
                operation: "update_webhook",
                submit: |context| Box::pin(detail::enable(context)),
            },
            FormRow {
                name: "disable",
                operation: "update_webhook",
                submit: |context| Box::pin(detail::disable(context)),
            },
        ],
    },
    PageRow {
        path: "/webhooks/{id}/edit",
        access: SIGNED_IN,
        reads: &["get_webhook", "update_webhook"],
        show: |context| Box::pin(change::show_edit(context)),
        forms: &[FormRow {
            name: "edit",
            operation: "update_webhook",
            submit: |context| Box::pin(change::edit(context)),
        }],
    },
    PageRow {
        path: "/webhooks/{id}/secret",
        access: SIGNED_IN,
        reads: &["get_webhook", "rotate_webhook_secret"],
        show: |context| Box::pin(secret::show(context)),
        forms: &[FormRow {
            name: "rotate",
            operation: "rotate_webhook_secret",
            submit: |context| Box::pin(secret::rotate(context)),
        }],
    },
    PageRow {
        path: "/webhooks/{id}/replay",
        access: SIGNED_IN,
        reads: &["get_webhook", "replay_webhook_deliveries"],
        show: |context| Box::pin(replay::show(context)),
        forms: &[FormRow {
            name: "replay",
            operation: "replay_webhook_deliveries",
            submit: |context| Box::pin(replay::replay(context)),
        }],
    },
    PageRow {
        path: "/webhooks/{id}/delete",
        access: SIGNED_IN,
        reads: &["get_webhook", "delete_webhook"],
        show: |context| Box::pin(remove::show(context)),
        forms: &[FormRow {
            name: "delete",
            operation: "delete_webhook",
            submit: |context| Box::pin(remove::remove(context)),
        }],
    },
    PageRow {
        path: "/webhooks/{id}/deliveries/{delivery}",
        access: SIGNED_IN,
        reads: &["get_webhook", "get_webhook_delivery"],
        show: |context| Box::pin(delivery::show(context)),
        forms: &[FormRow {
            name: "replay",
            operation: "replay_webhook_delivery",
            submit: |context| Box::pin(delivery::replay(context)),
        }],
    },
];
