//! Admin requests about the queue and its destinations.

use std::time::Duration;

use ::queue::queue_admin::CommandProgress;
use ::queue::queue_command::QueueCommand;
use mail::destination::{Destination, DestinationOverrides, OperatorSuspension};
use mail::task::{QueueName, Task};
use mail::task_filter::TaskFilter;
use serde_json::{Value, json};
use store::email::StoredEmail;
use store::engine::Key;
use store::task::PARTITIONS;
use tokio::sync::mpsc;

use super::handler::{AdminResult, error_text, parse_email_id};
use super::{DestinationAction, PageQuery, QueueFilter, QueueSearch, views};
use crate::services::Services;

/// Maximum number of tasks in a page.
const LISTED_MAX: usize = 10_000;
/// Maximum number of tasks read for a page.
const READ_MAX: usize = 1_000_000;
/// Maximum number of emails read for a page, if the filter needs fields that tasks do not have.
const EMAILS_READ_MAX: usize = 100_000;
/// Number of tasks per read of the store.
const READ_AT_ONCE: usize = 1_000;
/// Progress is reported after each of this many tasks.
const PROGRESS_EVERY: u64 = 50_000;
/// Number of tasks per read of the store while counting.
const COUNTED_AT_ONCE: usize = 1_000;

async fn resolve_filter(world: &Services, query: QueueFilter) -> Result<TaskFilter, String> {
    let account = match &query.account {
        None => None,
        Some(named) => {
            let found = store::account::find(&world.store, named).await.map_err(error_text)?;
            Some(found.ok_or_else(|| format!("account {named} does not exist"))?.id)
        }
    };
    let now = world.intake.clock().now();
    let older = query.older_seconds.map(Duration::from_secs);
    let too_long = |_| "`--older` is too large: the time is out of range".to_owned();
    let accepted_before = older.map(|older| now.checked_sub(older)).transpose().map_err(too_long)?;
    Ok(TaskFilter {
        to: query.to,
        account,
        from: query.from,
        class: query.class,
        held: query.held,
        attempts_min: query.attempts_min,
        accepted_before,
    })
}

fn parse_command(word: &str) -> Result<QueueCommand, String> {
    QueueCommand::from_word(word).ok_or_else(|| format!("`{word}` is not a queue command"))
}

/// Scan of the queue for one page: filters, tasks found and numbers read so far.
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
    /// Scans from a key. Returns the key at which the next page starts. Skips queues that cannot match the filter.
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

    /// Scans one queue from a key. Returns the key to continue at if a limit was reached before the end of the queue.
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

    /// Drops tasks whose emails do not match.
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
    let wrong = || format!("`{text}` is not a valid cursor: use `next_cursor` of the previous page");
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let key: Key = digits.collect::<Option<Vec<u8>>>().ok_or_else(wrong)?.into();
    store::task::partition_of_key(&key).map(|_| key.clone()).ok_or_else(wrong)
}

/// Lists a page of tasks, and the ready queues of destinations.
pub(super) async fn list_queue(
    world: &Services,
    query: QueueFilter,
    search: QueueSearch,
    PageQuery { limit, cursor }: PageQuery,
) -> AdminResult {
    let mut filter = resolve_filter(world, query).await?;
    if let Some(recipient) = &search.recipient {
        filter.to.get_or_insert_with(|| recipient.domain().clone());
    }
    let limit = limit.clamp(1, LISTED_MAX);
    let mut scan = Look { world, filter, search, limit, tasks: Vec::new(), read: 0, emails_read: 0, damaged: 0 };
    let next = scan.run(cursor.as_deref().map(read_cursor).transpose()?).await?;
    let (in_memory, body_bytes, queues_on_disk) = world.worker.memory_load();
    let sites: Vec<Value> = world.worker.ready_queue_statuses().iter().take(100).map(views::ready_queue_view).collect();
    Ok(json!({
        "hold": hold_view(world).await?,
        "tasks": scan.tasks.iter().map(|task| views::task_view(task, &world.worker)).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "next_cursor": next.as_ref().map(cursor_of),
        "tasks_read": scan.read,
        "damaged": scan.damaged,
        "in_memory": in_memory,
        "body_bytes_in_memory": body_bytes,
        "queues_on_disk": queues_on_disk,
        "sites": sites,
    }))
}

