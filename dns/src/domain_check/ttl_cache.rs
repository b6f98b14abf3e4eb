//! A bounded cache whose entries expire after their TTL.
//!
//! It caches only delegations (the name servers of a zone and their addresses), never a record that is checked.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Upper bound of the TTL, since customers move their zones.
const TTL_MAX: Duration = Duration::from_secs(6 * 3_600);
/// Lower bound of the TTL, so that one check needs one query.
const TTL_MIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct TtlCache<K, V> {
    entries_max: usize,
    entries: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries_max, entries: Mutex::new(HashMap::new()) }
    }

    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).filter(|(until, _)| *until > now).map(|(_, value)| value.clone())
    }

    /// Inserts an entry. A full cache evicts the expired entries, and if that is not enough, all of them.
    pub(super) fn put(&self, key: K, value: V, ttl: Duration, now: Instant) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.entries_max {
            entries.retain(|_, (until, _)| *until > now);
            if entries.len() >= self.entries_max {
                entries.clear();
            }
        }
        entries.insert(key, (now + ttl.clamp(TTL_MIN, TTL_MAX), value));
    }

    pub(super) fn remove(&self, key: &K) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_and_their_number_is_bounded() {
        let (cache, now, minute) = (TtlCache::new(2), Instant::now(), Duration::from_secs(60));
        cache.put("a", 1, minute, now);
        assert_eq!(cache.get(&"a", now), Some(1));
        assert_eq!(cache.get(&"a", now + minute), None);
        for (key, value) in [("b", 2), ("c", 3), ("d", 4)] {
            cache.put(key, value, minute, now);
        }
        assert!(cache.entries.lock().unwrap().len() <= 2);
        assert_eq!(cache.get(&"d", now), Some(4));
        cache.remove(&"d");
        assert_eq!(cache.get(&"d", now), None);
    }
}
