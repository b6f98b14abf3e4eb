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
        /// All of it is read.
        Done = "done",
        /// The processor does not answer as it must.
        Failed = "failed",
    }
}

/// Windows are at most this long, however little happens in them.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// And at least this long, however much.
const WINDOW_MIN: SignedDuration = SignedDuration::from_secs(60);
/// The first one.
const WINDOW_FIRST: SignedDuration = SignedDuration::from_hours(24 * 30);
/// The processor is asked so often, before it is given up.
const FAILURES_MAX: u32 = 5;
/// How long is waited after the first failure; after the second twice as long.
const AGAIN: SignedDuration = SignedDuration::from_secs(10);

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
    /// How often the processor did not answer, since it last did.
    pub failures: u32,
    /// Not to be gone on with before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl Backfill {
    /// A back-fill of what happened from `since` until now.
    #[must_use]
    pub fn new(
        (id, account): (BackfillId, AccountId),
        since: Timestamp,
        silent: bool,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            account,
            status: BackfillStatus::Running,
            silent,
            read_until: since.min(now),
            until: now,
            window_s: WINDOW_FIRST.as_secs(),
            invoices_seen: 0,
            lines_written: 0,
            failures: 0,
            not_before: None,
            error: None,
            created_at: now,
        }
    }

    /// The next window: from when, and until when.
    #[must_use]
    pub fn window(&self) -> (Timestamp, Timestamp) {
        let end = self.read_until.checked_add(SignedDuration::from_secs(self.window_s));
        (self.read_until, end.map_or(self.until, |end| end.min(self.until)))
    }

    /// More happened in the window than is looked at at once. Whether there is a shorter one.
    pub fn shorten(&mut self) -> bool {
        let shorter = (self.window_s / 2).max(WINDOW_MIN.as_secs());
        let is_shorter = shorter < self.window_s;
        self.window_s = shorter;
        is_shorter
    }

    /// The window was read: so many objects, invoices and new lines.
    pub fn went_on(&mut self, (objects, invoices, lines): (usize, u64, u64)) {
        let (_, end) = self.window();
        self.read_until = end;
        self.invoices_seen = self.invoices_seen.saturating_add(invoices);
        self.lines_written = self.lines_written.saturating_add(lines);
        (self.failures, self.not_before) = (0, None);
        if objects == 0 {
            self.window_s = self.window_s.saturating_mul(2).min(WINDOW_MAX.as_secs());
        }
        if self.read_until >= self.until {
            self.status = BackfillStatus::Done;
        }
    }

    /// The processor did not answer as it must.
    pub fn fail(&mut self, why: &str, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_MAX {
            self.status = BackfillStatus::Failed;
            self.error = Some(why.to_owned());
            return;
        }
        let wait = AGAIN.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
        self.not_before = now.checked_add(wait).ok();
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
        let mut backfill = Backfill::new(ids, at(0), false, now);
        let mut last = at(0);
        while backfill.status == BackfillStatus::Running {
            let (from, until) = backfill.window();
            assert!(from == last && until > from, "{backfill:?}");
            last = until;
            backfill.went_on((0, 2, 1));
        }
        assert_eq!((last, backfill.status), (now, BackfillStatus::Done));
        assert_eq!(backfill.invoices_seen, 2 * backfill.lines_written);
        let mut busy = Backfill::new(ids, at(0), false, now);
        while busy.shorten() {}
        assert_eq!(busy.window(), (at(0), at(60)));
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        let now = at(1_000);
        let mut backfill =
            Backfill::new((BackfillId::new(now, 1), AccountId::new(now, 2)), at(0), false, now);
        for waited in [10, 20, 40, 80] {
            backfill.fail("no answer", now);
            assert_eq!(backfill.not_before, Some(at(1_000 + waited)));
        }
        backfill.fail("no answer", now);
        assert_eq!((backfill.status, backfill.error.as_deref()), (BackfillStatus::Failed, Some("no answer")));
    }
}
