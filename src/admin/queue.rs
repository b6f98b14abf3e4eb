//! Admin requests about the queue and its destinations.

use std::time::Duration;

use ::queue::admin::queue_admin::{CommandProgress, QueueAdminError};
use ::queue::admin::queue_command::QueueCommand;
use message::hexadecimal;
use model::destination::{Destination, DestinationOverrides, OperatorSuspension};
use model::id::EmailId;
use model::task::Task;
use model::task_filter::TaskFilter;
use serde_json::{Value, json};
use store::email::StoredEmail;
use store::engine::Key;
use store::queue_walk::QueueWalk;
use store::task::PARTITIONS;
use tokio::sync::mpsc;

use super::error::{AdminError, AdminResult, error_text};
use super::request::{DestinationAction, PageQuery, QueueFilter};
use super::search::{self, QueueSearch};
use super::views;
use crate::services::Server;

/// Maximum number of tasks in a page.
const LISTED_MAX: usize = 10_000;
/// Maximum number of rows of the queue read for a page.
const READ_MAX: usize = 100_000;
/// Maximum number of emails read for a page, if the filter needs fields that tasks do not have.
const EMAILS_READ_MAX: usize = 20_000;
/// Progress is reported after each of this many tasks.
const PROGRESS_EVERY: u64 = 50_000;
/// Passes of a command that fail in succession before its handler reports that.
const FAILED_PASSES_MAX: u32 = 3;

async fn resolve_filter(server: &Server, query: QueueFilter) -> Result<TaskFilter, AdminError> {
    let account = search::resolve_account(server, query.account.as_deref()).await?;
    let now = server.clock.now();
    let older = query.older_seconds.map(Duration::from_secs);
    let too_long = |_| "`--older` is too large: the time is out of range".to_owned();
    let old_before = older.map(|older| now.checked_sub(older)).transpose().map_err(too_long)?;
    let accepted_before = old_before.into_iter().chain(query.accepted_before).min();
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

pub(super) fn parse_email_id(text: &str) -> Result<EmailId, String> {
    text.parse().map_err(error_text)
}

/// Converts the error of a command or query about an email: one that does not exist is `not_found`.
pub(super) fn email_error(error: QueueAdminError) -> AdminError {
    match error {
        QueueAdminError::Unknown(_) => AdminError::with_code("not_found", error.to_string()),
        error => error.to_string().into(),
    }
}

fn parse_command(word: &str) -> Result<QueueCommand, String> {
    QueueCommand::from_word(word).ok_or_else(|| format!("`{word}` is not a queue command"))
}

/// Search of the queue for one page: filters, tasks found and numbers read so far.
struct QueueScan<'a> {
    server: &'a Server,
    search: QueueSearch,
    limit: usize,
    tasks: Vec<Task>,
    emails_read: usize,
    damaged: usize,
}

impl QueueScan<'_> {
    /// Adds the tasks of a walk until the page is full or a limit is reached. Returns the key at which the next page
    /// starts.
    async fn run(&mut self, walk: &mut QueueWalk<'_>) -> Result<Option<Key>, String> {
        while self.emails_read < EMAILS_READ_MAX
            && let Some(page) = walk.next_page().await.map_err(error_text)?
        {
            self.damaged += page.damaged.len();
            let tasks = page.tasks.into_iter().map(|(task, _)| task).filter(|task| self.search.may_match(task));
            for task in self.filter_by_email(tasks.collect()).await? {
                if self.tasks.len() == self.limit {
                    return Ok(Some(store::task::key_of(&task)));
                }
                self.tasks.push(task);
            }
        }
        Ok(walk.rest().cloned())
    }

    /// Drops tasks whose emails do not match.
    async fn filter_by_email(&mut self, tasks: Vec<Task>) -> Result<Vec<Task>, String> {
        if tasks.is_empty() || !self.search.reads_emails() {
            return Ok(tasks);
        }
        let email_ids: Vec<_> = tasks.iter().map(|task| (task.account, task.id.email)).collect();
        let emails = store::email::get_each(&self.server.store, &email_ids, &|_| None).await.map_err(error_text)?;
        self.emails_read += email_ids.len();
        let matches_email =
            |email: &Option<StoredEmail>| email.as_ref().is_some_and(|stored| self.search.matches_email(&stored.email));
        Ok(tasks.into_iter().zip(&emails).filter(|(_, email)| matches_email(email)).map(|(task, _)| task).collect())
    }
}

