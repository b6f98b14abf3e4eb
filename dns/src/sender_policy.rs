//! Sender policy: what a domain's SPF record says of an address (RFC 7208).
//!
//! ```text
//! who asks for whom ([`Asked`]) ─► TXT ─► [record] (terms) ─► [evaluate] (look-ups, limits) ─► PolicyResult
//!                                              └─► crate::setup (what is wrong with a customer's record)
//! ```
//!
//! One reader and one evaluation for all: the verdict on what comes in, the operator's doctor, the DMARC reports that
//! are counted, and the inspection of domains. So who asks learns what others will say of our own mail.

mod evaluate;
pub(crate) mod record;
mod target;

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::DomainName;
use tokio::time::timeout;

use self::evaluate::SpfEvaluation;
pub(crate) use self::evaluate::{HOSTS_MAX, LOOKUPS_MAX, VOIDS_MAX};
pub(crate) use self::target::DomainSpec;
use crate::lookup::Resolver;

/// How long an evaluation may take: RFC 7208 4.6.4 asks for at least 20 s.
const DEADLINE: Duration = Duration::from_secs(20);

/// The result, in the words of RFC 7208 2.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpfResult {
    /// The address may send.
    Pass,
    /// It may not.
    Fail,
    /// It may not, says somebody who is not sure.
    SoftFail,
    /// The domain does not say.
    Neutral,
    /// The domain has no record.
    None,
    /// The DNS gave no answer.
    TempError,
    /// The record cannot be evaluated: written wrongly, several of them, or too many look-ups.
    PermError,
}

impl SpfResult {
    /// As it stands in an Authentication-Results field (RFC 8601 2.7.2).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::SoftFail => "softfail",
            Self::Neutral => "neutral",
            Self::None => "none",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

/// Who sends, in whose name, and who asks (RFC 7208 4.1).
#[derive(Debug, Clone, Copy)]
pub struct SpfQuery<'a> {
    /// Who hands the mail in.
    pub peer: IpAddr,
    /// What that host calls itself.
    pub hello: &'a str,
    /// The sender's local part; empty is `postmaster`.
    pub local: &'a str,
    /// The sender's domain: that of the reverse path, or the name that the host gives itself.
    pub domain: &'a str,
    /// Our own name and the time, for explanations.
    pub receiver: (&'a str, Timestamp),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpfOutcome {
    /// In one word.
    pub result: SpfResult,
    /// Why it fails, says the domain's owner, who may say anything (`exp=`).
    pub explanation: Option<String>,
}

/// What the SPF record of a sender's domain says of who hands its mail in, within a time.
pub fn check_host<'a>(resolver: &'a Resolver, asked: &'a SpfQuery<'a>, within: Duration) -> BoxFuture<'a, SpfOutcome> {
    Box::pin(async move {
        match timeout(within, SpfEvaluation::new(resolver, asked).evaluate()).await {
            Ok((result, explanation)) => SpfOutcome { result, explanation },
            Err(_) => SpfOutcome { result: SpfResult::TempError, explanation: None },
        }
    })
}

/// What the SPF record of `domain` says of mail from `address`, whose host says `hello`.
pub fn check_domain<'a>(
    resolver: &'a Resolver,
    domain: &'a DomainName,
    (address, hello): (IpAddr, &'a DomainName),
) -> BoxFuture<'a, SpfResult> {
    Box::pin(async move {
        let asked = SpfQuery {
            peer: address,
            hello: hello.as_str(),
            local: "",
            domain: domain.as_str(),
            receiver: (hello.as_str(), Timestamp::UNIX_EPOCH),
        };
        check_host(resolver, &asked, DEADLINE).await.result
    })
}
