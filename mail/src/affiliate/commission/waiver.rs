//! What the owner has waived for a commission by bringing it back.
//!
//! It names what was known then: the disputes, or what had been given back. Another dispute takes the commission back
//! again, and so does another refund. Whether a refund is another one is read from what the processor tells, and from
//! nothing that the ledger saw on its way: in whatever order it is told, it comes to the same.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::sale::SaleReturns;
use super::ReversalReason;

/// What does not take a commission back again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Waiver {
    /// A dispute, whatever becomes of it.
    Dispute {
        /// The processor's id.
        dispute: String,
    },
    /// What had been given back.
    Refund {
        /// So much of the sale.
        refunded: i64,
        /// As of then, by the processor's clock.
        told_at: Option<Timestamp>,
    },
    /// Any other reason.
    Reason(ReversalReason),
}

impl Waiver {
    /// Whether all that was given back of a sale was waived: it is no more than it was, and nothing tells of a time since
    /// then at which it was less than all.
    pub(super) fn covers(&self, returned: &SaleReturns) -> bool {
        let Self::Refund { refunded, told_at } = self else { return false };
        returned.refunded <= *refunded && returned.in_part_at <= *told_at
    }
}

/// Waives what a commission was taken back for, as it is by what is known of its sale.
pub(super) fn add_waiver(waived: &mut Vec<Waiver>, reason: ReversalReason, returned: &SaleReturns) {
    match reason {
        ReversalReason::Dispute => {
            let known = returned.reversing_disputes().map(|(id, _)| Waiver::Dispute { dispute: id.to_owned() });
            let new: Vec<_> = known.filter(|dispute| !waived.contains(dispute)).collect();
            waived.extend(new);
        }
        ReversalReason::Refund => {
            // What was waived before is a part of it.
            waived.retain(|waiver| !matches!(waiver, Waiver::Refund { .. }));
            waived.push(Waiver::Refund { refunded: returned.refunded, told_at: returned.told_at });
        }
        other => {
            waived.retain(|waiver| *waiver != Waiver::Reason(other));
            waived.push(Waiver::Reason(other));
        }
    }
}
