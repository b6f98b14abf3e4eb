//! Rate limits of sign-in attempts and of the mail that strangers can trigger, in bounded memory.
//!
//! Failures are counted per email and network, and per network. Each counter allows a burst and then one attempt per
//! interval. A third counter per email bounds guessing from many networks. It does not apply to a network from which
//! the email has signed in before, so no client can lock out another user. The forms of a partner portal are counted in
//! the same way, and per program; a partner's known network is exempt from the per-program counter. Known networks of
//! partners are stored apart from those of users. When memory is full, the program with the most partners loses
//! entries.
//!
//! A counter is a timestamp (virtual scheduling, GCRA): each failure advances it by the interval, and an attempt is
//! rejected while it is too far in the future. An attempt counts before the password is verified, so that concurrent
//! attempts are not free; a success is refunded. If the table is full, the oldest entries are evicted; this takes
//! attempts from very many networks.

use httpd::problem::{ErrorCode, Problem};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use model::cidr::client_prefix;
use model::id::{AccountId, ProgramId};

/// A burst, and then one attempt per interval.
#[derive(Debug, Clone, Copy)]
struct AttemptLimit {
    burst: u32,
    interval: Duration,
}

const fn limit(at_once: u32, interval_s: u64) -> AttemptLimit {
    AttemptLimit { burst: at_once, interval: Duration::from_secs(interval_s) }
}

/// Wrong passwords per email and network: ten, then twelve an hour.
const BY_EMAIL_AND_NETWORK: AttemptLimit = limit(10, 300);
/// Failures per network (an IPv4 address, which an office may share, or an IPv6 /64).
const BY_NETWORK: AttemptLimit = limit(50, 20);
/// Wrong passwords per email from unknown networks: about a thousand a day.
const BY_EMAIL: AttemptLimit = limit(100, 90);
/// Wrong one-time passwords per email from unknown networks: about a hundred a day, of a million codes.
const CODES_BY_EMAIL: AttemptLimit = limit(20, 900);
/// Requested links per email and network.
const LINKS_BY_EMAIL_AND_NETWORK: AttemptLimit = limit(5, 180);
/// Requested links per email from unknown networks.
const LINKS_BY_EMAIL: AttemptLimit = limit(20, 180);
/// Submissions of one portal form per program, by all clients together.
const PORTAL_FORM: AttemptLimit = limit(200, 10);
/// Repeated submissions of a form per program and email, where one mail is enough.
const REPEATS: AttemptLimit = limit(1, 300);
/// Invitations per account and email.
const INVITATIONS: AttemptLimit = limit(5, 3600);
const INVITATIONS_BY_ACCOUNT: AttemptLimit = limit(50, 600);
/// Registrations of OAuth clients, and requests of devices, per network.
const OAUTH_REQUESTS: AttemptLimit = limit(20, 120);
/// Notices to the owners of an account per kind (credential, secret, owner).
const NOTICES: AttemptLimit = limit(5, 3600);
/// Time for which a network stays known after a sign-in.
const KNOWN_NETWORK_TTL: Duration = Duration::from_secs(90 * 24 * 3600);
/// Maximum number of counters; also of known networks.
const COUNTERS_MAX: usize = 50_000;

