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
use mail::task::{Class, QueueName, Task, TlsDemand};
use store::engine::Value;
use tokio::sync::Notify;

pub use self::standing::{SiteStanding, SlowedConnections};
use crate::bodies::HeldBody;
use crate::fair::FairQueue;
use crate::pace::{Pace, PaceLimits, Rest};
use crate::places::Places;
use crate::plan::Route;
use crate::pools::Source;
use crate::provider::{Provider, Share};
use crate::warm_up::Budget;

/// A task that may go now.
#[derive(Debug)]
pub struct Ready {
    /// The task.
    pub task: Task,
    /// Its row as it was read from disk; none for a fresh one, whose row is what we write.
    pub row: Option<Value>,
    /// Its message, when it is in memory.
    pub body: Option<Arc<HeldBody>>,
}

#[derive(Debug)]
struct State {
    ready: FairQueue<Ready>,
    pace: Pace,
    /// Whose site it is, where the sites of one provider are paced together.
    provider: Option<Arc<Provider>>,
    /// What may go there while the addresses that it is served from are warmed up.
    warm_up: Option<Arc<Budget>>,
    /// Connections that are open or being opened.
    connections: u32,
    /// Those of them that are open.
    established: u32,
    /// Whether it answered, and soon, when it was dialled last.
    answers: bool,
    /// Connections that wait for work, by number: each is woken by one task, and by one only.
    idle: Vec<(u64, Arc<Notify>)>,
    waits: u64,
    /// Queues with due tasks on disk for which there was no room.
    parked: HashSet<QueueName>,
    /// When the newest task arrived, and the one before it.
    arrivals: [Option<Timestamp>; 2],
    /// Why it rests, or did last.
    resting: Option<Resting>,
    /// The last refusal of its hosts, or error on the way to them.
    last_error: Option<String>,
    /// When it was said.
    last_error_at: Timestamp,
    /// Why fewer connections may be open than before, until there may be as many again.
    slowed: Option<SlowedConnections>,
}

/// Why a site is left alone that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    /// How.
    pub rest: Rest,
    /// Until when.
    pub until: Timestamp,
    /// What it said.
    pub because: String,
}

/// Why nothing goes to a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What its hosts said, or why they cannot be reached.
    pub text: String,
    /// Until when.
    pub until: Timestamp,
}

impl Resting {
    /// Of several reasons the one counts that lasts longest.
    pub(crate) fn keep_longer(kept: &mut Option<Self>, other: Self) {
        if kept.as_ref().is_none_or(|kept| kept.until < other.until) {
            *kept = Some(other);
        }
    }
}

impl State {
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
    fn alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        let theirs = self.provider.as_ref().and_then(|provider| provider.rest_until(now));
        self.pace.alone_until(now).max(theirs)
    }

    /// Until when the warm-up lets no message go.
    fn warms_up_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.warm_up.as_ref()?.used_up(now).map(|(until, _)| until)
    }

    /// Why it rests, or did last, with its provider or by itself.
    fn resting(&self) -> Option<Resting> {
        let mut resting = self.resting.clone();
        let theirs = self.provider.as_ref().and_then(|provider| provider.resting());
        theirs.into_iter().for_each(|theirs| Resting::keep_longer(&mut resting, theirs));
        resting
    }

    /// Takes a task, with the right to send one message, of the site, of its provider and of the warm-up; or says when to
    /// ask again.
    fn take(&mut self, now: Timestamp) -> Result<Option<Ready>, Timestamp> {
        // Where so little goes, what is worth something only for a time goes first.
        let is_pressing = self.ready.has(Class::Expiring);
        let warms_up_until = self.warm_up.as_ref().and_then(|budget| budget.is_not_open(is_pressing, now));
        if let Some(until) = self.rate_until(now).max(warms_up_until) {
            return Err(until);
        }
        self.pace.take(now)?;
        self.provider.as_ref().map_or(Ok(()), |provider| provider.take(now))?;
        let Some(budget) = &self.warm_up else { return Ok(self.ready.pop()) };
        let goes_to_pressing = budget.take(now)?;
        Ok(if is_pressing && goes_to_pressing {
            self.ready.pop_of(Class::Expiring)
        } else {
            self.ready.pop()
        })
    }

    /// Until when nothing is to be put into the line behind others.
    fn closed_until(&self, has_deadline: bool, now: Timestamp) -> Option<Timestamp> {
        // What waits for a warm-up may wait for days: on disk, from where it comes back to the hosts of that hour. What is
        // worth something only for a time does not wait for so long, and is to be there when something may go.
        let warms_up_until = self.warms_up_until(now).filter(|_| !has_deadline);
        self.alone_until(now).max(warms_up_until).filter(|_| !self.ready.is_empty())
    }

    /// Until when the rate, the site's or its provider's, lets no message go.
    fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        let theirs = self.provider.as_ref().and_then(|provider| provider.rate_until(now));
        self.pace.rate_until(now).max(theirs)
    }
}

