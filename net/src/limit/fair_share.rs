//! A quota that many holders share. No holder may have more units than are left for the others.
//!
//! A request is granted if at least as many units stay free as the holder then has ("dynamic thresholds", Choudhury and
//! Hahne 1998). So a single holder can have half of the units, two can have a third each, and so on. A busy holder is
//! not limited while no other holder needs units, and a new holder can always take half of the free ones.
//!
//! Untrusted clients also have a fixed limit. They can have many addresses, so each counts for several holders: an IPv4
//! address also for its /24, with four times the limit, an IPv6 /56 also for its /48, with twice the limit.
//!
//! Units are sessions or bytes. Acquire and release are two atomic operations each. The table of holders is locked only
//! when a session looks up its share and when it ends.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::cidr::{client_prefix, site_prefix};
use model::id::AccountId;

/// The quota is near capacity while less than one part in this many of the units is free.
const NEAR_CAPACITY_DIVISOR: usize = 4;

/// An owner of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaHolder {
    /// A client address: one address of IPv4, one /64 of IPv6.
    Address(IpAddr),
    /// A site: one address of IPv4, one /56 of IPv6.
    Site(IpAddr),
    /// A network of sites: a /24 of IPv4, a /48 of IPv6.
    Network(IpAddr),
    /// The sessions that are authenticated for this account.
    Account(AccountId),
}

impl QuotaHolder {
    /// The client address as a holder.
    pub fn for_address(address: IpAddr) -> Self {
        Self::Address(if address.is_loopback() { address } else { client_prefix(address) })
    }

    /// The site of a client as a holder.
    pub fn for_site(address: IpAddr) -> Self {
        Self::Site(if address.is_loopback() { address } else { site_prefix(address) })
    }

    /// The holders of an untrusted client: its site, and unless it is on loopback, the network of the site.
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

    /// The fixed limit of this holder, if `each` is the limit of one address, site or account.
    fn units_max(self, each: usize) -> usize {
        match self {
            // Loopback is not one untrusted client: it represents local programs and all clients that connect through
            // them.
            Self::Address(address) | Self::Site(address) if address.is_loopback() => usize::MAX,
            Self::Network(IpAddr::V4(_)) => each.saturating_mul(4),
            Self::Network(IpAddr::V6(_)) => each.saturating_mul(2),
            Self::Address(_) | Self::Site(_) | Self::Account(_) => each,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaBounds {
    /// Units of all holders together.
    pub total: usize,
    /// Fixed limit of one holder, however many units are free.
    pub per_holder: usize,
    /// Units that a holder may have while no other holder has any, even if they are more than half.
    pub sole_holder: usize,
}

impl QuotaBounds {
    /// Bounds without a fixed limit per holder.
    pub fn shared(total: usize) -> Self {
        Self { total, per_holder: usize::MAX, sole_holder: 1 }
    }

    /// Only a fixed limit per holder (at least 1).
    pub fn each(per_holder: usize) -> Self {
        Self { total: usize::MAX, per_holder: per_holder.max(1), sole_holder: 0 }
    }
}

#[derive(Debug)]
pub struct FairShareQuota {
    total: AtomicUsize,
    per_holder: AtomicUsize,
    sole_holder: AtomicUsize,
    used: AtomicUsize,
    /// Each holder with the number of its shares and of its units.
    holders: Mutex<HashMap<QuotaHolder, (usize, Arc<AtomicUsize>)>>,
}

impl FairShareQuota {
    /// Creates a quota with no units in use.
    pub fn new(bounds: QuotaBounds) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicUsize::new(bounds.total),
            per_holder: AtomicUsize::new(bounds.per_holder),
            sole_holder: AtomicUsize::new(bounds.sole_holder),
            used: AtomicUsize::new(0),
            holders: Mutex::default(),
        })
    }

    /// Replaces the bounds. Acquired units stay acquired.
    pub fn set_bounds(&self, bounds: QuotaBounds) {
        self.total.store(bounds.total, Ordering::Relaxed);
        self.per_holder.store(bounds.per_holder, Ordering::Relaxed);
        self.sole_holder.store(bounds.sole_holder, Ordering::Relaxed);
    }

    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn free(&self) -> usize {
        self.total().saturating_sub(self.used())
    }

    /// Returns whether few units would be free after `needed` more were acquired.
    pub fn is_near_capacity(&self, needed: usize) -> bool {
        self.free().saturating_sub(needed) < self.total() / NEAR_CAPACITY_DIVISOR
    }

    /// Creates a share that counts for each of `holders`.
    pub fn share_for(self: &Arc<Self>, holders: impl IntoIterator<Item = QuotaHolder>) -> QuotaShare {
        let mut table = self.holders.lock();
        let mut register = |holder| {
            let (shares, count) = table.entry(holder).or_default();
            *shares += 1;
            (holder, Arc::clone(count))
        };
        QuotaShare { quota: Arc::clone(self), holders: holders.into_iter().map(&mut register).collect() }
    }

