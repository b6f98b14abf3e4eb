//! Delivery times: how long a copy of an email takes from the queue to the recipient's mail host, as a histogram.
//!
//! Bucket bounds grow by the square root of two, from 0.1 seconds to two weeks, so a percentile is exact to about 20 %.
//! Counts of buckets can be added, over hours and over nodes.

use std::time::Duration;

/// A range of delivery times. The number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryTimeBucket(u8);

impl DeliveryTimeBucket {
    /// Number of buckets. The last one also has all longer times.
    pub const COUNT: u8 = 48;
    /// Upper bound of the first bucket.
    const FIRST_MS: u64 = 100;

    pub fn containing(time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        (0..Self::COUNT).map(Self).find(|bucket| ms <= bucket.upper_ms()).unwrap_or(Self(Self::COUNT - 1))
    }

    /// The bucket with a stored number; `None` if there is none.
    pub fn from_number(number: u8) -> Option<Self> {
        (number < Self::COUNT).then_some(Self(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }

    fn upper_ms(self) -> u64 {
        let doubled = Self::FIRST_MS << (self.0 / 2);
        if self.0.is_multiple_of(2) { doubled } else { doubled * 1_414 / 1_000 }
    }

    fn lower_ms(self) -> u64 {
        self.0.checked_sub(1).map_or(0, |below| Self(below).upper_ms())
    }

    /// The geometric mean of both bounds: no time of the bucket differs from it by more than a fifth.
    #[expect(clippy::cast_precision_loss, reason = "the result is an estimate")]
    fn middle_ms(self) -> f64 {
        match self.lower_ms() {
            0 => self.upper_ms() as f64 / 2.0,
            lower => (lower as f64 * self.upper_ms() as f64).sqrt(),
        }
    }
}

/// The time in seconds within which `share` percent of the deliveries were made (nearest rank); `None` without
/// deliveries. `counts` is in ascending order.
pub fn percentile(counts: &[(DeliveryTimeBucket, u64)], share: u8) -> Option<f64> {
    let total = counts.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let rank = (u128::from(total) * u128::from(share)).div_ceil(100).max(1);
    let mut before = 0_u128;
    for (bucket, count) in counts {
        if rank <= before + u128::from(*count) {
            return Some(bucket.middle_ms().round() / 1_000.0);
        }
        before += u128::from(*count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(ms: u64) -> DeliveryTimeBucket {
        DeliveryTimeBucket::containing(Duration::from_millis(ms))
    }

    #[test]
    fn buckets_cover_all_times_without_gaps() {
        assert_eq!((bucket(0).number(), bucket(100).number(), bucket(101).number()), (0, 0, 1));
        assert_eq!(bucket(u64::MAX).number(), DeliveryTimeBucket::COUNT - 1);
        let days = |days: u64| Duration::from_secs(days * 86_400);
        assert!(DeliveryTimeBucket::containing(days(5)) < DeliveryTimeBucket::containing(days(13)));
        let all: Vec<_> = (0..DeliveryTimeBucket::COUNT).filter_map(DeliveryTimeBucket::from_number).collect();
        assert_eq!(all.len(), 48);
        for pair in all.windows(2) {
            assert_eq!(pair[0].upper_ms(), pair[1].lower_ms());
            assert!(pair[0].upper_ms() < pair[1].upper_ms());
        }
        assert_eq!(DeliveryTimeBucket::from_number(DeliveryTimeBucket::COUNT), None);
    }

    #[test]
    fn percentiles_are_within_a_fifth_of_the_truth() {
        let mut counts = std::collections::BTreeMap::new();
        for ms in 1..=10_000 {
            *counts.entry(bucket(ms)).or_default() += 1;
        }
        let counts: Vec<_> = counts.into_iter().collect();
        for (share, truth) in [(50, 5.0), (99, 9.9)] {
            let found = percentile(&counts, share).unwrap();
            assert!((found / truth - 1.0).abs() < 0.2, "{share}: {found}");
        }
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[(bucket(90), 1)], 99), Some(0.05));
        // The slowest of a hundred does not decide the 99th percentile, the second slowest does.
        assert!(percentile(&[(bucket(90), 99), (bucket(60_000), 1)], 99).unwrap() < 0.1);
        assert!(percentile(&[(bucket(90), 98), (bucket(60_000), 2)], 99).unwrap() > 40.0);
    }
}
