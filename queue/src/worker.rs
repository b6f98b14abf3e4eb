//! The worker: from accepted mail to connections, and from due tasks on disk back into memory.
//!
//! ```text
//! accept ─► reserve ─[commit]─► dispatch ─► site ─► connection (attempt.rs) ─► settle
//!              │ no room                ▲
//!              ▼                        │ a slice at a time, when there is room
//!          scheduled (one entry a queue, tasks on disk) ◄─ put off
//! ```
//!
//! Fresh mail goes out from memory; the store is read for retries, after a restart, and for what found
//! no room. Memory is bounded by places (tasks) and by bytes (bodies); a destination that is slow fills
//! its own site and then its own queues on disk, and nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Name;
use mail::outcome::{Outcome, Phase};
use mail::task::{QueueName, Task};
use mail::verp::VerpKey;
use store::engine::{Key, Store};
use store::lease::Held;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attempt;
use crate::clock::Clock;
use crate::courier::smtp::{Dialer, TlsMode};
use crate::entropy::Entropy;
use crate::flight::Flights;
use crate::pace::PaceLimits;
use crate::plan::{NoRoute, Planner, Route};
use crate::retry::Schedule;
use crate::scheduled::Scheduled;
use crate::settle::Attempted;
use crate::site::{BodyBudget, Call, HeldBody, Ready, Site, SiteStanding};

/// Tasks read from a queue on disk at once: enough to keep a site busy while the next are read.
const SLICE_TASKS: usize = 256;
/// Sites kept although nothing happens there (they remember their pace).
const SITES_MAX: usize = 20_000;
/// How long a stop waits for attempts under way: a mail host may take ten minutes for a final reply,
/// and the service manager does not wait so long.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// How soon a queue whose look-up is under way, or that could not be read, is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The worker's limits and manners.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Our name: says EHLO, reports failures.
    pub hostname: Name,
    /// When to try again.
    pub schedule: Schedule,
    /// How fast a site is served, by the domain of its first host; `None` is all others.
    pub pace: Vec<(Option<Name>, PaceLimits)>,
    /// What TLS is asked of every site.
    pub tls: TlsMode,
    /// Local addresses to send from; none lets the system choose.
    pub source_addresses: Vec<std::net::IpAddr>,
    /// Nothing is tried: mail is accepted and stays.
    pub paused: bool,
    /// How long an email is kept after it was accepted.
    pub retention: Duration,
    /// Tasks in memory at most.
    pub places_max: usize,
    /// Tasks of one site in memory at most.
    pub ready_max: usize,
    /// Bodies in memory at most, in bytes.
    pub body_bytes_max: usize,
}

/// What the worker is built from.
pub struct WorkerParts {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
    /// Finds hosts.
    pub planner: Planner,
    /// Opens connections.
    pub dialer: Dialer,
    /// Signs return paths.
    pub verp: VerpKey,
    /// The partitions that are ours.
    pub held: Vec<Held>,
}

/// The worker.
pub struct Worker {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) planner: Planner,
    pub(crate) dialer: Dialer,
    pub(crate) verp: VerpKey,
    pub(crate) settings: WorkerSettings,
    pub(crate) flights: Flights,
    pub(crate) scheduled: Scheduled,
    pub(crate) stop: CancellationToken,
    tasks: TaskTracker,
    cut: CancellationToken,
    pub(crate) settled: Notify,
    held: HashMap<u16, Held>,
    bodies: Arc<BodyBudget>,
    /// By name; those that ask for verified TLS apart.
    sites: Mutex<[HashMap<String, Arc<Site>>; 2]>,
    resolving: Mutex<HashMap<Name, Vec<Ready>>>,
}

impl Worker {
    /// Puts a worker together; [`Worker::start`] sets it going.
    #[must_use]
    pub fn new(parts: WorkerParts, settings: WorkerSettings) -> Arc<Self> {
        Arc::new(Self {
            store: parts.store,
            clock: parts.clock,
            entropy: parts.entropy,
            planner: parts.planner,
            dialer: parts.dialer,
            verp: parts.verp,
            held: parts.held.into_iter().map(|held| (held.partition(), held)).collect(),
            settled: Notify::new(),
            flights: Flights::new(settings.places_max),
            scheduled: Scheduled::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
            bodies: Arc::new(BodyBudget::new(settings.body_bytes_max)),
            sites: Mutex::default(),
            resolving: Mutex::default(),
            settings,
        })
    }

