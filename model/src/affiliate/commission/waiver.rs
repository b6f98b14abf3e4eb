//! Waivers: causes of a reversal that the owner waived by reinstating a commission.
//!
//! A waiver names the disputes, or the refunded amount, that were known at that time. A new dispute or another refund
//! reverses the commission again. A refund counts as new by the processor's data alone, not by the order in which the
//! ledger received events. The result therefore does not depend on the order of events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::sale::SaleReturns;
use super::ReversalReason;

/// A cause that does not reverse the commission again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Waiver {
    /// One dispute, in any later state.
    Dispute {
        /// The dispute's id at the payment processor.
        dispute: String,
    },
    /// The refunds known at the time of the waiver.
    Refund {
        /// The refunded amount of the sale, in minor units.
        refunded: i64,
        /// Time of the processor's newest report on refunds, by its clock.
        told_at: Option<Timestamp>,
    },
    /// Any reason other than a refund or a dispute.
    Reason(ReversalReason),
}

impl Waiver {
    /// True if the waiver covers the refunds in `returned`: the amount has not grown, and no later report shows the
    /// sale as refunded only in part.
    pub(super) fn covers(&self, returned: &SaleReturns) -> bool {
        let Self::Refund { refunded, told_at } = self else { return false };
        returned.refunded <= *refunded && returned.in_part_at <= *told_at
    }
}

/// Adds a waiver for the cause of a reversal, as far as `returned` contains it.
pub(super) fn add_waiver(waived: &mut Vec<Waiver>, reason: ReversalReason, returned: &SaleReturns) {
    match reason {
        ReversalReason::Dispute => {
            let known = returned.reversing_disputes().map(|(id, _)| Waiver::Dispute { dispute: id.to_owned() });
            let new: Vec<_> = known.filter(|dispute| !waived.contains(dispute)).collect();
            waived.extend(new);
        }
        ReversalReason::Refund => {
            // The new waiver includes the amount of the former one.
            waived.retain(|waiver| !matches!(waiver, Waiver::Refund { .. }));
            waived.push(Waiver::Refund { refunded: returned.refunded, told_at: returned.told_at });
        }
        other => {
            waived.retain(|waiver| *waiver != Waiver::Reason(other));
            waived.push(Waiver::Reason(other));
        }
    }
}