    /// Acquires a unit before its holder is known; false if none is free.
    pub fn acquire_unit(&self) -> bool {
        let all = self.total();
        let increment = |used: usize| (used < all).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).is_ok()
    }

    /// Releases a unit of [`Self::acquire_unit`].
    pub fn release_unit(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether a holder may have `own` units while `used` are in use in total, its own included.
    fn allows(&self, holder: QuotaHolder, own: usize, used: usize) -> bool {
        let Some(free) = self.total().checked_sub(used) else { return false };
        let bound = holder.units_max(self.per_holder.load(Ordering::Relaxed));
        let is_alone = own >= used;
        own <= free.min(bound) || (is_alone && own <= self.sole_holder.load(Ordering::Relaxed))
    }

    /// Number of holders in the table.
    pub fn holders_known(&self) -> usize {
        self.holders.lock().len()
    }
}

/// A part of a quota that counts for one or more holders; each of them must be within its bounds. A holder is removed
/// from the table with its last share.
#[derive(Debug)]
pub struct QuotaShare {
    quota: Arc<FairShareQuota>,
    holders: Box<[(QuotaHolder, Arc<AtomicUsize>)]>,
}

impl QuotaShare {
    /// Units of the first holder.
    pub fn own_units(&self) -> usize {
        self.holders.first().map_or(0, |(_, count)| count.load(Ordering::Relaxed))
    }

    /// Returns whether `units` more would be granted if no other holder had any.
    pub fn could_acquire(&self, units: usize) -> bool {
        self.holders.iter().all(|(holder, count)| {
            let own = count.load(Ordering::Relaxed).saturating_add(units);
            let bound = holder.units_max(self.quota.per_holder.load(Ordering::Relaxed));
            own <= self.quota.total().saturating_sub(own).min(bound)
        })
    }

    /// Returns whether `units` more would be granted now. They are not reserved.
    pub fn can_acquire(&self, units: usize) -> bool {
        let Some(used) = self.quota.used().checked_add(units) else { return false };
        self.holders.iter().all(|(holder, count)| {
            let own = count.load(Ordering::Relaxed).checked_add(units);
            own.is_some_and(|own| self.quota.allows(*holder, own, used))
        })
    }

    /// Acquires `units`. Returns false, and acquires nothing, if they are not granted.
    pub fn try_acquire(&self, units: usize) -> bool {
        if units > self.quota.total() {
            return false;
        }
        self.add_units(units);
        let increment = |used: usize| used.checked_add(units).filter(|used| self.is_allowed(*used));
        let is_acquired = self.quota.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment).is_ok();
        if !is_acquired {
            self.subtract_units(units);
        }
        is_acquired
    }

    pub fn release(&self, units: usize) {
        self.subtract_units(units);
        self.quota.used.fetch_sub(units, Ordering::AcqRel);
    }

    /// Counts one unit of [`FairShareQuota::acquire_unit`] for the holders, with at most `max` for the first one.
    /// Returns `None`, and counts nothing, if that exceeds a bound.
    pub fn count_unit(self, max: usize) -> Option<QuotaPermit> {
        self.add_units(1);
        let counted = QuotaPermit(self);
        let share = &counted.0;
        let is_within = share.holders.first().is_none_or(|(_, own)| own.load(Ordering::Acquire) <= max);
        (is_within && share.is_allowed(share.quota.used())).then_some(counted)
    }

    /// Returns whether the holders are within their bounds while `used` units are in use in total.
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
        let mut table = self.quota.holders.lock();
        for (holder, _) in &self.holders {
            if let Some((shares, _)) = table.get_mut(holder) {
                *shares -= 1;
                if *shares == 0 {
                    table.remove(holder);
                }
            }
        }
    }
}

