//! Backfill: imports past payments from the payment processor into the ledger.
//!
//! ```text
//! since − 366 days ─► since ────────────────► until (creation time)
//!   invoices billed before `since`   [window][window]…   later payments arrive as webhook events
//!   but paid after it
//! ```
//!
//! The range is read in windows. A window with few objects doubles the length of the next one, a window with too
//! many is halved. A window that cannot be read is retried with backoff; after three failures the backfill is failed.

use jiff::{SignedDuration, Timestamp};
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, BackfillId};

words! {
    /// Progress of a backfill.
    BackfillStatus {
        Running = "running",
        /// Everything was read and written to the ledger.
        Done = "done",
        /// The processor's answers could not be read, or some objects could not be imported.
        Failed = "failed",
    }
}

/// Longest window.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// Shortest window.
const WINDOW_MIN: SignedDuration = SignedDuration::from_secs(1);
/// A window with at most this many objects doubles the length of the next one.
const FEW_OBJECTS: usize = 100;
/// Length of the first window.
const WINDOW_FIRST: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How long before its payment an invoice may have been created. The processor lists invoices by creation time, but
/// `since` refers to the payment time.
const BILLED_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 366);
/// A backfill fails after this many consecutive failures of one window.
const FAILURES_MAX: u32 = 3;
/// Delay before a retry when the server itself lacks resources (store, memory).
const DEFER_FOR: SignedDuration = SignedDuration::from_secs(30);
/// Delay in seconds after the first and the second failure of a window.
const BACKOFF_S: [i64; 2] = [10, 300];

/// A backfill of one account's affiliate program.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    pub id: BackfillId,
    pub account: AccountId,
    pub status: BackfillStatus,
    /// True if the written commissions cause no events and no emails.
    pub silent: bool,
    /// Start of the requested period; `None` for everything. Invoices billed earlier are included if they were paid
    /// since.
    pub since: Option<Timestamp>,
    /// Everything before this time has been read.
    pub read_until: Timestamp,
    /// End of the backfill, which is its creation time. Later payments arrive as webhook events.
    pub until: Timestamp,
    /// Length of the next window in seconds.
    pub window_s: i64,
    /// Number of paid invoices that were read.
    pub invoices_seen: u64,
    /// Number of commissions that were written for them.
    pub lines_written: u64,
    /// `lines_written` includes commissions written before this time.
    pub counted_until: Option<Timestamp>,
    /// Number of objects that could not be imported.
    #[serde(default, rename = "unread")]
    pub unreadable: u64,
    /// Consecutive failures of the next window: the processor did not answer, or the process that read the window
    /// ended.
    pub failures: u32,
    /// Id of the process that is reading the next window. It is stored before the work begins and cleared at its end.
    /// If another process finds it, the reader was terminated in the middle of the window.
    pub process: Option<String>,
    /// The next window is not read before this time (backoff).
    pub not_before: Option<Timestamp>,
    pub error: Option<String>,
    pub created_at: Timestamp,
}

/// Result of reading one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowResult {
    /// Number of objects listed in the window.
    pub objects: usize,
    /// Number of paid invoices.
    pub invoices: u64,
    /// Number of commissions written since the last count.
    pub lines: u64,
    /// Time of that count.
    pub counted_at: Option<Timestamp>,
    /// Number of objects that could not be imported, and the cause for the first of them.
    pub unreadable: (u64, Option<String>),
}

impl Backfill {
    /// Creates a backfill from `since`, or from `beginning` if it is `None`, until now.
    pub fn new(
        id: BackfillId,
        account: AccountId,
        since: Option<Timestamp>,
        beginning: Timestamp,
        silent: bool,
        now: Timestamp,
    ) -> Self {
        let since = since.map(|since| since.min(now));
        let billed = |since: Timestamp| since.checked_sub(BILLED_BEFORE).unwrap_or(beginning).max(beginning);
        Self {
            since,
            id,
            account,
            status: BackfillStatus::Running,
            silent,
            read_until: since.map_or(beginning, |since| billed(since).min(since)),
            until: now,
            window_s: WINDOW_FIRST.as_secs(),
            invoices_seen: 0,
            lines_written: 0,
            counted_until: Some(now),
            unreadable: 0,
            failures: 0,
            process: None,
            not_before: None,
            error: None,
            created_at: now,
        }
    }

