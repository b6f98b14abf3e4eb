//! Request rate limit of an account: a token bucket, kept as one number by the generic cell rate algorithm (GCRA, a
//! leaky bucket). Pure; time is an argument.
//!
//! Each request spends its interval (one second divided by the rate), and time refills it. The spent amount stays
//! within [`TOLERANCE_NS`]. So a burst of two seconds' worth is allowed, and no more than the rate over any longer
//! time.
//!
//! The status reported to clients ([`RateLimitStatus`]) is exact: `remaining` requests may be made at once, and one
//! more after `reset_s`. `remaining` never exceeds `limit`; the rest of the burst serves clients that do not read it.

const SECOND_NS: u64 = 1_000_000_000;
/// Burst tolerance: two seconds' worth.
const TOLERANCE_NS: u64 = 2 * SECOND_NS;

/// Request rate of an account, divided by the number of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    per_second: u32,
    nodes: u32,
    interval_ns: u64,
}

impl RequestRate {
    /// Creates the share of one of `nodes` in a rate of `per_second`, so that all nodes together keep to it. The burst
    /// is twice the share, at least one request per node.
    pub fn new(per_second: u32, nodes: u32) -> Self {
        let (per_second, nodes) = (per_second.max(1), nodes.max(1));
        let interval_ns = (SECOND_NS * u64::from(nodes)).div_ceil(u64::from(per_second));
        Self { per_second, nodes, interval_ns }
    }
}

/// Rate limit status after a request, as in the `ratelimit-*` header fields (draft-ietf-httpapi-ratelimit-headers-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// Requests per second.
    pub limit: u32,
    /// Requests that may be made now, up to `limit`. Each node reports for all nodes and assumes that they received as
    /// many requests as it did.
    pub remaining: u32,
    /// Whole seconds after which one more request may be made than now.
    pub reset_s: u32,
}

/// State of an account's bucket: the time, in nanoseconds of any clock, at which it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateBucket {
    empty_at_ns: u64,
}

impl RateBucket {
    /// Counts one request now, unless it exceeds the rate.
    ///
    /// # Errors
    /// The status if the request exceeds the rate; nothing is spent. After `reset_s` a request is allowed.
    pub fn try_take(&mut self, rate: RequestRate, now_ns: u64) -> Result<RateLimitStatus, RateLimitStatus> {
        let tolerance_ns = rate.tolerance_ns();
        // More than the tolerance means that the clock went back or the rate was changed: cap it.
        let spent_ns = self.empty_at_ns.saturating_sub(now_ns).min(tolerance_ns);
        let wanted_ns = spent_ns + rate.interval_ns;
        let granted = wanted_ns <= tolerance_ns;
        let spent_ns = if granted { wanted_ns } else { spent_ns };
        self.empty_at_ns = now_ns.saturating_add(spent_ns);
        let standing = rate.status(spent_ns);
        if granted { Ok(standing) } else { Err(standing) }
    }

    /// True if the bucket is empty and need not be stored.
    pub fn is_empty(self, now_ns: u64) -> bool {
        self.empty_at_ns <= now_ns
    }
}

impl RequestRate {
    /// Burst tolerance, at least one request.
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
    fn a_burst_of_two_seconds_and_then_the_rate() {
        let (rate, mut bucket) = (RequestRate::new(10, 1), RateBucket::default());
        for left in (0..20).rev() {
            let status = bucket.try_take(rate, START_NS).unwrap();
            assert_eq!(status, RateLimitStatus { limit: 10, remaining: left.min(10), reset_s: 1 });
        }
        let refused = bucket.try_take(rate, START_NS).unwrap_err();
        assert_eq!(refused, RateLimitStatus { limit: 10, remaining: 0, reset_s: 1 });
        assert!(bucket.try_take(rate, START_NS + SECOND_NS / 10 - 1).is_err());
        assert!(bucket.try_take(rate, START_NS + SECOND_NS / 10).is_ok());
        assert!(bucket.is_empty(START_NS + 3 * SECOND_NS) && !bucket.is_empty(START_NS));
    }

    /// A node of three with a request every three seconds reports the whole wait.
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
        /// Over any time span no more is granted than the burst plus the refill, and a rejection's `reset_s` is right.
        #[test]
        fn the_rate_and_the_reported_reset_hold(
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
                    let refilled = u128::from(end - begin) * u128::from(per_second) / u128::from(SECOND_NS);
                    let bound = u128::from((2 * per_second).max(nodes)) + refilled + u128::from(nodes);
                    prop_assert!((m - n) as u128 <= bound, "{} in {} ns", m - n, end - begin);
                }
            }
        }

        /// A client that keeps to the rate is never rejected.
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
