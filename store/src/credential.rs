//! API keys and SMTP credentials: a row each, found by the hash of the secret.
//!
//! The row lies under the account, for lists; under the hash lies where it is. No secret is stored.

use jiff::Timestamp;
use mail::credential::{ApiKey, Scope, SecretHash, SmtpCredential};
use mail::id::{AccountId, ApiKeyId, SmtpCredentialId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "ApiKey")]
struct ApiKeyRow {
    id: ApiKeyId,
    account: AccountId,
    name: String,
    scope: Scope,
    hint: String,
    enabled: bool,
    created_at: Timestamp,
}
stored!(ApiKey as ApiKeyRow);

#[derive(Serialize, Deserialize)]
#[serde(remote = "SmtpCredential")]
struct SmtpCredentialRow {
    id: SmtpCredentialId,
    account: AccountId,
    name: String,
    hint: String,
    enabled: bool,
    created_at: Timestamp,
}
stored!(SmtpCredential as SmtpCredentialRow);

/// Writes a new API key.
pub fn create_api_key(batch: &mut Batch, api_key: &ApiKey, hash: &SecretHash) {
    let row_key = key(Space::ApiKey).account(api_key.account).id(api_key.id.to_bytes()).build();
    let by_hash = key(Space::ApiKeyByHash).fixed(*hash.as_bytes()).build();
    batch.check(by_hash.clone(), None);
    batch.put(by_hash, row_key.clone());
    batch.put(row_key, row::encode(api_key));
}

/// Writes a new SMTP credential.
pub fn create_smtp(batch: &mut Batch, credential: &SmtpCredential, hash: &SecretHash) {
    let row_key = key(Space::SmtpCredential).account(credential.account).id(credential.id.to_bytes()).build();
    let by_hash = key(Space::SmtpCredentialByHash).fixed(*hash.as_bytes()).build();
    batch.check(by_hash.clone(), None);
    batch.put(by_hash, row_key.clone());
    batch.put(row_key, row::encode(credential));
}

/// The API key with this secret, enabled or not.
///
/// # Errors
/// The store cannot be read.
pub async fn api_key_by_hash(store: &Store, hash: &SecretHash) -> Result<Option<ApiKey>, ReadError> {
    let by_hash = key(Space::ApiKeyByHash).fixed(*hash.as_bytes()).build();
    follow(store, by_hash).await?.map(|row| row::decode(&row)).transpose()
}

/// The SMTP credential with this password, enabled or not.
///
/// # Errors
/// The store cannot be read.
pub async fn smtp_by_hash(store: &Store, hash: &SecretHash) -> Result<Option<SmtpCredential>, ReadError> {
    let by_hash = key(Space::SmtpCredentialByHash).fixed(*hash.as_bytes()).build();
    follow(store, by_hash).await?.map(|row| row::decode(&row)).transpose()
}

async fn follow(store: &Store, by_hash: Key) -> Result<Option<bytes::Bytes>, ReadError> {
    match store.get(&by_hash).await? {
        Some(row_key) => store.get(&row_key).await,
        None => Ok(None),
    }
}
