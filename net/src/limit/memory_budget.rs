//! The memory budget: how many bytes all requests together may hold.
//!
//! ```text
//! chunk of a body received → quota of the holder → pool → chunk is stored
//! ```
//!
//! Received bytes are charged, announced bytes are not: a client that announces 40 MB and sends nothing holds
//! nothing. There are three pools: one for ordinary requests; one for large requests, so that slow uploads of
//! attachments do not delay ordinary sends; and one for unauthenticated clients, so that they only compete with each
//! other. One account (or one network, without an account) may hold only a fraction of a pool, so that one customer
//! does not starve the others.
//!
//! Half-read bodies may exhaust a pool and wait for each other. So a share is awaited only until a deadline; a
//! refused request releases its share, and the others proceed.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use model::cidr::client_prefix;
use model::id::AccountId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Granularity of the pools in bytes; a small request costs about this much anyway.
const UNIT_BYTES: usize = 1 << 10;
/// Larger requests use the pool for large requests. An ordinary email is far smaller, and half-read bodies of a
/// megabyte would soon exhaust an account's quota of the ordinary pool and wait for each other.
const ORDINARY_BYTES_MAX: usize = 256 << 10;
/// The ordinary pool is one fifth of the budget.
const ORDINARY_DIVISOR: usize = 5;
/// An account's quota of a pool is one half.
const ACCOUNT_DIVISOR: usize = 2;
/// The pool for unauthenticated clients: 256 of the largest bodies that they may send.
const PUBLIC_BYTES: usize = 16 << 20;
/// A network's quota of it is one eighth.
const NETWORK_DIVISOR: usize = 8;
/// Longest wait of a request for the budget.
pub const BUDGET_WAIT_MAX: Duration = Duration::from_secs(5);

/// The memory budget, shared by all requests.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<MemoryPools>);

#[derive(Debug)]
struct MemoryPools {
    ordinary: Arc<MemoryPool>,
    large: Arc<MemoryPool>,
    public: Arc<MemoryPool>,
}

/// The owner of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryHolder {
    /// An account, authenticated by a key or a session.
    Account(AccountId),
    /// Unauthenticated clients of one address (one /64 of IPv6).
    Network(Option<IpAddr>),
}

impl MemoryHolder {
    /// The holder for an unauthenticated client of this address.
    pub fn network(from: Option<IpAddr>) -> Self {
        Self::Network(from.map(client_prefix))
    }
}

impl MemoryBudget {
    /// A budget of about `bytes_max`; one account may always hold `large_bytes_min` in the pool for large requests.
    pub fn new(bytes_max: usize, large_bytes_min: usize) -> Self {
        let ordinary = bytes_max / ORDINARY_DIVISOR;
        let large = (bytes_max - ordinary).max(large_bytes_min);
        let each_large = (large / ACCOUNT_DIVISOR).max(large_bytes_min);
        Self(Arc::new(MemoryPools {
            ordinary: MemoryPool::new(ordinary, ordinary / ACCOUNT_DIVISOR),
            large: MemoryPool::new(large, each_large),
            public: MemoryPool::new(PUBLIC_BYTES, PUBLIC_BYTES / NETWORK_DIVISOR),
        }))
    }

    /// The allowance of one holder.
    pub fn allowance(&self, holder: MemoryHolder) -> MemoryAllowance {
        MemoryAllowance { budget: self.clone(), holder }
    }

    /// Free bytes of the two pools for authenticated clients.
    pub fn available_bytes(&self) -> usize {
        (self.0.ordinary.whole.available_permits() + self.0.large.whole.available_permits()) * UNIT_BYTES
    }
}

/// The budget as seen by one holder.
#[derive(Debug, Clone)]
pub struct MemoryAllowance {
    budget: MemoryBudget,
    holder: MemoryHolder,
}

impl MemoryAllowance {
    /// Adds `bytes` to a share if they are free now. The share's size is increased even if this fails.
    #[must_use]
    pub fn try_grow(&self, share: &mut MemoryShare, bytes: usize) -> bool {
        let Some(Acquisition { quota: part, units }) = self.next_acquisition(share, bytes) else {
            return true;
        };
        let Ok(own) = Arc::clone(&part.own).try_acquire_many_owned(units) else { return false };
        let Ok(whole) = Arc::clone(&part.pool.whole).try_acquire_many_owned(units) else { return false };
        share.add_permits(part, own, whole);
        true
    }

