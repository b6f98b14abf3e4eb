//! Throttles failed logins: each refusal is delayed, longer after more failures. A correct login is answered at once.
//!
//! Failures are counted by address and by credential. Counters expire 15 minutes after the last failure. The delay
//! follows the check of the login, so no client is locked out by failures of others from the same address. Passwords are
//! 190 random bits, so the aim is not to stop guessing but to limit its cost. The number of refusals that wait (tarpit)
//! is bounded per address and in total. Beyond it a refusal is sent at once and the connection is closed.
//!
//! An address with a recent successful login is remembered for a week with its last account. Its connections count
//! against that account and not as untrusted ones ([`crate::connection_limiter`]). The number of addresses remembered per account is
//! bounded, so that an account with very many addresses does not evict those of others.

use net::limit::bounded_counters::BoundedCounters;
use net::limit::fair_share::QuotaHolder;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use model::cidr::client_prefix;
use model::id::AccountId;
use model::log_limit::LogLimit;
use tokio::time::Instant;

use crate::handler::SaslCredentials;

/// Addresses and credentials with counted failures, and addresses with a recent login.
const TRACKED_MAX: usize = 16_384;
/// The delay of the first refusal; each recent failure doubles it.
const DELAY_FIRST: Duration = Duration::from_millis(100);
/// The longest delay of a refusal.
const DELAY_MAX: Duration = Duration::from_secs(10);
/// A counter expires this long after its last failure.
const FORGET_AFTER: Duration = Duration::from_secs(900);
/// How long a successful login from an address is remembered.
const LAST_LOGIN_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Addresses remembered per account.
const ADDRESSES_PER_ACCOUNT_MAX: usize = 64;
/// Concurrently delayed refusals per address.
const TARPIT_PER_ADDRESS_MAX: usize = 16;
/// Concurrently delayed refusals in total.
const TARPIT_MAX: usize = 1_024;

/// Counters of failed logins and the recent successful ones. No panic can leave the counters inconsistent: every
/// statement leaves them complete.
#[derive(Debug)]
pub struct LoginThrottle {
    failures: Mutex<FailureCounters>,
    /// Time and account of the last successful login, by address.
    last_logins: Mutex<BoundedCounters<IpAddr, LastLogin>>,
    tarpit: Mutex<TarpitCounters>,
    hasher: RandomState,
    log: Mutex<LogLimit>,
    began: Instant,
}

type LastLogin = (Instant, Option<AccountId>);

#[derive(Debug)]
struct FailureCounters {
    by_address: BoundedCounters<IpAddr, Instant>,
    by_credential: BoundedCounters<u64, Instant>,
}

#[derive(Debug, Default)]
struct TarpitCounters {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Default for LoginThrottle {
    fn default() -> Self {
        let failures = FailureCounters {
            by_address: BoundedCounters::new(TRACKED_MAX),
            by_credential: BoundedCounters::new(TRACKED_MAX),
        };
        Self {
            failures: Mutex::new(failures),
            last_logins: Mutex::new(BoundedCounters::new(TRACKED_MAX)),
            tarpit: Mutex::default(),
            hasher: RandomState::new(),
            log: Mutex::default(),
            began: Instant::now(),
        }
    }
}

impl LoginThrottle {
    /// Counts a failed login and returns the delay of its refusal.
    #[must_use]
    pub fn record_failure(&self, address: IpAddr, credential: u64, now: Instant) -> Duration {
        let FailureCounters { by_address, by_credential } = &mut *self.failures.lock();
        let by_address = increment(by_address, client_prefix(address), now);
        let by_credential = increment(by_credential, credential, now);
        let doublings = (by_address.max(by_credential) - 1).min(16);
        DELAY_FIRST.saturating_mul(1 << doublings).min(DELAY_MAX)
    }

    /// Requests a log line for a failed login, at most ten a minute. Returns the number of lines suppressed since the
    /// last one, or `None` if this line is suppressed too.
    #[must_use]
    pub fn take_log_line(&self, now: Instant) -> Option<u64> {
        self.log.lock().take(now.saturating_duration_since(self.began))
    }

    /// Records a successful login. `account` is `None` if the server has no accounts.
    pub fn record_success(&self, address: IpAddr, account: Option<AccountId>, now: Instant) {
        let (address, is_expired) =
            (client_prefix(address), |(at, _): LastLogin| now.duration_since(at) > LAST_LOGIN_TTL);
        let mut logins = self.last_logins.lock();
        let is_new = logins.get(&address, is_expired).is_none_or(|entry| entry.at.1 != account);
        if is_new && account.is_some() {
            logins.evict_oldest_among(ADDRESSES_PER_ACCOUNT_MAX, |(_, owner)| owner == account);
        }
        logins.entry(address, (now, account), is_expired).at = (now, account);
    }

    /// The quota holder of a connection from this address, if there was a recent login from it.
    pub fn known_holder(&self, address: IpAddr, now: Instant) -> Option<QuotaHolder> {
        let is_expired = |(at, _): LastLogin| now.duration_since(at) > LAST_LOGIN_TTL;
        let (_, account) = self.last_logins.lock().get(&client_prefix(address), is_expired)?.at;
        Some(account.map_or_else(|| QuotaHolder::for_site(address), QuotaHolder::Account))
    }

