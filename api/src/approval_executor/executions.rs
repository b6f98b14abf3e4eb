//! Executions that run at once: bounded in all and for each account, so that slow requests of one account do not keep
//! others waiting.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use mail::approval::Approval;
use mail::id::{AccountId, ApprovalId};
use tokio_util::sync::CancellationToken;

use super::{INTERVAL, claim, is_due};
use crate::problem::Problem;
use crate::server::ApiServer;

const PAGE_APPROVALS: usize = 20;
/// Maximum number of executions at once.
const RUNNING_MAX: usize = 20;
/// Maximum number of executions of an account at once.
const ACCOUNT_RUNNING_MAX: usize = 2;

/// The executions of this node.
#[derive(Default)]
pub(super) struct Executions {
    running: HashMap<ApprovalId, AccountId>,
    ends: FuturesUnordered<BoxFuture<'static, ApprovalId>>,
    /// Begun since the last interval: they are not begun again before the next one.
    tried: HashSet<ApprovalId>,
    /// True if requests wait for the end of others.
    has_waiting: bool,
}

impl Executions {
    /// Begins executions of requests that are due, as many as the bounds permit.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn begin(&mut self, server: &Arc<ApiServer>) -> Result<(), Problem> {
        let state = &server.state;
        self.has_waiting = false;
        let mut after = None;
        loop {
            let page = store::approval::list_executing(state.intake.store(), after, PAGE_APPROVALS).await?;
            let now = state.intake.clock().now();
            let next = page.last().filter(|_| page.len() == PAGE_APPROVALS).map(|last| (last.account, last.id));
            for approval in page {
                if !is_due(&approval, now) || self.tried.contains(&approval.id) {
                    continue;
                }
                let of_account = self.running.values().filter(|account| **account == approval.account).count();
                if self.running.len() >= RUNNING_MAX || of_account >= ACCOUNT_RUNNING_MAX {
                    self.has_waiting = true;
                    continue;
                }
                self.spawn(server, approval);
            }
            if next.is_none() || self.running.len() >= RUNNING_MAX {
                self.has_waiting |= next.is_some();
                return Ok(());
            }
            after = next;
        }
    }

    fn spawn(&mut self, server: &Arc<ApiServer>, approval: Approval) {
        let id = approval.id;
        self.running.insert(id, approval.account);
        self.tried.insert(id);
        let executor = Arc::clone(server);
        // The server waits for its tasks when it stops.
        let task = server.state.tasks.spawn(async move {
            if let Err(problem) = claim(&executor, &approval).await {
                let (store, cause) = (executor.state.intake.store(), problem.cause().unwrap_or_default());
                store::warn_unless_away!(store, approval.id = %id, cause, "cannot execute an approved request yet");
            }
        });
        self.ends.push(Box::pin(async move {
            if let Err(error) = task.await {
                tracing::error!(approval.id = %id, %error, "the task of an approved request failed");
            }
            id
        }));
    }

    /// Waits for the end of an execution. Returns false if none runs.
    pub(super) async fn wait_for_one(&mut self) -> bool {
        let Some(id) = self.ends.next().await else { return false };
        self.running.remove(&id);
        true
    }

    /// Permits to begin again what ended.
    fn begin_interval(&mut self) {
        self.tried.retain(|id| self.running.contains_key(id));
    }
}

/// Executes requests until `stop`.
pub(super) async fn run(server: &Arc<ApiServer>, stop: &CancellationToken) {
    let state = &server.state;
    let next_interval = || state.intake.clock().now().checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
    let mut executions = Executions::default();
    let (mut must_begin, mut next) = (true, next_interval());
    loop {
        if must_begin && let Err(problem) = executions.begin(server).await {
            let cause = problem.cause().unwrap_or_default();
            store::warn_unless_away!(state.intake.store(), cause, "cannot read approved requests; retrying");
        }
        let has_running = !executions.running.is_empty();
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.approvals.approved.notified() => must_begin = true,
            () = state.intake.clock().sleep_until(next) => {
                executions.begin_interval();
                (must_begin, next) = (true, next_interval());
            }
            _ = executions.wait_for_one(), if has_running => must_begin = executions.has_waiting,
        }
    }
}
