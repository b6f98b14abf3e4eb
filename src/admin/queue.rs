//! Answering questions about the queue and its destinations.

use std::time::Duration;

use ::queue::operate::CommandProgress;
use ::queue::order::QueueCommand;
use mail::destination::{Destination, DestinationOverrides, OperatorSuspension};
use mail::task::{QueueName, Task};
use mail::task_filter::TaskFilter;
use serde_json::{Value, json};
use store::email::StoredEmail;
use store::engine::Key;
use store::task::PARTITIONS;
use tokio::sync::mpsc;

use super::answer::{AdminResult, error_text, parse_email_id};
use super::{DestinationAction, PageAsked, QueueFilter, QueueSearch, show};
use crate::world::Services;

/// Tasks listed at most.
const LISTED_MAX: usize = 10_000;
/// Tasks read for a list at most.
const READ_MAX: usize = 1_000_000;
/// Emails read for a list at most, where the tasks do not say what is asked for.
const EMAILS_READ_MAX: usize = 100_000;
/// Tasks read at once for a list.
const READ_AT_ONCE: usize = 1_000;
/// A line of progress for so many tasks.
const PROGRESS_EVERY: u64 = 50_000;
/// Tasks that are counted at once.
const COUNTED_AT_ONCE: usize = 1_000;

async fn resolve_filter(world: &Services, asked: QueueFilter) -> Result<TaskFilter, String> {
    let account = match &asked.account {
        None => None,
        Some(named) => {
            let found = store::account::find(&world.store, named).await.map_err(error_text)?;
            Some(found.ok_or_else(|| format!("there is no account {named}"))?.id)
        }
    };
    let now = world.intake.clock().now();
    let older = asked.older_seconds.map(Duration::from_secs);
    let too_long = |_| "nothing can be that old: `--older` goes back to before there were clocks".to_owned();
    let accepted_before = older.map(|older| now.checked_sub(older)).transpose().map_err(too_long)?;
    Ok(TaskFilter {
        to: asked.to,
        account,
        from: asked.from,
        class: asked.class,
        held: asked.held,
        attempts_min: asked.attempts_min,
        accepted_before,
    })
}

fn parse_command(word: &str) -> Result<QueueCommand, String> {
    QueueCommand::from_word(word).ok_or_else(|| format!("`{word}` is not something that can be done to mail"))
}

/// A look through the queue: which tasks are meant, and how far it went.
struct Look<'a> {
    world: &'a Services,
    filter: TaskFilter,
    search: QueueSearch,
    limit: usize,
    tasks: Vec<Task>,
    read: usize,
    emails_read: usize,
    damaged: usize,
}

