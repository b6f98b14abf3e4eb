//! Ready queue: the tasks of one set of MX hosts and one source pool, shared by all domains with these hosts.
//!
//! Tasks wait here in weighted-fair order until a connection takes them. The queue decides when another connection is
//! opened and when one has to close; the connections run in [`crate::attempt`].

mod standing;

use net::limit::body_budget::BufferedBody;
use net::limit::resizable_semaphore::ResizableSemaphore;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::id::AccountId;
use model::task::{QueueName, Task, TaskClass, TaskTlsRequirement};
use store::engine::Value;
use tokio::sync::Notify;

pub use self::standing::{SiteStanding, SlowedConnections};
use crate::pacing::{Backoff, Pace, PaceLimits};
use crate::provider_limits::{ProviderConnectionPermit, ProviderLimits};
use crate::routing::MailRoute;
use crate::source_pools::SourceAddresses;
use crate::warm_up::WarmUpBudget;
use crate::weighted_fair_queue::WeightedFairQueue;

/// A task that is due.
#[derive(Debug)]
pub struct ReadyTask {
    pub task: Task,
    /// Row as read from disk; `None` for a fresh task, whose row equals its encoding.
    pub row: Option<Value>,
    /// The message, if it is in memory.
    pub body: Option<Arc<BufferedBody>>,
}

#[derive(Debug)]
struct ReadyQueueState {
    tasks: WeightedFairQueue<ReadyTask>,
    pace: Pace,
    /// Limits shared with the other ready queues of the provider.
    provider: Option<Arc<ProviderLimits>>,
    /// Warm-up budget of the source pool for the provider.
    warm_up: Option<Arc<WarmUpBudget>>,
    /// Connections that are open or being opened.
    connections: u32,
    /// Open connections.
    established: u32,
    /// True if the hosts answered promptly at the last dial.
    is_responsive: bool,
    /// Idle connections by number. Each is woken by one task and only once.
    idle: Vec<(u64, Arc<Notify>)>,
    next_waiter: u64,
    /// Queues with due tasks on disk for which there was no capacity.
    parked: HashSet<QueueName>,
    /// Arrival times of the newest task and the one before.
    arrivals: [Option<Timestamp>; 2],
    /// Current or last backoff.
    backoff: Option<BackoffState>,
    /// Last error reply of the hosts, or last connection error.
    last_error: Option<String>,
    /// Time of `last_error`.
    last_error_at: Timestamp,
    /// Cause of a reduced number of connections, until it has recovered.
    slowed: Option<SlowedConnections>,
}

/// A backoff and the reply that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackoffState {
    /// Kind of the backoff.
    pub kind: Backoff,
    /// End of the backoff.
    pub until: Timestamp,
    /// Reply that caused it.
    pub reason: String,
}

/// Reason for sending nothing to a destination at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryObstacle {
    /// Reply of its hosts, or connection error.
    pub reason: String,
    /// End of the obstacle.
    pub until: Timestamp,
}

impl BackoffState {
    /// Keeps the backoff that ends later.
    pub(crate) fn keep_longer(longest: &mut Option<Self>, other: Self) {
        if longest.as_ref().is_none_or(|longest| longest.until < other.until) {
            *longest = Some(other);
        }
    }
}

impl ReadyQueueState {
    /// Lowers the connection limit and records the cause.
    fn reduce(&mut self, reason: &str, lower: impl FnOnce(&mut Pace)) {
        let before = self.pace.connections_max();
        lower(&mut self.pace);
        if self.pace.connections_max() < before {
            let from = self.slowed.as_ref().map_or(before, |slowed| slowed.from.max(before));
            self.slowed = Some(SlowedConnections { from, reason: reason.to_owned() });
        }
    }

    /// Cause of the reduced number of connections, while it is reduced.
    fn slowed(&self) -> Option<SlowedConnections> {
        self.slowed.clone().filter(|slowed| self.pace.connections_max() < slowed.from)
    }

