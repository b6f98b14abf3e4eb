//! Refunds, one by one, as `refund.*` and `charge.refund.updated` tell; and what was refunded of a charge, by all that
//! is known of it.

use std::cmp::Ordering;

use jiff::Timestamp;
use mail::affiliate::money::Currency;
use serde::{Deserialize, Serialize};

use super::as_of::StateVersion;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// One refund. Its status is state; its amount never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// The processor's id.
    pub id: String,
    /// The charge.
    pub charge: Option<String>,
    /// The payment intent.
    pub payment_intent: Option<String>,
    /// How much.
    pub amount: i64,
    /// The currency.
    pub currency: Option<Currency>,
    /// Whether the money goes back, or may: pending, wanting something of the customer, succeeded. It does not, after all,
    /// when it failed or was canceled.
    pub is_live: bool,
    /// When it was made, where that is said.
    pub created_at: Option<Timestamp>,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl Refund {
    /// Reads a refund that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let is_live = !matches!(object.text("status")?.as_deref(), Some("failed" | "canceled"));
        Ok(Self {
            id: object.required_id("id")?,
            charge: object.id("charge")?,
            payment_intent: object.first_id(&["payment_intent", "charge.payment_intent"])?,
            amount: object.required_non_negative_amount("amount")?,
            currency: object.currency("currency")?,
            is_live,
            created_at: object.time("created")?,
            as_of: if is_live { reading.as_of } else { reading.as_of.ended() },
        })
    }

    /// What is kept of it to know what was refunded.
    #[must_use]
    pub fn figure(&self) -> RefundFigure {
        let Self { as_of, created_at, amount, is_live, .. } = *self;
        RefundFigure { as_of, created_at, amount, is_live }
    }
}

/// What a charge says of its refunds. The greater is the newer one: of one second, the one that says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeFigure {
    /// As of when.
    pub as_of: StateVersion,
    /// How much was refunded so far.
    pub refunded: i64,
}

impl Ord for ChargeFigure {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |figure: &Self| (figure.as_of.at, figure.refunded, figure.as_of.step);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for ChargeFigure {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What one refund says. The greater is the newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefundFigure {
    /// As of when.
    pub as_of: StateVersion,
    /// When it was made, where that is said.
    pub created_at: Option<Timestamp>,
    /// How much.
    pub amount: i64,
    /// Whether the money goes back.
    pub is_live: bool,
}

impl RefundFigure {
    /// When it was made; where nobody says so, when it was told of.
    #[must_use]
    pub fn made_at(&self) -> Timestamp {
        self.created_at.unwrap_or(self.as_of.at)
    }

