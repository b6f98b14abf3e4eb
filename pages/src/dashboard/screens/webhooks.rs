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

pub(super) use object::Webhook;

use crate::dashboard::prelude::*;

const LIST: &str = "/dashboard/webhooks";
const EVENTS: &str = "/dashboard/webhooks/events";

/// The page of an endpoint.
fn webhook_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}

fn delivery_path(webhook: &str, id: &str) -> String {
    format!("{}/deliveries/{}", webhook_path(webhook), encode(id))
}

/// The pages of webhooks.
pub const PAGES: &[PageRow] = page_rows! {
    "/webhooks" => list::show, reads ["list_webhooks", "list_webhook_deliveries"];
    "/webhooks/new" => change::show_new, reads ["create_webhook"], forms {
        "create" => change::create, calls "create_webhook";
    };
    "/webhooks/events" => events::show, reads ["list_webhook_events"];
    "/webhooks/{id}" => detail::show, reads ["get_webhook", "list_webhook_deliveries"], forms {
        "test" => detail::test, calls "test_webhook";
        "enable" => detail::set_enabled(true), calls "update_webhook";
        "disable" => detail::set_enabled(false), calls "update_webhook";
    };
    "/webhooks/{id}/edit" => change::show_edit, reads ["get_webhook", "update_webhook"], forms {
        "edit" => change::edit, calls "update_webhook";
    };
    "/webhooks/{id}/secret" => secret::show, reads ["get_webhook", "rotate_webhook_secret"], forms {
        "rotate" => secret::rotate, calls "rotate_webhook_secret";
    };
    "/webhooks/{id}/replay" => replay::show, reads ["get_webhook", "replay_webhook_deliveries"], forms {
        "replay" => replay::replay, calls "replay_webhook_deliveries";
    };
    "/webhooks/{id}/delete" => remove::show, reads ["get_webhook", "delete_webhook"], forms {
        "delete" => remove::remove, calls "delete_webhook";
    };
    "/webhooks/{id}/deliveries/{delivery}" => delivery::show, reads ["get_webhook", "get_webhook_delivery"], forms {
        "replay" => delivery::replay, calls "replay_webhook_delivery";
    };
};