    /// Time until which nothing may be sent, because of the queue or its provider; `None` if sending is allowed.
    fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        let provider_until = self.provider.as_ref().and_then(|provider| provider.backoff_until(now));
        self.pace.unavailable_until(now).max(provider_until)
    }

    /// Time until which the warm-up allows no message.
    fn warm_up_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.warm_up.as_ref()?.exhausted_until(now).map(|(until, _)| until)
    }

    /// Current or last backoff, of the queue or its provider.
    fn backoff_state(&self) -> Option<BackoffState> {
        let mut resting = self.backoff.clone();
        let provider_state = self.provider.as_ref().and_then(|provider| provider.backoff_state());
        provider_state.into_iter().for_each(|provider_state| BackoffState::keep_longer(&mut resting, provider_state));
        resting
    }

    /// Takes a task with the right to send one message by the limits of the queue, the provider and the warm-up. If a
    /// limit is reached, returns the time to try again.
    fn try_take(&mut self, now: Timestamp) -> Result<Option<ReadyTask>, Timestamp> {
        // During a warm-up expiring tasks have priority.
        let is_urgent = self.tasks.has(TaskClass::Expiring);
        let warms_up_until = self.warm_up.as_ref().and_then(|budget| budget.closed_until(is_urgent, now));
        if let Some(until) = self.rate_until(now).max(warms_up_until) {
            return Err(until);
        }
        self.pace.try_acquire(now)?;
        self.provider.as_ref().map_or(Ok(()), |provider| provider.try_acquire_message(now))?;
        let Some(budget) = &self.warm_up else { return Ok(self.tasks.pop()) };
        let is_urgent_only = budget.try_take(now)?;
        Ok(if is_urgent && is_urgent_only { self.tasks.pop_class(TaskClass::Expiring) } else { self.tasks.pop() })
    }

    /// Time until which no further task may be enqueued behind others.
    fn closed_until(&self, has_deadline: bool, now: Timestamp) -> Option<Timestamp> {
        // Tasks may wait for days for a warm-up: leave them on disk, from where they are routed again when they are
        // due. Tasks with a deadline stay in memory, to be ready when a message is allowed.
        let warms_up_until = self.warm_up_until(now).filter(|_| !has_deadline);
        self.unavailable_until(now).max(warms_up_until).filter(|_| !self.tasks.is_empty())
    }

    /// Time until which the rate of the queue or its provider allows no message.
    fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        let provider_until = self.provider.as_ref().and_then(|provider| provider.rate_until(now));
        self.pace.rate_until(now).max(provider_until)
    }
}

/// Result of enqueueing a task.
#[derive(Debug)]
pub enum EnqueueOutcome {
    Enqueued(ConnectDecision),
    /// Nothing may be sent until this time.
    Unavailable(Box<ReadyTask>, Timestamp),
    /// No capacity for the task's class.
    Full(Box<ReadyTask>),
}

/// Decision whether the caller has to open a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectDecision {
    /// An existing connection takes the task.
    Nothing,
    /// Open another connection; it is counted already.
    Connect,
}

/// Result of a failed dial.
#[derive(Debug)]
pub enum ConnectFailure {
    /// Other connections are open: the site accepts no more.
    AtConnectionLimit,
    /// The site may be unreachable.
    Failed,
    /// The site is unreachable: its tasks are deferred.
    Dead {
        /// Time of the next probe.
        until: Timestamp,
        /// Tasks that waited in the queue.
        waiting: Vec<ReadyTask>,
    },
}

/// Next action of a connection.
#[derive(Debug)]
pub enum NextWork {
    Deliver(Box<ReadyTask>),
    /// Wait until this time for the rate limit, the backoff or the next probe.
    Wait(Timestamp),
    /// No task is waiting.
    Empty,
    /// Close the connection, which is counted out already: the limit was lowered.
    Close,
}

