//! A site: the ready stage of one set of MX hosts, shared by all domains behind it.
//!
//! Tasks wait here in weighted-fair order until a connection takes them. The site says when another
//! connection may be opened, and when one should close; the connections themselves are
//! [`crate::attempt`]'s.

mod standing;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mail::id::AccountId;
use mail::task::{QueueName, Task, TaskClass, TaskTlsRequirement};
use store::engine::Value;
use tokio::sync::Notify;

pub use self::standing::{SiteStanding, SlowedConnections};
use crate::bodies::BufferedBody;
use crate::fair::WeightedFairQueue;
use crate::pace::{Backoff, Pace, PaceLimits};
use crate::places::ResizableSemaphore;
use crate::plan::MailRoute;
use crate::pools::SourceAddresses;
use crate::provider::{ProviderConnectionPermit, ProviderLimits};
use crate::warm_up::WarmUpBudget;

/// A task that may go now.
#[derive(Debug)]
pub struct ReadyTask {
    /// The task.
    pub task: Task,
    /// Its row as it was read from disk; none for a fresh one, whose row is what we write.
    pub row: Option<Value>,
    /// Its message, when it is in memory.
    pub body: Option<Arc<BufferedBody>>,
}

#[derive(Debug)]
struct ReadyQueueState {
    tasks: WeightedFairQueue<ReadyTask>,
    pace: Pace,
    /// Whose site it is, where the sites of one provider are paced together.
    provider: Option<Arc<ProviderLimits>>,
    /// What may go there while the addresses that it is served from are warmed up.
    warm_up: Option<Arc<WarmUpBudget>>,
    /// Connections that are open or being opened.
    connections: u32,
    /// Those of them that are open.
    established: u32,
    /// Whether it answered, and soon, when it was dialled last.
    is_responsive: bool,
    /// Connections that wait for work, by number: each is woken by one task, and by one only.
    idle: Vec<(u64, Arc<Notify>)>,
    next_waiter: u64,
    /// Queues with due tasks on disk for which there was no room.
    parked: HashSet<QueueName>,
    /// When the newest task arrived, and the one before it.
    arrivals: [Option<Timestamp>; 2],
    /// Why it rests, or did last.
    backoff: Option<BackoffState>,
    /// The last refusal of its hosts, or error on the way to them.
    last_error: Option<String>,
    /// When it was said.
    last_error_at: Timestamp,
    /// Why fewer connections may be open than before, until there may be as many again.
    slowed: Option<SlowedConnections>,
}

/// Why a site is left alone that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackoffState {
    /// How.
    pub kind: Backoff,
    /// Until when.
    pub until: Timestamp,
    /// What it said.
    pub reason: String,
}

/// Why nothing goes to a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryObstacle {
    /// What its hosts said, or why they cannot be reached.
    pub reason: String,
    /// Until when.
    pub until: Timestamp,
}

impl BackoffState {
    /// Of several reasons the one counts that lasts longest.
    pub(crate) fn keep_longer(kept: &mut Option<Self>, other: Self) {
        if kept.as_ref().is_none_or(|kept| kept.until < other.until) {
            *kept = Some(other);
        }
    }
}

impl ReadyQueueState {
    /// Lowers how many connections may be open, and remembers what for.
    fn slow(&mut self, because: &str, lower: impl FnOnce(&mut Pace)) {
        let before = self.pace.connections_max();
        lower(&mut self.pace);
        if self.pace.connections_max() < before {
            let from = self.slowed.as_ref().map_or(before, |slowed| slowed.from.max(before));
            self.slowed = Some(SlowedConnections { from, because: because.to_owned() });
        }
    }

    /// How many connections may be open, where that is fewer than before.
    fn slowed(&self) -> Option<SlowedConnections> {
        self.slowed.clone().filter(|slowed| self.pace.connections_max() < slowed.from)
    }

