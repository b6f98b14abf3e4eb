//! The doctor's checks, run in the background: one run at a time, and the findings of the last one.

use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use net::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::doctor::CheckRunner;
use crate::doctor::context::{CheckContext, DoctorOptions};
use crate::doctor::finding::DoctorFinding;

/// A run ends after this time, whatever its checks do.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(600);

/// The last run of the doctor.
#[derive(Debug, Clone)]
pub struct DoctorRuns {
    clock: Clock,
    stop: CancellationToken,
    running_time_max: Duration,
    last: Arc<Mutex<Option<DoctorRun>>>,
}

#[derive(Debug)]
struct DoctorRun {
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    running: Vec<&'static str>,
    findings: Vec<DoctorFinding>,
    /// The checks cannot run.
    error: Option<String>,
}

impl DoctorRuns {
    pub fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self { clock, stop, running_time_max: RUNNING_TIME_MAX, last: Arc::default() }
    }

    fn change(&self, change: impl FnOnce(&mut DoctorRun)) {
        if let Some(run) = self.last.lock().as_mut() {
            change(run);
        }
    }

    /// Starts the checks with the configuration of the server, unless they are running. Each check has a timeout.
    pub fn start(&self, config: Config) {
        self.start_with(|runs| async move { runs.run(config).await });
    }

    fn start_with<F>(&self, checks: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|run| run.ended_at.is_none()) {
            return;
        }
        *last = Some(DoctorRun {
            started_at: self.clock.now(),
            ended_at: None,
            running: vec!["the addresses of this machine"],
            findings: Vec::new(),
            error: None,
        });
        drop(last);
        let guard = DoctorRunGuard {
            runs: self.clone(),
            error: Some("the checks failed unexpectedly: see the log for the reason"),
        };
        let checks = checks(self.clone());
        tokio::spawn(async move {
            let mut guard = guard;
            let (stop, time_max) = (guard.runs.stop.clone(), guard.runs.running_time_max);
            guard.error = tokio::select! {
                () = stop.cancelled() => Some("the server was stopped"),
                () = tokio::time::sleep(time_max) => Some("the checks took too long; these are the findings so far"),
                () = checks => None,
            };
        });
    }

    async fn run(&self, config: Config) {
        // The doctor compares the machine's clock, whatever the offset of the server's.
        let context = match CheckContext::build(config, DoctorOptions::default(), Clock::default()).await {
            Ok(context) => context,
            Err(error) => return self.change(|run| run.error = Some(error.to_string())),
        };
        let mut runner = CheckRunner::start(context);
        loop {
            let running = runner.running();
            self.change(|run| run.running = running);
            match runner.next_finding().await {
                Some(finding) => self.change(|run| run.findings.push(finding)),
                None => return,
            }
        }
    }

    /// JSON of the last run; null before the first one.
    pub fn view(&self) -> Value {
        let last = self.last.lock();
        let Some(run) = last.as_ref() else { return json!({"run": null}) };
        let findings: Vec<Value> = run.findings.iter().map(finding_view).collect();
        json!({"run": {
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "running": run.running,
            "error": run.error,
            "findings": findings,
        }})
    }
}

/// Ends a run when its task ends, in whatever way: otherwise no other could begin until a restart.
struct DoctorRunGuard {
    runs: DoctorRuns,
    /// Why the checks have not ended by themselves.
    error: Option<&'static str>,
}

impl Drop for DoctorRunGuard {
    fn drop(&mut self) {
        let ended_at = self.runs.clock.now();
        self.runs.change(|run| {
            run.ended_at = Some(ended_at);
            run.running.clear();
            if let Some(error) = self.error {
                run.error.get_or_insert(error.to_owned());
            }
        });
    }
}

fn finding_view(finding: &DoctorFinding) -> Value {
    let notes: Vec<Value> =
        finding.notes.iter().map(|(status, text)| json!({"status": status, "text": text})).collect();
    json!({"name": finding.name, "status": finding.status, "notes": notes, "fix": finding.fix})
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(runs: &DoctorRuns) -> Value {
        while runs.view()["run"]["ended_at"].is_null() {
            tokio::task::yield_now().await;
        }
        runs.view()["run"]["error"].clone()
    }

    #[tokio::test]
    async fn a_run_ends_whatever_its_checks_do() {
        let runs = DoctorRuns::new(Clock::default(), CancellationToken::new());
        runs.start_with(|_| async { panic!("checks of the test") });
        assert!(run(&runs).await.as_str().unwrap().contains("unexpected"));
        let endless = DoctorRuns { running_time_max: Duration::ZERO, ..runs.clone() };
        endless.start_with(|_| std::future::pending());
        assert!(run(&endless).await.as_str().unwrap().contains("too long"));
        runs.start_with(|_| std::future::ready(()));
        assert_eq!(run(&runs).await, Value::Null);
    }
}