/// JSON of the hold of the whole queue: its start, the number of recipients held and the oldest of them. Null without a
/// hold.
pub(super) async fn hold_view(world: &Services) -> Result<Value, String> {
    let Some(hold) = world.worker.queue_hold() else { return Ok(Value::Null) };
    let mut view = views::held_mail_view(world.worker.count_held(None).await.map_err(error_text)?);
    view["since"] = json!(hold.since);
    view["because"] = json!("the store was restored from a backup; `queue release --all` resumes delivery");
    Ok(view)
}

/// Lists the destinations with the longest queues.
pub(super) async fn top_destinations(world: &Services, limit: usize, progress: mpsc::Sender<String>) -> AdminResult {
    let seen = |tasks: u64| {
        if tasks >= PROGRESS_EVERY && tasks.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{tasks} recipients read"));
        }
    };
    let top = world.worker.top_destinations(limit.clamp(1, LISTED_MAX), seen).await.map_err(error_text)?;
    let now = world.intake.clock().now();
    let view: Vec<Value> = top.destinations.iter().map(|one| views::top_destination_view(one, now)).collect();
    let hold = hold_view(world).await?;
    Ok(json!({"hold": hold, "tasks": top.tasks, "count": top.count, "destinations": view}))
}

/// Runs a command on one email.
pub(super) async fn run_command(world: &Services, order: &str, email: &str) -> AdminResult {
    let recipients =
        world.worker.command_email(parse_email_id(email)?, &parse_command(order)?).await.map_err(error_text)?;
    Ok(json!({"email": email, "recipients": recipients}))
}

/// Lifts the hold of the whole queue, if there is one. Tasks that the operator holds, and tasks of suspended accounts,
/// stay held; once the hold is lifted, the same command releases the former.
async fn release_hold(world: &Services) -> Result<Option<Value>, String> {
    let Some(hold) = world.worker.queue_hold() else { return Ok(None) };
    let waiting = world.worker.count_held(None).await.map_err(error_text)?;
    world.worker.lift_queue_hold().await.map_err(error_text)?;
    tracing::info!(recipients = waiting.recipients, "operator: lift the queue hold that the restore set");
    Ok(Some(json!({"recipients": waiting.recipients, "being_tried": 0, "held_since": hold.since})))
}

/// Counts the recipients that match a filter.
pub(super) async fn count_matching(
    world: &Services,
    query: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(world, query).await?;
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

/// Runs a command on all tasks that match a filter, and reports progress.
pub(super) async fn run_command_on_matching(
    world: &Services,
    order: &str,
    query: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(world, query).await?;
    let command = parse_command(order)?;
    if command == QueueCommand::Release
        && filter == TaskFilter::default()
        && let Some(released) = release_hold(world).await?
    {
        return Ok(released);
    }
    tracing::info!(order, ?filter, "operator: queue command");
    let execution = world.worker.command_matching(filter, &command).await.map_err(error_text)?;
    let mut reported = 0;
    loop {
        let CommandProgress { done, busy, partitions_left: left } = execution.progress().await.map_err(error_text)?;
        if left == 0 {
            // The worker applies the command to busy tasks after their attempt.
            return Ok(json!({"recipients": done, "being_tried": busy}));
        }
        if done > reported {
            reported = done;
            let total = usize::from(PARTITIONS);
            let scanned = total.saturating_sub(left) * 100 / total;
            let _ = progress.try_send(format!("{done} recipients; scanning queue: {scanned} %"));
        }
        execution.wait_for_progress().await;
    }
}

/// Lists the operator's overrides of destinations.
pub(super) fn list_destinations(world: &Services) -> Value {
    let now = world.intake.clock().now();
    let ordered = world.worker.destination_orders();
    let view: Vec<Value> =
        ordered.iter().map(|(destination, overrides)| views::destination_view(destination, overrides, now)).collect();
    json!({"destinations": view})
}

/// Sets or removes an override of a destination.
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
            Some(until.ok_or("`--for` must be at least one second and within the range of timestamps")?)
        }
        _ => None,
    };
    let change = |overrides: &mut DestinationOverrides| match &order {
        DestinationAction::Suspend { because, .. } => {
            overrides.suspension = Some(OperatorSuspension { since: now, until, because: because.clone() });
        }
        DestinationAction::Resume => overrides.suspension = None,
        DestinationAction::Pace(pace) => overrides.pace = *pace,
        DestinationAction::Route(way) => overrides.way.clone_from(way),
    };
    tracing::info!(%destination, ?order, "operator: override destination");
    let overrides = world.worker.order_destination(destination, change).await.map_err(error_text)?;
    Ok(json!({"destination": views::destination_view(destination, &overrides, now)}))
}
