//! Approvals: requests of clients that wait for a person's decision, and decided ones.
//!
//! ```text
//! Approval          · account · id                          ─►  the approval
//! ApprovalContent   · account · id                          ─►  its content, encrypted; see `content_ends_at`
//! ApprovalByEnd     · time · account · id                   ─►  nothing      until the content is deleted
//! ApprovalPending   · account · id                          ─►  length of the content and client, while it is pending
//! ApprovalExecuting · account · id                          ─►  nothing      from the decision to the end
//! ApprovalByKey     · account · hash of client, operation
//!                     and idempotency key                   ─►  id of the latest approval
//! ApprovalCount     · account                               ─►  day, and number of requests held on it, by client
//! ```
//!
//! Every change compares the row with what was read, so that a request is decided once and executed by one node. Every
//! new approval changes the count, so that of two concurrent ones one conflicts, and the limits of [`ApprovalUsage`] are
//! exact.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::approval::{Approval, ApprovalState, DECISION_TIME, PENDING_MAX};
use model::credential::CredentialId;
use model::id::{AccountId, ApprovalId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::codec::{self, SerdeRow, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key, successor};
use crate::rows;

account_rows!(Approval, ApprovalId, Approval, list);

/// Number of requests that were held on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldCount {
    day: Date,
    held: u32,
    /// By client; at most as many entries as requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    by_client: Vec<(CredentialId, u32)>,
}

/// Usage of a client: its part of the limits of its account's approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientApprovalUsage {
    pub pending: usize,
    /// Length of the contents of the pending ones.
    pub pending_bytes: u64,
    /// Requests that were held today (UTC).
    pub held_today: u32,
}

/// The use of the limits of an account's approvals, as read before a new one.
#[derive(Debug)]
pub struct ApprovalUsage {
    /// When each pending request was held, oldest first; at most [`PENDING_MAX`].
    pub pending_since: Vec<Timestamp>,
    /// Length of their contents.
    pub pending_bytes: u64,
    /// Requests that were held today (UTC).
    pub held_today: u32,
    /// The part of the client that makes the new one.
    pub of_client: ClientApprovalUsage,
    today: Date,
    today_by_client: Vec<(CredentialId, u32)>,
    count_row: Option<Value>,
}

fn index_key(space: Space, account: AccountId, id: ApprovalId) -> Key {
    key(space).account(account).id(id.to_bytes()).build()
}

/// Key of the approval that an idempotency key led to; `None` if the request has none.
fn idempotency_key(approval: &Approval) -> Option<Key> {
    let used = approval.request.idempotency_key.as_deref()?;
    Some(key_by_idempotency_key(approval.account, approval.client, &approval.request.operation, used))
}

