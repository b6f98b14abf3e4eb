//! Ready queue: the tasks of one set of MX hosts and one source pool, shared by all domains with these hosts.
//!
//! ```text
//! WaitingTasks ─► SiteThrottle: may a message be sent now? ─► SiteConnections: by which connection?
//! ```
//!
//! Tasks wait here in weighted-fair order until a connection takes them. The queue decides when another connection is
//! opened and when one has to close; the connections run in [`crate::delivery::attempt`]. Tasks, throttle and connections are
//! under one lock, because each decision needs all three.

mod dial_limiter;
mod site_connections;
mod site_throttle;
mod status;
mod waiting_tasks;

use std::sync::Arc;

use jiff::Timestamp;
use model::id::AccountId;
use model::task::{QueueName, Task, TaskClass, TaskTlsRequirement};
use parking_lot::Mutex;
use tokio::sync::Notify;

use self::dial_limiter::DialLimiter;
use self::site_connections::SiteConnections;
use self::site_throttle::SiteThrottle;
use self::waiting_tasks::WaitingTasks;
use crate::routing::MailRoute;
use crate::scheduler::pacing::Backpressure;
use crate::scheduler::provider_limits::ProviderConnectionPermit;
use crate::scheduler::source_pools::SourceAddresses;

pub use self::site_throttle::DeliveryObstacle;
pub use self::status::{ConnectionUsage, ReadyQueueStatus, SlowedConnections, ThrottleStatus};
pub use self::waiting_tasks::{IDLE_TIMEOUT, ReadyTask};

pub(crate) use self::site_throttle::SendLimits;

#[derive(Debug)]
struct ReadyQueueState {
    waiting: WaitingTasks,
    throttle: SiteThrottle,
    connections: SiteConnections,
}

impl ReadyQueueState {
    /// Takes a task with the right to send one message. If a limit is reached, returns the time to try again.
    fn try_take(&mut self, now: Timestamp) -> Result<Option<ReadyTask>, Timestamp> {
        let has_expiring = self.waiting.tasks.has(TaskClass::Expiring);
        let is_expiring_only = self.throttle.try_acquire(has_expiring, now)?;
        let tasks = &mut self.waiting.tasks;
        Ok(if is_expiring_only { tasks.pop_class(TaskClass::Expiring) } else { tasks.pop() })
    }

    /// Takes a task that may be sent now, for a connection that is sending a message and stays open either way. The task
    /// would wait behind that message, so it is left to other connections while there may be more of them.
    fn try_take_ahead(&mut self, now: Timestamp) -> Option<ReadyTask> {
        let (counted, connections_max) = (self.connections.counted, self.throttle.pace.connections_max());
        let free_connections = connections_max.saturating_sub(counted) as usize;
        if counted > connections_max
            || self.waiting.tasks.len() <= free_connections
            || self.throttle.unavailable_until(now).is_some()
        {
            return None;
        }
        self.try_take(now).ok().flatten()
    }

    /// Returns the connection that is to take a waiting task beside the busy ones. A new one is counted.
    fn wanted_connection(&mut self) -> WantedConnection {
        if self.waiting.tasks.is_empty() {
            return WantedConnection::None;
        }
        if let Some(wake) = self.connections.take_idle() {
            return WantedConnection::Idle(wake);
        }
        match self.connections.try_count(self.throttle.pace.connections_max()) {
            true => WantedConnection::New,
            false => WantedConnection::None,
        }
    }

    /// Time until which no further task may be enqueued behind others.
    fn closed_until(&self, has_deadline: bool, now: Timestamp) -> Option<Timestamp> {
        self.throttle.closed_until(has_deadline, now).filter(|_| !self.waiting.tasks.is_empty())
    }
}

/// A connection that is wanted for waiting tasks.
enum WantedConnection {
    None,
    /// An idle connection, to be woken.
    Idle(Arc<Notify>),
    New,
}

