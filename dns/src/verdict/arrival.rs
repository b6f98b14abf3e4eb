//! The verdict on a message that comes in: may its host send for its envelope's sender (SPF), who stands behind
//! it (DKIM), do they stand for its author (DMARC), who passed it on (ARC), and is the host who it is (iprev).
//!
//! ```text
//! SPF of the EHLO name · SPF of the reverse path · DKIM · ARC · iprev, all at once ─► DMARC ─► Verdict
//! ```
//!
//! What is read was written by anybody. Its bounds: signatures and ARC sets per message, lookups and void
//! lookups per SPF check (RFC 7208 4.6.4), messages at once, and time, after which what is not known is
//! `temperror`. A panic in the parser is the end of its task, and the message counts as unreadable.

mod arc;
mod dmarc;
mod results;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hickory_resolver::proto::rr::{RData, RecordType};
use jiff::Timestamp;
use mail::address::{Address, DomainName};
use mail::received::{AuthResult, AuthenticationResults, author_domain};
use mail_auth::AuthenticatedMessage;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::dmarc::{AuthenticatedIdentifier, DmarcUnavailable};
use super::{DkimKeySource, DkimResultCode, DkimVerdict, limit_signatures, verify_signatures};
use crate::lookup::{Resolver, parse_wire_name};
use crate::sender_policy::{SpfOutcome, SpfQuery, SpfResult, check_host};

/// Messages judged at once: most of the time of one is waiting for name servers.
const CHECKS_MAX: usize = 512;
/// Large messages judged at once: those keep a thread each busy with hashing.
const LARGE_CHECKS_MAX: usize = 64;
/// From this size on a message is large.
const LARGE_BYTES: usize = 256 << 10;
/// How long SPF, DKIM, ARC and iprev may take.
const DEADLINE: Duration = Duration::from_secs(7);
/// And DMARC, after them.
const DMARC_DEADLINE: Duration = Duration::from_secs(3);
/// How long a message waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Names of a host that are looked at (RFC 8601 2.7.3).
const HOST_NAMES_MAX: usize = 4;
/// Domains behind a message that are remembered.
const AUTHENTICATED_MAX: usize = 10;

static PERMITS: Semaphore = Semaphore::const_new(CHECKS_MAX);
static LARGE_PERMITS: Semaphore = Semaphore::const_new(LARGE_CHECKS_MAX);

/// How a message came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSource {
    /// Who handed it in.
    pub peer: IpAddr,
    /// What that host calls itself.
    pub helo: String,
    /// The envelope's sender; none is the null path.
    pub reverse_path: Option<Address>,
    /// Who we are.
    pub hostname: DomainName,
    /// When it came.
    pub received_at: Timestamp,
}

/// Whose the author's domain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorDomain {
    /// One address, of this domain.
    Single(DomainName),
    /// None, several, or nothing that could be read: nobody stands for it (RFC 7489 6.6.1).
    Invalid,
    /// It was not looked at: there was no time for it.
    Unchecked,
}

/// What the owner of the author's domain wants done with what fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DmarcPolicy {
    /// Nothing.
    #[default]
    None,
    /// It is to be looked at with suspicion.
    Quarantine,
    /// It is to be refused.
    Reject,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationVerdict {
    /// In one word each.
    pub auth: AuthenticationResults,
    /// Of the name that the host gave itself.
    pub helo: AuthResult,
    /// Why SPF fails, says the owner of the reverse path's domain.
    pub spf_explanation: Option<String>,
    /// The host's address and name lead to each other (RFC 8601 3).
    pub iprev: AuthResult,
    /// The signatures, in the order of the header.
    pub dkim: Vec<DkimVerdict>,
    /// Whose the author's domain is.
    pub author: AuthorDomain,
    /// What its owner wants.
    pub policy: DmarcPolicy,
    /// Domains that stand behind it: of signatures that hold, and of the reverse path where SPF passes.
    pub authenticated: Vec<DomainName>,
    source: MessageSource,
}

