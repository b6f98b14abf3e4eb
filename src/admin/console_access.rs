//! Sign-in to the operator's console: one-time links and sessions, in the memory of this process.
//!
//! ```text
//! `admin console` ─► link (15 minutes, used once) ─► session (12 hours, 1 hour without a request) ─► sign-out, restart
//! ```
//!
//! Only hashes of tokens are kept. Tokens have 256 random bits, so they cannot be guessed; the limit of wrong tokens
//! bounds the work and the log lines that a client can cause. Each table is bounded: the oldest entry is dropped.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use ::net::clock::Clock;
use ::net::entropy::Entropy;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use model::cidr::client_prefix;

/// Lifetime of a link.
const LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// Longest session.
pub const SESSION_AGE_MAX: Duration = Duration::from_secs(12 * 3600);
/// A session without a request for this long ends.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Links that can be open at the same time.
const LINKS_MAX: usize = 16;
/// Concurrent sessions.
const SESSIONS_MAX: usize = 64;
/// Wrong tokens of a network in [`WRONG_WINDOW`]; more are refused unread.
const WRONG_MAX: u32 = 10;
const WRONG_WINDOW: Duration = Duration::from_secs(60);
/// Networks with wrong tokens that are counted.
const NETWORKS_MAX: usize = 1_000;

type TokenHash = [u8; 32];

/// Links and sessions of the console.
#[derive(Debug)]
pub struct ConsoleAccess {
    clock: Clock,
    entropy: Entropy,
    /// URL of the console without a trailing slash; unset while no listener serves it.
    base_url: OnceLock<String>,
    state: Mutex<AccessState>,
}

#[derive(Debug, Default)]
struct AccessState {
    links: Vec<OpenLink>,
    sessions: Vec<OpenSession>,
    wrong: HashMap<Option<IpAddr>, WrongTokens>,
}

#[derive(Debug)]
struct OpenLink {
    hash: TokenHash,
    expires_at: Timestamp,
}

#[derive(Debug)]
struct OpenSession {
    hash: TokenHash,
    csrf: String,
    started_at: Timestamp,
    last_request_at: Timestamp,
}

#[derive(Debug)]
struct WrongTokens {
    until: Timestamp,
    count: u32,
}

/// A one-time link.
#[derive(Debug)]
pub struct ConsoleLink {
    pub url: String,
    pub expires_at: Timestamp,
}

/// A live session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleSession {
    /// Token of the forms.
    pub csrf: String,
    pub started_at: Timestamp,
}

/// A link that does not sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// Unknown, used, or expired.
    Wrong,
    /// The network sent too many wrong tokens.
    TooMany,
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

fn hash(token: &str) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

impl ConsoleAccess {
    pub fn new(clock: Clock, entropy: Entropy) -> Self {
        Self { clock, entropy, base_url: OnceLock::new(), state: Mutex::default() }
    }

    /// Sets the URL of the console, unless it is set.
    pub fn set_base_url(&self, url: impl Into<String>) {
        let _ = self.base_url.set(url.into());
    }

    fn token(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.entropy.secret())
    }

    /// Creates a link; `None` if no listener serves the console.
    pub fn create_link(&self, path: &str) -> Option<ConsoleLink> {
        let base_url = self.base_url.get()?;
        let (token, expires_at) = (self.token(), after(self.clock.now(), LINK_TTL));
        let mut state = self.state.lock();
        push_bounded(&mut state.links, OpenLink { hash: hash(&token), expires_at }, LINKS_MAX);
        Some(ConsoleLink { url: format!("{base_url}{path}/{token}"), expires_at })
    }

    /// Uses a link and begins a session. Returns the session's token.
    ///
    /// # Errors
    /// The token is wrong, or too many were.
    pub fn sign_in(&self, link: &str, from: Option<IpAddr>) -> Result<String, LinkError> {
        let (now, network) = (self.clock.now(), from.map(client_prefix));
        let mut state = self.state.lock();
        // First of all, so that a network above the limit causes no further work.
        if state.wrong.get(&network).is_some_and(|wrong| now < wrong.until && wrong.count >= WRONG_MAX) {
            return Err(LinkError::TooMany);
        }
        let hash_of_link = hash(link);
        state.links.retain(|link| now < link.expires_at);
        let Some(found) = state.links.iter().position(|link| link.hash == hash_of_link) else {
            state.count_wrong(network, now);
            return Err(LinkError::Wrong);
        };
        state.links.remove(found);
        let token = self.token();
        let session = OpenSession { hash: hash(&token), csrf: self.token(), started_at: now, last_request_at: now };
        push_bounded(&mut state.sessions, session, SESSIONS_MAX);
        Ok(token)
    }

    /// The live session of a token; its idle time begins anew.
    pub fn session(&self, token: &str) -> Option<ConsoleSession> {
        let (now, hash) = (self.clock.now(), hash(token));
        let mut state = self.state.lock();
        state.sessions.retain(|session| {
            now < after(session.started_at, SESSION_AGE_MAX) && now < after(session.last_request_at, SESSION_IDLE_MAX)
        });
        let session = state.sessions.iter_mut().find(|session| session.hash == hash)?;
        session.last_request_at = now;
        Some(ConsoleSession { csrf: session.csrf.clone(), started_at: session.started_at })
    }

    /// Ends a session.
    pub fn sign_out(&self, token: &str) {
        let hash = hash(token);
        self.state.lock().sessions.retain(|session| session.hash != hash);
    }
}

