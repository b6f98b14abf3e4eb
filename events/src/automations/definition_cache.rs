//! Cache of automation definitions. A version that runs follow is immutable, so an entry never expires.

use std::sync::Arc;

use model::automation::AutomationDefinition;
use model::id::{AccountId, AutomationId};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use store::engine::{ReadError, Store};

/// Size limit of the cache, in bytes of JSON.
const CACHE_BYTES_MAX: u64 = 32 << 20;
/// Expected number of definitions; it sizes the table.
const DEFINITIONS_EXPECTED: usize = 1_000;

/// A definition and its size in bytes of JSON.
#[derive(Clone)]
struct CachedDefinition {
    definition: Arc<AutomationDefinition>,
    bytes: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<(AutomationId, u32), CachedDefinition> for ByBytes {
    fn weight(&self, _: &(AutomationId, u32), cached: &CachedDefinition) -> u64 {
        cached.bytes.max(1)
    }
}

pub(super) struct DefinitionCache(Cache<(AutomationId, u32), CachedDefinition, ByBytes>);

impl Default for DefinitionCache {
    fn default() -> Self {
        Self(Cache::with_weighter(DEFINITIONS_EXPECTED, CACHE_BYTES_MAX, ByBytes))
    }
}

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
        if let Some(cached) = self.0.get(&key) {
            return Ok(Some(cached.definition));
        }
        let found = store::automation::get_version(store, account, automation, version).await?;
        let Some(found) = found else { return Ok(None) };
        let definition = Arc::new(found.definition);
        let bytes = definition.to_json().to_string().len() as u64;
        self.0.insert(key, CachedDefinition { definition: Arc::clone(&definition), bytes });
        Ok(Some(definition))
    }
}
