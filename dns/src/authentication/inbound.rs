//! Checks the sender authentication of a received message: SPF, DKIM, DMARC, ARC and iprev.
//!
//! ```text
//! SPF of the HELO name · SPF of the reverse path · DKIM · ARC · iprev, in parallel ─► DMARC ─► AuthenticationVerdict
//! ```
//!
//! A message is untrusted. The limits are:
//!
//! - signatures and ARC sets per message, and messages at once,
//! - lookups and void lookups per SPF evaluation (RFC 7208 4.6.4),
//! - time, after which an unknown result is `temperror`.
//!
//! A panic in the parser ends only its task, and every result of the message is then `temperror`.

mod arc;
mod dmarc;
mod results;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hickory_resolver::proto::rr::{RData, RecordType};
use jiff::Timestamp;
use mail_auth::AuthenticatedMessage;
use message::address::{Address, DomainName};
use message::dmarc::DmarcPolicy;
use message::received::{AuthResult, AuthenticationResults, author_domain};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::dmarc::{AuthenticatedIdentifier, DmarcUnavailable};
use super::{DkimKeySource, DkimVerdict, limit_signatures, verify_signatures};
use crate::resolver::{Resolver, parse_wire_name};
use crate::spf::{SpfOutcome, SpfQuery, check_host};

/// Maximum messages checked at once: most of the time is spent waiting for name servers.
const CHECKS_MAX: usize = 512;
/// Maximum large messages checked at once: each keeps a thread busy with hashing.
const LARGE_CHECKS_MAX: usize = 64;
/// A message above this size is large.
const LARGE_BYTES: usize = 256 << 10;
/// Timeout of SPF, DKIM, ARC and iprev, which run in parallel.
const DEADLINE: Duration = Duration::from_secs(7);
/// Timeout of DMARC, which runs after them.
const DMARC_DEADLINE: Duration = Duration::from_secs(3);
/// How long a message waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum PTR names of a client that are looked up (RFC 8601 2.7.3).
const HOST_NAMES_MAX: usize = 4;
/// Maximum authenticated domains of a message.
const AUTHENTICATED_MAX: usize = 10;

static PERMITS: Semaphore = Semaphore::const_new(CHECKS_MAX);
static LARGE_PERMITS: Semaphore = Semaphore::const_new(LARGE_CHECKS_MAX);

/// The facts of the session that delivered a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSource {
    /// The client's address.
    pub peer: IpAddr,
    /// The client's HELO or EHLO name.
    pub helo: String,
    /// The envelope sender; `None` is the null reverse path.
    pub reverse_path: Option<Address>,
    /// The host name of this server.
    pub hostname: DomainName,
    pub received_at: Timestamp,
}

/// The domain of the author in the From field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorDomain {
    /// One author, in this domain.
    Single(DomainName),
    /// No author, several, or an invalid field: DMARC cannot be evaluated (RFC 7489 6.6.1).
    Invalid,
    /// Not determined, because the check did not run.
    Unchecked,
}

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationVerdict {
    /// The combined results.
    pub auth: AuthenticationResults,
    /// SPF of the HELO name.
    pub helo: AuthResult,
    /// The explanation of an SPF fail by the owner of the reverse path's domain; untrusted text.
    pub spf_explanation: Option<String>,
    /// Reverse DNS: the client's address resolves to a name that resolves back to it (RFC 8601 3).
    pub iprev: AuthResult,
    /// The verdicts on the DKIM signatures, in the order of the header.
    pub dkim: Vec<DkimVerdict>,
    pub author: AuthorDomain,
    /// The DMARC policy of the author's domain.
    pub policy: DmarcPolicy,
    /// Domains of valid signatures, and of the reverse path if SPF passes.
    pub authenticated: Vec<DomainName>,
    source: MessageSource,
}

/// Checks a message. The result is `temperror` everywhere if there is no permit in time, or the check panics.
pub fn authenticate<'a>(
    resolver: &'a Resolver,
    message: Bytes,
    source: MessageSource,
) -> BoxFuture<'a, AuthenticationVerdict> {
    Box::pin(async move {
        let permits = if message.len() > LARGE_BYTES { &LARGE_PERMITS } else { &PERMITS };
        let unknown = AuthenticationVerdict::unknown(source.clone());
        // The semaphores are never closed.
        let Ok(Ok(permit)) = timeout(QUEUE_TIMEOUT, permits.acquire()).await else { return unknown };
        let resolver = resolver.clone();
        let checks = async move {
            let _permit = permit;
            run_checks(&resolver, &message, source).await
        };
        let outcome = if std::ptr::eq(permits, &raw const LARGE_PERMITS) {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(checks)).await
        } else {
            tokio::spawn(checks).await
        };
        outcome.unwrap_or_else(|error| {
            tracing::warn!(%error, "the sender authentication of a message failed");
            unknown
        })
    })
}

