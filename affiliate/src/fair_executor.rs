//! Fair executor: runs jobs of many accounts concurrently, a bounded number per account, in round robin. A slow
//! processor delays only its own account.
//!
//! ```text
//! waiting jobs, in round robin ─► free slots, at most `per_account` per account ─► outputs
//!                                 when the time is up, running jobs stay and continue in the next call
//! ```

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use futures_util::stream::FuturesUnordered;
use model::id::AccountId;

/// A job, identified by its account and an id.
pub(crate) type AccountJob<T> = (AccountId, T);

/// Bounded executor and its running jobs.
pub(crate) struct FairExecutor<'a, T, O> {
    /// Maximum number of running jobs.
    number: usize,
    /// Maximum number of running jobs per account.
    per_account: usize,
    running: BTreeSet<AccountJob<T>>,
    work: FuturesUnordered<BoxFuture<'a, (AccountJob<T>, O)>>,
    /// The job that was started last; the next one in order is started next.
    last: Option<AccountJob<T>>,
}

impl<'a, T: Ord + Copy + Send + 'a, O: 'a> FairExecutor<'a, T, O> {
    pub(crate) fn new(number: usize, per_account: usize) -> Self {
        let (running, work) = (BTreeSet::new(), FuturesUnordered::new());
        Self { number, per_account, running, work, last: None }
    }

    /// Starts waiting jobs and polls running ones until all are done or `time_is_up` resolves. Returns the outputs of
    /// the jobs that finished.
    pub(crate) async fn run<F>(
        &mut self,
        waiting: Vec<AccountJob<T>>,
        begin: impl Fn(AccountJob<T>) -> F,
        time_is_up: impl Future<Output = ()>,
    ) -> Vec<O>
    where
        F: Future<Output = O> + Send + 'a,
    {
        let (mut waiting, mut done) = (self.in_round_robin(waiting), Vec::new());
        let mut time_is_up = pin!(time_is_up);
        loop {
            while let Some(nth) = waiting.iter().position(|job| self.may_start(job)) {
                let job = waiting.remove(nth);
                self.running.insert(job);
                self.work.push(begin(job).map(move |output| (job, output)).boxed());
                self.last = Some(job);
            }
            match select(self.work.next(), time_is_up.as_mut()).await {
                Either::Left((Some((job, output)), _)) => {
                    self.running.remove(&job);
                    done.push(output);
                }
                // No job is running, or the time is up.
                Either::Left((None, _)) | Either::Right(_) => return done,
            }
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    fn in_round_robin(&self, mut waiting: Vec<AccountJob<T>>) -> Vec<AccountJob<T>> {
        waiting.retain(|job| !self.running.contains(job));
        waiting.sort_unstable();
        let next = waiting.partition_point(|job| self.last.is_some_and(|last| *job <= last));
        waiting.rotate_left(next);
        waiting
    }

    fn may_start(&self, (account, _): &AccountJob<T>) -> bool {
        let account_jobs = self.running.iter().filter(|(other, _)| other == account).count();
        self.running.len() < self.number && account_jobs < self.per_account
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::future::{pending, ready};

    use jiff::Timestamp;

    use super::*;

    fn account(number: u128) -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, number)
    }

    /// Runs these jobs, of which those of account 1 never end. Returns the jobs that were started.
    async fn started_jobs(lanes: &mut FairExecutor<'static, u8, u8>, waiting: &[(u128, u8)]) -> Vec<(u128, u8)> {
        let started = Mutex::new(Vec::new());
        let jobs = waiting.iter().map(|(number, job)| (account(*number), *job)).collect();
        let start = |(account_id, job): AccountJob<u8>| {
            let number = (1..9).find(|number| account(*number) == account_id).unwrap();
            started.lock().push((number, job));
            if number == 1 { pending().boxed() } else { ready(job).boxed() }
        };
        // The timer is polled after the jobs, so jobs that are ready finish first.
        lanes.run(jobs, start, async {}).await;
        started.into_inner()
    }

    #[tokio::test]
    async fn an_endless_job_does_not_block_other_accounts() {
        let mut lanes = FairExecutor::new(3, 2);
        let all = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)];
        assert_eq!(
            started_jobs(&mut lanes, &all).await,
            [(1, 1), (1, 2), (2, 1), (3, 1)],
            "the third job of an account waits"
        );
        assert!(!lanes.is_idle());
        assert_eq!(started_jobs(&mut lanes, &all).await, [(2, 1), (3, 1)], "a running job is not started again");
        let mut narrow = FairExecutor::new(2, 1);
        assert_eq!(started_jobs(&mut narrow, &[(1, 1), (2, 1)]).await, [(1, 1), (2, 1)]);
        assert_eq!(started_jobs(&mut narrow, &[(1, 1), (2, 1), (3, 1)]).await, [(3, 1), (2, 1)], "round robin");
    }
}
