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
use mail::network::client_prefix;
use tokio::time::Instant;

use crate::counts::BoundedCounters;
use crate::logins::LoginThrottle;
use crate::quota::{FairShareQuota, QuotaBounds, QuotaHolder, QuotaPermit};
use crate::settings::ListenerRole;

/// Sessions of the whole process at a time.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;
/// One address, one site, has this part of MX's sessions at most.
pub const MX_SITE_DIVISOR: usize = 16;
/// Strangers have this part of submission's places.
const UNAUTHENTICATED_DIVISOR: usize = 4;
/// Addresses from which somebody logged in lately have this part, until somebody does so again.
const RECENT_LOGIN_DIVISOR: usize = 8;
/// Addresses whose connections are counted.
const ADDRESSES_MAX: usize = 16_384;
/// In which connections are counted.
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The places of all listeners.
#[derive(Debug)]
pub struct ConnectionLimiter {
    next_session: AtomicU64,
    mx: Arc<FairShareQuota>,
    relay: Arc<FairShareQuota>,
    /// Submission's, for those who have logged in.
    authenticated: Arc<FairShareQuota>,
    /// Submission's, for those who have not, but somebody from their address has.
    recent_login: Arc<FairShareQuota>,
    /// Submission's, for the others.
    unauthenticated: Arc<FairShareQuota>,
    connection_rates: Mutex<BoundedCounters<IpAddr, Instant>>,
    logins: Arc<LoginThrottle>,
}

impl ConnectionLimiter {
    /// So many places for each kind of listener. Sessions are numbered from `first_session`: take the time, and
    /// the numbers of two runs differ.
    #[must_use]
    pub fn new(sessions_max: usize, first_session: u64) -> Arc<Self> {
        let none = || FairShareQuota::new(QuotaBounds::shared(0));
        let peers = Self {
            next_session: AtomicU64::new(first_session),
            mx: none(),
            relay: none(),
            authenticated: none(),
            recent_login: none(),
            unauthenticated: none(),
            connection_rates: Mutex::new(BoundedCounters::new(ADDRESSES_MAX)),
            logins: Arc::default(),
        };
        for role in ListenerRole::ALL {
            peers.set_sessions_max(role, sessions_max);
        }
        Arc::new(peers)
    }

    /// Admits so many sessions of a kind of listener from now on. Those that are open stay.
    pub fn set_sessions_max(&self, role: ListenerRole, sessions: usize) {
        match role {
            ListenerRole::Mx => {
                let each = (sessions / MX_SITE_DIVISOR).max(1);
                self.mx.set_bounds(QuotaBounds { per_holder: each, ..QuotaBounds::shared(sessions) });
            }
            ListenerRole::Relay => self.relay.set_bounds(QuotaBounds::shared(sessions)),
            ListenerRole::Submission => {
                let (strangers, known) = (sessions.div_ceil(UNAUTHENTICATED_DIVISOR), sessions / RECENT_LOGIN_DIVISOR);
                self.unauthenticated.set_bounds(QuotaBounds::shared(strangers));
                self.recent_login.set_bounds(QuotaBounds::shared(known));
                self.authenticated.set_bounds(QuotaBounds::shared((sessions - strangers - known).max(1)));
            }
        }
    }

    /// Sessions now.
    #[must_use]
    pub fn sessions(&self) -> usize {
        ListenerRole::ALL.into_iter().map(|role| self.sessions_for(role)).sum()
    }

    /// Sessions of a kind of listener now.
    #[must_use]
    pub fn sessions_for(&self, role: ListenerRole) -> usize {
        match role {
            ListenerRole::Mx => self.mx.used(),
            ListenerRole::Relay => self.relay.used(),
            ListenerRole::Submission => {
                self.unauthenticated.used() + self.recent_login.used() + self.authenticated.used()
            }
        }
    }

    /// What is remembered of logins.
    #[must_use]
    pub fn logins(&self) -> &Arc<LoginThrottle> {
        &self.logins
    }

