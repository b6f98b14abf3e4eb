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

async fn resolve_filter(services: &Services, query: QueueFilter) -> Result<TaskFilter, String> {
    let account = match &query.account {
        None => None,
        Some(name) => {
            let found = store::account::find(&services.store, name).await.map_err(error_text)?;
            Some(found.ok_or_else(|| format!("account {name} does not exist"))?.id)
        }
    };
    let now = services.intake.clock().now();
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
struct QueueScan<'a> {
    services: &'a Services,
    filter: TaskFilter,
    search: QueueSearch,
    limit: usize,
    tasks: Vec<Task>,
    read: usize,
    emails_read: usize,
    damaged: usize,
}

impl QueueScan<'_> {
    /// Scans from a key. Returns the key at which the next page starts. Skips queues that cannot match the filter.
    async fn run(&mut self, from: Option<Key>) -> Result<Option<Key>, String> {
        let first_partition = from.as_deref().and_then(store::task::partition_of_key).unwrap_or(0);
        for partition in first_partition..PARTITIONS {
            let mut next = from.clone().filter(|_| partition == first_partition);
            while let Some((queue, due, next_key)) =
                store::task::next_queue(&self.services.store, partition, next.clone()).await.map_err(error_text)?
            {
                let start = store::task::due_start(&queue, due);
                let start = next.filter(|from| *from > start).unwrap_or(start);
                if self.filter.may_match_queue(&queue)
                    && let Some(key) = self.queue(&queue, start).await?
                {
                    return Ok(Some(key));
                }
                next = Some(next_key);
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
            let page = store::task::list(&self.services.store, queue, start, READ_AT_ONCE).await.map_err(error_text)?;
            self.read += page.tasks.len();
            self.damaged += page.damaged.len();
            let is_candidate = |task: &Task| self.filter.matches(task) && self.search.may_match(task);
            let tasks: Vec<Task> = page.tasks.into_iter().map(|(task, _)| task).filter(is_candidate).collect();
            for task in self.filter_by_email(tasks).await? {
                if self.tasks.len() == self.limit {
                    return Ok(Some(store::task::key_of(&task)));
                }
                self.tasks.push(task);
            }
            from = page.next;
        }
        Ok(None)
    }

    /// Drops tasks whose emails do not match.
    async fn filter_by_email(&mut self, tasks: Vec<Task>) -> Result<Vec<Task>, String> {
        if tasks.is_empty() || !self.search.reads_emails() {
            return Ok(tasks);
        }
        let email_ids: Vec<_> = tasks.iter().map(|task| (task.account, task.id.email)).collect();
        let emails = store::email::get_each(&self.services.store, &email_ids, &|_| None).await.map_err(error_text)?;
        self.emails_read += email_ids.len();
        let matches_email =
            |email: &Option<StoredEmail>| email.as_ref().is_some_and(|stored| self.search.matches_email(&stored.email));
        Ok(tasks.into_iter().zip(&emails).filter(|(_, email)| matches_email(email)).map(|(task, _)| task).collect())
    }
}

