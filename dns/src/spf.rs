//! Evaluates SPF records (RFC 7208).
//!
//! ```text
//! SpfQuery ─► TXT ─► record (terms) ─► evaluate (lookups, limits) ─► AuthResult
//!                       └─► crate::setup (errors in a customer's record)
//! ```
//!
//! One parser and one evaluation serve all callers: verification of received mail, the operator's doctor, DMARC reports
//! and the domain check. So the check finds the same result as other receivers.

mod domain_spec;
mod evaluate;
pub(crate) mod record;

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::DomainName;
use message::received::AuthResult;
use tokio::time::timeout;

pub(crate) use self::domain_spec::DomainSpec;
use self::evaluate::SpfEvaluation;
pub(crate) use self::evaluate::{HOSTS_MAX, LOOKUPS_MAX, VOIDS_MAX};
use crate::resolver::Resolver;

/// Timeout of an evaluation: RFC 7208 4.6.4 requires at least 20 s.
const DEADLINE: Duration = Duration::from_secs(20);

/// The arguments of *check_host* (RFC 7208 4.1).
#[derive(Debug, Clone, Copy)]
pub struct SpfQuery<'a> {
    /// The client's address.
    pub peer: IpAddr,
    /// The client's HELO or EHLO name.
    pub hello: &'a str,
    /// The sender's local part; if empty, `postmaster`.
    pub local: &'a str,
    /// The sender's domain: of the reverse path, or else the HELO name.
    pub domain: &'a str,
    /// The receiver's host name and the time, for explanations.
    pub receiver: (&'a str, Timestamp),
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpfOutcome {
    pub result: AuthResult,
    /// The explanation of a fail by the domain's owner (`exp=`). It is untrusted text.
    pub explanation: Option<String>,
}

/// Evaluates the SPF record of the sender's domain for the client, within a timeout.
pub fn check_host<'a>(resolver: &'a Resolver, query: &'a SpfQuery<'a>, within: Duration) -> BoxFuture<'a, SpfOutcome> {
    Box::pin(async move {
        match timeout(within, SpfEvaluation::new(resolver, query).evaluate()).await {
            Ok((result, explanation)) => SpfOutcome { result, explanation },
            Err(_) => SpfOutcome { result: AuthResult::TempError, explanation: None },
        }
    })
}

/// Evaluates the SPF record of `domain` for mail from `address`, whose host name is `hello`.
pub fn check_domain<'a>(
    resolver: &'a Resolver,
    domain: &'a DomainName,
    address: IpAddr,
    hello: &'a DomainName,
) -> BoxFuture<'a, AuthResult> {
    Box::pin(async move {
        let query = SpfQuery {
            peer: address,
            hello: hello.as_str(),
            local: "",
            domain: domain.as_str(),
            receiver: (hello.as_str(), Timestamp::UNIX_EPOCH),
        };
        check_host(resolver, &query, DEADLINE).await.result
    })
}
