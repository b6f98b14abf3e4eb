//! Bodies of deliveries: made from the event's row and its email's when they are sent, and kept for a moment where
//! they were made while telling.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use mail::delivery::WebhookDelivery;
use mail::email::Email;
use mail::event::{Event, Subject};
use mail::id::{AccountId, EmailId, EventId};
use mail::payload;
use serde_json::{Map, Value};
use store::engine::{ReadError, Store};

use super::WebhookSender;

/// Bodies of one generation; there are two. A usual one has 700 bytes.
const GENERATION_MAX: usize = 4_096;
/// Bytes of one generation.
const GENERATION_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Default)]
struct PayloadGeneration {
    bodies: HashMap<EventId, Bytes>,
    size_bytes: usize,
}

/// Bodies that were made a moment ago.
#[derive(Debug, Default)]
pub(super) struct PayloadCache(Mutex<[PayloadGeneration; 2]>);

impl PayloadCache {
    pub(super) fn insert(&self, event: EventId, body: Bytes) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [young, old] = &mut *generations;
        if young.bodies.len() >= GENERATION_MAX || young.size_bytes >= GENERATION_BYTES_MAX {
            *old = std::mem::take(young);
        }
        young.size_bytes += body.len();
        young.bodies.insert(event, body);
    }

    fn get(&self, event: EventId) -> Option<Bytes> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.iter().find_map(|generation| generation.bodies.get(&event).cloned())
    }
}

impl WebhookSender {
    /// The body of a delivery; none when what it tells of is not kept any more.
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

/// The body of a delivery as the rows have it.
pub(super) async fn load_body(store: &Store, delivery: &WebhookDelivery) -> Result<Option<Bytes>, ReadError> {
    let Some(subject) = delivery.subject else { return Ok(delivery.body.clone().map(Bytes::from)) };
    let which = [(subject, delivery.event)];
    let found = store::event::get_each(store, delivery.account, &which).await?;
    let Some(event) = found.into_iter().next().flatten() else { return Ok(None) };
    let email = event_email(store, &event).await?;
    Ok(payload::delivery_body(&event, email.as_ref()).map(Bytes::from))
}

async fn event_email(store: &Store, event: &Event) -> Result<Option<Email>, ReadError> {
    match event.email() {
        Some(email) => store::email::get_without_recipients(store, event.account, email).await,
        None => Ok(None),
    }
}

/// Events with what is told of them, in the order in which they are asked for; none for those that are not kept.
pub(super) async fn event_payloads(
    store: &Store,
    account: AccountId,
    which: &[(Subject, EventId)],
) -> Result<Vec<Option<(Event, Map<String, Value>)>>, ReadError> {
    let events = store::event::get_each(store, account, which).await?;
    let mut emails: HashMap<EmailId, Option<Email>> = HashMap::new();
    let mut told = Vec::with_capacity(events.len());
    for event in events {
        let Some(event) = event else {
            told.push(None);
            continue;
        };
        if let Some(id) = event.email()
            && !emails.contains_key(&id)
        {
            emails.insert(id, event_email(store, &event).await?);
        }
        let email = event.email().and_then(|id| emails.get(&id)?.as_ref());
        let data = payload::event_data(&event, email);
        told.push(data.map(|data| (event, data)));
    }
    Ok(told)
}
