//! A back-fill: what the processor knows of the past is read into the ledger, from a time on, window by window.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::word::words;
use crate::id::{AccountId, BackfillId};

words! {
    /// How far a back-fill is.
    BackfillStatus {
        /// It goes on.
        Running = "running",
        /// All of it is read, and booked.
        Done = "done",
        /// The processor does not answer as it must, or something that it answered cannot be worked with.
        Failed = "failed",
    }
}

/// Windows are at most this long, however little happens in them.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// And at least this long, however much.
const WINDOW_MIN: SignedDuration = SignedDuration::from_secs(1);
/// After a window with at most so many objects the next one is longer.
const FEW_OBJECTS: usize = 100;
/// The first one.
const WINDOW_FIRST: SignedDuration = SignedDuration::from_hours(24 * 30);
/// What was paid may have been billed so long before. The processor lists by the one, and what counts is the other.
const BILLED_BEFORE: SignedDuration = SignedDuration::from_hours(24 * 366);
/// A window is tried so often before the back-fill has failed.
const FAILURES_MAX: u32 = 3;
/// How long a window waits for the server's own means: its store, its memory.
const DEFER_FOR: SignedDuration = SignedDuration::from_secs(30);
/// How long is waited after the first failure, and after the second.
const BACKOFF_S: [i64; 2] = [10, 300];

/// A back-fill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// Its id.
    pub id: BackfillId,
    /// Whose program it is of.
    pub account: AccountId,
    /// How far it is.
    pub status: BackfillStatus,
    /// Whether nobody is told of what it writes.
    pub silent: bool,
    /// From when on. What was billed earlier is read if it was paid since; nothing where it is from the beginning on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What happened before is read.
    pub read_until: Timestamp,
    /// Where it ends: what happens later is told by events.
    pub until: Timestamp,
    /// How long the next window is, in seconds.
    pub window_s: i64,
    /// Paid invoices that were read.
    pub invoices_seen: u64,
    /// Commissions that were written for them.
    pub lines_written: u64,
    /// Up to when commissions that were written are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_until: Option<Timestamp>,
    /// Objects that could not be worked with.
    #[serde(default)]
    pub unread: u64,
    /// How often the next window could not be read: the processor did not answer, or the process that read it ended.
    pub failures: u32,
    /// The process that reads the next window, by a number of its own. It is written before the work begins and deleted at
    /// its end: whoever finds the number of another process knows that this one ended in the midst of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Not to be gone on with before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// What a window came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowResult {
    /// All that is of it.
    pub objects: usize,
    /// Invoices that are paid.
    pub invoices: u64,
    /// Commissions that were written since the last count.
    pub lines: u64,
    /// When that was counted.
    pub counted_at: Option<Timestamp>,
    /// Objects that could not be worked with, and why that was of the first.
    pub unread: (u64, Option<String>),
}

