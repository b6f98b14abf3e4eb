//! What the lanes and the surface share: counters, whether the database is there, and when it is tried again.
//!
//! A connection that cannot be made is tried again after [`PAUSE_MIN`], then after twice as long each time, at most
//! [`PAUSE_MAX`]. The first commit that succeeds wakes all others of this node: none waits for the rest of its pause.
//! One that was woken and fails again cannot be woken before [`PAUSE_MIN`], then twice as long each time.
//!
//! Reads that fail are an outage for the log, but do not close the intake.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use mail::outage::Outage;
use tokio::time::Instant;

use crate::engine::{Health, StoreState};

/// The first pause between two tries to connect …
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// … and the longest.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(250);
/// While others commit so lately, the database is there, whoever fails.
const LATELY: Duration = Duration::from_secs(1);

/// How long is waited after so many tries to connect that failed, one after the other.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let factor = 1_u32 << failures.saturating_sub(1).min(8);
    PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
}

/// The tries of one lane that failed, one after the other.
#[derive(Debug)]
pub(crate) struct Streak {
    began: Instant,
    failures: u32,
    /// How often the return of the database has cut a pause short.
    woken: u32,
}

impl Streak {
    /// Before the first try.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), failures: 0, woken: 0 }
    }

    /// A try failed: waits; shorter, when the database comes back meanwhile, but each time it does, less so.
    pub(crate) async fn pause(&mut self, shared: &DatabaseState) {
        self.failures = self.failures.saturating_add(1);
        let whole = pause_after(self.failures);
        let least = if self.woken == 0 { Duration::ZERO } else { pause_after(self.woken).min(whole) };
        let mut returns = shared.returns.subscribe();
        tokio::time::sleep(least).await;
        tokio::select! {
            () = tokio::time::sleep(whole.saturating_sub(least)) => {}
            // The sender lives as long as `shared` does.
            _ = returns.changed() => self.woken = self.woken.saturating_add(1),
        }
    }
}

/// Counters and state.
pub(crate) struct DatabaseState {
    /// How often the database came back since the start.
    returns: watch::Sender<u64>,
    groups: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
    state: Mutex<StoreState>,
    outage: Mutex<Outage>,
    /// Reads fail since the last that succeeded.
    reads_fail: AtomicBool,
    committed_at: Mutex<Option<Instant>>,
    began: Instant,
    closing: AtomicBool,
}

impl Default for DatabaseState {
    fn default() -> Self {
        Self {
            returns: watch::Sender::default(),
            groups: AtomicU64::default(),
            commits: AtomicU64::default(),
            conflicts: AtomicU64::default(),
            state: Mutex::default(),
            outage: Mutex::new(Outage::after(1)),
            reads_fail: AtomicBool::default(),
            committed_at: Mutex::default(),
            began: Instant::now(),
            closing: AtomicBool::default(),
        }
    }
}

impl DatabaseState {
    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that no other writer has.
    pub(crate) fn random_id(&self) -> [u8; 16] {
        let mut name = [0; 16];
        // It fails on no system that has booted; a name of zeros would only be one more mark to wait for.
        let _ = aws_lc_rs::rand::fill(&mut name);
        name
    }

    /// How often the database came back so far.
    pub(crate) fn returns(&self) -> u64 {
        *self.returns.borrow()
    }

    pub(crate) fn record_commits(&self, commits: usize, conflicts: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
        self.conflicts.fetch_add(conflicts as u64, Ordering::Relaxed);
        *self.committed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.mark_available();
    }

    /// It was written to.
    pub(crate) fn mark_available(&self) {
        let was_away = std::mem::take(&mut *self.state()) != StoreState::Healthy;
        let reads_failed = self.reads_fail.load(Ordering::Relaxed) && self.reads_fail.swap(false, Ordering::Relaxed);
        if was_away {
            self.returns.send_modify(|count| *count += 1);
        }
        if was_away || reads_failed {
            self.answered();
        }
    }

    fn answered(&self) {
        if let Some(ended) = self.outage().answered(self.began.elapsed()) {
            tracing::info!(lasted_s = ended.lasts.as_secs(), "the database answers again");
        }
    }

    /// A lane's try failed. It is its own trouble, and not the node's, while others commit. Returns whether it is the
    /// node's.
    pub(crate) fn mark_unavailable(&self, why: &Arc<str>, streak: &Streak) -> bool {
        let committed_at = *self.committed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if committed_at.is_some_and(|at| at > streak.began && at.elapsed() < LATELY) {
            tracing::debug!(%why, "a connection that writes failed, while others commit");
            return false;
        }
        self.nobody_writes(why);
        true
    }