    /// Adds `bytes` to a share; waits for them until a deadline.
    #[must_use]
    pub async fn grow_until(&self, share: &mut MemoryShare, bytes: usize, until: Instant) -> bool {
        let Some(Acquisition { quota: part, units }) = self.next_acquisition(share, bytes) else {
            return true;
        };
        // Wait for the own quota first: this does not block other holders.
        let acquired = async {
            let own = Arc::clone(&part.own).acquire_many_owned(units).await.ok()?;
            Some((own, Arc::clone(&part.pool.whole).acquire_many_owned(units).await.ok()?))
        };
        let Ok(Some((own, whole))) = timeout_at(until, acquired).await else { return false };
        share.add_permits(part, own, whole);
        true
    }

    /// The units to acquire for `bytes` more; `None` when the permits of the share are sufficient. A share that
    /// outgrows the ordinary pool is charged wholly to the large pool, and then releases its ordinary permits.
    fn next_acquisition(&self, share: &mut MemoryShare, bytes: usize) -> Option<Acquisition> {
        share.bytes += bytes;
        let MemoryPools { ordinary, large, public } = &*self.budget.0;
        let pool = match self.holder {
            MemoryHolder::Network(_) => public,
            MemoryHolder::Account(_) if share.bytes.max(share.expected) <= ORDINARY_BYTES_MAX => ordinary,
            MemoryHolder::Account(_) => large,
        };
        let permits = share.permits.as_ref().filter(|paid| Arc::ptr_eq(&paid.quota.pool, pool));
        let needed = units_of(share.bytes) - permits.map_or(0, PoolPermits::units).min(units_of(share.bytes));
        (needed > 0).then(|| Acquisition { quota: HolderQuota::for_holder(pool, self.holder), units: needed })
    }
}

struct Acquisition {
    quota: HolderQuota,
    units: u32,
}

/// A share of the budget; dropping it releases the bytes.
#[derive(Debug, Default)]
pub struct MemoryShare {
    bytes: usize,
    /// The announced size: it selects the pool and costs nothing.
    expected: usize,
    permits: Option<PoolPermits>,
}

/// The permits of a share. The fields are dropped in order: permits before the quota.
#[derive(Debug)]
struct PoolPermits {
    own: OwnedSemaphorePermit,
    whole: OwnedSemaphorePermit,
    quota: HolderQuota,
}

impl PoolPermits {
    fn units(&self) -> u32 {
        u32::try_from(self.own.num_permits()).unwrap_or(u32::MAX)
    }
}

impl MemoryShare {
    /// An empty share for a body of this announced size.
    pub fn with_expected(bytes: usize) -> Self {
        Self { expected: bytes, ..Self::default() }
    }

    /// Releases bytes that are no longer in memory.
    pub fn shrink(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let needed = units_of(self.bytes);
        let Some(paid) = &mut self.permits else { return };
        let excess = paid.units().saturating_sub(needed) as usize;
        // A permit that is split off is released when it is dropped.
        drop((paid.own.split(excess), paid.whole.split(excess)));
    }

    /// Adds permits of the same pool, or replaces those of another pool.
    fn add_permits(&mut self, part: HolderQuota, own: OwnedSemaphorePermit, whole: OwnedSemaphorePermit) {
        match &mut self.permits {
            Some(paid) if Arc::ptr_eq(&paid.quota.own, &part.own) => {
                paid.own.merge(own);
                paid.whole.merge(whole);
            }
            other => *other = Some(PoolPermits { own, whole, quota: part }),
        }
    }
}

/// The bytes for one class of requests.
#[derive(Debug)]
struct MemoryPool {
    whole: Arc<Semaphore>,
    /// The quota of one holder.
    each_bytes_max: usize,
    /// The holders: number of their shares, and what is left of their quota.
    holders: Mutex<HashMap<MemoryHolder, (usize, Arc<Semaphore>)>>,
}

impl MemoryPool {
    fn new(bytes: usize, each_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { whole: semaphore(bytes), each_bytes_max, holders: Mutex::default() })
    }
}

/// A holder's quota of a pool; removed with the holder's last share.
#[derive(Debug)]
struct HolderQuota {
    pool: Arc<MemoryPool>,
    holder: MemoryHolder,
    own: Arc<Semaphore>,
}

