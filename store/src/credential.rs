//! API keys and SMTP credentials: one row each under the account, and an index by the hash of each valid secret.
//!
//! ```text
//! ApiKey,       SmtpCredential       · account · id  ─►  the credential
//! ApiKeyByHash, SmtpCredentialByHash · hash          ─►  key of its row
//! ```
//!
//! No secret is stored. Both types implement [`Credential`] and share reads and writes.

use jiff::Timestamp;
use model::credential::{ApiKey, CredentialPolicy, CredentialSecrets, SecretHash, SmtpCredential};
use model::id::{AccountId, ApiKeyId, SmtpCredentialId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};

stored!(ApiKey);

stored!(SmtpCredential);

/// The displayed fields of a credential of either type, without its policy.
#[derive(Debug)]
pub struct CredentialSummary<'a> {
    pub id: String,
    /// Display name.
    pub name: &'a str,
    /// Part of the secret that may be displayed.
    pub hint: &'a str,
    pub enabled: bool,
    pub created_at: Timestamp,
}

/// The mutable fields of a credential.
#[derive(Debug)]
pub struct CredentialFieldsMut<'a> {
    /// Display name.
    pub name: &'a mut String,
    pub enabled: &'a mut bool,
    pub terms: &'a mut CredentialPolicy,
    /// Part of the secret that may be displayed.
    pub hint: &'a mut String,
}

/// An API key or an SMTP credential.
pub trait Credential: Clone + Send + Sync + 'static {
    /// Key space of the rows.
    const ROWS: Space;
    /// Key space of the index by secret hash.
    const BY_HASH: Space;

    /// Prefix of the ids.
    const ID_PREFIX: &'static str;

    /// Parses an id.
    fn id_of(text: &str) -> Option<[u8; 16]>;
    fn account(&self) -> AccountId;
    fn id_bytes(&self) -> [u8; 16];
    fn summary(&self) -> CredentialSummary<'_>;
    fn fields_mut(&mut self) -> CredentialFieldsMut<'_>;
    fn terms(&self) -> &CredentialPolicy;
    /// Replaces the secrets.
    #[must_use]
    fn with_secrets(self, secrets: CredentialSecrets) -> Self;
    /// Encodes the row.
    fn row(&self) -> bytes::Bytes;
    /// Decodes a row.
    ///
    /// # Errors
    /// The row is not a credential of this type.
    fn from_row(row: &[u8]) -> Result<Self>;
}

macro_rules! credential {
    ($noun:ty, $id:ty, $rows:ident, $by_hash:ident) => {
        impl Credential for $noun {
            const ROWS: Space = Space::$rows;
            const BY_HASH: Space = Space::$by_hash;
            const ID_PREFIX: &'static str = <$id>::PREFIX;

            fn id_of(text: &str) -> Option<[u8; 16]> {
                text.parse().ok().map(<$id>::to_bytes)
            }
            fn summary(&self) -> CredentialSummary<'_> {
                let Self { id, name, hint, enabled, created_at, .. } = self;
                CredentialSummary { id: id.to_string(), name, hint, enabled: *enabled, created_at: *created_at }
            }
            fn fields_mut(&mut self) -> CredentialFieldsMut<'_> {
                let Self { name, enabled, terms, hint, .. } = self;
                CredentialFieldsMut { name, enabled, terms, hint }
            }
            fn account(&self) -> AccountId {
                self.account
            }
            fn id_bytes(&self) -> [u8; 16] {
                self.id.to_bytes()
            }
            fn terms(&self) -> &CredentialPolicy {
                &self.terms
            }
            fn with_secrets(mut self, secrets: CredentialSecrets) -> Self {
                self.terms.secrets = secrets;
                self
            }
            fn row(&self) -> bytes::Bytes {
                codec::encode(self)
            }
            fn from_row(row: &[u8]) -> Result<Self> {
                codec::decode(row)
            }
        }
    };
}
credential!(ApiKey, ApiKeyId, ApiKey, ApiKeyByHash);
credential!(SmtpCredential, SmtpCredentialId, SmtpCredential, SmtpCredentialByHash);

pub(crate) fn key_of<C: Credential>(account: AccountId, id: [u8; 16]) -> Key {
    key(C::ROWS).account(account).id(id).build()
}

fn key_by_hash<C: Credential>(hash: &SecretHash) -> Key {
    key(C::BY_HASH).fixed(*hash.as_bytes()).build()
}

/// Writes a new credential with the hash of its secret. The commit conflicts if the hash is in use.
pub fn create<C: Credential>(batch: &mut Batch, credential: C, hash: &SecretHash) {
    let credential = credential.with_secrets(CredentialSecrets::single(*hash));
    let row_key = key_of::<C>(credential.account(), credential.id_bytes());
    let by_hash = key_by_hash::<C>(hash);
    batch.replace(by_hash, None, row_key.clone());
    batch.put(row_key, credential.row());
}