/// Ready queue of one route, source pool and TLS requirement.
#[derive(Debug)]
pub struct ReadyQueue {
    route: Arc<MailRoute>,
    source: Arc<SourceAddresses>,
    tls: TaskTlsRequirement,
    state: Mutex<ReadyQueueState>,
    retry_requested: Notify,
    /// Permit to dial hosts that have not answered yet: one at a time where a provider's connections are shared.
    dial_permits: Arc<ResizableSemaphore>,
    first_answer: Notify,
    ready_max: usize,
}

impl ReadyQueue {
    /// Creates an empty ready queue.
    #[must_use]
    pub fn new(
        route: Arc<MailRoute>,
        source: Arc<SourceAddresses>,
        tls: TaskTlsRequirement,
        limits: PaceLimits,
        ready_max: usize,
    ) -> Self {
        let state = ReadyQueueState {
            tasks: WeightedFairQueue::default(),
            pace: Pace::new(limits),
            provider: None,
            warm_up: None,
            connections: 0,
            established: 0,
            is_responsive: false,
            idle: Vec::new(),
            next_waiter: 0,
            parked: HashSet::new(),
            arrivals: [None; 2],
            backoff: None,
            last_error: None,
            last_error_at: Timestamp::UNIX_EPOCH,
            slowed: None,
        };
        Self {
            route,
            source,
            tls,
            state: Mutex::new(state),
            retry_requested: Notify::new(),
            dial_permits: Arc::new(ResizableSemaphore::new(1)),
            first_answer: Notify::new(),
            ready_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadyQueueState> {
        self.state.lock()
    }

    #[must_use]
    pub fn route(&self) -> &Arc<MailRoute> {
        &self.route
    }

    /// Addresses from which the queue's mail is sent.
    #[must_use]
    pub fn source(&self) -> &SourceAddresses {
        &self.source
    }

    /// TLS requirement of the queue's tasks.
    #[must_use]
    pub fn tls(&self) -> TaskTlsRequirement {
        self.tls
    }

    /// Enqueues a task if its class has capacity and sending is allowed. An unavailable queue accepts one task as a
    /// probe. `free` is the remaining memory for all queues. No queue takes more than it leaves to the others, so any
    /// number of slow ones leaves capacity for the next.
    pub fn enqueue(&self, ready: ReadyTask, now: Timestamp, free: usize) -> EnqueueOutcome {
        let mut state = self.lock();
        if let Some(until) = state.closed_until(ready.task.has_deadline, now) {
            return EnqueueOutcome::Unavailable(Box::new(ready), until);
        }
        if self.class_capacity(&state, ready.task.class, free) == 0 {
            return EnqueueOutcome::Full(Box::new(ready));
        }
        state.tasks.push(ready.task.class, ready.task.account, ready);
        state.arrivals = [Some(now), state.arrivals[0]];
        EnqueueOutcome::Enqueued(self.connect_decision(state))
    }

    /// True if keeping a connection open is worthwhile: tasks are waiting, or the last two tasks arrived within
    /// `interval` of each other and of now.
    #[must_use]
    pub fn expects_more(&self, now: Timestamp, interval: Duration) -> bool {
        let state = self.lock();
        let is_close = |later_at: Timestamp, earlier_at: Timestamp| {
            !Duration::try_from(later_at.duration_since(earlier_at)).is_ok_and(|wait| wait > interval)
        };
        match state.arrivals {
            _ if !state.tasks.is_empty() => true,
            [Some(last), Some(before)] => is_close(now, last) && is_close(last, before),
            _ => false,
        }
    }

    /// Puts a task that was taken and not attempted back to the front.
    pub fn requeue(&self, ready: ReadyTask) -> ConnectDecision {
        let mut state = self.lock();
        state.tasks.push_front(ready.task.class, ready.task.account, ready);
        self.connect_decision(state)
    }

    /// Decides whether another connection is wanted now, and counts it.
    pub fn connect_if_wanted(&self) -> ConnectDecision {
        self.connect_decision(self.lock())
    }

    fn connect_decision(&self, mut state: MutexGuard<'_, ReadyQueueState>) -> ConnectDecision {
        if state.tasks.is_empty() {
            return ConnectDecision::Nothing;
        }
        if let Some((_, connection)) = state.idle.pop() {
            drop(state);
            connection.notify_one();
            return ConnectDecision::Nothing;
        }
        if state.connections < state.pace.connections_max() {
            state.connections += 1;
            return ConnectDecision::Connect;
        }
        ConnectDecision::Nothing
    }

    /// Returns the next action of a connection.
    pub fn next_work(&self, now: Timestamp) -> NextWork {
        let mut state = self.lock();
        if state.connections > state.pace.connections_max() {
            // Count the closing connection here, so that only the surplus connections close.
            state.connections -= 1;
            return NextWork::Close;
        }
        if state.tasks.is_empty() {
            return NextWork::Empty;
        }
        if let Some(until) = state.unavailable_until(now) {
            return NextWork::Wait(until);
        }
        match state.try_take(now) {
            Ok(Some(ready)) => NextWork::Deliver(Box::new(ready)),
            Ok(None) => NextWork::Empty,
            Err(at) => NextWork::Wait(at),
        }
    }

    /// Takes a task that may be sent now, for a connection that stays open either way.
    pub fn try_next_work(&self, now: Timestamp) -> Option<Box<ReadyTask>> {
        let mut state = self.lock();
        let free = state.connections <= state.pace.connections_max() && state.unavailable_until(now).is_none();
        // The task would wait behind this connection's current message, so leave it while another connection could take
        // it.
        let free_connections = state.pace.connections_max().saturating_sub(state.connections) as usize;
        if !free || state.tasks.len() <= free_connections {
            return None;
        }
        state.try_take(now).ok().flatten().map(Box::new)
    }

    /// Waits until a task may have arrived.
    pub async fn wait_for_work(&self) {
        let notify = Arc::new(Notify::new());
        let number = {
            let mut state = self.lock();
            if !state.tasks.is_empty() {
                return;
            }
            state.next_waiter += 1;
            let number = state.next_waiter;
            state.idle.push((number, Arc::clone(&notify)));
            number
        };
        /// Removes a finished or cancelled wait from the list.
        struct WaiterGuard<'a>(&'a ReadyQueue, u64);
        impl Drop for WaiterGuard<'_> {
            fn drop(&mut self) {
                self.0.lock().idle.retain(|(number, _)| *number != self.1);
            }
        }
        let _wait = WaiterGuard(self, number);
        notify.notified().await;
    }