    /// Gives a connection a place; `None` when all are taken. Whose it is may show later: behind a proxy the
    /// address is not known yet.
    #[must_use]
    pub fn acquire_slot(
        self: &Arc<Self>,
        role: ListenerRole,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<ConnectionSlot> {
        let may_be_known = || address.is_none_or(|address| self.logins.known_holder(address, now).is_some());
        let quota = match role {
            ListenerRole::Mx => &self.mx,
            ListenerRole::Relay => &self.relay,
            ListenerRole::Submission if self.unauthenticated.free() == 0 && may_be_known() => &self.recent_login,
            ListenerRole::Submission => &self.unauthenticated,
        };
        quota.acquire_unit().then(|| ConnectionSlot { limiter: Arc::clone(self), role, quota: Arc::clone(quota) })
    }

    /// A number for a session.
    #[must_use]
    pub fn next_session_id(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connection; whether its address may open another in this minute.
    #[must_use]
    pub fn allow_connection(&self, address: IpAddr, per_minute_max: u32, now: Instant) -> bool {
        if per_minute_max == u32::MAX || address.to_canonical().is_loopback() {
            return true;
        }
        let mut lately = self.connection_rates.lock().unwrap_or_else(PoisonError::into_inner);
        // The moment is when the minute began.
        let minute = lately.entry(client_prefix(address), now, |began| now.duration_since(began) > RATE_WINDOW);
        minute.count = minute.count.saturating_add(1);
        minute.count <= per_minute_max
    }
}

/// A place for a session; given back when dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    limiter: Arc<ConnectionLimiter>,
    role: ListenerRole,
    /// In which it is one.
    quota: Arc<FairShareQuota>,
}

impl ConnectionSlot {
    /// Makes it a session of this address; `None` when the address, its site or its account has its share.
    #[must_use]
    pub fn admit(mut self, address: IpAddr, per_address_max: usize, now: Instant) -> Option<ConnectionPermit> {
        let peers = Arc::clone(&self.limiter);
        let (by_address, max) = (QuotaHolder::for_address(address), per_address_max);
        let site = [by_address, QuotaHolder::for_site(address)];
        let counted = match self.role {
            ListenerRole::Mx => self.count_in_quota(
                &peers.mx,
                iter::once(by_address).chain(QuotaHolder::untrusted_client(address)),
                max,
            ),
            ListenerRole::Relay => self.count_in_quota(&peers.relay, site, max),
            ListenerRole::Submission => peers
                .logins
                .known_holder(address, now)
                .and_then(|holder| self.count_in_quota(&peers.recent_login, [by_address, holder], max))
                .or_else(|| self.count_in_quota(&peers.unauthenticated, site, max.div_ceil(2))),
        }?;
        Some(ConnectionPermit { quota_permit: counted, slot: self, address, per_address_max })
    }

    /// Counts it in a quota, at most `max` for the first of its holders, and moves it there when it is one of another.
    /// When that is not granted, it stays as it is.
    fn count_in_quota(
        &mut self,
        quota: &Arc<FairShareQuota>,
        holders: impl IntoIterator<Item = QuotaHolder>,
        max: usize,
    ) -> Option<QuotaPermit> {
        let moves = !Arc::ptr_eq(&self.quota, quota);
        if moves && !quota.acquire_unit() {
            return None;
        }
        let counted = quota.share_for(holders).count_unit(max);
        match &counted {
            _ if !moves => {}
            Some(_) => std::mem::replace(&mut self.quota, Arc::clone(quota)).release_unit(),
            None => quota.release_unit(),
        }
        counted
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.quota.release_unit();
    }
}

/// A session's place, counted for its address, and for its site or account; given back when dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    quota_permit: QuotaPermit,
    slot: ConnectionSlot,
    address: IpAddr,
    per_address_max: usize,
}

impl ConnectionPermit {
    /// Whether few places are left where it has its own.
    #[must_use]
    pub fn is_near_capacity(&self) -> bool {
        self.slot.quota.is_near_capacity(0)
    }

