//! A bounded cache whose entries expire after their TTL.
//!
//! It caches only delegations (the name servers of a zone and their addresses), never a record that is checked.

use std::hash::Hash;
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

/// Upper bound of the TTL, since customers move their zones.
const TTL_MAX: Duration = Duration::from_secs(6 * 3_600);
/// Lower bound of the TTL, so that one check needs one query.
const TTL_MIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct TtlCache<K, V>(Cache<K, (Instant, V)>);

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    pub(super) fn new(entries_max: usize) -> Self {
        Self(Cache::new(entries_max))
    }

    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        self.0.get(key).filter(|(until, _)| *until > now).map(|(_, value)| value)
    }

    pub(super) fn put(&self, key: K, value: V, ttl: Duration, now: Instant) {
        self.0.insert(key, (now + ttl.clamp(TTL_MIN, TTL_MAX), value));
    }

    pub(super) fn remove(&self, key: &K) {
        self.0.remove(key);
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
        assert!(cache.0.len() <= 2);
        assert_eq!(cache.get(&"d", now), Some(4));
        cache.remove(&"d");
        assert_eq!(cache.get(&"d", now), None);
    }
}