impl Look<'_> {
    /// Reads on from a key; where to go on, when there may be more. Queues that cannot hold what is meant are not read.
    async fn run(&mut self, from: Option<Key>) -> Result<Option<Key>, String> {
        let first = from.as_deref().and_then(store::task::partition_of_key).unwrap_or(0);
        for partition in first..PARTITIONS {
            let mut next = from.clone().filter(|_| partition == first);
            while let Some((queue, due, after)) =
                store::task::next_queue(&self.world.store, partition, next.clone()).await.map_err(error_text)?
            {
                let start = store::task::due_start(&queue, due);
                let start = next.filter(|from| *from > start).unwrap_or(start);
                if self.filter.may_match_queue(&queue)
                    && let Some(key) = self.queue(&queue, start).await?
                {
                    return Ok(Some(key));
                }
                next = Some(after);
            }
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    /// Reads a queue from a key on; where to go on, when it was enough before its end.
    async fn queue(&mut self, queue: &QueueName, start: Key) -> Result<Option<Key>, String> {
        let mut from = Some(start);
        while let Some(start) = from {
            if self.read >= READ_MAX || self.emails_read >= EMAILS_READ_MAX {
                return Ok(Some(start));
            }
            let slice = store::task::list(&self.world.store, queue, start, READ_AT_ONCE).await.map_err(error_text)?;
            self.read += slice.tasks.len();
            self.damaged += slice.damaged.len();
            let may_be = |task: &Task| self.filter.matches(task) && self.search.may_be(task);
            let tasks: Vec<Task> = slice.tasks.into_iter().map(|(task, _)| task).filter(may_be).collect();
            for task in self.meant(tasks).await? {
                if self.tasks.len() == self.limit {
                    return Ok(Some(store::task::key_of(&task)));
                }
                self.tasks.push(task);
            }
            from = slice.next;
        }
        Ok(None)
    }

    /// Those whose emails are meant.
    async fn meant(&mut self, tasks: Vec<Task>) -> Result<Vec<Task>, String> {
        if tasks.is_empty() || !self.search.reads_emails() {
            return Ok(tasks);
        }
        let wanted: Vec<_> = tasks.iter().map(|task| (task.account, task.id.email)).collect();
        let emails = store::email::get_each(&self.world.store, &wanted, &|_| None).await.map_err(error_text)?;
        self.emails_read += wanted.len();
        let is_meant = |email: &Option<StoredEmail>| email.as_ref().is_some_and(|one| self.search.is_meant(&one.email));
        Ok(tasks.into_iter().zip(&emails).filter(|(_, email)| is_meant(email)).map(|(task, _)| task).collect())
    }
}

fn cursor_of(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_cursor(text: &str) -> Result<Key, String> {
    let wrong = || format!("`{text}` is no cursor: it is `next_cursor` of the page before");
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let key: Key = digits.collect::<Option<Vec<u8>>>().ok_or_else(wrong)?.into();
    store::task::partition_of_key(&key).map(|_| key.clone()).ok_or_else(wrong)
}

/// What lies in the queue, and how the sites stand.
pub(super) async fn list_queue(
    world: &Services,
    asked: QueueFilter,
    search: QueueSearch,
    PageAsked { limit, cursor }: PageAsked,
) -> AdminResult {
    let mut filter = resolve_filter(world, asked).await?;
    if let Some(recipient) = &search.recipient {
        filter.to.get_or_insert_with(|| recipient.domain().clone());
    }
    let limit = limit.clamp(1, LISTED_MAX);
    let mut look = Look { world, filter, search, limit, tasks: Vec::new(), read: 0, emails_read: 0, damaged: 0 };
    let next = look.run(cursor.as_deref().map(read_cursor).transpose()?).await?;
    let (in_memory, body_bytes, queues_on_disk) = world.worker.memory_load();
    let sites: Vec<Value> = world.worker.ready_queue_statuses().iter().take(100).map(show::ready_queue_view).collect();
    Ok(json!({
        "hold": hold_view(world).await?,
        "tasks": look.tasks.iter().map(|task| show::task_view(task, &world.worker)).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "next_cursor": next.as_ref().map(cursor_of),
        "tasks_read": look.read,
        "damaged": look.damaged,
        "in_memory": in_memory,
        "body_bytes_in_memory": body_bytes,
        "queues_on_disk": queues_on_disk,
        "sites": sites,
    }))
}

/// The hold of the whole queue: since when, how much waits, and since when the oldest of it.
pub(super) async fn hold_view(world: &Services) -> Result<Value, String> {
    let Some(hold) = world.worker.queue_hold() else { return Ok(Value::Null) };
    let mut shown = show::held_mail_view(world.worker.count_held(None).await.map_err(error_text)?);
    shown["since"] = json!(hold.since);
    shown["because"] = json!("the store was restored from a backup: `queue release --all` lets its mail go");
    Ok(shown)
}

/// Where the queue is long.
pub(super) async fn top_destinations(world: &Services, limit: usize, progress: mpsc::Sender<String>) -> AdminResult {
    let seen = |tasks: u64| {
        if tasks >= PROGRESS_EVERY && tasks.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{tasks} recipients read"));
        }
    };
    let top = world.worker.top_destinations(limit.clamp(1, LISTED_MAX), seen).await.map_err(error_text)?;
    let now = world.intake.clock().now();
    let shown: Vec<Value> = top.destinations.iter().map(|one| show::top_destination_view(one, now)).collect();
    let hold = hold_view(world).await?;
    Ok(json!({"hold": hold, "tasks": top.tasks, "count": top.count, "destinations": shown}))
}

/// Does something to an email.
pub(super) async fn run_command(world: &Services, order: &str, email: &str) -> AdminResult {
    let recipients =
        world.worker.command_email(parse_email_id(email)?, &parse_command(order)?).await.map_err(error_text)?;
    Ok(json!({"email": email, "recipients": recipients}))
}

/// Lifts the hold of the whole queue, if it is on. What the operator holds by hand, and what is of suspended accounts,
/// stays held: once the queue goes, the same command is about the first of these.
async fn release_hold(world: &Services) -> Result<Option<Value>, String> {
    let Some(hold) = world.worker.queue_hold() else { return Ok(None) };
    let waiting = world.worker.count_held(None).await.map_err(error_text)?;
    world.worker.lift_queue_hold().await.map_err(error_text)?;
    tracing::info!(recipients = waiting.recipients, "the operator lets the queue go that was held after a restore");
    Ok(Some(json!({"recipients": waiting.recipients, "being_tried": 0, "held_since": hold.since})))
}

/// How many recipients fit.
pub(super) async fn count_matching(
    world: &Services,
    asked: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(world, asked).await?;
    let (mut recipients, mut read, mut next) = (0_u64, 0_u64, None);
    loop {
        let slice = store::task::list_all(&world.store, next, COUNTED_AT_ONCE).await.map_err(error_text)?;
        read += slice.tasks.len() as u64;
        recipients += slice.tasks.iter().filter(|(task, _)| filter.matches(task)).count() as u64;
        if read >= PROGRESS_EVERY && read.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{read} recipients read"));
        }
        next = slice.next;
        if next.is_none() {
            return Ok(json!({"recipients": recipients}));
        }
        tokio::task::yield_now().await;
    }
}

