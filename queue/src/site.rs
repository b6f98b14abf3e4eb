//! A site: the ready stage of one set of MX hosts, shared by all domains behind it.
//!
//! Tasks wait here in weighted-fair order until a connection takes them. The site says when another
//! connection may be opened, and when one should close; the connections themselves are
//! [`crate::attempt`]'s.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use mail::task::{QueueName, Task};
use tokio::sync::Notify;

use crate::fair::FairQueue;
use crate::pace::{Pace, PaceLimits};
use crate::plan::Route;

/// A message's bytes in memory, shared by its recipients and counted while they live.
#[derive(Debug)]
pub struct HeldBody {
    chunks: Vec<Bytes>,
    size_bytes: usize,
    budget: Arc<BodyBudget>,
}

impl HeldBody {
    /// The bytes, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.budget.held_bytes.fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

/// How many bytes of bodies may wait in memory; what does not fit is read back from the store.
#[derive(Debug)]
pub struct BodyBudget {
    held_bytes: AtomicUsize,
    bytes_max: usize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { held_bytes: AtomicUsize::new(0), bytes_max }
    }

    /// Keeps a body in memory, if the budget allows it.
    #[must_use]
    pub fn hold(self: &Arc<Self>, chunks: &[Bytes]) -> Option<Arc<HeldBody>> {
        let size_bytes: usize = chunks.iter().map(Bytes::len).sum();
        let before = self.held_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        if before.saturating_add(size_bytes) > self.bytes_max {
            self.held_bytes.fetch_sub(size_bytes, Ordering::Relaxed);
            return None;
        }
        Some(Arc::new(HeldBody { chunks: chunks.to_vec(), size_bytes, budget: Arc::clone(self) }))
    }

    /// How many bytes are held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

/// A task that may go now.
#[derive(Debug)]
pub struct Ready {
    /// The task.
    pub task: Task,
    /// Its message, when it is in memory.
    pub body: Option<Arc<HeldBody>>,
}

#[derive(Debug)]
struct State {
    ready: FairQueue<Ready>,
    pace: Pace,
    /// Connections that are open or being opened.
    connections: u32,
    /// Connections that wait for work.
    idle: u32,
    /// Queues with due tasks on disk for which there was no room.
    parked: HashSet<QueueName>,
}

/// What a push or a success calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Somebody will come for it.
    Nothing,
    /// Open another connection: it is counted already.
    Connect,
}

/// What a connection does next.
#[derive(Debug)]
pub enum Turn {
    /// Carries this.
    Carry(Box<Ready>),
    /// Waits until then: the rate, or the site is dead.
    Wait(Timestamp),
    /// Nothing to do.
    Empty,
    /// Closes: there are more connections than the pace allows.
    Close,
}

/// The ready stage of a set of hosts.
#[derive(Debug)]
pub struct Site {
    route: Arc<Route>,
    verified_tls: bool,
    state: Mutex<State>,
    arrived: Notify,
    ready_max: usize,
}

/// How a site stands, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteStanding {
    /// Its name.
    pub name: String,
    /// Tasks that wait here.
    pub ready: usize,
    /// Open connections.
    pub connections: u32,
    /// How many may be open.
    pub connections_max: u32,
    /// Until when it is left alone.
    pub dead_until: Option<Timestamp>,
    /// Queues that wait on disk for room here.
    pub parked: usize,
}

