//! Credentials for DNS providers, sealed: a row for each account and provider.

use jiff::Timestamp;
use mail::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

/// Credentials as they lie in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedDnsCredential {
    /// Sealed for the account and the provider; base 64.
    pub sealed: String,
    /// When they were saved.
    pub saved_at: Timestamp,
}
stored!(SealedDnsCredential as SealedDnsCredential);

fn key_of(account: AccountId, provider: &str) -> Key {
    key(Space::DnsCredential).account(account).text(provider).build()
}

/// Saves credentials, in place of those that there are.
pub fn put(batch: &mut Batch, account: AccountId, provider: &str, saved: &SealedDnsCredential) {
    batch.put(key_of(account, provider), row::encode(saved));
}

/// Forgets credentials.
pub fn delete(batch: &mut Batch, account: AccountId, provider: &str) {
    batch.delete(key_of(account, provider));
}

/// The credentials of an account for a provider.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, provider: &str) -> Result<Option<SealedDnsCredential>, ReadError> {
    store.get(&key_of(account, provider)).await?.map(|row| row::decode(&row)).transpose()
}

/// Providers read at once; there are some dozens.
const PROVIDERS_MAX: usize = 100;

/// The providers that an account has saved credentials for, and when.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<(String, Timestamp)>, ReadError> {
    let range = key(Space::DnsCredential).account(account).range();
    let rows = store.scan(range, ScanOrder::Ascending, PROVIDERS_MAX).await?;
    rows.iter()
        .map(|(at, row)| {
            let mut parts = KeyReader::new(Space::DnsCredential, at).map_err(row::damaged)?;
            let provider = parts.account().and_then(|_| parts.text()).map_err(row::damaged)?;
            Ok((provider, row::decode::<SealedDnsCredential>(row)?.saved_at))
        })
        .collect()
}
