//! A quota that many share: so many units, of which no holder may have more than is left for the others.
//!
//! One holder alone may have half of the units, two may have a third each, and so on: what a holder asks for is
//! granted while the units that stay free are at least as many as the holder has ("dynamic thresholds", Choudhury
//! and Hahne 1998). So a busy holder is not held back while nobody else wants anything, and a newcomer may always
//! take half of what is free. Strangers have a fixed bound beside it.
//!
//! Units are sessions ([`crate::peers`]) or bytes ([`crate::budget`]). Taking and giving back are two atomic
//! operations; the table of holders is locked only when a session looks up its share, and when it ends.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::id::AccountId;
use mail::network::{counted, counted_site};

/// Who has units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A client address: one address of IPv4, one /64 of IPv6.
    Address(IpAddr),
    /// A site: one address of IPv4, one /56 of IPv6.
    Site(IpAddr),
    /// Whoever logged in for this account.
    Account(AccountId),
}

impl Holder {
    /// The client address.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self::Address(counted(address))
    }

    /// The site of a client.
    #[must_use]
    pub fn site(address: IpAddr) -> Self {
        Self::Site(counted_site(address))
    }

    /// Programs of this machine, and whoever comes through one of them, are not one stranger.
    fn is_this_machine(self) -> bool {
        matches!(self, Self::Address(address) | Self::Site(address) if address.is_loopback())
    }
}

/// The bounds of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Units of all.
    pub all: usize,
    /// Units of one holder, whatever is free.
    pub each: usize,
    /// Units of a holder while no other has any, although more than half of all.
    pub alone: usize,
}

impl Bounds {
    /// So many, and no bound for one holder but what it leaves free.
    #[must_use]
    pub fn shared(all: usize) -> Self {
        Self { all, each: usize::MAX, alone: 1 }
    }
}

/// The quota.
#[derive(Debug)]
pub struct Quota {
    all: AtomicUsize,
    each: AtomicUsize,
    alone: AtomicUsize,
    used: AtomicUsize,
    /// Who has a share: in how many places, and how many units.
    holders: Mutex<HashMap<Holder, (usize, Arc<AtomicUsize>)>>,
}

