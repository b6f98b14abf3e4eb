//! Cache of automation definitions. A version that runs follow is immutable, so an entry never expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mail::automation::AutomationDefinition;
use mail::id::{AccountId, AutomationId};
use store::engine::{ReadError, Store};

/// Size limit of the cache, in bytes of JSON; the cache is cleared when it would be exceeded.
const CACHE_BYTES_MAX: usize = 32 << 20;

type CachedDefinitions = (HashMap<(AutomationId, u32), Arc<AutomationDefinition>>, usize);

/// Cached definitions and their total size.
#[derive(Default)]
pub(super) struct DefinitionCache(Mutex<CachedDefinitions>);

impl DefinitionCache {
    /// Definition of a version, from the cache or the store; `None` if the version was deleted.
    pub(super) async fn get(
        &self,
        store: &Store,
        account: AccountId,
        automation: AutomationId,
        version: u32,
    ) -> Result<Option<Arc<AutomationDefinition>>, ReadError> {
        let key = (automation, version);
        if let Some(definition) = self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(&key) {
            return Ok(Some(Arc::clone(definition)));
        }
        let found = store::automation::get_version(store, account, automation, version).await?;
        let Some(found) = found else { return Ok(None) };
        let definition = Arc::new(found.definition);
        let bytes = definition.to_json().to_string().len();
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (definitions, kept_bytes) = &mut *cache;
        if *kept_bytes + bytes > CACHE_BYTES_MAX {
            definitions.clear();
            *kept_bytes = 0;
        }
        if definitions.insert(key, Arc::clone(&definition)).is_none() {
            *kept_bytes += bytes;
        }
        Ok(Some(definition))
    }
}
