//! Refunds of one charge, computed from reports that may arrive late, twice, or in any order.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The refunded amount of one charge, or the amount of an invoice's credit notes, from all reports received.
///
/// Two values are stored, each from the newest report: the current amount, and the last amount that was less than
/// everything. Both depend on the set of reports alone, not on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refunds {
    newest: Option<RefundSnapshot>,
    in_part: Option<RefundSnapshot>,
}

/// The refunded amount at a time. Of reports with the same second the larger amount wins, so the derived order compares
/// `at` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RefundSnapshot {
    at: Timestamp,
    refunded: i64,
}

impl Refunds {
    /// Records a report of time `at` by the processor's clock: of a charge of `paid`, `refunded` had been returned by
    /// then.
    pub fn record(&mut self, at: Timestamp, refunded: i64, paid: i64) {
        let account = Some(RefundSnapshot { at, refunded });
        self.newest = self.newest.max(account);
        if refunded < paid {
            self.in_part = self.in_part.max(account);
        }
    }

    /// The refunded amount in minor units.
    pub fn refunded(&self) -> i64 {
        self.newest.map_or(0, |account| account.refunded)
    }

    /// The last refunded amount that was less than everything.
    pub fn in_part(&self) -> i64 {
        self.in_part.map_or(0, |account| account.refunded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_reports_does_not_matter() {
        let accounts = [(10, 300), (20, 1_000), (30, 200), (40, 1_000), (20, 999)];
        let record_all = |order: &[usize]| {
            let mut refunds = Refunds::default();
            for (second, refunded) in order.iter().filter_map(|index| accounts.get(*index)) {
                refunds.record(Timestamp::from_second(*second).unwrap(), *refunded, 1_000);
            }
            refunds
        };
        let wanted = record_all(&[0, 1, 2, 3, 4]);
        assert_eq!((wanted.refunded(), wanted.in_part()), (1_000, 200));
        for order in [[4, 3, 2, 1, 0], [3, 0, 3, 4, 2], [2, 4, 1, 3, 0]] {
            assert_eq!((record_all(&order).refunded(), record_all(&order).in_part()), (1_000, 200), "{order:?}");
        }
        assert_eq!((Refunds::default().refunded(), Refunds::default().in_part()), (0, 0));
    }
}
