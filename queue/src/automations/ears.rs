//! Ears: which events the automations of an account hear, and when there is something to do.
//!
//! Whoever has no automations pays a look into a table for each event. What was found is believed for a second;
//! a change at this node is heeded at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mail::automation::job::{AutomationJob, AutomationJobKind};
use mail::id::AccountId;
use store::engine::{Batch, ReadError, Store};
use store::outbox::OutboxEntry;

use crate::appointments::PartitionTimers;

/// How long what was found is taken as found.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Accounts remembered; beyond it all are looked up anew.
const CACHED_ACCOUNTS_MAX: usize = 10_000;

/// The names heard; none when they are too many to be remembered.
type TriggerNames = Option<Arc<HashSet<String>>>;

#[derive(Debug, Default)]
struct TriggerCache {
    accounts: HashMap<AccountId, (Timestamp, TriggerNames)>,
    /// How often something was forgotten: what was read before is not remembered after.
    invalidations: u64,
}

/// What automations hear, and when they have something to do.
#[derive(Debug, Default)]
pub(crate) struct TriggerIndex {
    cache: Mutex<TriggerCache>,
    pub(crate) timers: PartitionTimers,
}

impl TriggerIndex {
    /// Whether some automation of the account may hear this event.
    pub(crate) async fn has_trigger(
        &self,
        store: &Store,
        (account, event): (AccountId, &str),
        now: Timestamp,
    ) -> Result<bool, ReadError> {
        let hears = |names: &TriggerNames| names.as_ref().is_none_or(|names| names.contains(event));
        let latest = now.checked_add(CACHE_TTL).unwrap_or(now);
        let forgotten = {
            let remembered = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            // Not from a future that a clock set back has made of it.
            let kept = remembered.accounts.get(&account).filter(|(until, _)| *until > now && *until <= latest);
            if let Some((_, names)) = kept {
                return Ok(hears(names));
            }
            remembered.invalidations
        };
        let names = store::automation::list_trigger_events(store, account).await?.map(Arc::new);
        let heard = hears(&names);
        let mut remembered = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.invalidations == forgotten {
            if remembered.accounts.len() >= CACHED_ACCOUNTS_MAX {
                remembered.accounts.clear();
            }
            remembered.accounts.insert(account, (latest, names));
        }
        Ok(heard)
    }

    /// Something of the account's automations was changed.
    pub(crate) fn invalidate(&self, account: AccountId) {
        let mut remembered = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.invalidations += 1;
        remembered.accounts.remove(&account);
    }

    /// Leaves a job for each event that some automation hears, in the commit that tells the events. Says in which
    /// partitions.
    pub(crate) async fn enqueue_trigger_jobs(
        &self,
        store: &Store,
        batch: &mut Batch,
        untold: &[OutboxEntry],
        now: Timestamp,
    ) -> Result<HashSet<u16>, ReadError> {
        let mut partitions = HashSet::new();
        for one in untold {
            let Some(event) = one.event.as_ref().filter(|event| event.kind.can_trigger_automations()) else {
                continue;
            };
            if !self.has_trigger(store, (event.account, event.kind.name()), now).await? {
                continue;
            }
            let work = AutomationJobKind::Hear { subject: event.subject, event: event.id };
            let (id, account, partition) = (event.id, event.account, one.partition);
            store::run::due::put_job(batch, &AutomationJob { id, account, partition, due: now, work });
            partitions.insert(partition);
        }
        Ok(partitions)
    }

    /// There is something to do in these partitions.
    pub(crate) fn wake_at(&self, partitions: &HashSet<u16>, now: Timestamp) {
        partitions.iter().for_each(|partition| self.timers.schedule(*partition, now));
    }
}
