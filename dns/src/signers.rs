//! Ready signers by domain and keys, at most so many: loading a key takes about as long as using it. Who has other
//! keys asks for another signer; the one before leaves in its time.
//!
//! The least recently used leaves when there is no room. Who asks for one that is not there loads it;
//! who asks meanwhile waits for that load instead of repeating it. The lock is never held across a
//! load.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::id::DomainId;
use tokio::sync::OnceCell;

use crate::sign::Signer;

/// Signers kept by default. One with both keys takes some 10 KB.
pub const SIGNERS_MAX: usize = 10_000;

/// Which signer: whose, and with which of its keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignerKey {
    /// The domain.
    pub domain: DomainId,
    /// The selector of its keys.
    pub selector: String,
    /// It signs with the Ed25519 key too.
    pub ed25519: bool,
}

type SignerCell = Arc<OnceCell<Arc<Signer>>>;

#[derive(Default)]
struct LruSigners {
    by_id: HashMap<SignerKey, (u64, SignerCell)>,
    by_use: BTreeMap<u64, SignerKey>,
    uses: u64,
}

/// The cache of signers.
pub struct SignerCache {
    shelf: Mutex<LruSigners>,
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
    /// Keeps at most `signers_max` (at least one).
    #[must_use]
    pub fn new(signers_max: usize) -> Self {
        Self { shelf: Mutex::default(), signers_max: signers_max.max(1) }
    }

    /// A signer, loaded if it is not there. A failed load leaves nothing behind.
    ///
    /// # Errors
    /// Whatever `load` says.
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

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, id: &SignerKey) -> SignerCell {
        let mut shelf = self.lock();
        shelf.uses += 1;
        let use_number = shelf.uses;
        let (before, cell) = match shelf.by_id.get_mut(id) {
            Some((used, cell)) => (Some(std::mem::replace(used, use_number)), Arc::clone(cell)),
            None => {
                let cell = SignerCell::default();
                shelf.by_id.insert(id.clone(), (use_number, Arc::clone(&cell)));
                (None, cell)
            }
        };
        if let Some(before) = before {
            shelf.by_use.remove(&before);
        }
        shelf.by_use.insert(use_number, id.clone());
        while shelf.by_id.len() > self.signers_max {
            let Some((_, oldest)) = shelf.by_use.pop_first() else { break };
            shelf.by_id.remove(&oldest);
        }
        cell
    }

    /// Drops an empty cell, unless another has taken its place or a second load has filled it.
    fn evict_empty_cell(&self, id: &SignerKey, cell: &SignerCell) {
        let mut shelf = self.lock();
        let ours = shelf.by_id.get(id).filter(|(_, kept)| Arc::ptr_eq(kept, cell) && !kept.initialized());
        if let Some(&(used, _)) = ours {
            shelf.by_id.remove(id);
            shelf.by_use.remove(&used);
        }
    }

    /// A panic cannot leave the shelf half changed: nothing in here panics.
    fn lock(&self) -> MutexGuard<'_, LruSigners> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn the_least_recently_used_leaves() {
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
    async fn one_load_serves_all_who_wait_and_a_failure_is_not_kept() {
        let signers = SignerCache::new(10);
        let loads = AtomicUsize::new(0);
        let one = || {
            signers.get_or_load(id(1), async || {
                loads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                signer()
            })
        };
        let (a, b) = tokio::join!(one(), one());
        assert!(Arc::ptr_eq(&a.unwrap(), &b.unwrap()));
        assert_eq!(loads.load(Ordering::Relaxed), 1);

        let failed = signers.get_or_load(id(2), async || Err(DkimKeyError::Malformed)).await;
        assert_eq!(failed.unwrap_err(), DkimKeyError::Malformed);
        assert_eq!(signers.len(), 1);
        signers.get_or_load(id(2), async || signer()).await.unwrap();
        assert_eq!(signers.len(), 2);
    }
}
