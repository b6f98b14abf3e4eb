//! Trying an endpoint: an example of an event is sent to it, one attempt.

use std::sync::Arc;

use mail::id::{EventId, WebhookId};
use serde_json::{Map, Value, json};
use store::access::Tenant;

use super::request::OfWebhook;
use super::view::{DeliveryView, QueuedDelivery};
use super::{no_such_webhook, problem};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::emails::rehearse::example;
use crate::fields::{self, Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What `POST /webhooks/{id}/test` takes.
#[derive(Debug)]
pub struct TestWebhook {
    webhook: WebhookId,
    event: String,
    example: Value,
}

impl Input for TestWebhook {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("TestWebhook", |_| {
            let event = json!({"type": "string", "examples": ["email.delivered"],
                               "description": "The name of an event"});
            schema::object("What is sent", [("event", event)])
        });
        let parameters = vec![OfWebhook::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names { known: &[("event", "event"), ("type", "event")], foreign: &[] };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let event = match given.value("event").map(fields::text) {
            None => Err("is required".to_owned()),
            Some(text) => text,
        };
        let found = event.and_then(|event| {
            let example = example::of(&event).ok_or_else(|| "is no event that there is".to_owned())?;
            Ok((event.into_owned(), example))
        });
        let (event, example) = match found {
            Ok(found) => found,
            Err(text) => {
                notes.errors.add("event", text);
                return Err(notes.errors.into());
            }
        };
        let OfWebhook(webhook) = OfWebhook::of(call)?;
        Ok(Self { webhook, event, example })
    }
}

/// The data of an example.
pub(crate) fn data(event: &str, id: EventId, example: Value) -> Map<String, Value> {
    let mut data = example::common(event, id);
    if let Value::Object(example) = example {
        for (name, value) in example {
            data.entry(name).or_insert(value);
        }
    }
    data.insert("test".to_owned(), Value::Bool(true));
    data
}

/// `POST /webhooks/{id}/test`.
///
/// # Errors
/// No such endpoint; 409 when it is disabled; the store cannot be written.
pub async fn test(room: Arc<Room>, tenant: Tenant, input: TestWebhook) -> Result<QueuedDelivery, Problem> {
    let webhook = room.hall.webhook(tenant.account().id, input.webhook).await;
    let webhook = webhook.map_err(|error| problem(error, &room))?;
    if !webhook.enabled {
        return Err(Problem::new(Code::CONFLICT, "The webhook endpoint is disabled: enable it first"));
    }
    let now = room.hall.clock().now();
    let id = EventId::new(now, room.hall.entropy().id());
    let data = data(&input.event, id, input.example);
    let envelope =
        mail::webhook::Envelope { r#type: &input.event, created_at: mail::moment::write(now), data: &data };
    let body = serde_json::to_string(&envelope).map_err(Problem::internal)?;
    let tried = room.hall.try_webhooks(std::slice::from_ref(&webhook), (id, &input.event), &body).await;
    let tried = tried.map_err(|error| problem(error, &room))?;
    let delivery = tried.first().ok_or_else(no_such_webhook)?;
    Ok(QueuedDelivery { delivery: DeliveryView::of(delivery) })
}