type NetworkKey = Option<IpAddr>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CounterKey {
    Network(NetworkKey),
    EmailAndNetwork(String, NetworkKey),
    Email(String),
    Codes(String),
    LinksOfNetwork(String, NetworkKey),
    Links(String),
    PortalForm(ProgramId, &'static str),
    Repeats(ProgramId, String),
    Invitations(AccountId, String),
    InvitationsOfAccount(AccountId),
    Notices(AccountId, &'static str),
    OAuthRequests(&'static str, NetworkKey),
}

impl CounterKey {
    fn limit(&self) -> AttemptLimit {
        match self {
            Self::Network(_) => BY_NETWORK,
            Self::EmailAndNetwork(..) => BY_EMAIL_AND_NETWORK,
            Self::Email(_) => BY_EMAIL,
            Self::Codes(_) => CODES_BY_EMAIL,
            Self::LinksOfNetwork(..) => LINKS_BY_EMAIL_AND_NETWORK,
            Self::Links(_) => LINKS_BY_EMAIL,
            Self::PortalForm(..) => PORTAL_FORM,
            Self::Repeats(..) => REPEATS,
            Self::Invitations(..) => INVITATIONS,
            Self::InvitationsOfAccount(_) => INVITATIONS_BY_ACCOUNT,
            Self::Notices(..) => NOTICES,
            Self::OAuthRequests(..) => OAUTH_REQUESTS,
        }
    }
}

/// Counts attempts and rejects those above the limits.
#[derive(Debug, Default)]
pub struct SignInRateLimiter(Mutex<AttemptCounters>);

#[derive(Debug, Default)]
struct AttemptCounters {
    /// Time at which the counter is back at zero.
    clear_at: HashMap<CounterKey, Timestamp>,
    known: KnownNetworks,
    /// Known networks of partners, per program. All programs together have as much space as users. When it is full, the
    /// program with the most entries loses half of them, so that no tenant evicts users or smaller programs.
    partners: HashMap<ProgramId, KnownNetworks>,
}

type EmailAtNetwork = (String, NetworkKey);
/// Networks from which an email has signed in, with the time when they are forgotten.
type KnownNetworks = HashMap<EmailAtNetwork, Timestamp>;

/// The identity whose known networks are consulted.
#[derive(Debug)]
enum SignInIdentity {
    User(EmailAtNetwork),
    Partner(ProgramId, EmailAtNetwork),
}

/// An attempt that counts as a failure until [`succeed`](Self::succeed) or [`discard`](Self::discard) is called.
#[derive(Debug)]
#[must_use = "call `succeed` after a successful attempt, so that it does not count"]
pub struct CountedAttempt<'a> {
    limiter: &'a SignInRateLimiter,
    keys: Vec<CounterKey>,
    now: Timestamp,
}

impl SignInRateLimiter {
    /// Counts a sign-in attempt with a password.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn try_password(
        &self,
        from: Option<IpAddr>,
        email: &str,
        now: Timestamp,
    ) -> Result<CountedAttempt<'_>, Problem> {
        let identity = (email.to_lowercase(), from.map(client_prefix));
        let pair = CounterKey::EmailAndNetwork(identity.0.clone(), identity.1);
        let all = vec![CounterKey::Network(identity.1), pair, CounterKey::Email(identity.0.clone())];
        self.try_count(all, Some(&SignInIdentity::User(identity)), now)
    }

    /// Counts an attempt to give a one-time password or recovery code.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn try_code(&self, from: Option<IpAddr>, email: &str, now: Timestamp) -> Result<CountedAttempt<'_>, Problem> {
        let identity = (email.to_lowercase(), from.map(client_prefix));
        let pair = CounterKey::EmailAndNetwork(format!("code {}", identity.0), identity.1);
        let all = vec![CounterKey::Network(identity.1), pair, CounterKey::Codes(identity.0.clone())];
        self.try_count(all, Some(&SignInIdentity::User(identity)), now)
    }

    /// Counts an attempt to use a link token.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn try_token(&self, from: Option<IpAddr>, now: Timestamp) -> Result<CountedAttempt<'_>, Problem> {
        self.try_count(vec![CounterKey::Network(from.map(client_prefix))], None, now)
    }

    /// Counts a request for a link. Unknown addresses count as well, so that the response does not reveal them.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_link_request(&self, from: Option<IpAddr>, email: &str, now: Timestamp) -> Result<(), Problem> {
        let identity = (email.to_lowercase(), from.map(client_prefix));
        let pair = CounterKey::LinksOfNetwork(identity.0.clone(), identity.1);
        let all = vec![CounterKey::Network(identity.1), pair, CounterKey::Links(identity.0.clone())];
        self.try_count(all, Some(&SignInIdentity::User(identity)), now).map(drop)
    }

    /// Counts a portal form that sends mail or triggers a request to another server: per network, per email (also over
    /// all programs), and per program.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_portal_form(
        &self,
        from: Option<IpAddr>,
        program: ProgramId,
        form: &'static str,
        email: &str,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let mut all = form_keys(from, program, form, email);
        all.push(CounterKey::Links(format!("portal {}", email.to_lowercase())));
        all.push(CounterKey::PortalForm(program, form));
        let identity = (email.to_lowercase(), from.map(client_prefix));
        self.try_count(all, Some(&SignInIdentity::Partner(program, identity)), now).map(drop)
    }

    /// Like [`count_portal_form`](Self::count_portal_form), for a signed-in partner: the per-program limit does not
    /// apply.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_partner_form(
        &self,
        from: Option<IpAddr>,
        program: ProgramId,
        form: &'static str,
        email: &str,
        now: Timestamp,
    ) -> Result<(), Problem> {
        self.try_count(form_keys(from, program, form, email), None, now).map(drop)
    }

    /// Remembers the network after a partner's sign-in to a portal.
    pub fn remember_partner_network(&self, from: Option<IpAddr>, program: ProgramId, email: &str, now: Timestamp) {
        let identity = (email.to_lowercase(), from.map(client_prefix));
        let partners = &mut self.lock_counters().partners;
        if !partners.get(&program).is_some_and(|networks| networks.contains_key(&identity)) {
            evict_partner_networks(partners, now);
        }
        partners.entry(program).or_default().insert(identity, saturating_add(now, KNOWN_NETWORK_TTL));
    }

    /// Counts an application by the join form. Returns `None` if the email applied a moment ago and was already mailed.
    pub fn try_join(&self, program: ProgramId, email: &str, now: Timestamp) -> Option<CountedAttempt<'_>> {
        self.try_count(vec![CounterKey::Repeats(program, email.to_lowercase())], None, now).ok()
    }

    /// Counts an invitation by an account.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_invitation(&self, account: AccountId, email: &str, now: Timestamp) -> Result<(), Problem> {
        let to_email = CounterKey::Invitations(account, email.to_lowercase());
        self.try_count(vec![to_email, CounterKey::InvitationsOfAccount(account)], None, now).map(drop)
    }

    /// Counts a notice to an account's owners.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_notice(&self, account: AccountId, kind: &'static str, now: Timestamp) -> Result<(), Problem> {
        self.try_count(vec![CounterKey::Notices(account, kind)], None, now).map(drop)
    }

    /// Counts a registration of an OAuth client or a request of a device: both store a row for a stranger.
    ///
    /// # Errors
    /// 429 `rate_limit_exceeded`.
    pub fn count_oauth_request(&self, from: Option<IpAddr>, kind: &'static str, now: Timestamp) -> Result<(), Problem> {
        self.try_count(vec![CounterKey::OAuthRequests(kind, from.map(client_prefix))], None, now).map(drop)
    }

    /// Remembers the network after a user's sign-in.
    pub fn remember_user_network(&self, from: Option<IpAddr>, email: &str, now: Timestamp) {
        let identity = (email.to_lowercase(), from.map(client_prefix));
        let mut counts = self.lock_counters();
        evict_expired(&mut counts.known, &identity, now);
        counts.known.insert(identity, saturating_add(now, KNOWN_NETWORK_TTL));
    }

    fn lock_counters(&self) -> MutexGuard<'_, AttemptCounters> {
        self.0.lock()
    }

    /// Counts the attempt on all counters, or on none if one of them is exhausted.
    fn try_count(
        &self,
        counted: Vec<CounterKey>,
        visitor: Option<&SignInIdentity>,
        now: Timestamp,
    ) -> Result<CountedAttempt<'_>, Problem> {
        let mut counts = self.lock_counters();
        let is_known = visitor.is_some_and(|visitor| counts.is_known_network(visitor, now));
        for key in &counted {
            // Counters that strangers can exhaust do not apply to known networks.
            let is_shared = matches!(
                key,
                CounterKey::Email(_) | CounterKey::Codes(_) | CounterKey::Links(_) | CounterKey::PortalForm(..)
            );
            let binds = !is_known || !is_shared;
            let wait = counts.retry_after(key, now);
            if binds && !wait.is_zero() {
                let wait_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                return Err(Problem::new(ErrorCode::RATE_LIMIT_EXCEEDED, "Too many attempts; retry later")
                    .with_header(http::header::RETRY_AFTER, wait_s.to_string()));
            }
        }
        for key in &counted {
            evict_expired(&mut counts.clear_at, key, now);
            let clear_at = counts.clear_at.entry(key.clone()).or_insert(now);
            *clear_at = saturating_add((*clear_at).max(now), key.limit().interval);
        }
        drop(counts);
        Ok(CountedAttempt { limiter: self, keys: counted, now })
    }
}

