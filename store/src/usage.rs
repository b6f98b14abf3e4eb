//! Plan usage: one row for each account and period, updated when events are dispatched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::id::AccountId;
use model::usage::{PlanUsage, UsagePeriod};

use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};
use crate::rows;

fn key_of(account: AccountId, period: UsagePeriod) -> Key {
    let kind = match period {
        UsagePeriod::Day(_) => 1,
        UsagePeriod::Month(_) => 2,
    };
    let date = period.first_day();
    let number = i64::from(date.year()) * 10_000 + i64::from(date.month()) * 100 + i64::from(date.day());
    key(Space::Usage).account(account).u8(kind).i64(number).build()
}

fn decode_count(row: Option<&Value>) -> Result<i64> {
    rows::parse_number(row, "an invalid usage count")
}

/// Reads an account's usage in the day and the month of a time.
pub async fn get(store: &Store, account: AccountId, at: Timestamp) -> Result<PlanUsage> {
    let keys = [key_of(account, UsagePeriod::day(at)), key_of(account, UsagePeriod::month(at))];
    let rows = store.get_many(&keys).await?;
    let mut rows = rows.iter().map(|row| decode_count(row.as_ref()));
    Ok(PlanUsage { day: rows.next().transpose()?.unwrap_or(0), month: rows.next().transpose()?.unwrap_or(0) })
}

/// Amounts to add, by account and period.
pub type UsageIncrements = BTreeMap<(AccountId, UsagePeriod), i64>;

/// Adds usage. The commit conflicts if a row has changed since it was read.
pub async fn add(store: &Store, batch: &mut Batch, additions: &UsageIncrements) -> Result<()> {
    let keys: Vec<Key> = additions.keys().map(|(account, period)| key_of(*account, *period)).collect();
    let rows = store.get_many(&keys).await?;
    for ((row_key, row), count) in keys.into_iter().zip(rows).zip(additions.values()) {
        let sum = decode_count(row.as_ref())?.saturating_add(*count);
        batch.replace(row_key, row, sum.to_string().into_bytes());
    }
    Ok(())
}
