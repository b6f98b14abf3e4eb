//! What the lanes and the surface share: counters, and whether the database is there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::{Health, State};

/// Counters and state.
#[derive(Default)]
pub(crate) struct Shared {
    groups: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
    state: Mutex<State>,
    closing: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that no other writer has.
    pub(crate) fn unique(&self) -> [u8; 16] {
        let mut name = [0; 16];
        // It fails on no system that has booted; a name of zeros would only be one more mark to wait for.
        let _ = aws_lc_rs::rand::fill(&mut name);
        name
    }

    pub(crate) fn committed(&self, commits: usize, conflicts: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
        self.conflicts.fetch_add(conflicts as u64, Ordering::Relaxed);
        self.is_back();
    }

    pub(crate) fn is_back(&self) {
        let mut state = self.state();
        if *state != State::Healthy {
            tracing::info!("the database is back");
            *state = State::Healthy;
        }
    }

    pub(crate) fn is_away(&self, why: &Arc<str>) {
        let mut state = self.state();
        if !matches!(*state, State::Away(_)) {
            tracing::error!(%why, "the database is away: nothing is accepted until it is back");
        }
        *state = State::Away(Arc::clone(why));
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
