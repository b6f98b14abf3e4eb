//! Registered clients: one row each, and an index by the time at which they are deleted.

use jiff::Timestamp;
use model::id::OAuthClientId;
use model::oauth::OAuthClient;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key};
use crate::rows;

stored!(OAuthClient);

fn key_of(id: OAuthClientId) -> Key {
    key(Space::OAuthClient).id(id.to_bytes()).build()
}

fn key_by_expiry(client: &OAuthClient) -> Key {
    key(Space::OAuthClientByExpiry).time(client.expires_at).id(client.id.to_bytes()).build()
}

pub fn create(batch: &mut Batch, client: &OAuthClient) {
    batch.put(key_of(client.id), codec::encode(client));
    batch.put(key_by_expiry(client), bytes::Bytes::new());
}

/// Updates a client that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &OAuthClient, after: &OAuthClient) {
    batch.check(key_of(before.id), Some(codec::encode(before)));
    batch.delete(key_by_expiry(before));
    create(batch, after);
}

pub async fn get(store: &Store, id: OAuthClientId) -> Result<Option<OAuthClient>> {
    rows::get(store, &key_of(id)).await
}

/// Deletes clients whose time has come, at most `limit`. Returns their number. The commit conflicts if one of them is
/// used meanwhile.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize> {
    let range = super::range_before(Space::OAuthClientByExpiry, now);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, entry) in rows {
        let mut reader = KeyReader::new(Space::OAuthClientByExpiry, &row_key)?;
        reader.time()?;
        let id = OAuthClientId::from_bytes(reader.id()?);
        batch.remove(row_key, entry);
        batch.delete(key_of(id));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn an_unused_client_is_deleted_and_a_used_one_stays() {
        let (store, start) = (Store::memory(), Timestamp::UNIX_EPOCH);
        let at = |hours: u64| start + Duration::from_secs(hours * 3600);
        let client = |n: u8| OAuthClient {
            id: OAuthClientId::from_bytes([n; 16]),
            name: "n".to_owned(),
            redirect_uris: vec!["https://a.example/cb".to_owned()],
            uses_device_codes: false,
            created_at: start,
            expires_at: at(24),
        };
        let (unused, used) = (client(1), client(2));
        let extended = used.extended(at(1)).unwrap();
        assert_eq!(extended.extended(at(2)), None);
        let mut first = Batch::progress();
        create(&mut first, &unused);
        create(&mut first, &used);
        store.commit(first).await.unwrap();
        let mut second = Batch::progress();
        update(&mut second, &used, &extended);
        store.commit(second).await.unwrap();
        for (hours, found) in [(24, 0), (25, 1), (26, 0)] {
            let mut batch = Batch::progress();
            assert_eq!(purge_expired(&store, &mut batch, at(hours), 10).await.unwrap(), found, "{hours}");
            store.commit(batch).await.unwrap();
        }
        assert_eq!(get(&store, unused.id).await.unwrap(), None);
        assert_eq!(get(&store, used.id).await.unwrap(), Some(extended));
    }
}