impl AttemptCounters {
    fn is_known_network(&self, visitor: &SignInIdentity, now: Timestamp) -> bool {
        let until = match visitor {
            SignInIdentity::User(identity) => self.known.get(identity),
            SignInIdentity::Partner(program, identity) => {
                self.partners.get(program).and_then(|networks| networks.get(identity))
            }
        };
        until.is_some_and(|until| *until > now)
    }

    /// Time until the counter allows another attempt; zero if it does now.
    fn retry_after(&self, key: &CounterKey, now: Timestamp) -> Duration {
        let AttemptLimit { burst: at_once, interval } = key.limit();
        let ahead = self
            .clear_at
            .get(key)
            .map_or(Duration::ZERO, |clear_at| Duration::try_from(clear_at.duration_since(now)).unwrap_or_default());
        ahead.saturating_sub(interval * at_once.saturating_sub(1))
    }
}

impl CountedAttempt<'_> {
    /// The attempt was successful: it does not count, and the failures of this email and network are forgotten.
    pub fn succeed(self) {
        self.uncount();
        let mut counts = self.limiter.lock_counters();
        for key in self.keys.iter().filter(|key| matches!(key, CounterKey::EmailAndNetwork(..))) {
            counts.clear_at.remove(key);
        }
    }

    /// The attempt ended without a result, for example by a server error: it does not count.
    pub fn discard(self) {
        self.uncount();
    }

    fn uncount(&self) {
        let mut counts = self.limiter.lock_counters();
        for key in &self.keys {
            if let Some(clear_at) = counts.clear_at.get_mut(key) {
                *clear_at = clear_at.checked_sub(key.limit().interval).unwrap_or(self.now);
            }
        }
    }
}

