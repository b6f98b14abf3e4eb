//! State shared by the engine and its connections: counters, availability of the database, and backoff.
//!
//! After a failed connection attempt the pause is [`PAUSE_MIN`]; it doubles with each failure up to [`PAUSE_MAX`]. The
//! first successful commit wakes all other connections of this node, so none waits for the rest of its pause. A
//! connection that was woken and fails again cannot be woken during the first [`PAUSE_MIN`], which doubles with each
//! wake-up.
//!
//! Failing reads are logged as an outage, and health checks report them, but they do not close the intake.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use model::outage::Outage;
use tokio::time::Instant;

use crate::engine::{Health, StoreState};

/// Minimum pause between two connection attempts.
const PAUSE_MIN: Duration = Duration::from_millis(20);
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(250);
/// If another connection committed this recently, the database is available, and the failure is local to one
/// connection.
const RECENT_COMMIT: Duration = Duration::from_secs(1);

/// Backoff after this many consecutive failures.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let factor = 1_u32 << failures.saturating_sub(1).min(8);
    PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
}

/// Consecutive failures of one group committer.
#[derive(Debug)]
pub(crate) struct Streak {
    began: Instant,
    failures: u32,
    /// How often a recovery of the database cut a pause short.
    woken: u32,
}

impl Streak {
    /// State before the first attempt.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), failures: 0, woken: 0 }
    }

    /// Waits after a failed attempt. A recovery of the database ends the wait early, but with each such wake-up a
    /// longer minimum applies.
    pub(crate) async fn pause(&mut self, shared: &DatabaseState) {
        self.failures = self.failures.saturating_add(1);
        let whole = pause_after(self.failures);
        let minimum = if self.woken == 0 { Duration::ZERO } else { pause_after(self.woken).min(whole) };
        let mut returns = shared.returns.subscribe();
        tokio::time::sleep(minimum).await;
        tokio::select! {
            () = tokio::time::sleep(whole.saturating_sub(minimum)) => {}
            // The sender exists as long as `shared`, so this returns no error.
            _ = returns.changed() => self.woken = self.woken.saturating_add(1),
        }
    }
}

pub(crate) struct DatabaseState {
    /// Number of recoveries of the database since the start.
    returns: watch::Sender<u64>,
    groups: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
    state: Mutex<StoreState>,
    outage: Mutex<Outage>,
    /// True if reads have failed since the last one that succeeded.
    is_read_outage: AtomicBool,
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
            is_read_outage: AtomicBool::default(),
            committed_at: Mutex::default(),
            began: Instant::now(),
            closing: AtomicBool::default(),
        }
    }
}

impl DatabaseState {
    /// A random id for a writer.
    pub(crate) fn random_id(&self) -> [u8; 16] {
        let mut name = [0; 16];
        // This cannot fail on a booted system. An id of zeros would only cause waits for another writer's marker.
        let _ = aws_lc_rs::rand::fill(&mut name);
        name
    }

    /// Number of recoveries of the database so far.
    pub(crate) fn returns(&self) -> u64 {
        *self.returns.borrow()
    }

    pub(crate) fn record_commits(&self, commits: usize, conflicts: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
        self.conflicts.fetch_add(conflicts as u64, Ordering::Relaxed);
        *self.committed_at.lock() = Some(Instant::now());
        self.mark_available();
    }

    /// A write succeeded: ends an outage.
    pub(crate) fn mark_available(&self) {
        let was_away = std::mem::take(&mut *self.state.lock()) != StoreState::Healthy;
        let reads_failed =
            self.is_read_outage.load(Ordering::Relaxed) && self.is_read_outage.swap(false, Ordering::Relaxed);
        if was_away {
            self.returns.send_modify(|count| *count += 1);
        }
        if was_away || reads_failed {
            self.log_recovery();
        }
    }

    fn log_recovery(&self) {
        if let Some(ended) = self.outage.lock().answered(self.began.elapsed()) {
            tracing::info!(lasted_s = ended.lasts.as_secs(), "the database is responding again");
        }
    }

    /// Records the failed attempt of a group committer. Returns whether the database counts as unavailable; it does not
    /// while other committers succeed.
    pub(crate) fn mark_unavailable(&self, why: &Arc<str>, streak: &Streak) -> bool {
        let committed_at = *self.committed_at.lock();
        if committed_at.is_some_and(|at| at > streak.began && at.elapsed() < RECENT_COMMIT) {
            tracing::debug!(%why, "a write connection failed; other connections commit");
            return false;
        }
        self.record_outage(why);
        true
    }

    fn record_outage(&self, why: &Arc<str>) {
        *self.state.lock() = StoreState::Away(Arc::clone(why));
        if let Some(notice) = self.outage.lock().failed(self.began.elapsed()) {
            let since_s = notice.lasts.as_secs();
            tracing::warn!(%why, since_s, "the database does not answer: refusing new mail");
        }
    }

    /// Records that no read connection gets an answer.
    pub(crate) fn record_read_failure(&self, why: &str) {
        self.is_read_outage.store(true, Ordering::Relaxed);
        if let Some(notice) = self.outage.lock().failed(self.began.elapsed()) {
            tracing::warn!(%why, since_s = notice.lasts.as_secs(), "the database does not answer: reads fail");
        }
    }

    /// Records a successful read.
    pub(crate) fn record_read(&self) {
        let failed = self.is_read_outage.load(Ordering::Relaxed) && self.is_read_outage.swap(false, Ordering::Relaxed);
        if failed && *self.state.lock() == StoreState::Healthy {
            self.log_recovery();
        }
    }