async fn run_checks(resolver: &Resolver, raw: &[u8], source: MessageSource) -> AuthenticationVerdict {
    let message = limit_signatures(AuthenticatedMessage::parse(raw).unwrap_or_default());
    let author = find_author(raw, &message);
    let keys = DkimKeySource::Dns(resolver.clone());
    let (helo, mail, dkim, arc, iprev) = tokio::join!(
        check_spf(resolver, &source, None),
        check_spf(resolver, &source, source.reverse_path.as_ref()),
        verify_signatures(&message, &keys, DEADLINE),
        arc::verify_chain(&message, &keys, DEADLINE),
        check_iprev(resolver, source.peer),
    );
    // With a null reverse path, SPF uses the HELO name (RFC 7208 2.4).
    let sender = if source.reverse_path.is_some() { &mail } else { &helo };
    let (spf, sender_domain) = (sender.result, sender_domain(&source));
    let proof = authenticated_identifier(spf, sender_domain.as_ref());
    let (dmarc, policy) = match &author {
        AuthorDomain::Single(domain) => check_dmarc(resolver, domain, proof, &dkim).await,
        AuthorDomain::Invalid | AuthorDomain::Unchecked => (AuthResult::PermError, DmarcPolicy::None),
    };
    let auth = AuthenticationResults { spf, dkim: combine_dkim(&dkim), dmarc, arc };
    let passed = sender_domain.filter(|_| auth.spf == AuthResult::Pass);
    let signed = dkim.iter().filter(|verdict| verdict.result == AuthResult::Pass);
    let mut authenticated: Vec<DomainName> = Vec::new();
    for name in signed.filter_map(|verdict| verdict.domain.parse().ok()).chain(passed) {
        if !authenticated.contains(&name) && authenticated.len() < AUTHENTICATED_MAX {
            authenticated.push(name);
        }
    }
    let spf_explanation = sender.explanation.clone();
    let helo = helo.result;
    AuthenticationVerdict { auth, helo, spf_explanation, iprev, dkim, author, policy, authenticated, source }
}

impl AuthenticationVerdict {
    /// The authenticated domains. Empty if the message has several authors, since a signature may then cover a From
    /// field other than the one that is displayed.
    pub fn authenticated_domains(&self) -> &[DomainName] {
        match self.author {
            AuthorDomain::Single(_) => &self.authenticated,
            AuthorDomain::Invalid | AuthorDomain::Unchecked => &[],
        }
    }

    /// The authenticated domains of a TLS report: also those of signatures whose key is for TLS reports only (RFC 8460
    /// 3).
    pub fn authenticated_for_tls_report(&self) -> Vec<DomainName> {
        let signatures = self.dkim.iter().filter(|verdict| verdict.is_valid_for_tls_reports);
        let signed = signatures.filter_map(|verdict| verdict.domain.parse().ok());
        match self.author {
            AuthorDomain::Single(_) => self.authenticated.iter().cloned().chain(signed).collect(),
            AuthorDomain::Invalid | AuthorDomain::Unchecked => Vec::new(),
        }
    }
}

/// The author's domain, if this crate's parser and mail-auth agree on the From field.
fn find_author(raw: &[u8], message: &AuthenticatedMessage<'_>) -> AuthorDomain {
    let [author] = message.from.as_slice() else { return AuthorDomain::Invalid };
    let mail_auth_domain = author.rsplit_once('@').and_then(|(_, domain)| domain.parse::<DomainName>().ok());
    match author_domain(raw) {
        Some(domain) if Some(&domain) == mail_auth_domain.as_ref() => AuthorDomain::Single(domain),
        _ => AuthorDomain::Invalid,
    }
}

fn sender_domain(source: &MessageSource) -> Option<DomainName> {
    match &source.reverse_path {
        Some(path) => Some(path.domain().clone()),
        None => source.helo.parse().ok(),
    }
}

