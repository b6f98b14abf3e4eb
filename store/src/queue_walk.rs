//! Reads queued tasks that match a filter, page by page, and stops after a number of rows.
//!
//! ```text
//! filter by domain ─► the domain's keys in each partition ─┐
//! other filters ────► all tasks ───────────────────────────┴─► pages in key order ─► tasks that match
//! ```
//!
//! A page that ends in a queue without matches is followed by the next queue, so long queues of other domains and
//! accounts cost one page each.

use std::collections::VecDeque;
use std::ops::Range;

use model::task_filter::TaskFilter;

use crate::engine::{Key, Result, ScanOrder, Store};
use crate::task::{self, PARTITIONS, TaskPage};

/// Rows per read of the store.
const PAGE_ROWS: usize = 500;

/// A bounded read of the queue, over all partitions.
#[derive(Debug)]
pub struct QueueWalk<'a> {
    store: &'a Store,
    filter: TaskFilter,
    /// Keys that are not read yet.
    ranges: VecDeque<Range<Key>>,
    rows_read: usize,
    rows_max: usize,
}

impl<'a> QueueWalk<'a> {
    /// A walk that reads at most `rows_max` rows, those that do not match included.
    pub fn new(store: &'a Store, filter: TaskFilter, rows_max: usize) -> Self {
        let ranges = match &filter.to {
            Some(domain) => (0..PARTITIONS).map(|partition| task::domain_range(partition, domain)).collect(),
            None => VecDeque::from([task::all_range()]),
        };
        Self { store, filter, ranges, rows_read: 0, rows_max }
    }

    /// Skips the tasks before a key: [`QueueWalk::rest`] of an earlier walk, or the key of a task.
    pub fn starting_at(mut self, start: &Key) -> Self {
        self.ranges.retain(|range| range.end > *start);
        if let Some(first) = self.ranges.front_mut()
            && first.start < *start
        {
            first.start = start.clone();
        }
        self
    }

    /// Reads the next page, with the tasks that match; it can be empty. `None` at the end of the queue, and when the
    /// limit is reached. Gives way to other work of the runtime's thread before each page.
    pub async fn next_page(&mut self) -> Result<Option<TaskPage>> {
        let rows = PAGE_ROWS.min(self.rows_max.saturating_sub(self.rows_read));
        let Some(range) = self.ranges.front_mut().filter(|_| rows > 0) else { return Ok(None) };
        tokio::task::yield_now().await;
        let found = self.store.scan(range.clone(), ScanOrder::Ascending, rows).await?;
        self.rows_read += found.len();
        let last = found.last().map(|(last, _)| last.clone()).filter(|_| found.len() == rows);
        match last {
            Some(last) => range.start = task::after_row(&last, |queue| self.filter.may_match_queue(queue)),
            None => _ = self.ranges.pop_front(),
        }
        let mut page = TaskPage::from_rows(found, rows);
        page.tasks.retain(|(task, _)| self.filter.matches(task));
        Ok(Some(page))
    }

    pub fn rows_read(&self) -> usize {
        self.rows_read
    }

    /// The key at which another walk goes on; `None` after the end of the queue.
    pub fn rest(&self) -> Option<&Key> {
        self.ranges.front().map(|range| &range.start)
    }
}

#[cfg(test)]
mod tests {
    use model::task::Task;

    use super::*;
    use crate::engine::Batch;
    use crate::task::tests::task;

    /// A store with `long` tasks of a.example, one of b.example in another partition, and one of c.example.
    async fn filled(long: u16) -> Store {
        let store = Store::memory();
        let mut batch = Batch::intake();
        for number in 0..long {
            task::put_new(&mut batch, &task("a.example", 10, u128::from(number)));
        }
        task::put_new(&mut batch, &Task { partition: 3, ..task("b.example", 20, 100_000) });
        task::put_new(&mut batch, &task("c.example", 20, 100_001));
        store.commit(batch).await.unwrap();
        store
    }

    async fn walk(walk: &mut QueueWalk<'_>) -> usize {
        let mut found = 0;
        while let Some(page) = walk.next_page().await.unwrap() {
            found += page.tasks.len();
        }
        found
    }

    fn to(domain: &str) -> TaskFilter {
        TaskFilter { to: Some(domain.parse().unwrap()), ..TaskFilter::default() }
    }

    #[tokio::test]
    async fn a_walk_stops_at_its_limit_and_another_goes_on() {
        let store = filled(3_000).await;
        let mut first = QueueWalk::new(&store, TaskFilter::default(), 2_500);
        assert_eq!((walk(&mut first).await, first.rows_read()), (2_500, 2_500));
        let rest = first.rest().unwrap().clone();
        let mut second = QueueWalk::new(&store, TaskFilter::default(), 2_500).starting_at(&rest);
        assert_eq!((walk(&mut second).await, second.rest()), (502, None));
    }

    #[tokio::test]
    async fn queues_that_cannot_match_are_skipped() {
        let store = filled(3_000).await;
        let mut by_domain = QueueWalk::new(&store, to("b.example"), usize::MAX);
        assert_eq!((walk(&mut by_domain).await, by_domain.rows_read()), (1, 1));
        let mut none = QueueWalk::new(&store, to("x.example"), usize::MAX);
        assert_eq!((walk(&mut none).await, none.rows_read(), none.rest()), (0, 0, None));
        let other = model::id::AccountId::new(jiff::Timestamp::UNIX_EPOCH, 9);
        let of_account = TaskFilter { account: Some(other), ..TaskFilter::default() };
        let mut by_account = QueueWalk::new(&store, of_account, usize::MAX);
        assert_eq!(walk(&mut by_account).await, 0);
        assert!(by_account.rows_read() < 1_100, "the rest of the long queue was read: {}", by_account.rows_read());
    }

    #[tokio::test]
    async fn a_walk_can_start_within_a_domain() {
        let store = filled(5).await;
        let start = task::key_of(&task("a.example", 10, 3));
        let mut tail = QueueWalk::new(&store, to("a.example"), usize::MAX).starting_at(&start);
        assert_eq!(walk(&mut tail).await, 2);
    }
}
