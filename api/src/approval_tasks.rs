//! Background tasks of approvals: they execute approved requests, end approvals and delete contents. Executions that run
//! at once are bounded in all and for each account, so that slow requests of one account do not keep others waiting.

use std::collections::{HashMap, HashSet};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use model::approval::Approval;
use tokio_util::sync::CancellationToken;

use crate::approval_change;
use crate::approval_executor::{claim, is_due};
use crate::prelude::*;
use crate::server::ApiServer;

/// Interval at which approvals of other nodes are looked for.
const INTERVAL: Duration = Duration::from_secs(30);
const PAGE_APPROVALS: usize = 20;
/// Maximum number of executions at once.
const RUNNING_MAX: usize = 20;
/// Maximum number of executions of an account at once.
const ACCOUNT_RUNNING_MAX: usize = 2;

/// The executions of this node.
#[derive(Default)]
struct Executions {
    running: HashMap<ApprovalId, AccountId>,
    ends: FuturesUnordered<BoxFuture<'static, ApprovalId>>,
    /// Begun since the last interval: they are not begun again before the next one.
    tried: HashSet<ApprovalId>,
    /// True if requests wait for the end of others.
    has_waiting: bool,
}

impl Executions {
    /// Begins executions of requests that are due, as many as the bounds permit.
    async fn begin(&mut self, server: &Arc<ApiServer>) -> Result<()> {
        let state = &server.state;
        self.has_waiting = false;
        let mut after = None;
        loop {
            let page = store::approval::list_executing(&state.services.store, after, PAGE_APPROVALS).await?;
            let now = state.services.clock.now();
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
        let task = server.state.background.tasks.spawn(async move {
            if let Err(problem) = claim(&executor, &approval).await {
                let (store, cause) = (&executor.state.services.store, problem.cause().unwrap_or_default());
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
    async fn wait_for_one(&mut self) -> bool {
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
async fn execute_all(server: &Arc<ApiServer>, stop: &CancellationToken) {
    let state = &server.state;
    let next_interval = || state.services.clock.now().checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
    let mut executions = Executions::default();
    let (mut must_begin, mut next) = (true, next_interval());
    loop {
        if must_begin && let Err(problem) = executions.begin(server).await {
            let cause = problem.cause().unwrap_or_default();
            store::warn_unless_away!(&state.services.store, cause, "cannot read approved requests; retrying");
        }
        let has_running = !executions.running.is_empty();
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.approvals.approved.notified() => must_begin = true,
            () = state.services.clock.sleep_until(next) => {
                executions.begin_interval();
                (must_begin, next) = (true, next_interval());
            }
            _ = executions.wait_for_one(), if has_running => must_begin = executions.has_waiting,
        }
    }
}

/// Executes approved requests until `stop`: at once after a decision at this node, and periodically those of others.
/// Ends approvals and deletes contents meanwhile.
pub(crate) async fn run(server: Arc<ApiServer>, stop: CancellationToken) {
    tokio::join!(execute_all(&server, &stop), end_all(&server, &stop));
}

/// Executes requests that are approved, or that a node which stopped left behind, and waits for their end.
pub async fn execute_approved(server: &Arc<ApiServer>) -> Result<()> {
    let mut executions = Executions::default();
    loop {
        executions.begin(server).await?;
        if !executions.wait_for_one().await {
            return Ok(());
        }
    }
}

async fn end_all(server: &ApiServer, stop: &CancellationToken) {
    let state = &server.state;
    loop {
        if let Err(problem) = end_contents(server).await {
            let cause = problem.cause().unwrap_or_default();
            store::warn_unless_away!(&state.services.store, cause, "cannot end approvals; retrying");
        }
        let next = state.services.clock.now().checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.services.clock.sleep_until(next) => {}
        }
    }
}

/// Ends approvals whose time for a decision is over, and deletes contents that are no longer needed.
pub async fn end_contents(server: &ApiServer) -> Result<()> {
    approval_change::end_contents(&server.state).await
}
