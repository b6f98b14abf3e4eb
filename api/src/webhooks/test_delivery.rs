//! Tests an endpoint: sends one example event, with a single attempt.

use super::error::{endpoint_disabled, webhook_not_found};
use super::request::WebhookPath;
use super::view::{QueuedDeliveryResponse, WebhookDeliveryView};
use crate::emails::test_event::example_event::ExampleEvent;
use crate::emails::test_event::example_payloads::example_for;
use crate::prelude::*;

/// The event to send
#[derive(Debug, RequestObject)]
#[schema(name = "TestWebhook", body_bytes_max = SMALL_BYTES_MAX)]
pub struct TestedEvent {
    /// An event name
    #[field(aliases = ["type"], examples = ["email.delivered"])]
    event: ExampleEvent,
}

/// `POST /webhooks/{id}/test`.
///
/// # Errors
/// The endpoint does not exist or is disabled; the store cannot be written.
pub async fn send_test(
    state: State,
    tenant: Tenant,
    (WebhookPath(webhook), test): (WebhookPath, TestedEvent),
) -> Result<QueuedDeliveryResponse> {
    let webhook = state.accounts.webhooks.webhook(tenant.account().id, webhook).await.or_problem(&state)?;
    if !webhook.enabled {
        return Err(endpoint_disabled());
    }
    let now = state.services.clock.now();
    let id = EventId::new(now, state.services.entropy.unique_bits());
    let ExampleEvent(kind) = test.event;
    let mut data = example_for(kind).data(id);
    data.insert("test".to_owned(), Value::Bool(true));
    let event = kind.name();
    let envelope =
        model::webhook::WebhookBody { r#type: event, created_at: model::timestamp::to_rfc3339(now), data: &data };
    let body = serde_json::to_string(&envelope).map_err(Problem::internal)?;
    let queued = state.accounts.webhooks.send_test_deliveries(std::slice::from_ref(&webhook), id, event, &body).await;
    let queued = queued.or_problem(&state)?;
    let delivery = queued.first().ok_or_else(webhook_not_found)?;
    Ok(QueuedDeliveryResponse { delivery: WebhookDeliveryView::from_delivery(delivery) })
}
