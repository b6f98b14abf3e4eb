//! Webhook deliveries: one row each under account and endpoint, one row for each attempt, and a due key while pending.
//!
//! ```text
//! WebhookDelivery        · account · webhook · delivery           ─►  the delivery
//! WebhookDeliveryAttempt · account · webhook · delivery · number  ─►  an attempt
//! WebhookDeliveryDue     · partition · account · webhook · due · delivery  ─►  (empty)
//! ```
//!
//! The commit that records an attempt checks and deletes the due key, so each attempt is recorded exactly once. A
//! partition has one owner (see [`crate::task`]). The endpoints that have work in a partition are found one after
//! another, with one read each.

use std::ops::Range;

use jiff::Timestamp;
use model::id::{AccountId, DeliveryId, WebhookId};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyDecodeError, KeyReader, Space, key, prefix_end};
use crate::rows;

/// Maximum number of attempts stored for one delivery.
pub const ATTEMPTS_MAX: u32 = 100;

stored!(WebhookDelivery);

stored!(WebhookDeliveryAttempt);

/// The queue of an endpoint in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointQueueName {
    pub partition: u16,
    pub account: AccountId,
    pub webhook: WebhookId,
}

/// The due entry of a pending delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueDelivery {
    /// Partition and endpoint.
    pub queue: EndpointQueueName,
    pub at: Timestamp,
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

    /// Writes the due key.
    pub fn put(&self, batch: &mut Batch) {
        batch.put(self.key(), Value::new());
    }

    /// Deletes the due key after an attempt. The commit conflicts if the attempt was recorded before.
    pub fn complete(&self, batch: &mut Batch) {
        batch.remove(self.key(), Value::new());
    }
}

fn endpoint_prefix(space: Space, account: AccountId, webhook: WebhookId) -> KeyBuilder {
    key(space).account(account).id(webhook.to_bytes())
}

fn key_of(delivery: &WebhookDelivery) -> Key {
    endpoint_prefix(Space::WebhookDelivery, delivery.account, delivery.webhook).id(delivery.id.to_bytes()).build()
}

/// Writes a new delivery with its due key.
pub fn create(batch: &mut Batch, delivery: &WebhookDelivery, due: &DueDelivery) {
    batch.put_fresh(key_of(delivery), codec::encode(delivery));
    batch.put_fresh(due.key(), Value::new());
}

/// Writes the state of a delivery, unchecked. The caller must complete its due key in the same batch, or use
/// [`update`].
pub fn put(batch: &mut Batch, delivery: &WebhookDelivery) {
    batch.put(key_of(delivery), codec::encode(delivery));
}

/// Updates a delivery that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &WebhookDelivery, after: &WebhookDelivery) {
    batch.check(key_of(before), Some(codec::encode(before)));
    put(batch, after);
}

/// Writes an attempt. Only the newest [`ATTEMPTS_MAX`] are kept.
pub fn put_attempt(batch: &mut Batch, delivery: &WebhookDelivery, attempt: &WebhookDeliveryAttempt) {
    let prefix = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    let prefix = prefix.id(delivery.id.to_bytes());
    if let Some(oldest) = attempt.number.checked_sub(ATTEMPTS_MAX).filter(|number| *number > 0) {
        batch.delete(prefix.clone().u32(oldest).build());
    }
    batch.put(prefix.u32(attempt.number).build(), codec::encode(attempt));
}

pub async fn get(
    store: &Store,
    account: AccountId,
    webhook: WebhookId,
    id: DeliveryId,
) -> Result<Option<WebhookDelivery>> {
    let at = endpoint_prefix(Space::WebhookDelivery, account, webhook).id(id.to_bytes()).build();
    rows::get(store, &at).await
}

/// Lists the newest attempts of a delivery, oldest first.
pub async fn list_attempts(store: &Store, delivery: &WebhookDelivery) -> Result<Vec<WebhookDeliveryAttempt>> {
    let prefix = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    let range = prefix.id(delivery.id.to_bytes()).range();
    let mut newest = rows::scan(store, range, ScanOrder::Descending, ATTEMPTS_MAX as usize).await?;
    newest.reverse();
    Ok(newest)
}