/// What became of a task that was to be put into the line.
#[derive(Debug)]
pub enum Pushed {
    /// It is in the line.
    Lined(Call),
    /// The site is left alone until then.
    Dead(Box<Ready>, Timestamp),
    /// There is no room for its class.
    Full(Box<Ready>),
}

/// What a push or a success calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Somebody will come for it.
    Nothing,
    /// Open another connection: it is counted already.
    Connect,
}

/// What a connection that could not be opened means.
#[derive(Debug)]
pub enum Unreachable {
    /// Others are open: the site takes no more.
    Crowded,
    /// It may be the site.
    Failed,
    /// It is the site: it is left alone until then, and this is what waited for it.
    Dead {
        /// Until when.
        until: Timestamp,
        /// What waited.
        waiting: Vec<Ready>,
    },
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
    /// Closes, and is counted out already: there are more connections than the pace allows.
    Close,
}

/// The ready stage of a set of hosts.
#[derive(Debug)]
pub struct Site {
    route: Arc<Route>,
    source: Arc<Source>,
    tls: TlsDemand,
    state: Mutex<State>,
    revived: Notify,
    /// Until its hosts are known to answer, one connection at a time is dialled where a provider's are shared.
    dials: Arc<Places>,
    first_answer: Notify,
    ready_max: usize,
}