impl Quota {
    /// A quota of which nothing is taken.
    #[must_use]
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            all: AtomicUsize::new(bounds.all),
            each: AtomicUsize::new(bounds.each),
            alone: AtomicUsize::new(bounds.alone),
            used: AtomicUsize::new(0),
            holders: Mutex::default(),
        })
    }

    /// Has these bounds from now on. What is taken stays taken.
    pub fn set(&self, bounds: Bounds) {
        self.all.store(bounds.all, Ordering::Relaxed);
        self.each.store(bounds.each, Ordering::Relaxed);
        self.alone.store(bounds.alone, Ordering::Relaxed);
    }

    /// Units of all.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Units that are taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Units that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.all().saturating_sub(self.used())
    }

    /// The share of a holder.
    #[must_use]
    pub fn share(self: &Arc<Self>, holder: Holder) -> Share {
        let mut holders = self.holders();
        let (places, count) = holders.entry(holder).or_default();
        *places += 1;
        Share { quota: Arc::clone(self), holder, count: Arc::clone(count) }
    }

    /// Takes a unit for somebody who is not known yet; `false` when none is free.
    pub(crate) fn take_one(&self) -> bool {
        let all = self.all();
        let room = |used: usize| (used < all).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    }

    /// Gives back a unit that [`Self::take_one`] took.
    pub(crate) fn give_one(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<Holder, (usize, Arc<AtomicUsize>)>> {
        // The table is whole after every statement: a panic elsewhere did not break it.
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a holder may have `own` units when `used` are taken in all, its own among them.
    fn grants(&self, holder: Holder, own: usize, used: usize) -> bool {
        let Some(free) = self.all().checked_sub(used) else { return false };
        let each = if holder.is_this_machine() { usize::MAX } else { self.each.load(Ordering::Relaxed) };
        let is_alone = own >= used;
        own <= free.min(each) || (is_alone && own <= self.alone.load(Ordering::Relaxed))
    }

    #[cfg(test)]
    pub(crate) fn holders_known(&self) -> usize {
        self.holders().len()
    }
}

/// What a holder has of a quota. It is forgotten when it is held nowhere any more.
#[derive(Debug)]
pub struct Share {
    quota: Arc<Quota>,
    holder: Holder,
    count: Arc<AtomicUsize>,
}

impl Share {
    /// The quota.
    #[must_use]
    pub fn quota(&self) -> &Arc<Quota> {
        &self.quota
    }

    /// Whether so many more would be granted now. They may be gone a moment later.
    #[must_use]
    pub fn has(&self, units: usize) -> bool {
        let (own, used) = (self.count.load(Ordering::Relaxed), self.quota.used());
        match (own.checked_add(units), used.checked_add(units)) {
            (Some(own), Some(used)) => self.quota.grants(self.holder, own, used),
            _ => false,
        }
    }

    /// Takes more; `false`, and nothing taken, when so many are not granted.
    #[must_use]
    pub fn take(&self, units: usize) -> bool {
        if units > self.quota.all() {
            return false;
        }
        let own = self.count.fetch_add(units, Ordering::AcqRel) + units;
        let room =
            |used: usize| used.checked_add(units).filter(|used| self.quota.grants(self.holder, own, *used));
        let taken = self.quota.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok();
        if !taken {
            self.count.fetch_sub(units, Ordering::AcqRel);
        }
        taken
    }

    /// Gives back.
    pub fn give(&self, units: usize) {
        self.count.fetch_sub(units, Ordering::AcqRel);
        self.quota.used.fetch_sub(units, Ordering::AcqRel);
    }

    /// Counts one unit, which [`Quota::take_one`] took, for this holder: at most `max`, and no more than the quota
    /// grants. `None`, and nothing counted, when it is too much.
    pub(crate) fn count_one(self, max: usize) -> Option<Counted> {
        let own = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        let counted = Counted(self);
        let share = &counted.0;
        (own <= max && share.quota.grants(share.holder, own, share.quota.used())).then_some(counted)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut holders = self.quota.holders();
        if let Some((places, _)) = holders.get_mut(&self.holder) {
            *places -= 1;
            if *places == 0 {
                holders.remove(&self.holder);
            }
        }
    }
}

/// One unit, counted for a holder until this is dropped. (The quota's own count goes on: [`Quota::give_one`].)
#[derive(Debug)]
pub(crate) struct Counted(Share);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(quota: &Arc<Quota>, address: &str) -> Share {
        quota.share(Holder::site(address.parse().unwrap()))
    }

    #[test]
    fn a_holder_leaves_as_much_free_as_it_has() {
        let quota = Quota::new(Bounds::shared(100));
        let one = share(&quota, "192.0.2.1");
        assert!(one.take(50) && !one.take(1));
        let two = share(&quota, "192.0.2.2");
        assert!(two.has(25) && !two.has(26) && two.take(25));
        // However many there are, the next one finds something.
        let three = share(&quota, "192.0.2.3");
        assert!(three.take(12) && quota.free() == 13);
        one.give(50);
        assert!(two.take(12));
        two.give(37);
        three.give(12);
        assert_eq!((quota.used(), quota.free()), (0, 100));
        drop((one, two, three));
        assert_eq!(quota.holders_known(), 0);
    }

    #[test]
    fn who_is_alone_may_have_its_largest_message_and_a_stranger_no_more_than_a_bound() {
        let quota = Quota::new(Bounds { all: 100, each: 20, alone: 80 });
        let one = share(&quota, "192.0.2.1");
        assert!(one.take(80) && !one.take(1));
        one.give(80);
        let two = share(&quota, "192.0.2.2");
        assert!(two.take(1));
        assert!(one.take(20) && !one.take(1), "no longer alone");
        let here = share(&quota, "127.0.0.1");
        assert!(here.take(39) && !here.take(1), "this machine has no bound but what is free");
    }

    #[test]
    fn a_site_of_ipv6_is_one_holder() {
        let quota = Quota::new(Bounds { all: 100, each: 10, alone: 10 });
        let (one, two) = (share(&quota, "2001:db8:0:1::1"), share(&quota, "2001:db8:0:ff::1"));
        assert!(one.take(10) && !two.take(1));
        assert!(share(&quota, "2001:db8:0:100::1").take(1));
        let (first, second) = (
            Holder::address("2001:db8:0:1::1".parse().unwrap()),
            Holder::address("2001:db8:0:1::2".parse().unwrap()),
        );
        assert_eq!(first, second);
    }

    #[test]
    fn fewer_units_than_are_taken() {
        let quota = Quota::new(Bounds::shared(100));
        let one = share(&quota, "192.0.2.1");
        assert!(one.take(40));
        quota.set(Bounds::shared(10));
        assert!(!one.has(1) && !one.take(1) && !quota.take_one() && quota.free() == 0);
        assert!(!one.has(usize::MAX) && !one.take(usize::MAX));
        one.give(40);
        assert!(one.take(5));
    }
}
