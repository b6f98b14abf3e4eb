//! Definitions that are followed: what a version says, read once. A version that runs follow never changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mail::automation::AutomationDefinition;
use mail::id::{AccountId, AutomationId};
use store::engine::{ReadError, Store};

/// Definitions kept, in bytes of their JSON; beyond it all are read anew.
const CACHE_BYTES_MAX: usize = 32 << 20;

type CachedDefinitions = (HashMap<(AutomationId, u32), Arc<AutomationDefinition>>, usize);

/// Definitions that were read.
#[derive(Default)]
pub(super) struct DefinitionCache(Mutex<CachedDefinitions>);

impl DefinitionCache {
    /// What a version says; none when it is gone.
    pub(super) async fn get(
        &self,
        store: &Store,
        account: AccountId,
        version: (AutomationId, u32),
    ) -> Result<Option<Arc<AutomationDefinition>>, ReadError> {
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(&version) {
            return Ok(Some(Arc::clone(kept)));
        }
        let found = store::automation::get_version(store, account, version.0, version.1).await?;
        let Some(found) = found else { return Ok(None) };
        let definition = Arc::new(found.definition);
        let bytes = definition.to_json().to_string().len();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (definitions, kept_bytes) = &mut *kept;
        if *kept_bytes + bytes > CACHE_BYTES_MAX {
            definitions.clear();
            *kept_bytes = 0;
        }
        if definitions.insert(version, Arc::clone(&definition)).is_none() {
            *kept_bytes += bytes;
        }
        Ok(Some(definition))
    }
}