impl Site {
    /// A site with nothing in it.
    #[must_use]
    pub fn new(
        (route, source): (Arc<Route>, Arc<Source>),
        tls: TlsDemand,
        limits: PaceLimits,
        ready_max: usize,
    ) -> Self {
        let state = State {
            ready: FairQueue::default(),
            pace: Pace::new(limits),
            provider: None,
            warm_up: None,
            connections: 0,
            established: 0,
            answers: false,
            idle: Vec::new(),
            waits: 0,
            parked: HashSet::new(),
            arrivals: [None; 2],
            resting: None,
            last_error: None,
            last_error_at: Timestamp::UNIX_EPOCH,
            slowed: None,
        };
        Self {
            route,
            source,
            tls,
            state: Mutex::new(state),
            revived: Notify::new(),
            dials: Arc::new(Places::new(1)),
            first_answer: Notify::new(),
            ready_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its mail goes.
    #[must_use]
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// Where its mail leaves from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What its tasks ask of TLS.
    #[must_use]
    pub fn tls(&self) -> TlsDemand {
        self.tls
    }

    /// Puts a task into the line, if there is room for its class and the site is not dead. A dead site
    /// keeps one task, to be probed with. `free` places are left in memory for all sites: no site takes
    /// more than are left to the others, so that any number of slow ones leaves room for the next.
    pub fn push(&self, ready: Ready, now: Timestamp, free: usize) -> Pushed {
        let mut state = self.lock();
        if let Some(until) = state.closed_until(ready.task.has_deadline, now) {
            return Pushed::Dead(Box::new(ready), until);
        }
        if self.room_in(&state, ready.task.class, free) == 0 {
            return Pushed::Full(Box::new(ready));
        }
        state.ready.push(ready.task.class, ready.task.account, ready);
        state.arrivals = [Some(now), state.arrivals[0]];
        Pushed::Lined(self.call(state))
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
            _ if !state.ready.is_empty() => true,
            [Some(last), Some(before)] => close(now, last) && close(last, before),
            _ => false,
        }
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
        if let Some((_, connection)) = state.idle.pop() {
            drop(state);
            connection.notify_one();
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
            // Counted here, so that the next to ask sees one less and only as many close as must.
            state.connections -= 1;
            return Turn::Close;
        }
        if state.ready.is_empty() {
            return Turn::Empty;
        }
        if let Some(until) = state.alone_until(now) {
            return Turn::Wait(until);
        }
        match state.take(now) {
            Ok(Some(ready)) => Turn::Carry(Box::new(ready)),
            Ok(None) => Turn::Empty,
            Err(at) => Turn::Wait(at),
        }
    }

    /// A task that may go now, for a connection that stays open whether there is one or not.
    pub fn turn_at_once(&self, now: Timestamp) -> Option<Box<Ready>> {
        let mut state = self.lock();
        let free = state.connections <= state.pace.connections_max() && state.alone_until(now).is_none();
        // A task waits behind this connection's present message: not while others could come for it.
        let spare = state.pace.connections_max().saturating_sub(state.connections) as usize;
        if !free || state.ready.len() <= spare {
            return None;
        }
        state.take(now).ok().flatten().map(Box::new)
    }

    /// Returns when a task may have arrived.
    pub async fn arrival(&self) {
        let woken = Arc::new(Notify::new());
        let number = {
            let mut state = self.lock();
            if !state.ready.is_empty() {
                return;
            }
            state.waits += 1;
            let number = state.waits;
            state.idle.push((number, Arc::clone(&woken)));
            number
        };
        /// Takes a wait that ended, or was given up, off the list.
        struct Wait<'a>(&'a Site, u64);
        impl Drop for Wait<'_> {
            fn drop(&mut self) {
                self.0.lock().idle.retain(|(number, _)| *number != self.1);
            }
        }
        let _wait = Wait(self, number);
        woken.notified().await;
    }

    /// A connection is open.
    pub fn opened(&self) {
        self.lock().established += 1;
    }

    /// What its own hosts did when they were dialled: they answered soon, or kept us waiting.
    pub(crate) fn dialled(&self, answers: bool) {
        let answered_before = std::mem::replace(&mut self.lock().answers, answers);
        if answers && !answered_before {
            self.first_answer.notify_waiters();
        }
    }

    /// An open connection is closed, or is about to be.
    pub fn hung_up(&self) {
        let mut state = self.lock();
        state.established = state.established.saturating_sub(1);
    }

    /// A connection's life is over. Another may be wanted in its stead; unless nobody may open one any
    /// more.
    pub fn left(&self, stopping: bool) -> Call {
        let mut state = self.lock();
        state.connections = state.connections.saturating_sub(1);
        if stopping { Call::Nothing } else { self.call(state) }
    }

    /// The site took a message.
    pub fn accepted(&self, now: Timestamp) {
        let mut state = self.lock();
        state.pace.accepted(now);
        state.slowed = state.slowed();
        if let Some(provider) = &state.provider {
            provider.accepted(now);
        }
    }

    /// The site answered, one way or the other.
    pub fn answered(&self) {
        self.lock().pace.answered();
    }

    /// The site asked for less, by this reply or error.
    pub fn pushed_back(&self, because: &str) {
        self.lock().slow(because, Pace::pushed_back);
    }

    /// The site asked for messages more slowly, by this reply.
    pub fn slow_down(&self, because: &str, now: Timestamp) {
        self.lock().slow(because, |pace| pace.slow_down(now));
    }

    /// The site asked to be left alone: until when it is, and what waited for it, to wait on disk until then.
    pub fn rest(&self, rest: Rest, because: String, now: Timestamp) -> (Timestamp, Vec<Ready>) {
        let mut state = self.lock();
        let theirs = state.provider.as_ref().map(|provider| provider.rest(rest, &because, now));
        let mut until = now;
        state.slow(&because, |pace| until = pace.rest(rest, now));
        let until = Some(until).max(theirs).unwrap_or(now);
        Resting::keep_longer(&mut state.resting, Resting { rest, until, because });
        (until, std::iter::from_fn(|| state.ready.pop()).collect())
    }

    /// Until when it is left alone; none when it is not.
    #[must_use]
    pub fn alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().alone_until(now)
    }

    /// Why nothing goes there, and until when, where its hosts cannot be reached or ask to be left alone.
    #[must_use]
    pub fn obstacle(&self, now: Timestamp) -> Option<Obstacle> {
        let state = self.lock();
        let until = state.alone_until(now)?;
        let resting = state.resting().filter(|resting| resting.until > now);
        let text = match (resting, &state.last_error) {
            (Some(Resting { because, .. }), _) => because,
            (None, Some(why)) => why.clone(),
            (None, None) => "the mail hosts cannot be reached".to_owned(),
        };
        Some(Obstacle { text, until })
    }

    /// Its hosts refused something, or could not be reached.
    pub fn failed(&self, error: String, now: Timestamp) {
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
    pub fn unreachable(&self, now: Timestamp) -> Unreachable {
        let mut state = self.lock();
        let because = state.last_error.clone().unwrap_or_default();
        if state.established > 0 {
            state.slow(&because, Pace::pushed_back);
            return Unreachable::Crowded;
        }
        let mut is_dead = false;
        state.slow(&because, |pace| is_dead = pace.unreachable(now));
        if !is_dead {
            return Unreachable::Failed;
        }
        let until = state.pace.dead_until().unwrap_or(now);
        Unreachable::Dead { until, waiting: std::iter::from_fn(|| state.ready.pop()).collect() }
    }

    /// Changes the limits; what was learnt of the site stays.
    pub fn limit(&self, limits: PaceLimits) {
        self.lock().pace.limit(limits);
    }

    /// Says whose site it is, and what may go there of a warm-up.
    pub(crate) fn belong(&self, provider: Option<Arc<Provider>>, warm_up: Option<Arc<Budget>>) {
        let mut state = self.lock();
        (state.provider, state.warm_up) = (provider, warm_up);
    }

    /// How many tasks wait here.
    pub(crate) fn ready(&self) -> usize {
        self.lock().ready.len()
    }

    /// Takes out all that waits here.
    pub(crate) fn empty(&self) -> Vec<Ready> {
        let mut state = self.lock();
        std::iter::from_fn(|| state.ready.pop()).collect()
    }

    /// Something about its pace was ordered: whoever waits for it looks again.
    pub(crate) fn wake(&self) {
        self.revived.notify_waiters();
    }

    /// Waits for a connection that the provider may be sent by; who has one open has it already.
    pub(crate) async fn share(&self) -> Share {
        loop {
            let first_answer = self.first_answer.notified();
            let (provider, answers) = {
                let state = self.lock();
                (state.provider.clone(), state.answers)
            };
            let Some(provider) = provider else { return Share::FREE };
            if answers {
                let share = provider.share().await;
                // It may have fallen silent meanwhile.
                if self.lock().answers {
                    return share;
                }
                continue;
            }
            tokio::select! {
                share = provider.share_unknown(&self.dials) => return share,
                () = first_answer => {}
            }
        }
    }

    /// Whether other sites of the provider wait for a connection.
    pub(crate) fn is_awaited(&self) -> bool {
        self.lock().provider.as_ref().is_some_and(|provider| provider.is_awaited())
    }

    /// The operator says: try it now.
    pub fn revive(&self) {
        let mut state = self.lock();
        state.pace.revive();
        state.resting = None;
        if let Some(provider) = &state.provider {
            provider.revive();
        }
        drop(state);
        self.revived.notify_waiters();
    }

    /// Returns when the operator says so. What is said once this is called counts, also before the future is first
    /// polled.
    pub fn revived(&self) -> impl Future<Output = ()> + '_ {
        self.revived.notified()
    }

    /// How many messages one connection carries.
    #[must_use]
    pub fn messages_per_connection(&self) -> u32 {
        self.lock().pace.messages_per_connection()
    }

    /// How many more tasks of a class may be read from disk for this site, that all of them find room in its line once
    /// each has taken one of the `free` places; or, when it is dead, until when not to ask. Zero is: when there is room
    /// again ([`Site::park`]).
    pub fn admits(&self, class: Class, now: Timestamp, free: usize) -> Result<usize, Timestamp> {
        let state = self.lock();
        match state.alone_until(now).max(state.closed_until(class == Class::Expiring, now)) {
            Some(until) => Err(until),
            None => {
                let (waiting, room) = (state.ready.len(), self.room_in(&state, class, usize::MAX));
                let fair = free.saturating_sub(waiting) / 2;
                Ok(room.min(fair).max(usize::from(waiting == 0)))
            }
        }
    }

    /// How many more tasks of a class may wait here. Less pressing classes may fill only a part, so that
    /// what is pressing always finds room.
    fn room_in(&self, state: &State, class: Class, free: usize) -> usize {
        let share = match class {
            Class::Expiring | Class::Transactional => self.ready_max,
            Class::Product => self.ready_max / 2,
            Class::Newsletter => self.ready_max / 4,
        };
        share.min(free).max(1).saturating_sub(state.ready.len())
    }

    /// Remembers a queue for which there was no room.
    pub fn park(&self, queue: QueueName) {
        self.lock().parked.insert(queue);
    }

    /// Some parked queues, once the line is an eighth full: few at a time, the pressing ones first. The
    /// others' turn comes with the next messages that go out.
    pub fn unpark(&self) -> Vec<QueueName> {
        const AT_ONCE: usize = 16;
        let mut state = self.lock();
        if state.parked.is_empty() || state.ready.len() > self.ready_max / 8 {
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
    pub fn is_quiet(&self, now: Timestamp) -> bool {
        let state = self.lock();
        let rests = state.pace.rest_until().is_some_and(|until| until > now);
        state.connections == 0 && state.ready.is_empty() && state.parked.is_empty() && !rests
    }

    /// Takes a task out of the line; false when it is not in it.
    pub fn take_out(&self, task: &Task) -> bool {
        self.lock().ready.remove(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// Takes all tasks of an account out of the line.
    pub(crate) fn take_out_all(&self, account: AccountId) -> Vec<Ready> {
        self.lock().ready.remove_all(account)
    }

    /// How many go before a task that waits here.
    #[must_use]
    pub fn place(&self, task: &Task) -> Option<usize> {
        let state = self.lock();
        state.ready.place(task.class, task.account, |ready| ready.task.id == task.id)
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> SiteStanding {
        let state = self.lock();
        SiteStanding {
            name: self.route.site.clone(),
            pool: self.source.pool.clone(),
            ready: state.ready.len(),
            connections: state.connections,
            open: state.established,
            connections_max: state.pace.connections_max(),
            dead_until: state.pace.dead_until(),
            resting: state.resting(),
            last_error: state.last_error.clone(),
            slowed: state.slowed(),
            is_unreachable: state.established == 0 && state.pace.has_failed(),
            messages_per_second: state.pace.messages_per_second(),
            rate_until: state.rate_until(now),
            warm_up: state.warm_up.as_ref().and_then(|budget| budget.used_up(now)),
            provider_busy: state.provider.as_ref().and_then(|provider| provider.busy(state.answers)),
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

    fn ready() -> Ready {
        Ready { task: task(), row: None, body: None }
    }

    #[test]
    fn what_is_admitted_finds_room_once_all_of_it_has_taken_its_places() {
        for (ready_max, free) in [(100, 1_000), (1_000, 100), (1_000, 7), (1_000, 1), (10, 0)] {
            let to = crate::plan::Destination::Hosts { hosts: Vec::new(), port: 25 };
            let to = (Arc::new(to.into()), Arc::default());
            let site = Site::new(to, TlsDemand::Usual, PaceLimits::default(), ready_max);
            let mut free: usize = free;
            while let Ok(room @ 1..) = site.admits(Class::Transactional, at(1), free) {
                free = free.saturating_sub(room);
                for _ in 0..room {
                    let pushed = site.push(ready(), at(1), free);
                    assert!(matches!(pushed, Pushed::Lined(_)), "{ready_max} {free} {room}: {pushed:?}");
                }
            }
            assert!(site.ready() > 0 && site.ready() <= ready_max);
        }
    }

    #[test]
    fn more_is_expected_where_messages_follow_one_another() {
        let to = crate::plan::Destination::Hosts { hosts: Vec::new(), port: 25 };
        let to = (Arc::new(to.into()), Arc::default());
        let site = Site::new(to, TlsDemand::Usual, PaceLimits::default(), 10);
        let apart = Duration::from_secs(3);
        let arrives = |second| {
            assert!(matches!(site.push(ready(), at(second), 10), Pushed::Lined(_)));
            assert!(site.expects_more(at(second), apart), "it waits there");
            assert!(matches!(site.turn(at(second)), Turn::Carry(_)));
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
