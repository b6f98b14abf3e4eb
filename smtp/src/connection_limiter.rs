//! Limits connections by kind of listener, in bounded memory. Load shedding: a connection above a limit is answered
//! 421 (RFC 5321 3.8) and closed.
//!
//! ```text
//! connection ─► ConnectionSlot (one session slot) ─► ConnectionPermit (counted by address, and by site or account)
//!                                                      │ submission, after the login
//!                                                      └─► a slot for authenticated sessions, counted by account
//! ```
//!
//! Each kind of listener has its own slots, so untrusted clients at MX take none of submission's. The slots of
//! submission are divided:
//!
//! - Unauthenticated sessions have a quarter. An address has half of its limit there.
//! - Sessions from addresses with a recent login have an eighth, counted by the account of that login. A session that
//!   finds no slot there is treated as unauthenticated.
//! - Authenticated sessions have the rest. A login moves the session to these.
//!
//! An address, site or account gets no more slots than it leaves free. At MX an untrusted client and its network also
//! have a fixed limit ([`net::limit::fair_share`]). Slots are released on drop.

use net::limit::bounded_counters::BoundedCounters;
use net::limit::fair_share::{FairShareQuota, QuotaBounds, QuotaHolder, QuotaPermit};
use parking_lot::Mutex;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::cidr::client_prefix;
use model::id::AccountId;
use tokio::time::Instant;

use crate::login_throttle::LoginThrottle;
use crate::settings::ListenerRole;

/// Default limit of concurrent sessions in the whole process.
pub const SESSIONS_MAX_DEFAULT: usize = 10_000;
/// An address or site gets at most one part in this many of MX's sessions.
pub const MX_SITE_DIVISOR: usize = 16;
/// Unauthenticated sessions get one part in this many of submission's slots.
const UNAUTHENTICATED_DIVISOR: usize = 4;
/// Sessions from addresses with a recent login get one part in this many of submission's slots.
const RECENT_LOGIN_DIVISOR: usize = 8;
/// Addresses with a counter of connections.
const ADDRESSES_MAX: usize = 16_384;
/// The window in which connections are counted.
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The session slots of all listeners.
#[derive(Debug)]
pub struct ConnectionLimiter {
    next_session: AtomicU64,
    mx: Arc<FairShareQuota>,
    relay: Arc<FairShareQuota>,
    /// Submission: sessions that are authenticated.
    authenticated: Arc<FairShareQuota>,
    /// Submission: unauthenticated sessions from an address with a recent login.
    recent_login: Arc<FairShareQuota>,
    /// Submission: all other sessions.
    unauthenticated: Arc<FairShareQuota>,
    connection_rates: Mutex<BoundedCounters<IpAddr, Instant>>,
    pub logins: Arc<LoginThrottle>,
}

impl ConnectionLimiter {
    /// Creates `sessions_max` slots for each kind of listener. Session numbers start at `first_session`. Pass the
    /// current time, so that two runs of the process do not use the same numbers.
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

    /// Replaces the limit of a kind of listener. Open sessions continue.
    pub fn set_sessions_max(&self, role: ListenerRole, sessions: usize) {
        match role {
            ListenerRole::Mx => {
                let each = (sessions / MX_SITE_DIVISOR).max(1);
                self.mx.set_bounds(QuotaBounds { per_holder: each, ..QuotaBounds::shared(sessions) });
            }
            ListenerRole::Relay => self.relay.set_bounds(QuotaBounds::shared(sessions)),
            ListenerRole::Submission => {
                let (unauthenticated, recent_login) =
                    (sessions.div_ceil(UNAUTHENTICATED_DIVISOR), sessions / RECENT_LOGIN_DIVISOR);
                self.unauthenticated.set_bounds(QuotaBounds::shared(unauthenticated));
                self.recent_login.set_bounds(QuotaBounds::shared(recent_login));
                self.authenticated.set_bounds(QuotaBounds::shared((sessions - unauthenticated - recent_login).max(1)));
            }
        }
    }

    /// Number of open sessions.
    pub fn sessions(&self) -> usize {
        ListenerRole::ALL.into_iter().map(|role| self.sessions_for(role)).sum()
    }

    /// Number of open sessions of a kind of listener.
    pub fn sessions_for(&self, role: ListenerRole) -> usize {
        match role {
            ListenerRole::Mx => self.mx.used(),
            ListenerRole::Relay => self.relay.used(),
            ListenerRole::Submission => {
                self.unauthenticated.used() + self.recent_login.used() + self.authenticated.used()
            }
        }
    }