fn push_bounded<T>(entries: &mut Vec<T>, entry: T, max: usize) {
    if entries.len() >= max {
        entries.remove(0);
    }
    entries.push(entry);
}

impl AccessState {
    fn count_wrong(&mut self, network: Option<IpAddr>, now: Timestamp) {
        if self.wrong.len() >= NETWORKS_MAX {
            self.wrong.retain(|_, wrong| now < wrong.until);
        }
        if self.wrong.len() >= NETWORKS_MAX {
            self.wrong.clear();
        }
        let wrong = self.wrong.entry(network).or_insert(WrongTokens { until: Timestamp::MIN, count: 0 });
        if wrong.until <= now {
            *wrong = WrongTokens { until: after(now, WRONG_WINDOW), count: 0 };
        }
        wrong.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> ConsoleAccess {
        let access = ConsoleAccess::new(Clock::default(), Entropy::default());
        access.set_base_url("http://127.0.0.1:9025");
        access
    }

    fn token(access: &ConsoleAccess) -> String {
        let link = access.create_link("/console/sign-in").unwrap();
        link.url.strip_prefix("http://127.0.0.1:9025/console/sign-in/").unwrap().to_owned()
    }

    #[test]
    fn a_link_is_used_once_within_its_time() {
        let access = access();
        let link = token(&access);
        let session = access.sign_in(&link, None).unwrap();
        assert!(access.session(&session).is_some());
        assert_eq!(access.sign_in(&link, None), Err(LinkError::Wrong));
        let late = token(&access);
        access.clock.advance(LINK_TTL);
        assert_eq!(access.sign_in(&late, None), Err(LinkError::Wrong));
        assert!(ConsoleAccess::new(Clock::default(), Entropy::default()).create_link("/x").is_none());
    }

    #[test]
    fn sessions_end() {
        let access = access();
        let sign_in = || access.sign_in(&token(&access), None).unwrap();
        let (idle, signed_out) = (sign_in(), sign_in());
        assert_ne!(access.session(&idle).unwrap().csrf, access.session(&signed_out).unwrap().csrf);
        access.sign_out(&signed_out);
        assert_eq!(access.session(&signed_out), None);
        access.clock.advance(SESSION_IDLE_MAX);
        assert_eq!(access.session(&idle), None);
        let busy = sign_in();
        for _ in 0..23 {
            access.clock.advance(SESSION_IDLE_MAX / 2);
            assert!(access.session(&busy).is_some());
        }
        access.clock.advance(SESSION_IDLE_MAX / 2);
        assert_eq!(access.session(&busy), None, "a session has a longest age");
    }

    #[test]
    fn wrong_tokens_are_limited_by_network() {
        let access = access();
        let (one, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        for _ in 0..WRONG_MAX {
            assert_eq!(access.sign_in("wrong", one), Err(LinkError::Wrong));
        }
        let link = token(&access);
        assert_eq!(access.sign_in(&link, one), Err(LinkError::TooMany), "the link is not even looked up");
        assert!(access.sign_in(&link, other).is_ok(), "another network is not locked out");
        access.clock.advance(WRONG_WINDOW);
        assert_eq!(access.sign_in("wrong", one), Err(LinkError::Wrong));
    }

    #[test]
    fn tables_are_bounded() {
        let access = access();
        for n in 0..2 * NETWORKS_MAX {
            let network = IpAddr::from(u32::try_from(n).unwrap().to_be_bytes());
            let _ = access.sign_in("wrong", Some(network));
        }
        let links: Vec<_> = (0..=LINKS_MAX).map(|_| token(&access)).collect();
        assert_eq!(access.sign_in(&links[0], None), Err(LinkError::Wrong), "the oldest link is dropped");
        for _ in 0..2 * SESSIONS_MAX {
            access.sign_in(&token(&access), None).unwrap();
        }
        let state = access.state.lock();
        assert!(state.wrong.len() <= NETWORKS_MAX && state.sessions.len() == SESSIONS_MAX);
    }
}
