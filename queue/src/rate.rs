//! How many requests an account may make: a leaky bucket, by the generic cell rate algorithm.
//!
//! Each request adds its interval (one second divided by the requests of a second) to what is spent, and
//! time takes it away again. What is spent stays within [`TOLERANCE_NS`]: so twice a second's requests may
//! come at once, and over any longer time no more than the rate. A pure rule: time is an argument.
//!
//! What clients are told ([`Standing`]) holds: as many requests as `remaining` says may be made at once, and
//! after `reset_s` there may be one more. `remaining` is never more than `limit`; what a burst may take beyond
//! that is there for who does not count.

const SECOND_NS: u64 = 1_000_000_000;
/// What may be spent at once: two seconds' worth.
const TOLERANCE_NS: u64 = 2 * SECOND_NS;

/// A rate: requests a second, of which a node gives its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    per_second: u32,
    nodes: u32,
    interval_ns: u64,
}

impl RequestRate {
    /// What one of `nodes` gives of so many requests a second, so that all together keep to them: at once
    /// twice as many, but at least one a node.
    #[must_use]
    pub fn new(per_second: u32, nodes: u32) -> Self {
        let (per_second, nodes) = (per_second.max(1), nodes.max(1));
        let interval_ns = (SECOND_NS * u64::from(nodes)).div_ceil(u64::from(per_second));
        Self { per_second, nodes, interval_ns }
    }
}

/// Where an account stands after a request, in the words of the `ratelimit-*` header fields
/// (draft-ietf-httpapi-ratelimit-headers-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// Requests a second.
    pub limit: u32,
    /// How many may be made now, up to `limit`. Of several nodes each tells for all of them, as if they all
    /// had been asked as much as it.
    pub remaining: u32,
    /// After how many whole seconds at the latest one more may be made than may now.
    pub reset_s: u32,
}

/// What an account has spent: the moment, in nanoseconds of any clock, at which it has nothing spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateBucket {
    empty_at_ns: u64,
}

impl RateBucket {
    /// One request, now: it may be made, or (`Err`) it may not and nothing is spent for it.
    ///
    /// # Errors
    /// Where the account stands: after `reset_s` a request may be made.
    pub fn try_take(&mut self, rate: RequestRate, now_ns: u64) -> Result<RateLimitStatus, RateLimitStatus> {
        let tolerance_ns = rate.tolerance_ns();
        // More than the tolerance cannot be spent: the clock went back, or the rate was another.
        let spent_ns = self.empty_at_ns.saturating_sub(now_ns).min(tolerance_ns);
        let wanted_ns = spent_ns + rate.interval_ns;
        let granted = wanted_ns <= tolerance_ns;
        let spent_ns = if granted { wanted_ns } else { spent_ns };
        self.empty_at_ns = now_ns.saturating_add(spent_ns);
        let standing = rate.status(spent_ns);
        if granted { Ok(standing) } else { Err(standing) }
    }

    /// Whether nothing is spent: a bucket that needs not be kept.
    #[must_use]
    pub fn is_empty(self, now_ns: u64) -> bool {
        self.empty_at_ns <= now_ns
    }
}

impl RequestRate {
    /// What may be spent at once: one request at least.
    fn tolerance_ns(self) -> u64 {
        TOLERANCE_NS.max(self.interval_ns)
    }

