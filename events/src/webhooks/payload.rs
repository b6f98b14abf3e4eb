//! Bodies of deliveries, rendered from the rows of the event and its email. Bodies rendered by the dispatcher are
//! cached briefly.

use parking_lot::Mutex;
use std::collections::HashMap;

use bytes::Bytes;
use model::email::Email;
use model::event::{Event, Subject};
use model::id::{AccountId, EmailId, EventId};
use model::webhook_delivery::WebhookDelivery;
use model::webhook_payload;
use serde_json::{Map, Value};
use store::engine::{ReadError, Store};

use super::WebhookSender;

/// Bodies of one generation; there are two generations. A typical body has 700 bytes.
const GENERATION_MAX: usize = 4_096;
const GENERATION_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Default)]
struct PayloadGeneration {
    bodies: HashMap<EventId, Bytes>,
    size_bytes: usize,
}

/// Cache of recently rendered bodies.
#[derive(Debug, Default)]
pub(super) struct PayloadCache(Mutex<[PayloadGeneration; 2]>);

impl PayloadCache {
    pub(super) fn insert(&self, event: EventId, body: Bytes) {
        let mut generations = self.0.lock();
        let [young, old] = &mut *generations;
        if young.bodies.len() >= GENERATION_MAX || young.size_bytes >= GENERATION_BYTES_MAX {
            *old = std::mem::take(young);
        }
        young.size_bytes += body.len();
        young.bodies.insert(event, body);
    }

    fn get(&self, event: EventId) -> Option<Bytes> {
        let generations = self.0.lock();
        generations.iter().find_map(|generation| generation.bodies.get(&event).cloned())
    }
}

impl WebhookSender {
    /// Returns the body of a delivery, from the cache if possible; `None` if its event was purged.
    pub(super) async fn body(&self, store: &Store, delivery: &WebhookDelivery) -> Result<Option<Bytes>, ReadError> {
        if let Some(body) = &delivery.body {
            return Ok(Some(Bytes::from(body.clone())));
        }
        if let Some(body) = self.payloads.get(delivery.event) {
            return Ok(Some(body));
        }
        load_body(store, delivery).await
    }
}

/// Renders the body of a delivery from the stored rows.
pub(super) async fn load_body(store: &Store, delivery: &WebhookDelivery) -> Result<Option<Bytes>, ReadError> {
    let Some(subject) = delivery.subject else { return Ok(delivery.body.clone().map(Bytes::from)) };
    let keys = [(subject, delivery.event)];
    let found = store::event::get_each(store, delivery.account, &keys).await?;
    let Some(event) = found.into_iter().next().flatten() else { return Ok(None) };
    let email = event_email(store, &event).await?;
    Ok(webhook_payload::delivery_body(&event, email.as_ref()).map(Bytes::from))
}

async fn event_email(store: &Store, event: &Event) -> Result<Option<Email>, ReadError> {
    match event.email() {
        Some(email) => store::email::get_without_recipients(store, event.account, email).await,
        None => Ok(None),
    }
}

/// Returns events with their payloads, in the given order; `None` for purged ones.
pub(super) async fn event_payloads(
    store: &Store,
    account: AccountId,
    keys: &[(Subject, EventId)],
) -> Result<Vec<Option<(Event, Map<String, Value>)>>, ReadError> {
    let events = store::event::get_each(store, account, keys).await?;
    let mut emails: HashMap<EmailId, Option<Email>> = HashMap::new();
    let mut payloads = Vec::with_capacity(events.len());
    for event in events {
        let Some(event) = event else {
            payloads.push(None);
            continue;
        };
        if let Some(id) = event.email()
            && !emails.contains_key(&id)
        {
            emails.insert(id, event_email(store, &event).await?);
        }
        let email = event.email().and_then(|id| emails.get(&id)?.as_ref());
        let data = webhook_payload::event_data(&event, email);
        payloads.push(data.map(|data| (event, data)));
    }
    Ok(payloads)
}
