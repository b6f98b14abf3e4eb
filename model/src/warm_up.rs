//! IP warm-up: a new source address sends little mail to a provider at first, and more each day.
//!
//! [`WarmUpCurve`] gives the messages per day. They are spread over the day by the generic cell rate algorithm, with a
//! burst of one hour's share ([`WarmUpCredit`]). A credit without history permits one message, so each restart adds at
//! most one.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const HOUR_NS: u64 = 3_600 * 1_000_000_000;
const DAY_NS: u64 = 24 * HOUR_NS;

/// Messages per day from one address to one provider, from the first day on. After the last day the address is warm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmUpCurve(Vec<u32>);

impl Default for WarmUpCurve {
    /// From 50 to 50,000 in three weeks, doubling every other day. This follows the advice of large providers to bulk
    /// senders: start small, and grow steadily while there are no complaints.
    fn default() -> Self {
        Self(vec![
            50, 70, 100, 140, 200, 280, 400, 560, 800, 1_100, 1_600, 2_200, 3_200, 4_500, 6_400, 9_000, 12_800, 18_000,
            25_600, 36_000, 51_200,
        ])
    }
}

/// A curve is empty, or has a day without messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must name at least one message for each day")]
pub struct WarmUpCurveError;

impl TryFrom<Vec<u32>> for WarmUpCurve {
    type Error = WarmUpCurveError;

    fn try_from(days: Vec<u32>) -> Result<Self, WarmUpCurveError> {
        if days.is_empty() || days.contains(&0) { Err(WarmUpCurveError) } else { Ok(Self(days)) }
    }
}

impl WarmUpCurve {
    /// Messages per day from one address to one provider, from the first day on.
    pub fn per_day(&self) -> &[u32] {
        &self.0
    }

    pub fn days(&self) -> usize {
        self.0.len()
    }

    /// Day of a warm-up that began on `since` (UTC), from 1; `None` after the last day. Before the start it is day 1.
    pub fn day(&self, since: Date, now: Timestamp) -> Option<usize> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let past = since.until(today).map_or(0, |span| span.get_days());
        let day = usize::try_from(past).unwrap_or(0) + 1;
        (day <= self.days()).then_some(day)
    }

    /// Messages per day from one address to one provider; `None` after the last day.
    pub fn messages_per_day(&self, since: Date, now: Timestamp) -> Option<u32> {
        self.0.get(self.day(since, now)? - 1).copied()
    }
}

/// GCRA state of one address and provider: the time up to which capacity is used, in nanoseconds of any clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WarmUpCredit {
    paid_at_ns: Option<u64>,
}

impl WarmUpCredit {
    /// Earliest time of the next message at this rate; never before `now_ns`.
    pub fn next_send_at(self, per_day: u64, now_ns: u64) -> u64 {
        let Some(paid_at_ns) = self.paid_at_ns else { return now_ns };
        (paid_at_ns + interval_ns(per_day)).saturating_sub(burst_ns(per_day)).max(now_ns)
    }

    /// Takes capacity for one message.
    ///
    /// # Errors
    /// Returns the time to wait.
    pub fn acquire(&mut self, per_day: u64, now_ns: u64) -> Result<(), Duration> {
        let next_ns = self.next_send_at(per_day, now_ns);
        if next_ns > now_ns {
            return Err(Duration::from_nanos(next_ns - now_ns));
        }
        let interval_ns = interval_ns(per_day);
        // The first message uses all of the burst, so the next one waits a full interval.
        let first_ns = now_ns + burst_ns(per_day) - interval_ns;
        self.paid_at_ns = Some(self.paid_at_ns.unwrap_or(first_ns).max(now_ns) + interval_ns);
        Ok(())
    }

    /// Returns the time since which the full burst is available, 0 if no message was sent; `None` if it is not. A full
    /// credit only remembers that it was used earlier.
    pub fn full_since(self, now_ns: u64) -> Option<u64> {
        Some(self.paid_at_ns.unwrap_or(0)).filter(|paid_at_ns| *paid_at_ns <= now_ns)
    }
}

