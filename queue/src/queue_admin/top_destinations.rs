//! Destinations with the longest queues.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use mail::address::DomainName;
use mail::id::AccountId;
use mail::slug::PoolName;
use mail::task::{Task, TaskId};
use store::engine::ReadError;

use crate::ready_queue::SiteStanding;
use crate::worker::Worker;

/// Tasks read per page.
const PAGE_TASKS: usize = 1_000;
/// Destinations counted separately. All others are counted together as `others`.
const COUNTED_MAX: usize = 200_000;

/// Queue lengths by destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopDestinations {
    /// Destinations, the longest queue first.
    pub destinations: Vec<TopDestination>,
    /// Number of destinations in the whole queue.
    pub count: usize,
    /// Number of waiting tasks in the whole queue.
    pub tasks: u64,
}

/// Queue of one destination and the factor that limits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopDestination {
    /// Name of the ready queue (its mail hosts), or the recipients' domain if the route is unknown.
    pub name: String,
    /// Recipient domain; `None` if there are several.
    pub domain: Option<DomainName>,
    /// Pool that the ready queue sends from; `None` if the destination has no ready queue.
    pub pool: Option<PoolName>,
    /// Waiting recipients.
    pub tasks: u64,
    /// Recipients that may be attempted now and are not held.
    pub due: u64,
    /// Recipients that wait for a later attempt and are not held.
    pub later: u64,
    /// Recipients held by the operator or because their account is suspended.
    pub held: u64,
    /// Acceptance time of the oldest task.
    pub oldest: Timestamp,
    /// Earliest due time.
    pub next_due: Timestamp,
    /// Open connections.
    pub connections: u32,
    pub limit: LimitingFactor,
    /// End of the limitation, if known.
    pub until: Option<Timestamp>,
    /// Last error reply of the hosts, or last connection error.
    pub last_reply: Option<String>,
    /// Number of connections before and after the last reduction, and its cause.
    pub slowed: Option<String>,
}

/// Factor that limits delivery to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitingFactor {
    /// The configuration pauses all delivery.
    Paused,
    /// All waiting recipients are held.
    Held,
    /// The operator suspended the destination.
    Suspended,
    /// The destination is in backoff because of a reply.
    BackingOff,
    /// The mail hosts cannot be reached.
    Unreachable,
    /// The MX lookup fails or is in progress.
    Dns,
    /// Limit of messages per second.
    Rate,
    /// Warm-up limit of messages per day.
    WarmUp,
    /// Limit of connections.
    Connections,
    /// No task is due yet.
    Schedule,
    /// No limit applies.
    None,
}

impl LimitingFactor {
    /// Stable name of the factor for JSON output.
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

/// Counters of one destination during the scan.
struct DestinationCount {
    tasks: u64,
    due: u64,
    has_other_domains: bool,
    held: u64,
    next_due: Timestamp,
    /// Acceptance time, account and id of the oldest task.
    oldest: (Timestamp, AccountId, TaskId),
    /// A task of the destination, used to find its ready queue.
    sample: Task,
}

impl DestinationCount {
    fn from_task(task: Task) -> Self {
        Self {
            tasks: 0,
            due: 0,
            has_other_domains: false,
            held: 0,
            next_due: task.due,
            oldest: (task.accepted_at, task.account, task.id),
            sample: task,
        }
    }

    fn add(&mut self, task: &Task, is_held: bool, now: Timestamp) {
        self.tasks += 1;
        self.due += u64::from(!is_held && task.due <= now);
        self.has_other_domains |= task.address.domain() != self.sample.address.domain();
        self.held += u64::from(is_held);
        self.next_due = self.next_due.min(task.due);
        self.oldest = self.oldest.min((task.accepted_at, task.account, task.id));
    }
}

impl Worker {
    /// Returns the `limit` destinations with the longest queues. Reads the whole queue and calls `report_progress` with
    /// the number of tasks read after each page.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn top_destinations(
        self: &Arc<Self>,
        limit: usize,
        report_progress: impl Fn(u64),
    ) -> Result<TopDestinations, ReadError> {
        let mut counts: HashMap<String, DestinationCount> = HashMap::new();
        let (mut tasks, mut from, now) = (0, None, self.clock.now());
        loop {
            let slice = store::task::list_all(&self.store, from, PAGE_TASKS).await?;
            for (task, _) in slice.tasks {
                tasks += 1;
                let name = match self.last_route(&task) {
                    Some(route) => route.queue_name.clone(),
                    None => task.address.domain().to_string(),
                };
                let is_counted = counts.len() < COUNTED_MAX || counts.contains_key(&name);
                let name = if is_counted { name } else { "others".to_owned() };
                let is_held = task.held || self.holds.is_account_held(task.account);
                counts
                    .entry(name)
                    .or_insert_with(|| DestinationCount::from_task(task.clone()))
                    .add(&task, is_held, now);
            }
            report_progress(tasks);
            from = slice.next;
            if from.is_none() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let count = counts.len();
        let mut longest: Vec<(String, DestinationCount)> = counts.into_iter().collect();
        longest.sort_by(|(left, a), (right, b)| b.tasks.cmp(&a.tasks).then_with(|| left.cmp(right)));
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
        // Fall back to the stored response of the oldest recipient if no error was seen since the start.
        let stored_reply = || {
            let recipient = found.as_ref().map(|found| &found.recipient)?;
            recipient.error.clone().or_else(|| recipient.last_response.as_ref().map(ToString::to_string))
        };
        let (limit, until) = self.limiting_factor(count, site.as_ref(), now);
        let domain = (!count.has_other_domains).then(|| count.sample.address.domain().clone());
        Ok(TopDestination {
            name,
            domain,
            pool: site.as_ref().map(|site| site.pool.clone()),
            tasks: count.tasks,
            due: count.due,
            later: count.tasks.saturating_sub(count.held).saturating_sub(count.due),
            held: count.held,
            oldest,
            next_due: count.next_due,
            connections: site.map_or(0, |site| site.open),
            limit,
            until,
            last_reply: last_reply.or_else(stored_reply),
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
        if let Some((_, until)) = site.and_then(|site| site.backoff_description(now)) {
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
            // Too few failures in a row for suspension; each recipient waits for its own next attempt.
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
