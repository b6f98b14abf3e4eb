//! Commands that take long, in the background: the operator sees their progress and comes back later.
//!
//! At most [`RUNNING_MAX`] run at the same time, and the last [`KEPT`] results are kept. A command that fails in an
//! unexpected way, or takes longer than [`RUNNING_TIME_MAX`], makes room for others.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use net::clock::Clock;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::admin::AdminError;

/// Concurrent commands.
const RUNNING_MAX: usize = 4;
/// Results that are kept.
const KEPT: usize = 20;
/// A command that ends within this time is shown with its result at once.
const PROMPT: Duration = Duration::from_millis(1_500);
/// A command that has not ended after this time is given up here. One on queued mail is stored, and goes on.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(3_600);
/// Progress lines in the channel.
const STEPS_MAX: usize = 16;

/// The commands of this process.
#[derive(Debug, Clone)]
pub struct CommandRuns {
    clock: Clock,
    stop: CancellationToken,
    prompt: Duration,
    running_time_max: Duration,
    state: Arc<Mutex<RunsState>>,
}

#[derive(Debug, Default)]
struct RunsState {
    last_number: u64,
    /// Oldest first.
    runs: VecDeque<CommandRun>,
}

#[derive(Debug)]
struct CommandRun {
    number: u64,
    /// The request as the page wrote it.
    request: Value,
    started_at: Timestamp,
    progress: Option<String>,
    end: Option<(Timestamp, Result<Value, AdminError>)>,
}

impl CommandRun {
    fn view(&self) -> Value {
        let (ended_at, result, error) = match &self.end {
            None => (None, None, None),
            Some((at, Ok(result))) => (Some(at), Some(result), None),
            Some((at, Err(error))) => (Some(at), None, Some(&error.message)),
        };
        json!({
            "number": self.number,
            "request": self.request,
            "started_at": self.started_at,
            "progress": self.progress,
            "ended_at": ended_at,
            "result": result,
            "error": error,
        })
    }
}

impl CommandRuns {
    pub fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self { clock, stop, prompt: PROMPT, running_time_max: RUNNING_TIME_MAX, state: Arc::default() }
    }

    /// Starts a command and waits briefly for its end. Returns its number.
    ///
    /// # Errors
    /// `busy`: too many commands are running.
    pub async fn start<F>(
        &self,
        request: Value,
        command: impl FnOnce(mpsc::Sender<String>) -> F,
    ) -> Result<u64, AdminError>
    where
        F: Future<Output = Result<Value, AdminError>> + Send + 'static,
    {
        let number = self.begin(request)?;
        let (progress, mut steps) = mpsc::channel(STEPS_MAX);
        let (sender, mut ended) = watch::channel(false);
        let run = RunGuard { runs: self.clone(), number, ended: sender };
        let command = command(progress);
        tokio::spawn(async move {
            let runs = &run.runs;
            let mut command = std::pin::pin!(command);
            let mut timeout = std::pin::pin!(tokio::time::sleep(runs.running_time_max));
            let result = loop {
                tokio::select! {
                    () = runs.stop.cancelled() => break Err("the server was stopped".into()),
                    () = &mut timeout => break Err(gave_up(runs.running_time_max)),
                    Some(step) = steps.recv() => runs.change(number, |run| run.progress = Some(step)),
                    result = &mut command => break result,
                }
            };
            run.end(result);
        });
        // The command goes on after that.
        let _ = tokio::time::timeout(self.prompt, ended.wait_for(|ended| *ended)).await;
        Ok(number)
    }

    fn begin(&self, request: Value) -> Result<u64, AdminError> {
        let started_at = self.clock.now();
        let mut state = self.state.lock();
        if state.runs.iter().filter(|run| run.end.is_none()).count() >= RUNNING_MAX {
            let message = format!("{RUNNING_MAX} commands are running: wait until one of them finishes");
            return Err(AdminError::with_code("busy", message));
        }
        while state.runs.len() >= KEPT {
            let Some(oldest) = state.runs.iter().position(|run| run.end.is_some()) else { break };
            state.runs.remove(oldest);
        }
        state.last_number += 1;
        let number = state.last_number;
        state.runs.push_back(CommandRun { number, request, started_at, progress: None, end: None });
        Ok(number)
    }

    fn end(&self, number: u64, result: Result<Value, AdminError>) {
        let now = self.clock.now();
        self.change(number, |run| {
            run.end.get_or_insert((now, result));
        });
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut CommandRun)) {
        if let Some(run) = self.state.lock().runs.iter_mut().find(|run| run.number == number) {
            change(run);
        }
    }

    /// JSON of a command; `None` if it is not kept.
    pub fn view(&self, number: u64) -> Option<Value> {
        self.state.lock().runs.iter().find(|run| run.number == number).map(CommandRun::view)
    }

    /// JSON of all commands, newest first.
    pub fn list(&self) -> Value {
        json!({"runs": self.state.lock().runs.iter().rev().map(CommandRun::view).collect::<Vec<_>>()})
    }
}