    /// Acquires a permit to delay a refusal; `None` if too many are delayed already.
    #[must_use]
    pub fn acquire_tarpit(self: &Arc<Self>, address: IpAddr) -> Option<TarpitPermit> {
        let address = client_prefix(address);
        let mut waiting = self.tarpit.lock();
        let permits = waiting.by_address.get(&address).copied().unwrap_or(0);
        if permits >= TARPIT_PER_ADDRESS_MAX || waiting.all >= TARPIT_MAX {
            return None;
        }
        waiting.by_address.insert(address, permits + 1);
        waiting.all += 1;
        Some(TarpitPermit { logins: Arc::clone(self), address })
    }

    /// Key of a credential in the failure counters: a keyed hash.
    pub fn credential_key(&self, credentials: &SaslCredentials) -> u64 {
        self.hasher.hash_one((&credentials.username, &credentials.password))
    }
}

fn increment<K: std::hash::Hash + Eq>(counts: &mut BoundedCounters<K, Instant>, key: K, now: Instant) -> u32 {
    let entry = counts.entry(key, now, |at| now.duration_since(at) > FORGET_AFTER);
    (entry.count, entry.at) = (entry.count.saturating_add(1), now);
    entry.count
}

/// Permit of one delayed refusal; released on drop.
#[derive(Debug)]
pub struct TarpitPermit {
    logins: Arc<LoginThrottle>,
    address: IpAddr,
}

impl Drop for TarpitPermit {
    fn drop(&mut self) {
        let mut waiting = self.logins.tarpit.lock();
        waiting.all -= 1;
        if let Some(permits) = waiting.by_address.get_mut(&self.address) {
            *permits -= 1;
            if *permits == 0 {
                waiting.by_address.remove(&self.address);
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
    fn failed_logins_are_delayed_and_expire() {
        let (logins, now, from) = (LoginThrottle::default(), Instant::now(), address("192.0.2.1"));
        assert_eq!(logins.record_failure(from, 1, now), DELAY_FIRST);
        assert_eq!(logins.record_failure(from, 2, now), DELAY_FIRST * 2);
        // Failures of a credential count from every address.
        assert_eq!(logins.record_failure(address("192.0.2.2"), 2, now), DELAY_FIRST * 2);
        assert!((3..1_000).all(|n| logins.record_failure(from, n, now) <= DELAY_MAX));
        let later = now + FORGET_AFTER + Duration::from_secs(1);
        assert_eq!(logins.record_failure(from, 1, later), DELAY_FIRST);
    }

    #[test]
    fn an_address_is_known_for_a_week_after_a_login() {
        let (logins, now, from) = (LoginThrottle::default(), Instant::now(), address("192.0.2.1"));
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        assert!(logins.known_holder(from, now).is_none());
        logins.record_success(from, account(1), now);
        logins.record_success(from, account(2), now);
        assert_eq!(logins.known_holder(from, now + LAST_LOGIN_TTL), account(2).map(QuotaHolder::Account));
        assert!(logins.known_holder(address("192.0.2.2"), now).is_none());
        assert!(logins.known_holder(from, now + LAST_LOGIN_TTL + Duration::from_secs(1)).is_none());
    }

    #[test]
    fn an_account_with_many_addresses_does_not_evict_those_of_others() {
        let (logins, now, from) = (LoginThrottle::default(), Instant::now(), address("192.0.2.1"));
        let account = |n: u8| Some(AccountId::from_bytes([n; 16]));
        logins.record_success(from, account(1), now);
        for n in 0..(2 * TRACKED_MAX as u32) {
            let login_at = now + Duration::from_millis(n.into());
            logins.record_success(IpAddr::V4((0x0A00_0000 + n).into()), account(2), login_at);
        }
        assert_eq!(logins.known_holder(from, now), account(1).map(QuotaHolder::Account));
        assert!(logins.last_logins.lock().len() <= 1 + ADDRESSES_PER_ACCOUNT_MAX);
    }

    #[test]
    fn delayed_refusals_are_limited() {
        let logins = Arc::new(LoginThrottle::default());
        let wait = |from: &str| logins.acquire_tarpit(address(from));
        let same_address: Vec<_> = std::iter::from_fn(|| wait("192.0.2.1")).collect();
        assert_eq!(same_address.len(), TARPIT_PER_ADDRESS_MAX);
        let others: Vec<_> =
            (0..2_000).map_while(|n: u32| logins.acquire_tarpit(IpAddr::V4((0x0A00_0000 + n).into()))).collect();
        assert_eq!(others.len(), TARPIT_MAX - TARPIT_PER_ADDRESS_MAX);
        assert!(wait("192.0.2.2").is_none());
        drop((same_address, others));
        assert!(wait("192.0.2.2").is_some() && logins.tarpit.lock().by_address.is_empty());
    }

    #[test]
    fn a_distributed_attack_neither_fills_nor_clears_the_tables() {
        let (logins, now) = (LoginThrottle::default(), Instant::now());
        let time_of = |n: u32| now + Duration::from_millis(n.into());
        let attacker = address("192.0.2.1");
        for n in 0..(2 * TRACKED_MAX as u32) {
            let _ = logins.record_failure(IpAddr::V4(n.into()), u64::from(n), time_of(n));
            // The guesser continues: its counter is not evicted by the others.
            if n % 1_000 == 0 {
                let _ = logins.record_failure(attacker, u64::MAX, time_of(n));
            }
        }
        assert!(logins.failures.lock().by_address.len() <= TRACKED_MAX);
        assert_eq!(logins.record_failure(attacker, 0, time_of(2 * TRACKED_MAX as u32)), DELAY_MAX);
    }
}
