//! Device authorizations (RFC 8628): one row each, and a key by user code.

use jiff::Timestamp;
use model::client_policy::ClientPolicy;
use model::expiring_secret::ExpiringSecret;
use model::oauth::{DeviceAuthorization, DeviceDecision};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(DeviceAuthorization);

fn key_of(secret: &ExpiringSecret) -> Key {
    key(Space::DeviceAuthorization).time(secret.expires_at).fixed(*secret.hash().as_bytes()).build()
}

fn key_by_user_code(user_code: &str) -> Key {
    key(Space::DeviceUserCode).text(user_code).build()
}

/// Writes a new device authorization. The commit conflicts if the user code is in use.
pub fn create(batch: &mut Batch, secret: &ExpiringSecret, device: &DeviceAuthorization) {
    let by_user_code = key_by_user_code(&device.user_code);
    batch.replace(by_user_code, None, key_of(secret));
    batch.put(key_of(secret), codec::encode(device));
}

/// Reads the device authorization of a device code, even if it has expired.
pub async fn get(store: &Store, secret: &ExpiringSecret) -> Result<Option<DeviceAuthorization>> {
    rows::get(store, &key_of(secret)).await
}

/// Finds the device authorization of a user code, even if it has expired.
pub async fn find_by_user_code(store: &Store, user_code: &str) -> Result<Option<DeviceAuthorization>> {
    rows::get_by_index(store, &key_by_user_code(user_code)).await
}

/// Records the user's decision, with the rules for an approved client. The commit conflicts if the stored row has changed
/// since it was read.
pub async fn decide(
    store: &Store,
    batch: &mut Batch,
    before: &DeviceAuthorization,
    decision: DeviceDecision,
    policy: Option<ClientPolicy>,
) -> Result<()> {
    let Some(row_key) = store.get(&key_by_user_code(&before.user_code)).await? else { return Ok(()) };
    batch.replace(
        row_key,
        Some(codec::encode(before)),
        codec::encode(&DeviceAuthorization { decision, policy, ..before.clone() }),
    );
    Ok(())
}

/// Deletes a device authorization whose decision was collected. Of two concurrent uses, one conflicts.
pub fn consume(batch: &mut Batch, secret: &ExpiringSecret, device: &DeviceAuthorization) {
    rows::delete(batch, key_of(secret), device);
    batch.delete(key_by_user_code(&device.user_code));
}

/// Deletes expired device authorizations, at most `limit`. Returns their number.
pub async fn purge_expired(store: &Store, batch: &mut Batch, now: Timestamp, limit: usize) -> Result<usize> {
    let range = super::range_before(Space::DeviceAuthorization, now);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, row) in rows {
        let device: DeviceAuthorization = codec::decode(&row)?;
        batch.delete(key_by_user_code(&device.user_code));
        batch.delete(row_key);
    }
    Ok(count)
}
