//! Refunds after the payout: how the setting of the time when they became known divides them between the program and
//! the partner.
//!
//! The setting can change. What the program absorbed stays absorbed, and what was deducted stays deducted; the new
//! setting applies to further refunds only. While the setting stays the same, the result depends on the current
//! overpaid amount alone, and so not on the order of events.

use serde::{Deserialize, Serialize};

use crate::affiliate::program::AfterPayout;

/// The parts of refunds after the payout that the partner's deductions do not show, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefundSplit {
    /// Borne by the program, because it became known while refunds were absorbed.
    pub absorbed: i64,
    /// Former deductions that failed refunds have undone while refunds were absorbed. Further refunds up to this amount
    /// are deducted again: they may have replaced the failed ones.
    pub undone: i64,
}

impl RefundSplit {
    /// True if there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Divides the overpaid amount by the setting in force. `deducted` is the sum of deductions so far. Returns the new
    /// split and the new sum. No amount is negative.
    #[must_use]
    pub fn divide(self, overpaid: i64, deducted: i64, setting: AfterPayout) -> (Self, i64) {
        match setting {
            AfterPayout::Absorb => {
                let most = deducted.saturating_add(self.undone);
                let now = overpaid.min(most);
                (Self { absorbed: overpaid.saturating_sub(now), undone: most.saturating_sub(now) }, now)
            }
            AfterPayout::Offset => {
                let now = overpaid.saturating_sub(self.absorbed).max(0);
                (Self { undone: if now == deducted { self.undone } else { 0 }, ..self }, now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies overpaid amounts one after the other.
    fn divide_each(state: (RefundSplit, i64), amounts: &[i64], setting: AfterPayout) -> (RefundSplit, i64) {
        amounts.iter().fold(state, |(split, deducted), overpaid| split.divide(*overpaid, deducted, setting))
    }

    proptest! {
        /// Between two changes of the setting only the last amount counts, and repeating it changes nothing.
        #[test]
        fn the_order_of_refunds_does_not_matter(
            former in prop::collection::vec(0_i64..1_000, 0..5), amounts in prop::collection::vec(0_i64..1_000, 1..5),
            starts_with_absorb in any::<bool>(),
        ) {
            use AfterPayout::{Absorb, Offset};
            let (first, second) = if starts_with_absorb { (Absorb, Offset) } else { (Offset, Absorb) };
            let start = (RefundSplit::default(), 0);
            let last_of = |amounts: &[i64]| amounts.last().copied().into_iter().collect::<Vec<_>>();
            let before = divide_each(start, &former, first);
            prop_assert_eq!(before, divide_each(start, &last_of(&former), first));
            let after = divide_each(before, &amounts, second);
            prop_assert_eq!(after, divide_each(before, &last_of(&amounts), second));
            prop_assert_eq!(after, divide_each(after, &last_of(&amounts), second));
            let (RefundSplit { absorbed, undone }, deducted) = after;
            let overpaid = amounts.last().copied().unwrap();
            prop_assert!(absorbed >= 0 && undone >= 0 && (0..=overpaid).contains(&deducted));
            prop_assert!(absorbed.saturating_add(deducted) >= overpaid, "all is divided");
        }

        /// A change of the setting alone changes no money.
        #[test]
        fn a_change_of_the_setting_moves_nothing(
            steps in prop::collection::vec((0_i64..1_000, any::<bool>()), 1..8), absorbs in any::<bool>(),
        ) {
            let setting = |absorbs: bool| if absorbs { AfterPayout::Absorb } else { AfterPayout::Offset };
            let mut state = (RefundSplit::default(), 0);
            for (overpaid, absorbs) in &steps {
                state = state.0.divide(*overpaid, state.1, setting(*absorbs));
            }
            let overpaid = steps.last().unwrap().0;
            prop_assert_eq!(state.0.divide(overpaid, state.1, setting(absorbs)).1, state.1);
        }
    }
}