impl WantedConnection {
    /// Wakes an idle connection. Call it after the lock is released.
    fn decide(self) -> ConnectDecision {
        match self {
            Self::New => return ConnectDecision::Connect,
            Self::Idle(wake) => wake.notify_one(),
            Self::None => {}
        }
        ConnectDecision::Nothing
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

/// Tasks that were waiting when their destination became unavailable. The caller returns them to disk.
#[derive(Debug)]
pub struct DeferredTasks {
    /// Time of the next attempt.
    pub until: Timestamp,
    pub tasks: Vec<ReadyTask>,
}

/// Result of a failed dial.
#[derive(Debug)]
pub enum ConnectFailure {
    /// Other connections are open: the site accepts no more.
    AtConnectionLimit,
    /// The site may be unreachable.
    Failed,
    /// The site is unreachable: its tasks are deferred until the next probe.
    Dead(DeferredTasks),
}

/// Next action of a connection.
#[derive(Debug)]
pub enum NextWork {
    Deliver(Box<ReadyTask>),
    /// Wait until this time for the rate limit, the backoff or the next probe.
    Wait(Timestamp),
    /// No task is waiting, and the next may arrive soon.
    Idle,
    /// No task is waiting.
    Empty,
    /// Close the connection, which is counted out already: the limit was lowered.
    Close,
}

/// Work of a connection behind the message that it is about to send.
#[derive(Debug)]
pub struct WorkAhead {
    /// Decision about another connection for tasks that would wait behind the message.
    pub connect: ConnectDecision,
    /// The next message of the connection.
    pub next: Option<Box<ReadyTask>>,
    /// The connection closes after the message.
    pub is_last: bool,
}

/// Ready queue of one route, source pool and TLS requirement.
#[derive(Debug)]
pub struct ReadyQueue {
    pub route: Arc<MailRoute>,
    /// Addresses from which the queue's mail is sent.
    pub source: Arc<SourceAddresses>,
    /// TLS requirement of the queue's tasks.
    pub tls: TaskTlsRequirement,
    state: Mutex<ReadyQueueState>,
    pub(crate) dials: DialLimiter,
    retry_requested: Notify,
}

impl ReadyQueue {
    /// Creates an empty ready queue for at most `ready_max` tasks.
    pub(crate) fn new(
        route: Arc<MailRoute>,
        source: Arc<SourceAddresses>,
        tls: TaskTlsRequirement,
        limits: SendLimits,
        ready_max: usize,
    ) -> Self {
        let state = ReadyQueueState {
            waiting: WaitingTasks::new(ready_max),
            throttle: SiteThrottle::new(limits),
            connections: SiteConnections::default(),
        };
        Self { route, source, tls, state: Mutex::new(state), dials: DialLimiter::new(), retry_requested: Notify::new() }
    }

    /// Enqueues a task if its class has capacity and sending is allowed. An unavailable queue accepts one task as a
    /// probe. `free` is the remaining memory for all queues. No queue takes more than it leaves to the others, so any
    /// number of slow ones leaves capacity for the next.
    pub fn enqueue(&self, ready: ReadyTask, now: Timestamp, free: usize) -> EnqueueOutcome {
        let mut state = self.state.lock();
        if let Some(until) = state.closed_until(ready.task.has_deadline, now) {
            return EnqueueOutcome::Unavailable(Box::new(ready), until);
        }
        if state.waiting.class_capacity(ready.task.class, free) == 0 {
            return EnqueueOutcome::Full(Box::new(ready));
        }
        state.waiting.push(ready, now);
        let wanted = state.wanted_connection();
        drop(state);
        EnqueueOutcome::Enqueued(wanted.decide())
    }

    /// Puts a task that was taken and not attempted back to the front.
    pub fn requeue(&self, ready: ReadyTask) -> ConnectDecision {
        let mut state = self.state.lock();
        state.waiting.push_front(ready);
        let wanted = state.wanted_connection();
        drop(state);
        wanted.decide()
    }

    /// Returns the next action of a connection.
    pub fn next_work(&self, now: Timestamp) -> NextWork {
        let mut state = self.state.lock();
        let connections_max = state.throttle.pace.connections_max();
        if state.connections.try_uncount(connections_max) {
            return NextWork::Close;
        }
        if state.waiting.tasks.is_empty() {
            return if state.waiting.expects_more(now) { NextWork::Idle } else { NextWork::Empty };
        }
        if let Some(until) = state.throttle.unavailable_until(now) {
            return NextWork::Wait(until);
        }
        match state.try_take(now) {
            Ok(Some(ready)) => NextWork::Deliver(Box::new(ready)),
            Ok(None) => NextWork::Empty,
            Err(at) => NextWork::Wait(at),
        }
    }

    /// Plans the work of a connection that is about to send its message number `sent`, which may be its last by the
    /// caller's decision. It is also the last one if the connection's limit is reached, or no further task is expected.
    pub fn work_ahead(&self, sent: u32, is_last: bool, now: Timestamp) -> WorkAhead {
        let mut state = self.state.lock();
        let wanted = state.wanted_connection();
        let is_last = is_last || sent >= state.throttle.pace.messages_per_connection();
        let next = if is_last { None } else { state.try_take_ahead(now).map(Box::new) };
        let is_last = is_last || next.is_none() && !state.waiting.expects_more(now);
        drop(state);
        WorkAhead { connect: wanted.decide(), next, is_last }
    }

    /// Waits until a task may have arrived.
    pub async fn wait_for_work(&self) {
        let notify = Arc::new(Notify::new());
        let number = {
            let mut state = self.state.lock();
            if !state.waiting.tasks.is_empty() {
                return;
            }
            state.connections.add_idle(Arc::clone(&notify))
        };
        /// Removes a finished or cancelled wait from the list.
        struct WaiterGuard<'a>(&'a ReadyQueue, u64);
        impl Drop for WaiterGuard<'_> {
            fn drop(&mut self) {
                self.0.state.lock().connections.remove_idle(self.1);
            }
        }
        let _wait = WaiterGuard(self, number);
        notify.notified().await;
    }