/// Counters of a portal form: per network, per network and email, per email.
fn form_keys(from: Option<IpAddr>, program: ProgramId, form: &'static str, email: &str) -> Vec<CounterKey> {
    let (identity, network) = (format!("{form} {program} {}", email.to_lowercase()), from.map(client_prefix));
    vec![
        CounterKey::Network(network),
        CounterKey::LinksOfNetwork(identity.clone(), network),
        CounterKey::Links(identity),
    ]
}

fn saturating_add(at: Timestamp, time: Duration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// Evicts expired entries of a full table; if none expired, the half that expires first, so that evictions stay rare.
fn evict_expired<K: Eq + Hash>(ends: &mut HashMap<K, Timestamp>, key: &K, now: Timestamp) {
    if ends.len() < COUNTERS_MAX || ends.contains_key(key) {
        return;
    }
    ends.retain(|_, end| *end > now);
    if ends.len() < COUNTERS_MAX {
        return;
    }
    evict_oldest_half(ends);
}

/// Like [`evict_expired`], over all programs: half of the largest program's entries are evicted.
fn evict_partner_networks(partners: &mut HashMap<ProgramId, KnownNetworks>, now: Timestamp) {
    let is_full =
        |partners: &HashMap<_, KnownNetworks>| partners.values().map(HashMap::len).sum::<usize>() >= COUNTERS_MAX;
    if !is_full(partners) {
        return;
    }
    for networks in partners.values_mut() {
        networks.retain(|_, until| *until > now);
    }
    if is_full(partners)
        && let Some(largest) = partners.values_mut().max_by_key(|networks| networks.len())
    {
        evict_oldest_half(largest);
    }
    partners.retain(|_, networks| !networks.is_empty());
}

/// Evicts the half that expires first.
fn evict_oldest_half<K: Eq + Hash>(ends: &mut HashMap<K, Timestamp>) {
    let mut all: Vec<Timestamp> = ends.values().copied().collect();
    if all.is_empty() {
        return;
    }
    let middle = all.len() / 2;
    let (_, middle, _) = all.select_nth_unstable(middle);
    let middle = *middle;
    ends.retain(|_, end| *end > middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn from(n: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(n.into()))
    }

    /// Number of consecutive wrong passwords that are accepted for verification.
    fn wrong(limiter: &SignInRateLimiter, from: Option<IpAddr>, email: &str, now: Timestamp) -> usize {
        (0..1_000).take_while(|_| limiter.try_password(from, email, now).is_ok()).count()
    }

    #[test]
    fn failures_are_limited_per_email_and_network() {
        let limiter = SignInRateLimiter::default();
        assert_eq!(wrong(&limiter, from(1), "A@b.example", at(0)), 10);
        let refused = limiter.try_password(from(1), "a@B.example", at(60)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::RATE_LIMIT_EXCEEDED);
        assert_eq!(refused.headers()[0].1, (300 - 60).to_string());
        assert_eq!(wrong(&limiter, from(1), "a@b.example", at(300)), 1);
        // Other networks of the email and other emails of the network are not affected.
        assert_eq!(wrong(&limiter, from(2), "a@b.example", at(300)), 10);
        assert_eq!(wrong(&limiter, from(1), "c@b.example", at(300)), 10);
        // Many emails from one network share the network's limit.
        let failures: usize = (0..100).map(|n| wrong(&limiter, from(9), &n.to_string(), at(0))).sum();
        assert_eq!(failures, 50);
    }

    #[test]
    fn codes_are_limited_apart_from_passwords() {
        let limiter = SignInRateLimiter::default();
        let wrong_codes =
            |n, now| (0..1_000).take_while(|_| limiter.try_code(from(n), "a@b.example", now).is_ok()).count();
        assert_eq!(wrong_codes(1, at(0)), 10);
        assert_eq!(wrong(&limiter, from(1), "a@b.example", at(0)), 10);
        // Unknown networks together have twenty attempts, and then four an hour; a known network has its own.
        limiter.remember_user_network(from(100), "a@b.example", at(0));
        assert_eq!((2..50).map(|n| wrong_codes(n, at(0))).sum::<usize>(), 10);
        assert_eq!((2..50).map(|n| wrong_codes(n, at(3600))).sum::<usize>(), 4);
        assert_eq!(wrong_codes(100, at(0)), 10);
    }

    #[test]
    fn successful_attempts_do_not_count() {
        let limiter = SignInRateLimiter::default();
        for _ in 0..1_000 {
            limiter.try_password(from(1), "a@b.example", at(0)).unwrap().succeed();
            limiter.try_password(from(1), "a@b.example", at(0)).unwrap().discard();
            limiter.try_token(from(1), at(0)).unwrap().discard();
        }
        assert_eq!(wrong(&limiter, from(1), "a@b.example", at(0)), 10);
        limiter.try_password(from(1), "a@b.example", at(3000)).unwrap().succeed();
        assert_eq!(wrong(&limiter, from(1), "a@b.example", at(3000)), 10, "forgiven");
    }

    #[test]
    fn guessing_from_many_networks_locks_nobody_out() {
        let limiter = SignInRateLimiter::default();
        limiter.remember_user_network(from(1), "A@b.example", at(0));
        let failures: usize = (100..200).map(|n| wrong(&limiter, from(n), "a@b.example", at(0))).sum();
        assert_eq!(failures, 100);
        assert_eq!(wrong(&limiter, from(2), "a@b.example", at(0)), 0);
        assert_eq!(wrong(&limiter, from(2), "a@b.example", at(90)), 1);
        assert_eq!(wrong(&limiter, from(1), "a@b.example", at(0)), 10, "a known network");
        for n in 100..200 {
            let _ = limiter.count_link_request(from(n), "a@b.example", at(0));
        }
        assert!(limiter.count_link_request(from(2), "a@b.example", at(0)).is_err());
        limiter.count_link_request(from(1), "a@b.example", at(0)).unwrap();
    }

    #[test]
    fn portal_forms_are_limited_by_network_email_and_program() {
        let (limiter, program) = (SignInRateLimiter::default(), ProgramId::new(at(0), 1));
        let sent = |from_n: &dyn Fn(u32) -> u32, email: &dyn Fn(u32) -> String, form: &'static str| {
            let send = |n: &u32| limiter.count_portal_form(from(from_n(*n)), program, form, &email(*n), at(0)).is_ok();
            (0..1_000).filter(send).count()
        };
        // One network with many addresses; one address from many networks; one program.
        assert_eq!(sent(&|_| 1, &|n| format!("{n}@one.example"), "join"), 50);
        assert_eq!(sent(&|n| 1_000 + n, &|_| "a@b.example".to_owned(), "join"), 20);
        assert_eq!(sent(&|n| 10_000 + n, &|n| format!("{n}@two.example"), "join"), 200 - 50 - 20);
        // The sign-in form has its own limit per program, but the limit per address is shared.
        assert_eq!(sent(&|n| 20_000 + n, &|n| format!("{n}@three.example"), "sign-in"), 200);
        let other = ProgramId::new(at(0), 2);
        let join = |now| limiter.count_portal_form(from(30_000), other, "join", "A@b.example", now);
        assert!(join(at(0)).is_err(), "of all programs together");
        assert!(join(at(180)).is_ok());
    }

    #[test]
    fn portal_form_floods_lock_no_partner_out() {
        let (limiter, program) = (SignInRateLimiter::default(), ProgramId::new(at(0), 1));
        limiter.remember_partner_network(from(1), program, "P@partner.example", at(0));
        let sign_in = |n, email: &str| limiter.count_portal_form(from(n), program, "sign-in", email, at(0)).is_ok();
        // Four networks exhaust the program's sign-in limit and the limit of the partner's address.
        assert_eq!((0..1_000).filter(|n| sign_in(100 + n / 250, &format!("{n}@x.example"))).count(), 200);
        (0..100)
            .for_each(|n| drop(limiter.count_portal_form(from(200 + n), program, "join", "p@partner.example", at(0))));
        assert!(!sign_in(2, "p@partner.example"), "a stranger");
        assert!(!sign_in(1, "q@partner.example"), "somebody else where the partner is");
        assert_eq!((0..9).filter(|_| sign_in(1, "p@partner.example")).count(), 5, "by email and network");
        assert!(
            limiter
                .count_portal_form(from(1), ProgramId::new(at(0), 2), "sign-in", "p@partner.example", at(0))
                .is_err(),
            "another program's partner"
        );
        // A signed-in partner is limited only by their own requests.
        let is_accepted =
            |n: &u32| limiter.count_partner_form(from(50 + n), program, "sign-in", "r@partner.example", at(0)).is_ok();
        assert_eq!((0..100).filter(is_accepted).count(), 20);
    }

    /// Regression: partners and users shared one table, and one large program evicted all other entries.
    #[test]
    fn a_large_program_evicts_no_other_known_networks() {
        let (limiter, small, large) =
            (SignInRateLimiter::default(), ProgramId::new(at(0), 1), ProgramId::new(at(0), 2));
        limiter.remember_user_network(from(1), "a@b.example", at(0));
        limiter.remember_partner_network(from(1), small, "p@partner.example", at(0));
        for n in 0..200_000 {
            limiter.remember_partner_network(from(n), large, &format!("{n}@x.example"), at(i64::from(n)));
        }
        let now = at(200_000);
        let failures: usize = (100..200).map(|n| wrong(&limiter, from(n), "a@b.example", now)).sum();
        assert_eq!((failures, wrong(&limiter, from(1), "a@b.example", now)), (100, 10));
        for (program, email, n) in [(small, "p@partner.example", 1), (large, "199999@x.example", 199_999)] {
            for n in 1_000_000..1_000_100 {
                drop(limiter.count_portal_form(from(n), program, "sign-in", email, now));
            }
            assert!(limiter.count_portal_form(from(n), program, "sign-in", email, now).is_ok(), "{email}");
        }
    }

    #[test]
    fn a_repeated_join_form_is_ignored() {
        let (limiter, program) = (SignInRateLimiter::default(), ProgramId::new(at(0), 1));
        limiter.try_join(program, "a@b.example", at(0)).unwrap().discard();
        let _ = limiter.try_join(program, "a@b.example", at(0)).unwrap();
        assert!(limiter.try_join(program, "A@b.example", at(299)).is_none());
        assert!(limiter.try_join(program, "c@b.example", at(0)).is_some());
        assert!(limiter.try_join(program, "a@b.example", at(300)).is_some());
    }

    #[test]
    fn invitations_are_limited_per_account() {
        let (limiter, account) = (SignInRateLimiter::default(), AccountId::new(at(0), 1));
        let invitations = (0..200).filter(|n| limiter.count_invitation(account, &n.to_string(), at(0)).is_ok());
        assert_eq!(invitations.count(), 50);
    }

    #[test]
    fn memory_is_bounded() {
        let limiter = SignInRateLimiter::default();
        for n in 0..2 * u32::try_from(COUNTERS_MAX).unwrap() {
            let _ = limiter.count_link_request(from(n), &n.to_string(), at(100_000));
            limiter.remember_user_network(from(n), "a@b.example", at(i64::from(n)));
        }
        let counts = limiter.lock_counters();
        assert!(counts.clear_at.len() <= COUNTERS_MAX + 1 && counts.known.len() <= COUNTERS_MAX);
    }
}