    /// Acquires a slot for a connection; `None` if none is free. `address` is `None` for a connection from a proxy
    /// whose client is not known yet.
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

    #[must_use]
    pub fn next_session_id(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connection and returns whether it is within its address's limit per minute. Loopback is exempt.
    #[must_use]
    pub fn allow_connection(&self, address: IpAddr, per_minute_max: u32, now: Instant) -> bool {
        if per_minute_max == u32::MAX || address.to_canonical().is_loopback() {
            return true;
        }
        let mut rates = self.connection_rates.lock();
        // The entry's time is the start of the minute.
        let minute = rates.entry(client_prefix(address), now, |began| now.duration_since(began) > RATE_WINDOW);
        minute.count = minute.count.saturating_add(1);
        minute.count <= per_minute_max
    }
}

/// A session slot that is not yet counted for its holders; released on drop.
#[derive(Debug)]
pub struct ConnectionSlot {
    limiter: Arc<ConnectionLimiter>,
    role: ListenerRole,
    /// The quota from which the slot was acquired.
    quota: Arc<FairShareQuota>,
}

impl ConnectionSlot {
    /// Counts the slot for this address; `None` if the address, its site or its account has used its share.
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

    /// Counts the slot in `quota`, with at most `max` for the first holder, and moves it there from its present quota.
    /// Returns `None`, and leaves the slot as it is, if the quota refuses.
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

/// A session slot that is counted for its address, and for its site or account; released on drop.
#[derive(Debug)]
pub struct ConnectionPermit {
    quota_permit: QuotaPermit,
    slot: ConnectionSlot,
    address: IpAddr,
    per_address_max: usize,
}

impl ConnectionPermit {
    /// Returns whether few slots are free in the quota of this one.
    pub fn is_near_capacity(&self) -> bool {
        self.slot.quota.is_near_capacity(0)
    }

    /// Moves an authenticated submission session to the slots of authenticated sessions. Returns false, and leaves the
    /// slot where it is, if its account or address has used its share.
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
    fn permits_are_released() {
        let peers = ConnectionLimiter::new(64, 1);
        let permit = admit(&peers, ListenerRole::Mx, "192.0.2.1", 1).unwrap();
        assert!(admit(&peers, ListenerRole::Mx, "::ffff:192.0.2.1", 1).is_none(), "the address has its share");
        let _two = admit(&peers, ListenerRole::Mx, "2001:db8::1", 2).unwrap();
        let _three = admit(&peers, ListenerRole::Mx, "2001:db8::2", 2).unwrap();
        assert!(admit(&peers, ListenerRole::Mx, "2001:db8::3", 2).is_none(), "the /64 has its share");
        assert_eq!(peers.sessions(), 3);
        drop(permit);
        assert!(admit(&peers, ListenerRole::Mx, "192.0.2.1", 1).is_some());
        assert_eq!((peers.sessions_for(ListenerRole::Mx), peers.mx.holders_known()), (2, 3));
    }

    #[test]
    fn the_sessions_of_a_role_are_limited() {
        let peers = ConnectionLimiter::new(2, 1);
        let enter = |role| peers.acquire_slot(role, None, Instant::now());
        let permits = [enter(ListenerRole::Mx).unwrap(), enter(ListenerRole::Mx).unwrap()];
        assert!(
            enter(ListenerRole::Mx).is_none()
                && enter(ListenerRole::Submission).is_some()
                && enter(ListenerRole::Relay).is_some()
        );
        drop(permits);
        assert!(enter(ListenerRole::Mx).is_some() && peers.sessions() == 0);
    }

    #[test]
    fn a_site_has_a_sixteenth_of_the_sessions_at_mx() {
        let peers = ConnectionLimiter::new(160, 1);
        let at = |n: u16| admit(&peers, ListenerRole::Mx, &format!("2001:db8:0:{n:x}::1"), 50);
        let permits: Vec<_> = (0..=0xff).filter_map(at).collect();
        assert_eq!(permits.len(), 10);
        let same_site: Vec<_> = (1..=0xff).filter_map(|n| at(n << 8)).collect();
        assert_eq!(same_site.len(), 10, "an eighth for a /48");
        let other_site = admit(&peers, ListenerRole::Mx, "2001:db8:1::1", 50);
        assert!(other_site.is_some());
        let loopback: Vec<_> = (0..20).filter_map(|_| admit(&peers, ListenerRole::Mx, "127.0.0.1", 50)).collect();
        assert_eq!(loopback.len(), 20, "loopback is not limited");
    }

