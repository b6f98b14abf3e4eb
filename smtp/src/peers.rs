//! Who is connected, and who keeps failing to log in: counters per address, in bounded memory.
//!
//! One table for all listeners of the process. A connection has a [`Place`] in it, which becomes a
//! [`Guest`] when its address is known (behind a proxy that is later); both are given back when dropped. Failed logins are counted per address and per credential; the more there were lately, the
//! longer the next refusal takes, and at last an address is not listened to for a while. Passwords are
//! 190 random bits: the point is not to be kept busy by those who guess.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mail::network::counted;
use tokio::time::Instant;

use crate::answers::Credentials;

/// Sessions of the whole process at a time.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;
/// Addresses and credentials remembered for their failures.
const FAILURES_MAX: usize = 16_384;
/// The first refusal of a login takes this long; each one lately doubles it.
const DELAY_FIRST: Duration = Duration::from_millis(100);
/// It takes no longer than this.
const DELAY_MAX: Duration = Duration::from_secs(10);
/// A failure is forgotten when no other came for so long.
const FORGET_AFTER: Duration = Duration::from_secs(900);
/// In which connections are counted.
const MINUTE: Duration = Duration::from_secs(60);
/// After so many failures lately an address is refused without a look.
const FAILURES_PER_ADDRESS_MAX: u32 = 100;

/// The table.
#[derive(Debug)]
pub struct Peers {
    sessions_max: AtomicUsize,
    sessions: AtomicUsize,
    next_session: AtomicU64,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    lately: Mutex<HashMap<IpAddr, Lately>>,
    failures: Mutex<Failures>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Failures {
    by_address: HashMap<IpAddr, Lately>,
    by_credential: HashMap<u64, Lately>,
}

/// So many failures, the last of them then.
#[derive(Debug, Clone, Copy)]
struct Lately {
    count: u32,
    last: Instant,
}

impl Peers {
    /// An empty table. Sessions are numbered from `first_session`: take the time, and the numbers of
    /// two runs differ.
    #[must_use]
    pub fn new(sessions_max: usize, first_session: u64) -> Arc<Self> {
        Arc::new(Self {
            sessions_max: AtomicUsize::new(sessions_max),
            sessions: AtomicUsize::new(0),
            next_session: AtomicU64::new(first_session),
            by_address: Mutex::default(),
            lately: Mutex::default(),
            failures: Mutex::default(),
            hasher: RandomState::new(),
        })
    }

    /// Admits so many sessions from now on. Those that are open stay.
    pub fn set_sessions_max(&self, sessions: usize) {
        self.sessions_max.store(sessions, Ordering::Relaxed);
    }

    /// Sessions now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Gives a connection a place among all; `None` when all are taken. Whose it is may show later.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<Place> {
        let sessions_max = self.sessions_max.load(Ordering::Relaxed);
        let room = |n: usize| (n < sessions_max).then_some(n + 1);
        self.sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        Some(Place { peers: Arc::clone(self) })
    }

    /// A number for a session.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connection; whether its address may open another in this minute.
    #[must_use]
    pub fn may_connect(&self, address: IpAddr, per_minute_max: u32, now: Instant) -> bool {
        if per_minute_max == u32::MAX || address.to_canonical().is_loopback() {
            return true;
        }
        let mut lately = lock(&self.lately);
        let address = counted(address);
        if lately.len() >= FAILURES_MAX && !lately.contains_key(&address) {
            lately.retain(|_, minute| now.duration_since(minute.last) <= MINUTE);
            if lately.len() >= FAILURES_MAX {
                lately.clear();
            }
        }
        // Here `last` is when the minute began.
        let minute = lately.entry(address).or_insert(Lately { count: 0, last: now });
        if now.duration_since(minute.last) > MINUTE {
            *minute = Lately { count: 0, last: now };
        }
        minute.count = minute.count.saturating_add(1);
        minute.count <= per_minute_max
    }

    /// Whether logins from an address are listened to.
    #[must_use]
    pub fn may_log_in(&self, address: IpAddr, now: Instant) -> bool {
        let failures = lock(&self.failures);
        failures
            .by_address
            .get(&counted(address))
            .is_none_or(|f| f.count < FAILURES_PER_ADDRESS_MAX || now.duration_since(f.last) > FORGET_AFTER)
    }

    /// Counts a failed login; the reply is to wait for so long.
    #[must_use]
    pub fn failed(&self, address: IpAddr, credential: u64, now: Instant) -> Duration {
        let mut failures = lock(&self.failures);
        let by_address = count(&mut failures.by_address, counted(address), now);
        let by_credential = count(&mut failures.by_credential, credential, now);
        let doublings = (by_address.max(by_credential) - 1).min(16);
        DELAY_FIRST.saturating_mul(1 << doublings).min(DELAY_MAX)
    }

