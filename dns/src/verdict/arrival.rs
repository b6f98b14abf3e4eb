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

mod results;
mod voids;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use mail::address::{Address, Name};
use mail::received::{Auth, AuthResult, author_domain};
use mail_auth::dmarc::Policy as Published;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcResult, IprevResult, MessageAuthenticator, SpfOutput,
    SpfResult,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::voids::Voids;
use super::{DkimResultCode, DkimVerdict, SIGNATURES_MAX, mend_body_hashes, verdict};
use crate::lookup::Resolver;

/// Messages judged at once: most of the time of one is waiting for name servers.
const VERDICTS_MAX: usize = 512;
/// Large messages judged at once: those keep a thread each busy with hashing.
const LARGE_MAX: usize = 8;
/// From this size on a message is large.
const LARGE_BYTES: usize = 256 << 10;
/// How long SPF, DKIM, ARC and iprev may take.
const DEADLINE: Duration = Duration::from_secs(7);
/// And DMARC, after them.
const DMARC_DEADLINE: Duration = Duration::from_secs(3);
/// How long a message waits for its turn.
const TURN_MAX: Duration = Duration::from_secs(30);
/// Sets of ARC fields that are looked at (RFC 8617 5.2 allows 50).
const ARC_SETS_MAX: usize = 20;
/// Domains behind a message that are remembered.
const AUTHENTICATED_MAX: usize = 10;

static PLACES: Semaphore = Semaphore::const_new(VERDICTS_MAX);
static LARGE_PLACES: Semaphore = Semaphore::const_new(LARGE_MAX);

/// How a message came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Who handed it in.
    pub peer: IpAddr,
    /// What that host calls itself.
    pub helo: String,
    /// The envelope's sender; none is the null path.
    pub reverse_path: Option<Address>,
    /// Who we are.
    pub hostname: Name,
}

/// Whose the author's domain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// One address, of this domain.
    One(Name),
    /// None, several, or nothing that could be read: nobody stands for it (RFC 7489 6.6.1).
    Nobody,
}

/// What the owner of the author's domain wants done with what fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
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
pub struct Verdict {
    /// In one word each.
    pub auth: Auth,
    /// Of the name that the host gave itself.
    pub helo: AuthResult,
    /// The host's address and name lead to each other (RFC 8601 3).
    pub iprev: AuthResult,
    /// The signatures, in the order of the header.
    pub dkim: Vec<DkimVerdict>,
    /// Whose the author's domain is.
    pub author: Author,
    /// What its owner wants.
    pub policy: Policy,
    /// Domains that stand behind it: of signatures that hold, and of the reverse path where SPF passes.
    pub authenticated: Vec<Name>,
    way: Way,
}

/// Judges a message.
pub async fn judge(resolver: &Resolver, message: Bytes, way: Way) -> Verdict {
    let places = if message.len() > LARGE_BYTES { &LARGE_PLACES } else { &PLACES };
    let unknown = Verdict::unknown(way.clone());
    // Never closed.
    let Ok(Ok(place)) = timeout(TURN_MAX, places.acquire()).await else { return unknown };
    let resolver = resolver.clone();
    let judging = async move {
        let _place = place;
        look(resolver.authenticator(), &message, way).await
    };
    let judged = if std::ptr::eq(places, &raw const LARGE_PLACES) {
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || runtime.block_on(judging)).await
    } else {
        tokio::spawn(judging).await
    };
    judged.unwrap_or_else(|error| {
        tracing::warn!(%error, "a message could not be judged");
        unknown
    })
}

