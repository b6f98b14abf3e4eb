//! Balance: a partner's commissions in one currency, summed by state.

use serde::{Deserialize, Serialize};

use super::commission::{Commission, CommissionState};

/// A partner's balance in one currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Balance {
    /// Commissions in their hold period.
    pub pending: i64,
    /// Commissions past their hold period that no payout includes.
    pub earned: i64,
    /// Commissions in a payout that is not paid yet.
    pub in_payout: i64,
    pub paid: i64,
}

/// A field of [`Balance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BalancePart {
    Pending,
    Earned,
    InPayout,
    Paid,
}

impl BalancePart {
    /// The part that a commission line counts in; `None` for a reversed line.
    pub fn of_commission(line: &Commission) -> Option<Self> {
        match line.status {
            CommissionState::Pending { .. } => Some(Self::Pending),
            CommissionState::Earned { .. } => Some(Self::Earned),
            CommissionState::InPayout { .. } => Some(Self::InPayout),
            CommissionState::Paid { .. } => Some(Self::Paid),
            CommissionState::Reversed { .. } => None,
        }
    }
}

impl Balance {
    /// Mutable access to one part.
    pub fn part(&mut self, part: BalancePart) -> &mut i64 {
        match part {
            BalancePart::Pending => &mut self.pending,
            BalancePart::Earned => &mut self.earned,
            BalancePart::InPayout => &mut self.in_payout,
            BalancePart::Paid => &mut self.paid,
        }
    }
}
