//! Received emails: one row each, ordered by a gapless sequence of commits, and a body shared by all of an account's
//! emails that arrived in one message.
//!
//! ```text
//! ReceivedEmail     · account · sequence   ─►  the email
//! ReceivedEmailById · account · id         ─►  its sequence number
//! ReceivedUse       · account · body · id  ─►  an email that refers to the body
//! ReceivedHead      · account              ─►  the last sequence number
//! ```
//!
//! Sequence numbers are assigned in the commit itself, which checks the account's head row. A client that has read up
//! to a number has read all before it, so polling misses nothing.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use model::id::{AccountId, ReceivedId};
use model::received::ReceivedEmail;

use crate::codec::{self, stored};
use crate::engine::{Batch, Body, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, successor};
use crate::rows;

stored!(ReceivedEmail);

/// Maximum number of rows scanned for one page. A page that reaches it is short and has a cursor.
const LOOKED_AT_MAX: usize = 2_000;
/// Rows per read.
const STEP: usize = 100;
/// Ids are ordered by time of arrival and sequence numbers by time of commit, and the nodes' clocks differ: the two
/// orders may deviate by this much.
const SLACK: SignedDuration = SignedDuration::from_mins(15);

fn key_of(account: AccountId, sequence: u64) -> Key {
    key(Space::ReceivedEmail).account(account).u64(sequence).build()
}

fn key_by_id(account: AccountId, id: ReceivedId) -> Key {
    key(Space::ReceivedEmailById).account(account).id(id.to_bytes()).build()
}

fn body_key(account: AccountId, body: ReceivedId) -> Key {
    key(Space::ReceivedBody).account(account).id(body.to_bytes()).build()
}

fn use_key(received: &ReceivedEmail) -> Key {
    let ReceivedEmail { account, body, id, .. } = received;
    key(Space::ReceivedUse).account(*account).id(body.to_bytes()).id(id.to_bytes()).build()
}

fn head_key(account: AccountId) -> Key {
    key(Space::ReceivedHead).account(account).build()
}

/// An account's last sequence number, with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSequence {
    account: AccountId,
    sequence: u64,
    row: Option<Value>,
}

impl ReceivedSequence {
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// Assigns the next sequence number.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Writes the last sequence number. The commit conflicts if another commit assigned numbers since it was read.
    pub fn put(&self, batch: &mut Batch) {
        batch.replace(head_key(self.account), self.row.clone(), self.sequence.to_string().into_bytes());
    }
}

/// Reads the last sequence numbers of accounts.
pub async fn get_sequences(store: &Store, accounts: &[AccountId]) -> Result<Vec<ReceivedSequence>> {
    let keys: Vec<Key> = accounts.iter().map(|account| head_key(*account)).collect();
    let rows = store.get_many(&keys).await?;
    accounts.iter().zip(rows).map(|(account, row)| decode_sequence(*account, row)).collect()
}

fn decode_sequence(account: AccountId, row: Option<Value>) -> Result<ReceivedSequence> {
    let sequence = rows::parse_number(row.as_ref(), "an invalid sequence number")?;
    Ok(ReceivedSequence { account, sequence, row })
}

/// Returns whether the conflicting key is an account's last sequence number.
pub fn is_order_conflict(conflict: &[u8]) -> bool {
    KeyReader::new(Space::ReceivedHead, conflict).is_ok()
}

/// Writes a received email without its body, which is written by [`put_body`].
pub fn create(batch: &mut Batch, received: &ReceivedEmail) {
    let row_key = key_of(received.account, received.sequence);
    batch.put(key_by_id(received.account, received.id), received.sequence.to_string().into_bytes());
    batch.put(use_key(received), Value::from_static(b"1"));
    batch.put(row_key, codec::encode(received));
}

/// Writes a body that received emails of an account share.
pub fn put_body(batch: &mut Batch, account: AccountId, body: ReceivedId, bytes: Body) {
    batch.put_body(body_key(account, body), bytes);
}

