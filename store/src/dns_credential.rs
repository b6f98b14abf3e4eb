//! Sealed credentials for DNS providers: one row for each account and provider.

use jiff::Timestamp;
use model::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key};
use crate::rows;

/// Credentials as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedDnsCredential {
    /// Sealed for the account and provider, in base64.
    pub sealed: String,
    pub saved_at: Timestamp,
}
stored!(SealedDnsCredential);

fn key_of(account: AccountId, provider: &str) -> Key {
    key(Space::DnsCredential).account(account).text(provider).build()
}

/// Saves credentials and replaces existing ones.
pub fn put(batch: &mut Batch, account: AccountId, provider: &str, saved: &SealedDnsCredential) {
    batch.put(key_of(account, provider), codec::encode(saved));
}

pub fn delete(batch: &mut Batch, account: AccountId, provider: &str) {
    batch.delete(key_of(account, provider));
}

/// Reads an account's credentials for a provider.
pub async fn get(store: &Store, account: AccountId, provider: &str) -> Result<Option<SealedDnsCredential>> {
    rows::get(store, &key_of(account, provider)).await
}

/// Maximum number of providers read; a few dozen exist.
const PROVIDERS_MAX: usize = 100;

/// Lists the providers for which an account has credentials, with the time they were saved.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<(String, Timestamp)>> {
    let range = key(Space::DnsCredential).account(account).range();
    let rows = store.scan(range, ScanOrder::Ascending, PROVIDERS_MAX).await?;
    rows.iter()
        .map(|(at, row)| {
            let mut parts = KeyReader::new(Space::DnsCredential, at)?;
            let provider = parts.account().and_then(|_| parts.text())?;
            Ok((provider, codec::decode::<SealedDnsCredential>(row)?.saved_at))
        })
        .collect()
}
