//! OAuth: registered clients, grants, tokens, authorization codes and device authorizations.
//!
//! ```text
//! OAuthClient           · id                      ─►  the client
//! OAuthClientByExpiry   · time · id               ─►  empty
//! OAuthGrant            · account · id            ─►  the grant
//! OAuthToken            · expiry · hash           ─►  the token's grant and scopes
//! AuthorizationCode     · expiry · hash           ─►  the consent
//! DeviceAuthorization   · expiry · hash           ─►  the request and the decision
//! DeviceUserCode        · user code               ─►  key of the device authorization
//! ```
//!
//! No secret is stored. A secret contains its expiry, so expired rows are deleted in order.

pub mod client;
pub mod code;
pub mod device;
pub mod grant;
pub mod token;

use jiff::Timestamp;

use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};

/// Deletes the rows of a space whose keys begin with a time before `before`, at most `limit`. Returns their number.
async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    space: Space,
    before: Timestamp,
    limit: usize,
) -> Result<usize> {
    let rows = store.scan(range_before(space, before), ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, _) in rows {
        batch.delete(row_key);
    }
    Ok(count)
}

fn range_before(space: Space, before: Timestamp) -> std::ops::Range<Key> {
    key(space).build()..key(space).time(before).build()
}
