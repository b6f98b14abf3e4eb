//! What the lanes and the surface share: counters, whether the database is there, and when it is tried again.
//!
//! A connection that cannot be made is tried again after [`PAUSE_MIN`], then after twice as long each time, at most
//! [`PAUSE_MAX`]. The first commit that succeeds wakes all others of this node: none waits for the rest of its pause.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use mail::outage::Outage;
use tokio::time::Instant;

use crate::engine::{Health, State};

/// The first pause between two tries to connect …
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// … and the longest.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(250);

/// How long is waited after so many tries to connect that failed, one after the other.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let factor = 1_u32 << failures.saturating_sub(1).min(8);
    PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
}

/// Counters and state.
pub(crate) struct Shared {
    /// How often the database came back since the start.
    returns: watch::Sender<u64>,
    groups: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
    state: Mutex<State>,
    outage: Mutex<Outage>,
    began: Instant,
    closing: AtomicBool,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            returns: watch::Sender::default(),
            groups: AtomicU64::default(),
            commits: AtomicU64::default(),
            conflicts: AtomicU64::default(),
            state: Mutex::default(),
            outage: Mutex::new(Outage::after(1)),
            began: Instant::now(),
            closing: AtomicBool::default(),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that no other writer has.
    pub(crate) fn unique(&self) -> [u8; 16] {
        let mut name = [0; 16];
        // It fails on no system that has booted; a name of zeros would only be one more mark to wait for.
        let _ = aws_lc_rs::rand::fill(&mut name);
        name
    }

    /// How often the database came back so far.
    pub(crate) fn returns(&self) -> u64 {
        *self.returns.borrow()
    }

    /// Waits after so many tries that failed, one after the other; shorter, when the database comes back meanwhile.
    pub(crate) async fn pause(&self, failures: u32) {
        let mut returns = self.returns.subscribe();
        tokio::select! {
            () = tokio::time::sleep(pause_after(failures)) => {}
            // The sender lives as long as this does.
            _ = returns.changed() => {}
        }
    }

    pub(crate) fn committed(&self, commits: usize, conflicts: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
        self.conflicts.fetch_add(conflicts as u64, Ordering::Relaxed);
        self.is_back();
    }

    pub(crate) fn is_back(&self) {
        let mut state = self.state();
        if *state == State::Healthy {
            return;
        }
        *state = State::Healthy;
        drop(state);
        self.returns.send_modify(|count| *count += 1);
        if let Some(ended) = self.outage().answered(self.began.elapsed()) {
            tracing::info!(lasted_s = ended.lasts.as_secs(), "the database answers again");
        }
    }

    pub(crate) fn is_away(&self, why: &Arc<str>) {
        *self.state() = State::Away(Arc::clone(why));
        if let Some(notice) = self.outage().failed(self.began.elapsed()) {
            let since_s = notice.lasts.as_secs();
            tracing::warn!(%why, since_s, "the database does not answer: nothing is accepted until it does");
        }
    }

    /// Nobody writes, and it does not answer yet: the log says so again when it is time.
    pub(crate) fn is_still_away(&self) {
        let state = self.state().clone();
        if let State::Away(why) = state {
            self.is_away(&why);
        }
    }

    pub(crate) fn is_full(&self) {
        let mut state = self.state();
        if *state != State::Full {
            tracing::error!("the database's disk is full");
        }
        *state = State::Full;
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
    async fn the_first_that_gets_through_wakes_the_others() {
        let shared = Shared::default();
        let start = tokio::time::Instant::now();
        shared.is_away(&"gone".into());
        tokio::join!(shared.pause(5), async { shared.is_back() });
        assert_eq!(start.elapsed(), Duration::ZERO);
        shared.pause(5).await;
        assert_eq!(start.elapsed(), PAUSE_MAX);
    }
}
