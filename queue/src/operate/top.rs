//! Where the queue is long: destinations by how much waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use mail::id::AccountId;
use mail::task::{Task, TaskId};
use store::engine::ReadError;

use crate::site::SiteStanding;
use crate::worker::Worker;

/// Tasks read at once.
const PAGE_TASKS: usize = 1_000;
/// Destinations counted apart; what there is beyond them is counted together.
const COUNTED_MAX: usize = 200_000;

/// The destinations that most waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopDestinations {
    /// The longest first.
    pub destinations: Vec<TopDestination>,
    /// How many destinations there are.
    pub count: usize,
    /// How many tasks wait in all.
    pub tasks: u64,
}

/// What waits for a destination, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopDestination {
    /// The mail hosts; the recipients' domain where they are not known (yet).
    pub name: String,
    /// Recipients that wait.
    pub tasks: u64,
    /// How many of them are held, by hand or because their account is suspended.
    pub held: u64,
    /// When the oldest was accepted.
    pub oldest: Timestamp,
    /// When the first is due.
    pub next_due: Timestamp,
    /// Connections that are open.
    pub connections: u32,
    /// What binds.
    pub limit: LimitingFactor,
    /// Until when, as far as is known.
    pub until: Option<Timestamp>,
    /// The last refusal of the hosts, or error on the way to them.
    pub last_reply: Option<String>,
    /// From how many connections to how many it was slowed, and what for.
    pub slowed: Option<String>,
}

/// What keeps mail from going to a destination faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitingFactor {
    /// The configuration pauses all delivery.
    Paused,
    /// All that waits is held.
    Held,
    /// The operator has suspended it.
    Suspended,
    /// It asked to be left alone.
    BackingOff,
    /// It cannot be reached.
    Unreachable,
    /// Its mail hosts cannot be looked up, or are being looked up.
    Dns,
    /// Messages a second.
    Rate,
    /// Messages a day, while addresses are warmed up.
    WarmUp,
    /// Connections.
    Connections,
    /// Nothing is due yet.
    Schedule,
    /// Nothing.
    None,
}

impl LimitingFactor {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Held => "held",
            Self::Suspended => "suspended",
            Self::BackingOff => "resting",
            Self::Unreachable => "unreachable",
            Self::Dns => "dns",
            Self::Rate => "rate",
            Self::WarmUp => "warm_up",
            Self::Connections => "connections",
            Self::Schedule => "schedule",
            Self::None => "none",
        }
    }
}

/// What is counted of a destination.
struct DestinationCount {
    tasks: u64,
    held: u64,
    next_due: Timestamp,
    /// When the oldest was accepted, and which it is.
    oldest: (Timestamp, AccountId, TaskId),
    /// One of them, by which the site is found.
    sample: Task,
}

impl DestinationCount {
    fn from_task(task: Task) -> Self {
        Self { tasks: 0, held: 0, next_due: task.due, oldest: (task.accepted_at, task.account, task.id), sample: task }
    }

    fn add(&mut self, task: &Task, is_held: bool) {
        self.tasks += 1;
        self.held += u64::from(is_held);
        self.next_due = self.next_due.min(task.due);
        self.oldest = self.oldest.min((task.accepted_at, task.account, task.id));
    }
}