pub async fn get(store: &Store, account: AccountId, id: ReceivedId) -> Result<Option<ReceivedEmail>> {
    let Some(sequence_row) = store.get(&key_by_id(account, id)).await? else { return Ok(None) };
    let sequence = decode_sequence(account, Some(sequence_row))?.sequence;
    rows::get(store, &key_of(account, sequence)).await
}

/// Reads the message of a received email, with our trace fields prepended; `None` if the body is not stored.
pub async fn get_message(store: &Store, received: &ReceivedEmail) -> Result<Option<Bytes>> {
    let body = store.body(&body_key(received.account, received.body)).await?;
    Ok(body.map(|body| {
        let mut whole = Vec::with_capacity(received.trace.len() + body.len());
        whole.extend_from_slice(received.trace.as_bytes());
        whole.extend_from_slice(&body);
        Bytes::from(whole)
    }))
}

/// Parameters of a list.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedQuery {
    pub order: ScanOrder,
    /// The page starts after this sequence number, in scan order.
    pub from: Option<u64>,
    pub limit: usize,
    /// Skips rows that arrived before this time, approximately; the caller must filter exactly.
    pub after: Option<Timestamp>,
    /// Skips rows that arrived after this time, approximately.
    pub before: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct ReceivedPage {
    pub received: Vec<ReceivedEmail>,
    /// True if there may be more rows.
    pub has_more: bool,
    /// The last sequence number that was scanned; `None` if none was.
    pub looked_at: Option<u64>,
}

/// The first sequence number of an email that arrived at or after a time; `None` if there is none.
async fn first_sequence_at(store: &Store, account: AccountId, time: Timestamp) -> Result<Option<u64>> {
    let mut range = key(Space::ReceivedEmailById).account(account).range();
    range.start = key_by_id(account, ReceivedId::new(time, 0));
    let rows = store.scan(range, ScanOrder::Ascending, 1).await?;
    match rows.into_iter().next() {
        Some((_, row)) => Ok(Some(decode_sequence(account, Some(row))?.sequence)),
        None => Ok(None),
    }
}

/// Lists a page of an account's received emails that pass.
pub async fn list(
    store: &Store,
    account: AccountId,
    query: &ReceivedQuery,
    passes: impl Fn(&ReceivedEmail) -> bool,
) -> Result<ReceivedPage> {
    let mut range = key(Space::ReceivedEmail).account(account).range();
    if let Some(time) = query.after.and_then(|time| time.checked_sub(SLACK).ok()) {
        match first_sequence_at(store, account, time).await? {
            Some(bound) => range.start = key_of(account, bound),
            None => return Ok(ReceivedPage::default()),
        }
    }
    if let Some(time) = query.before.and_then(|time| time.checked_add(SLACK).ok())
        && let Some(bound) = first_sequence_at(store, account, time).await?
    {
        range.end = key_of(account, bound);
    }
    match (query.order, query.from) {
        (ScanOrder::Ascending, Some(from)) => range.start = range.start.max(successor(&key_of(account, from))),
        (ScanOrder::Descending, Some(from)) => range.end = range.end.min(key_of(account, from)),
        (_, None) => {}
    }
    let mut listed = ReceivedPage::default();
    for _ in 0..LOOKED_AT_MAX / STEP {
        if range.start >= range.end {
            return Ok(listed);
        }
        let rows = store.scan(range.clone(), query.order, STEP).await?;
        let is_end = rows.len() < STEP;
        for (at, row) in rows {
            let received: ReceivedEmail = codec::decode(&row)?;
            if listed.received.len() == query.limit {
                listed.has_more = true;
                return Ok(listed);
            }
            match query.order {
                ScanOrder::Ascending => range.start = successor(&at),
                ScanOrder::Descending => range.end = at,
            }
            listed.looked_at = Some(received.sequence);
            if passes(&received) {
                listed.received.push(received);
            }
        }
        if is_end {
            return Ok(listed);
        }
    }
    listed.has_more = true;
    Ok(listed)
}