impl HolderQuota {
    fn for_holder(pool: &Arc<MemoryPool>, holder: MemoryHolder) -> Self {
        let mut holders = pool.holders.lock();
        let (allowances, own) = holders.entry(holder).or_insert_with(|| (0, semaphore(pool.each_bytes_max)));
        *allowances += 1;
        Self { pool: Arc::clone(pool), holder, own: Arc::clone(own) }
    }
}

impl Drop for HolderQuota {
    fn drop(&mut self) {
        let mut holders = self.pool.holders.lock();
        if let Some((allowances, _)) = holders.get_mut(&self.holder) {
            *allowances -= 1;
            if *allowances == 0 {
                holders.remove(&self.holder);
            }
        }
    }
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS)))
}

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn account(n: u8) -> MemoryHolder {
        MemoryHolder::Account(AccountId::from_bytes([n; 16]))
    }

    #[test]
    fn shares_are_released_and_holders_removed() {
        let budget = MemoryBudget::new(50 * MB, 0);
        let allowance = budget.allowance(account(1));
        let (mut share, mut second) = (MemoryShare::default(), MemoryShare::default());
        assert!(allowance.try_grow(&mut share, MB));
        assert_eq!(budget.available_bytes(), 49 * MB);
        assert!(allowance.try_grow(&mut share, 14 * MB), "charged to the large pool only");
        assert!(allowance.try_grow(&mut second, 2 * MB));
        assert_eq!(budget.available_bytes(), 33 * MB);
        assert_eq!(budget.0.ordinary.whole.available_permits() * UNIT_BYTES, 10 * MB);
        assert!(!allowance.try_grow(&mut share, 10 * MB), "one account may use half of the pool");
        drop((share, second));
        assert_eq!(budget.available_bytes(), 50 * MB);
        for pool in [&budget.0.ordinary, &budget.0.large, &budget.0.public] {
            assert!(pool.holders.lock().is_empty());
        }
    }

    #[test]
    fn many_small_chunks_cost_their_size() {
        let budget = MemoryBudget::new(50 * MB, 0);
        let mut share = MemoryShare::default();
        for _ in 0..4096 {
            assert!(budget.allowance(account(1)).try_grow(&mut share, 1));
        }
        assert_eq!(budget.available_bytes(), 50 * MB - 4096);
    }

    #[test]
    fn one_holder_does_not_starve_the_others() {
        let budget = MemoryBudget::new(50 * MB, 0);
        let fill = |holder: MemoryHolder, bytes: usize| {
            let allowance = budget.allowance(holder);
            let mut shares = Vec::new();
            loop {
                let mut share = MemoryShare::default();
                if !allowance.try_grow(&mut share, bytes) {
                    return shares;
                }
                shares.push(share);
            }
        };
        for bytes in [100 << 10, 5 * MB] {
            let permits = fill(account(1), bytes);
            assert!(!permits.is_empty());
            assert_eq!(fill(account(2), bytes).len(), permits.len());
        }
        // An unauthenticated client does not affect authenticated ones.
        let small_shares: Vec<_> =
            (0..20).map(|n| fill(MemoryHolder::network(Some([192, 0, 2, n].into())), 64 << 10)).collect();
        assert!(small_shares[0].len() == 32 && small_shares[19].is_empty());
        assert_eq!(fill(account(1), 100 << 10).len(), fill(account(2), 100 << 10).len());
    }

    #[tokio::test(start_paused = true)]
    async fn half_read_bodies_do_not_wait_for_each_other_for_ever() {
        let budget = MemoryBudget::new(10 * MB, 8 * MB);
        let [one, two] = [1, 2].map(|n| budget.allowance(account(n)));
        let (mut first, mut second) = (MemoryShare::default(), MemoryShare::default());
        assert!(one.try_grow(&mut first, 4 * MB) && two.try_grow(&mut second, 4 * MB));
        let deadline = Instant::now() + std::time::Duration::from_secs(5);
        let later = deadline + std::time::Duration::from_secs(5);
        let (refused, enlarged) = tokio::join!(
            async move { one.grow_until(&mut first, MB, deadline).await },
            two.grow_until(&mut second, MB, later),
        );
        assert!(!refused && enlarged);
    }
}