    /// Until when it is left alone, with its provider or by itself; none when it is not.
    fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        let theirs = self.provider.as_ref().and_then(|provider| provider.backoff_until(now));
        self.pace.unavailable_until(now).max(theirs)
    }

    /// Until when the warm-up lets no message go.
    fn warm_up_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.warm_up.as_ref()?.exhausted_until(now).map(|(until, _)| until)
    }

    /// Why it rests, or did last, with its provider or by itself.
    fn backoff_state(&self) -> Option<BackoffState> {
        let mut resting = self.backoff.clone();
        let theirs = self.provider.as_ref().and_then(|provider| provider.backoff_state());
        theirs.into_iter().for_each(|theirs| BackoffState::keep_longer(&mut resting, theirs));
        resting
    }

    /// Takes a task, with the right to send one message, of the site, of its provider and of the warm-up; or says when to
    /// ask again.
    fn try_take(&mut self, now: Timestamp) -> Result<Option<ReadyTask>, Timestamp> {
        // Where so little goes, what is worth something only for a time goes first.
        let is_pressing = self.tasks.has(TaskClass::Expiring);
        let warms_up_until = self.warm_up.as_ref().and_then(|budget| budget.closed_until(is_pressing, now));
        if let Some(until) = self.rate_until(now).max(warms_up_until) {
            return Err(until);
        }
        self.pace.try_acquire(now)?;
        self.provider.as_ref().map_or(Ok(()), |provider| provider.try_acquire_message(now))?;
        let Some(budget) = &self.warm_up else { return Ok(self.tasks.pop()) };
        let goes_to_pressing = budget.try_take(now)?;
        Ok(if is_pressing && goes_to_pressing { self.tasks.pop_class(TaskClass::Expiring) } else { self.tasks.pop() })
    }

    /// Until when nothing is to be put into the line behind others.
    fn closed_until(&self, has_deadline: bool, now: Timestamp) -> Option<Timestamp> {
        // What waits for a warm-up may wait for days: on disk, from where it comes back to the hosts of that hour. What is
        // worth something only for a time does not wait for so long, and is to be there when something may go.
        let warms_up_until = self.warm_up_until(now).filter(|_| !has_deadline);
        self.unavailable_until(now).max(warms_up_until).filter(|_| !self.tasks.is_empty())
    }

    /// Until when the rate, the site's or its provider's, lets no message go.
    fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        let theirs = self.provider.as_ref().and_then(|provider| provider.rate_until(now));
        self.pace.rate_until(now).max(theirs)
    }
}

/// What became of a task that was to be put into the line.
#[derive(Debug)]
pub enum EnqueueOutcome {
    /// It is in the line.
    Enqueued(ConnectDecision),
    /// The site is left alone until then.
    Unavailable(Box<ReadyTask>, Timestamp),
    /// There is no room for its class.
    Full(Box<ReadyTask>),
}

/// What a push or a success calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectDecision {
    /// Somebody will come for it.
    Nothing,
    /// Open another connection: it is counted already.
    Connect,
}

/// What a connection that could not be opened means.
#[derive(Debug)]
pub enum ConnectFailure {
    /// Others are open: the site takes no more.
    AtConnectionLimit,
    /// It may be the site.
    Failed,
    /// It is the site: it is left alone until then, and this is what waited for it.
    Dead {
        /// Until when.
        until: Timestamp,
        /// What waited.
        waiting: Vec<ReadyTask>,
    },
}

/// What a connection does next.
#[derive(Debug)]
pub enum NextWork {
    /// Carries this.
    Deliver(Box<ReadyTask>),
    /// Waits until then: the rate, or the site is dead.
    Wait(Timestamp),
    /// Nothing to do.
    Empty,
    /// Closes, and is counted out already: there are more connections than the pace allows.
    Close,
}

/// The ready stage of a set of hosts.
#[derive(Debug)]
pub struct ReadyQueue {
    route: Arc<MailRoute>,
    source: Arc<SourceAddresses>,
    tls: TaskTlsRequirement,
    state: Mutex<ReadyQueueState>,
    retry_requested: Notify,
    /// Until its hosts are known to answer, one connection at a time is dialled where a provider's are shared.
    dial_permits: Arc<ResizableSemaphore>,
    first_answer: Notify,
    ready_max: usize,
}

