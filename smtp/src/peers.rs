//! Who is connected: places for sessions, by kind of listener, in bounded memory.
//!
//! ```text
//! connection ─► Place (one of the places) ─► Guest (counted for its address, and its site or account)
//!                                              │ submission, after the login
//!                                              └─► a place among those who logged in, counted for the account
//! ```
//!
//! Each kind of listener has places of its own: strangers at MX take none of submission's. At submission, strangers
//! have a quarter of the places, and an address half of what it may have later. An eighth is for addresses from which
//! somebody logged in lately, counted for the account that did so last; whoever finds none there is a stranger. A
//! login moves the session to the other places: whoever has not logged in has none of those.
//! Of all places one address, site or account has no more than it leaves free, and at MX a stranger and its network
//! have a bound beside it ([`crate::quota`]). Places are given back when dropped.

use std::iter;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mail::id::AccountId;
use mail::network::counted;
use tokio::time::Instant;

use crate::counts::Counts;
use crate::logins::Logins;
use crate::quota::{Bounds, Counted, Holder, Quota};
use crate::settings::Role;

/// Sessions of the whole process at a time.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;
/// One address, one site, has this part of MX's sessions at most.
pub const STRANGER_PART: usize = 16;
/// Strangers have this part of submission's places.
const STRANGERS_PART: usize = 4;
/// Addresses from which somebody logged in lately have this part, until somebody does so again.
const KNOWN_PART: usize = 8;
/// Addresses whose connections are counted.
const ADDRESSES_MAX: usize = 16_384;
/// In which connections are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The places of all listeners.
#[derive(Debug)]
pub struct Peers {
    next_session: AtomicU64,
    mx: Arc<Quota>,
    relay: Arc<Quota>,
    /// Submission's, for those who have logged in.
    logged_in: Arc<Quota>,
    /// Submission's, for those who have not, but somebody from their address has.
    known: Arc<Quota>,
    /// Submission's, for the others.
    strangers: Arc<Quota>,
    lately: Mutex<Counts<IpAddr, Instant>>,
    logins: Arc<Logins>,
}

impl Peers {
    /// So many places for each kind of listener. Sessions are numbered from `first_session`: take the time, and
    /// the numbers of two runs differ.
    #[must_use]
    pub fn new(sessions_max: usize, first_session: u64) -> Arc<Self> {
        let none = || Quota::new(Bounds::shared(0));
        let peers = Self {
            next_session: AtomicU64::new(first_session),
            mx: none(),
            relay: none(),
            logged_in: none(),
            known: none(),
            strangers: none(),
            lately: Mutex::new(Counts::new(ADDRESSES_MAX)),
            logins: Arc::default(),
        };
        for role in Role::ALL {
            peers.set_sessions_max(role, sessions_max);
        }
        Arc::new(peers)
    }

    /// Admits so many sessions of a kind of listener from now on. Those that are open stay.
    pub fn set_sessions_max(&self, role: Role, sessions: usize) {
        match role {
            Role::Mx => {
                let each = (sessions / STRANGER_PART).max(1);
                self.mx.set(Bounds { each, ..Bounds::shared(sessions) });
            }
            Role::Relay => self.relay.set(Bounds::shared(sessions)),
            Role::Submission => {
                let (strangers, known) = (sessions.div_ceil(STRANGERS_PART), sessions / KNOWN_PART);
                self.strangers.set(Bounds::shared(strangers));
                self.known.set(Bounds::shared(known));
                self.logged_in.set(Bounds::shared((sessions - strangers - known).max(1)));
            }
        }
    }

    /// Sessions now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        Role::ALL.into_iter().map(|role| self.sessions_of(role)).sum()
    }

    /// Sessions of a kind of listener now.
    #[must_use]
    pub fn sessions_of(&self, role: Role) -> usize {
        match role {
            Role::Mx => self.mx.used(),
            Role::Relay => self.relay.used(),
            Role::Submission => self.strangers.used() + self.known.used() + self.logged_in.used(),
        }
    }

    /// What is remembered of logins.
    #[must_use]
    pub fn logins(&self) -> &Arc<Logins> {
        &self.logins
    }

    /// Gives a connection a place; `None` when all are taken. Whose it is may show later: behind a proxy the
    /// address is not known yet.
    #[must_use]
    pub fn enter(self: &Arc<Self>, role: Role, address: Option<IpAddr>, now: Instant) -> Option<Place> {
        let may_be_known = || address.is_none_or(|address| self.logins.known(address, now).is_some());
        let quota = match role {
            Role::Mx => &self.mx,
            Role::Relay => &self.relay,
            Role::Submission if self.strangers.free() == 0 && may_be_known() => &self.known,
            Role::Submission => &self.strangers,
        };
        quota.take_one().then(|| Place { peers: Arc::clone(self), role, quota: Arc::clone(quota) })
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
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        // The moment is when the minute began.
        let minute = lately.entry(counted(address), now, |began| now.duration_since(began) > MINUTE);
        minute.count = minute.count.saturating_add(1);
        minute.count <= per_minute_max
    }
}