    /// What stands for a credential in the table.
    #[must_use]
    pub fn key(&self, credentials: &Credentials) -> u64 {
        self.hasher.hash_one((&credentials.username, &credentials.password))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counters are whole after every statement: a panic elsewhere did not break them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count<K: Hash + Eq>(table: &mut HashMap<K, Lately>, key: K, now: Instant) -> u32 {
    if table.len() >= FAILURES_MAX && !table.contains_key(&key) {
        table.retain(|_, f| now.duration_since(f.last) <= FORGET_AFTER);
        if table.len() >= FAILURES_MAX {
            // An attack from everywhere: counting by address has lost its sense, memory has not.
            table.clear();
        }
    }
    let lately = table.entry(key).or_insert(Lately { count: 0, last: now });
    if now.duration_since(lately.last) > FORGET_AFTER {
        lately.count = 0;
    }
    lately.count = lately.count.saturating_add(1);
    lately.last = now;
    lately.count
}

/// A place among all sessions; given back when dropped.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
}

impl Place {
    /// Makes it a session of this address; `None` when the address has its share.
    #[must_use]
    pub fn admit(self, address: IpAddr, per_address_max: usize) -> Option<Guest> {
        let address = counted(address);
        let mut by_address = lock(&self.peers.by_address);
        let held = by_address.get(&address).copied().unwrap_or(0);
        if held >= per_address_max {
            return None;
        }
        by_address.insert(address, held + 1);
        drop(by_address);
        Some(Guest { place: self, address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.peers.sessions.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A session's place, counted for its address; given back when dropped.
#[derive(Debug)]
pub struct Guest {
    place: Place,
    address: IpAddr,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut by_address = lock(&self.place.peers.by_address);
        if let Some(sessions) = by_address.get_mut(&self.address) {
            *sessions -= 1;
            if *sessions == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_given_back() {
        let peers = Peers::new(3, 1);
        let admit = |from: &str, max: usize| peers.enter().unwrap().admit(address(from), max);
        let one = admit("192.0.2.1", 1).unwrap();
        assert!(admit("::ffff:192.0.2.1", 1).is_none(), "the address has its share");
        let _two = admit("2001:db8::1", 2).unwrap();
        let _three = admit("2001:db8::2", 2).unwrap();
        assert!(peers.enter().is_none(), "all places are taken");
        drop(one);
        assert!(admit("2001:db8::3", 2).is_none(), "the /64 has its share");
        assert_eq!(peers.sessions(), 2);
        let unknown = peers.enter().unwrap();
        assert!(peers.enter().is_none(), "who is not known yet has a place too");
        drop(unknown);
        assert!(admit("192.0.2.1", 1).is_some());
        assert_eq!(lock(&peers.by_address).len(), 1);
    }

    #[tokio::test]
    async fn failures_slow_down_and_are_forgotten() {
        let (peers, now, from) = (Peers::new(1, 1), Instant::now(), address("192.0.2.1"));
        assert_eq!(peers.failed(from, 1, now), DELAY_FIRST);
        assert_eq!(peers.failed(from, 2, now), DELAY_FIRST * 2);
        // The same credential from elsewhere is known too.
        assert_eq!(peers.failed(address("192.0.2.2"), 2, now), DELAY_FIRST * 2);
        for n in 2..FAILURES_PER_ADDRESS_MAX {
            assert!(peers.may_log_in(from, now));
            assert!(peers.failed(from, u64::from(n) + 10, now) <= DELAY_MAX);
        }
        assert!(!peers.may_log_in(from, now));
        let later = now + FORGET_AFTER + Duration::from_secs(1);
        assert!(peers.may_log_in(from, later));
        assert_eq!(peers.failed(from, 1, later), DELAY_FIRST);
    }

    #[tokio::test]
    async fn connections_are_counted_by_the_minute() {
        let (peers, now, from) = (Peers::new(1, 1), Instant::now(), address("192.0.2.1"));
        assert!(peers.may_connect(from, 2, now) && peers.may_connect(from, 2, now));
        assert!(!peers.may_connect(from, 2, now));
        assert!(peers.may_connect(address("192.0.2.2"), 2, now));
        assert!((0..9).all(|_| peers.may_connect(address("127.0.0.1"), 2, now)));
        assert!(peers.may_connect(from, 2, now + MINUTE + Duration::from_secs(1)));
    }

    #[tokio::test]
    async fn an_attack_from_everywhere_does_not_fill_memory() {
        let (peers, now) = (Peers::new(1, 1), Instant::now());
        for n in 0..(FAILURES_MAX as u32 + 5) {
            let _ = peers.failed(IpAddr::V4(n.into()), u64::from(n), now);
        }
        assert!(lock(&peers.failures).by_address.len() <= FAILURES_MAX);
    }
}
