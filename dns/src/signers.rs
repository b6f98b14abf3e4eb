//! Ready signers by domain, at most so many: loading a key takes about as long as using it.
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

type Cell = Arc<OnceCell<Arc<Signer>>>;

#[derive(Default)]
struct Shelf {
    by_domain: HashMap<DomainId, (u64, Cell)>,
    by_use: BTreeMap<u64, DomainId>,
    uses: u64,
}

/// The cache of signers.
pub struct Signers {
    shelf: Mutex<Shelf>,
    signers_max: usize,
}

impl std::fmt::Debug for Signers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signers").field("signers_max", &self.signers_max).finish_non_exhaustive()
    }
}

impl Default for Signers {
    fn default() -> Self {
        Self::new(SIGNERS_MAX)
    }
}

impl Signers {
    /// Keeps at most `signers_max` (at least one).
    #[must_use]
    pub fn new(signers_max: usize) -> Self {
        Self { shelf: Mutex::default(), signers_max: signers_max.max(1) }
    }

    /// The signer of a domain, loaded if it is not there. A failed load leaves nothing behind.
    ///
    /// # Errors
    /// Whatever `load` says.
    pub async fn get_or_load<E, F, Load>(&self, domain: DomainId, load: F) -> Result<Arc<Signer>, E>
    where
        F: FnOnce() -> Load,
        Load: Future<Output = Result<Signer, E>>,
    {
        let cell = self.cell(domain);
        let loaded = cell.get_or_try_init(async || load().await.map(Arc::new)).await;
        match loaded {
            Ok(signer) => Ok(Arc::clone(signer)),
            Err(error) => {
                self.forget_cell(domain, &cell);
                Err(error)
            }
        }
    }

    /// Forgets a domain's signer: its keys or what is published of them have changed.
    pub fn forget(&self, domain: DomainId) {
        let mut shelf = self.lock();
        if let Some((used, _)) = shelf.by_domain.remove(&domain) {
            shelf.by_use.remove(&used);
        }
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_domain.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, domain: DomainId) -> Cell {
        let mut shelf = self.lock();
        shelf.uses += 1;
        let use_number = shelf.uses;
        let (before, cell) = match shelf.by_domain.get_mut(&domain) {
            Some((used, cell)) => (Some(std::mem::replace(used, use_number)), Arc::clone(cell)),
            None => {
                let cell = Cell::default();
                shelf.by_domain.insert(domain, (use_number, Arc::clone(&cell)));
                (None, cell)
            }
        };
        if let Some(before) = before {
            shelf.by_use.remove(&before);
        }
        shelf.by_use.insert(use_number, domain);
        while shelf.by_domain.len() > self.signers_max {
            let Some((_, oldest)) = shelf.by_use.pop_first() else { break };
            shelf.by_domain.remove(&oldest);
        }
        cell
    }

    /// Drops an empty cell, unless another has taken its place or a second load has filled it.
    fn forget_cell(&self, domain: DomainId, cell: &Cell) {
        let mut shelf = self.lock();
        let ours =
            shelf.by_domain.get(&domain).filter(|(_, kept)| Arc::ptr_eq(kept, cell) && !kept.initialized());
        if let Some(&(used, _)) = ours {
            shelf.by_domain.remove(&domain);
            shelf.by_use.remove(&used);
        }
    }

    /// A panic cannot leave the shelf half changed: nothing in here panics.
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dkim_key::{DkimKey, KeyAlgorithm, KeyError};
    use jiff::Timestamp;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn id(n: u128) -> DomainId {
        DomainId::new(Timestamp::UNIX_EPOCH, n)
    }

    fn signer() -> Result<Signer, KeyError> {
        let key = DkimKey::generate(KeyAlgorithm::Ed25519)?;
        Signer::new(&"example.com".parse().unwrap(), None, Some(("se", &key)))
    }

    #[tokio::test]
    async fn the_least_recently_used_leaves() {
        let signers = Signers::new(2);
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
        signers.forget(id(3));
        assert_eq!(signers.len(), 1);
        signers.get_or_load(id(3), load).await.unwrap();
        assert_eq!(loads.load(Ordering::Relaxed), 6);
    }

    #[tokio::test]
    async fn one_load_serves_all_who_wait_and_a_failure_is_not_kept() {
        let signers = Signers::new(10);
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

        let failed = signers.get_or_load(id(2), async || Err(KeyError::Malformed)).await;
        assert_eq!(failed.unwrap_err(), KeyError::Malformed);
        assert_eq!(signers.len(), 1);
        signers.get_or_load(id(2), async || signer()).await.unwrap();
        assert_eq!(signers.len(), 2);
    }
}