/// Ends a run when its task ends, in whatever way: otherwise it would count as running until a restart.
struct RunGuard {
    runs: CommandRuns,
    number: u64,
    ended: watch::Sender<bool>,
}

impl RunGuard {
    fn end(&self, result: Result<Value, AdminError>) {
        self.runs.end(self.number, result);
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        // Has no effect after an end with a result.
        self.end(Err("the command failed unexpectedly: see the log for the reason".into()));
        let _ = self.ended.send(true);
    }
}

fn gave_up(after: Duration) -> AdminError {
    let minutes = after.as_secs() / 60;
    format!("not finished after {minutes} minutes; a command on queued mail continues in the background").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_are_bounded_and_kept() {
        let runs = CommandRuns::new(Clock::default(), CancellationToken::new());
        for n in 0..KEPT + 5 {
            let number = runs.start(json!({"n": n}), |_| async move { Ok(json!(n)) }).await.unwrap();
            let view = runs.view(number).unwrap();
            assert_eq!((&view["result"], view["ended_at"].is_string()), (&json!(n), true));
        }
        assert_eq!(runs.list()["runs"].as_array().unwrap().len(), KEPT);
        assert_eq!(runs.view(1), None);
    }

    #[tokio::test]
    async fn progress_is_shown_and_a_stop_ends_commands() {
        let stop = CancellationToken::new();
        let runs = CommandRuns { prompt: Duration::ZERO, ..CommandRuns::new(Clock::default(), stop.clone()) };
        let endless = |progress: mpsc::Sender<String>| async move {
            progress.send("half".to_owned()).await.unwrap();
            std::future::pending().await
        };
        for _ in 0..RUNNING_MAX {
            let number = runs.start(json!({}), endless).await.unwrap();
            while runs.view(number).unwrap()["progress"] != "half" {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(runs.start(json!({}), endless).await.unwrap_err().code, "busy");
        stop.cancel();
        while runs.view(1).unwrap()["error"].is_null() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn commands_that_panic_or_never_end_make_room() {
        let runs = CommandRuns::new(Clock::default(), CancellationToken::new());
        for _ in 0..RUNNING_MAX {
            let number = runs.start(json!({}), |_| async { panic!("a command of the test") }).await.unwrap();
            let error = runs.view(number).unwrap()["error"].clone();
            assert!(error.as_str().unwrap().contains("unexpected"), "{error}");
        }
        let runs = CommandRuns { running_time_max: Duration::ZERO, ..runs };
        for _ in 0..RUNNING_MAX {
            let number = runs.start(json!({}), |_| std::future::pending()).await.unwrap();
            let error = runs.view(number).unwrap()["error"].clone();
            assert!(error.as_str().unwrap().contains("not finished"), "{error}");
        }
        assert!(runs.start(json!({}), |_| async { Ok(json!(1)) }).await.is_ok());
    }
}