    /// Counts a connection as open.
    pub fn connection_opened(&self) {
        self.lock().established += 1;
    }

    /// Records whether the hosts answered promptly when dialled.
    pub(crate) fn record_dial(&self, answers: bool) {
        let answered_before = std::mem::replace(&mut self.lock().is_responsive, answers);
        if answers && !answered_before {
            self.first_answer.notify_waiters();
        }
    }

    /// Counts an open connection as closed or closing.
    pub fn connection_closed(&self) {
        let mut state = self.lock();
        state.established = state.established.saturating_sub(1);
    }

    /// Counts out a connection that ended. Another one may be wanted instead, unless the server is stopping.
    pub fn connection_ended(&self, stopping: bool) -> ConnectDecision {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
        if stopping { ConnectDecision::Nothing } else { self.connect_decision(state) }
    }

    /// Records an accepted message.
    pub fn record_accepted(&self, now: Timestamp) {
        let mut state = self.lock();
        state.pace.record_accepted(now);
        state.slowed = state.slowed();
        if let Some(provider) = &state.provider {
            provider.record_accepted(now);
        }
    }

    /// Records a response of the hosts, positive or negative.
    pub fn record_answer(&self) {
        self.lock().pace.record_answer();
    }

    /// Halves the number of connections because of a reply or error.
    pub fn reduce_connections(&self, reason: &str) {
        self.lock().reduce(reason, Pace::reduce_connections);
    }