/// Lists the deliveries of an endpoint's queue that are due until a time, longest due first, at most `limit`. A
/// delivery that no longer exists is `None`. Also returns the next due time, if known.
pub async fn list_due(
    store: &Store,
    line: EndpointQueueName,
    until: Timestamp,
    limit: usize,
) -> Result<(Vec<(DueDelivery, Option<WebhookDelivery>)>, Option<Timestamp>)> {
    let rows = store.scan(queue_prefix(line).range(), ScanOrder::Ascending, limit).await?;
    let (mut due, mut next) = (Vec::with_capacity(rows.len()), None);
    for (due_key, _) in &rows {
        let due_delivery = DueDelivery::read(due_key)?;
        if due_delivery.at > until {
            next = Some(due_delivery.at);
            break;
        }
        due.push(due_delivery);
    }
    let prefix = endpoint_prefix(Space::WebhookDelivery, line.account, line.webhook);
    let keys: Vec<Key> =
        due.iter().map(|due_delivery| prefix.clone().id(due_delivery.delivery.to_bytes()).build()).collect();
    let found = rows::get_each(store, &keys).await?;
    Ok((due.into_iter().zip(found).collect(), next))
}

/// Finds the first endpoint queue of a partition from a key on. Returns its name, its first due time, and the key from
/// which to search for the next queue.
pub async fn next_endpoint_queue(
    store: &Store,
    partition: u16,
    from: Option<Key>,
) -> Result<Option<(EndpointQueueName, Timestamp, Key)>> {
    let whole = key(Space::WebhookDeliveryDue).u16(partition).range();
    let from = from.unwrap_or(whole.start);
    let Some((found, _)) = store.scan(from..whole.end, ScanOrder::Ascending, 1).await?.pop() else {
        return Ok(None);
    };
    let due = DueDelivery::read(&found)?;
    Ok(Some((due.queue, due.at, queue_prefix(due.queue).range().end)))
}

/// Key range of a queue's deliveries that are due at `now`.
pub(crate) fn due_range(line: EndpointQueueName, now: Timestamp) -> Range<Key> {
    queue_prefix(line).range().start..prefix_end(&queue_prefix(line).time(now).build())
}

/// Lists the deliveries of an endpoint that pass, newest first, and returns the cursor of the next page. Scans at most
/// `looked_at_max` rows.
pub async fn list(
    store: &Store,
    account: AccountId,
    webhook: WebhookId,
    before: Option<DeliveryId>,
    limit: usize,
    looked_at_max: usize,
    passes: impl Fn(&WebhookDelivery) -> bool,
) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>)> {
    let prefix = endpoint_prefix(Space::WebhookDelivery, account, webhook);
    let mut range = prefix.clone().range_before(before.map(DeliveryId::to_bytes));
    let (mut found, mut looked) = (Vec::new(), 0);
    loop {
        let page = (limit + 1).max(100);
        let rows = store.scan(range.clone(), ScanOrder::Descending, page).await?;
        let is_last = rows.len() < page;
        for (at, row) in rows {
            let delivery: WebhookDelivery = codec::decode(&row)?;
            if found.len() == limit {
                return Ok((found, Some(cursor_including(&delivery))));
            }
            looked += 1;
            if passes(&delivery) {
                found.push(delivery);
            } else if looked >= looked_at_max {
                return Ok((found, Some(delivery.id)));
            }
            range.end = at;
        }
        if is_last {
            return Ok((found, None));
        }
    }
}

/// The cursor of a page that starts with this delivery.
fn cursor_including(delivery: &WebhookDelivery) -> DeliveryId {
    let next = u128::from_be_bytes(delivery.id.to_bytes()).saturating_add(1);
    DeliveryId::from_bytes(next.to_be_bytes())
}

/// Lists the deliveries of an endpoint that were created between two ids and pass, oldest first. Scans at most `limit`
/// rows and returns the cursor of the next page.
pub async fn list_created_between(
    store: &Store,
    account: AccountId,
    webhook: WebhookId,
    since: DeliveryId,
    until: DeliveryId,
    limit: usize,
    passes: impl Fn(&WebhookDelivery) -> bool,
) -> Result<(Vec<WebhookDelivery>, Option<DeliveryId>)> {
    let prefix = endpoint_prefix(Space::WebhookDelivery, account, webhook);
    let range = prefix.clone().id(since.to_bytes()).build()..prefix.id(until.to_bytes()).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let is_last = rows.len() < limit;
    let mut found = Vec::new();
    let mut last = None;
    for (_, row) in rows {
        let delivery: WebhookDelivery = codec::decode(&row)?;
        last = Some(cursor_including(&delivery));
        if passes(&delivery) {
            found.push(delivery);
        }
    }
    Ok((found, last.filter(|_| !is_last)))
}

