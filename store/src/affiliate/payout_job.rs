//! Payout jobs: work on runs, payouts and deleted partners.
//!
//! Each job is a key in a partition, so that only the node that owns the partition runs it. The value is the due time
//! in milliseconds.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use model::id::{AccountId, PartnerId, PayoutId, PayoutRunId};

use crate::codec;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end, successor as key_after};
use crate::task::PARTITIONS;

/// The object that a job works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayoutJob {
    /// A run that is being drafted or dismantled, or has payouts to transfer.
    Run(PayoutRunId),
    /// A payout whose lines must follow its state.
    Payout(PayoutId),
    /// A deleted partner that has lines left.
    Partner(PartnerId),
}

impl PayoutJob {
    fn parts(self) -> (u8, [u8; 16]) {
        match self {
            Self::Run(id) => (1, id.to_bytes()),
            Self::Payout(id) => (2, id.to_bytes()),
            Self::Partner(id) => (3, id.to_bytes()),
        }
    }

    fn from_parts(kind: u8, id: [u8; 16]) -> Option<Self> {
        match kind {
            1 => Some(Self::Run(PayoutRunId::from_bytes(id))),
            2 => Some(Self::Payout(PayoutId::from_bytes(id))),
            3 => Some(Self::Partner(PartnerId::from_bytes(id))),
            _ => None,
        }
    }

    fn key(self, account: AccountId) -> Key {
        let (kind, id) = self.parts();
        let [.., last] = id;
        let partition = u16::from(last) % PARTITIONS;
        key(Space::PayoutJob).u16(partition).account(account).u8(kind).id(id).build()
    }
}

/// Schedules a job, or reschedules it.
pub fn schedule(batch: &mut Batch, account: AccountId, work: PayoutJob, due: Timestamp) {
    batch.put(work.key(account), due.as_millisecond().to_string().into_bytes());
}

/// Deletes a finished job.
pub fn delete(batch: &mut Batch, account: AccountId, work: PayoutJob) {
    batch.delete(work.key(account));
}

/// A stored job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPayoutJob {
    pub account: AccountId,
    pub work: PayoutJob,
    pub due: Timestamp,
    at: Key,
}

/// Lists the jobs of these partitions, due or not, after one of them, at most `limit`.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    after: Option<&QueuedPayoutJob>,
    limit: usize,
) -> Result<Vec<QueuedPayoutJob>> {
    let at = |partition: u16| key(Space::PayoutJob).u16(partition).build();
    let start = after.map_or_else(|| at(*partitions.start()), |after| key_after(&after.at));
    let rows = store.scan(start..prefix_end(&at(*partitions.end())), ScanOrder::Ascending, limit).await?;
    rows.into_iter().map(decode_job).collect()
}

fn decode_job((at, value): (Key, Value)) -> Result<QueuedPayoutJob> {
    let mut reader = KeyReader::new(Space::PayoutJob, &at)?;
    reader.u16()?;
    let account = reader.account()?;
    let kind = reader.u8()?;
    let work = PayoutJob::from_parts(kind, reader.id()?);
    let due = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    let due = due.and_then(|due| Timestamp::from_millisecond(due).ok());
    match (work, due) {
        (Some(work), Some(due)) => Ok(QueuedPayoutJob { account, work, due, at }),
        _ => Err(codec::damaged("an invalid payout job")),
    }
}
