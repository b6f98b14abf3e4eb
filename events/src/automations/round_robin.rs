//! Round-robin over accounts: each account gets one piece of due work in turn, so that a hundred thousand runs of one
//! account, due at nine, do not delay another account's.
//!
//! The scan of a partition is bounded: it reads the oldest due work and the newest, since another account's work may be
//! behind a flood. Work between the two ends of one account's flood waits until one end reaches it.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use model::id::AccountId;
use store::automation_run::due_work::DueWork;

/// Due work with its partition and due time.
pub(super) type PartitionWork = (u16, (Timestamp, DueWork));

/// Account of the work; `None` for a damaged row.
fn account_of((_, (_, due)): &PartitionWork) -> Option<AccountId> {
    match due {
        DueWork::Step(run_key) => Some(run_key.0),
        DueWork::Job(found) => Some(found.job.account),
        DueWork::Damaged(_) => None,
    }
}

/// Selects at most `limit` pieces round-robin by account, in the given order within an account. Returns them and the
/// rest.
pub(super) fn round_robin(work: Vec<PartitionWork>, limit: usize) -> (Vec<PartitionWork>, Vec<PartitionWork>) {
    let (mut accounts, mut queues): (VecDeque<_>, HashMap<_, VecDeque<PartitionWork>>) = Default::default();
    for item in work {
        let account = account_of(&item);
        let account_queue = queues.entry(account).or_default();
        if account_queue.is_empty() {
            accounts.push_back(account);
        }
        account_queue.push_back(item);
    }
    let mut next = Vec::new();
    while next.len() < limit
        && let Some(account) = accounts.pop_front()
    {
        let Some(account_queue) = queues.get_mut(&account) else { continue };
        next.extend(account_queue.pop_front());
        if !account_queue.is_empty() {
            accounts.push_back(account);
        }
    }
    (next, queues.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::automation::job;
    use model::id::{AutomationId, EventId};
    use store::engine::{Batch, Store};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn a_flood_of_runs_does_not_delay_other_accounts() {
        let (store, partition) = (Store::memory(), 3);
        let account = |n: u128| AccountId::new(at(0), n);
        let mut batch = Batch::progress();
        let mut put = |account_number: u128, n: u128, due: i64| {
            let work = job::AutomationJobKind::Release { automation: AutomationId::new(at(0), n) };
            let id = EventId::new(at(0), n);
            let job = job::AutomationJob { id, account: account(account_number), partition, due: at(due), work };
            store::automation_run::due_work::put_job(&mut batch, &job);
        };
        // A thousand are due at once, then one of each of two other accounts, and one that is not due yet.
        for n in 0..1_000 {
            put(1, n, 100);
        }
        put(2, 2_000, 101);
        put(3, 3_000, 102);
        put(2, 2_001, 200);
        store.commit(batch).await.unwrap();
        let page = store::automation_run::due_work::list_oldest_and_newest_due(&store, partition, at(150), 20, None)
            .await
            .unwrap();
        assert!(page.has_more && page.due.len() == 40, "{page:?}");
        let work = page.due.into_iter().map(|due| (partition, due)).collect();
        let (next, left) = round_robin(work, 6);
        let accounts: Vec<_> = next.iter().filter_map(account_of).collect();
        assert_eq!(accounts, [1, 2, 3, 1, 1, 1].map(account));
        assert_eq!(left.len(), 34);
        // Within an account, the work that is due the longest is first.
        assert!(next.iter().all(|(_, (due, _))| *due <= at(102)));
        // With a large page, all due work is read at once.
        let full_page =
            store::automation_run::due_work::list_oldest_and_newest_due(&store, partition, at(150), 2_000, None)
                .await
                .unwrap();
        assert_eq!((full_page.due.len(), full_page.has_more, full_page.later), (1_002, false, Some(at(200))));
    }
}
