//! A bounded LRU cache of signers by domain and keys. Parsing a key takes about as long as signing with it. After a key
//! rotation, a domain's signer has another key in the cache, and the previous one is evicted in time.
//!
//! A full cache evicts the least recently used signer. Concurrent requests for a missing signer share one load. The
//! lock is not held during a load.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::id::DomainId;
use tokio::sync::OnceCell;

use crate::sign::Signer;

/// Default size of the cache. A signer with both keys takes some 10 KB.
pub const SIGNERS_MAX: usize = 10_000;

/// A domain and the keys that sign for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignerKey {
    pub domain: DomainId,
    pub selector: String,
    /// The Ed25519 key signs too.
    pub ed25519: bool,
}

type SignerCell = Arc<OnceCell<Arc<Signer>>>;

#[derive(Default)]
struct LruSigners {
    by_id: HashMap<SignerKey, (u64, SignerCell)>,
    by_use: BTreeMap<u64, SignerKey>,
    uses: u64,
}

pub struct SignerCache {
    signers: Mutex<LruSigners>,
    signers_max: usize,
}

impl std::fmt::Debug for SignerCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signers").field("signers_max", &self.signers_max).finish_non_exhaustive()
    }
}

impl Default for SignerCache {
    fn default() -> Self {
        Self::new(SIGNERS_MAX)
    }
}

impl SignerCache {
    /// Creates a cache of at most `signers_max` signers (at least one).
    pub fn new(signers_max: usize) -> Self {
        Self { signers: Mutex::default(), signers_max: signers_max.max(1) }
    }

    /// Returns a cached signer, or loads and caches it. A failed load is not cached.
    ///
    /// # Errors
    /// The error of `load`.
    pub async fn get_or_load<E, F, Load>(&self, id: SignerKey, load: F) -> Result<Arc<Signer>, E>
    where
        F: FnOnce() -> Load,
        Load: Future<Output = Result<Signer, E>>,
    {
        let cell = self.cell(&id);
        let loaded = cell.get_or_try_init(async || load().await.map(Arc::new)).await;
        match loaded {
            Ok(signer) => Ok(Arc::clone(signer)),
            Err(error) => {
                self.evict_empty_cell(&id, &cell);
                Err(error)
            }
        }
    }

    pub fn len(&self) -> usize {
        self.signers.lock().by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, id: &SignerKey) -> SignerCell {
        let mut signers = self.signers.lock();
        signers.uses += 1;
        let use_number = signers.uses;
        let (before, cell) = match signers.by_id.get_mut(id) {
            Some((used, cell)) => (Some(std::mem::replace(used, use_number)), Arc::clone(cell)),
            None => {
                let cell = SignerCell::default();
                signers.by_id.insert(id.clone(), (use_number, Arc::clone(&cell)));
                (None, cell)
            }
        };
        if let Some(before) = before {
            signers.by_use.remove(&before);
        }
        signers.by_use.insert(use_number, id.clone());
        while signers.by_id.len() > self.signers_max {
            let Some((_, oldest)) = signers.by_use.pop_first() else { break };
            signers.by_id.remove(&oldest);
        }
        cell
    }

    /// Removes an empty cell, unless it was replaced or another load has filled it.
    fn evict_empty_cell(&self, id: &SignerKey, cell: &SignerCell) {
        let mut signers = self.signers.lock();
        let entry = signers.by_id.get(id).filter(|(_, cached)| Arc::ptr_eq(cached, cell) && !cached.initialized());
        if let Some(&(used, _)) = entry {
            signers.by_id.remove(id);
            signers.by_use.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dkim_key::{DkimKey, DkimKeyError, KeyAlgorithm};
    use jiff::Timestamp;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn id(n: u128) -> SignerKey {
        let domain = DomainId::new(Timestamp::UNIX_EPOCH, n);
        SignerKey { domain, selector: "s".to_owned(), ed25519: true }
    }

    fn signer() -> Result<Signer, DkimKeyError> {
        let key = DkimKey::generate(KeyAlgorithm::Ed25519)?;
        Signer::new(&"example.com".parse().unwrap(), None, Some(("se", &key)))
    }

    #[tokio::test]
    async fn the_least_recently_used_signer_is_evicted() {
        let signers = SignerCache::new(2);
        let loads = AtomicUsize::new(0);
        let load = async || {
            loads.fetch_add(1, Ordering::Relaxed);
            signer()
        };
        for (n, loads_after) in [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4), (3, 5)] {
            signers.get_or_load(id(n), load).await.unwrap();
            assert_eq!(loads.load(Ordering::Relaxed), loads_after, "after {n}");
            assert!(signers.len() <= 2);
        }
        let other_keys = SignerKey { selector: "t".to_owned(), ..id(3) };
        signers.get_or_load(other_keys, load).await.unwrap();
        assert_eq!(loads.load(Ordering::Relaxed), 6);
    }

    #[tokio::test]
    async fn concurrent_loads_are_shared_and_failures_are_not_cached() {
        let signers = SignerCache::new(10);
        let loads = AtomicUsize::new(0);
        let load_once = || {
            signers.get_or_load(id(1), async || {
                loads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                signer()
            })
        };
        let (a, b) = tokio::join!(load_once(), load_once());
        assert!(Arc::ptr_eq(&a.unwrap(), &b.unwrap()));
        assert_eq!(loads.load(Ordering::Relaxed), 1);

        let failed = signers.get_or_load(id(2), async || Err(DkimKeyError::Malformed)).await;
        assert_eq!(failed.unwrap_err(), DkimKeyError::Malformed);
        assert_eq!(signers.len(), 1);
        signers.get_or_load(id(2), async || signer()).await.unwrap();
        assert_eq!(signers.len(), 2);
    }
}
