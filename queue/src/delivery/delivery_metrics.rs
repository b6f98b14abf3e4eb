//! Metrics of delivery. Counters are looked up by name once, not for each outcome.
//!
//! They belong to the recorder that is installed when the outcome writer is created.

use parking_lot::Mutex;
use std::collections::HashMap;

use jiff::Timestamp;
use message::classify::{BounceClass, classify};
use message::outcome::{AttemptPhase, Outcome};
use metrics::{Counter, Histogram};
use model::id::AccountId;
use model::task::{Task, TaskClass};

use crate::delivery::last_hour::{HourlyCounter, LastHour};
use crate::delivery::outcome::{AttemptResult, NextAction};

/// Accounts with their own wait-time metric; others count in the sums by class only.
const ACCOUNTS_MAX: usize = 200;

/// Counters of attempts by outcome.
pub struct DeliveryMetrics {
    delivered: Counter,
    deferred: Counter,
    bounced: Counter,
    failed: Counter,
    wait_times: [Histogram; TaskClass::ALL.len()],
    account_wait_times: Mutex<HashMap<(AccountId, TaskClass), Histogram>>,
    pub last_hour: LastHour,
}

impl Default for DeliveryMetrics {
    fn default() -> Self {
        let attempts = |outcome| metrics::counter!("postrider_attempts_total", "outcome" => outcome);
        Self {
            delivered: attempts("delivered"),
            deferred: attempts("deferred"),
            bounced: attempts("bounced"),
            failed: attempts("failed"),
            wait_times: TaskClass::ALL
                .map(|class| metrics::histogram!("postrider_first_attempt_seconds", "class" => class.word())),
            account_wait_times: Mutex::default(),
            last_hour: LastHour::default(),
        }
    }
}

impl DeliveryMetrics {
    /// Records the time from a task's acceptance to its first attempt.
    pub(crate) fn record_wait(&self, task: &Task, began_at: Timestamp) {
        if task.attempts > 0 {
            return;
        }
        let seconds = began_at.duration_since(task.accepted_at).as_secs_f64().max(0.0);
        if let Some(waits) = self.wait_times.get(task.class as usize) {
            waits.record(seconds);
        }
        let mut of_accounts = self.account_wait_times.lock();
        let metric_key = (task.account, task.class);
        if of_accounts.len() < ACCOUNTS_MAX * TaskClass::ALL.len() || of_accounts.contains_key(&metric_key) {
            let named = || {
                let (account, class) = (task.account.to_string(), task.class.word());
                metrics::histogram!("postrider_account_first_attempt_seconds", "account" => account, "class" => class)
            };
            of_accounts.entry(metric_key).or_insert_with(named).record(seconds);
        }
    }

    /// Counts an attempt by its outcome, and the cause of a deferral, bounce or failure.
    pub(crate) fn record_attempt(&self, attempted: &AttemptResult, next: &NextAction, now: Timestamp) {
        let (result, counter) = match next {
            NextAction::Delivered => (HourlyCounter::Delivered, &self.delivered),
            NextAction::Retry { .. } => (HourlyCounter::Deferred, &self.deferred),
            NextAction::Bounce { .. } => (HourlyCounter::Bounced, &self.bounced),
            NextAction::Fail { .. } => (HourlyCounter::Failed, &self.failed),
        };
        self.last_hour.count(result, 1, now);
        counter.increment(1);
        match next {
            NextAction::Delivered => {}
            NextAction::Retry { .. } => {
                let category = deferral_category(attempted);
                metrics::counter!("postrider_deferrals_total", "category" => category).increment(1);
            }
            NextAction::Bounce { reason, .. } => bounced(*reason, "at_once"),
            NextAction::Fail { reason } => {
                metrics::counter!("postrider_failures_total", "reason" => *reason).increment(1);
            }
        }
    }
}

/// Counts a bounce, received in the session (`at_once`) or by a report (`later`).
pub fn bounced(category: BounceClass, result: &'static str) {
    metrics::counter!("postrider_bounces_total", "category" => category.word(), "told" => result).increment(1);
}

/// Cause of a deferral: the category of the host's reply, or the phase that the attempt reached without one.
fn deferral_category(attempted: &AttemptResult) -> &'static str {
    match (&attempted.outcome, attempted.phase) {
        (Outcome::Unconfirmed(_), _) => "unconfirmed",
        (_, AttemptPhase::Tls) => "tls",
        (_, AttemptPhase::Dns) => "dns",
        (Outcome::Unreachable(_), _) => "unreachable",
        (outcome, phase) => {
            outcome.reply().map_or("unreachable", |reply| classify(attempted.mx_host.as_deref(), reply, phase).word())
        }
    }
}