fn key_by_idempotency_key(account: AccountId, client: CredentialId, operation: &str, used: &str) -> Key {
    let mut hash = Sha256::new();
    hash.update(client.to_bytes());
    hash.update((operation.len() as u64).to_be_bytes());
    hash.update(operation.as_bytes());
    hash.update(used.as_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    key(Space::ApprovalByKey).account(account).fixed(hash).build()
}

fn end_key(approval: &Approval) -> Option<Key> {
    let at = approval.content_ends_at()?;
    Some(key(Space::ApprovalByEnd).time(at).account(approval.account).id(approval.id.to_bytes()).build())
}

/// The index of open approvals that a state belongs to.
fn open_index(state: &ApprovalState) -> Option<Space> {
    match state {
        ApprovalState::Pending => Some(Space::ApprovalPending),
        ApprovalState::Approved { .. } | ApprovalState::Executing { .. } => Some(Space::ApprovalExecuting),
        ApprovalState::Rejected { .. }
        | ApprovalState::Expired
        | ApprovalState::Executed { .. }
        | ApprovalState::Interrupted { .. } => None,
    }
}

/// Context that binds an encrypted content to its row.
pub fn content_context(id: ApprovalId) -> Vec<u8> {
    [b"approval".as_slice(), &id.to_bytes()].concat()
}

/// Reads what an account's approvals use of their limits, in all and for one client.
pub async fn usage(store: &Store, account: AccountId, client: CredentialId, now: Timestamp) -> Result<ApprovalUsage> {
    let count_row = store.get(&key(Space::ApprovalCount).account(account).build()).await?;
    let stored: Option<SerdeRow<HeldCount>> = count_row.as_ref().map(|row| codec::decode(row)).transpose()?;
    let today = now.to_zoned(TimeZone::UTC).date();
    let (held_today, today_by_client) = match stored {
        Some(SerdeRow(HeldCount { day, held, by_client })) if day == today => (held, by_client),
        _ => (0, Vec::new()),
    };
    let own_today = today_by_client.iter().find(|(other, _)| *other == client).map_or(0, |(_, held)| *held);
    let mut of_client = ClientApprovalUsage { held_today: own_today, ..ClientApprovalUsage::default() };
    // Older ones have expired, even if their rows do not say it yet.
    let oldest = now.checked_sub(DECISION_TIME).unwrap_or(Timestamp::MIN);
    let mut range = key(Space::ApprovalPending).account(account).range();
    range.start = index_key(Space::ApprovalPending, account, ApprovalId::new(oldest, 0));
    let rows = store.scan(range, ScanOrder::Ascending, PENDING_MAX).await?;
    let (mut pending_since, mut pending_bytes) = (Vec::with_capacity(rows.len()), 0);
    for (row_key, row) in &rows {
        let (_, id) = index_parts(Space::ApprovalPending, row_key)?;
        let (length, owner) = row.split_first_chunk::<8>().ok_or_else(|| codec::damaged("an invalid length"))?;
        let length = u64::from_be_bytes(*length);
        pending_since.push(id.born_at());
        pending_bytes += length;
        if owner == client.to_bytes() {
            of_client.pending += 1;
            of_client.pending_bytes += length;
        }
    }
    Ok(ApprovalUsage { pending_since, pending_bytes, held_today, of_client, today, today_by_client, count_row })
}

/// Writes a new approval with its encrypted content. Its idempotency key led to `replaced` before. The commit conflicts
/// if it leads to another approval by now, or if another approval of the account was written since `usage` was read.
pub fn create(
    batch: &mut Batch,
    approval: &Approval,
    content: Vec<u8>,
    replaced: Option<ApprovalId>,
    usage: &ApprovalUsage,
) {
    let (account, id) = (approval.account, approval.id);
    if let Some(by_key) = idempotency_key(approval) {
        batch.replace(
            by_key,
            replaced.map(|replaced| Value::from(replaced.to_bytes().to_vec())),
            id.to_bytes().to_vec(),
        );
    }
    let count = key(Space::ApprovalCount).account(account).build();
    batch.check(count.clone(), usage.count_row.clone());
    let mut by_client = usage.today_by_client.clone();
    match by_client.iter_mut().find(|(client, _)| *client == approval.client) {
        Some((_, held)) => *held = held.saturating_add(1),
        None => by_client.push((approval.client, 1)),
    }
    let held = HeldCount { day: usage.today, held: usage.held_today.saturating_add(1), by_client };
    batch.put(count, codec::encode(&SerdeRow(held)));
    let length = (content.len() as u64).to_be_bytes();
    let pending = [length.as_slice(), &approval.client.to_bytes()].concat();
    batch.put(index_key(Space::ApprovalPending, account, id), pending);
    batch.put(content_key(account, id), content);
    batch.put(key_of(account, id), codec::encode(approval));
    rows::move_entry(batch, None, end_key(approval));
}

fn content_key(account: AccountId, id: ApprovalId) -> Key {
    index_key(Space::ApprovalContent, account, id)
}

fn without_content(approval: &Approval) -> Approval {
    Approval { request: approval.request.without_content(), ..approval.clone() }
}

/// Updates an approval that was read as `before`; `content` replaces its content. If the request will not be executed,
/// the content is deleted with query, header fields and addresses of the request. The commit conflicts if the stored row
/// has changed since.
pub fn update(batch: &mut Batch, before: &Approval, after: &Approval, content: Option<Vec<u8>>) {
    let (account, id) = (before.account, before.id);
    check_unchanged(batch, before);
    let index_of = |state: &ApprovalState| open_index(state).map(|space| index_key(space, account, id));
    rows::move_entry(batch, index_of(&before.state), index_of(&after.state));
    rows::move_entry(batch, end_key(before), end_key(after));
    if matches!(after.state, ApprovalState::Rejected { .. } | ApprovalState::Expired) {
        batch.delete(content_key(account, id));
        batch.put(key_of(account, id), codec::encode(&without_content(after)));
        return;
    }
    if let Some(content) = content {
        batch.put(content_key(account, id), content);
    }
    batch.put(key_of(account, id), codec::encode(after));
}

/// Deletes the content of an executed approval that was read as `approval`, with query, header fields and addresses of
/// the request.
pub fn delete_content(batch: &mut Batch, approval: &Approval) {
    check_unchanged(batch, approval);
    batch.delete(content_key(approval.account, approval.id));
    batch.put(key_of(approval.account, approval.id), codec::encode(&without_content(approval)));
    rows::move_entry(batch, end_key(approval), None);
}

/// Reads the encrypted content of an approval; `None` once it was deleted.
pub async fn get_content(store: &Store, account: AccountId, id: ApprovalId) -> Result<Option<Value>> {
    store.get(&content_key(account, id)).await
}

/// Lists approvals of all accounts whose content is to be deleted by `now`, at most `limit`.
pub async fn list_ended(store: &Store, now: Timestamp, limit: usize) -> Result<Vec<Approval>> {
    let mut range = key(Space::ApprovalByEnd).range();
    range.end = successor(&key(Space::ApprovalByEnd).time(now).account(AccountId::from_bytes([0xFF; 16])).build());
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let row_of_end = |(row_key, _): &(Key, Value)| {
        let mut parts = KeyReader::new(Space::ApprovalByEnd, row_key)?;
        let account = parts.time().and_then(|_| parts.account())?;
        Ok(key_of(account, ApprovalId::from_bytes(parts.id()?)))
    };
    let keys = rows.iter().map(row_of_end).collect::<Result<Vec<Key>>>()?;
    rows::get_existing(store, &keys).await
}

/// Reads the approval that the client's idempotency key led to.
pub async fn find_by_idempotency_key(
    store: &Store,
    account: AccountId,
    client: CredentialId,
    operation: &str,
    used: &str,
) -> Result<Option<Approval>> {
    let Some(id) = store.get(&key_by_idempotency_key(account, client, operation, used)).await? else {
        return Ok(None);
    };
    let id: [u8; 16] = id.as_ref().try_into().map_err(|_| codec::damaged("an invalid id of an approval"))?;
    get(store, account, ApprovalId::from_bytes(id)).await
}

fn index_parts(space: Space, row_key: &[u8]) -> Result<(AccountId, ApprovalId), KeyDecodeError> {
    let mut parts = KeyReader::new(space, row_key)?;
    let account = parts.account()?;
    Ok((account, ApprovalId::from_bytes(parts.id()?)))
}

/// Lists approvals of all accounts that are approved or being executed, after `after`, at most `limit`.
pub async fn list_executing(
    store: &Store,
    after: Option<(AccountId, ApprovalId)>,
    limit: usize,
) -> Result<Vec<Approval>> {
    let mut range = key(Space::ApprovalExecuting).range();
    if let Some((account, id)) = after {
        range.start = successor(&index_key(Space::ApprovalExecuting, account, id));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let row_of_open = |(row_key, _): &(Key, Value)| {
        let (account, id) = index_parts(Space::ApprovalExecuting, row_key)?;
        Ok(key_of(account, id))
    };
    let keys = rows.iter().map(row_of_open).collect::<Result<Vec<Key>>>()?;
    rows::get_existing(store, &keys).await
}

/// Deletes an account's approvals before an id, oldest first, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: ApprovalId,
    limit: usize,
) -> Result<usize> {
    let range = key(Space::Approval).account(account).build()..key_of(account, before);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (row_key, row) in &rows {
        let approval: Approval = codec::decode(row)?;
        batch.remove(row_key.clone(), row.clone());
        // A later approval may have the key.
        if let Some(by_key) = idempotency_key(&approval)
            && let Some(id) = store.get(&by_key).await?
            && id[..] == approval.id.to_bytes()
        {
            batch.remove(by_key, id);
        }
        let index = open_index(&approval.state).map(|space| index_key(space, account, approval.id));
        rows::move_entry(batch, index, None);
        batch.delete(content_key(account, approval.id));
        rows::move_entry(batch, end_key(&approval), None);
    }
    Ok(rows.len())
}

#[cfg(test)]
mod tests {
    use model::approval::HeldRequest;
    use model::client_policy::ApprovalKind;

    use model::approval::{Decision, ExecutionResult};
    use model::id::{ApiKeyId, UserId};

    use super::*;

    fn approval(number: u128) -> Approval {
        let created_at = Timestamp::UNIX_EPOCH;
        let account = AccountId::from_bytes([1; 16]);
        let request = HeldRequest {
            operation: "send_email".to_owned(),
            method: "POST".to_owned(),
            path: "/emails".to_owned(),
            query: String::new(),
            idempotency_key: Some(format!("once {number}")),
            headers: Vec::new(),
        };
        Approval {
            id: ApprovalId::new(created_at, number),
            account,
            client: CredentialId::ApiKey(ApiKeyId::from_bytes([2; 16])),
            kind: ApprovalKind::Send,
            moves_money: false,
            request_hash: request.hash("{}"),
            fingerprint: Some(request.hash("{}")),
            hash: request.hash("{}"),
            reserved_sends: None,
            request,
            created_at,
            state: ApprovalState::Pending,
        }
    }

    async fn usage_now(store: &Store) -> ApprovalUsage {
        let held = approval(1);
        usage(store, held.account, held.client, Timestamp::UNIX_EPOCH).await.unwrap()
    }

    /// Commits what `fill` adds.
    async fn commit(store: &Store, fill: impl FnOnce(&mut Batch)) -> bool {
        let mut batch = Batch::progress();
        fill(&mut batch);
        store.commit(batch).await.is_ok()
    }

    #[tokio::test]
    async fn it_is_found_by_its_key_and_moves_between_indexes() {
        let (store, held) = (Store::memory(), approval(1));
        let first = usage_now(&store).await;
        assert!(commit(&store, |batch| create(batch, &held, vec![1; 5], None, &first)).await);
        let account = held.account;
        let found = find_by_idempotency_key(&store, account, held.client, "send_email", "once 1").await.unwrap();
        assert_eq!(found.as_ref(), Some(&held));
        let used = usage_now(&store).await;
        assert_eq!((used.pending_since.len(), used.pending_bytes, used.held_today), (1, 5, 1));
        assert!(!commit(&store, |batch| create(batch, &approval(2), Vec::new(), None, &first)).await, "concurrent");
        assert!(
            !commit(&store, |batch| create(batch, &approval(1), Vec::new(), None, &used)).await,
            "the key was used"
        );
        assert_eq!(used.of_client, ClientApprovalUsage { pending: 1, pending_bytes: 5, held_today: 1 });
        let stranger = CredentialId::ApiKey(ApiKeyId::from_bytes([9; 16]));
        let others = usage(&store, account, stranger, Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!((others.pending_since.len(), others.of_client), (1, ClientApprovalUsage::default()));

        let since = Timestamp::UNIX_EPOCH;
        let approved = Decision { by: UserId::from_bytes([3; 16]), at: since };
        let state = ApprovalState::Executing { approved, lease_until: since };
        let executing = Approval { state, ..held.clone() };
        assert!(commit(&store, |batch| update(batch, &held, &executing, None)).await);
        assert!(!commit(&store, |batch| update(batch, &held, &executing, None)).await, "it was decided before");
        let used = usage_now(&store).await;
        assert_eq!((used.pending_since.len(), used.pending_bytes, used.held_today), (0, 0, 1));
        assert_eq!(list_executing(&store, None, 9).await.unwrap(), std::slice::from_ref(&executing));
        assert_eq!(list_executing(&store, Some((account, held.id)), 9).await.unwrap(), []);
        let late = since.checked_add(DECISION_TIME * 9).unwrap();
        assert_eq!(list_ended(&store, late, 9).await.unwrap(), [], "its content is needed");

        let mut batch = Batch::progress();
        let purged = purge_before(&store, &mut batch, account, ApprovalId::new(since, 2), 9).await.unwrap();
        store.commit(batch).await.unwrap();
        assert_eq!(purged, 1);
        assert_eq!(list_executing(&store, None, 9).await.unwrap(), []);
        assert_eq!(get_content(&store, account, held.id).await.unwrap(), None);
        assert_eq!(find_by_idempotency_key(&store, account, held.client, "send_email", "once 1").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_key_leads_to_the_later_approval_after_the_earlier_one_was_purged() {
        let (store, earlier) = (Store::memory(), approval(1));
        let mut later = Approval { id: ApprovalId::new(Timestamp::UNIX_EPOCH, 2), ..earlier.clone() };
        later.state = ApprovalState::Expired;
        for (held, replaced) in [(&earlier, None), (&later, Some(earlier.id))] {
            let used = usage_now(&store).await;
            assert!(commit(&store, |batch| create(batch, held, vec![1], replaced, &used)).await);
        }
        let mut batch = Batch::progress();
        assert_eq!(purge_before(&store, &mut batch, earlier.account, later.id, 9).await.unwrap(), 1);
        store.commit(batch).await.unwrap();
        let found = find_by_idempotency_key(&store, later.account, later.client, "send_email", "once 1").await.unwrap();
        assert_eq!(found, Some(later));
    }

    #[tokio::test]
    async fn the_content_ends_with_the_approval() {
        let store = Store::memory();
        let at = Timestamp::UNIX_EPOCH;
        let decision = Decision { by: UserId::from_bytes([3; 16]), at };
        let result = ExecutionResult { at, status: 200, error_code: None };
        let executed = ApprovalState::Executed { approved: decision, result };
        let cases = [
            (ApprovalState::Rejected { rejected: decision }, false),
            (ApprovalState::Expired, false),
            (executed, true),
        ];
        for (number, (state, is_kept)) in (1..).zip(cases) {
            let mut held = approval(number);
            held.request.path = "/suppressions/ada@example.net".to_owned();
            held.request.query = "q=ada".to_owned();
            held.request.headers = vec![("if-match".to_owned(), "1".to_owned())];
            let used = usage_now(&store).await;
            assert!(commit(&store, |batch| create(batch, &held, vec![7], None, &used)).await);
            let ended = list_ended(&store, held.expires_at(), 9).await.unwrap();
            assert!(ended.contains(&held), "{number}");
            let after = Approval { state, ..held.clone() };
            assert!(commit(&store, |batch| update(batch, &held, &after, is_kept.then(|| vec![8]))).await);
            let content = get_content(&store, held.account, held.id).await.unwrap();
            assert_eq!(content.as_deref(), is_kept.then_some([8].as_slice()), "{number}");
            let ended = list_ended(&store, held.expires_at(), 9).await.unwrap();
            assert_eq!(ended.contains(&after), is_kept, "{number}");
            if is_kept {
                assert!(commit(&store, |batch| delete_content(batch, &after)).await);
                assert_eq!(get_content(&store, held.account, held.id).await.unwrap(), None);
                assert_eq!(list_ended(&store, Timestamp::MAX, 9).await.unwrap(), []);
            }
            let kept = get(&store, held.account, held.id).await.unwrap().unwrap();
            let request = &kept.request;
            assert_eq!((request.path.as_str(), request.query.as_str()), ("/suppressions/[redacted]", ""));
            assert!(request.headers.is_empty() && request.idempotency_key == held.request.idempotency_key);
            assert_eq!((kept.state, kept.hash), (after.state, after.hash), "{number}");
        }
    }
}
