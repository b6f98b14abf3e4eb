//! Counters of opens and clicks, per recipient if the token names one, otherwise per email.
//!
//! ```text
//! TrackingHit ─► [over a limit? dropped] ─► counted ─► event `email.opened` | `email.clicked`, first or not
//! ```
//!
//! People and machines are counted separately: a fetch by a machine neither sets the open time nor replaces a person's
//! first open. The counters are bounded, because any holder of a link can fetch it in a loop. Repeated fetches by the
//! same visitor within [`DEDUP_WINDOW`] count once. At most [`HITS_PER_WINDOW_MAX`] count in that time and [`HITS_MAX`]
//! in all; machines take at most half of these, so they cannot exclude a person.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cidr::client_prefix;

/// Repeated fetches of one link by one visitor within this time count once.
pub const DEDUP_WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of counted fetches within [`DEDUP_WINDOW`].
pub const HITS_PER_WINDOW_MAX: usize = 64;
/// Maximum number of counted fetches in all.
pub const HITS_MAX: u32 = 1_000;
/// Clicks on two different links within this time are attributed to a machine.
const HUMAN_CLICK_INTERVAL: Duration = Duration::from_secs(1);

/// A fetch of a pixel or link.
#[message::row::omit_empty]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackingHit {
    /// Index of the link; `None` for the pixel.
    pub link: Option<u16>,
    /// Distinguishes visitors if the token names no recipient: see [`visitor_hash`]; otherwise 0.
    #[serde(default, skip_serializing_if = "is_named")]
    pub visitor: u64,
    /// The fetch is by a machine.
    pub machine: bool,
    pub at: Timestamp,
}

