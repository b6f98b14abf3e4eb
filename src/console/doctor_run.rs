//! The doctor's checks, run in the background: one run at a time, and the findings of the last one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use queue::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::doctor::CheckRunner;
use crate::doctor::context::{CheckContext, DoctorOptions};
use crate::doctor::finding::DoctorFinding;

/// The last run of the doctor.
#[derive(Debug, Clone)]
pub struct DoctorRuns {
    clock: Clock,
    stop: CancellationToken,
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
    #[must_use]
    pub fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self { clock, stop, last: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<DoctorRun>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut DoctorRun)) {
        if let Some(run) = self.lock().as_mut() {
            change(run);
        }
    }

    /// Starts the checks with the configuration of the server, unless they are running. Each check has a timeout.
    pub fn start(&self, config: Config) {
        let mut last = self.lock();
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
        let runs = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = runs.stop.cancelled() => {}
                () = runs.run(config) => {}
            }
            let ended_at = runs.clock.now();
            runs.change(|run| {
                run.ended_at = Some(ended_at);
                run.running.clear();
            });
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
    #[must_use]
    pub fn view(&self) -> Value {
        let last = self.lock();
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

fn finding_view(finding: &DoctorFinding) -> Value {
    let notes: Vec<Value> =
        finding.notes.iter().map(|(status, text)| json!({"status": status, "text": text})).collect();
    json!({"name": finding.name, "status": finding.status, "notes": notes, "fix": finding.fix})
}