    /// Returns whether there is an outage: no writes or no reads succeed.
    pub(crate) fn has_outage(&self) -> bool {
        self.is_read_outage.load(Ordering::Relaxed) || matches!(*self.state.lock(), StoreState::Away(_))
    }

    /// Records that a probe failed; repeats the log line when it is due.
    pub(crate) fn record_probe_failure(&self, why: &str) {
        let state = self.state.lock().clone();
        match state {
            StoreState::Away(why) => self.record_outage(&why),
            _ if self.is_read_outage.load(Ordering::Relaxed) => self.record_read_failure(why),
            _ => {}
        }
    }

    /// Logs outages that ended before they were logged.
    pub(crate) fn log_missed_outage(&self) {
        if let Some(missed) = self.outage.lock().missed(self.began.elapsed()) {
            tracing::warn!(lasted_s = missed.lasts.as_secs(), "the database did not answer for a while");
        }
    }

    pub(crate) fn mark_full(&self) {
        let mut state = self.state.lock();
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
            state: self.state.lock().clone(),
            reads_fail: self.is_read_outage.load(Ordering::Relaxed),
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
    fn backoff_grows_up_to_a_maximum() {
        let pauses: Vec<u128> = (0..7).map(|failures| pause_after(failures).as_millis()).collect();
        assert_eq!(pauses, [20, 20, 40, 80, 160, 250, 250]);
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn recovery_wakes_the_others_less_each_time() {
        let (shared, start) = (DatabaseState::default(), Instant::now());
        let mut streak = Streak::new();
        streak.failures = 5;
        shared.mark_unavailable(&"gone".into(), &streak);
        tokio::join!(streak.pause(&shared), async { shared.mark_available() });
        assert_eq!(start.elapsed(), Duration::ZERO);
        // Its own attempts keep failing, although others commit.
        let mut floors = Vec::new();
        for _ in 0..6 {
            let start = Instant::now();
            shared.record_outage(&"gone".into());
            tokio::join!(streak.pause(&shared), async { shared.mark_available() });
            floors.push(start.elapsed().as_millis());
        }
        assert_eq!(floors, [20, 40, 80, 160, 250, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_failing_connection_does_not_close_intake() {
        let (shared, streak) = (DatabaseState::default(), Streak::new());
        tokio::time::advance(Duration::from_millis(10)).await;
        shared.record_commits(1, 0);
        shared.mark_unavailable(&"refused".into(), &streak);
        assert_eq!(shared.health().state, StoreState::Healthy);
        tokio::time::advance(RECENT_COMMIT).await;
        shared.mark_unavailable(&"refused".into(), &streak);
        assert!(matches!(shared.health().state, StoreState::Away(_)));
    }

    #[tokio::test]
    async fn failing_reads_are_an_outage_but_do_not_close_intake() {
        let shared = DatabaseState::default();
        shared.record_read_failure("refused");
        assert!(shared.has_outage());
        assert_eq!(shared.health().state, StoreState::Healthy);
        assert!(matches!(shared.health().service_state(), StoreState::Away(_)), "health checks report it");
        shared.record_read();
        assert!(!shared.has_outage());
        assert_eq!(shared.health().service_state(), StoreState::Healthy);
        shared.record_read_failure("refused");
        shared.record_commits(1, 0);
        assert!(!shared.has_outage());
    }

    /// Collects log lines: level, message and fields.
    #[derive(Clone, Default)]
    struct LogLines(Arc<Mutex<Vec<String>>>);

    impl LogLines {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock())
        }
    }

    impl tracing::field::Visit for LogLines {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            let text = if field.name() == "message" { format!(" {value:?}") } else { format!(" {field}={value:?}") };
            self.0.lock().last_mut().unwrap().push_str(&text);
        }
    }

    impl tracing::Subscriber for LogLines {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::INFO
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            self.0.lock().push(event.metadata().level().to_string());
            event.record(&mut self.clone());
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_logged_at_its_start_once_a_minute_and_at_its_end() {
        let (lines, shared) = (LogLines::default(), DatabaseState::default());
        let _guard = tracing::subscriber::set_default(lines.clone());
        let advance = |seconds| tokio::time::advance(Duration::from_secs(seconds));

        for _ in 0..3 {
            shared.mark_unavailable(&"connection refused".into(), &Streak::new());
        }
        let refused = "WARN the database does not answer: refusing new mail why=connection refused";
        assert_eq!(lines.take(), [format!("{refused} since_s=0")]);
        advance(59).await;
        shared.record_probe_failure("timeout");
        assert_eq!(lines.take(), Vec::<String>::new());
        advance(1).await;
        shared.record_probe_failure("timeout");
        assert_eq!(lines.take(), [format!("{refused} since_s=60")]);
        advance(5).await;
        shared.record_commits(1, 0);
        assert_eq!(lines.take(), ["INFO the database is responding again lasted_s=65"]);

        // A short outage soon after: only its sum is logged, when a minute has passed since the last line.
        advance(1).await;
        shared.record_read_failure("connection reset");
        advance(2).await;
        shared.record_read();
        shared.log_missed_outage();
        assert_eq!(lines.take(), Vec::<String>::new());
        advance(60).await;
        shared.log_missed_outage();
        assert_eq!(lines.take(), ["WARN the database did not answer for a while lasted_s=2"]);

        advance(60).await;
        shared.record_read_failure("connection reset");
        let reads = "WARN the database does not answer: reads fail why=connection reset since_s=0";
        assert_eq!(lines.take(), [reads]);
        advance(3).await;
        shared.record_read();
        assert_eq!(lines.take(), ["INFO the database is responding again lasted_s=3"]);
    }
}