impl Backfill {
    /// A back-fill of what happened until now: from `since` on, or from the beginning.
    #[must_use]
    pub fn new(
        (id, account): (BackfillId, AccountId),
        (since, beginning): (Option<Timestamp>, Timestamp),
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
            unread: 0,
            failures: 0,
            process: None,
            not_before: None,
            error: None,
            created_at: now,
        }
    }

    /// The next window: from when, and until when.
    #[must_use]
    pub fn window(&self) -> (Timestamp, Timestamp) {
        let end = self.read_until.checked_add(SignedDuration::from_secs(self.window_s));
        let last = self.since.filter(|_| self.is_before_since()).unwrap_or(self.until);
        (self.read_until, end.map_or(last, |end| end.min(last)))
    }

    /// Whether the next window is before the time that is asked for: of it only counts what was paid since.
    #[must_use]
    pub fn is_before_since(&self) -> bool {
        self.since.is_some_and(|since| self.read_until < since)
    }

    /// Whether the next window is the last one: what is of its last second is in it.
    #[must_use]
    pub fn is_last_window(&self) -> bool {
        self.window().1 >= self.until
    }

    /// A process begins with the next window. Where another one ended in the midst of it, that is a failure, and false: the
    /// window is tried again later, or not at all.
    pub fn begin_window(&mut self, process: &str, now: Timestamp) -> bool {
        if self.process.as_ref().is_some_and(|other| other != process) {
            self.fail("the server ended while it read the answers of the processor", now);
            return false;
        }
        self.process = Some(process.to_owned());
        true
    }

    /// More happened in the window than is looked at at once. Whether there is a shorter one.
    pub fn shorten_window(&mut self) -> bool {
        self.process = None;
        let shorter = (self.window_s / 2).max(WINDOW_MIN.as_secs());
        let is_shorter = shorter < self.window_s;
        self.window_s = shorter;
        is_shorter
    }

    /// The window was read.
    pub fn advance(&mut self, read: WindowResult) {
        let (_, end) = self.window();
        self.read_until = end;
        self.invoices_seen = self.invoices_seen.saturating_add(read.invoices);
        self.lines_written = self.lines_written.saturating_add(read.lines);
        self.counted_until = read.counted_at.or(self.counted_until);
        let (unread, why) = read.unread;
        self.unread = self.unread.saturating_add(unread);
        self.error = self.error.take().or(why);
        (self.failures, self.process, self.not_before) = (0, None, None);
        if read.objects <= FEW_OBJECTS {
            self.window_s = self.window_s.saturating_mul(2).min(WINDOW_MAX.as_secs());
        }
        if self.read_until >= self.until {
            self.finish_reading();
        }
    }

    /// All of it is read. Whether all is booked, too, its status says.
    fn finish_reading(&mut self) {
        self.status = if self.unread == 0 { BackfillStatus::Done } else { BackfillStatus::Failed };
        if let Some(why) = self.error.take().filter(|_| self.unread > 0) {
            let unread = self.unread;
            self.error = Some(format!("read to the end, but {unread} could not be worked with; the first: {why}"));
        }
    }

    /// The window could not be read for want of the server's own means: it is tried again later.
    pub fn defer(&mut self, now: Timestamp) {
        self.process = None;
        self.not_before = now.checked_add(DEFER_FOR).ok();
    }

    /// The window cannot be read, and trying again changes nothing.
    pub fn fail_permanently(&mut self, why: &str) {
        self.process = None;
        self.failures = self.failures.saturating_add(1);
        self.status = BackfillStatus::Failed;
        self.error = Some(why.to_owned());
    }

    /// The window could not be read.
    pub fn fail(&mut self, why: &str, now: Timestamp) {
        if self.failures.saturating_add(1) >= FAILURES_MAX {
            self.fail_permanently(why);
            return;
        }
        self.process = None;
        self.failures = self.failures.saturating_add(1);
        let place = usize::try_from(self.failures.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait = BACKOFF_S.get(place).or(BACKOFF_S.last()).copied().unwrap_or_default();
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
    fn windows_follow_each_other_to_the_end() {
        let now = at(400 * 24 * 3600);
        let ids = (BackfillId::new(now, 1), AccountId::new(now, 2));
        let mut backfill = Backfill::new(ids, (None, at(0)), false, now);
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
        let mut busy = Backfill::new(ids, (None, at(0)), false, now);
        while busy.shorten_window() {}
        assert_eq!(busy.window(), (at(0), at(1)));
    }

    #[test]
    fn what_was_billed_before_and_paid_since_is_read_first() {
        let (day, now) = (24 * 3600, at(1_000 * 24 * 3600));
        let ids = (BackfillId::new(now, 1), AccountId::new(now, 2));
        let mut backfill = Backfill::new(ids, (Some(at(990 * day)), at(0)), false, now);
        assert_eq!(backfill.window().0, at((990 - 366) * day));
        while backfill.is_before_since() {
            assert!(backfill.window().1 <= at(990 * day), "{backfill:?}");
            backfill.advance(WindowResult::default());
        }
        assert_eq!(backfill.window(), (at(990 * day), now));
        let unread = (2, Some("in_1: amount_paid is missing".to_owned()));
        backfill.advance(WindowResult { unread, ..WindowResult::default() });
        assert_eq!(backfill.status, BackfillStatus::Failed);
        let why = "read to the end, but 2 could not be worked with; the first: in_1: amount_paid is missing";
        assert_eq!(backfill.error.as_deref(), Some(why));
        let early = Backfill::new(ids, (Some(at(day)), at(2 * day)), false, now);
        assert_eq!(early.window().0, at(day), "before the beginning there is nothing");
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        let now = at(1_000);
        let mut backfill = Backfill::new((BackfillId::new(now, 1), AccountId::new(now, 2)), (None, at(0)), false, now);
        for waited in [10, 300] {
            backfill.fail("no answer", now);
            assert_eq!(backfill.not_before, Some(at(1_000 + waited)));
        }
        backfill.fail("no answer", now);
        assert_eq!((backfill.status, backfill.error.as_deref()), (BackfillStatus::Failed, Some("no answer")));
    }

    #[test]
    fn a_window_in_which_processes_end_is_given_up() {
        let now = at(1_000);
        let mut backfill = Backfill::new((BackfillId::new(now, 1), AccountId::new(now, 2)), (None, at(0)), false, now);
        assert!(backfill.begin_window("one", now) && backfill.begin_window("one", now), "who goes on has not ended");
        assert!(!backfill.begin_window("two", now) && backfill.begin_window("two", now));
        assert!(!backfill.begin_window("three", now) && backfill.begin_window("three", now));
        assert_eq!((backfill.failures, backfill.status), (2, BackfillStatus::Running));
        assert!(!backfill.begin_window("four", now));
        assert_eq!(backfill.status, BackfillStatus::Failed);
        assert!(backfill.error.is_some_and(|why| why.contains("the server ended")));
        // A window that is booked begins anew.
        let mut backfill = Backfill::new((BackfillId::new(now, 1), AccountId::new(now, 2)), (None, at(0)), false, now);
        assert!(
            backfill.begin_window("one", now)
                && !backfill.begin_window("two", now)
                && backfill.begin_window("two", now)
        );
        backfill.advance(WindowResult::default());
        assert_eq!((backfill.failures, backfill.process), (0, None));
    }
}
