//! How often somebody may try to sign in: counted by address and by email, in bounded memory.
//!
//! A count begins with the first try and is forgotten when its time is over. When there is no room for
//! another count, the oldest goes: who makes room so for more tries needs very many addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mail::network::counted;

use crate::problem::{Code, Problem};

/// How long tries are counted.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Tries from one address (one /64 of IPv6).
const PER_ADDRESS_MAX: u32 = 50;
/// Tries for one email.
const PER_EMAIL_MAX: u32 = 10;
/// Links mailed to one email.
const LINKS_MAX: u32 = 5;
/// Counts in memory.
const COUNTS_MAX: usize = 50_000;

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Address(Option<IpAddr>),
    Email(String),
    Links(String),
}

/// Counts tries.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<Counted, (u32, Timestamp)>>);

impl Throttle {
    /// A try to sign in with a password.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn password(&self, from: Option<IpAddr>, email: &str, now: Timestamp) -> Result<(), Problem> {
        self.count(Counted::Address(from.map(counted)), PER_ADDRESS_MAX, now)?;
        self.count(Counted::Email(email.to_lowercase()), PER_EMAIL_MAX, now)
    }

    /// The password was right: the tries before do not count.
    pub fn right(&self, email: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.remove(&Counted::Email(email.to_lowercase()));
    }

    /// A link is asked for.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn link(&self, from: Option<IpAddr>, email: &str, now: Timestamp) -> Result<(), Problem> {
        self.count(Counted::Address(from.map(counted)), PER_ADDRESS_MAX, now)?;
        self.count(Counted::Links(email.to_lowercase()), LINKS_MAX, now)
    }

    /// A link is used, or something that is none.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn token(&self, from: Option<IpAddr>, now: Timestamp) -> Result<(), Problem> {
        self.count(Counted::Address(from.map(counted)), PER_ADDRESS_MAX, now)
    }

    fn count(&self, what: Counted, max: u32, now: Timestamp) -> Result<(), Problem> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= COUNTS_MAX && !counts.contains_key(&what) {
            make_room(&mut counts, now);
        }
        let end = now.checked_add(WINDOW).unwrap_or(Timestamp::MAX);
        let (count, ends_at) = counts.entry(what).or_insert((0, end));
        if *ends_at <= now {
            (*count, *ends_at) = (0, end);
        }
        if *count >= max {
            let left = ends_at.duration_since(now).as_secs().max(1);
            return Err(Problem::new(Code::RATE_LIMIT_EXCEEDED, "Too many tries; try again later")
                .header(http::header::RETRY_AFTER, left.to_string()));
        }
        *count += 1;
        Ok(())
    }
}

/// What is over goes; when nothing is, the older half: so it is seldom that all are looked at.
fn make_room(counts: &mut HashMap<Counted, (u32, Timestamp)>, now: Timestamp) {
    counts.retain(|_, (_, ends_at)| *ends_at > now);
    if counts.len() < COUNTS_MAX {
        return;
    }
    let mut ends: Vec<Timestamp> = counts.values().map(|(_, ends_at)| *ends_at).collect();
    let middle = ends.len() / 2;
    let (_, middle, _) = ends.select_nth_unstable(middle);
    let middle = *middle;
    counts.retain(|_, (_, ends_at)| *ends_at > middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_bounded_and_forgotten() {
        let throttle = Throttle::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        for _ in 0..PER_EMAIL_MAX {
            throttle.password(None, "A@b.example", at(0)).unwrap();
        }
        let refused = throttle.password(None, "a@B.example", at(60)).unwrap_err();
        assert_eq!(refused.code(), Code::RATE_LIMIT_EXCEEDED);
        assert_eq!(refused.headers()[0].1, (15 * 60 - 60).to_string());
        throttle.password(None, "c@b.example", at(60)).unwrap();
        throttle.password(None, "a@b.example", at(15 * 60)).unwrap();
        throttle.right("a@b.example");
        for n in 0..2 * u32::try_from(COUNTS_MAX).unwrap() {
            let _ = throttle.link(Some(IpAddr::V4(n.into())), &n.to_string(), at(100_000));
        }
        assert!(throttle.0.lock().unwrap().len() <= COUNTS_MAX);
    }
}
