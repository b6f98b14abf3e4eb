//! Refunds of one charge, by accounts that come late, twice, or in any order.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the accounts that were heard say was given back of one charge, or by the credit notes of one invoice.
///
/// Two figures are kept, each of the newest account that tells of it: the figure as it is, and as it was when last it was
/// less than all. Both depend on what was heard alone, and not on its order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refunds {
    newest: Option<RefundSnapshot>,
    in_part: Option<RefundSnapshot>,
}

/// What was given back by then. Of accounts of one second the larger figure holds, which is why the order matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RefundSnapshot {
    at: Timestamp,
    refunded: i64,
}

impl Refunds {
    /// Hears an account of `at`, by the processor's clock: of a charge of `paid` so much was given back by then.
    pub fn record(&mut self, at: Timestamp, refunded: i64, paid: i64) {
        let account = Some(RefundSnapshot { at, refunded });
        self.newest = self.newest.max(account);
        if refunded < paid {
            self.in_part = self.in_part.max(account);
        }
    }

    /// What was given back.
    #[must_use]
    pub fn refunded(&self) -> i64 {
        self.newest.map_or(0, |account| account.refunded)
    }

    /// What had been given back when last it was less than all.
    #[must_use]
    pub fn in_part(&self) -> i64 {
        self.in_part.map_or(0, |account| account.refunded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_accounts_does_not_matter() {
        let accounts = [(10, 300), (20, 1_000), (30, 200), (40, 1_000), (20, 999)];
        let heard = |order: &[usize]| {
            let mut refunds = Refunds::default();
            for (second, refunded) in order.iter().filter_map(|index| accounts.get(*index)) {
                refunds.record(Timestamp::from_second(*second).unwrap(), *refunded, 1_000);
            }
            refunds
        };
        let wanted = heard(&[0, 1, 2, 3, 4]);
        assert_eq!((wanted.refunded(), wanted.in_part()), (1_000, 200));
        for order in [[4, 3, 2, 1, 0], [3, 0, 3, 4, 2], [2, 4, 1, 3, 0]] {
            assert_eq!((heard(&order).refunded(), heard(&order).in_part()), (1_000, 200), "{order:?}");
        }
        assert_eq!((Refunds::default().refunded(), Refunds::default().in_part()), (0, 0));
    }
}
