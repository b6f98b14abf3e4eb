//! Figures of the worker: counters that are looked up by name once, not at every settlement.
//!
//! They count for the recorder that is installed when the worker is made.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use mail::classify::{Reason, classify};
use mail::id::AccountId;
use mail::outcome::{Outcome, Phase};
use mail::task::{Class, Task};
use metrics::{Counter, Histogram};

use crate::last_hour::{Counted, LastHour};
use crate::settle::{Attempted, Next};

/// Accounts whose waits are told apart; what the others wait counts in the sums by class alone.
const ACCOUNTS_MAX: usize = 200;

/// Attempts, by what they came to.
pub(crate) struct Figures {
    delivered: Counter,
    deferred: Counter,
    bounced: Counter,
    failed: Counter,
    waits: [Histogram; Class::ALL.len()],
    account_waits: Mutex<HashMap<(AccountId, Class), Histogram>>,
    pub(crate) last_hour: LastHour,
}

impl Default for Figures {
    fn default() -> Self {
        let attempts = |outcome| metrics::counter!("postrider_attempts_total", "outcome" => outcome);
        Self {
            delivered: attempts("delivered"),
            deferred: attempts("deferred"),
            bounced: attempts("bounced"),
            failed: attempts("failed"),
            waits: Class::ALL
                .map(|class| metrics::histogram!("postrider_first_attempt_seconds", "class" => class.word())),
            account_waits: Mutex::default(),
            last_hour: LastHour::default(),
        }
    }
}

impl Figures {
    /// How long a task waited from its acceptance to its first attempt.
    pub(crate) fn waited(&self, task: &Task, began_at: Timestamp) {
        if task.attempts > 0 {
            return;
        }
        let seconds = began_at.duration_since(task.accepted_at).as_secs_f64().max(0.0);
        if let Some(waits) = self.waits.get(task.class as usize) {
            waits.record(seconds);
        }
        let mut of_accounts = self.account_waits.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = (task.account, task.class);
        if of_accounts.len() < ACCOUNTS_MAX * Class::ALL.len() || of_accounts.contains_key(&whose) {
            let named = || {
                let (account, class) = (task.account.to_string(), task.class.word());
                metrics::histogram!("postrider_account_first_attempt_seconds", "account" => account, "class" => class)
            };
            of_accounts.entry(whose).or_insert_with(named).record(seconds);
        }
    }

    /// Counts an attempt, and what it was put off, bounced or failed for.
    pub(crate) fn attempted(&self, attempted: &Attempted, next: &Next, now: Timestamp) {
        let what = match next {
            Next::Delivered => Counted::Delivered,
            Next::Retry { .. } => Counted::Deferred,
            Next::Bounced { .. } => Counted::Bounced,
            Next::Failed { .. } => Counted::Failed,
        };
        self.last_hour.count(what, 1, now);
        let counter = match next {
            Next::Delivered => &self.delivered,
            Next::Retry { .. } => &self.deferred,
            Next::Bounced { .. } => &self.bounced,
            Next::Failed { .. } => &self.failed,
        };
        counter.increment(1);
        match next {
            Next::Delivered => {}
            Next::Retry { .. } => {
                let category = deferral_category(attempted);
                metrics::counter!("postrider_deferrals_total", "category" => category).increment(1);
            }
            Next::Bounced { reason, .. } => bounced(*reason, "at_once"),
            Next::Failed { why } => {
                metrics::counter!("postrider_failures_total", "reason" => *why).increment(1);
            }
        }
    }
}

/// Counts a bounce, told to us in the session (`at_once`) or by a report (`later`).
pub(crate) fn bounced(category: Reason, told: &'static str) {
    metrics::counter!("postrider_bounces_total", "category" => category.word(), "told" => told).increment(1);
}

/// Why an attempt is made again: what the host's reply is about, or how far the attempt got without one.
fn deferral_category(attempted: &Attempted) -> &'static str {
    match (&attempted.outcome, attempted.phase) {
        (Outcome::Unconfirmed(_), _) => "unconfirmed",
        (_, Phase::Tls) => "tls",
        (_, Phase::Dns) => "dns",
        (Outcome::Unreachable(_), _) => "unreachable",
        (outcome, phase) => outcome
            .reply()
            .map_or("unreachable", |reply| classify(attempted.mx_host.as_deref(), reply, phase).word()),
    }
}