fn interval_ns(per_day: u64) -> u64 {
    DAY_NS.div_ceil(per_day.max(1))
}

/// One hour's share, and at least one message.
fn burst_ns(per_day: u64) -> u64 {
    HOUR_NS.max(interval_ns(per_day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use proptest::prelude::*;

    #[test]
    fn days_are_counted_from_the_first_until_the_end() {
        let curve = WarmUpCurve::try_from(vec![10, 20, 40]).unwrap();
        let since = date(2026, 11, 23);
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (now, day, messages) in [
            ("2026-11-20T00:00:00Z", Some(1), Some(10)),
            ("2026-11-23T00:00:00Z", Some(1), Some(10)),
            ("2026-11-23T23:59:59Z", Some(1), Some(10)),
            ("2026-11-24T00:00:00Z", Some(2), Some(20)),
            ("2026-11-25T12:00:00Z", Some(3), Some(40)),
            ("2026-11-26T00:00:00Z", None, None),
            ("2036-11-26T00:00:00Z", None, None),
        ] {
            let found = (curve.day(since, at(now)), curve.messages_per_day(since, at(now)));
            assert_eq!(found, (day, messages), "{now}");
        }
        assert_eq!(WarmUpCurve::try_from(vec![1, 0]), Err(WarmUpCurveError));
        assert_eq!(WarmUpCurve::try_from(Vec::new()), Err(WarmUpCurveError));
    }

    #[test]
    fn one_message_is_sent_immediately_and_an_hours_share_after_an_hour() {
        let (mut credit, per_day) = (WarmUpCredit::default(), 240);
        assert_eq!(credit.acquire(per_day, HOUR_NS), Ok(()));
        assert_eq!(credit.acquire(per_day, HOUR_NS), Err(Duration::from_secs(360)));
        assert_eq!(credit.next_send_at(per_day, HOUR_NS), HOUR_NS + HOUR_NS / 10);
        let later = 3 * HOUR_NS;
        let taken = (0..100).take_while(|_| credit.acquire(per_day, later).is_ok()).count();
        assert_eq!(taken, 10);
        assert_eq!((credit.full_since(later), credit.full_since(later + HOUR_NS)), (None, Some(later + HOUR_NS)));
        assert_eq!(WarmUpCredit::default().full_since(later), Some(0));
    }

    proptest! {
        /// For any arrival times and any number of restarts, a day has at most its messages, one burst, and one message
        /// per restart.
        #[test]
        fn no_day_exceeds_its_limit(
            per_day in 1u64..3_000,
            waits in prop::collection::vec((0u64..HOUR_NS, 1usize..100, prop::bool::weighted(0.02)), 1..100),
        ) {
            let (mut credit, mut now_ns, mut sent) = (WarmUpCredit::default(), 5 * DAY_NS, Vec::new());
            let mut window_starts = vec![now_ns];
            for (wait_ns, count, begins_anew) in waits {
                now_ns += wait_ns;
                if begins_anew {
                    credit = WarmUpCredit::default();
                    window_starts.push(now_ns);
                }
                for _ in 0..count {
                    let next_ns = credit.next_send_at(per_day, now_ns);
                    prop_assert_eq!(credit.acquire(per_day, now_ns).is_ok(), next_ns == now_ns);
                    if next_ns == now_ns {
                        sent.push(now_ns);
                    }
                }
            }
            let within = |times: &[u64], from_ns: u64| {
                let before = |until_ns: u64| times.partition_point(|at| *at < until_ns);
                (before(from_ns + DAY_NS) - before(from_ns)) as u64
            };
            for from_ns in sent.iter().copied() {
                let sent_max = per_day + per_day.div_ceil(24) + 1 + within(&window_starts, from_ns);
                prop_assert!(within(&sent, from_ns) <= sent_max, "more than {sent_max}");
            }
        }
    }
}
