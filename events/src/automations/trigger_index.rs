//! Trigger index: which event names start, resume or cancel runs of an account, and when partitions have due work.
//!
//! An account without automations costs one cache lookup for each event. An entry is cached for one second; a change on
//! this node invalidates it at once.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::automation::job::{AutomationJob, AutomationJobKind};
use model::id::AccountId;
use queue::scheduler::partition_timers::PartitionTimers;
use quick_cache::unsync::Cache;
use store::engine::{Batch, ReadError, Store};
use store::outbox::OutboxEntry;

/// TTL of an account's cached trigger names.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Cached accounts.
const CACHED_ACCOUNTS_MAX: usize = 10_000;

/// Event names that trigger; `None` if there are too many to cache, so that every event matches.
type TriggerNames = Option<Arc<HashSet<String>>>;

#[derive(Debug)]
struct TriggerCache {
    accounts: Cache<AccountId, (Timestamp, TriggerNames)>,
    /// Number of invalidations: names that were read before an invalidation are not cached after it.
    invalidations: u64,
}

impl Default for TriggerCache {
    fn default() -> Self {
        Self { accounts: Cache::new(CACHED_ACCOUNTS_MAX), invalidations: 0 }
    }
}

/// Trigger names by account, and the timers of partitions with due work.
#[derive(Debug, Default)]
pub(crate) struct TriggerIndex {
    cache: Mutex<TriggerCache>,
    pub(crate) timers: PartitionTimers,
}

impl TriggerIndex {
    /// Returns whether an automation of the account may react to this event.
    pub(crate) async fn has_trigger(
        &self,
        store: &Store,
        account: AccountId,
        event: &str,
        now: Timestamp,
    ) -> Result<bool, ReadError> {
        let has_event = |names: &TriggerNames| names.as_ref().is_none_or(|names| names.contains(event));
        let latest = now.checked_add(CACHE_TTL).unwrap_or(now);
        let invalidations = {
            let remembered = self.cache.lock();
            // Ignore entries from the future, which exist when the clock was set back.
            let cached = remembered.accounts.get(&account).filter(|(until, _)| *until > now && *until <= latest);
            if let Some((_, names)) = cached {
                return Ok(has_event(names));
            }
            remembered.invalidations
        };
        let names = store::automation::list_trigger_events(store, account).await?.map(Arc::new);
        let is_subscribed = has_event(&names);
        let mut remembered = self.cache.lock();
        if remembered.invalidations == invalidations {
            remembered.accounts.insert(account, (latest, names));
        }
        Ok(is_subscribed)
    }

    /// Forgets the cached names of an account.
    pub(crate) fn invalidate(&self, account: AccountId) {
        let mut remembered = self.cache.lock();
        remembered.invalidations += 1;
        remembered.accounts.remove(&account);
    }

    /// Enqueues a job for each event that an automation reacts to, in the commit that dispatches the events. Returns
    /// the partitions of the jobs.
    pub(crate) async fn enqueue_trigger_jobs(
        &self,
        store: &Store,
        batch: &mut Batch,
        undispatched: &[OutboxEntry],
        now: Timestamp,
    ) -> Result<HashSet<u16>, ReadError> {
        let mut partitions = HashSet::new();
        for entry in undispatched {
            let Some(event) = entry.event.as_ref().filter(|event| event.kind.can_trigger_automations()) else {
                continue;
            };
            if !self.has_trigger(store, event.account, event.kind.name(), now).await? {
                continue;
            }
            let work = AutomationJobKind::Hear { subject: event.subject, event: event.id };
            let (id, account, partition) = (event.id, event.account, entry.partition);
            store::automation_run::due_work::put_job(batch, &AutomationJob { id, account, partition, due: now, work });
            partitions.insert(partition);
        }
        Ok(partitions)
    }

    /// Schedules a scan of these partitions at `now`.
    pub(crate) fn wake_at(&self, partitions: &HashSet<u16>, now: Timestamp) {
        partitions.iter().for_each(|partition| self.timers.schedule(*partition, now));
    }
}