/// Deletes an account's deliveries created before `before` that are not pending, with their attempts. Scans at most
/// `limit` rows from a key on and returns the key to continue from if rows may remain.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    before: DeliveryId,
    limit: usize,
) -> Result<Option<Key>> {
    let whole = key(Space::WebhookDelivery).account(account).range();
    let rows = store.scan(from.unwrap_or(whole.start)..whole.end, ScanOrder::Ascending, limit).await?;
    let mut next = rows::next_page(&rows, limit);
    for (at, row) in rows {
        let delivery: WebhookDelivery = codec::decode(&row)?;
        if delivery.id >= before {
            // The rest of this endpoint's rows are newer: continue with the next endpoint.
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

/// Deletes a delivery and its attempts.
pub fn delete(batch: &mut Batch, delivery: &WebhookDelivery) {
    batch.delete(key_of(delivery));
    delete_attempts(batch, delivery);
}

fn delete_attempts(batch: &mut Batch, delivery: &WebhookDelivery) {
    let prefix = endpoint_prefix(Space::WebhookDeliveryAttempt, delivery.account, delivery.webhook);
    // Release 0.1.0 stored the older ones, too.
    let newest = delivery.attempts.saturating_sub(ATTEMPTS_MAX).max(ATTEMPTS_MAX) + 1..=delivery.attempts;
    for number in (1..=delivery.attempts.min(ATTEMPTS_MAX)).chain(newest) {
        batch.delete(prefix.clone().id(delivery.id.to_bytes()).u32(number).build());
    }
}

#[cfg(test)]
mod tests {
    use model::id::EventId;

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
    async fn the_newest_attempts_are_kept() {
        let store = Store::memory();
        let (mut entry, _) = delivery(1, 1);
        for number in 1..=ATTEMPTS_MAX + 2 {
            let attempt = WebhookDeliveryAttempt {
                number,
                at: Timestamp::UNIX_EPOCH,
                response_status: Some(500),
                response_body: String::new(),
                duration_ms: 1,
                error: None,
            };
            let mut batch = Batch::progress();
            put_attempt(&mut batch, &entry, &attempt);
            store.commit(batch).await.unwrap();
        }
        entry.attempts = ATTEMPTS_MAX + 2;
        let numbers: Vec<u32> = list_attempts(&store, &entry).await.unwrap().iter().map(|one| one.number).collect();
        assert_eq!(numbers, (3..=ATTEMPTS_MAX + 2).collect::<Vec<_>>());
        let mut batch = Batch::progress();
        delete(&mut batch, &entry);
        store.commit(batch).await.unwrap();
        assert!(list_attempts(&store, &entry).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn queues_are_found_in_turn_and_each_attempt_is_recorded_once() {
        let store = Store::memory();
        let mut batch = Batch::progress();
        for (webhook, number) in [(1, 1), (1, 2), (2, 3)] {
            let (entry, due) = delivery(webhook, number);
            create(&mut batch, &entry, &due);
        }
        store.commit(batch).await.unwrap();
        let (first, _, next) = next_endpoint_queue(&store, 3, None).await.unwrap().unwrap();
        let (second, _, end) = next_endpoint_queue(&store, 3, Some(next)).await.unwrap().unwrap();
        assert!(next_endpoint_queue(&store, 3, Some(end)).await.unwrap().is_none());
        assert_eq!((first, second), (delivery(1, 1).1.queue, delivery(2, 3).1.queue));
        let (found, next) = list_due(&store, first, Timestamp::UNIX_EPOCH, 10).await.unwrap();
        assert_eq!((found.len(), next), (2, None));
        let (entry, mut attempted) = (found[0].0, found[0].1.clone().unwrap());
        attempted.attempts = 1;
        let mut batch = Batch::progress();
        entry.complete(&mut batch);
        put(&mut batch, &attempted);
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
        let WebhookDelivery { account, webhook, .. } = delivery(1, 1).0;
        let (mut listed, mut before) = (Vec::new(), None);
        loop {
            let even = |one: &WebhookDelivery| u128::from_be_bytes(one.id.to_bytes()).is_multiple_of(2);
            let (page, next) = list(&store, account, webhook, before, 7, 20, even).await.unwrap();
            listed.extend(page.into_iter().map(|one| one.id));
            before = next;
            if next.is_none() {
                break;
            }
        }
        let all: Vec<DeliveryId> = (0..250).rev().filter(|n| n % 2 == 0).map(|n| delivery(1, n).0.id).collect();
        assert_eq!(listed, all);
    }
}