/// Judges a message.
pub fn authenticate<'a>(
    resolver: &'a Resolver,
    message: Bytes,
    way: MessageSource,
) -> BoxFuture<'a, AuthenticationVerdict> {
    Box::pin(async move {
        let places = if message.len() > LARGE_BYTES { &LARGE_PERMITS } else { &PERMITS };
        let unknown = AuthenticationVerdict::unknown(way.clone());
        // Never closed.
        let Ok(Ok(place)) = timeout(QUEUE_TIMEOUT, places.acquire()).await else { return unknown };
        let resolver = resolver.clone();
        let judging = async move {
            let _place = place;
            run_checks(&resolver, &message, way).await
        };
        let judged = if std::ptr::eq(places, &raw const LARGE_PERMITS) {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(judging)).await
        } else {
            tokio::spawn(judging).await
        };
        judged.unwrap_or_else(|error| {
            tracing::warn!(%error, "a message could not be judged");
            unknown
        })
    })
}

async fn run_checks(resolver: &Resolver, raw: &[u8], way: MessageSource) -> AuthenticationVerdict {
    let message = limit_signatures(AuthenticatedMessage::parse(raw).unwrap_or_default());
    let author = find_author(raw, &message);
    let keys = DkimKeySource::Dns(resolver.clone());
    let (helo, mail, dkim, arc, iprev) = tokio::join!(
        check_spf(resolver, &way, None),
        check_spf(resolver, &way, way.reverse_path.as_ref()),
        verify_signatures(&message, &keys, DEADLINE),
        arc::verify_chain(&message, &keys, DEADLINE),
        check_iprev(resolver, way.peer),
    );
    // Without a reverse path the name that the host gave itself stands for it (RFC 7208 2.4).
    let sender = if way.reverse_path.is_some() { &mail } else { &helo };
    let (spf, sender_domain) = (auth_result(sender.result), sender_domain(&way));
    let proof = authenticated_identifier(spf, sender_domain.as_ref());
    let (dmarc, policy) = match &author {
        AuthorDomain::Single(domain) => check_dmarc(resolver, domain, proof, &dkim).await,
        AuthorDomain::Invalid | AuthorDomain::Unchecked => (AuthResult::PermError, DmarcPolicy::None),
    };
    let auth = AuthenticationResults { spf, dkim: combine_dkim(&dkim), dmarc, arc };
    let passed = sender_domain.filter(|_| auth.spf == AuthResult::Pass);
    let signed = dkim.iter().filter(|one| one.result == DkimResultCode::Pass);
    let mut authenticated: Vec<DomainName> = Vec::new();
    for name in signed.filter_map(|one| one.domain.parse().ok()).chain(passed) {
        if !authenticated.contains(&name) && authenticated.len() < AUTHENTICATED_MAX {
            authenticated.push(name);
        }
    }
    let spf_explanation = sender.explanation.clone();
    let helo = auth_result(helo.result);
    AuthenticationVerdict { auth, helo, spf_explanation, iprev, dkim, author, policy, authenticated, source: way }
}

impl AuthenticationVerdict {
    /// The domains that stand behind what the message says of its author: none where it names several authors, of
    /// whom a signature may cover another than the one that is read.
    #[must_use]
    pub fn authenticated_domains(&self) -> &[DomainName] {
        match self.author {
            AuthorDomain::Single(_) => &self.authenticated,
            AuthorDomain::Invalid | AuthorDomain::Unchecked => &[],
        }
    }
}

/// Whose the message says that it is, where our reading of its From field is also that of who judges DMARC.
fn find_author(raw: &[u8], message: &AuthenticatedMessage<'_>) -> AuthorDomain {
    let [one] = message.from.as_slice() else { return AuthorDomain::Invalid };
    let judged = one.rsplit_once('@').and_then(|(_, domain)| domain.parse::<DomainName>().ok());
    match author_domain(raw) {
        Some(domain) if Some(&domain) == judged.as_ref() => AuthorDomain::Single(domain),
        _ => AuthorDomain::Invalid,
    }
}

fn sender_domain(way: &MessageSource) -> Option<DomainName> {
    match &way.reverse_path {
        Some(path) => Some(path.domain().clone()),
        None => way.helo.parse().ok(),
    }
}