    /// Reduces connections and message rate because of a reply.
    pub fn reduce_rate(&self, reason: &str, now: Timestamp) {
        self.lock().reduce(reason, |pace| pace.reduce_rate(now));
    }

    /// Starts a backoff. Returns its end, and the waiting tasks, which the caller returns to disk.
    pub fn back_off(&self, backoff: Backoff, reason: String, now: Timestamp) -> (Timestamp, Vec<ReadyTask>) {
        let mut state = self.lock();
        let provider_until = state.provider.as_ref().map(|provider| provider.back_off(backoff, &reason, now));
        let mut until = now;
        state.reduce(&reason, |pace| until = pace.back_off(backoff, now));
        let until = Some(until).max(provider_until).unwrap_or(now);
        BackoffState::keep_longer(&mut state.backoff, BackoffState { kind: backoff, until, reason });
        (until, std::iter::from_fn(|| state.tasks.pop()).collect())
    }

    /// Time until which nothing may be sent; `None` if sending is allowed.
    #[must_use]
    pub fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().unavailable_until(now)
    }

    /// Returns the cause and end of a backoff or unreachability, if there is one.
    #[must_use]
    pub fn delivery_obstacle(&self, now: Timestamp) -> Option<DeliveryObstacle> {
        let state = self.lock();
        let until = state.unavailable_until(now)?;
        let resting = state.backoff_state().filter(|resting| resting.until > now);
        let text = match (resting, &state.last_error) {
            (Some(BackoffState { reason, .. }), _) => reason,
            (None, Some(error)) => error.clone(),
            (None, None) => "the mail hosts are unreachable".to_owned(),
        };
        Some(DeliveryObstacle { reason: text, until })
    }

    /// Records an error reply of the hosts, or a connection error.
    pub fn record_error(&self, error: String, now: Timestamp) {
        let mut state = self.lock();
        (state.last_error, state.last_error_at) = (Some(error), now);
    }

    /// Returns the last error reply or connection error, and its time.
    #[must_use]
    pub fn last_error(&self) -> Option<(String, Timestamp)> {
        let state = self.lock();
        Some((state.last_error.clone()?, state.last_error_at))
    }

    /// Records a failed dial. While connections are open it lowers the connection limit. With none open it counts
    /// towards unreachability; when that is reached, the waiting tasks are returned and stay on disk until the next
    /// probe.
    pub fn connect_failed(&self, now: Timestamp) -> ConnectFailure {
        let mut state = self.lock();
        let reason = state.last_error.clone().unwrap_or_default();
        if state.established > 0 {
            state.reduce(&reason, Pace::reduce_connections);
            return ConnectFailure::AtConnectionLimit;
        }
        let mut is_dead = false;
        state.reduce(&reason, |pace| is_dead = pace.record_unreachable(now));
        if !is_dead {
            return ConnectFailure::Failed;
        }
        let until = state.pace.dead_until().unwrap_or(now);
        ConnectFailure::Dead { until, waiting: std::iter::from_fn(|| state.tasks.pop()).collect() }
    }

    /// Changes the limits; the measured pace stays.
    pub fn set_limits(&self, limits: PaceLimits) {
        self.lock().pace.set_limits(limits);
    }

    /// Sets the provider's shared limits and the warm-up budget.
    pub(crate) fn set_provider(&self, provider: Option<Arc<ProviderLimits>>, warm_up: Option<Arc<WarmUpBudget>>) {
        let mut state = self.lock();
        (state.provider, state.warm_up) = (provider, warm_up);
    }

    /// Number of waiting tasks.
    pub(crate) fn ready_count(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Removes and returns all waiting tasks.
    pub(crate) fn drain(&self) -> Vec<ReadyTask> {
        let mut state = self.lock();
        std::iter::from_fn(|| state.tasks.pop()).collect()
    }

    /// Wakes connections that wait for the pace, after it was changed.
    pub(crate) fn wake(&self) {
        self.retry_requested.notify_waiters();
    }

    /// Waits for a provider permit to open a connection.
    pub(crate) async fn acquire_provider_permit(&self) -> ProviderConnectionPermit {
        loop {
            let first_answer = self.first_answer.notified();
            let (provider, answers) = {
                let state = self.lock();
                (state.provider.clone(), state.is_responsive)
            };
            let Some(provider) = provider else { return ProviderConnectionPermit::UNLIMITED };
            if answers {
                let share = provider.acquire().await;
                // The hosts may have stopped answering meanwhile.
                if self.lock().is_responsive {
                    return share;
                }
                continue;
            }
            tokio::select! {
                share = provider.acquire_for_dial(&self.dial_permits) => return share,
                () = first_answer => {}
            }
        }
    }

    /// True if other ready queues of the provider wait for a connection permit.
    pub(crate) fn provider_has_waiters(&self) -> bool {
        self.lock().provider.as_ref().is_some_and(|provider| provider.has_waiters())
    }

    /// Ends backoff and unreachability by the operator's command.
    pub fn retry_now(&self) {
        let mut state = self.lock();
        state.pace.reset_unavailable();
        state.backoff = None;
        if let Some(provider) = &state.provider {
            provider.reset_unavailable();
        }
        drop(state);
        self.retry_requested.notify_waiters();
    }

    /// Resolves at the next [`Self::retry_now`] or other wake-up after this call, even before the future is first
    /// polled.
    pub fn retry_requested(&self) -> impl Future<Output = ()> + '_ {
        self.retry_requested.notified()
    }

    /// Messages after which a connection is closed.
    #[must_use]
    pub fn messages_per_connection(&self) -> u32 {
        self.lock().pace.messages_per_connection()
    }

    /// Number of tasks of a class that may be loaded from disk, so that all of them fit after each has taken one of the
    /// `free` places. `Err` is the time until which nothing may be sent. Zero means to wait for capacity
    /// ([`Self::park`]).
    pub fn load_capacity(&self, class: TaskClass, now: Timestamp, free: usize) -> Result<usize, Timestamp> {
        let state = self.lock();
        match state.unavailable_until(now).max(state.closed_until(class == TaskClass::Expiring, now)) {
            Some(until) => Err(until),
            None => {
                let (waiting, capacity) = (state.tasks.len(), self.class_capacity(&state, class, usize::MAX));
                let fair = free.saturating_sub(waiting) / 2;
                Ok(capacity.min(fair).max(usize::from(waiting == 0)))
            }
        }
    }

    /// Number of tasks of a class that may still be enqueued. Lower classes may fill only a part, so that higher ones
    /// always find capacity.
    fn class_capacity(&self, state: &ReadyQueueState, class: TaskClass, free: usize) -> usize {
        let share = match class {
            TaskClass::Expiring | TaskClass::Transactional => self.ready_max,
            TaskClass::Product => self.ready_max / 2,
            TaskClass::Newsletter => self.ready_max / 4,
        };
        share.min(free).max(1).saturating_sub(state.tasks.len())
    }

    /// Remembers a queue for which there was no capacity.
    pub fn park(&self, queue: QueueName) {
        self.lock().parked.insert(queue);
    }

    /// Takes some parked queues, higher classes first, once the queue is at most an eighth full. The others follow as
    /// more messages are sent.
    pub fn take_parked(&self) -> Vec<QueueName> {
        const AT_ONCE: usize = 16;
        let mut state = self.lock();
        if state.parked.is_empty() || state.tasks.len() > self.ready_max / 8 {
            return Vec::new();
        }
        let mut chosen: Vec<QueueName> = state.parked.iter().take(AT_ONCE * 4).cloned().collect();
        chosen.sort_by_key(|queue| queue.class);
        chosen.truncate(AT_ONCE);
        for queue in &chosen {
            state.parked.remove(queue);
        }
        chosen
    }

    /// True if the queue is empty, without connections and not in backoff, so that it can be dropped.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let state = self.lock();
        let is_in_backoff = state.pace.backoff_until().is_some_and(|until| until > now);
        state.connections == 0 && state.tasks.is_empty() && state.parked.is_empty() && !is_in_backoff
    }

    /// Removes a task; false if it is not in the queue.
    pub fn remove(&self, task: &Task) -> bool {
        self.lock().tasks.remove(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Removes and returns all tasks of an account.
    pub(crate) fn remove_account(&self, account: AccountId) -> Vec<ReadyTask> {
        self.lock().tasks.remove_all(account)
    }

    /// Number of tasks ahead of a waiting task.
    #[must_use]
    pub fn position(&self, task: &Task) -> Option<usize> {
        let state = self.lock();
        state.tasks.position(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Returns a snapshot for the operator.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> SiteStanding {
        let state = self.lock();
        SiteStanding {
            name: self.route.queue_name.clone(),
            pool: self.source.pool.clone(),
            ready: state.tasks.len(),
            connections: state.connections,
            open: state.established,
            connections_max: state.pace.connections_max(),
            dead_until: state.pace.dead_until(),
            resting: state.backoff_state(),
            last_error: state.last_error.clone(),
            slowed: state.slowed(),
            is_unreachable: state.established == 0 && state.pace.has_failed(),
            messages_per_second: state.pace.messages_per_second(),
            rate_until: state.rate_until(now),
            warm_up: state.warm_up.as_ref().and_then(|budget| budget.exhausted_until(now)),
            provider_busy: state.provider.as_ref().and_then(|provider| provider.saturated_at(state.is_responsive)),
            parked: state.parked.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::task;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready() -> ReadyTask {
        ReadyTask { task: task(), row: None, body: None }
    }

    #[test]
    fn loaded_tasks_fit_into_the_queue() {
        for (ready_max, free) in [(100, 1_000), (1_000, 100), (1_000, 7), (1_000, 1), (10, 0)] {
            let to = crate::routing::NextHop::Hosts { hosts: Vec::new(), port: 25 };
            let site = ReadyQueue::new(
                Arc::new(to.into()),
                Arc::default(),
                TaskTlsRequirement::Opportunistic,
                PaceLimits::default(),
                ready_max,
            );
            let mut free: usize = free;
            while let Ok(capacity @ 1..) = site.load_capacity(TaskClass::Transactional, at(1), free) {
                free = free.saturating_sub(capacity);
                for _ in 0..capacity {
                    let pushed = site.enqueue(ready(), at(1), free);
                    assert!(matches!(pushed, EnqueueOutcome::Enqueued(_)), "{ready_max} {free} {capacity}: {pushed:?}");
                }
            }
            assert!(site.ready_count() > 0 && site.ready_count() <= ready_max);
        }
    }

    #[test]
    fn more_is_expected_where_messages_follow_one_another() {
        let to = crate::routing::NextHop::Hosts { hosts: Vec::new(), port: 25 };
        let site = ReadyQueue::new(
            Arc::new(to.into()),
            Arc::default(),
            TaskTlsRequirement::Opportunistic,
            PaceLimits::default(),
            10,
        );
        let interval = Duration::from_secs(3);
        let arrives = |second| {
            assert!(matches!(site.enqueue(ready(), at(second), 10), EnqueueOutcome::Enqueued(_)));
            assert!(site.expects_more(at(second), interval), "a task is waiting");
            assert!(matches!(site.next_work(at(second)), NextWork::Deliver(_)));
        };
        arrives(10);
        assert!(!site.expects_more(at(10), interval), "a single task");
        arrives(20);
        assert!(!site.expects_more(at(20), interval), "the previous task was too long ago");
        arrives(22);
        assert!(site.expects_more(at(22), interval) && site.expects_more(at(25), interval));
        assert!(!site.expects_more(at(26), interval), "the last task was too long ago");
    }
}
