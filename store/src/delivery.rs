//! Deliveries: a row each under the account and the endpoint, a row for each attempt, and a key for each that is
//! to be tried.
//!
//! ```text
//! Delivery        · account · webhook · delivery                       ─►  the delivery
//! DeliveryAttempt · account · webhook · delivery · number              ─►  an attempt
//! DeliveryDue     · partition · account · webhook · due · delivery     ─►  nothing
//! ```
//!
//! The due key is taken away in the commit that books an attempt, which checks that it is there: so each attempt
//! is booked once. A partition has one owner (see [`crate::task`]); the endpoints that have work in it are found
//! one by one, by one look-up each.

use std::ops::Range;

use jiff::Timestamp;
use mail::delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};
use mail::event::Subject;
use mail::id::{AccountId, DeliveryId, EventId, WebhookId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyDecodeError, KeyReader, Space, key, prefix_end, successor};
use crate::row::{self, stored};

/// Attempts of one delivery that are kept and shown.
pub const ATTEMPTS_MAX: usize = 100;

#[derive(Serialize, Deserialize)]
#[serde(remote = "WebhookDelivery")]
struct DeliveryRow {
    id: DeliveryId,
    account: AccountId,
    webhook: WebhookId,
    event: EventId,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<Subject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    status: WebhookDeliveryStatus,
    attempts: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_hand: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered_at: Option<Timestamp>,
}
stored!(WebhookDelivery as DeliveryRow);

#[derive(Serialize, Deserialize)]
#[serde(remote = "WebhookDeliveryAttempt")]
struct DeliveryAttemptRow {
    number: u32,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    response_body: String,
    duration_ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}
stored!(WebhookDeliveryAttempt as DeliveryAttemptRow);

/// An endpoint with work in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointQueueName {
    /// The partition.
    pub partition: u16,
    /// Whose endpoint it is.
    pub account: AccountId,
    /// The endpoint.
    pub webhook: WebhookId,
}

/// A delivery that is to be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueDelivery {
    /// Of which endpoint, in which partition.
    pub queue: EndpointQueueName,
    /// When.
    pub at: Timestamp,
    /// Which.
    pub delivery: DeliveryId,
}

fn queue_prefix(line: EndpointQueueName) -> KeyBuilder {
    key(Space::WebhookDeliveryDue).u16(line.partition).account(line.account).id(line.webhook.to_bytes())
}

impl DueDelivery {
    fn key(&self) -> Key {
        queue_prefix(self.queue).time(self.at).id(self.delivery.to_bytes()).build()
    }

    fn read(due_key: &[u8]) -> Result<Self, KeyDecodeError> {
        let mut reader = KeyReader::new(Space::WebhookDeliveryDue, due_key)?;
        let line = EndpointQueueName {
            partition: reader.u16()?,
            account: reader.account()?,
            webhook: WebhookId::from_bytes(reader.id()?),
        };
        Ok(Self { queue: line, at: reader.time()?, delivery: DeliveryId::from_bytes(reader.id()?) })
    }

    /// It is to be tried.
    pub fn put(&self, batch: &mut Batch) {
        batch.put(self.key(), Value::new());
    }

    /// It was tried; the commit conflicts when that was booked already.
    pub fn complete(&self, batch: &mut Batch) {
        batch.check(self.key(), Some(Value::new()));
        batch.delete(self.key());
    }
}

fn endpoint_prefix(space: Space, account: AccountId, webhook: WebhookId) -> KeyBuilder {
    key(space).account(account).id(webhook.to_bytes())
}

fn key_of(delivery: &WebhookDelivery) -> Key {
    endpoint_prefix(Space::WebhookDelivery, delivery.account, delivery.webhook).id(delivery.id.to_bytes()).build()
}

/// Writes a new delivery, to be tried at once.
pub fn create(batch: &mut Batch, delivery: &WebhookDelivery, due: &DueDelivery) {
    batch.put_fresh(key_of(delivery), row::encode(delivery));
    batch.put_fresh(due.key(), Value::new());
}

/// Writes how far a delivery is. Who does holds its due key, or checks what was read ([`change`]).
pub fn put(batch: &mut Batch, delivery: &WebhookDelivery) {
    batch.put(key_of(delivery), row::encode(delivery));
}

/// Changes a delivery that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &WebhookDelivery, after: &WebhookDelivery) {
    batch.check(key_of(before), Some(row::encode(before)));
    put(batch, after);
}

/// Writes an attempt.
pub fn put_attempt(batch: &mut Batch, delivery: &WebhookDelivery, attempt: &WebhookDeliveryAttempt) {
    let of = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    batch.put(of.id(delivery.id.to_bytes()).u32(attempt.number).build(), row::encode(attempt));
}

/// A delivery.
///
/// # Errors
/// The store cannot be read.
pub async fn get(
    store: &Store,
    (account, webhook): (AccountId, WebhookId),
    id: DeliveryId,
) -> Result<Option<WebhookDelivery>, ReadError> {
    let at = endpoint_prefix(Space::WebhookDelivery, account, webhook).id(id.to_bytes()).build();
    store.get(&at).await?.map(|row| row::decode(&row)).transpose()
}