pub fn create_api_key(batch: &mut Batch, api_key: &ApiKey, hash: &SecretHash) {
    create(batch, api_key.clone(), hash);
}

pub fn create_smtp(batch: &mut Batch, credential: &SmtpCredential, hash: &SecretHash) {
    create(batch, credential.clone(), hash);
}

/// Updates a credential that was read as `before`, and the index of its secrets. The commit conflicts if the stored row
/// has changed since.
pub fn update<C: Credential>(batch: &mut Batch, before: &C, after: &C) {
    let row_key = key_of::<C>(before.account(), before.id_bytes());
    batch.check(row_key.clone(), Some(before.row()));
    let (old_secrets, new_secrets) = (&before.terms().secrets, &after.terms().secrets);
    for removed in old_secrets.all().filter(|hash| !new_secrets.all().any(|current| current == *hash)) {
        batch.delete(key_by_hash::<C>(removed));
    }
    for fresh in new_secrets.all().filter(|hash| !old_secrets.all().any(|known| known == *hash)) {
        batch.replace(key_by_hash::<C>(fresh), None, row_key.clone());
    }
    batch.put(row_key, after.row());
}

/// Deletes a credential with its index keys, its last use and its counted sends. The commit conflicts if the stored row has changed
/// since it was read.
pub fn delete<C: Credential>(batch: &mut Batch, credential: &C) {
    for hash in credential.terms().secrets.all() {
        batch.delete(key_by_hash::<C>(hash));
    }
    batch.delete(crate::last_used::key_of(credential.account(), credential.id_bytes()));
    crate::client_sends::forget(batch, credential.account(), credential.id_bytes());
    let row_key = key_of::<C>(credential.account(), credential.id_bytes());
    batch.remove(row_key, credential.row());
}

pub async fn get<C: Credential>(store: &Store, account: AccountId, id: [u8; 16]) -> Result<Option<C>> {
    store.get(&key_of::<C>(account, id)).await?.map(|row| C::from_row(&row)).transpose()
}

/// Lists an account's credentials before `before`, newest first, at most `limit`.
pub async fn list<C: Credential>(
    store: &Store,
    account: AccountId,
    before: Option<[u8; 16]>,
    limit: usize,
) -> Result<Vec<C>> {
    let range = key(C::ROWS).account(account).range_before(before);
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| C::from_row(row)).collect()
}

/// Finds the credential with this secret hash, even if it is disabled or expired.
pub async fn find_by_hash<C: Credential>(store: &Store, hash: &SecretHash) -> Result<Option<C>> {
    let Some(row_key) = store.get(&key_by_hash::<C>(hash)).await? else { return Ok(None) };
    store.get(&row_key).await?.map(|row| C::from_row(&row)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_first_version_are_read() {
        let row = br#"[1,{"id":"key_01ARZ3NDEKTSV4RRFFQ69G5FAV","account":"acct_01ARZ3NDEKTSV4RRFFQ69G5FAV","name":"first","scope":"full","hint":"rnl_...abcd","enabled":true,"created_at":"2026-01-01T00:00:00Z"}]"#;
        let api_key: ApiKey = codec::decode(row).unwrap();
        assert_eq!(api_key.terms, CredentialPolicy::default());
        assert_eq!(&codec::encode(&api_key)[..], &row[..]);
    }

    #[tokio::test]
    async fn a_rotated_secret_is_found_until_the_next_rotation() {
        let store = Store::memory();
        let hash = |n: u8| SecretHash::from_bytes(&[n]);
        let first: ApiKey = codec::decode(br#"[1,{"id":"key_01ARZ3NDEKTSV4RRFFQ69G5FAV","account":"acct_01ARZ3NDEKTSV4RRFFQ69G5FAV","name":"n","scope":"full","hint":"h","enabled":true,"created_at":"2026-01-01T00:00:00Z"}]"#).unwrap();
        let mut batch = Batch::progress();
        create(&mut batch, first, &hash(1));
        store.commit(batch).await.unwrap();
        for n in 2..=3 {
            let before: ApiKey = find_by_hash(&store, &hash(n - 1)).await.unwrap().unwrap();
            let secrets = before.terms.secrets.rotate(hash(n), Timestamp::MAX);
            let after = before.clone().with_secrets(secrets);
            let mut batch = Batch::progress();
            update(&mut batch, &before, &after);
            store.commit(batch).await.unwrap();
        }
        assert!(find_by_hash::<ApiKey>(&store, &hash(1)).await.unwrap().is_none());
        let found: ApiKey = find_by_hash(&store, &hash(2)).await.unwrap().unwrap();
        assert_eq!(find_by_hash::<ApiKey>(&store, &hash(3)).await.unwrap().as_ref(), Some(&found));
        let mut batch = Batch::progress();
        delete(&mut batch, &found);
        store.commit(batch).await.unwrap();
        for n in 1..=3 {
            assert!(find_by_hash::<ApiKey>(&store, &hash(n)).await.unwrap().is_none(), "{n}");
        }
    }
}