fn read_cursor(text: &str) -> Result<Key, String> {
    let key = hexadecimal::decode(text).map(Key::from);
    key.filter(|key| store::task::partition_of_key(key).is_some())
        .ok_or_else(|| format!("`{text}` is not a valid cursor: use `next_cursor` of the previous page"))
}

/// Lists a page of tasks, and the ready queues of destinations.
pub(super) async fn list_queue(
    server: &Server,
    query: QueueFilter,
    search: QueueSearch,
    PageQuery { limit, cursor }: PageQuery,
) -> AdminResult {
    let mut filter = resolve_filter(server, query).await?;
    if let Some(recipient) = &search.recipient {
        filter.to.get_or_insert_with(|| recipient.domain().clone());
    }
    let limit = limit.clamp(1, LISTED_MAX);
    let mut walk = QueueWalk::new(&server.store, filter, READ_MAX);
    if let Some(cursor) = cursor {
        walk = walk.starting_at(&read_cursor(&cursor)?);
    }
    let mut scan = QueueScan { server, search, limit, tasks: Vec::new(), emails_read: 0, damaged: 0 };
    let next = scan.run(&mut walk).await?;
    let (in_memory, body_bytes, queues_on_disk) = server.queue.delivery.memory_load();
    let sites: Vec<Value> =
        server.queue.delivery.queues.ready_queue_statuses().iter().take(100).map(views::ready_queue_view).collect();
    Ok(json!({
        "hold": hold_view(server).await?,
        "tasks": scan.tasks.iter().map(|task| views::task_view(task, &server.queue)).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "next_cursor": next.as_ref().map(hexadecimal::encode),
        "tasks_read": walk.rows_read(),
        "damaged": scan.damaged,
        "in_memory": in_memory,
        "body_bytes_in_memory": body_bytes,
        "queues_on_disk": queues_on_disk,
        "sites": sites,
    }))
}

/// JSON of the hold of the whole queue: its start, the number of recipients held and the oldest of them. Null without a
/// hold.
pub(super) async fn hold_view(server: &Server) -> Result<Value, String> {
    let Some(hold) = server.queue.delivery.queues.queue_hold() else { return Ok(Value::Null) };
    let mut view = views::held_mail_view(server.queue.delivery.queues.count_held_mail(None).await.map_err(error_text)?);
    view["since"] = json!(hold.since);
    view["because"] = json!("the store was restored from a backup; `queue release --all` resumes delivery");
    Ok(view)
}

/// Lists the destinations with the longest queues.
pub(super) async fn top_destinations(server: &Server, limit: usize, progress: mpsc::Sender<String>) -> AdminResult {
    let report_progress = |tasks: u64| {
        if tasks >= PROGRESS_EVERY && tasks.is_multiple_of(PROGRESS_EVERY) {
            let _ = progress.try_send(format!("{tasks} recipients read"));
        }
    };
    let top = server
        .queue
        .delivery
        .admin
        .top_destinations(limit.clamp(1, LISTED_MAX), report_progress)
        .await
        .map_err(error_text)?;
    let now = server.clock.now();
    let view: Vec<Value> =
        top.destinations.iter().map(|destination| views::top_destination_view(destination, now)).collect();
    let hold = hold_view(server).await?;
    let counted = top.counted.word();
    Ok(json!({"hold": hold, "tasks": top.tasks, "count": top.count, "counted": counted, "destinations": view}))
}

pub(super) async fn run_command(server: &Server, command: &str, email: &str) -> AdminResult {
    let recipients = server
        .queue
        .delivery
        .admin
        .command_email(parse_email_id(email)?, &parse_command(command)?)
        .await
        .map_err(email_error)?;
    tracing::info!(email.id = email, command, recipients, "operator: command on an email");
    Ok(json!({"email": email, "recipients": recipients}))
}