/// The attempts of a delivery, the first one first.
///
/// # Errors
/// The store cannot be read.
pub async fn list_attempts(
    store: &Store,
    delivery: &WebhookDelivery,
) -> Result<Vec<WebhookDeliveryAttempt>, ReadError> {
    let of = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    let range = of.id(delivery.id.to_bytes()).range();
    let rows = store.scan(range, ScanOrder::Ascending, ATTEMPTS_MAX).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}

/// What is due in a line until a moment, the longest due first, at most `limit`, each with its delivery (none: it is
/// gone); and when the next is due, if it is known.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(
    store: &Store,
    line: EndpointQueueName,
    until: Timestamp,
    limit: usize,
) -> Result<(Vec<(DueDelivery, Option<WebhookDelivery>)>, Option<Timestamp>), ReadError> {
    let rows = store.scan(queue_prefix(line).range(), ScanOrder::Ascending, limit).await?;
    let (mut due, mut next) = (Vec::with_capacity(rows.len()), None);
    for (due_key, _) in &rows {
        let one = DueDelivery::read(due_key).map_err(row::damaged)?;
        if one.at > until {
            next = Some(one.at);
            break;
        }
        due.push(one);
    }
    let of = endpoint_prefix(Space::WebhookDelivery, line.account, line.webhook);
    let keys: Vec<Key> = due.iter().map(|one| of.clone().id(one.delivery.to_bytes()).build()).collect();
    let found = store.get_many(&keys).await?;
    let read = |row: Option<Value>| row.map(|row| row::decode(&row)).transpose();
    let due = due.into_iter().zip(found).map(|(due, row)| Ok((due, read(row)?)));
    Ok((due.collect::<Result<_, ReadError>>()?, next))
}

/// The first line of a partition at or behind a key, when its first delivery is due, and where to look for the next.
///
/// # Errors
/// The store cannot be read.
pub async fn next_endpoint_queue(
    store: &Store,
    partition: u16,
    from: Option<Key>,
) -> Result<Option<(EndpointQueueName, Timestamp, Key)>, ReadError> {
    let whole = key(Space::WebhookDeliveryDue).u16(partition).range();
    let from = from.unwrap_or(whole.start);
    let Some((found, _)) = store.scan(from..whole.end, ScanOrder::Ascending, 1).await?.pop() else {
        return Ok(None);
    };
    let due = DueDelivery::read(&found).map_err(row::damaged)?;
    Ok(Some((due.queue, due.at, queue_prefix(due.queue).range().end)))
}

/// Where the due keys of a line lie that have come by now.
pub(crate) fn due_range(line: EndpointQueueName, now: Timestamp) -> Range<Key> {
    queue_prefix(line).range().start..prefix_end(&queue_prefix(line).time(now).build())
}

/// Some deliveries of an endpoint, newest first, that `passes` holds for; and before which the next page begins.
/// At most `look_max` are looked at.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    (account, webhook): (AccountId, WebhookId),
    before: Option<DeliveryId>,
    (limit, look_max): (usize, usize),
    passes: impl Fn(&WebhookDelivery) -> bool,
) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>), ReadError> {
    let of = endpoint_prefix(Space::WebhookDelivery, account, webhook);
    let mut range = of.clone().range();
    if let Some(before) = before {
        range.end = of.clone().id(before.to_bytes()).build();
    }
    let (mut found, mut looked) = (Vec::new(), 0);
    loop {
        let page = (limit + 1).max(100);
        let rows = store.scan(range.clone(), ScanOrder::Descending, page).await?;
        let is_last = rows.len() < page;
        for (at, row) in rows {
            let delivery: WebhookDelivery = row::decode(&row)?;
            if found.len() == limit {
                return Ok((found, Some(cursor_including(&delivery))));
            }
            looked += 1;
            if passes(&delivery) {
                found.push(delivery);
            } else if looked >= look_max {
                return Ok((found, Some(delivery.id)));
            }
            range.end = at;
        }
        if is_last {
            return Ok((found, None));
        }
    }
}

/// The cursor that has a delivery on the next page.
fn cursor_including(delivery: &WebhookDelivery) -> DeliveryId {
    let next = u128::from_be_bytes(delivery.id.to_bytes()).saturating_add(1);
    DeliveryId::from_bytes(next.to_be_bytes())
}

/// Deliveries of an endpoint that were made in a time and that `passes` holds for, oldest first, of at most `limit`
/// looked at; and where to go on.
///
/// # Errors
/// The store cannot be read.
pub async fn list_created_between(
    store: &Store,
    (account, webhook): (AccountId, WebhookId),
    (since, until): (DeliveryId, DeliveryId),
    limit: usize,
    passes: impl Fn(&WebhookDelivery) -> bool,
) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>), ReadError> {
    let of = endpoint_prefix(Space::WebhookDelivery, account, webhook);
    let range = of.clone().id(since.to_bytes()).build()..of.id(until.to_bytes()).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let is_last = rows.len() < limit;
    let mut found = Vec::new();
    let mut last = None;
    for (_, row) in rows {
        let delivery: WebhookDelivery = row::decode(&row)?;
        last = Some(cursor_including(&delivery));
        if passes(&delivery) {
            found.push(delivery);
        }
    }
    Ok((found, last.filter(|_| !is_last)))
}