impl ReadyQueue {
    /// A site with nothing in it.
    #[must_use]
    pub fn new(
        (route, source): (Arc<MailRoute>, Arc<SourceAddresses>),
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its mail goes.
    #[must_use]
    pub fn route(&self) -> &Arc<MailRoute> {
        &self.route
    }

    /// Where its mail leaves from.
    #[must_use]
    pub fn source(&self) -> &SourceAddresses {
        &self.source
    }

    /// What its tasks ask of TLS.
    #[must_use]
    pub fn tls(&self) -> TaskTlsRequirement {
        self.tls
    }

    /// Puts a task into the line, if there is room for its class and the site is not dead. A dead site
    /// keeps one task, to be probed with. `free` places are left in memory for all sites: no site takes
    /// more than are left to the others, so that any number of slow ones leaves room for the next.
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

    /// Whether it is worth keeping a connection open: tasks wait, or they follow one another, the last two no
    /// more than so long apart, and no longer ago than that.
    #[must_use]
    pub fn expects_more(&self, now: Timestamp, apart: Duration) -> bool {
        let state = self.lock();
        let close = |later: Timestamp, earlier: Timestamp| {
            !Duration::try_from(later.duration_since(earlier)).is_ok_and(|wait| wait > apart)
        };
        match state.arrivals {
            _ if !state.tasks.is_empty() => true,
            [Some(last), Some(before)] => close(now, last) && close(last, before),
            _ => false,
        }
    }

    /// Puts a task back to the head of the line: it was taken and not tried.
    pub fn requeue(&self, ready: ReadyTask) -> ConnectDecision {
        let mut state = self.lock();
        state.tasks.push_front(ready.task.class, ready.task.account, ready);
        self.connect_decision(state)
    }

    /// Whether another connection is wanted now; counts it.
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

    /// What a connection does next.
    pub fn next_work(&self, now: Timestamp) -> NextWork {
        let mut state = self.lock();
        if state.connections > state.pace.connections_max() {
            // Counted here, so that the next to ask sees one less and only as many close as must.
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

    /// A task that may go now, for a connection that stays open whether there is one or not.
    pub fn try_next_work(&self, now: Timestamp) -> Option<Box<ReadyTask>> {
        let mut state = self.lock();
        let free = state.connections <= state.pace.connections_max() && state.unavailable_until(now).is_none();
        // A task waits behind this connection's present message: not while others could come for it.
        let spare = state.pace.connections_max().saturating_sub(state.connections) as usize;
        if !free || state.tasks.len() <= spare {
            return None;
        }
        state.try_take(now).ok().flatten().map(Box::new)
    }

    /// Returns when a task may have arrived.
    pub async fn wait_for_work(&self) {
        let woken = Arc::new(Notify::new());
        let number = {
            let mut state = self.lock();
            if !state.tasks.is_empty() {
                return;
            }
            state.next_waiter += 1;
            let number = state.next_waiter;
            state.idle.push((number, Arc::clone(&woken)));
            number
        };
        /// Takes a wait that ended, or was given up, off the list.
        struct WaiterGuard<'a>(&'a ReadyQueue, u64);
        impl Drop for WaiterGuard<'_> {
            fn drop(&mut self) {
                self.0.lock().idle.retain(|(number, _)| *number != self.1);
            }
        }
        let _wait = WaiterGuard(self, number);
        woken.notified().await;
    }

    /// A connection is open.
    pub fn connection_opened(&self) {
        self.lock().established += 1;
    }

    /// What its own hosts did when they were dialled: they answered soon, or kept us waiting.
    pub(crate) fn record_dial(&self, answers: bool) {
        let answered_before = std::mem::replace(&mut self.lock().is_responsive, answers);
        if answers && !answered_before {
            self.first_answer.notify_waiters();
        }
    }

    /// An open connection is closed, or is about to be.
    pub fn connection_closed(&self) {
        let mut state = self.lock();
        state.established = state.established.saturating_sub(1);
    }

    /// A connection's life is over. Another may be wanted in its stead; unless nobody may open one any
    /// more.
    pub fn connection_ended(&self, stopping: bool) -> ConnectDecision {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
        if stopping { ConnectDecision::Nothing } else { self.connect_decision(state) }
    }

    /// The site took a message.
    pub fn record_accepted(&self, now: Timestamp) {
        let mut state = self.lock();
        state.pace.record_accepted(now);
        state.slowed = state.slowed();
        if let Some(provider) = &state.provider {
            provider.record_accepted(now);
        }
    }

    /// The site answered, one way or the other.
    pub fn record_answer(&self) {
        self.lock().pace.record_answer();
    }

    /// The site asked for less, by this reply or error.
    pub fn reduce_connections(&self, because: &str) {
        self.lock().slow(because, Pace::reduce_connections);
    }

    /// The site asked for messages more slowly, by this reply.
    pub fn reduce_rate(&self, because: &str, now: Timestamp) {
        self.lock().slow(because, |pace| pace.reduce_rate(now));
    }

    /// The site asked to be left alone: until when it is, and what waited for it, to wait on disk until then.
    pub fn back_off(&self, rest: Backoff, because: String, now: Timestamp) -> (Timestamp, Vec<ReadyTask>) {
        let mut state = self.lock();
        let theirs = state.provider.as_ref().map(|provider| provider.back_off(rest, &because, now));
        let mut until = now;
        state.slow(&because, |pace| until = pace.back_off(rest, now));
        let until = Some(until).max(theirs).unwrap_or(now);
        BackoffState::keep_longer(&mut state.backoff, BackoffState { kind: rest, until, reason: because });
        (until, std::iter::from_fn(|| state.tasks.pop()).collect())
    }

    /// Until when it is left alone; none when it is not.
    #[must_use]
    pub fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().unavailable_until(now)
    }

