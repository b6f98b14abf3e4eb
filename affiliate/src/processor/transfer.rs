//! Transfer: the response to a request for one, and its reversal (`transfer.reversed`).

use model::id::PayoutId;

use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject, json};
use super::state_version::StateVersion;

/// Fields of the response to a transfer request; invalid ones are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferResponseBody {
    pub id: Option<String>,
    /// Type of the error, e.g. `idempotency_error`.
    pub kind: Option<String>,
    /// Code of the error, e.g. `balance_insufficient`.
    pub code: Option<String>,
    /// Message of the error.
    pub message: Option<String>,
}

impl TransferResponseBody {
    /// Parses a response; returns no fields if it is not a JSON object.
    pub fn read(body: &[u8]) -> Self {
        let Ok(answer) = json(body).and_then(|text| ProcessorJsonObject::parse(text, "")) else {
            return Self::default();
        };
        let text = |path| answer.text(path).ok().flatten().map(std::borrow::Cow::into_owned);
        Self {
            id: answer.id("id").ok().flatten(),
            kind: text("error.type"),
            code: text("error.code"),
            message: text("error.message"),
        }
    }
}

/// A reversed transfer; all fields are state, and `amount_reversed` is the total so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversedTransfer {
    /// The processor's id, stored as a payout's `processor_transfer_id`.
    pub id: String,
    /// `transfer_group`: the payout run.
    pub group: Option<String>,
    /// From `metadata.payout_id`.
    pub payout: Option<PayoutId>,
    /// In minor units.
    pub amount: i64,
    /// Total reversed so far, in minor units.
    pub amount_reversed: i64,
    /// True if the whole amount was reversed.
    pub is_whole: bool,
    pub as_of: StateVersion,
}

impl StripeObject for ReversedTransfer {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
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
