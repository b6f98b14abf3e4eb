//! Approvals: requests of clients that wait for a person's decision, and decided ones.
//!
//! ```text
//! Approval          · account · id                          ─►  the approval
//! ApprovalPending   · account · id                          ─►  nothing      while it is pending
//! ApprovalExecuting · account · id                          ─►  nothing      from the decision to the end
//! ApprovalByKey     · account · hash of client, operation
//!                     and idempotency key                   ─►  id of the approval
//! ```
//!
//! Every change compares the row with what was read, so that a request is decided once and executed by one node.

use jiff::Timestamp;
use mail::approval::{Approval, ApprovalState, HeldRequest};
use mail::client_policy::ApprovalKind;
use mail::credential::CredentialId;
use mail::id::{AccountId, ApprovalId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyDecodeError, KeyReader, Space, key, successor};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Approval")]
struct ApprovalRow {
    id: ApprovalId,
    account: AccountId,
    client: CredentialId,
    kind: ApprovalKind,
    request: HeldRequest,
    created_at: Timestamp,
    #[serde(flatten)]
    state: ApprovalState,
}
stored!(Approval as ApprovalRow);

fn key_of(account: AccountId, id: ApprovalId) -> Key {
    index_key(Space::Approval, account, id)
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

/// The index of open approvals that a state belongs to.
fn open_index(state: &ApprovalState) -> Option<Space> {
    match state {
        ApprovalState::Pending => Some(Space::ApprovalPending),
        ApprovalState::Approved { .. } | ApprovalState::Executing { .. } => Some(Space::ApprovalExecuting),
        ApprovalState::Rejected { .. } | ApprovalState::Executed { .. } | ApprovalState::Interrupted { .. } => None,
    }
}

/// Writes a new approval. The commit conflicts if the client used its idempotency key before.
pub fn create(batch: &mut Batch, approval: &Approval) {
    if let Some(by_key) = idempotency_key(approval) {
        batch.check(by_key.clone(), None);
        batch.put(by_key, approval.id.to_bytes().to_vec());
    }
    put_row(batch, approval);
}

fn put_row(batch: &mut Batch, approval: &Approval) {
    batch.put(key_of(approval.account, approval.id), codec::encode(approval));
    if let Some(space) = open_index(&approval.state) {
        batch.put(index_key(space, approval.account, approval.id), Vec::new());
    }
}

/// Updates an approval that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Approval, after: &Approval) {
    let (account, id) = (before.account, before.id);
    batch.check(key_of(account, id), Some(codec::encode(before)));
    if let Some(space) = open_index(&before.state).filter(|space| Some(*space) != open_index(&after.state)) {
        batch.delete(index_key(space, account, id));
    }
    put_row(batch, after);
}

/// Reads an approval of an account.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: ApprovalId) -> Result<Option<Approval>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| codec::decode(&row)).transpose()
}

/// Reads the approval that the client's idempotency key led to.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_idempotency_key(
    store: &Store,
    account: AccountId,
    client: CredentialId,
    operation: &str,
    used: &str,
) -> Result<Option<Approval>, ReadError> {
    let Some(id) = store.get(&key_by_idempotency_key(account, client, operation, used)).await? else {
        return Ok(None);
    };
    let id: [u8; 16] = id.as_ref().try_into().map_err(|_| codec::damaged("an invalid id of an approval"))?;
    get(store, account, ApprovalId::from_bytes(id)).await
}

/// Lists an account's approvals before `before`, newest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<ApprovalId>,
    limit: usize,
) -> Result<Vec<Approval>, ReadError> {
    let mut range = key(Space::Approval).account(account).range();
    if let Some(before) = before {
        range.end = key_of(account, before);
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| codec::decode(row)).collect()
}

/// Counts the account's approvals that are pending since `since`, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn count_pending(
    store: &Store,
    account: AccountId,
    since: Timestamp,
    limit: usize,
) -> Result<usize, ReadError> {
    let mut range = key(Space::ApprovalPending).account(account).range();
    range.start = index_key(Space::ApprovalPending, account, ApprovalId::new(since, 0));
    Ok(store.scan(range, ScanOrder::Ascending, limit).await?.len())
}

/// Key of the row to which a key of the index of executions belongs.
fn row_of_open(row_key: &[u8]) -> Result<Key, KeyDecodeError> {
    let mut parts = KeyReader::new(Space::ApprovalExecuting, row_key)?;
    let account = parts.account()?;
    Ok(key_of(account, ApprovalId::from_bytes(parts.id()?)))
}

