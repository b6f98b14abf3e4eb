//! What is due, whatever it is: how much of what waits for a time has been waiting until now.
//!
//! ```text
//! Space · partition · due · …                       (scheduled emails, automations, holds, exports, looks, notices,
//!                                                    letters to partners)
//! Task · queue · due · …   DeliveryDue · line · …   (queue by queue)
//! PayoutWork · partition · …                        (work on payouts, its time in the value)
//! ```
//!
//! For who moves the clock and wants to know when what is due by then was tried: whatever is tried is done, or waits for
//! a later time.

use jiff::Timestamp;
use mail::task::{LAST_ATTEMPT_GRACE, QueueName};

use crate::affiliate::payout_work;
use crate::delivery;
use crate::engine::{ReadError, ScanOrder, Store};
use crate::key::{Space, key, prefix_end};
use crate::task::{self, PARTITIONS};

/// Where keys begin with a partition and a time.
const BY_TIME: [Space; 7] = [
    Space::DomainSetupByTime,
    Space::ScheduledByTime,
    Space::ConversionExport,
    Space::AutomationDue,
    Space::OwnerAlert,
    Space::CommissionDue,
    Space::PartnerEmail,
];
/// Queues that are looked through.
const QUEUES_MAX: usize = 10_000;

/// How much is due by `now`, counted up to `limit`; without what lies in queues that are put off, until its time is up.
///
/// # Errors
/// The store cannot be read.
pub async fn count_due(
    store: &Store,
    now: Timestamp,
    limit: usize,
    is_put_off: &(dyn Fn(&QueueName) -> bool + Sync),
) -> Result<usize, ReadError> {
    let mut due = 0;
    for partition in 0..PARTITIONS {
        for space in BY_TIME {
            let start = key(space).u16(partition).build();
            let end = prefix_end(&key(space).u16(partition).time(now).build());
            due += store.scan(start..end, ScanOrder::Ascending, limit.saturating_sub(due)).await?.len();
        }
        due += count_past_deadline(store, partition, now, limit.saturating_sub(due)).await?;
        due += count_in_queues(store, (partition, is_put_off), now, limit.saturating_sub(due)).await?;
        due += count_in_endpoint_queues(store, partition, now, limit.saturating_sub(due)).await?;
        if due >= limit {
            break;
        }
    }
    // Of these the time stands in the value; there are few.
    let payouts = payout_work::list(store, 0..=PARTITIONS - 1, None, limit.saturating_sub(due)).await?;
    Ok(due + payouts.iter().filter(|item| item.due <= now).count())
}

/// Tasks of a partition whose time is up, and those whose sender is to hear that they are late.
async fn count_past_deadline(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<usize, ReadError> {
    let passed = now.checked_sub(LAST_ATTEMPT_GRACE).unwrap_or(Timestamp::MIN);
    let start = key(Space::Deadline).u16(partition).build();
    let end = key(Space::Deadline).u16(partition).time(passed).build();
    Ok(store.scan(start..end, ScanOrder::Ascending, limit).await?.len())
}

/// What is due in a partition's queues.
async fn count_in_queues(
    store: &Store,
    (partition, is_put_off): (u16, &(dyn Fn(&QueueName) -> bool + Sync)),
    now: Timestamp,
    limit: usize,
) -> Result<usize, ReadError> {
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

/// What is due of a partition's deliveries.
async fn count_in_endpoint_queues(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<usize, ReadError> {
    let (mut due, mut from) = (0, None);
    for _ in 0..QUEUES_MAX {
        let Some((line, first, next)) = delivery::next_endpoint_queue(store, partition, from).await? else {
            break;
        };
        if first <= now {
            let range = delivery::due_range(line, now);
            due += store.scan(range, ScanOrder::Ascending, limit.saturating_sub(due)).await?.len();
        }
        if due >= limit {
            break;
        }
        from = Some(next);
    }
    Ok(due)
}
