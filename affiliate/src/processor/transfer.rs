//! A transfer that was reversed, as `transfer.reversed` tells: a payout came back.

use mail::id::PayoutId;
use serde_json::Value;

use super::as_of::AsOf;
use super::reading::{Object, Reading, Unreadable};

/// A transfer of which something was reversed. State: `amount_reversed` is all that was so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversedTransfer {
    /// The processor's id: a payout's `processor_transfer_id`.
    pub id: String,
    /// Its group: the payout run.
    pub group: Option<String>,
    /// The payout that it names itself (`metadata.payout_id`).
    pub payout: Option<PayoutId>,
    /// What was transferred.
    pub amount: i64,
    /// What came back of it.
    pub amount_reversed: i64,
    /// Whether all of it came back.
    pub is_whole: bool,
    /// As of when this holds.
    pub as_of: AsOf,
}

impl ReversedTransfer {
    /// Reads a transfer that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(value: &Value, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        Self::of(&Object::of(value, "")?, reading)
    }

    pub(super) fn of(object: &Object<'_>, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        let amount = object.needed_share("amount")?;
        let amount_reversed = object.share("amount_reversed")?.unwrap_or(0);
        let is_whole = object.flag("reversed")?.unwrap_or(amount_reversed >= amount);
        Ok(Self {
            id: object.needed_id("id")?,
            group: object.id("transfer_group")?,
            payout: object.text("metadata.payout_id").ok().flatten().and_then(|id| id.parse().ok()),
            amount,
            amount_reversed: if is_whole { amount } else { amount_reversed },
            is_whole,
            as_of: reading.as_of,
        })
    }
}
