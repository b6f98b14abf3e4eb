//! What a partner has in a currency, by where its lines stand.

use serde::{Deserialize, Serialize};

use super::commission::{Commission, CommissionState};

/// What a partner has in a currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Balance {
    /// Waits for the end of its hold.
    pub pending: i64,
    /// The partner's, and in no payout.
    pub earned: i64,
    /// In a payout that did not go out yet.
    pub in_payout: i64,
    /// Paid out.
    pub paid: i64,
}

/// A part of a balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BalancePart {
    /// [`Balance::pending`].
    Pending,
    /// [`Balance::earned`].
    Earned,
    /// [`Balance::in_payout`].
    InPayout,
    /// [`Balance::paid`].
    Paid,
}

impl BalancePart {
    /// In which part a line counts; what was taken back counts in none.
    #[must_use]
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
    /// One of its parts.
    pub fn part(&mut self, part: BalancePart) -> &mut i64 {
        match part {
            BalancePart::Pending => &mut self.pending,
            BalancePart::Earned => &mut self.earned,
            BalancePart::InPayout => &mut self.in_payout,
            BalancePart::Paid => &mut self.paid,
        }
    }
}