/// Lifts the hold of the whole queue, if there is one. Tasks that the operator holds, and tasks of suspended accounts,
/// stay held; once the hold is lifted, the same command releases the former.
async fn release_hold(server: &Server) -> Result<Option<Value>, String> {
    let Some(hold) = server.queue.delivery.queues.queue_hold() else { return Ok(None) };
    let held_mail = server.queue.delivery.queues.count_held_mail(None).await.map_err(error_text)?;
    server.queue.delivery.queues.lift_queue_hold().await.map_err(error_text)?;
    tracing::info!(recipients = held_mail.recipients, "operator: lift the queue hold that the restore set");
    Ok(Some(json!({
        "recipients": held_mail.recipients,
        "has_more": held_mail.has_more,
        "being_tried": 0,
        "held_since": hold.since,
    })))
}

/// Counts the recipients that match a filter. Reads at most `rows_max` rows of the queue; `has_more` is true if that
/// was not enough.
pub(super) async fn count_matching(
    server: &Server,
    query: QueueFilter,
    rows_max: Option<usize>,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    let filter = resolve_filter(server, query).await?;
    let mut walk = QueueWalk::new(&server.store, filter, rows_max.unwrap_or(usize::MAX));
    let (mut recipients, mut reported) = (0_u64, 0);
    while let Some(page) = walk.next_page().await.map_err(error_text)? {
        recipients += page.tasks.len() as u64;
        let read = walk.rows_read() as u64 / PROGRESS_EVERY;
        if read > reported {
            reported = read;
            let _ = progress.try_send(format!("{} recipients read", walk.rows_read()));
        }
    }
    Ok(json!({"recipients": recipients, "has_more": walk.rest().is_some()}))
}

/// Runs a command on all tasks that match a filter, and reports progress. A release without a filter first lifts the
/// hold of the whole queue.
pub(super) async fn run_command_on_matching(
    server: &Server,
    order: &str,
    query: QueueFilter,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    // Lifting the hold applies to all mail, so no filter may restrict the command, not even by time.
    let is_everything = query == QueueFilter::default();
    let filter = resolve_filter(server, query).await?;
    let command = parse_command(order)?;
    if command == QueueCommand::Release
        && is_everything
        && let Some(released) = release_hold(server).await?
    {
        return Ok(released);
    }
    tracing::info!(order, ?filter, "operator: queue command");
    let execution = server.queue.delivery.admin.command_matching(filter, &command).await.map_err(error_text)?;
    let mut reported = 0;
    loop {
        let CommandProgress { done, busy, partitions_left: left, failure } =
            execution.progress().await.map_err(error_text)?;
        if left == 0 {
            // The worker applies the command to busy tasks after their attempt.
            return Ok(command_result(server, done, busy));
        }
        if let Some(failure) = failure.filter(|failure| failure.passes >= FAILED_PASSES_MAX) {
            let message = format!(
                "{} changed, the others not yet: {}. The command is stored and continues when that is resolved",
                views::recipients_text(done),
                failure.error
            );
            return Err(AdminError::with_code("unavailable", message));
        }
        if done > reported {
            reported = done;
            let total = usize::from(PARTITIONS);
            let scanned = total.saturating_sub(left) * 100 / total;
            let _ = progress.try_send(format!("{}; scanning queue: {scanned} %", views::recipients_text(done)));
        }
        execution.wait_for_progress().await;
    }
}

/// Lists the operator's overrides of destinations.
pub(super) fn list_destinations(server: &Server) -> Value {
    let now = server.clock.now();
    let ordered = server.queue.delivery.queues.list_overrides();
    let view: Vec<Value> =
        ordered.iter().map(|(destination, overrides)| views::destination_view(destination, overrides, now)).collect();
    json!({"destinations": view})
}

/// Sets or removes an override of a destination.
pub(super) async fn change_destination(
    server: &Server,
    destination: &Destination,
    mut order: DestinationAction,
) -> AdminResult {
    let now = server.clock.now();
    if let DestinationAction::Suspend { because: Some(because), .. } = &mut order {
        *because = model::destination::parse_reason(because).map_err(|reason| format!("`--because`: {reason}"))?;
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
    let overrides = server.queue.delivery.queues.change_override(destination, change).await.map_err(error_text)?;
    Ok(json!({"destination": views::destination_view(destination, &overrides, now)}))
}
/// The result of a command on all mail of a filter. In a cluster, the numbers are those of this node.
fn command_result(server: &Server, done: u64, busy: usize) -> Value {
    let mut result = json!({"recipients": done, "being_tried": busy});
    if server.queue.services.leases.nodes() > 1 {
        result["counted"] = "this node; the other nodes carry the command out for the mail of theirs".into();
    }
    result
}