/// Forgets deliveries of an account that were made before a moment and wait for nothing, with their attempts: at most
/// `limit` rows from a key on. Where to go on, if there may be more.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    (account, from): (AccountId, Option<Key>),
    before: DeliveryId,
    limit: usize,
) -> Result<Option<Key>, ReadError> {
    let whole = key(Space::WebhookDelivery).account(account).range();
    let rows = store.scan(from.unwrap_or(whole.start)..whole.end, ScanOrder::Ascending, limit).await?;
    let mut next = rows.last().filter(|_| rows.len() == limit).map(|(at, _)| successor(at));
    for (at, row) in rows {
        let delivery: WebhookDelivery = row::decode(&row)?;
        if delivery.id >= before {
            // Young ones follow, to the end of this endpoint.
            next = Some(endpoint_prefix(Space::WebhookDelivery, account, delivery.webhook).range().end);
            break;
        }
        if delivery.status != WebhookDeliveryStatus::Pending {
            batch.delete(at);
            delete_attempts(batch, &delivery);
        }
    }
    Ok(next)
}

/// Forgets a delivery, and its attempts.
pub fn delete(batch: &mut Batch, delivery: &WebhookDelivery) {
    batch.delete(key_of(delivery));
    delete_attempts(batch, delivery);
}

fn delete_attempts(batch: &mut Batch, delivery: &WebhookDelivery) {
    let of = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    for number in 1..=delivery.attempts.min(u32::try_from(ATTEMPTS_MAX).unwrap_or(u32::MAX)) {
        batch.delete(of.clone().id(delivery.id.to_bytes()).u32(number).build());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(webhook: u128, number: u128) -> (WebhookDelivery, DueDelivery) {
        let at = Timestamp::UNIX_EPOCH;
        let (account, webhook) = (AccountId::new(at, 1), WebhookId::new(at, webhook));
        let id = DeliveryId::new(at, number);
        let delivery = WebhookDelivery {
            id,
            account,
            webhook,
            event: EventId::new(at, number),
            kind: "email.sent".to_owned(),
            subject: None,
            body: None,
            status: WebhookDeliveryStatus::Pending,
            attempts: 0,
            by_hand: false,
            next_attempt_at: Some(at),
            response_status: None,
            created_at: at,
            delivered_at: None,
        };
        (delivery, DueDelivery { queue: EndpointQueueName { partition: 3, account, webhook }, at, delivery: id })
    }

    #[tokio::test]
    async fn lines_are_found_one_by_one_and_each_attempt_is_booked_once() {
        let store = Store::memory();
        let mut batch = Batch::progress();
        for (webhook, number) in [(1, 1), (1, 2), (2, 3)] {
            let (one, due) = delivery(webhook, number);
            create(&mut batch, &one, &due);
        }
        store.commit(batch).await.unwrap();
        let (first, _, next) = next_endpoint_queue(&store, 3, None).await.unwrap().unwrap();
        let (second, _, end) = next_endpoint_queue(&store, 3, Some(next)).await.unwrap().unwrap();
        assert!(next_endpoint_queue(&store, 3, Some(end)).await.unwrap().is_none());
        assert_eq!((first, second), (delivery(1, 1).1.queue, delivery(2, 3).1.queue));
        let (found, next) = list_due(&store, first, Timestamp::UNIX_EPOCH, 10).await.unwrap();
        assert_eq!((found.len(), next), (2, None));
        let (one, mut tried) = (found[0].0, found[0].1.clone().unwrap());
        tried.attempts = 1;
        let mut batch = Batch::progress();
        one.complete(&mut batch);
        put(&mut batch, &tried);
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "booked twice");
    }

    #[tokio::test]
    async fn pages_have_no_gaps() {
        let store = Store::memory();
        let mut batch = Batch::progress();
        for number in 0..250 {
            let (one, due) = delivery(1, number);
            create(&mut batch, &one, &due);
        }
        store.commit(batch).await.unwrap();
        let of = (delivery(1, 1).0.account, delivery(1, 1).0.webhook);
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let even = |one: &WebhookDelivery| u128::from_be_bytes(one.id.to_bytes()).is_multiple_of(2);
            let (page, next) = list(&store, of, before, (7, 20), even).await.unwrap();
            seen.extend(page.into_iter().map(|one| one.id));
            before = next;
            if next.is_none() {
                break;
            }
        }
        let all: Vec<DeliveryId> = (0..250).rev().filter(|n| n % 2 == 0).map(|n| delivery(1, n).0.id).collect();
        assert_eq!(seen, all);
    }
}