fn format_cursor(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_cursor(text: &str) -> Result<Key, String> {
    let error = || format!("`{text}` is not a valid cursor: use `next_cursor` of the previous page");
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let key: Key = digits.collect::<Option<Vec<u8>>>().ok_or_else(error)?.into();
    store::task::partition_of_key(&key).map(|_| key.clone()).ok_or_else(error)
}

/// Lists a page of tasks, and the ready queues of destinations.
pub(super) async fn list_queue(
    services: &Services,
    query: QueueFilter,
    search: QueueSearch,
    PageQuery { limit, cursor }: PageQuery,
) -> AdminResult {
    let mut filter = resolve_filter(services, query).await?;
    if let Some(recipient) = &search.recipient {
        filter.to.get_or_insert_with(|| recipient.domain().clone());
    }
    let limit = limit.clamp(1, LISTED_MAX);
    let mut scan =
        QueueScan { services, filter, search, limit, tasks: Vec::new(), read: 0, emails_read: 0, damaged: 0 };
    let next = scan.run(cursor.as_deref().map(read_cursor).transpose()?).await?;
    let (in_memory, body_bytes, queues_on_disk) = services.worker.memory_load();
    let sites: Vec<Value> =
        services.worker.ready_queue_statuses().iter().take(100).map(views::ready_queue_view).collect();
    Ok(json!({
        "hold": hold_view(services).await?,
        "tasks": scan.tasks.iter().map(|task| views::task_view(task, &services.worker)).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "next_cursor": next.as_ref().map(format_cursor),
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
pub(super) async fn hold_view(services: &Services) -> Result<Value, String> {
    let Some(hold) = services.worker.queue_hold() else { return Ok(Value::Null) };
    let mut view = views::held_mail_view(services.worker.count_held(None).await.map_err(error_text)?);
    view["since"] = json!(hold.since);
    view["because"] = json!("the store was restored from a backup; `queue release --all` resumes delivery");
    Ok(view)
}

/// Lists the destinations with the longest queues.
pub(super) async fn top_destinations(services: &Services, limit: usize, progress: mpsc::Sender<String>) -> AdminResult {
    let report_progress = |tasks: u64| {
        if tasks >= PROGRESS_EVERY && tasks.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{tasks} recipients read"));
        }
    };
    let top =
        services.worker.top_destinations(limit.clamp(1, LISTED_MAX), report_progress).await.map_err(error_text)?;
    let now = services.intake.clock().now();
    let view: Vec<Value> =
        top.destinations.iter().map(|destination| views::top_destination_view(destination, now)).collect();
    let hold = hold_view(services).await?;
    Ok(json!({"hold": hold, "tasks": top.tasks, "count": top.count, "destinations": view}))
}

/// Runs a command on one email.
pub(super) async fn run_command(services: &Services, command: &str, email: &str) -> AdminResult {
    let recipients =
        services.worker.command_email(parse_email_id(email)?, &parse_command(command)?).await.map_err(error_text)?;
    tracing::info!(email.id = email, command, recipients, "operator: command on an email");
    Ok(json!({"email": email, "recipients": recipients}))
}

/// Lifts the hold of the whole queue, if there is one. Tasks that the operator holds, and tasks of suspended accounts,
/// stay held; once the hold is lifted, the same command releases the former.
async fn release_hold(services: &Services) -> Result<Option<Value>, String> {
    let Some(hold) = services.worker.queue_hold() else { return Ok(None) };
    let held_mail = services.worker.count_held(None).await.map_err(error_text)?;
    services.worker.lift_queue_hold().await.map_err(error_text)?;
    tracing::info!(recipients = held_mail.recipients, "operator: lift the queue hold that the restore set");
    Ok(Some(json!({"recipients": held_mail.recipients, "being_tried": 0, "held_since": hold.since})))
}

/// Counts the recipients that match a filter.
pub(super) async fn count_matching(
    services: &Services,
    query: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(services, query).await?;
    let (mut recipients, mut read, mut next) = (0_u64, 0_u64, None);
    loop {
        let page = store::task::list_all(&services.store, next, COUNTED_AT_ONCE).await.map_err(error_text)?;
        read += page.tasks.len() as u64;
        recipients += page.tasks.iter().filter(|(task, _)| filter.matches(task)).count() as u64;
        if read >= PROGRESS_EVERY && read.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{read} recipients read"));
        }
        next = page.next;
        if next.is_none() {
            return Ok(json!({"recipients": recipients}));
        }
        tokio::task::yield_now().await;
    }
}

/// Runs a command on all tasks that match a filter, and reports progress.
pub(super) async fn run_command_on_matching(
    services: &Services,
    order: &str,
    query: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(services, query).await?;
    let command = parse_command(order)?;
    if command == QueueCommand::Release
        && filter == TaskFilter::default()
        && let Some(released) = release_hold(services).await?
    {
        return Ok(released);
    }
    tracing::info!(order, ?filter, "operator: queue command");
    let execution = services.worker.command_matching(filter, &command).await.map_err(error_text)?;
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
pub(super) fn list_destinations(services: &Services) -> Value {
    let now = services.intake.clock().now();
    let ordered = services.worker.destination_orders();
    let view: Vec<Value> =
        ordered.iter().map(|(destination, overrides)| views::destination_view(destination, overrides, now)).collect();
    json!({"destinations": view})
}

/// Sets or removes an override of a destination.
pub(super) async fn change_destination(
    services: &Services,
    destination: &Destination,
    mut order: DestinationAction,
) -> AdminResult {
    let now = services.intake.clock().now();
    if let DestinationAction::Suspend { because: Some(because), .. } = &mut order {
        *because = mail::destination::parse_reason(because).map_err(|reason| format!("`--because`: {reason}"))?;
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
        DestinationAction::Route(route) => overrides.route.clone_from(route),
    };
    tracing::info!(%destination, ?order, "operator: override destination");
    let overrides = services.worker.order_destination(destination, change).await.map_err(error_text)?;
    Ok(json!({"destination": views::destination_view(destination, &overrides, now)}))
}