    /// Why nothing goes there, and until when, where its hosts cannot be reached or ask to be left alone.
    #[must_use]
    pub fn delivery_obstacle(&self, now: Timestamp) -> Option<DeliveryObstacle> {
        let state = self.lock();
        let until = state.unavailable_until(now)?;
        let resting = state.backoff_state().filter(|resting| resting.until > now);
        let text = match (resting, &state.last_error) {
            (Some(BackoffState { reason: because, .. }), _) => because,
            (None, Some(why)) => why.clone(),
            (None, None) => "the mail hosts cannot be reached".to_owned(),
        };
        Some(DeliveryObstacle { reason: text, until })
    }

    /// Its hosts refused something, or could not be reached.
    pub fn record_error(&self, error: String, now: Timestamp) {
        let mut state = self.lock();
        (state.last_error, state.last_error_at) = (Some(error), now);
    }

    /// The last refusal of its hosts, or error on the way to them, and when it came.
    #[must_use]
    pub fn last_error(&self) -> Option<(String, Timestamp)> {
        let state = self.lock();
        Some((state.last_error.clone()?, state.last_error_at))
    }

    /// Another connection could not be opened. While some are open that only means: no more of them.
    /// With none open it counts towards the site's death, and when it is dead all that waits for it
    /// comes out, to wait on disk until it is probed.
    pub fn connect_failed(&self, now: Timestamp) -> ConnectFailure {
        let mut state = self.lock();
        let because = state.last_error.clone().unwrap_or_default();
        if state.established > 0 {
            state.slow(&because, Pace::reduce_connections);
            return ConnectFailure::AtConnectionLimit;
        }
        let mut is_dead = false;
        state.slow(&because, |pace| is_dead = pace.record_unreachable(now));
        if !is_dead {
            return ConnectFailure::Failed;
        }
        let until = state.pace.dead_until().unwrap_or(now);
        ConnectFailure::Dead { until, waiting: std::iter::from_fn(|| state.tasks.pop()).collect() }
    }

    /// Changes the limits; what was learnt of the site stays.
    pub fn set_limits(&self, limits: PaceLimits) {
        self.lock().pace.set_limits(limits);
    }

    /// Says whose site it is, and what may go there of a warm-up.
    pub(crate) fn set_provider(&self, provider: Option<Arc<ProviderLimits>>, warm_up: Option<Arc<WarmUpBudget>>) {
        let mut state = self.lock();
        (state.provider, state.warm_up) = (provider, warm_up);
    }

    /// How many tasks wait here.
    pub(crate) fn ready_count(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Takes out all that waits here.
    pub(crate) fn drain(&self) -> Vec<ReadyTask> {
        let mut state = self.lock();
        std::iter::from_fn(|| state.tasks.pop()).collect()
    }

    /// Something about its pace was ordered: whoever waits for it looks again.
    pub(crate) fn wake(&self) {
        self.retry_requested.notify_waiters();
    }

    /// Waits for a connection that the provider may be sent by; who has one open has it already.
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
                // It may have fallen silent meanwhile.
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

    /// Whether other sites of the provider wait for a connection.
    pub(crate) fn provider_has_waiters(&self) -> bool {
        self.lock().provider.as_ref().is_some_and(|provider| provider.has_waiters())
    }

    /// The operator says: try it now.
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

    /// Returns when the operator says so. What is said once this is called counts, also before the future is first
    /// polled.
    pub fn retry_requested(&self) -> impl Future<Output = ()> + '_ {
        self.retry_requested.notified()
    }

    /// How many messages one connection carries.
    #[must_use]
    pub fn messages_per_connection(&self) -> u32 {
        self.lock().pace.messages_per_connection()
    }