/// Hashes the network and user agent of an otherwise unknown visitor (FNV-1a).
pub fn visitor_hash(ip: IpAddr, user_agent: &str) -> u64 {
    let octets = match client_prefix(ip) {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    octets
        .into_iter()
        .chain(user_agent.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Result of a counted fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedHit {
    /// The fetch is by a machine, detected also by its timing.
    pub machine: bool,
    /// The first open or click by a person, or by a machine.
    pub first: bool,
}

/// Number of fetches, with the first and last time.
#[message::row::omit_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HitCount {
    pub times: u32,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl HitCount {
    /// Returns whether nothing was counted, so that the row can omit it.
    pub fn is_zero(&self) -> bool {
        self.times == 0
    }

    fn add(&mut self, at: Timestamp) {
        self.times = self.times.saturating_add(1);
        self.first.get_or_insert(at);
        self.last = self.last.max(Some(at));
    }
}

/// Returns whether the token names the recipient, so that no visitor hash is stored.
fn is_named(visitor: &u64) -> bool {
    *visitor == 0
}

/// Open and click counters of one target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrackingCounters {
    /// Opens by people.
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    pub opened: HitCount,
    /// Clicks by people.
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    pub clicked: HitCount,
    /// Pixel fetches by machines.
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    pub machine_opened: HitCount,
    /// Link fetches by machines.
    #[serde(default, skip_serializing_if = "HitCount::is_zero")]
    pub machine_clicked: HitCount,
    /// Fetches within [`DEDUP_WINDOW`] of the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<TrackingHit>,
}

impl TrackingCounters {
    /// Counts a fetch; `None` if it does not count.
    pub fn record(&mut self, visit: &TrackingHit) -> Option<CountedHit> {
        let within = |recent: &TrackingHit, time: Duration| {
            let since = Duration::try_from(visit.at.duration_since(recent.at));
            // After the clock was set back, a past fetch appears to be in the future; it is treated as old.
            since.is_ok_and(|since| since < time)
        };
        self.recent.retain(|recent| within(recent, DEDUP_WINDOW));
        let same = |recent: &&TrackingHit| recent.visitor == visit.visitor;
        let again = self.recent.iter().filter(same).any(|recent| recent.link == visit.link);
        let hasty = visit.link.is_some()
            && self.recent.iter().filter(same).any(|recent| {
                recent.link.is_some() && recent.link != visit.link && within(recent, HUMAN_CLICK_INTERVAL)
            });
        let machine = visit.machine || hasty;
        if again || !self.has_room(machine) {
            return None;
        }
        let count = match (visit.link.is_some(), machine) {
            (false, false) => &mut self.opened,
            (true, false) => &mut self.clicked,
            (false, true) => &mut self.machine_opened,
            (true, true) => &mut self.machine_clicked,
        };
        let first = count.is_zero();
        count.add(visit.at);
        self.recent.push(TrackingHit { machine, ..*visit });
        Some(CountedHit { machine, first })
    }

    fn has_room(&self, machine: bool) -> bool {
        let machines = self.machine_opened.times.saturating_add(self.machine_clicked.times);
        let all = machines.saturating_add(self.opened.times).saturating_add(self.clicked.times);
        let recent_machines = self.recent.iter().filter(|recent| recent.machine).count();
        let for_all = all < HITS_MAX && self.recent.len() < HITS_PER_WINDOW_MAX;
        let for_machines = machines < HITS_MAX / 2 && recent_machines < HITS_PER_WINDOW_MAX / 2;
        for_all && (for_machines || !machine)
    }

    /// Time of the last open and of the last click, by people or machines.
    pub fn last(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (self.opened.last.max(self.machine_opened.last), self.clicked.last.max(self.machine_clicked.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn visit(link: Option<u16>, machine: bool, ms: i64) -> TrackingHit {
        TrackingHit { link, visitor: 0, machine, at: Timestamp::from_millisecond(ms).unwrap() }
    }

    fn counted(machine: bool, first: bool) -> Option<CountedHit> {
        Some(CountedHit { machine, first })
    }

    #[test]
    fn people_and_machines_are_counted_apart() {
        let mut tally = TrackingCounters::default();
        assert_eq!(tally.record(&visit(None, true, 0)), counted(true, true));
        assert_eq!(tally.record(&visit(None, false, 1_000)), None, "the same within a minute");
        assert_eq!(tally.record(&visit(None, false, 60_000)), counted(false, true));
        assert_eq!(tally.record(&visit(None, false, 120_000)), counted(false, false));
        assert_eq!(tally.record(&visit(Some(0), false, 121_000)), counted(false, true));
        assert_eq!(tally.record(&visit(Some(1), false, 123_000)), counted(false, false));
        assert_eq!((tally.opened.times, tally.machine_opened.times, tally.clicked.times), (2, 1, 2));
        let at = |ms| Some(Timestamp::from_millisecond(ms).unwrap());
        assert_eq!((tally.opened.first, tally.clicked.first), (at(60_000), at(121_000)));
        assert_eq!(tally.last(), (at(120_000), at(123_000)));
    }

    #[test]
    fn simultaneous_clicks_are_those_of_a_machine() {
        let mut tally = TrackingCounters::default();
        assert_eq!(tally.record(&visit(Some(0), false, 0)), counted(false, true));
        assert_eq!(tally.record(&visit(Some(1), false, 100)), counted(true, true));
        assert_eq!(tally.record(&visit(Some(2), false, 200)), counted(true, false));
        assert_eq!(tally.record(&visit(Some(3), false, 5_000)), counted(false, false));
        let another = TrackingHit { visitor: 5, ..visit(Some(4), false, 5_100) };
        assert_eq!(tally.record(&another), counted(false, false));
    }

    #[test]
    fn visitors_are_distinguished_by_address_and_agent() {
        let mut tally = TrackingCounters::default();
        let hash_of = |ip: &str| visitor_hash(ip.parse().unwrap(), "agent");
        assert_eq!(hash_of("192.0.2.1"), hash_of("::ffff:192.0.2.1"));
        assert_eq!(hash_of("2001:db8::1"), hash_of("2001:db8::2"));
        for (ip, expected) in
            [("192.0.2.1", counted(false, true)), ("192.0.2.2", counted(false, false)), ("192.0.2.1", None)]
        {
            assert_eq!(tally.record(&TrackingHit { visitor: hash_of(ip), ..visit(None, false, 0) }), expected);
        }
    }

    #[test]
    fn machines_do_not_use_up_the_entries_for_people() {
        let mut tally = TrackingCounters::default();
        let counts = |tally: &mut TrackingCounters, machine, from: i64| {
            (0..5_000).filter(|n| tally.record(&visit(None, machine, from + n * 61_000)).is_some()).count()
        };
        assert_eq!(counts(&mut tally, true, 0), 500);
        assert_eq!(counts(&mut tally, false, 1 << 40), 500);
        let mut tally = TrackingCounters::default();
        let burst = |tally: &mut TrackingCounters, machine: bool, visitors: std::ops::Range<u64>| {
            visitors.filter(|v| tally.record(&TrackingHit { visitor: *v, ..visit(None, machine, 0) }).is_some()).count()
        };
        assert_eq!(burst(&mut tally, true, 0..1_000), 32);
        assert_eq!(burst(&mut tally, false, 1_000..2_000), 32);
    }

    proptest! {
        #[test]
        fn counters_are_bounded(visits in proptest::collection::vec((any::<Option<u16>>(), any::<bool>(), 0i64..1_000_000, 0u64..50), 0..400)) {
            let mut tally = TrackingCounters::default();
            for (link, machine, ms, visitor) in visits {
                let before = tally.clone();
                let counted = tally.record(&TrackingHit { visitor, ..visit(link, machine, ms) });
                prop_assert!(tally.recent.len() <= HITS_PER_WINDOW_MAX);
                prop_assert!(counted.is_some() || tally.opened == before.opened);
            }
        }
    }
}