/// Deletes a received email, its events, and its body if no other email refers to it. The commit conflicts if it, or
/// another email of the same message, is deleted concurrently.
pub async fn delete(store: &Store, batch: &mut Batch, received: &ReceivedEmail) -> Result<()> {
    /// Maximum number of events deleted; a received email has one today.
    const EVENTS_MAX: usize = 100;
    let ReceivedEmail { account, id, body, sequence, .. } = received;
    let users = key(Space::ReceivedUse).account(*account).id(body.to_bytes()).range();
    let own = use_key(received);
    let others = store.scan(users, ScanOrder::Ascending, 2).await?;
    match others.into_iter().find(|(user, _)| *user != own) {
        Some((other, row)) => {
            batch.check(other, Some(row));
        }
        None => {
            batch.delete_body(body_key(*account, *body));
        }
    }
    batch.check(key_of(*account, *sequence), Some(codec::encode(received)));
    let events = key(Space::Event).account(*account).id(id.to_bytes()).range();
    for (event, _) in store.scan(events, ScanOrder::Ascending, EVENTS_MAX).await? {
        batch.delete(event);
    }
    batch.delete(own);
    batch.delete(key_by_id(*account, *id));
    batch.delete(key_of(*account, *sequence));
    Ok(())
}

/// Lists the oldest received emails of an account that arrived before a time, at most `limit`.
pub async fn list_older_than(
    store: &Store,
    account: AccountId,
    time: Timestamp,
    limit: usize,
) -> Result<Vec<ReceivedEmail>> {
    let range = key(Space::ReceivedEmail).account(account).range();
    let all: Vec<ReceivedEmail> = rows::scan(store, range, ScanOrder::Ascending, limit).await?;
    Ok(all.into_iter().take_while(|received| received.received_at < time).collect())
}

#[cfg(test)]
mod tests {
    use message::received::{AuthenticationResults, ReceivedHeader};
    use model::id::DomainId;
    use model::received::{SpamScore, SpamStatus};

    use super::*;
    use crate::engine::CommitError;

