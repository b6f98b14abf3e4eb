//! Webhook endpoints: one row each under the account, and a version row per account that every change rewrites.
//!
//! The version serves to invalidate caches with one read, and makes concurrent additions conflict, so that an account
//! cannot exceed its maximum.

use model::id::{AccountId, WebhookId};
use model::webhook::{ENDPOINTS_MAX, Webhook};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::rows;

stored!(Webhook);

fn key_of(account: AccountId, id: WebhookId) -> Key {
    key(Space::Webhook).account(account).id(id.to_bytes()).build()
}

fn set_key(account: AccountId) -> Key {
    key(Space::WebhookSet).account(account).build()
}

/// Version of an account's set of endpoints; `None` if the account never had one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookSetVersion(Option<Value>);

impl WebhookSetVersion {
    /// Returns whether the account never had an endpoint.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Rewrites the version row. The commit conflicts if the endpoints have changed since this version.
    fn bump(&self, batch: &mut Batch, account: AccountId) {
        rows::bump_version(batch, set_key(account), self.0.as_ref());
    }
}

/// Reads the versions of several accounts, in order.
pub async fn list_versions(store: &Store, accounts: &[AccountId]) -> Result<Vec<WebhookSetVersion>> {
    let keys: Vec<Key> = accounts.iter().map(|account| set_key(*account)).collect();
    Ok(store.get_many(&keys).await?.into_iter().map(WebhookSetVersion).collect())
}

/// Writes a new endpoint. The commit conflicts if the account's endpoints have changed since `version`.
pub fn create(batch: &mut Batch, webhook: &Webhook, version: &WebhookSetVersion) {
    version.bump(batch, webhook.account);
    batch.put(key_of(webhook.account, webhook.id), codec::encode(webhook));
}

/// Updates an endpoint that was read as `before`. The commit conflicts if the account's endpoints have changed since
/// `version`.
pub fn update(batch: &mut Batch, before: &Webhook, after: &Webhook, version: &WebhookSetVersion) {
    let at = key_of(before.account, before.id);
    version.bump(batch, before.account);
    rows::update(batch, at, before, after);
}

/// Deletes an endpoint. Its pending deliveries are dropped when they are due and the endpoint is missing.
pub fn delete(batch: &mut Batch, webhook: &Webhook, version: &WebhookSetVersion) {
    let at = key_of(webhook.account, webhook.id);
    version.bump(batch, webhook.account);
    rows::delete(batch, at, webhook);
}

/// Reads an endpoint and the current version.
pub async fn get(store: &Store, account: AccountId, id: WebhookId) -> Result<Option<(Webhook, WebhookSetVersion)>> {
    let mut rows = store.get_many(&[key_of(account, id), set_key(account)]).await?.into_iter();
    let Some(row) = rows.next().flatten() else { return Ok(None) };
    Ok(Some((codec::decode(&row)?, WebhookSetVersion(rows.next().flatten()))))
}

/// Lists all endpoints of an account, oldest first.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<Webhook>> {
    let range = key(Space::Webhook).account(account).range();
    // Concurrent creations can exceed the maximum by a few, so read beyond it.
    rows::scan(store, range, ScanOrder::Ascending, 2 * ENDPOINTS_MAX).await
}
