//! Webhook endpoints: one row each under the account, and a version row per account that every change rewrites.
//!
//! The version serves to invalidate caches with one read, and makes concurrent additions conflict, so that an account
//! cannot exceed its maximum.

use jiff::Timestamp;
use message::address::DomainName;
use message::address_pattern::AddressPattern;
use model::domain::SealedSecret;
use model::id::{AccountId, DomainId, WebhookId};
use model::webhook::{DisabledReason, ENDPOINTS_MAX, FormerSecret, RetryPolicy, Webhook};
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};

#[derive(Serialize, Deserialize)]
#[serde(remote = "FormerSecret")]
struct FormerSecretRow {
    sealed: SealedSecret,
    until: Timestamp,
}

/// Serde for former secrets.
mod former {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, FormerSecret, FormerSecretRow, Serialize};

    #[derive(Serialize, Deserialize)]
    struct OwnedFormerSecret(#[serde(with = "FormerSecretRow")] FormerSecret);

    #[derive(Serialize)]
    struct FormerSecretRef<'a>(#[serde(with = "FormerSecretRow")] &'a FormerSecret);

    pub(super) fn serialize<S: Serializer>(former: &[FormerSecret], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(former.iter().map(FormerSecretRef))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<FormerSecret>, D::Error> {
        Ok(Vec::<OwnedFormerSecret>::deserialize(input)?.into_iter().map(|row| row.0).collect())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Webhook")]
struct WebhookRow {
    id: WebhookId,
    account: AccountId,
    url: String,
    events: Vec<String>,
    enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    domains: Vec<(DomainId, DomainName)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<AddressPattern>,
    #[serde(default, skip_serializing_if = "RetryPolicy::is_default")]
    retry: RetryPolicy,
    secret: SealedSecret,
    #[serde(default, with = "former", skip_serializing_if = "Vec::is_empty")]
    former_secrets: Vec<FormerSecret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<DisabledReason>,
    created_at: Timestamp,
    updated_at: Timestamp,
}
stored!(Webhook as WebhookRow);

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
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Rewrites the version row. The commit conflicts if the endpoints have changed since this version.
    fn bump(&self, batch: &mut Batch, account: AccountId) {
        let number: u64 = self.0.as_deref().and_then(|row| std::str::from_utf8(row).ok()?.parse().ok()).unwrap_or(0);
        batch.check(set_key(account), self.0.clone());
        batch.put(set_key(account), number.wrapping_add(1).to_string().into_bytes());
    }
}

/// Reads the versions of several accounts, in order.
///
/// # Errors
/// The store cannot be read.
pub async fn list_versions(store: &Store, accounts: &[AccountId]) -> Result<Vec<WebhookSetVersion>, ReadError> {
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
    batch.check(at.clone(), Some(codec::encode(before)));
    batch.put(at, codec::encode(after));
}

/// Deletes an endpoint. Its pending deliveries are dropped when they are due and the endpoint is missing.
pub fn delete(batch: &mut Batch, webhook: &Webhook, version: &WebhookSetVersion) {
    let at = key_of(webhook.account, webhook.id);
    version.bump(batch, webhook.account);
    batch.check(at.clone(), Some(codec::encode(webhook)));
    batch.delete(at);
}

/// Reads an endpoint and the current version.
///
/// # Errors
/// The store cannot be read.
pub async fn get(
    store: &Store,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<(Webhook, WebhookSetVersion)>, ReadError> {
    let mut rows = store.get_many(&[key_of(account, id), set_key(account)]).await?.into_iter();
    let Some(row) = rows.next().flatten() else { return Ok(None) };
    Ok(Some((codec::decode(&row)?, WebhookSetVersion(rows.next().flatten()))))
}

/// Lists all endpoints of an account, oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<Webhook>, ReadError> {
    let range = key(Space::Webhook).account(account).range();
    // Concurrent creations can exceed the maximum by a few, so read beyond it.
    let rows = store.scan(range, ScanOrder::Ascending, 2 * ENDPOINTS_MAX).await?;
    rows.iter().map(|(_, row)| codec::decode(row)).collect()
}