impl Worker {
    /// The destinations that most waits for, at most `limit`. Reads the whole queue; `seen` hears now and then how many
    /// tasks were read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn top_destinations(
        self: &Arc<Self>,
        limit: usize,
        seen: impl Fn(u64),
    ) -> Result<TopDestinations, ReadError> {
        let mut counts: HashMap<String, DestinationCount> = HashMap::new();
        let (mut tasks, mut from) = (0, None);
        loop {
            let slice = store::task::list_all(&self.store, from, PAGE_TASKS).await?;
            for (task, _) in slice.tasks {
                tasks += 1;
                let name = match self.last_route(&task) {
                    Some(route) => route.queue_name.clone(),
                    None => task.address.domain().to_string(),
                };
                let is_room = counts.len() < COUNTED_MAX || counts.contains_key(&name);
                let name = if is_room { name } else { "others".to_owned() };
                let is_held = task.held || self.holds.is_account_held(task.account);
                counts.entry(name).or_insert_with(|| DestinationCount::from_task(task.clone())).add(&task, is_held);
            }
            seen(tasks);
            from = slice.next;
            if from.is_none() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let count = counts.len();
        let mut longest: Vec<(String, DestinationCount)> = counts.into_iter().collect();
        longest.sort_by(|(one, a), (other, b)| b.tasks.cmp(&a.tasks).then_with(|| one.cmp(other)));
        longest.truncate(limit);
        let mut destinations = Vec::with_capacity(longest.len());
        for (name, count) in longest {
            destinations.push(self.top_destination(name, &count).await?);
        }
        Ok(TopDestinations { destinations, count, tasks })
    }

    async fn top_destination(&self, name: String, count: &DestinationCount) -> Result<TopDestination, ReadError> {
        let now = self.clock.now();
        let (oldest, account, id) = count.oldest;
        let found = store::email::get_stored_recipient(&self.store, account, id).await?;
        let route = self.last_route(&count.sample);
        let site = route.as_ref().and_then(|route| self.ready_queue_of(&count.sample, route));
        let site = site.map(|site| site.status(now));
        let last_reply = self.last_error(&count.sample);
        let slowed = site.as_ref().and_then(SiteStanding::slowed);
        // Nothing was said since the start: what the oldest recipient heard before it.
        let heard_before = || {
            let recipient = found.as_ref().map(|found| &found.recipient)?;
            recipient.error.clone().or_else(|| recipient.last_response.as_ref().map(ToString::to_string))
        };
        let (limit, until) = self.limiting_factor(count, site.as_ref(), now);
        Ok(TopDestination {
            name,
            tasks: count.tasks,
            held: count.held,
            oldest,
            next_due: count.next_due,
            connections: site.map_or(0, |site| site.open),
            limit,
            until,
            last_reply: last_reply.or_else(heard_before),
            slowed,
        })
    }

    fn limiting_factor(
        &self,
        count: &DestinationCount,
        site: Option<&SiteStanding>,
        now: Timestamp,
    ) -> (LimitingFactor, Option<Timestamp>) {
        if count.held == count.tasks || self.holds.is_queue_held() {
            return (LimitingFactor::Held, None);
        }
        if self.is_paused() {
            return (LimitingFactor::Paused, None);
        }
        let route = self.last_route(&count.sample);
        if let Some((_, suspension)) = self.suspension(&count.sample, route.as_deref()) {
            return (LimitingFactor::Suspended, suspension.until);
        }
        if let Some((_, until)) = site.and_then(|site| site.rests(now)) {
            return (LimitingFactor::BackingOff, Some(until));
        }
        let domain = count.sample.address.domain();
        if self.is_domain_looked_up(domain) || self.is_lookup_failing(&count.sample) {
            return (LimitingFactor::Dns, Some(count.next_due).filter(|due| *due > now));
        }
        match site {
            Some(site) if site.dead_until.is_some_and(|until| until > now) => {
                (LimitingFactor::Unreachable, site.dead_until)
            }
            // Not often enough in a row to leave it alone; each recipient waits for its own next attempt.
            Some(site) if site.is_unreachable => {
                (LimitingFactor::Unreachable, Some(count.next_due).filter(|due| *due > now))
            }
            Some(site) if site.ready > 0 && site.warm_up.is_some() => {
                (LimitingFactor::WarmUp, site.warm_up.map(|(until, _)| until))
            }
            Some(site) if site.ready > 0 && site.rate_until.is_some() => (LimitingFactor::Rate, site.rate_until),
            Some(site) if site.ready > 0 && site.provider_busy.is_some() => (LimitingFactor::Connections, None),
            Some(site) if site.ready > 0 && site.connections >= site.connections_max => {
                (LimitingFactor::Connections, None)
            }
            _ if count.next_due > now => (LimitingFactor::Schedule, Some(count.next_due)),
            _ => (LimitingFactor::None, None),
        }
    }
}
