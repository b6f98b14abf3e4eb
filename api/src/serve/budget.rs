//! The budget of bytes in flight: what all requests together may hold in memory.
//!
//! ```text
//! a piece of a body comes → the holder's part of the purse → the purse → the piece is kept
//! ```
//!
//! Paid is what has come, never what was announced: who says 40 MB and sends nothing holds nothing. Three
//! purses: one for ordinary requests, one for large ones, so that a few slow uploads of attachments never
//! keep an ordinary send waiting, and one for those who have not said who they are, so that they only get
//! in one another's way. And of no purse may one account (one network, where there is no account) hold more
//! than a part, so that one customer does not starve the others.
//!
//! Bodies that are half read may have used up a purse and wait for each other: so a share is waited for only
//! until a deadline; whoever is refused gives back what it held, and the others go on.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mail::id::AccountId;
use mail::network::client_prefix;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// A small request costs about this much anyhow.
const UNIT_BYTES: usize = 1 << 10;
/// What is larger is paid from the purse for large requests: an ordinary email is far smaller, and half-read
/// bodies of a megabyte would soon use up an account's part of the ordinary purse and wait for each other.
const ORDINARY_BYTES_MAX: usize = 256 << 10;
/// The purse for ordinary requests is this part of the whole.
const ORDINARY_DIVISOR: usize = 5;
/// One account's part of a purse.
const ACCOUNT_DIVISOR: usize = 2;
/// The purse for those who have not said who they are: 256 of the largest bodies that they may send.
const PUBLIC_BYTES: usize = 16 << 20;
/// One network's part of it.
const NETWORK_DIVISOR: usize = 8;

/// The budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<MemoryPools>);

#[derive(Debug)]
struct MemoryPools {
    ordinary: Arc<MemoryPool>,
    large: Arc<MemoryPool>,
    public: Arc<MemoryPool>,
}

/// Who holds a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryHolder {
    /// An account, by a key or a session.
    Account(AccountId),
    /// Whoever calls from one address (one /64 of IPv6) without saying who they are.
    Network(Option<IpAddr>),
}

impl MemoryHolder {
    /// Whoever calls from this address.
    #[must_use]
    pub fn network(from: Option<IpAddr>) -> Self {
        Self::Network(from.map(client_prefix))
    }
}

impl MemoryBudget {
    /// A budget of about this many bytes; one account may always hold `large_bytes_min` of it.
    #[must_use]
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

    /// What one of them may take from it.
    #[must_use]
    pub fn allowance(&self, holder: MemoryHolder) -> MemoryAllowance {
        MemoryAllowance { budget: self.clone(), holder }
    }

    /// What is left to those who have said who they are, in bytes.
    #[must_use]
    pub fn available_bytes(&self) -> usize {
        (self.0.ordinary.whole.available_permits() + self.0.large.whole.available_permits()) * UNIT_BYTES
    }
}

/// What one holder may take from the budget.
#[derive(Debug, Clone)]
pub struct MemoryAllowance {
    budget: MemoryBudget,
    holder: MemoryHolder,
}

impl MemoryAllowance {
    /// Makes a share larger by `bytes`, at once or not at all.
    #[must_use]
    pub fn try_grow(&self, share: &mut MemoryShare, bytes: usize) -> bool {
        let Some(Acquisition { quota: part, units: grains }) = self.next_acquisition(share, bytes) else {
            return true;
        };
        let Ok(own) = Arc::clone(&part.own).try_acquire_many_owned(grains) else { return false };
        let Ok(whole) = Arc::clone(&part.pool.whole).try_acquire_many_owned(grains) else { return false };
        share.add_permits(part, own, whole);
        true
    }

    /// The same, waiting for it until a moment.
    #[must_use]
    pub async fn grow_until(&self, share: &mut MemoryShare, bytes: usize, until: Instant) -> bool {
        let Some(Acquisition { quota: part, units: grains }) = self.next_acquisition(share, bytes) else {
            return true;
        };
        // Who waits for their own part keeps nobody else waiting.
        let both = async {
            let own = Arc::clone(&part.own).acquire_many_owned(grains).await.ok()?;
            Some((own, Arc::clone(&part.pool.whole).acquire_many_owned(grains).await.ok()?))
        };
        let Ok(Some((own, whole))) = timeout_at(until, both).await else { return false };
        share.add_permits(part, own, whole);
        true
    }

    /// What is to be acquired for `bytes` more; nothing when what is held is enough. A share that outgrows
    /// the ordinary purse is paid whole from the large one, and then gives back what it had of the other.
    fn next_acquisition(&self, share: &mut MemoryShare, bytes: usize) -> Option<Acquisition> {
        share.bytes += bytes;
        let MemoryPools { ordinary, large, public } = &*self.budget.0;
        let purse = match self.holder {
            MemoryHolder::Network(_) => public,
            MemoryHolder::Account(_) if share.bytes.max(share.expected) <= ORDINARY_BYTES_MAX => ordinary,
            MemoryHolder::Account(_) => large,
        };
        let held = share.permits.as_ref().filter(|paid| Arc::ptr_eq(&paid.quota.pool, purse));
        let wanted = units_of(share.bytes) - held.map_or(0, PoolPermits::units).min(units_of(share.bytes));
        (wanted > 0).then(|| Acquisition { quota: HolderQuota::for_holder(purse, self.holder), units: wanted })
    }
}