    fn nobody_writes(&self, why: &Arc<str>) {
        *self.state() = StoreState::Away(Arc::clone(why));
        if let Some(notice) = self.outage().failed(self.began.elapsed()) {
            let since_s = notice.lasts.as_secs();
            tracing::warn!(%why, since_s, "the database does not answer: nothing is accepted until it does");
        }
    }

    /// No connection that reads got an answer.
    pub(crate) fn read_failed(&self, why: &str) {
        self.reads_fail.store(true, Ordering::Relaxed);
        if let Some(notice) = self.outage().failed(self.began.elapsed()) {
            tracing::warn!(%why, since_s = notice.lasts.as_secs(), "the database does not answer: nothing can be read");
        }
    }

    /// A read got an answer.
    pub(crate) fn was_read(&self) {
        let failed = self.reads_fail.load(Ordering::Relaxed) && self.reads_fail.swap(false, Ordering::Relaxed);
        if failed && *self.state() == StoreState::Healthy {
            self.answered();
        }
    }

    /// Whether the log tells of an outage: nobody can write, or nobody can read.
    pub(crate) fn has_outage(&self) -> bool {
        self.reads_fail.load(Ordering::Relaxed) || matches!(*self.state(), StoreState::Away(_))
    }

    /// It does not answer yet: the log says so again when it is time.
    pub(crate) fn is_still_away(&self, why: &str) {
        let state = self.state().clone();
        match state {
            StoreState::Away(why) => self.nobody_writes(&why),
            _ if self.reads_fail.load(Ordering::Relaxed) => self.read_failed(why),
            _ => {}
        }
    }

    /// Tells of outages that are over, and that nothing was said of.
    pub(crate) fn tell_missed(&self) {
        if let Some(missed) = self.outage().missed(self.began.elapsed()) {
            tracing::warn!(lasted_s = missed.lasts.as_secs(), "the database did not answer for a while");
        }
    }

    pub(crate) fn mark_full(&self) {
        let mut state = self.state();
        if *state != StoreState::Full {
            tracing::error!("the database's disk is full");
        }
        *state = StoreState::Full;
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            state: self.state().clone(),
            groups: self.groups.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            ..Health::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses: Vec<u128> = (0..7).map(|failures| pause_after(failures).as_millis()).collect();
        assert_eq!(pauses, [20, 20, 40, 80, 160, 250, 250]);
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_that_gets_through_wakes_the_others_and_less_so_each_time() {
        let (shared, start) = (DatabaseState::default(), Instant::now());
        let mut streak = Streak::new();
        streak.failures = 5;
        shared.mark_unavailable(&"gone".into(), &streak);
        tokio::join!(streak.pause(&shared), async { shared.mark_available() });
        assert_eq!(start.elapsed(), Duration::ZERO);
        // It fails all the same, and others go on committing.
        let mut floors = Vec::new();
        for _ in 0..6 {
            let start = Instant::now();
            shared.nobody_writes(&"gone".into());
            tokio::join!(streak.pause(&shared), async { shared.mark_available() });
            floors.push(start.elapsed().as_millis());
        }
        assert_eq!(floors, [20, 40, 80, 160, 250, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_that_fails_while_others_commit_closes_nothing() {
        let (shared, streak) = (DatabaseState::default(), Streak::new());
        tokio::time::advance(Duration::from_millis(10)).await;
        shared.record_commits(1, 0);
        shared.mark_unavailable(&"refused".into(), &streak);
        assert_eq!(shared.health().state, StoreState::Healthy);
        tokio::time::advance(LATELY).await;
        shared.mark_unavailable(&"refused".into(), &streak);
        assert!(matches!(shared.health().state, StoreState::Away(_)));
    }

    #[tokio::test]
    async fn reads_that_fail_are_an_outage_that_closes_nothing() {
        let shared = DatabaseState::default();
        shared.read_failed("refused");
        assert!(shared.has_outage());
        assert_eq!(shared.health().state, StoreState::Healthy);
        shared.was_read();
        assert!(!shared.has_outage());
        shared.read_failed("refused");
        shared.record_commits(1, 0);
        assert!(!shared.has_outage());
    }
}