    fn status(self, spent_ns: u64) -> RateLimitStatus {
        let left_ns = self.tolerance_ns().saturating_sub(spent_ns);
        let requests = left_ns / self.interval_ns;
        let remaining = requests.saturating_mul(u64::from(self.nodes)).min(u64::from(self.per_second));
        let wait_ns = self.interval_ns - left_ns % self.interval_ns;
        RateLimitStatus {
            limit: self.per_second,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            reset_s: u32::try_from(wait_ns.div_ceil(SECOND_NS)).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START_NS: u64 = 1_000 * SECOND_NS;

    #[test]
    fn twice_a_second_at_once_then_the_rate() {
        let (rate, mut bucket) = (RequestRate::new(10, 1), RateBucket::default());
        for left in (0..20).rev() {
            let told = bucket.try_take(rate, START_NS).unwrap();
            assert_eq!(told, RateLimitStatus { limit: 10, remaining: left.min(10), reset_s: 1 });
        }
        let refused = bucket.try_take(rate, START_NS).unwrap_err();
        assert_eq!(refused, RateLimitStatus { limit: 10, remaining: 0, reset_s: 1 });
        assert!(bucket.try_take(rate, START_NS + SECOND_NS / 10 - 1).is_err());
        assert!(bucket.try_take(rate, START_NS + SECOND_NS / 10).is_ok());
        assert!(bucket.is_empty(START_NS + 3 * SECOND_NS) && !bucket.is_empty(START_NS));
    }

    /// A request every three seconds of one of three nodes: the wait is told as it is.
    #[test]
    fn a_wait_is_rounded_up_to_a_second() {
        let (rate, mut bucket) = (RequestRate::new(1, 3), RateBucket::default());
        assert_eq!(bucket.try_take(rate, START_NS).unwrap(), RateLimitStatus { limit: 1, remaining: 0, reset_s: 3 });
        for (later_ns, reset_s) in [(1, 3), (SECOND_NS, 2), (2 * SECOND_NS - 1, 2), (3 * SECOND_NS - 1, 1)] {
            let refused = bucket.try_take(rate, START_NS + later_ns).unwrap_err();
            assert_eq!(refused, RateLimitStatus { limit: 1, remaining: 0, reset_s });
        }
        assert!(bucket.try_take(rate, START_NS + 3 * SECOND_NS).is_ok());
    }

    #[test]
    fn a_clock_that_goes_back_costs_two_seconds_at_most() {
        let (rate, mut bucket) = (RequestRate::new(10, 1), RateBucket::default());
        assert!(bucket.try_take(rate, START_NS * 1_000).is_ok());
        assert!(bucket.try_take(rate, START_NS).is_err());
        assert!(bucket.try_take(rate, START_NS + 2 * SECOND_NS).is_ok());
    }

    proptest! {
        /// Over any stretch of time no more is granted than the burst and what the time brings; and a
        /// refusal's advice holds.
        #[test]
        fn the_rate_holds_and_the_advice_too(
            per_second in 1u32..600, nodes in 1u32..5, pauses in prop::collection::vec(0u64..400_000_000, 1..300),
        ) {
            let rate = RequestRate::new(per_second, nodes);
            let mut buckets = vec![RateBucket::default(); nodes as usize];
            let (mut now_ns, mut granted) = (START_NS, Vec::new());
            for pause_ns in pauses {
                now_ns += pause_ns;
                for bucket in &mut buckets {
                    match bucket.try_take(rate, now_ns) {
                        Ok(standing) => {
                            prop_assert!(standing.remaining <= standing.limit);
                            prop_assert_eq!(standing.remaining > 0, bucket.clone().try_take(rate, now_ns).is_ok());
                            granted.push(now_ns);
                        }
                        Err(standing) => {
                            prop_assert_eq!(standing.remaining, 0);
                            let advised_ns = now_ns + u64::from(standing.reset_s) * SECOND_NS;
                            prop_assert!(bucket.clone().try_take(rate, advised_ns).is_ok());
                            prop_assert!(bucket.clone().try_take(rate, advised_ns - SECOND_NS).is_err());
                        }
                    }
                }
            }
            for (n, begin) in granted.iter().enumerate() {
                for (m, end) in granted.iter().enumerate().skip(n) {
                    let brought = u128::from(end - begin) * u128::from(per_second) / u128::from(SECOND_NS);
                    let bound = u128::from((2 * per_second).max(nodes)) + brought + u128::from(nodes);
                    prop_assert!((m - n) as u128 <= bound, "{} in {} ns", m - n, end - begin);
                }
            }
        }

        /// Whoever heeds the rate is never refused.
        #[test]
        fn the_rate_itself_is_always_granted(per_second in 1u32..600, requests in 1u32..200) {
            let (rate, mut bucket) = (RequestRate::new(per_second, 1), RateBucket::default());
            let interval_ns = SECOND_NS.div_ceil(u64::from(per_second));
            for n in 0..requests {
                prop_assert!(bucket.try_take(rate, START_NS + u64::from(n) * interval_ns).is_ok());
            }
        }
    }
}