impl Site {
    /// A site with nothing in it.
    #[must_use]
    pub fn new(route: Arc<Route>, verified_tls: bool, limits: PaceLimits, ready_max: usize) -> Self {
        let state = State {
            ready: FairQueue::default(),
            pace: Pace::new(limits),
            connections: 0,
            idle: 0,
            parked: HashSet::new(),
        };
        Self { route, verified_tls, state: Mutex::new(state), arrived: Notify::new(), ready_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its mail goes.
    #[must_use]
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// Whether only verified TLS will do (REQUIRETLS).
    #[must_use]
    pub fn verified_tls(&self) -> bool {
        self.verified_tls
    }

    /// Puts a task into the line.
    pub fn push(&self, ready: Ready) -> Call {
        let mut state = self.lock();
        state.ready.push(ready.task.class, ready.task.account, ready);
        self.call(state)
    }

    /// Puts a task back to the head of the line: it was taken and not tried.
    pub fn put_back(&self, ready: Ready) -> Call {
        let mut state = self.lock();
        state.ready.push_front(ready.task.class, ready.task.account, ready);
        self.call(state)
    }

    /// Whether another connection is wanted now; counts it.
    pub fn wants_connection(&self) -> Call {
        self.call(self.lock())
    }

    fn call(&self, mut state: MutexGuard<'_, State>) -> Call {
        if state.ready.is_empty() {
            return Call::Nothing;
        }
        if state.idle > 0 {
            drop(state);
            self.arrived.notify_one();
            return Call::Nothing;
        }
        if state.connections < state.pace.connections_max() {
            state.connections += 1;
            return Call::Connect;
        }
        Call::Nothing
    }

    /// What a connection does next.
    pub fn turn(&self, now: Timestamp) -> Turn {
        let mut state = self.lock();
        if state.connections > state.pace.connections_max() {
            return Turn::Close;
        }
        if state.ready.is_empty() {
            return Turn::Empty;
        }
        if let Some(until) = state.pace.dead_until().filter(|until| *until > now) {
            return Turn::Wait(until);
        }
        if let Err(at) = state.pace.take(now) {
            return Turn::Wait(at);
        }
        match state.ready.pop() {
            Some(ready) => Turn::Carry(Box::new(ready)),
            None => Turn::Empty,
        }
    }

    /// Returns when a task may have arrived.
    pub async fn arrival(&self) {
        {
            let mut state = self.lock();
            if !state.ready.is_empty() {
                return;
            }
            state.idle += 1;
        }
        /// Counts an idle connection down, also when the wait is given up.
        struct Idle<'a>(&'a Site);
        impl Drop for Idle<'_> {
            fn drop(&mut self) {
                let mut state = self.0.lock();
                state.idle = state.idle.saturating_sub(1);
            }
        }
        let _idle = Idle(self);
        self.arrived.notified().await;
    }

    /// A connection has closed. Another may be wanted in its stead.
    pub fn closed(&self) -> Call {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
        self.call(state)
    }

    /// The site answered.
    pub fn answered(&self) {
        self.lock().pace.answered();
    }

    /// The site asked for less.
    pub fn pushed_back(&self) {
        self.lock().pace.pushed_back();
    }

    /// The site could not be reached; when that makes it dead, all that waits for it comes out, to be
    /// put off.
    pub fn unreachable(&self, now: Timestamp) -> Vec<Ready> {
        let mut state = self.lock();
        if !state.pace.unreachable(now) {
            return Vec::new();
        }
        std::iter::from_fn(|| state.ready.pop()).collect()
    }

    /// How many messages one connection carries.
    #[must_use]
    pub fn messages_per_connection(&self) -> u32 {
        self.lock().pace.messages_per_connection()
    }

    /// How many more tasks may wait here.
    #[must_use]
    pub fn room(&self) -> usize {
        self.ready_max.saturating_sub(self.lock().ready.len())
    }

    /// Remembers a queue for which there was no room.
    pub fn park(&self, queue: QueueName) {
        self.lock().parked.insert(queue);
    }

    /// The parked queues, once the line is half empty.
    pub fn unpark(&self) -> Vec<QueueName> {
        let mut state = self.lock();
        if state.parked.is_empty() || state.ready.len() > self.ready_max / 2 {
            return Vec::new();
        }
        state.parked.drain().collect()
    }

    /// Whether nothing happens here: it can be forgotten.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let state = self.lock();
        state.connections == 0 && state.ready.is_empty() && state.parked.is_empty()
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> SiteStanding {
        let state = self.lock();
        SiteStanding {
            name: self.route.site.clone(),
            ready: state.ready.len(),
            connections: state.connections,
            connections_max: state.pace.connections_max(),
            dead_until: state.pace.dead_until(),
            parked: state.parked.len(),
        }
    }
}
