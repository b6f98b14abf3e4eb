//! Refunds, from `refund.*` and `charge.refund.updated`; and the refunded total of a charge from all that is known.

use std::cmp::Ordering;

use jiff::Timestamp;
use model::affiliate::money::Currency;
use serde::{Deserialize, Serialize};

use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
use super::state_version::StateVersion;

/// A refund. Its status is state; its amount never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    pub id: String,
    pub charge: Option<String>,
    pub payment_intent: Option<String>,
    /// In minor units.
    pub amount: i64,
    pub currency: Option<Currency>,
    /// True if the money is or may be returned (pending, requires action, succeeded); false if the refund failed or was
    /// canceled.
    pub is_live: bool,
    pub created_at: Option<Timestamp>,
    pub as_of: StateVersion,
}

impl StripeObject for Refund {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
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
}

impl Refund {
    /// Returns the fields of the stored state.
    pub fn figure(&self) -> RefundFigure {
        let Self { as_of, created_at, amount, is_live, .. } = *self;
        RefundFigure { as_of, created_at, amount, is_live }
    }
}

/// Refunded total that a charge reports. The greater is newer: within a second, the higher total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeFigure {
    pub as_of: StateVersion,
    /// Total refunded so far, in minor units.
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

/// State of one refund. The greater is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RefundFigure {
    pub as_of: StateVersion,
    pub created_at: Option<Timestamp>,
    /// In minor units.
    pub amount: i64,
    /// True if the money is or may be returned.
    pub is_live: bool,
}

impl RefundFigure {
    /// Returns the creation time, or the version's time if it is unknown.
    pub fn made_at(&self) -> Timestamp {
        self.created_at.unwrap_or(self.as_of.at)
    }

    /// Returns the newer of two states of one refund, with the creation time from either.
    pub fn newer(self, other: Self) -> Self {
        let (newer, older) = if self < other { (other, self) } else { (self, other) };
        Self { created_at: newer.created_at.or(older.created_at), ..newer }
    }
}

/// Computes the refunded total of a charge, from the newest total that it reports and the newest state of each refund.
///
/// Some endpoints receive charges, some refunds, some both, in any order. A charge's total includes what happened
/// before it was reported. So newer refunds are added: those created since, minus those that failed since. Within the
/// charge's own second the total may or may not include a refund: then the higher known amount is used. The same
/// applies to a refund without a creation time.
pub fn refunded(charge: Option<ChargeFigure>, refunds: &[RefundFigure]) -> i64 {
    let live = refunds.iter().filter(|refund| refund.is_live);
    let refunds_total: i128 = live.clone().map(|refund| i128::from(refund.amount)).sum();
    let Some(charge) = charge else { return clamped(refunds_total) };
    let charged_at = charge.as_of.at;
    let since = refunds.iter().filter(|refund| refund.as_of > charge.as_of).map(|refund| {
        let amount = i128::from(refund.amount);
        match (refund.is_live, refund.created_at.is_some_and(|created| created > charged_at)) {
            (true, true) => amount,
            (false, false) => -amount,
            _ => 0,
        }
    });
    let lacks_time = |refund: &RefundFigure| refund.created_at.is_none() && refund.as_of > charge.as_of;
    let mut refunded = i128::from(charge.refunded) + since.sum::<i128>();
    if live.clone().any(|refund| refund.as_of.at == charged_at || lacks_time(refund)) {
        refunded = refunded.max(refunds_total);
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
    fn a_known_creation_time_is_merged() {
        let (dated, undated) = (refund("refund.created", 10, 10, 300), undated("refund.updated", 20, 300));
        for newer in [dated.newer(undated), undated.newer(dated)] {
            assert_eq!((newer.as_of.at, newer.created_at), (second(20), Some(second(10))));
        }
    }

    #[test]
    fn charge_totals_and_refunds_give_the_same_sum() {
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
            // The charge is older than its refunds, or newer.
            (Some(charge(10, 300)), vec![first, second], 500),
            (Some(charge(10, 300)), vec![second], 500),
            (Some(charge(20, 500)), vec![first, failed], 300),
            (Some(charge(20, 500)), vec![failed], 300),
            (Some(charge(40, 300)), vec![first, failed], 300),
            (Some(charge(40, 300)), vec![first, second], 300),
            // Refunded in the second of the charge or of its report.
            (Some(charge(10, 0)), vec![first], 300),
            (Some(charge(10, 300)), vec![first, refund("refund.created", 10, 10, 200)], 500),
            (Some(charge(20, 500)), vec![first, refund("refund.failed", 20, 20, 200)], 300),
            // Unknown creation time: counted once, whether or not the charge includes it.
            (Some(charge(10, 300)), vec![undated("refund.created", 20, 300)], 300),
            (Some(charge(10, 0)), vec![undated("refund.created", 20, 300)], 300),
            (Some(charge(10, 300)), vec![first, undated("refund.created", 20, 200)], 500),
            (Some(charge(20, 500)), vec![first, undated("refund.failed", 30, 200)], 300),
            (Some(charge(40, 300)), vec![undated("refund.created", 20, 500)], 300),
            (None, vec![undated("refund.created", 20, 300)], 300),
            // Implausible values must not panic.
            (Some(charge(0, i64::MAX)), vec![first], i64::MAX),
            (Some(charge(20, 100)), vec![failed], 0),
        ] {
            assert_eq!(refunded(charge, &refunds), expected, "{charge:?} {refunds:?}");
        }
    }

    #[test]
    fn within_one_second_the_higher_total_is_newer() {
        let fetched = ChargeFigure { as_of: StateVersion::fetched(second(20)), refunded: 500 };
        assert!(charge(20, 300) < fetched && fetched < charge(20, 600) && charge(20, 600) < charge(21, 0));
    }
}
