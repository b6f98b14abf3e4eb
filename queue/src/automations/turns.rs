//! Turns: of what is due, who goes next. Accounts take turns, one piece of work each, so that one's hundred thousand
//! runs that are due at nine do not keep another's waiting.
//!
//! What is looked at of a partition is bounded: what is due the longest, and what became due just now, which another
//! account's may be behind a flood. What lies between two ends of one account's flood waits for one end to reach it.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use mail::id::AccountId;
use store::run::due::DueWork;

/// Something due, and in which partition.
pub(super) type PartitionWork = (u16, (Timestamp, DueWork));

/// Whose it is; nobody's, when its row is damaged.
fn account_of((_, (_, due)): &PartitionWork) -> Option<AccountId> {
    match due {
        DueWork::Step(about) => Some(about.0),
        DueWork::Job(found) => Some(found.job.account),
        DueWork::Damaged(_) => None,
    }
}

/// At most so many, in turns by account, of each in the order in which they are given; and those that are left.
pub(super) fn round_robin(work: Vec<PartitionWork>, limit: usize) -> (Vec<PartitionWork>, Vec<PartitionWork>) {
    let (mut accounts, mut lines): (VecDeque<_>, HashMap<_, VecDeque<PartitionWork>>) = Default::default();
    for one in work {
        let account = account_of(&one);
        let line = lines.entry(account).or_default();
        if line.is_empty() {
            accounts.push_back(account);
        }
        line.push_back(one);
    }
    let mut next = Vec::new();
    while next.len() < limit
        && let Some(account) = accounts.pop_front()
    {
        let Some(line) = lines.get_mut(&account) else { continue };
        next.extend(line.pop_front());
        if !line.is_empty() {
            accounts.push_back(account);
        }
    }
    (next, lines.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::automation::job;
    use mail::id::{AutomationId, EventId};
    use store::engine::{Batch, Store};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn a_flood_keeps_nobody_waiting() {
        let (store, partition) = (Store::memory(), 3);
        let account = |n: u128| AccountId::new(at(0), n);
        let mut batch = Batch::progress();
        let mut put = |of: u128, n: u128, due: i64| {
            let work = job::AutomationJobKind::Release { automation: AutomationId::new(at(0), n) };
            let id = EventId::new(at(0), n);
            let job = job::AutomationJob { id, account: account(of), partition, due: at(due), work };
            store::run::due::put_job(&mut batch, &job);
        };
        // A thousand are due at once; then one of each of two others, and one that is not due yet.
        for n in 0..1_000 {
            put(1, n, 100);
        }
        put(2, 2_000, 101);
        put(3, 3_000, 102);
        put(2, 2_001, 200);
        store.commit(batch).await.unwrap();
        let seen = store::run::due::list_oldest_and_newest_due(&store, partition, at(150), 20).await.unwrap();
        assert!(seen.more && seen.due.len() == 40, "{seen:?}");
        let work = seen.due.into_iter().map(|due| (partition, due)).collect();
        let (next, left) = round_robin(work, 6);
        let whose: Vec<_> = next.iter().filter_map(account_of).collect();
        assert_eq!(whose, [1, 2, 3, 1, 1, 1].map(account));
        assert_eq!(left.len(), 34);
        // Of one account the longest due goes first.
        assert!(next.iter().all(|(_, (due, _))| *due <= at(102)));
        // Nobody else's: all at once.
        let alone = store::run::due::list_oldest_and_newest_due(&store, partition, at(150), 2_000).await.unwrap();
        assert_eq!((alone.due.len(), alone.more, alone.later), (1_002, false, Some(at(200))));
    }
}