    fn account() -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, 1)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn received(number: u64, body: u64) -> ReceivedEmail {
        let second = i64::try_from(number).unwrap() * 3_600;
        ReceivedEmail {
            id: ReceivedId::new(at(second), u128::from(number)),
            account: account(),
            domain: DomainId::new(Timestamp::UNIX_EPOCH, 1),
            sequence: number,
            rcpt_to: "a@in.example".parse().unwrap(),
            envelope_from: None,
            heading: ReceivedHeader { subject: format!("{number}"), ..ReceivedHeader::default() },
            auth: AuthenticationResults::default(),
            spam_status: SpamStatus::NotSpam,
            spam_score: Some(SpamScore(12)),
            trace: "Return-Path: <>\r\n".to_owned(),
            body: ReceivedId::new(Timestamp::UNIX_EPOCH, u128::from(body)),
            size_bytes: 4,
            received_at: at(second),
        }
    }

    async fn arrive(store: &Store, body: u64) -> ReceivedEmail {
        let mut heads = get_sequences(store, &[account()]).await.unwrap();
        let mut batch = Batch::intake();
        let email = received(heads[0].next_sequence(), body);
        heads[0].put(&mut batch);
        create(&mut batch, &email);
        put_body(&mut batch, account(), email.body, Body::from(Bytes::from_static(b"A: b")));
        store.commit(batch).await.unwrap();
        email
    }

    fn query(order: ScanOrder, from: Option<u64>) -> ReceivedQuery {
        ReceivedQuery { order, from, limit: 2, after: None, before: None }
    }

    fn sequences(listed: &ReceivedPage) -> Vec<u64> {
        listed.received.iter().map(|received| received.sequence).collect()
    }

    #[tokio::test]
    async fn sequence_numbers_are_unique_and_ordered() {
        let store = Store::memory();
        let first = arrive(&store, 1).await;
        let (one, other) =
            (get_sequences(&store, &[account()]).await.unwrap(), get_sequences(&store, &[account()]).await.unwrap());
        for (nth, mut heads) in [one, other].into_iter().enumerate() {
            let mut batch = Batch::intake();
            heads[0].next_sequence();
            heads[0].put(&mut batch);
            match store.commit(batch).await {
                Ok(()) => assert_eq!(nth, 0),
                Err(CommitError::Conflict { key }) => assert!(nth == 1 && is_order_conflict(&key)),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(get(&store, account(), first.id).await.unwrap(), Some(first.clone()));
        assert_eq!(get_message(&store, &first).await.unwrap().unwrap(), "Return-Path: <>\r\nA: b");
        let other = AccountId::new(Timestamp::UNIX_EPOCH, 2);
        assert_eq!(get(&store, other, first.id).await.unwrap(), None);
    }

    #[tokio::test]
    async fn pages_continue_in_both_orders() {
        let store = Store::memory();
        for _ in 0..5 {
            arrive(&store, 1).await;
        }
        let page = |order, from| {
            let store = store.clone();
            async move { list(&store, account(), &query(order, from), |_| true).await.unwrap() }
        };
        let first = page(ScanOrder::Ascending, None).await;
        assert_eq!((sequences(&first), first.has_more, first.looked_at), (vec![1, 2], true, Some(2)));
        let last = page(ScanOrder::Ascending, Some(4)).await;
        assert_eq!((sequences(&last), last.has_more), (vec![5], false));
        assert_eq!(page(ScanOrder::Ascending, Some(5)).await.looked_at, None);
        let newest = page(ScanOrder::Descending, None).await;
        assert_eq!((sequences(&newest), newest.has_more), (vec![5, 4], true));
        assert_eq!(sequences(&page(ScanOrder::Descending, Some(2)).await), [1]);
        let within = ReceivedQuery {
            after: Some(at(2 * 3_600)),
            before: Some(at(4 * 3_600)),
            limit: 9,
            ..query(ScanOrder::Ascending, None)
        };
        let found = list(&store, account(), &within, |r| r.received_at > at(2 * 3_600)).await.unwrap();
        assert_eq!((sequences(&found), found.looked_at), (vec![3, 4], Some(4)));
        let later = ReceivedQuery { after: Some(at(9 * 3_600)), ..within };
        assert!(list(&store, account(), &later, |_| true).await.unwrap().received.is_empty());
    }

    #[tokio::test]
    async fn a_body_is_deleted_with_its_last_email() {
        let store = Store::memory();
        let (earlier, later) = (arrive(&store, 7).await, arrive(&store, 7).await);
        let deletion = |received: ReceivedEmail| {
            let store = store.clone();
            async move {
                let mut batch = Batch::progress();
                delete(&store, &mut batch, &received).await.unwrap();
                batch
            }
        };
        let (first, second) = (deletion(earlier.clone()).await, deletion(later.clone()).await);
        store.commit(first.clone()).await.unwrap();
        assert!(matches!(store.commit(first).await, Err(CommitError::Conflict { .. })));
        assert!(matches!(store.commit(second).await, Err(CommitError::Conflict { .. })), "both at once");
        assert_eq!(get(&store, account(), earlier.id).await.unwrap(), None);
        assert!(get_message(&store, &later).await.unwrap().is_some());
        let again = deletion(later.clone()).await;
        store.commit(again).await.unwrap();
        assert!(get_message(&store, &later).await.unwrap().is_none());
        assert!(list_older_than(&store, account(), Timestamp::MAX, 10).await.unwrap().is_empty());
    }
}
