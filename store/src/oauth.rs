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

use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

/// Deletes the rows of a space whose keys begin with a time before `before`, at most `limit`. Returns their number.
async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    space: Space,
    before: Timestamp,
    limit: usize,
) -> Result<usize> {
    rows::delete_range(store, batch, range_before(space, before), limit).await
}

fn range_before(space: Space, before: Timestamp) -> std::ops::Range<Key> {
    key(space).build()..key(space).time(before).build()
}
