//! Keys of delivery.

use std::sync::Arc;

use dns::secrets::Vault;
use model::verp::VerpKey;

#[derive(Clone)]
pub struct DeliveryKeys {
    /// Key of the signed return paths.
    pub verp: VerpKey,
    /// Opens the bodies that are sealed in the store.
    pub vault: Arc<Vault>,
}