    /// How many more tasks of a class may be read from disk for this site, that all of them find room in its line once
    /// each has taken one of the `free` places; or, when it is dead, until when not to ask. Zero is: when there is room
    /// again ([`Site::park`]).
    pub fn load_capacity(&self, class: TaskClass, now: Timestamp, free: usize) -> Result<usize, Timestamp> {
        let state = self.lock();
        match state.unavailable_until(now).max(state.closed_until(class == TaskClass::Expiring, now)) {
            Some(until) => Err(until),
            None => {
                let (waiting, room) = (state.tasks.len(), self.class_capacity(&state, class, usize::MAX));
                let fair = free.saturating_sub(waiting) / 2;
                Ok(room.min(fair).max(usize::from(waiting == 0)))
            }
        }
    }

    /// How many more tasks of a class may wait here. Less pressing classes may fill only a part, so that
    /// what is pressing always finds room.
    fn class_capacity(&self, state: &ReadyQueueState, class: TaskClass, free: usize) -> usize {
        let share = match class {
            TaskClass::Expiring | TaskClass::Transactional => self.ready_max,
            TaskClass::Product => self.ready_max / 2,
            TaskClass::Newsletter => self.ready_max / 4,
        };
        share.min(free).max(1).saturating_sub(state.tasks.len())
    }

    /// Remembers a queue for which there was no room.
    pub fn park(&self, queue: QueueName) {
        self.lock().parked.insert(queue);
    }

    /// Some parked queues, once the line is an eighth full: few at a time, the pressing ones first. The
    /// others' turn comes with the next messages that go out.
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

    /// Whether nothing happens here, and nothing is kept from happening: it can be forgotten.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let state = self.lock();
        let rests = state.pace.backoff_until().is_some_and(|until| until > now);
        state.connections == 0 && state.tasks.is_empty() && state.parked.is_empty() && !rests
    }

    /// Takes a task out of the line; false when it is not in it.
    pub fn remove(&self, task: &Task) -> bool {
        self.lock().tasks.remove(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Takes all tasks of an account out of the line.
    pub(crate) fn remove_account(&self, account: AccountId) -> Vec<ReadyTask> {
        self.lock().tasks.remove_all(account)
    }

    /// How many go before a task that waits here.
    #[must_use]
    pub fn position(&self, task: &Task) -> Option<usize> {
        let state = self.lock();
        state.tasks.position(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// How it stands.
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
    use crate::settle::tests::task;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready() -> ReadyTask {
        ReadyTask { task: task(), row: None, body: None }
    }

    #[test]
    fn what_is_admitted_finds_room_once_all_of_it_has_taken_its_places() {
        for (ready_max, free) in [(100, 1_000), (1_000, 100), (1_000, 7), (1_000, 1), (10, 0)] {
            let to = crate::plan::NextHop::Hosts { hosts: Vec::new(), port: 25 };
            let to = (Arc::new(to.into()), Arc::default());
            let site = ReadyQueue::new(to, TaskTlsRequirement::Opportunistic, PaceLimits::default(), ready_max);
            let mut free: usize = free;
            while let Ok(room @ 1..) = site.load_capacity(TaskClass::Transactional, at(1), free) {
                free = free.saturating_sub(room);
                for _ in 0..room {
                    let pushed = site.enqueue(ready(), at(1), free);
                    assert!(matches!(pushed, EnqueueOutcome::Enqueued(_)), "{ready_max} {free} {room}: {pushed:?}");
                }
            }
            assert!(site.ready_count() > 0 && site.ready_count() <= ready_max);
        }
    }

    #[test]
    fn more_is_expected_where_messages_follow_one_another() {
        let to = crate::plan::NextHop::Hosts { hosts: Vec::new(), port: 25 };
        let to = (Arc::new(to.into()), Arc::default());
        let site = ReadyQueue::new(to, TaskTlsRequirement::Opportunistic, PaceLimits::default(), 10);
        let apart = Duration::from_secs(3);
        let arrives = |second| {
            assert!(matches!(site.enqueue(ready(), at(second), 10), EnqueueOutcome::Enqueued(_)));
            assert!(site.expects_more(at(second), apart), "it waits there");
            assert!(matches!(site.next_work(at(second)), NextWork::Deliver(_)));
        };
        arrives(10);
        assert!(!site.expects_more(at(10), apart), "one alone");
        arrives(20);
        assert!(!site.expects_more(at(20), apart), "long after the one before");
        arrives(22);
        assert!(site.expects_more(at(22), apart) && site.expects_more(at(25), apart));
        assert!(!site.expects_more(at(26), apart), "none came for long");
    }
}