    /// Finds the queues on disk and begins to work on them. Returns when they are found.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn start(self: &Arc<Self>) -> Result<(), store::engine::ReadError> {
        for partition in self.held.keys() {
            let mut from = None;
            while let Some((queue, due, next)) =
                store::task::next_queue(&self.store, *partition, from).await?
            {
                let start = store::task::start_of(&queue, due);
                self.scheduled.note(queue, due, start);
                from = Some(next);
            }
        }
        let worker = Arc::clone(self);
        let retention = self.settings.retention;
        self.spawn(async move { worker.forget_old(retention).await });
        if !self.settings.paused {
            let worker = Arc::clone(self);
            self.spawn(async move { worker.refill().await });
        }
        Ok(())
    }

    /// Finishes the attempts that are under way and returns; those that take longer than
    /// [`DRAIN_MAX`] are cut off, and tried again after the next start. What waits stays on disk.
    pub async fn drain(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN_MAX, self.tasks.wait()).await.is_err() {
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }

    /// Runs something that ends when the worker is drained.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        tracing::trace!(size_bytes = size_of::<F>(), "a task begins");
        let cut = self.cut.clone();
        self.tasks.spawn(cut.run_until_cancelled_owned(work));
    }

    /// Returns after the next settlement. What settles once this is called counts, also before the
    /// future is first polled: so a caller asks for it, looks, and waits, and misses nothing.
    pub fn settled(&self) -> impl Future<Output = ()> + '_ {
        self.settled.notified()
    }

    /// Takes places in memory for tasks that are about to be committed. The reservation says how many
    /// found one; what found none is delivered from disk.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, tasks: Vec<Task>) -> Reservation {
        let placed = if self.settings.paused || self.stop.is_cancelled() {
            0
        } else {
            tasks.iter().take_while(|task| self.flights.reserve(task.id)).count()
        };
        Reservation { worker: Arc::clone(self), tasks, placed }
    }

    /// The partition of a task, which every settlement must fence.
    pub(crate) fn held(&self, domain: &Name) -> Option<&Held> {
        self.held.get(&store::task::partition_of(domain))
    }

    /// Says that a task lies on disk and when it is due.
    pub(crate) fn note(&self, task: &Task) {
        self.scheduled.note(task.queue(), task.due, store::task::key_of(task));
    }

    /// Brings a task to its site: at once when the route is known, else when it is found.
    pub(crate) fn dispatch(self: &Arc<Self>, ready: Ready) {
        if let Some(route) = self.planner.known(ready.task.address.domain(), self.clock.now()) {
            return self.line_up(&route, ready);
        }
        let domain = ready.task.address.domain().clone();
        let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = resolving.get_mut(&domain) {
            return waiting.push(ready);
        }
        resolving.insert(domain.clone(), vec![ready]);
        drop(resolving);
        let worker = Arc::clone(self);
        self.spawn(async move { worker.resolve(domain).await });
    }

    async fn resolve(self: Arc<Self>, domain: Name) {
        let began_at = self.clock.now();
        let found = self.planner.find(&domain, began_at).await;
        let waiting = {
            let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
            resolving.remove(&domain).unwrap_or_default()
        };
        let outcome = match found {
            Ok(route) => {
                waiting.into_iter().for_each(|ready| self.line_up(&route, ready));
                return;
            }
            Err(NoRoute::NotNow(text)) => Outcome::Unreachable(text),
            Err(NoRoute::Never(reply)) => Outcome::Undeliverable(reply),
        };
        for ready in waiting {
            if self.flights.depart(ready.task.id) {
                let attempted = self.not_dialled(outcome.clone(), Phase::Dns, began_at);
                self.settle(&ready, &attempted).await;
            }
        }
    }

    /// An attempt that came to no connection.
    pub(crate) fn not_dialled(&self, outcome: Outcome, phase: Phase, began_at: Timestamp) -> Attempted {
        let duration = Duration::try_from(self.clock.now().duration_since(began_at)).unwrap_or_default();
        let transcript = String::new();
        Attempted { outcome, phase, began_at, duration, mx_host: None, ip: None, tls: None, transcript }
    }

    fn line_up(self: &Arc<Self>, route: &Arc<Route>, ready: Ready) {
        let site = self.site(route, ready.task.require_tls);
        let call = site.push(ready);
        self.answer(&site, call);
    }

    /// Does what a site calls for.
    pub(crate) fn answer(self: &Arc<Self>, site: &Arc<Site>, call: Call) {
        if call == Call::Connect {
            self.spawn(attempt::carry(Arc::clone(self), Arc::clone(site)));
        }
    }

    fn site(&self, route: &Arc<Route>, verified_tls: bool) -> Arc<Site> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let sites = &mut sites[usize::from(verified_tls)];
        if let Some(site) = sites.get(&route.site) {
            return Arc::clone(site);
        }
        if sites.len() >= SITES_MAX {
            sites.retain(|_, site| !site.is_quiet());
        }
        let limits = self.limits_of(route);
        let site = Arc::new(Site::new(Arc::clone(route), verified_tls, limits, self.settings.ready_max));
        sites.insert(route.site.clone(), Arc::clone(&site));
        site
    }

    fn limits_of(&self, route: &Route) -> PaceLimits {
        let written = |wanted: Option<&Name>| {
            self.settings.pace.iter().find(|(domain, _)| domain.as_ref() == wanted).map(|(_, limits)| *limits)
        };
        let mut name = route.first_host().cloned();
        while let Some(domain) = name {
            if let Some(limits) = written(Some(&domain)) {
                return limits;
            }
            name = domain.parent();
        }
        written(None).unwrap_or_default()
    }

    /// Keeps reading due tasks from disk into memory until the worker stops.
    async fn refill(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            if let Some((queue, from)) = self.scheduled.pop_due(self.clock.now()) {
                self.refill_queue(queue, from).await;
                continue;
            }
            let next = self.scheduled.next_due().unwrap_or(Timestamp::MAX);
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.clock.sleep_until(next) => {}
                () = self.scheduled.changed() => {}
            }
        }
    }

    async fn refill_queue(self: &Arc<Self>, queue: QueueName, from: Key) {
        let now = self.clock.now();
        let room = self.room_for(&queue, now);
        if room == 0 {
            return self.wait_for_room(queue, from, now);
        }
        self.flights.scan_begins();
        let listed = store::task::list(&self.store, &queue, from.clone(), SLICE_TASKS.min(room)).await;
        let tasks = match listed {
            Ok(tasks) => tasks,
            Err(error) => {
                self.flights.scan_ends();
                tracing::error!(%error, domain = %queue.domain, "reading due tasks failed");
                return self.scheduled.note(queue, now + LOOK_AGAIN, from);
            }
        };
        let mut more = tasks.len() == SLICE_TASKS.min(room);
        let mut ready = Vec::new();
        let mut last = from;
        for task in tasks {
            if task.due > now {
                self.scheduled.note(queue.clone(), task.due, store::task::key_of(&task));
                more = false;
                break;
            }
            last = store::key::after(&store::task::key_of(&task));
            if !task.held && self.flights.board(task.id) {
                ready.push(task);
            }
        }
        self.flights.scan_ends();
        if more {
            self.scheduled.note(queue, now, last);
        }
        for task in ready {
            self.dispatch(Ready { task, body: None });
        }
    }

    /// How many tasks of a queue may come into memory.
    fn room_for(&self, queue: &QueueName, now: Timestamp) -> usize {
        let room = self.flights.room();
        match self.planner.known(&queue.domain, now) {
            Some(route) => room.min(self.site(&route, false).room()),
            None => {
                let resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
                let waiting = resolving.get(&queue.domain).map_or(0, Vec::len);
                room.min(SLICE_TASKS.saturating_sub(waiting))
            }
        }
    }

    fn wait_for_room(&self, queue: QueueName, from: Key, now: Timestamp) {
        // The entry stays, so that it is not lost; the site brings it forward when it has room.
        self.scheduled.note(queue.clone(), now + LOOK_AGAIN, from);
        if let Some(route) = self.planner.known(&queue.domain, now) {
            self.site(&route, false).park(queue);
        }
    }

    /// A site has room again: its parked queues are looked at now.
    pub(crate) fn unpark(&self, site: &Site) {
        let now = self.clock.now();
        for queue in site.unpark() {
            self.scheduled.hasten(&queue, now);
        }
    }

    /// How the site of a route stands.
    pub(crate) fn standing_of(&self, route: &Arc<Route>, verified_tls: bool) -> SiteStanding {
        self.site(route, verified_tls).standing()
    }

    /// How the sites stand, the busiest first.
    #[must_use]
    pub fn standings(&self) -> Vec<SiteStanding> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let mut standings: Vec<_> =
            sites.iter().flat_map(HashMap::values).map(|site| site.standing()).collect();
        drop(sites);
        standings.sort_by_key(|s| std::cmp::Reverse((s.ready, s.connections)));
        standings
    }

    /// Tasks in memory, bytes of bodies in memory, queues with tasks on disk.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        (self.flights.len(), self.bodies.held_bytes(), self.scheduled.len())
    }
}

/// Places in memory for tasks that are being committed. Dropped, it gives them back.
pub struct Reservation {
    worker: Arc<Worker>,
    tasks: Vec<Task>,
    placed: usize,
}

impl Reservation {
    /// The tasks are on disk: those with a place go out, the others wait there.
    pub fn committed(mut self, body: &[Bytes]) {
        let held: Option<Arc<HeldBody>> = (self.placed > 0).then(|| self.worker.bodies.hold(body)).flatten();
        let placed = std::mem::take(&mut self.placed);
        for (n, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            if n < placed {
                self.worker.dispatch(Ready { task, body: held.clone() });
            } else {
                self.worker.note(&task);
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tasks.iter().take(self.placed).for_each(|task| self.worker.flights.land(task.id));
    }
}
