//! Destinations with the longest queues.
//!
//! ```text
//! up to READ_ROWS_MAX recipients ─► all rows are read
//! more ─► counts in memory (queued, deferred, held by domain) ─► the longest ─► a few rows of each: oldest, next
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use message::address::DomainName;
use message::words;
use model::id::AccountId;
use model::slug::PoolName;
use model::task::{Task, TaskId};
use model::task_filter::TaskFilter;
use store::engine::ReadError;
use store::queue_counts::DomainCounts;
use store::queue_walk::QueueWalk;
use store::task::PARTITIONS;

use super::QueueAdmin;
use crate::routing::MailRoute;
use crate::scheduler::ready_queue::ReadyQueueStatus;

/// Rows that are read. A longer queue is counted in memory.
const READ_ROWS_MAX: usize = 100_000;
/// Domains of a destination of which rows are read, if its recipients are counted in memory.
const SAMPLED_DOMAINS: usize = 4;
/// Rows read of each.
const SAMPLED_ROWS: usize = 50;
/// Domains counted before other work of the thread has its turn.
const COUNTED_AT_ONCE: usize = 1_000;
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
    pub counted: CountingMethod,
}

words! {
    /// How the recipients of destinations were counted.
    CountingMethod {
        /// All rows were read.
        Rows = "rows",
        /// The queue is long, so the counts in memory were used: [`TopDestination::due`] are the recipients before their
        /// first attempt, [`TopDestination::later`] those after it, and mail of suspended accounts is among them. The oldest
        /// and the next are those of the first rows.
        Memory = "memory",
        /// As [`CountingMethod::Memory`], for the partitions of this node only.
        NodeMemory = "node_memory",
        /// The queue is long, and the counts in memory are not complete yet: only the first rows were read.
        FirstRows = "first_rows",
    }
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

words! {
    /// Factor that limits delivery to a destination.
    LimitingFactor {
        /// The configuration pauses all delivery.
        Paused = "paused",
        /// All waiting recipients are held.
        Held = "held",
        /// The operator suspended the destination.
        Suspended = "suspended",
        /// The destination is in backoff because of a reply.
        BackingOff = "resting",
        /// The mail hosts cannot be reached.
        Unreachable = "unreachable",
        /// The MX lookup fails or is in progress.
        Dns = "dns",
        /// Limit of messages per second.
        Rate = "rate",
        /// Warm-up limit of messages per day.
        WarmUp = "warm_up",
        /// Limit of connections.
        Connections = "connections",
        /// No task is due yet.
        Schedule = "schedule",
        /// No limit applies.
        None = "none",
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

/// The name under which a destination is counted: its own, or `others` if too many are.
fn counted_name<C>(counts: &HashMap<String, C>, name: String) -> String {
    let is_counted = counts.len() < COUNTED_MAX || counts.contains_key(&name);
    if is_counted { name } else { "others".to_owned() }
}

/// Recipients of one destination, as counted in memory.
#[derive(Default)]
struct MemoryCount {
    queued: u64,
    deferred: u64,
    held: u64,
    /// Domains; one in two partitions counts twice.
    domains: usize,
    /// The largest domains with their partitions, at most [`SAMPLED_DOMAINS`].
    largest: Vec<(u64, u16, DomainName)>,
}

impl MemoryCount {
    fn add(&mut self, partition: u16, domain: DomainName, counts: &DomainCounts) {
        self.queued += counts.queued;
        self.deferred += counts.deferred;
        self.held += counts.held;
        self.domains += 1;
        self.largest.push((counts.queued + counts.deferred + counts.held, partition, domain));
        if self.largest.len() > SAMPLED_DOMAINS {
            self.largest.sort_by_key(|(tasks, ..)| Reverse(*tasks));
            self.largest.truncate(SAMPLED_DOMAINS);
        }
    }

    fn tasks(&self) -> u64 {
        self.queued + self.deferred + self.held
    }
}

/// The `limit` largest counts, and their number and sum.
fn longest<C>(counts: HashMap<String, C>, limit: usize, tasks: impl Fn(&C) -> u64) -> (Vec<(String, C)>, usize, u64) {
    let (count, sum) = (counts.len(), counts.values().map(&tasks).sum());
    let mut longest: Vec<(String, C)> = counts.into_iter().collect();
    longest.sort_by(|(left, a), (right, b)| tasks(b).cmp(&tasks(a)).then_with(|| left.cmp(right)));
    longest.truncate(limit);
    (longest, count, sum)
}

impl QueueAdmin {
    /// Returns the `limit` destinations with the longest queues. Reads at most [`READ_ROWS_MAX`] rows of the queue, and
    /// calls `report_progress` with the number of tasks read after each page; a longer queue is counted in memory.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn top_destinations(
        self: &Arc<Self>,
        limit: usize,
        report_progress: impl Fn(u64),
    ) -> Result<TopDestinations, ReadError> {
        let counted_in_memory = self.counted_in_memory();
        if counted_in_memory.is_some_and(|tasks| tasks > READ_ROWS_MAX as u64) {
            return self.top_destinations_in_memory(limit).await;
        }
        let (counts, is_whole) = self.count_rows(READ_ROWS_MAX, report_progress).await?;
        if !is_whole && counted_in_memory.is_some() {
            return self.top_destinations_in_memory(limit).await;
        }
        let (longest, count, tasks) = longest(counts, limit, |count| count.tasks);
        let mut destinations = Vec::with_capacity(longest.len());
        for (name, count) in longest {
            destinations.push(self.top_destination(name, &count).await?);
        }
        let counted = if is_whole { CountingMethod::Rows } else { CountingMethod::FirstRows };
        Ok(TopDestinations { destinations, count, tasks, counted })
    }

    /// The number of recipients in this node's partitions; `None` until they are counted.
    fn counted_in_memory(&self) -> Option<u64> {
        let counts = self.services.store.queue_counts();
        let sum = || counts.summary(0).recipients.iter().map(|(.., recipients)| recipients).sum();
        (!counts.is_incomplete()).then(sum)
    }

    /// The name of a destination: its mail hosts, or the recipients' domain if the route is unknown.
    fn destination_name(route: Option<&Arc<MailRoute>>, domain: &DomainName) -> String {
        route.map_or_else(|| domain.to_string(), |route| route.queue_name.clone())
    }

    /// Counts the rows by destination. Returns also whether all were read.
    async fn count_rows(
        &self,
        rows_max: usize,
        report_progress: impl Fn(u64),
    ) -> Result<(HashMap<String, DestinationCount>, bool), ReadError> {
        let mut counts: HashMap<String, DestinationCount> = HashMap::new();
        let (mut tasks, now) = (0, self.services.clock.now());
        let mut walk = QueueWalk::new(&self.services.store, TaskFilter::default(), rows_max);
        while let Some(page) = walk.next_page().await? {
            for (task, _) in page.tasks {
                tasks += 1;
                let name = Self::destination_name(self.queues.routes.last_route(&task).as_ref(), task.address.domain());
                let is_held = task.held || self.scheduler.holds.is_account_held(task.account);
                let name = counted_name(&counts, name);
                counts
                    .entry(name)
                    .or_insert_with(|| DestinationCount::from_task(task.clone()))
                    .add(&task, is_held, now);
            }
            report_progress(tasks);
        }
        Ok((counts, walk.rest().is_none()))
    }

    /// As [`QueueAdmin::top_destinations`], by the counts in memory. Reads [`SAMPLED_ROWS`] rows of a few domains of each
    /// destination that is shown.
    async fn top_destinations_in_memory(&self, limit: usize) -> Result<TopDestinations, ReadError> {
        let mut counts: HashMap<String, MemoryCount> = HashMap::new();
        let partitions = self.services.leases.held();
        for partition in &partitions {
            for (position, of_domain) in self.services.store.queue_counts().domains(*partition).into_iter().enumerate()
            {
                if position.is_multiple_of(COUNTED_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
                let Ok(domain) = of_domain.domain.parse::<DomainName>() else { continue };
                let route = self.queues.routes.cached_domain_route(&domain, Timestamp::MIN);
                let name = counted_name(&counts, Self::destination_name(route.as_ref(), &domain));
                counts.entry(name).or_default().add(*partition, domain, &of_domain);
            }
        }
        let (longest, count, tasks) = longest(counts, limit, MemoryCount::tasks);
        let mut destinations = Vec::with_capacity(longest.len());
        for (name, in_memory) in longest {
            // A destination whose mail was sent meanwhile is left out.
            if let Some(count) = self.sample(&in_memory).await? {
                destinations.push(self.top_destination(name, &count).await?);
            }
        }
        let is_whole = partitions.len() == usize::from(PARTITIONS);
        let counted = if is_whole { CountingMethod::Memory } else { CountingMethod::NodeMemory };
        Ok(TopDestinations { destinations, count, tasks, counted })
    }

    /// Adds the oldest and the next of the first rows to the counts of a destination; `None` if it has no rows.
    async fn sample(&self, in_memory: &MemoryCount) -> Result<Option<DestinationCount>, ReadError> {
        let mut sample: Option<DestinationCount> = None;
        for (_, partition, domain) in &in_memory.largest {
            let page = store::task::list_domain(&self.services.store, *partition, domain, SAMPLED_ROWS).await?;
            for (task, _) in &page.tasks {
                let count = sample.get_or_insert_with(|| DestinationCount::from_task(task.clone()));
                count.add(task, task.held, Timestamp::MIN);
            }
        }
        Ok(sample.map(|sample| DestinationCount {
            tasks: in_memory.tasks(),
            due: in_memory.queued,
            held: in_memory.held,
            has_other_domains: sample.has_other_domains || in_memory.domains > SAMPLED_DOMAINS,
            ..sample
        }))
    }

    async fn top_destination(&self, name: String, count: &DestinationCount) -> Result<TopDestination, ReadError> {
        let now = self.services.clock.now();
        let (oldest, account, id) = count.oldest;
        let found = store::email::get_stored_recipient(&self.services.store, account, id).await?;
        let route = self.queues.routes.last_route(&count.sample);
        let site = route.as_ref().and_then(|route| self.queues.ready_queue_of(&count.sample, route));
        let site = site.map(|site| site.status(now));
        let last_reply = self.queues.last_error(&count.sample);
        let slowed = site.as_ref().and_then(|site| site.connections.slowed());
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
            connections: site.map_or(0, |site| site.connections.open),
            limit,
            until,
            last_reply: last_reply.or_else(stored_reply),
            slowed,
        })
    }

    fn limiting_factor(
        &self,
        count: &DestinationCount,
        site: Option<&ReadyQueueStatus>,
        now: Timestamp,
    ) -> (LimitingFactor, Option<Timestamp>) {
        if count.held == count.tasks || self.scheduler.holds.is_queue_held() {
            return (LimitingFactor::Held, None);
        }
        if self.pause.is_paused() {
            return (LimitingFactor::Paused, None);
        }
        let route = self.queues.routes.last_route(&count.sample);
        if let Some((_, suspension)) = self.queues.routes.suspension(&count.sample, route.as_deref()) {
            return (LimitingFactor::Suspended, suspension.until);
        }
        if let Some((_, until)) = site.and_then(|site| site.throttle.backoff_description(now)) {
            return (LimitingFactor::BackingOff, Some(until));
        }
        let domain = count.sample.address.domain();
        if self.dispatcher.is_domain_looked_up(domain) || self.queues.is_lookup_failing(&count.sample) {
            return (LimitingFactor::Dns, Some(count.next_due).filter(|due| *due > now));
        }
        match site {
            Some(site) if site.throttle.dead_until.is_some_and(|until| until > now) => {
                (LimitingFactor::Unreachable, site.throttle.dead_until)
            }
            // Too few failures in a row for suspension; each recipient waits for its own next attempt.
            Some(site) if site.throttle.is_unreachable => {
                (LimitingFactor::Unreachable, Some(count.next_due).filter(|due| *due > now))
            }
            Some(site) if site.ready > 0 && site.throttle.warm_up.is_some() => {
                (LimitingFactor::WarmUp, site.throttle.warm_up.map(|(until, _)| until))
            }
            Some(site) if site.ready > 0 && site.throttle.rate_until.is_some() => {
                (LimitingFactor::Rate, site.throttle.rate_until)
            }
            Some(site)
                if site.ready > 0 && (site.connections.provider_busy.is_some() || site.connections.is_at_limit()) =>
            {
                (LimitingFactor::Connections, None)
            }
            _ if count.next_due > now => (LimitingFactor::Schedule, Some(count.next_due)),
            _ => (LimitingFactor::None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::engine::{Batch, Store};

    use super::*;
    use crate::delivery::outcome::tests::task;
    use crate::subsystems::tests::{IdleQueue, idle};

    /// A queue with `counts` queued tasks of each domain: the first of a domain is held, the second was attempted.
    async fn queue_with(counts: &[(&str, u128)]) -> IdleQueue {
        let queue = idle(Store::memory());
        queue.cluster.poll().await.unwrap();
        let mut batch = Batch::intake();
        for (domain, count) in counts {
            for number in 0..*count {
                let mut task = task();
                task.id.email =
                    model::id::EmailId::new(queue.services.clock.now(), number + domain.len() as u128 * 1_000);
                task.address = format!("a@{domain}").parse().unwrap();
                (task.held, task.attempts) = (number == 0, u32::from(number == 1));
                store::task::put_new(&mut batch, &task);
            }
        }
        queue.services.store.commit(batch).await.unwrap();
        while queue.services.store.queue_counts().read(&queue.services.store, queue.services.clock.now()).await.unwrap()
        {
        }
        queue
    }

    #[tokio::test]
    async fn a_long_queue_is_counted_in_memory() {
        let queue = queue_with(&[("a.example", 300), ("bb.example", 5), ("ccc.example", 20)]).await;
        let top = queue.delivery.admin.top_destinations_in_memory(2).await.unwrap();
        assert_eq!((top.tasks, top.count, top.counted), (325, 3, CountingMethod::Memory));
        let shown: Vec<_> =
            top.destinations.iter().map(|one| (one.name.as_str(), one.tasks, one.due, one.later, one.held)).collect();
        assert_eq!(shown, [("a.example", 300, 298, 1, 1), ("ccc.example", 20, 18, 1, 1)]);
        assert_eq!(top.destinations[0].domain.as_ref().unwrap().as_str(), "a.example");
        let read = queue.delivery.admin.top_destinations(2, |_| {}).await.unwrap();
        assert_eq!((read.tasks, read.counted), (325, CountingMethod::Rows), "a short one is read");
    }

    #[tokio::test]
    async fn rows_are_read_up_to_the_limit() {
        let queue = queue_with(&[("a.example", 30)]).await;
        let (counts, is_whole) = queue.delivery.admin.count_rows(10, |_| {}).await.unwrap();
        assert_eq!((counts["a.example"].tasks, is_whole), (10, false));
        let (counts, is_whole) = queue.delivery.admin.count_rows(31, |_| {}).await.unwrap();
        assert_eq!((counts["a.example"].tasks, is_whole), (30, true));
    }
}