/// A place for a session; given back when dropped.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
    role: Role,
    /// In which it is one.
    quota: Arc<Quota>,
}

impl Place {
    /// Makes it a session of this address; `None` when the address, its site or its account has its share.
    #[must_use]
    pub fn admit(mut self, address: IpAddr, per_address_max: usize, now: Instant) -> Option<Guest> {
        let peers = Arc::clone(&self.peers);
        let (by_address, max) = (Holder::address(address), per_address_max);
        let site = [by_address, Holder::site(address)];
        let counted = match self.role {
            Role::Mx => self.count(&peers.mx, iter::once(by_address).chain(Holder::stranger(address)), max),
            Role::Relay => self.count(&peers.relay, site, max),
            Role::Submission => peers
                .logins
                .known(address, now)
                .and_then(|holder| self.count(&peers.known, [by_address, holder], max))
                .or_else(|| self.count(&peers.strangers, site, max.div_ceil(2))),
        }?;
        Some(Guest { counted, place: self, address, per_address_max })
    }

    /// Counts it in a quota, at most `max` for the first of its holders, and moves it there when it is one of another.
    /// When that is not granted, it stays as it is.
    fn count(
        &mut self,
        quota: &Arc<Quota>,
        holders: impl IntoIterator<Item = Holder>,
        max: usize,
    ) -> Option<Counted> {
        let moves = !Arc::ptr_eq(&self.quota, quota);
        if moves && !quota.take_one() {
            return None;
        }
        let counted = quota.share(holders).count_one(max);
        match &counted {
            _ if !moves => {}
            Some(_) => std::mem::replace(&mut self.quota, Arc::clone(quota)).give_one(),
            None => quota.give_one(),
        }
        counted
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.quota.give_one();
    }
}

/// A session's place, counted for its address, and for its site or account; given back when dropped.
#[derive(Debug)]
pub struct Guest {
    counted: Counted,
    place: Place,
    address: IpAddr,
    per_address_max: usize,
}

impl Guest {
    /// Whether few places are left where it has its own.
    #[must_use]
    pub fn are_places_short(&self) -> bool {
        self.place.quota.is_short(0)
    }

