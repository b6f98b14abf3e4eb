//! Work of many accounts side by side, each piece in a lane of its own: what is slow, since a processor is, keeps nobody
//! waiting but its own.
//!
//! ```text
//! what waits, in turn ─► free lanes, a few of each account ─► done; looked for again when the time is up, with what is
//!                                                             under way going on
//! ```

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use futures_util::stream::FuturesUnordered;
use mail::id::AccountId;

/// A piece of work: whose, and which.
pub(crate) type AccountJob<T> = (AccountId, T);

/// Lanes, and what is under way in them.
pub(crate) struct FairExecutor<'a, T, O> {
    /// So many there are.
    number: usize,
    /// So many one account has at most.
    of_each: usize,
    under_way: BTreeSet<AccountJob<T>>,
    work: FuturesUnordered<BoxFuture<'a, (AccountJob<T>, O)>>,
    /// What was begun last: who comes after has its turn next.
    last: Option<AccountJob<T>>,
}

impl<'a, T: Ord + Copy + Send + 'a, O: 'a> FairExecutor<'a, T, O> {
    pub(crate) fn new(number: usize, of_each: usize) -> Self {
        let (under_way, work) = (BTreeSet::new(), FuturesUnordered::new());
        Self { number, of_each, under_way, work, last: None }
    }

    /// Works on what waits, and goes on with what is under way, until all is done or the time is up; what was done by then.
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
                self.under_way.insert(job);
                self.work.push(begin(job).map(move |output| (job, output)).boxed());
                self.last = Some(job);
            }
            match select(self.work.next(), time_is_up.as_mut()).await {
                Either::Left((Some((job, output)), _)) => {
                    self.under_way.remove(&job);
                    done.push(output);
                }
                // Nothing is under way, or the time is up.
                Either::Left((None, _)) | Either::Right(_) => return done,
            }
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    fn in_round_robin(&self, mut waiting: Vec<AccountJob<T>>) -> Vec<AccountJob<T>> {
        waiting.retain(|job| !self.under_way.contains(job));
        waiting.sort_unstable();
        let next = waiting.partition_point(|job| self.last.is_some_and(|last| *job <= last));
        waiting.rotate_left(next);
        waiting
    }

    fn may_start(&self, (account, _): &AccountJob<T>) -> bool {
        let its = self.under_way.iter().filter(|(other, _)| other == account).count();
        self.under_way.len() < self.number && its < self.of_each
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;

    use jiff::Timestamp;

    use super::*;

    fn account(number: u128) -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, number)
    }

    /// Begins with these, of which those of the first account never end; which were begun.
    async fn begun(lanes: &mut FairExecutor<'static, u8, u8>, waiting: &[(u128, u8)]) -> Vec<(u128, u8)> {
        let begun = Mutex::new(Vec::new());
        let jobs = waiting.iter().map(|(number, nth)| (account(*number), *nth)).collect();
        let begin = |(whose, nth): AccountJob<u8>| {
            let number = (1..9).find(|number| account(*number) == whose).unwrap();
            begun.lock().unwrap().push((number, nth));
            if number == 1 { pending().boxed() } else { ready(nth).boxed() }
        };
        // Polled after the work: what can be done is done by then.
        lanes.run(jobs, begin, async {}).await;
        begun.into_inner().unwrap()
    }

    #[tokio::test]
    async fn what_never_ends_keeps_others_neither_waiting_nor_from_their_turn() {
        let mut lanes = FairExecutor::new(3, 2);
        let all = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)];
        assert_eq!(begun(&mut lanes, &all).await, [(1, 1), (1, 2), (2, 1), (3, 1)], "a third has to wait");
        assert!(!lanes.is_idle());
        assert_eq!(begun(&mut lanes, &all).await, [(2, 1), (3, 1)], "nothing is done twice at once");
        let mut narrow = FairExecutor::new(2, 1);
        assert_eq!(begun(&mut narrow, &[(1, 1), (2, 1)]).await, [(1, 1), (2, 1)]);
        assert_eq!(begun(&mut narrow, &[(1, 1), (2, 1), (3, 1)]).await, [(3, 1), (2, 1)], "in turn");
    }
}