/// Who is proven by a result, or may turn out to be.
fn authenticated_identifier(result: AuthResult, domain: Option<&DomainName>) -> Option<AuthenticatedIdentifier> {
    let holds = match result {
        AuthResult::Pass => true,
        AuthResult::TempError => false,
        _ => return None,
    };
    Some(AuthenticatedIdentifier { domain: domain?.clone(), is_verified: holds })
}

async fn check_spf(resolver: &Resolver, way: &MessageSource, path: Option<&Address>) -> SpfOutcome {
    let hello = way.helo.trim_end_matches('.');
    let (local, domain) = path.map_or(("", hello), |path| (path.local_part(), path.domain().as_str()));
    let receiver = (way.hostname.as_str(), way.received_at);
    check_host(resolver, &SpfQuery { peer: way.peer, hello, local, domain, receiver }, DEADLINE).await
}

/// Whether an address leads to a name, and that back to it (RFC 8601 2.7.3).
async fn check_iprev(resolver: &Resolver, peer: IpAddr) -> AuthResult {
    let peer = peer.to_canonical();
    let look = async {
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
    timeout(DEADLINE, look).await.unwrap_or(AuthResult::TempError)
}

async fn check_dmarc(
    resolver: &Resolver,
    author: &DomainName,
    spf: Option<AuthenticatedIdentifier>,
    dkim: &[DkimVerdict],
) -> (AuthResult, DmarcPolicy) {
    let proofs = dkim.iter().filter_map(|one| {
        let holds = match one.result {
            DkimResultCode::Pass => true,
            DkimResultCode::TempError => false,
            _ => return None,
        };
        Some(AuthenticatedIdentifier { domain: one.domain.parse().ok()?, is_verified: holds })
    });
    let proofs: Vec<AuthenticatedIdentifier> = proofs.collect();
    match timeout(DMARC_DEADLINE, dmarc::evaluate(resolver, author, spf, &proofs)).await {
        Ok(Ok(judged)) => judged,
        Ok(Err(DmarcUnavailable)) | Err(_) => (AuthResult::TempError, DmarcPolicy::None),
    }
}

fn auth_result(result: SpfResult) -> AuthResult {
    match result {
        SpfResult::Pass => AuthResult::Pass,
        SpfResult::Fail => AuthResult::Fail,
        SpfResult::SoftFail => AuthResult::SoftFail,
        SpfResult::Neutral => AuthResult::Neutral,
        SpfResult::TempError => AuthResult::TempError,
        SpfResult::PermError => AuthResult::PermError,
        SpfResult::None => AuthResult::None,
    }
}

/// One word for all signatures: one that holds is enough; else the one that says most, of which there is a field for
/// each (RFC 8601 2.7.1).
fn combine_dkim(verdicts: &[DkimVerdict]) -> AuthResult {
    let rank = |one: &DkimVerdict| match one.result {
        DkimResultCode::Pass => (0, AuthResult::Pass),
        DkimResultCode::TempError => (1, AuthResult::TempError),
        DkimResultCode::Fail => (2, AuthResult::Fail),
        DkimResultCode::PermError => (3, AuthResult::PermError),
        DkimResultCode::Neutral => (4, AuthResult::Neutral),
    };
    verdicts.iter().map(rank).min_by_key(|(rank, _)| *rank).map_or(AuthResult::None, |(_, word)| word)
}

impl AuthenticationVerdict {
    /// Of a message of which nothing could be found out.
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

    /// Whether it may be another one once the DNS gives answers.
    #[must_use]
    pub fn has_temporary_error(&self) -> bool {
        let AuthenticationResults { spf, dkim, dmarc, .. } = self.auth;
        dmarc == AuthResult::TempError || dmarc != AuthResult::Pass && [spf, dkim].contains(&AuthResult::TempError)
    }

    /// Whether the owner of the author's domain wants it refused.
    #[must_use]
    pub fn is_dmarc_reject(&self) -> bool {
        self.auth.dmarc == AuthResult::Fail && self.policy == DmarcPolicy::Reject
    }
}