/// What is to be acquired.
struct Acquisition {
    quota: HolderQuota,
    units: u32,
}

/// A share of the budget; it goes back when this is dropped.
#[derive(Debug, Default)]
pub struct MemoryShare {
    bytes: usize,
    /// What was announced: it decides of which purse, and costs nothing.
    expected: usize,
    permits: Option<PoolPermits>,
}

/// What was paid, and of what: the permits go first.
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
    /// A share, of nothing yet, for what is announced to be so large.
    #[must_use]
    pub fn with_expected(bytes: usize) -> Self {
        Self { expected: bytes, ..Self::default() }
    }

    /// Gives back what was paid for some of its bytes: they are in memory no more.
    pub fn shrink(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let needed = units_of(self.bytes);
        let Some(paid) = &mut self.permits else { return };
        let over = paid.units().saturating_sub(needed) as usize;
        // A permit that is split off goes back when it is dropped.
        drop((paid.own.split(over), paid.whole.split(over)));
    }

    /// Takes what was acquired: more of the same part, or instead of what there was of another.
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

/// Bytes for requests of one kind.
#[derive(Debug)]
struct MemoryPool {
    whole: Arc<Semaphore>,
    /// What one holder may have of it.
    each_bytes_max: usize,
    /// Those who hold something: in how many places, and what is left of their part.
    holders: Mutex<HashMap<MemoryHolder, (usize, Arc<Semaphore>)>>,
}

impl MemoryPool {
    fn new(bytes: usize, each_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { whole: semaphore(bytes), each_bytes_max, holders: Mutex::default() })
    }
}

/// One holder's part of a purse, forgotten when it is held nowhere any more.
#[derive(Debug)]
struct HolderQuota {
    pool: Arc<MemoryPool>,
    holder: MemoryHolder,
    own: Arc<Semaphore>,
}

impl HolderQuota {
    fn for_holder(purse: &Arc<MemoryPool>, holder: MemoryHolder) -> Self {
        let mut holders = purse.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let (places, own) = holders.entry(holder).or_insert_with(|| (0, semaphore(purse.each_bytes_max)));
        *places += 1;
        Self { pool: Arc::clone(purse), holder, own: Arc::clone(own) }
    }
}

impl Drop for HolderQuota {
    fn drop(&mut self) {
        let mut holders = self.pool.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((places, _)) = holders.get_mut(&self.holder) {
            *places -= 1;
            if *places == 0 {
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
    fn shares_go_back_and_nobody_is_remembered() {
        let budget = MemoryBudget::new(50 * MB, 0);
        let allowance = budget.allowance(account(1));
        let (mut share, mut other) = (MemoryShare::default(), MemoryShare::default());
        assert!(allowance.try_grow(&mut share, MB));
        assert_eq!(budget.available_bytes(), 49 * MB);
        assert!(allowance.try_grow(&mut share, 14 * MB), "now from the large purse alone");
        assert!(allowance.try_grow(&mut other, 2 * MB));
        assert_eq!(budget.available_bytes(), 33 * MB);
        assert_eq!(budget.0.ordinary.whole.available_permits() * UNIT_BYTES, 10 * MB);
        assert!(!allowance.try_grow(&mut share, 10 * MB), "an account has half of it");
        drop((share, other));
        assert_eq!(budget.available_bytes(), 50 * MB);
        for purse in [&budget.0.ordinary, &budget.0.large, &budget.0.public] {
            assert!(purse.holders.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn many_small_pieces_cost_what_they_are() {
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
            let held = fill(account(1), bytes);
            assert!(!held.is_empty());
            assert_eq!(fill(account(2), bytes).len(), held.len());
        }
        // Whoever has not said who they are gets in the way of none who has.
        let crowd: Vec<_> =
            (0..20).map(|n| fill(MemoryHolder::network(Some([192, 0, 2, n].into())), 64 << 10)).collect();
        assert!(crowd[0].len() == 32 && crowd[19].is_empty());
        assert_eq!(fill(account(1), 100 << 10).len(), fill(account(2), 100 << 10).len());
    }

    #[tokio::test(start_paused = true)]
    async fn half_read_bodies_do_not_wait_for_each_other_for_ever() {
        let budget = MemoryBudget::new(10 * MB, 8 * MB);
        let [one, two] = [1, 2].map(|n| budget.allowance(account(n)));
        let (mut first, mut second) = (MemoryShare::default(), MemoryShare::default());
        assert!(one.try_grow(&mut first, 4 * MB) && two.try_grow(&mut second, 4 * MB));
        let soon = Instant::now() + std::time::Duration::from_secs(5);
        let later = soon + std::time::Duration::from_secs(5);
        let (refused, enlarged) = tokio::join!(
            async move { one.grow_until(&mut first, MB, soon).await },
            two.grow_until(&mut second, MB, later),
        );
        assert!(!refused && enlarged);
    }
}
