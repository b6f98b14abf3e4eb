//! Counters by key in bounded memory, each with a time: of the last increment, or of the first.
//!
//! A full table evicts the expired entries, and if there are none, the oldest eighth. So an attack from very many
//! addresses mostly evicts its own addresses, and recently updated counters of others stay.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug, Clone, Copy)]
pub struct CounterEntry<T> {
    pub count: u32,
    pub at: T,
}

/// A map of counters with at most `entries_max` entries.
#[derive(Debug)]
pub struct BoundedCounters<K, T> {
    entries: HashMap<K, CounterEntry<T>>,
    entries_max: usize,
}

impl<K: Hash + Eq, T: Copy + Ord> BoundedCounters<K, T> {
    pub fn new(entries_max: usize) -> Self {
        Self { entries: HashMap::new(), entries_max }
    }

    /// Returns the counter of a key, unless it is expired. `is_expired` decides that from the entry's time.
    pub fn get(&self, key: &K, is_expired: impl Fn(T) -> bool) -> Option<CounterEntry<T>> {
        self.entries.get(key).copied().filter(|entry| !is_expired(entry.at))
    }

    /// Returns the counter of a key for an update. A new or expired counter starts at 0.
    pub fn entry(&mut self, key: K, now: T, is_expired: impl Fn(T) -> bool) -> &mut CounterEntry<T> {
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(&key) {
            self.entries.retain(|_, entry| !is_expired(entry.at));
            self.evict_oldest_among(self.entries_max, |_| true);
        }
        let entry = self.entries.entry(key).or_insert(CounterEntry { count: 0, at: now });
        if is_expired(entry.at) {
            *entry = CounterEntry { count: 0, at: now };
        }
        entry
    }

    /// Evicts the oldest entries for which `is_candidate` is true, so that one more fits among at most `entries_max` of
    /// them. Scans all entries.
    pub fn evict_oldest_among(&mut self, entries_max: usize, is_candidate: impl Fn(T) -> bool) {
        let times = || self.entries.values().map(|entry| entry.at).filter(|at| is_candidate(*at));
        let count = times().count();
        if count < entries_max {
            return;
        }
        let too_many = (count + entries_max.div_ceil(8)).saturating_sub(entries_max);
        let Some(last) = too_many.checked_sub(1) else { return };
        let mut times: Vec<T> = times().collect();
        if last < times.len() {
            let (_, oldest, _) = times.select_nth_unstable(last);
            let oldest = *oldest;
            // Several entries can have the same time, so the number of evictions is limited too.
            let mut left = too_many;
            self.entries.retain(|_, entry| {
                let is_evicted = left > 0 && entry.at <= oldest && is_candidate(entry.at);
                left -= usize::from(is_evicted);
                !is_evicted
            });
        }
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any counter.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_evicts_expired_and_then_the_oldest_entries() {
        let mut counts = BoundedCounters::new(16);
        for n in 0..1_000_u32 {
            counts.entry(n, n, |_| false).count += 1;
            // A counter that is updated all the time is not evicted.
            let busy = counts.entry(0, n, |_| false);
            (busy.count, busy.at) = (busy.count + 1, n);
            assert!(counts.len() <= 16);
        }
        assert_eq!(counts.get(&0, |_| false).unwrap().count, 1_001);
        assert!(counts.get(&1, |_| false).is_none() && counts.get(&999, |_| false).is_some());
        for n in 0..1_000 {
            counts.entry(2_000 + n, 5_000, |at| at < 2_000).count += 1;
        }
        assert!(counts.get(&0, |_| false).is_none() && counts.len() <= 16, "evicts among entries of the same time");
    }

    #[test]
    fn only_candidates_are_evicted() {
        let mut counts = BoundedCounters::new(100);
        for n in 0..40_u32 {
            counts.evict_oldest_among(8, |(_, is_candidate)| is_candidate);
            counts.entry(n, (n, n % 2 == 1), |_| false);
        }
        let is_counted = |n: u32| counts.get(&n, |_| false).is_some();
        assert!((0..40).step_by(2).all(is_counted) && is_counted(39) && !is_counted(1));
        assert_eq!((1..40).step_by(2).filter(|n| is_counted(*n)).count(), 8);
    }
}
