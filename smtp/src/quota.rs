//! A quota that many share: so many units, of which no holder may have more than is left for the others.
//!
//! One holder alone may have half of the units, two may have a third each, and so on: what a holder asks for is
//! granted while the units that stay free are at least as many as the holder has ("dynamic thresholds", Choudhury
//! and Hahne 1998). So a busy holder is not held back while nobody else wants anything, and a newcomer may always
//! take half of what is free. Strangers have a fixed bound beside it; and since a stranger may have many addresses,
//! they count for several holders at once: an IPv4 address also for its /24, which has four times the bound, an IPv6
//! /56 also for its /48, which has twice the bound.
//!
//! Units are sessions ([`crate::peers`]) or bytes ([`crate::budget`]). Taking and giving back are two atomic
//! operations; the table of holders is locked only when a session looks up its share, and when it ends.

use std::collections::HashMap;
use std::iter;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::id::AccountId;
use mail::network::{client_prefix, site_prefix};

/// Units are short while less than this part of them is free.
const NEAR_CAPACITY_DIVISOR: usize = 4;

/// Who has units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaHolder {
    /// A client address: one address of IPv4, one /64 of IPv6.
    Address(IpAddr),
    /// A site: one address of IPv4, one /56 of IPv6.
    Site(IpAddr),
    /// A network of sites: a /24 of IPv4, a /48 of IPv6.
    Network(IpAddr),
    /// Whoever logged in for this account.
    Account(AccountId),
}

impl QuotaHolder {
    /// The client address.
    #[must_use]
    pub fn for_address(address: IpAddr) -> Self {
        Self::Address(if address.is_loopback() { address } else { client_prefix(address) })
    }

    /// The site of a client.
    #[must_use]
    pub fn for_site(address: IpAddr) -> Self {
        Self::Site(if address.is_loopback() { address } else { site_prefix(address) })
    }

    /// A stranger at this address: its site, and the network of that; a program of this machine is in none.
    pub fn untrusted_client(address: IpAddr) -> impl Iterator<Item = Self> {
        let network = (!address.to_canonical().is_loopback()).then(|| Self::for_network(address));
        iter::once(Self::for_site(address)).chain(network)
    }

    fn for_network(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4((address.to_bits() & (u32::MAX << 8)).into()),
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 80)).into()),
        })
    }

    /// Units that it may have whatever is free, when one holder may have so many.
    fn units_max(self, each: usize) -> usize {
        match self {
            // Programs of this machine, and whoever comes through one of them, are not one stranger.
            Self::Address(address) | Self::Site(address) if address.is_loopback() => usize::MAX,
            Self::Network(IpAddr::V4(_)) => each.saturating_mul(4),
            Self::Network(IpAddr::V6(_)) => each.saturating_mul(2),
            Self::Address(_) | Self::Site(_) | Self::Account(_) => each,
        }
    }
}

/// The bounds of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaBounds {
    /// Units of all.
    pub total: usize,
    /// Units of one holder, whatever is free.
    pub per_holder: usize,
    /// Units of a holder while no other has any, although more than half of all.
    pub sole_holder: usize,
}

impl QuotaBounds {
    /// So many, and no bound for one holder but what it leaves free.
    #[must_use]
    pub fn shared(total: usize) -> Self {
        Self { total, per_holder: usize::MAX, sole_holder: 1 }
    }
}

/// The quota.
#[derive(Debug)]
pub struct FairShareQuota {
    total: AtomicUsize,
    per_holder: AtomicUsize,
    sole_holder: AtomicUsize,
    used: AtomicUsize,
    /// Who has a share: in how many places, and how many units.
    holders: Mutex<HashMap<QuotaHolder, (usize, Arc<AtomicUsize>)>>,
}

