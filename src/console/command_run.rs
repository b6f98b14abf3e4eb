//! Commands that take long, in the background: the operator sees their progress and comes back later.
//!
//! At most [`RUNNING_MAX`] run at the same time, and the last [`KEPT`] results are kept.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use queue::clock::Clock;
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
/// Progress lines in the channel.
const STEPS_MAX: usize = 16;

/// The commands of this process.
#[derive(Debug, Clone)]
pub struct CommandRuns {
    clock: Clock,
    stop: CancellationToken,
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
    #[must_use]
    pub fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self { clock, stop, state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, RunsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let command = command(progress);
        let (runs, (sender, mut ended)) = (self.clone(), watch::channel(false));
        tokio::spawn(async move {
            let mut command = std::pin::pin!(command);
            let result = loop {
                tokio::select! {
                    () = runs.stop.cancelled() => break Err("the server was stopped".into()),
                    Some(step) = steps.recv() => runs.change(number, |run| run.progress = Some(step)),
                    result = &mut command => break result,
                }
            };
            let now = runs.clock.now();
            runs.change(number, |run| run.end = Some((now, result)));
            let _ = sender.send(true);
        });
        // The command goes on after that.
        let _ = tokio::time::timeout(PROMPT, ended.wait_for(|ended| *ended)).await;
        Ok(number)
    }

    fn begin(&self, request: Value) -> Result<u64, AdminError> {
        let started_at = self.clock.now();
        let mut state = self.lock();
        if state.runs.iter().filter(|run| run.end.is_none()).count() >= RUNNING_MAX {
            let message = format!("{RUNNING_MAX} commands are running: wait until one of them ends");
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

    fn change(&self, number: u64, change: impl FnOnce(&mut CommandRun)) {
        if let Some(run) = self.lock().runs.iter_mut().find(|run| run.number == number) {
            change(run);
        }
    }

    /// JSON of a command; `None` if it is not kept.
    #[must_use]
    pub fn view(&self, number: u64) -> Option<Value> {
        self.lock().runs.iter().find(|run| run.number == number).map(CommandRun::view)
    }

    /// JSON of all commands, newest first.
    #[must_use]
    pub fn list(&self) -> Value {
        json!({"runs": self.lock().runs.iter().rev().map(CommandRun::view).collect::<Vec<_>>()})
    }
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

    #[tokio::test(start_paused = true)]
    async fn progress_is_shown_and_a_stop_ends_commands() {
        let stop = CancellationToken::new();
        let runs = CommandRuns::new(Clock::default(), stop.clone());
        let endless = |progress: mpsc::Sender<String>| async move {
            progress.send("half".to_owned()).await.unwrap();
            std::future::pending().await
        };
        for _ in 0..RUNNING_MAX {
            let number = runs.start(json!({}), endless).await.unwrap();
            assert_eq!(runs.view(number).unwrap()["progress"], "half");
        }
        assert_eq!(runs.start(json!({}), endless).await.unwrap_err().code, "busy");
        stop.cancel();
        while runs.view(1).unwrap()["error"].is_null() {
            tokio::task::yield_now().await;
        }
    }
}