/// Lists approvals of all accounts that are approved or being executed, after `after`, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_executing(
    store: &Store,
    after: Option<(AccountId, ApprovalId)>,
    limit: usize,
) -> Result<Vec<Approval>, ReadError> {
    let mut range = key(Space::ApprovalExecuting).range();
    if let Some((account, id)) = after {
        range.start = successor(&index_key(Space::ApprovalExecuting, account, id));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let keys = rows.iter().map(|(row_key, _)| row_of_open(row_key).map_err(codec::damaged));
    let keys = keys.collect::<Result<Vec<Key>, ReadError>>()?;
    let found = store.get_many(&keys).await?;
    found.iter().flatten().map(|row| codec::decode(row)).collect()
}

/// Deletes an account's approvals before an id, oldest first, at most `limit`. Returns their number.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: ApprovalId,
    limit: usize,
) -> Result<usize, ReadError> {
    let range = key(Space::Approval).account(account).build()..key_of(account, before);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (row_key, row) in &rows {
        let approval: Approval = codec::decode(row)?;
        batch.check(row_key.clone(), Some(row.clone()));
        batch.delete(row_key.clone());
        if let Some(by_key) = idempotency_key(&approval) {
            batch.delete(by_key);
        }
        if let Some(space) = open_index(&approval.state) {
            batch.delete(index_key(space, account, approval.id));
        }
    }
    Ok(rows.len())
}

#[cfg(test)]
mod tests {
    use mail::approval::Decision;
    use mail::id::{ApiKeyId, UserId};

    use super::*;

    fn approval(number: u128) -> Approval {
        let created_at = Timestamp::UNIX_EPOCH;
        let account = AccountId::from_bytes([1; 16]);
        Approval {
            id: ApprovalId::new(created_at, number),
            account,
            client: CredentialId::ApiKey(ApiKeyId::from_bytes([2; 16])),
            kind: ApprovalKind::Send,
            request: HeldRequest {
                operation: "send_email".to_owned(),
                method: "POST".to_owned(),
                path: "/emails".to_owned(),
                query: String::new(),
                idempotency_key: Some("once".to_owned()),
                if_match: None,
                body: "{}".to_owned(),
            },
            created_at,
            state: ApprovalState::Pending,
        }
    }

    #[tokio::test]
    async fn it_is_found_by_its_key_and_moves_between_indexes() {
        let (store, held) = (Store::memory(), approval(1));
        let mut batch = Batch::progress();
        create(&mut batch, &held);
        store.commit(batch).await.unwrap();
        let account = held.account;
        let found = find_by_idempotency_key(&store, account, held.client, "send_email", "once").await.unwrap();
        assert_eq!(found.as_ref(), Some(&held));
        let since = Timestamp::UNIX_EPOCH;
        assert_eq!(count_pending(&store, account, since, 9).await.unwrap(), 1);

        let mut again = Batch::progress();
        create(&mut again, &approval(2));
        assert!(store.commit(again).await.is_err(), "the idempotency key was used before");

        let approved = Decision { by: UserId::from_bytes([3; 16]), at: since };
        let state = ApprovalState::Executing { approved, lease_until: since };
        let executing = Approval { state, ..held.clone() };
        let mut batch = Batch::progress();
        update(&mut batch, &held, &executing);
        store.commit(batch).await.unwrap();
        let mut twice = Batch::progress();
        update(&mut twice, &held, &executing);
        assert!(store.commit(twice).await.is_err(), "it was decided before");
        assert_eq!(count_pending(&store, account, since, 9).await.unwrap(), 0);
        assert_eq!(list_executing(&store, None, 9).await.unwrap(), std::slice::from_ref(&executing));
        assert_eq!(list_executing(&store, Some((account, held.id)), 9).await.unwrap(), []);

        let mut batch = Batch::progress();
        let purged = purge_before(&store, &mut batch, account, ApprovalId::new(since, 2), 9).await.unwrap();
        store.commit(batch).await.unwrap();
        assert_eq!(purged, 1);
        assert_eq!(list_executing(&store, None, 9).await.unwrap(), []);
        assert_eq!(find_by_idempotency_key(&store, account, held.client, "send_email", "once").await.unwrap(), None);
    }
}
