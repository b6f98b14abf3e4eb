//! What is under way with runs, payouts and partners who were deleted: a key each in a partition, so that the node that
//! owns it goes on with it, and no other; its value says from when on.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::id::{AccountId, PartnerId, PayoutId, PayoutRunId};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, prefix_end, successor as key_after};
use crate::row;
use crate::task::PARTITIONS;

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayoutJob {
    /// A run is drafted, taken apart, or has payouts that the processor is to make.
    Run(PayoutRunId),
    /// A payout's lines are to follow it.
    Payout(PayoutId),
    /// A partner was deleted, and has lines left.
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

/// There is work, from this time on.
pub fn schedule(batch: &mut Batch, account: AccountId, work: PayoutJob, due: Timestamp) {
    batch.put(work.key(account), due.as_millisecond().to_string().into_bytes());
}

/// The work is done.
pub fn delete(batch: &mut Batch, account: AccountId, work: PayoutJob) {
    batch.delete(work.key(account));
}

/// Something that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPayoutJob {
    /// Whose.
    pub account: AccountId,
    /// What.
    pub work: PayoutJob,
    /// From when on.
    pub due: Timestamp,
    at: Key,
}

/// What is under way in these partitions, after one of them, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    partitions: RangeInclusive<u16>,
    after: Option<&QueuedPayoutJob>,
    limit: usize,
) -> Result<Vec<QueuedPayoutJob>, ReadError> {
    let at = |partition: u16| key(Space::PayoutJob).u16(partition).build();
    let start = after.map_or_else(|| at(*partitions.start()), |after| key_after(&after.at));
    let rows = store.scan(start..prefix_end(&at(*partitions.end())), ScanOrder::Ascending, limit).await?;
    rows.into_iter().map(decode_job).collect()
}

fn decode_job((at, value): (Key, Value)) -> Result<QueuedPayoutJob, ReadError> {
    let mut reader = KeyReader::new(Space::PayoutJob, &at).map_err(row::damaged)?;
    reader.u16().map_err(row::damaged)?;
    let account = reader.account().map_err(row::damaged)?;
    let kind = reader.u8().map_err(row::damaged)?;
    let work = PayoutJob::from_parts(kind, reader.id().map_err(row::damaged)?);
    let due = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    let due = due.and_then(|due| Timestamp::from_millisecond(due).ok());
    match (work, due) {
        (Some(work), Some(due)) => Ok(QueuedPayoutJob { account, work, due, at }),
        _ => Err(row::damaged("work on payouts")),
    }
}