    /// The newer of two that are told of one refund. That it says not when it was made does not hide that the other does.
    #[must_use]
    pub fn newer(self, other: Self) -> Self {
        let (newer, older) = if self < other { (other, self) } else { (self, other) };
        Self { created_at: newer.created_at.or(older.created_at), ..newer }
    }
}

/// What was refunded of a charge, by the newest that the charge says and the newest of each of its refunds.
///
/// Some endpoints are told of charges, some of refunds, some of both, in any order. A charge counts what happened before
/// it was told of, so its refunds add to it what is newer: those made since, less those that failed since. What happened
/// in the charge's own second it may count or not: the more that is known to be refunded stands. So it
/// is of a refund that does not say when it was made: the charge may count it.
#[must_use]
pub fn refunded(charge: Option<ChargeFigure>, refunds: &[RefundFigure]) -> i64 {
    let live = refunds.iter().filter(|refund| refund.is_live);
    let known: i128 = live.clone().map(|refund| i128::from(refund.amount)).sum();
    let Some(charge) = charge else { return clamped(known) };
    let told_at = charge.as_of.at;
    let since = refunds.iter().filter(|refund| refund.as_of > charge.as_of).map(|refund| {
        let amount = i128::from(refund.amount);
        match (refund.is_live, refund.created_at.is_some_and(|created| created > told_at)) {
            (true, true) => amount,
            (false, false) => -amount,
            _ => 0,
        }
    });
    let is_of_unknown_time = |refund: &RefundFigure| refund.created_at.is_none() && refund.as_of > charge.as_of;
    let mut refunded = i128::from(charge.refunded) + since.sum::<i128>();
    if live.clone().any(|refund| refund.as_of.at == told_at || is_of_unknown_time(refund)) {
        refunded = refunded.max(known);
    }
    clamped(refunded)
}

fn clamped(amount: i128) -> i64 {
    i64::try_from(amount.max(0)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn charge(at: i64, refunded: i64) -> ChargeFigure {
        ChargeFigure { as_of: StateVersion::event("charge.refunded", second(at)), refunded }
    }

    fn refund(kind: &str, at: i64, created: i64, amount: i64) -> RefundFigure {
        let is_live = kind != "refund.failed";
        let created_at = Some(second(created));
        RefundFigure { as_of: StateVersion::event(kind, second(at)), created_at, amount, is_live }
    }

    fn undated(kind: &str, at: i64, amount: i64) -> RefundFigure {
        RefundFigure { created_at: None, ..refund(kind, at, 0, amount) }
    }

    #[test]
    fn when_it_was_made_is_known_by_whoever_says_so() {
        let (dated, undated) = (refund("refund.created", 10, 10, 300), undated("refund.updated", 20, 300));
        for newer in [dated.newer(undated), undated.newer(dated)] {
            assert_eq!((newer.as_of.at, newer.created_at), (second(20), Some(second(10))));
        }
    }

    #[test]
    fn whoever_tells_it_comes_to_the_same() {
        let first = refund("refund.created", 10, 10, 300);
        let second = refund("refund.created", 20, 20, 200);
        let failed = refund("refund.failed", 30, 20, 200);
        for (charge, refunds, expected) in [
            (None, vec![], 0),
            (None, vec![first, second], 500),
            (None, vec![first, failed], 300),
            (Some(charge(20, 500)), vec![], 500),
            (Some(charge(20, 500)), vec![first], 500),
            (Some(charge(20, 500)), vec![first, second], 500),
            // The charge is behind, or its refunds are.
            (Some(charge(10, 300)), vec![first, second], 500),
            (Some(charge(10, 300)), vec![second], 500),
            (Some(charge(20, 500)), vec![first, failed], 300),
            (Some(charge(20, 500)), vec![failed], 300),
            (Some(charge(40, 300)), vec![first, failed], 300),
            (Some(charge(40, 300)), vec![first, second], 300),
            // Refunded in the second in which it was charged, or told of.
            (Some(charge(10, 0)), vec![first], 300),
            (Some(charge(10, 300)), vec![first, refund("refund.created", 10, 10, 200)], 500),
            (Some(charge(20, 500)), vec![first, refund("refund.failed", 20, 20, 200)], 300),
            // Nobody says when it was made: it counts once, whether the charge counts it or not.
            (Some(charge(10, 300)), vec![undated("refund.created", 20, 300)], 300),
            (Some(charge(10, 0)), vec![undated("refund.created", 20, 300)], 300),
            (Some(charge(10, 300)), vec![first, undated("refund.created", 20, 200)], 500),
            (Some(charge(20, 500)), vec![first, undated("refund.failed", 30, 200)], 300),
            (Some(charge(40, 300)), vec![undated("refund.created", 20, 500)], 300),
            (None, vec![undated("refund.created", 20, 300)], 300),
            // Nonsense is no panic.
            (Some(charge(0, i64::MAX)), vec![first], i64::MAX),
            (Some(charge(20, 100)), vec![failed], 0),
        ] {
            assert_eq!(refunded(charge, &refunds), expected, "{charge:?} {refunds:?}");
        }
    }

    #[test]
    fn of_one_second_the_charge_that_says_more_is_newer() {
        let fetched = ChargeFigure { as_of: StateVersion::fetched(second(20)), refunded: 500 };
        assert!(charge(20, 300) < fetched && fetched < charge(20, 600) && charge(20, 600) < charge(21, 0));
    }
}