    /// The start and the end of the next window.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        let end = self.read_until.checked_add(SignedDuration::from_secs(self.window_s));
        let last = self.since.filter(|_| self.is_before_since()).unwrap_or(self.until);
        (self.read_until, end.map_or(last, |end| end.min(last)))
    }

    /// True if the next window is before `since`: only invoices that were paid since then count in it.
    pub fn is_before_since(&self) -> bool {
        self.since.is_some_and(|since| self.read_until < since)
    }

    /// True if the next window is the last one. The last window includes its final second.
    pub fn is_last_window(&self) -> bool {
        self.window().1 >= self.until
    }

    /// Records that `process` starts to read the next window. If another process was terminated during this window,
    /// counts a failure and returns false: the window is retried later, or the backfill has failed.
    pub fn begin_window(&mut self, process: &str, now: Timestamp) -> bool {
        if self.process.as_ref().is_some_and(|other| other != process) {
            self.fail("the server stopped while it was reading the payment processor's responses", now);
            return false;
        }
        self.process = Some(process.to_owned());
        true
    }

    /// Halves the window because it has too many objects. Returns false if it is already the shortest.
    pub fn shorten_window(&mut self) -> bool {
        self.process = None;
        let shorter = (self.window_s / 2).max(WINDOW_MIN.as_secs());
        let is_shorter = shorter < self.window_s;
        self.window_s = shorter;
        is_shorter
    }

    /// Moves to the next window after this one was read.
    pub fn advance(&mut self, read: WindowResult) {
        let (_, end) = self.window();
        self.read_until = end;
        self.invoices_seen = self.invoices_seen.saturating_add(read.invoices);
        self.lines_written = self.lines_written.saturating_add(read.lines);
        self.counted_until = read.counted_at.or(self.counted_until);
        let (unreadable, why) = read.unreadable;
        self.unreadable = self.unreadable.saturating_add(unreadable);
        self.error = self.error.take().or(why);
        (self.failures, self.process, self.not_before) = (0, None, None);
        if read.objects <= FEW_OBJECTS {
            self.window_s = self.window_s.saturating_mul(2).min(WINDOW_MAX.as_secs());
        }
        if self.read_until >= self.until {
            self.finish_reading();
        }
    }

    /// Sets the final status after the last window. Fails the backfill if an object could not be imported.
    fn finish_reading(&mut self) {
        self.status = if self.unreadable == 0 { BackfillStatus::Done } else { BackfillStatus::Failed };
        if let Some(why) = self.error.take().filter(|_| self.unreadable > 0) {
            let unreadable = self.unreadable;
            self.error = Some(format!("finished, but {unreadable} object(s) could not be imported; the first: {why}"));
        }
    }

    /// Retries the window later because the server itself lacks resources. Does not count as a failure.
    pub fn defer(&mut self, now: Timestamp) {
        self.process = None;
        self.not_before = now.checked_add(DEFER_FOR).ok();
    }

    /// Fails the backfill because a retry cannot succeed.
    pub fn fail_permanently(&mut self, why: &str) {
        self.process = None;
        self.failures = self.failures.saturating_add(1);
        self.status = BackfillStatus::Failed;
        self.error = Some(why.to_owned());
    }

    /// Counts a failure of the window and schedules a retry with backoff; fails the backfill after the third.
    pub fn fail(&mut self, why: &str, now: Timestamp) {
        if self.failures.saturating_add(1) >= FAILURES_MAX {
            self.fail_permanently(why);
            return;
        }
        self.process = None;
        self.failures = self.failures.saturating_add(1);
        let index = usize::try_from(self.failures.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait = BACKOFF_S.get(index).or(BACKOFF_S.last()).copied().unwrap_or_default();
        self.not_before = now.checked_add(SignedDuration::from_secs(wait)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn windows_are_consecutive_up_to_the_end() {
        let now = at(400 * 24 * 3600);
        let (id, account) = (BackfillId::new(now, 1), AccountId::new(now, 2));
        let mut backfill = Backfill::new(id, account, None, at(0), false, now);
        let mut last = at(0);
        while backfill.status == BackfillStatus::Running {
            let (from, until) = backfill.window();
            assert!(from == last && until > from, "{backfill:?}");
            last = until;
            assert_eq!(backfill.is_last_window(), until == now);
            backfill.advance(WindowResult { invoices: 2, lines: 1, ..WindowResult::default() });
        }
        assert_eq!((last, backfill.status), (now, BackfillStatus::Done));
        assert_eq!(backfill.invoices_seen, 2 * backfill.lines_written);
        let mut busy = Backfill::new(id, account, None, at(0), false, now);
        while busy.shorten_window() {}
        assert_eq!(busy.window(), (at(0), at(1)));
    }

    #[test]
    fn invoices_billed_before_since_are_read_first() {
        let (day, now) = (24 * 3600, at(1_000 * 24 * 3600));
        let (id, account) = (BackfillId::new(now, 1), AccountId::new(now, 2));
        let mut backfill = Backfill::new(id, account, Some(at(990 * day)), at(0), false, now);
        assert_eq!(backfill.window().0, at((990 - 366) * day));
        while backfill.is_before_since() {
            assert!(backfill.window().1 <= at(990 * day), "{backfill:?}");
            backfill.advance(WindowResult::default());
        }
        assert_eq!(backfill.window(), (at(990 * day), now));
        let unreadable = (2, Some("in_1: amount_paid is missing".to_owned()));
        backfill.advance(WindowResult { unreadable, ..WindowResult::default() });
        assert_eq!(backfill.status, BackfillStatus::Failed);
        let why = "finished, but 2 object(s) could not be imported; the first: in_1: amount_paid is missing";
        assert_eq!(backfill.error.as_deref(), Some(why));
        let early = Backfill::new(id, account, Some(at(day)), at(2 * day), false, now);
        assert_eq!(early.window().0, at(day), "before the beginning there is nothing");
    }

    #[test]
    fn repeated_failures_fail_the_backfill() {
        let now = at(1_000);
        let mut backfill = Backfill::new(BackfillId::new(now, 1), AccountId::new(now, 2), None, at(0), false, now);
        for waited in [10, 300] {
            backfill.fail("no answer", now);
            assert_eq!(backfill.not_before, Some(at(1_000 + waited)));
        }
        backfill.fail("no answer", now);
        assert_eq!((backfill.status, backfill.error.as_deref()), (BackfillStatus::Failed, Some("no answer")));
    }

    #[test]
    fn repeated_crashes_fail_the_backfill() {
        let now = at(1_000);
        let mut backfill = Backfill::new(BackfillId::new(now, 1), AccountId::new(now, 2), None, at(0), false, now);
        assert!(backfill.begin_window("one", now) && backfill.begin_window("one", now), "who goes on has not ended");
        assert!(!backfill.begin_window("two", now) && backfill.begin_window("two", now));
        assert!(!backfill.begin_window("three", now) && backfill.begin_window("three", now));
        assert_eq!((backfill.failures, backfill.status), (2, BackfillStatus::Running));
        assert!(!backfill.begin_window("four", now));
        assert_eq!(backfill.status, BackfillStatus::Failed);
        assert!(backfill.error.is_some_and(|why| why.contains("the server stopped")));
        // A window that was read resets the count of failures.
        let mut backfill = Backfill::new(BackfillId::new(now, 1), AccountId::new(now, 2), None, at(0), false, now);
        assert!(
            backfill.begin_window("one", now)
                && !backfill.begin_window("two", now)
                && backfill.begin_window("two", now)
        );
        backfill.advance(WindowResult::default());
        assert_eq!((backfill.failures, backfill.process), (0, None));
    }
}