async fn look(dns: &MessageAuthenticator, raw: &[u8], way: Way) -> Verdict {
    let mut message = AuthenticatedMessage::parse(raw).unwrap_or_default();
    message.dkim_headers.truncate(SIGNATURES_MAX);
    message.errors.truncate(SIGNATURES_MAX);
    mend_body_hashes(&mut message);
    let author = author(raw, &message);
    let in_time = |result: Result<AuthResult, _>| result.unwrap_or(AuthResult::TempError);
    let (helo, mail, dkim, arc, iprev) = tokio::join!(
        spf(dns, &way, None),
        spf(dns, &way, way.reverse_path.as_ref()),
        timeout(DEADLINE, dns.verify_dkim(&message)),
        timeout(DEADLINE, arc(dns, &message)),
        timeout(DEADLINE, iprev(dns, way.peer)),
    );
    let late = [];
    let outputs: &[DkimOutput<'_>] = dkim.as_deref().unwrap_or(&late);
    let mut verdicts: Vec<DkimVerdict> = outputs.iter().map(verdict).collect();
    if dkim.is_err() {
        let reason = "the keys could not be fetched in time";
        verdicts = vec![DkimVerdict::without_signature(DkimResultCode::TempError, reason)];
    }
    // Without a reverse path the name that the host gave itself stands for it (RFC 7208 2.4).
    let sender = if way.reverse_path.is_some() { &mail } else { &helo };
    let sender_domain = sender_domain(&way);
    let counted: Vec<DkimOutput<'_>> = outputs.iter().filter(|output| counts(output)).cloned().collect();
    let (dmarc, policy) = match &author {
        Author::One(_) => dmarc(dns, &message, &counted, (&sender_domain, sender)).await,
        Author::Nobody => (AuthResult::PermError, Policy::None),
    };
    let auth = Auth { spf: word(sender.result()), dkim: overall(&verdicts), dmarc, arc: in_time(arc) };
    let passed = (auth.spf == AuthResult::Pass).then(|| sender_domain.parse().ok()).flatten();
    let signed = verdicts.iter().filter(|one| one.result == DkimResultCode::Pass);
    let mut authenticated: Vec<Name> = Vec::new();
    for name in signed.filter_map(|one| one.domain.parse().ok()).chain(passed) {
        if !authenticated.contains(&name) && authenticated.len() < AUTHENTICATED_MAX {
            authenticated.push(name);
        }
    }
    let (helo, iprev) = (word(helo.result()), in_time(iprev));
    Verdict { auth, helo, iprev, dkim: verdicts, author, policy, authenticated, way }
}

/// Whose the message says that it is, where our reading of its From field is also that of who judges DMARC.
fn author(raw: &[u8], message: &AuthenticatedMessage<'_>) -> Author {
    let [one] = message.from.as_slice() else { return Author::Nobody };
    let judged = one.rsplit_once('@').and_then(|(_, domain)| domain.parse::<Name>().ok());
    match author_domain(raw) {
        Some(domain) if Some(&domain) == judged.as_ref() => Author::One(domain),
        _ => Author::Nobody,
    }
}

fn sender_domain(way: &Way) -> String {
    match &way.reverse_path {
        Some(path) => path.domain().to_string(),
        None => way.helo.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// RFC 8301 3.1: a signature with SHA-1 is as good as none.
fn counts(output: &DkimOutput<'_>) -> bool {
    output.signature().is_none_or(|signature| signature.a != mail_auth::common::crypto::Algorithm::RsaSha1)
}

async fn spf(dns: &MessageAuthenticator, way: &Way, path: Option<&Address>) -> SpfOutput {
    let (helo, hostname) = (way.helo.as_str(), way.hostname.as_str());
    let sender = path.map(ToString::to_string).unwrap_or_default();
    // An address literal is no domain (RFC 7208 2.3).
    let parameters = match path {
        Some(_) => SpfParameters::verify_mail_from(way.peer, helo, hostname, &sender),
        None => SpfParameters::verify_ehlo(way.peer, helo.trim_end_matches('.'), hostname),
    };
    let voids = Voids::default();
    let checked = timeout(DEADLINE, dns.check_host(voids.watch(parameters))).await;
    let temporary = || SpfOutput::default().with_result(SpfResult::TempError);
    match checked {
        Err(_) => temporary(),
        Ok(output) if output.result() != SpfResult::TempError && voids.are_too_many() => {
            SpfOutput::default().with_result(SpfResult::PermError)
        }
        Ok(output) => output,
    }
}

async fn arc(dns: &MessageAuthenticator, message: &AuthenticatedMessage<'_>) -> AuthResult {
    if message.ams_headers.is_empty() && message.as_headers.is_empty() && message.aar_headers.is_empty() {
        return if message.has_arc_errors { AuthResult::Fail } else { AuthResult::None };
    }
    if message.ams_headers.len().max(message.as_headers.len()) > ARC_SETS_MAX {
        return AuthResult::Fail;
    }
    match dns.verify_arc(message).await.result() {
        DkimResult::Pass => AuthResult::Pass,
        DkimResult::TempError(_) => AuthResult::TempError,
        DkimResult::None => AuthResult::None,
        // RFC 8617 4.4: a chain is none, pass or fail.
        DkimResult::Fail(_) | DkimResult::Neutral(_) | DkimResult::PermError(_) => AuthResult::Fail,
    }
}

async fn iprev(dns: &MessageAuthenticator, peer: IpAddr) -> AuthResult {
    match dns.verify_iprev(peer).await.result() {
        IprevResult::Pass => AuthResult::Pass,
        IprevResult::Fail(_) => AuthResult::Fail,
        IprevResult::TempError(_) => AuthResult::TempError,
        IprevResult::PermError(_) => AuthResult::PermError,
        IprevResult::None => AuthResult::None,
    }
}

async fn dmarc(
    dns: &MessageAuthenticator,
    message: &AuthenticatedMessage<'_>,
    dkim: &[DkimOutput<'_>],
    (domain, spf): (&str, &SpfOutput),
) -> (AuthResult, Policy) {
    let parameters = DmarcParameters::new(message, dkim, domain, spf);
    let Ok(output) = timeout(DMARC_DEADLINE, dns.verify_dmarc(parameters)).await else {
        return (AuthResult::TempError, Policy::None);
    };
    let result = match output.result() {
        DmarcResult::Pass => AuthResult::Pass,
        DmarcResult::Fail(_) => AuthResult::Fail,
        DmarcResult::TempError(_) => AuthResult::TempError,
        DmarcResult::PermError(_) => AuthResult::PermError,
        DmarcResult::None => AuthResult::None,
    };
    let policy = match output.policy() {
        Published::Reject => Policy::Reject,
        Published::Quarantine => Policy::Quarantine,
        Published::None | Published::Unspecified => Policy::None,
    };
    (result, policy)
}

fn word(result: SpfResult) -> AuthResult {
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

/// One word for all signatures: one that holds is enough; else what became of the first.
fn overall(verdicts: &[DkimVerdict]) -> AuthResult {
    let best = verdicts.iter().find(|one| one.result == DkimResultCode::Pass).or(verdicts.first());
    best.map_or(AuthResult::None, |one| match one.result {
        DkimResultCode::Pass => AuthResult::Pass,
        // The body is not the one that was signed: to whoever reads, the signature fails.
        DkimResultCode::Fail | DkimResultCode::Neutral => AuthResult::Fail,
        DkimResultCode::TempError => AuthResult::TempError,
        DkimResultCode::PermError => AuthResult::PermError,
    })
}

impl Verdict {
    /// Of a message of which nothing could be found out.
    fn unknown(way: Way) -> Self {
        let unknown = AuthResult::TempError;
        Self {
            auth: Auth { spf: unknown, dkim: unknown, dmarc: unknown, arc: unknown },
            helo: unknown,
            iprev: unknown,
            dkim: Vec::new(),
            author: Author::Nobody,
            policy: Policy::None,
            authenticated: Vec::new(),
            way,
        }
    }

    /// Whether it may be another one once the DNS gives answers.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let Auth { spf, dkim, dmarc, .. } = self.auth;
        dmarc == AuthResult::TempError
            || dmarc != AuthResult::Pass && [spf, dkim].contains(&AuthResult::TempError)
    }

    /// Whether the owner of the author's domain wants it refused.
    #[must_use]
    pub fn is_to_be_refused(&self) -> bool {
        self.auth.dmarc == AuthResult::Fail && self.policy == Policy::Reject
    }
}