    /// Moves a submission session, which has logged in for this account, to the places of those who have.
    /// `false`, and it stays where it is, when there is none for its account or its address.
    #[must_use]
    pub fn log_in(&mut self, account: Option<AccountId>) -> bool {
        let logged_in = Arc::clone(&self.place.peers.logged_in);
        let holder = account.map_or_else(|| Holder::site(self.address), Holder::Account);
        let holders = [Holder::address(self.address), holder];
        let Some(counted) = self.place.count(&logged_in, holders, self.per_address_max) else {
            return false;
        };
        self.counted = counted;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admit(peers: &Arc<Peers>, role: Role, from: &str, max: usize) -> Option<Guest> {
        let now = Instant::now();
        peers.enter(role, Some(address(from)), now)?.admit(address(from), max, now)
    }

    #[test]
    fn places_are_given_back() {
        let peers = Peers::new(64, 1);
        let one = admit(&peers, Role::Mx, "192.0.2.1", 1).unwrap();
        assert!(admit(&peers, Role::Mx, "::ffff:192.0.2.1", 1).is_none(), "the address has its share");
        let _two = admit(&peers, Role::Mx, "2001:db8::1", 2).unwrap();
        let _three = admit(&peers, Role::Mx, "2001:db8::2", 2).unwrap();
        assert!(admit(&peers, Role::Mx, "2001:db8::3", 2).is_none(), "the /64 has its share");
        assert_eq!(peers.sessions(), 3);
        drop(one);
        assert!(admit(&peers, Role::Mx, "192.0.2.1", 1).is_some());
        assert_eq!((peers.sessions_of(Role::Mx), peers.mx.holders_known()), (2, 3));
    }

    #[test]
    fn all_places_of_a_kind_are_all() {
        let peers = Peers::new(2, 1);
        let enter = |role| peers.enter(role, None, Instant::now());
        let held = [enter(Role::Mx).unwrap(), enter(Role::Mx).unwrap()];
        assert!(
            enter(Role::Mx).is_none() && enter(Role::Submission).is_some() && enter(Role::Relay).is_some()
        );
        drop(held);
        assert!(enter(Role::Mx).is_some() && peers.sessions() == 0);
    }

    #[test]
    fn a_site_has_a_sixteenth_of_the_places_at_mx() {
        let peers = Peers::new(160, 1);
        let at = |n: u16| admit(&peers, Role::Mx, &format!("2001:db8:0:{n:x}::1"), 50);
        let held: Vec<_> = (0..=0xff).filter_map(at).collect();
        assert_eq!(held.len(), 10);
        let more: Vec<_> = (1..=0xff).filter_map(|n| at(n << 8)).collect();
        assert_eq!(more.len(), 10, "an eighth for a /48");
        let elsewhere = admit(&peers, Role::Mx, "2001:db8:1::1", 50);
        assert!(elsewhere.is_some());
        let here: Vec<_> = (0..20).filter_map(|_| admit(&peers, Role::Mx, "127.0.0.1", 50)).collect();
        assert_eq!(here.len(), 20, "this machine is no stranger");
    }

    #[test]
    fn a_login_gets_another_place_and_an_account_no_more_than_it_leaves() {
        let peers = Peers::new(48, 1);
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        // Twelve places for strangers: an address has half of what it may have later, and leaves as many free.
        let at = |n: usize| admit(&peers, Role::Submission, &format!("192.0.2.{n}"), 8);
        let mut one: Vec<_> = (0..9).map_while(|_| at(1)).collect();
        assert_eq!(one.len(), 4);
        assert!(one.iter_mut().all(|guest| guest.log_in(account(1))));
        assert_eq!((peers.strangers.used(), peers.logged_in.used(), peers.sessions()), (0, 4, 4));
        // Thirty with a login: half of them for an account, as long as nobody else comes.
        let mut more = Vec::new();
        loop {
            let mut guest = at(100 + more.len()).unwrap();
            if !guest.log_in(account(1)) {
                assert_eq!((peers.strangers.used(), peers.logged_in.used()), (1, 15), "it stays where it is");
                break;
            }
            more.push(guest);
        }
        assert_eq!(one.len() + more.len(), 15);
        let mut other = at(200).unwrap();
        assert!(other.log_in(account(2)), "another account finds a place");
        drop((one, more, other));
        assert_eq!(
            (peers.sessions(), peers.logged_in.holders_known(), peers.strangers.holders_known()),
            (0, 0, 0)
        );
    }

    fn submission(peers: &Arc<Peers>, from: &str) -> Option<Guest> {
        admit(peers, Role::Submission, from, 8)
    }

    #[test]
    fn strangers_at_submission_keep_out_nobody_who_was_here() {
        let peers = Peers::new(40, 1);
        let now = Instant::now();
        let held: Vec<_> = (0..250).filter_map(|n| submission(&peers, &format!("192.0.2.{n}"))).collect();
        assert_eq!(held.len(), 9, "one is left");
        // Behind a proxy, before anybody says who comes.
        let enter = || peers.enter(Role::Submission, None, now);
        let silent = enter().unwrap();
        assert!(submission(&peers, "198.51.100.1").is_none());
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_none());
        peers.logins().succeeded(address("198.51.100.1"), None, now);
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_some());
        let mut known = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!((peers.known.used(), peers.logged_in.used()), (1, 0));
        assert!(known.log_in(None));
        assert_eq!((peers.known.used(), peers.logged_in.used()), (0, 1));
        drop((held, silent));
    }

    /// A session from a known address took a place of those who had logged in, and was counted for no account: one
    /// tenant with twenty addresses kept out all others.
    #[test]
    fn a_tenant_at_many_known_addresses_leaves_places_to_the_others() {
        let peers = Peers::new(160, 1);
        let now = Instant::now();
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        let busy: Vec<String> = (1..=60).map(|n| format!("192.0.2.{n}")).collect();
        for from in &busy {
            peers.logins().succeeded(address(from), account(1), now);
        }
        peers.logins().succeeded(address("198.51.100.1"), account(2), now);
        let silent: Vec<_> = (0..3).flat_map(|_| &busy).filter_map(|from| submission(&peers, from)).collect();
        // Half of the twenty for known addresses; the others are strangers.
        assert_eq!((peers.known.used(), peers.logged_in.used()), (10, 0));
        assert_eq!(peers.sessions_of(Role::Submission), silent.len());
        let mut other = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!(peers.known.used(), 11);
        assert!(other.log_in(account(2)));
    }

    #[test]
    fn connections_are_counted_by_the_minute() {
        let (peers, now, from) = (Peers::new(1, 1), Instant::now(), address("192.0.2.1"));
        assert!(peers.may_connect(from, 2, now) && peers.may_connect(from, 2, now));
        assert!(!peers.may_connect(from, 2, now));
        assert!(peers.may_connect(address("192.0.2.2"), 2, now));
        assert!((0..9).all(|_| peers.may_connect(address("127.0.0.1"), 2, now)));
        assert!(peers.may_connect(from, 2, now + MINUTE + Duration::from_secs(1)));
    }
}