    /// Moves a submission session, which has logged in for this account, to the places of those who have.
    /// `false`, and it stays where it is, when there is none for its account or its address.
    #[must_use]
    pub fn authenticate(&mut self, account: Option<AccountId>) -> bool {
        let logged_in = Arc::clone(&self.slot.limiter.authenticated);
        let holder = account.map_or_else(|| QuotaHolder::for_site(self.address), QuotaHolder::Account);
        let holders = [QuotaHolder::for_address(self.address), holder];
        let Some(counted) = self.slot.count_in_quota(&logged_in, holders, self.per_address_max) else {
            return false;
        };
        self.quota_permit = counted;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admit(peers: &Arc<ConnectionLimiter>, role: ListenerRole, from: &str, max: usize) -> Option<ConnectionPermit> {
        let now = Instant::now();
        peers.acquire_slot(role, Some(address(from)), now)?.admit(address(from), max, now)
    }

    #[test]
    fn places_are_given_back() {
        let peers = ConnectionLimiter::new(64, 1);
        let one = admit(&peers, ListenerRole::Mx, "192.0.2.1", 1).unwrap();
        assert!(admit(&peers, ListenerRole::Mx, "::ffff:192.0.2.1", 1).is_none(), "the address has its share");
        let _two = admit(&peers, ListenerRole::Mx, "2001:db8::1", 2).unwrap();
        let _three = admit(&peers, ListenerRole::Mx, "2001:db8::2", 2).unwrap();
        assert!(admit(&peers, ListenerRole::Mx, "2001:db8::3", 2).is_none(), "the /64 has its share");
        assert_eq!(peers.sessions(), 3);
        drop(one);
        assert!(admit(&peers, ListenerRole::Mx, "192.0.2.1", 1).is_some());
        assert_eq!((peers.sessions_for(ListenerRole::Mx), peers.mx.holders_known()), (2, 3));
    }

    #[test]
    fn all_places_of_a_kind_are_all() {
        let peers = ConnectionLimiter::new(2, 1);
        let enter = |role| peers.acquire_slot(role, None, Instant::now());
        let held = [enter(ListenerRole::Mx).unwrap(), enter(ListenerRole::Mx).unwrap()];
        assert!(
            enter(ListenerRole::Mx).is_none()
                && enter(ListenerRole::Submission).is_some()
                && enter(ListenerRole::Relay).is_some()
        );
        drop(held);
        assert!(enter(ListenerRole::Mx).is_some() && peers.sessions() == 0);
    }

    #[test]
    fn a_site_has_a_sixteenth_of_the_places_at_mx() {
        let peers = ConnectionLimiter::new(160, 1);
        let at = |n: u16| admit(&peers, ListenerRole::Mx, &format!("2001:db8:0:{n:x}::1"), 50);
        let held: Vec<_> = (0..=0xff).filter_map(at).collect();
        assert_eq!(held.len(), 10);
        let more: Vec<_> = (1..=0xff).filter_map(|n| at(n << 8)).collect();
        assert_eq!(more.len(), 10, "an eighth for a /48");
        let elsewhere = admit(&peers, ListenerRole::Mx, "2001:db8:1::1", 50);
        assert!(elsewhere.is_some());
        let here: Vec<_> = (0..20).filter_map(|_| admit(&peers, ListenerRole::Mx, "127.0.0.1", 50)).collect();
        assert_eq!(here.len(), 20, "this machine is no stranger");
    }

    #[test]
    fn a_login_gets_another_place_and_an_account_no_more_than_it_leaves() {
        let peers = ConnectionLimiter::new(48, 1);
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        // Twelve places for strangers: an address has half of what it may have later, and leaves as many free.
        let at = |n: usize| admit(&peers, ListenerRole::Submission, &format!("192.0.2.{n}"), 8);
        let mut one: Vec<_> = (0..9).map_while(|_| at(1)).collect();
        assert_eq!(one.len(), 4);
        assert!(one.iter_mut().all(|guest| guest.authenticate(account(1))));
        assert_eq!((peers.unauthenticated.used(), peers.authenticated.used(), peers.sessions()), (0, 4, 4));
        // Thirty with a login: half of them for an account, as long as nobody else comes.
        let mut more = Vec::new();
        loop {
            let mut guest = at(100 + more.len()).unwrap();
            if !guest.authenticate(account(1)) {
                assert_eq!((peers.unauthenticated.used(), peers.authenticated.used()), (1, 15), "it stays where it is");
                break;
            }
            more.push(guest);
        }
        assert_eq!(one.len() + more.len(), 15);
        let mut other = at(200).unwrap();
        assert!(other.authenticate(account(2)), "another account finds a place");
        drop((one, more, other));
        assert_eq!(
            (peers.sessions(), peers.authenticated.holders_known(), peers.unauthenticated.holders_known()),
            (0, 0, 0)
        );
    }

    fn submission(peers: &Arc<ConnectionLimiter>, from: &str) -> Option<ConnectionPermit> {
        admit(peers, ListenerRole::Submission, from, 8)
    }

    #[test]
    fn strangers_at_submission_keep_out_nobody_who_was_here() {
        let peers = ConnectionLimiter::new(40, 1);
        let now = Instant::now();
        let held: Vec<_> = (0..250).filter_map(|n| submission(&peers, &format!("192.0.2.{n}"))).collect();
        assert_eq!(held.len(), 9, "one is left");
        // Behind a proxy, before anybody says who comes.
        let enter = || peers.acquire_slot(ListenerRole::Submission, None, now);
        let silent = enter().unwrap();
        assert!(submission(&peers, "198.51.100.1").is_none());
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_none());
        peers.logins().record_success(address("198.51.100.1"), None, now);
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_some());
        let mut known = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (1, 0));
        assert!(known.authenticate(None));
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (0, 1));
        drop((held, silent));
    }

    /// A session from a known address took a place of those who had logged in, and was counted for no account: one
    /// tenant with twenty addresses kept out all others.
    #[test]
    fn a_tenant_at_many_known_addresses_leaves_places_to_the_others() {
        let peers = ConnectionLimiter::new(160, 1);
        let now = Instant::now();
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        let busy: Vec<String> = (1..=60).map(|n| format!("192.0.2.{n}")).collect();
        for from in &busy {
            peers.logins().record_success(address(from), account(1), now);
        }
        peers.logins().record_success(address("198.51.100.1"), account(2), now);
        let silent: Vec<_> = (0..3).flat_map(|_| &busy).filter_map(|from| submission(&peers, from)).collect();
        // Half of the twenty for known addresses; the others are strangers.
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (10, 0));
        assert_eq!(peers.sessions_for(ListenerRole::Submission), silent.len());
        let mut other = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!(peers.recent_login.used(), 11);
        assert!(other.authenticate(account(2)));
    }

    #[test]
    fn connections_are_counted_by_the_minute() {
        let (peers, now, from) = (ConnectionLimiter::new(1, 1), Instant::now(), address("192.0.2.1"));
        assert!(peers.allow_connection(from, 2, now) && peers.allow_connection(from, 2, now));
        assert!(!peers.allow_connection(from, 2, now));
        assert!(peers.allow_connection(address("192.0.2.2"), 2, now));
        assert!((0..9).all(|_| peers.allow_connection(address("127.0.0.1"), 2, now)));
        assert!(peers.allow_connection(from, 2, now + RATE_WINDOW + Duration::from_secs(1)));
    }
}