    /// Counts a connection as open.
    pub fn connection_opened(&self) {
        self.state.lock().connections.open += 1;
    }

    /// Counts an open connection as closed or closing.
    pub fn connection_closed(&self) {
        let mut state = self.state.lock();
        state.connections.open = state.connections.open.saturating_sub(1);
    }

    /// Counts out a connection that ended. Another one may be wanted instead, unless the server is stopping.
    pub fn connection_ended(&self, stopping: bool) -> ConnectDecision {
        let mut state = self.state.lock();
        state.connections.uncount();
        if stopping {
            return ConnectDecision::Nothing;
        }
        let wanted = state.wanted_connection();
        drop(state);
        wanted.decide()
    }

    /// Applies the effect of a reply, whose diagnostic text becomes the cause. A backoff removes the waiting tasks.
    pub fn apply_backpressure(
        &self,
        pressure: Backpressure,
        diagnostic: impl FnOnce() -> String,
        now: Timestamp,
    ) -> Option<DeferredTasks> {
        if pressure == Backpressure::Unchanged {
            return None;
        }
        let mut state = self.state.lock();
        let until = state.throttle.apply(pressure, diagnostic, now)?;
        Some(DeferredTasks { until, tasks: state.waiting.take_all() })
    }

    /// Time until which nothing may be sent; `None` if sending is allowed.
    pub fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.state.lock().throttle.unavailable_until(now)
    }

    /// Returns the cause and end of a backoff or unreachability, if there is one.
    pub fn delivery_obstacle(&self, now: Timestamp) -> Option<DeliveryObstacle> {
        self.state.lock().throttle.obstacle(now)
    }

    /// Records an error reply of the hosts, or a connection error.
    pub fn record_error(&self, error: String, now: Timestamp) {
        self.state.lock().throttle.last_error = Some((error, now));
    }

    /// Returns the last error reply or connection error, and its time.
    pub fn last_error(&self) -> Option<(String, Timestamp)> {
        self.state.lock().throttle.last_error.clone()
    }

    /// Records a failed dial. While connections are open it lowers the connection limit. With none open it counts
    /// towards unreachability; when that is reached, the waiting tasks are returned and stay on disk until the next
    /// probe.
    pub fn connect_failed(&self, now: Timestamp) -> ConnectFailure {
        let mut state = self.state.lock();
        if state.connections.open > 0 {
            state.throttle.record_connection_limit();
            return ConnectFailure::AtConnectionLimit;
        }
        match state.throttle.record_unreachable(now) {
            Some(until) => ConnectFailure::Dead(DeferredTasks { until, tasks: state.waiting.take_all() }),
            None => ConnectFailure::Failed,
        }
    }

    /// Changes the limits; the measured pace stays.
    pub(crate) fn set_limits(&self, limits: SendLimits) {
        self.state.lock().throttle.set_limits(limits);
    }

    /// Number of waiting tasks.
    pub(crate) fn ready_count(&self) -> usize {
        self.state.lock().waiting.tasks.len()
    }

    /// Removes and returns all waiting tasks.
    pub(crate) fn drain(&self) -> Vec<ReadyTask> {
        self.state.lock().waiting.take_all()
    }

    /// Wakes connections that wait for the pace, after it was changed.
    pub(crate) fn wake(&self) {
        self.retry_requested.notify_waiters();
    }

    /// Waits for a provider permit to open a connection.
    pub(crate) async fn acquire_provider_permit(&self) -> ProviderConnectionPermit {
        self.dials.acquire(|| self.state.lock().throttle.provider.clone()).await
    }

    /// True if other ready queues of the provider wait for a connection permit.
    pub(crate) fn provider_has_waiters(&self) -> bool {
        self.state.lock().throttle.provider.as_ref().is_some_and(|provider| provider.has_waiters())
    }

    /// Ends backoff and unreachability by the operator's command.
    pub fn retry_now(&self) {
        self.state.lock().throttle.reset_unavailable();
        self.retry_requested.notify_waiters();
    }

    /// Resolves at the next [`Self::retry_now`] or other wake-up after this call, even before the future is first
    /// polled.
    pub fn retry_requested(&self) -> impl Future<Output = ()> + '_ {
        self.retry_requested.notified()
    }

    /// Number of tasks of a class that may be loaded from disk, so that all of them fit after each has taken one of the
    /// `free` places. `Err` is the time until which nothing may be sent. Zero means to wait for capacity
    /// ([`Self::park`]).
    pub fn load_capacity(&self, class: TaskClass, now: Timestamp, free: usize) -> Result<usize, Timestamp> {
        let state = self.state.lock();
        let closed_until = state.closed_until(class == TaskClass::Expiring, now);
        match state.throttle.unavailable_until(now).max(closed_until) {
            Some(until) => Err(until),
            None => Ok(state.waiting.load_capacity(class, free)),
        }
    }

    /// Remembers a queue for which there was no capacity.
    pub fn park(&self, queue: QueueName) {
        self.state.lock().waiting.park(queue);
    }

    /// Takes some parked queues, higher classes first, once the queue is at most an eighth full.
    pub fn take_parked(&self) -> Vec<QueueName> {
        self.state.lock().waiting.take_parked()
    }

    /// True if the queue is empty, without connections and not in backoff, so that it can be dropped.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let ReadyQueueState { waiting, throttle, connections } = &*self.state.lock();
        let is_in_backoff = throttle.pace.backoff_until.is_some_and(|until| until > now);
        connections.counted == 0 && waiting.tasks.is_empty() && waiting.parked_count() == 0 && !is_in_backoff
    }

    /// Removes a task; false if it is not in the queue.
    pub fn remove(&self, task: &Task) -> bool {
        self.state.lock().waiting.tasks.remove(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Removes and returns all tasks of an account.
    pub(crate) fn remove_account(&self, account: AccountId) -> Vec<ReadyTask> {
        self.state.lock().waiting.tasks.remove_all(account)
    }

    /// Number of tasks ahead of a waiting task.
    pub fn position(&self, task: &Task) -> Option<usize> {
        self.state.lock().waiting.tasks.position(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Returns a snapshot for the operator.
    pub fn status(&self, now: Timestamp) -> ReadyQueueStatus {
        let ReadyQueueState { waiting, throttle, connections } = &*self.state.lock();
        let is_responsive = self.dials.is_responsive();
        ReadyQueueStatus {
            name: self.route.queue_name.clone(),
            pool: self.source.pool.clone(),
            ready: waiting.tasks.len(),
            parked: waiting.parked_count(),
            connections: ConnectionUsage {
                counted: connections.counted,
                open: connections.open,
                max: throttle.pace.connections_max(),
                slowed: throttle.slowed(),
                provider_busy: throttle.provider.as_ref().and_then(|provider| provider.saturated_at(is_responsive)),
            },
            throttle: throttle.status(connections.open > 0, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::outcome::tests::task;
    use crate::scheduler::pacing::PaceLimits;

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
                SendLimits::default(),
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
            SendLimits::default(),
            10,
        );
        let arrives = |second| {
            assert!(matches!(site.enqueue(ready(), at(second), 10), EnqueueOutcome::Enqueued(_)));
            assert!(matches!(site.next_work(at(second)), NextWork::Deliver(_)));
        };
        let expects_more = |second| match site.next_work(at(second)) {
            NextWork::Idle => true,
            NextWork::Empty => false,
            other => panic!("{other:?}"),
        };
        arrives(10);
        assert!(!expects_more(10), "a single task");
        arrives(20);
        assert!(!expects_more(20), "the previous task was too long ago");
        arrives(22);
        assert!(expects_more(22) && expects_more(25));
        assert!(!expects_more(26), "the last task was too long ago");
    }

    #[test]
    fn a_task_is_taken_ahead_if_no_other_connection_can_take_it() {
        let to = crate::routing::NextHop::Hosts { hosts: Vec::new(), port: 25 };
        let pace = PaceLimits {
            connections_start: 1,
            connections_max: 1,
            messages_per_connection: 3,
            ..PaceLimits::default()
        };
        let limits = SendLimits { pace, ..SendLimits::default() };
        let site = ReadyQueue::new(Arc::new(to.into()), Arc::default(), TaskTlsRequirement::Opportunistic, limits, 10);
        let enqueue = || site.enqueue(ready(), at(1), 10);
        assert!(matches!(enqueue(), EnqueueOutcome::Enqueued(ConnectDecision::Connect)));
        assert!(matches!(site.next_work(at(1)), NextWork::Deliver(_)));
        let alone = site.work_ahead(1, false, at(1));
        assert!(alone.next.is_none() && alone.is_last, "no further task is expected");
        assert!(matches!(enqueue(), EnqueueOutcome::Enqueued(ConnectDecision::Nothing)));
        let followed = site.work_ahead(2, false, at(1));
        assert!(followed.next.is_some() && !followed.is_last && followed.connect == ConnectDecision::Nothing);
        assert!(matches!(enqueue(), EnqueueOutcome::Enqueued(ConnectDecision::Nothing)));
        let last = site.work_ahead(3, false, at(1));
        assert!(last.next.is_none() && last.is_last, "the connection's limit is reached");
    }
}