impl FairShareQuota {
    /// A quota of which nothing is taken.
    #[must_use]
    pub fn new(bounds: QuotaBounds) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicUsize::new(bounds.total),
            per_holder: AtomicUsize::new(bounds.per_holder),
            sole_holder: AtomicUsize::new(bounds.sole_holder),
            used: AtomicUsize::new(0),
            holders: Mutex::default(),
        })
    }

    /// Has these bounds from now on. What is taken stays taken.
    pub fn set_bounds(&self, bounds: QuotaBounds) {
        self.total.store(bounds.total, Ordering::Relaxed);
        self.per_holder.store(bounds.per_holder, Ordering::Relaxed);
        self.sole_holder.store(bounds.sole_holder, Ordering::Relaxed);
    }

    /// Units of all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Units that are taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Units that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.total().saturating_sub(self.used())
    }

    /// Whether little is free once so many more units are taken.
    #[must_use]
    pub fn is_near_capacity(&self, wanted: usize) -> bool {
        self.free().saturating_sub(wanted) < self.total() / NEAR_CAPACITY_DIVISOR
    }

    /// The share of somebody who counts for these holders.
    #[must_use]
    pub fn share_for(self: &Arc<Self>, holders: impl IntoIterator<Item = QuotaHolder>) -> QuotaShare {
        let mut table = self.holders();
        let mut held = |holder| {
            let (places, count) = table.entry(holder).or_default();
            *places += 1;
            (holder, Arc::clone(count))
        };
        QuotaShare { quota: Arc::clone(self), holders: holders.into_iter().map(&mut held).collect() }
    }

    /// Takes a unit for somebody who is not known yet; `false` when none is free.
    pub(crate) fn acquire_unit(&self) -> bool {
        let all = self.total();
        let room = |used: usize| (used < all).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    }

    /// Gives back a unit that [`Self::take_one`] took.
    pub(crate) fn release_unit(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<QuotaHolder, (usize, Arc<AtomicUsize>)>> {
        // The table is whole after every statement: a panic elsewhere did not break it.
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a holder may have `own` units when `used` are taken in all, its own among them.
    fn allows(&self, holder: QuotaHolder, own: usize, used: usize) -> bool {
        let Some(free) = self.total().checked_sub(used) else { return false };
        let bound = holder.units_max(self.per_holder.load(Ordering::Relaxed));
        let is_alone = own >= used;
        own <= free.min(bound) || (is_alone && own <= self.sole_holder.load(Ordering::Relaxed))
    }

    #[cfg(test)]
    pub(crate) fn holders_known(&self) -> usize {
        self.holders().len()
    }
}

/// A part of a quota, counted for one holder or several, each of which must be granted it. A holder is
/// forgotten when it has no share any more.
#[derive(Debug)]
pub struct QuotaShare {
    quota: Arc<FairShareQuota>,
    holders: Box<[(QuotaHolder, Arc<AtomicUsize>)]>,
}

impl QuotaShare {
    /// The quota.
    #[must_use]
    pub fn quota(&self) -> &Arc<FairShareQuota> {
        &self.quota
    }

    /// Units of the first of its holders.
    #[must_use]
    pub fn own_units(&self) -> usize {
        self.holders.first().map_or(0, |(_, count)| count.load(Ordering::Relaxed))
    }

    /// Whether so many more would be granted if nobody else had any.
    #[must_use]
    pub fn could_acquire(&self, units: usize) -> bool {
        self.holders.iter().all(|(holder, count)| {
            let own = count.load(Ordering::Relaxed).saturating_add(units);
            let bound = holder.units_max(self.quota.per_holder.load(Ordering::Relaxed));
            own <= self.quota.total().saturating_sub(own).min(bound)
        })
    }

    /// Whether so many more would be granted now. They may be gone a moment later.
    #[must_use]
    pub fn can_acquire(&self, units: usize) -> bool {
        let Some(used) = self.quota.used().checked_add(units) else { return false };
        self.holders.iter().all(|(holder, count)| {
            let own = count.load(Ordering::Relaxed).checked_add(units);
            own.is_some_and(|own| self.quota.allows(*holder, own, used))
        })
    }

    /// Takes more; `false`, and nothing taken, when so many are not granted.
    #[must_use]
    pub fn try_acquire(&self, units: usize) -> bool {
        if units > self.quota.total() {
            return false;
        }
        self.add_units(units);
        let room = |used: usize| used.checked_add(units).filter(|used| self.is_allowed(*used));
        let taken = self.quota.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok();
        if !taken {
            self.subtract_units(units);
        }
        taken
    }

    /// Gives back.
    pub fn release(&self, units: usize) {
        self.subtract_units(units);
        self.quota.used.fetch_sub(units, Ordering::AcqRel);
    }

    /// Counts one unit, which [`Quota::take_one`] took: at most `max` for the first holder, and for none more than
    /// the quota grants. `None`, and nothing counted, when it is too much.
    pub(crate) fn count_unit(self, max: usize) -> Option<QuotaPermit> {
        self.add_units(1);
        let counted = QuotaPermit(self);
        let share = &counted.0;
        let is_within = share.holders.first().is_none_or(|(_, own)| own.load(Ordering::Acquire) <= max);
        (is_within && share.is_allowed(share.quota.used())).then_some(counted)
    }

    /// Whether the holders may have what is counted for them, when `used` are taken in all.
    fn is_allowed(&self, used: usize) -> bool {
        let own = |count: &AtomicUsize| count.load(Ordering::Acquire);
        self.holders.iter().all(|(holder, count)| self.quota.allows(*holder, own(count), used))
    }

    fn add_units(&self, units: usize) {
        for (_, count) in &self.holders {
            count.fetch_add(units, Ordering::AcqRel);
        }
    }

    fn subtract_units(&self, units: usize) {
        for (_, count) in &self.holders {
            count.fetch_sub(units, Ordering::AcqRel);
        }
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        let mut table = self.quota.holders();
        for (holder, _) in &self.holders {
            if let Some((places, _)) = table.get_mut(holder) {
                *places -= 1;
                if *places == 0 {
                    table.remove(holder);
                }
            }
        }
    }
}

/// One unit, counted for its holders until this is dropped. (The quota's own count goes on: [`Quota::give_one`].)
#[derive(Debug)]
pub(crate) struct QuotaPermit(QuotaShare);

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.0.subtract_units(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(quota: &Arc<FairShareQuota>, address: &str) -> QuotaShare {
        quota.share_for([QuotaHolder::for_site(address.parse().unwrap())])
    }

    #[test]
    fn a_holder_leaves_as_much_free_as_it_has() {
        let quota = FairShareQuota::new(QuotaBounds::shared(100));
        let one = share(&quota, "192.0.2.1");
        assert!(one.try_acquire(50) && !one.try_acquire(1));
        let two = share(&quota, "192.0.2.2");
        assert!(two.can_acquire(25) && !two.can_acquire(26) && two.try_acquire(25));
        // However many there are, the next one finds something.
        let three = share(&quota, "192.0.2.3");
        assert!(three.try_acquire(12) && quota.free() == 13);
        one.release(50);
        assert!(two.try_acquire(12));
        two.release(37);
        three.release(12);
        assert_eq!((quota.used(), quota.free()), (0, 100));
        drop((one, two, three));
        assert_eq!(quota.holders_known(), 0);
    }

    #[test]
    fn who_is_alone_may_have_its_largest_message_and_a_stranger_no_more_than_a_bound() {
        let quota = FairShareQuota::new(QuotaBounds { total: 100, per_holder: 20, sole_holder: 80 });
        let one = share(&quota, "192.0.2.1");
        assert!(one.try_acquire(80) && !one.try_acquire(1));
        one.release(80);
        let two = share(&quota, "192.0.2.2");
        assert!(two.try_acquire(1));
        assert!(one.try_acquire(20) && !one.try_acquire(1), "no longer alone");
        let here = share(&quota, "127.0.0.1");
        assert!(here.try_acquire(39) && !here.try_acquire(1), "this machine has no bound but what is free");
    }

    #[test]
    fn a_site_of_ipv6_is_one_holder() {
        let quota = FairShareQuota::new(QuotaBounds { total: 100, per_holder: 10, sole_holder: 10 });
        let (one, two) = (share(&quota, "2001:db8:0:1::1"), share(&quota, "2001:db8:0:ff::1"));
        assert!(one.try_acquire(10) && !two.try_acquire(1));
        assert!(share(&quota, "2001:db8:0:100::1").try_acquire(1));
        let (first, second) = (
            QuotaHolder::for_address("2001:db8:0:1::1".parse().unwrap()),
            QuotaHolder::for_address("2001:db8:0:1::2".parse().unwrap()),
        );
        assert_eq!(first, second);
    }

    #[test]
    fn a_stranger_counts_for_its_network_too() {
        let quota = FairShareQuota::new(QuotaBounds { total: 160, per_holder: 10, sole_holder: 10 });
        let stranger = |address: &str| quota.share_for(QuotaHolder::untrusted_client(address.parse().unwrap()));
        let taken = |addresses: Vec<String>| {
            let shares: Vec<_> = addresses.iter().map(|address| stranger(address)).collect();
            shares.iter().map(|share| (0..20).filter(|_| share.try_acquire(1)).count()).sum::<usize>()
        };
        // A sixteenth for a /56, an eighth for a /48; a sixteenth for an address of IPv4, a quarter for a /24.
        let sites = (0..256_u32).map(|n| format!("2001:db8:0:{:x}::1", n << 8)).collect();
        assert_eq!(taken(sites), 20);
        assert!(stranger("2001:db8:1::1").try_acquire(1));
        let addresses = (0..256).map(|n| format!("192.0.2.{n}")).collect();
        assert_eq!(taken(addresses), 40);
        assert!(stranger("192.0.3.1").try_acquire(1));
        let (here, here_too) = (stranger("127.0.0.1"), stranger("::1"));
        assert_eq!((0..200).filter(|_| here.try_acquire(1)).count(), 49, "this machine has no bound but what is free");
        here.release(30);
        assert_eq!((0..200).filter(|_| here_too.try_acquire(1)).count(), 39);
    }

    #[test]
    fn fewer_units_than_are_taken() {
        let quota = FairShareQuota::new(QuotaBounds::shared(100));
        let one = share(&quota, "192.0.2.1");
        assert!(one.try_acquire(40));
        quota.set_bounds(QuotaBounds::shared(10));
        assert!(!one.can_acquire(1) && !one.try_acquire(1) && !quota.acquire_unit() && quota.free() == 0);
        assert!(!one.can_acquire(usize::MAX) && !one.try_acquire(usize::MAX));
        one.release(40);
        assert!(one.try_acquire(5));
    }
}