/// Does something to all that fits; says how it gets on.
pub(super) async fn run_command_on_matching(
    world: &Services,
    order: &str,
    asked: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(world, asked).await?;
    let what = parse_command(order)?;
    if what == QueueCommand::Release
        && filter == TaskFilter::default()
        && let Some(released) = release_hold(world).await?
    {
        return Ok(released);
    }
    tracing::info!(order, ?filter, "the operator orders something about the queue");
    let given = world.worker.command_matching(filter, &what).await.map_err(error_text)?;
    let mut told = 0;
    loop {
        let CommandProgress { done, busy, partitions_left: left } = given.progress().await.map_err(error_text)?;
        if left == 0 {
            // Those follow by themselves.
            return Ok(json!({"recipients": done, "being_tried": busy}));
        }
        if done > told {
            told = done;
            let _ = progress.try_send(format!("{done} recipients; {left} of 64 parts of the queue to go"));
        }
        given.wait_for_progress().await;
    }
}

/// What is ordered about destinations.
pub(super) fn list_destinations(world: &Services) -> Value {
    let now = world.intake.clock().now();
    let ordered = world.worker.destination_orders();
    let shown: Vec<Value> =
        ordered.iter().map(|(destination, standing)| show::destination_view(destination, standing, now)).collect();
    json!({"destinations": shown})
}

/// Orders something about a destination.
pub(super) async fn change_destination(
    world: &Services,
    destination: &Destination,
    mut order: DestinationAction,
) -> AdminResult {
    let now = world.intake.clock().now();
    if let DestinationAction::Suspend { because: Some(because), .. } = &mut order {
        *because = mail::destination::parse_reason(because).map_err(|why| format!("`--because`: {why}"))?;
    }
    let until = match order {
        DestinationAction::Suspend { seconds: Some(seconds), .. } => {
            let until = now.checked_add(Duration::from_secs(seconds)).ok().filter(|until| *until > now);
            Some(until.ok_or("`--for` is at least a second, and ends while there are clocks")?)
        }
        _ => None,
    };
    let change = |standing: &mut DestinationOverrides| match &order {
        DestinationAction::Suspend { because, .. } => {
            standing.suspension = Some(OperatorSuspension { since: now, until, because: because.clone() });
        }
        DestinationAction::Resume => standing.suspension = None,
        DestinationAction::Pace(pace) => standing.pace = *pace,
        DestinationAction::Route(way) => standing.way.clone_from(way),
    };
    tracing::info!(%destination, ?order, "the operator orders something about a destination");
    let standing = world.worker.order_destination(destination, change).await.map_err(error_text)?;
    Ok(json!({"destination": show::destination_view(destination, &standing, now)}))
}
