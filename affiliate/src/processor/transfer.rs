//! A transfer that was reversed, as `transfer.reversed` tells: a payout came back.

use mail::id::PayoutId;

use super::as_of::StateVersion;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext, json};

/// What is answered to an order of a transfer, as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferResponseBody {
    /// The transfer's id.
    pub id: Option<String>,
    /// The error's type: `idempotency_error`.
    pub kind: Option<String>,
    /// The error's code: `balance_insufficient`.
    pub code: Option<String>,
    /// What the error says.
    pub message: Option<String>,
}

impl TransferResponseBody {
    /// Reads an answer; of one that is no JSON there is nothing.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let Ok(answer) = json(body).and_then(|text| ProcessorJsonObject::of(text, "")) else {
            return Self::default();
        };
        let text = |place| answer.text(place).ok().flatten().map(std::borrow::Cow::into_owned);
        Self {
            id: answer.id("id").ok().flatten(),
            kind: text("error.type"),
            code: text("error.code"),
            message: text("error.message"),
        }
    }
}

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
    pub as_of: StateVersion,
}

impl ReversedTransfer {
    /// Reads a transfer that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let amount = object.required_non_negative_amount("amount")?;
        let amount_reversed = object.non_negative_amount("amount_reversed")?.unwrap_or(0);
        let is_whole = object.flag("reversed")?.unwrap_or(amount_reversed >= amount);
        Ok(Self {
            id: object.required_id("id")?,
            group: object.id("transfer_group")?,
            payout: object.text("metadata.payout_id").ok().flatten().and_then(|id| id.parse().ok()),
            amount,
            amount_reversed: if is_whole { amount } else { amount_reversed },
            is_whole,
            as_of: reading.as_of,
        })
    }
}