    #[test]
    fn a_login_moves_the_session_to_the_bounded_quota_of_the_account() {
        let peers = ConnectionLimiter::new(48, 1);
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        // Twelve slots for unauthenticated sessions. An address gets half of its limit and must leave as many free.
        let at = |n: usize| admit(&peers, ListenerRole::Submission, &format!("192.0.2.{n}"), 8);
        let mut same_address: Vec<_> = (0..9).map_while(|_| at(1)).collect();
        assert_eq!(same_address.len(), 4);
        assert!(same_address.iter_mut().all(|permit| permit.authenticate(account(1))));
        assert_eq!((peers.unauthenticated.used(), peers.authenticated.used(), peers.sessions()), (0, 4, 4));
        // Thirty slots for authenticated sessions. An account gets half of them while no other account is connected.
        let mut later = Vec::new();
        loop {
            let mut permit = at(100 + later.len()).unwrap();
            if !permit.authenticate(account(1)) {
                assert_eq!(
                    (peers.unauthenticated.used(), peers.authenticated.used()),
                    (1, 15),
                    "the slot is not moved"
                );
                break;
            }
            later.push(permit);
        }
        assert_eq!(same_address.len() + later.len(), 15);
        let mut other = at(200).unwrap();
        assert!(other.authenticate(account(2)), "another account gets a slot");
        drop((same_address, later, other));
        assert_eq!(
            (peers.sessions(), peers.authenticated.holders_known(), peers.unauthenticated.holders_known()),
            (0, 0, 0)
        );
    }

    fn submission(peers: &Arc<ConnectionLimiter>, from: &str) -> Option<ConnectionPermit> {
        admit(peers, ListenerRole::Submission, from, 8)
    }

    #[test]
    fn unknown_clients_at_submission_do_not_exclude_recent_logins() {
        let peers = ConnectionLimiter::new(40, 1);
        let now = Instant::now();
        let permits: Vec<_> = (0..250).filter_map(|n| submission(&peers, &format!("192.0.2.{n}"))).collect();
        assert_eq!(permits.len(), 9, "one slot is left");
        // A connection from a proxy, before its client is known.
        let enter = || peers.acquire_slot(ListenerRole::Submission, None, now);
        let silent = enter().unwrap();
        assert!(submission(&peers, "198.51.100.1").is_none());
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_none());
        peers.logins.record_success(address("198.51.100.1"), None, now);
        assert!(enter().unwrap().admit(address("198.51.100.1"), 8, now).is_some());
        let mut known = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (1, 0));
        assert!(known.authenticate(None));
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (0, 1));
        drop((permits, silent));
    }

    /// Regression: a session from a known address took a slot of authenticated sessions and was counted for no account,
    /// so that one tenant with twenty addresses locked out all others.
    #[test]
    fn a_tenant_at_many_known_addresses_leaves_sessions_to_the_others() {
        let peers = ConnectionLimiter::new(160, 1);
        let now = Instant::now();
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        let busy: Vec<String> = (1..=60).map(|n| format!("192.0.2.{n}")).collect();
        for from in &busy {
            peers.logins.record_success(address(from), account(1), now);
        }
        peers.logins.record_success(address("198.51.100.1"), account(2), now);
        let silent: Vec<_> = (0..3).flat_map(|_| &busy).filter_map(|from| submission(&peers, from)).collect();
        // Half of the twenty slots for known addresses; the other sessions are unauthenticated.
        assert_eq!((peers.recent_login.used(), peers.authenticated.used()), (10, 0));
        assert_eq!(peers.sessions_for(ListenerRole::Submission), silent.len());
        let mut other = submission(&peers, "198.51.100.1").unwrap();
        assert_eq!(peers.recent_login.used(), 11);
        assert!(other.authenticate(account(2)));
    }

    #[test]
    fn connections_per_minute_are_limited() {
        let (peers, now, from) = (ConnectionLimiter::new(1, 1), Instant::now(), address("192.0.2.1"));
        assert!(peers.allow_connection(from, 2, now) && peers.allow_connection(from, 2, now));
        assert!(!peers.allow_connection(from, 2, now));
        assert!(peers.allow_connection(address("192.0.2.2"), 2, now));
        assert!((0..9).all(|_| peers.allow_connection(address("127.0.0.1"), 2, now)));
        assert!(peers.allow_connection(from, 2, now + RATE_WINDOW + Duration::from_secs(1)));
    }
}