/// The identifier that a result authenticates, or may authenticate after a retry.
fn authenticated_identifier(result: AuthResult, domain: Option<&DomainName>) -> Option<AuthenticatedIdentifier> {
    let is_verified = match result {
        AuthResult::Pass => true,
        AuthResult::TempError => false,
        _ => return None,
    };
    Some(AuthenticatedIdentifier { domain: domain?.clone(), is_verified })
}

async fn check_spf(resolver: &Resolver, source: &MessageSource, path: Option<&Address>) -> SpfOutcome {
    let hello = source.helo.trim_end_matches('.');
    let (local, domain) = path.map_or(("", hello), |path| (path.local_part(), path.domain().as_str()));
    let receiver = (source.hostname.as_str(), source.received_at);
    check_host(resolver, &SpfQuery { peer: source.peer, hello, local, domain, receiver }, DEADLINE).await
}

/// Checks whether an address resolves to a name that resolves back to it (RFC 8601 2.7.3).
async fn check_iprev(resolver: &Resolver, peer: IpAddr) -> AuthResult {
    let peer = peer.to_canonical();
    let check = async {
        let Ok(names) = resolver.ptr(peer).await else { return AuthResult::TempError };
        if names.data.is_empty() {
            return AuthResult::PermError;
        }
        let mut result = AuthResult::Fail;
        let kind = if peer.is_ipv4() { RecordType::A } else { RecordType::AAAA };
        for name in names.data.iter().take(HOST_NAMES_MAX).filter_map(|name| parse_wire_name(name.as_str())) {
            let Ok(found) = resolver.records(&name, kind).await else {
                result = AuthResult::TempError;
                continue;
            };
            let leads_back = |data: &RData| match data {
                RData::A(four) => IpAddr::V4(four.0) == peer,
                RData::AAAA(six) => IpAddr::V6(six.0) == peer,
                _ => false,
            };
            if found.iter().flat_map(|lookup| lookup.answers()).any(|record| leads_back(&record.data)) {
                return AuthResult::Pass;
            }
        }
        result
    };
    timeout(DEADLINE, check).await.unwrap_or(AuthResult::TempError)
}

async fn check_dmarc(
    resolver: &Resolver,
    author: &DomainName,
    spf: Option<AuthenticatedIdentifier>,
    dkim: &[DkimVerdict],
) -> (AuthResult, DmarcPolicy) {
    let proofs = dkim
        .iter()
        .filter_map(|verdict| authenticated_identifier(verdict.result, verdict.domain.parse().ok().as_ref()));
    let proofs: Vec<AuthenticatedIdentifier> = proofs.collect();
    match timeout(DMARC_DEADLINE, dmarc::evaluate(resolver, author, spf, &proofs)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(DmarcUnavailable)) | Err(_) => (AuthResult::TempError, DmarcPolicy::None),
    }
}

/// Combines the results of all signatures. One valid signature is sufficient; otherwise the most significant result is
/// used. The header has a field for each (RFC 8601 2.7.1).
fn combine_dkim(verdicts: &[DkimVerdict]) -> AuthResult {
    let most_significant_first =
        [AuthResult::Pass, AuthResult::TempError, AuthResult::Fail, AuthResult::PermError, AuthResult::Neutral];
    let is_found = |result: &AuthResult| verdicts.iter().any(|verdict| verdict.result == *result);
    most_significant_first.into_iter().find(is_found).unwrap_or_default()
}

impl AuthenticationVerdict {
    /// The verdict if the checks did not run.
    fn unknown(source: MessageSource) -> Self {
        let unknown = AuthResult::TempError;
        Self {
            auth: AuthenticationResults { spf: unknown, dkim: unknown, dmarc: unknown, arc: unknown },
            helo: unknown,
            spf_explanation: None,
            iprev: unknown,
            dkim: Vec::new(),
            author: AuthorDomain::Unchecked,
            policy: DmarcPolicy::None,
            authenticated: Vec::new(),
            source,
        }
    }

    /// Returns whether the verdict can change once DNS lookups succeed.
    pub fn has_temporary_error(&self) -> bool {
        let AuthenticationResults { spf, dkim, dmarc, .. } = self.auth;
        dmarc == AuthResult::TempError || dmarc != AuthResult::Pass && [spf, dkim].contains(&AuthResult::TempError)
    }

    /// Returns whether DMARC fails and the author's domain has the policy `reject`.
    pub fn is_dmarc_reject(&self) -> bool {
        self.auth.dmarc == AuthResult::Fail && self.policy == DmarcPolicy::Reject
    }
}