/// One unit that counts for its holders until this is dropped. The quota's total is released separately, by
/// [`FairShareQuota::release_unit`].
#[derive(Debug)]
pub struct QuotaPermit(QuotaShare);

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
    fn a_holder_leaves_as_many_units_free_as_it_has() {
        let quota = FairShareQuota::new(QuotaBounds::shared(100));
        let holder = share(&quota, "192.0.2.1");
        assert!(holder.try_acquire(50) && !holder.try_acquire(1));
        let other = share(&quota, "192.0.2.2");
        assert!(other.can_acquire(25) && !other.can_acquire(26) && other.try_acquire(25));
        // However many holders there are, the next one gets some units.
        let third = share(&quota, "192.0.2.3");
        assert!(third.try_acquire(12) && quota.free() == 13);
        holder.release(50);
        assert!(other.try_acquire(12));
        other.release(37);
        third.release(12);
        assert_eq!((quota.used(), quota.free()), (0, 100));
        drop((holder, other, third));
        assert_eq!(quota.holders_known(), 0);
    }

    #[test]
    fn a_sole_holder_has_a_larger_limit() {
        let quota = FairShareQuota::new(QuotaBounds { total: 100, per_holder: 20, sole_holder: 80 });
        let client = share(&quota, "192.0.2.1");
        assert!(client.try_acquire(80) && !client.try_acquire(1));
        client.release(80);
        let two = share(&quota, "192.0.2.2");
        assert!(two.try_acquire(1));
        assert!(client.try_acquire(20) && !client.try_acquire(1), "no longer alone");
        let loopback = share(&quota, "127.0.0.1");
        assert!(loopback.try_acquire(39) && !loopback.try_acquire(1), "loopback has no fixed limit");
    }

    #[test]
    fn a_site_of_ipv6_is_one_holder() {
        let quota = FairShareQuota::new(QuotaBounds { total: 100, per_holder: 10, sole_holder: 10 });
        let (holder, other) = (share(&quota, "2001:db8:0:1::1"), share(&quota, "2001:db8:0:ff::1"));
        assert!(holder.try_acquire(10) && !other.try_acquire(1));
        assert!(share(&quota, "2001:db8:0:100::1").try_acquire(1));
        let (first, second) = (
            QuotaHolder::for_address("2001:db8:0:1::1".parse().unwrap()),
            QuotaHolder::for_address("2001:db8:0:1::2".parse().unwrap()),
        );
        assert_eq!(first, second);
    }

    #[test]
    fn an_untrusted_client_counts_for_its_network_too() {
        let quota = FairShareQuota::new(QuotaBounds { total: 160, per_holder: 10, sole_holder: 10 });
        let untrusted_client = |address: &str| quota.share_for(QuotaHolder::untrusted_client(address.parse().unwrap()));
        let acquired = |addresses: Vec<String>| {
            let shares: Vec<_> = addresses.iter().map(|address| untrusted_client(address)).collect();
            shares.iter().map(|share| (0..20).filter(|_| share.try_acquire(1)).count()).sum::<usize>()
        };
        // A sixteenth for a /56, an eighth for a /48; a sixteenth for an IPv4 address, a quarter for a /24.
        let sites = (0..256_u32).map(|n| format!("2001:db8:0:{:x}::1", n << 8)).collect();
        assert_eq!(acquired(sites), 20);
        assert!(untrusted_client("2001:db8:1::1").try_acquire(1));
        let addresses = (0..256).map(|n| format!("192.0.2.{n}")).collect();
        assert_eq!(acquired(addresses), 40);
        assert!(untrusted_client("192.0.3.1").try_acquire(1));
        let (loopback_v4, loopback_v6) = (untrusted_client("127.0.0.1"), untrusted_client("::1"));
        assert_eq!((0..200).filter(|_| loopback_v4.try_acquire(1)).count(), 49, "loopback has no fixed limit");
        loopback_v4.release(30);
        assert_eq!((0..200).filter(|_| loopback_v6.try_acquire(1)).count(), 39);
    }

    #[test]
    fn the_total_can_fall_below_the_used_units() {
        let quota = FairShareQuota::new(QuotaBounds::shared(100));
        let client = share(&quota, "192.0.2.1");
        assert!(client.try_acquire(40));
        quota.set_bounds(QuotaBounds::shared(10));
        assert!(!client.can_acquire(1) && !client.try_acquire(1) && !quota.acquire_unit() && quota.free() == 0);
        assert!(!client.can_acquire(usize::MAX) && !client.try_acquire(usize::MAX));
        client.release(40);
        assert!(client.try_acquire(5));
    }

    #[test]
    fn connections_are_limited_by_address_and_forgotten() {
        let quota = FairShareQuota::new(QuotaBounds::each(2));
        let acquire =
            |from: &str| quota.share_for([QuotaHolder::for_address(from.parse().unwrap())]).count_unit(usize::MAX);
        let permits =
            [acquire("192.0.2.1"), acquire("::ffff:192.0.2.1"), acquire("2001:db8::1"), acquire("2001:db8::ffff")];
        assert!(permits.iter().all(Option::is_some));
        assert!(acquire("192.0.2.1").is_none() && acquire("2001:db8::2").is_none());
        let others = [acquire("192.0.2.2"), acquire("2001:db8:0:1::1")];
        let loopback = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.0.0.1", "::1", "::1"].map(acquire);
        assert!(others.iter().chain(&loopback).all(Option::is_some));
        drop((permits, others, loopback));
        assert_eq!(quota.holders_known(), 0);
    }
}
