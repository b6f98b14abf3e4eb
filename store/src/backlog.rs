//! Backlog: counts work of any kind that is overdue at a time.
//!
//! ```text
//! space · partition · due · …                emails scheduled, exports, automations, holds, alerts, domain checks, …
//! Task · queue · due · …                     delivery tasks, queue by queue
//! WebhookDeliveryDue · endpoint · due · …    webhook deliveries, queue by queue
//! PayoutJob · partition · …                  payout jobs, with the due time in the value
//! ```
//!
//! The admin command that advances the clock uses it: it waits until all work that became due was processed, that is,
//! done or rescheduled to a later time.

use jiff::Timestamp;
use model::task::{LAST_ATTEMPT_GRACE, QueueName};

use crate::affiliate::payout_job;
use crate::engine::{Result, ScanOrder, Store};
use crate::key::{Space, key, prefix_end};
use crate::rows;
use crate::task::{self, PARTITIONS};
use crate::webhook_delivery;

/// Spaces whose keys begin with partition and due time.
const BY_TIME: [Space; 7] = [
    Space::DomainSetupByTime,
    Space::ScheduledByTime,
    Space::ConversionExport,
    Space::AutomationDue,
    Space::OwnerAlert,
    Space::CommissionDue,
    Space::PartnerEmail,
];
/// Maximum number of queues scanned per partition.
const QUEUES_MAX: usize = 10_000;

/// Counts the work that is due by `now`, up to `limit`. Tasks in deferred queues count only once they expire.
pub async fn count_due(
    store: &Store,
    now: Timestamp,
    limit: usize,
    is_put_off: &(dyn Fn(&QueueName) -> bool + Sync),
) -> Result<usize> {
    let mut due = 0;
    for partition in 0..PARTITIONS {
        for space in BY_TIME {
            let start = key(space).u16(partition).build();
            let end = prefix_end(&key(space).u16(partition).time(now).build());
            due += store.scan(start..end, ScanOrder::Ascending, limit.saturating_sub(due)).await?.len();
        }
        due += count_past_deadline(store, partition, now, limit.saturating_sub(due)).await?;
        due += count_in_queues(store, partition, is_put_off, now, limit.saturating_sub(due)).await?;
        due += count_in_endpoint_queues(store, partition, now, limit.saturating_sub(due)).await?;
        if due >= limit {
            break;
        }
    }
    // Payout jobs have their due time in the value; there are few.
    let payouts = payout_job::list(store, 0..=PARTITIONS - 1, None, limit.saturating_sub(due)).await?;
    Ok(due + payouts.iter().filter(|item| item.due <= now).count())
}

/// Counts the tasks of a partition that are past their deadline.
async fn count_past_deadline(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<usize> {
    let passed = now.checked_sub(LAST_ATTEMPT_GRACE).unwrap_or(Timestamp::MIN);
    let start = key(Space::Deadline).u16(partition).build();
    let end = key(Space::Deadline).u16(partition).time(passed).build();
    rows::count(store, start..end, limit).await
}

/// Counts the due tasks in a partition's queues.
async fn count_in_queues(
    store: &Store,
    partition: u16,
    is_put_off: &(dyn Fn(&QueueName) -> bool + Sync),
    now: Timestamp,
    limit: usize,
) -> Result<usize> {
    let (mut due, mut from) = (0, None);
    for _ in 0..QUEUES_MAX {
        let Some((queue, first, next)) = task::next_queue(store, partition, from).await? else { break };
        if first <= now && !is_put_off(&queue) {
            let end = prefix_end(&task::due_start(&queue, now));
            let range = task::due_start(&queue, first)..end;
            due += store.scan(range, ScanOrder::Ascending, limit.saturating_sub(due)).await?.len();
        }
        if due >= limit {
            break;
        }
        from = Some(next);
    }
    Ok(due)
}

/// Counts the due webhook deliveries of a partition.
async fn count_in_endpoint_queues(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<usize> {
    let (mut due, mut from) = (0, None);
    for _ in 0..QUEUES_MAX {
        let Some((line, first, next)) = webhook_delivery::next_endpoint_queue(store, partition, from).await? else {
            break;
        };
        if first <= now {
            let range = webhook_delivery::due_range(line, now);
            due += store.scan(range, ScanOrder::Ascending, limit.saturating_sub(due)).await?.len();
        }
        if due >= limit {
            break;
        }
        from = Some(next);
    }
    Ok(due)
}
