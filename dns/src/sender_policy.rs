//! Sender policy: what a domain's SPF record says of an address (RFC 7208 4).
//!
//! Evaluated by mail-auth through our resolver: includes, redirects, macros and the limits on look-ups are
//! followed as a receiving host does. So who asks learns what others will say of our own mail.

use std::net::IpAddr;
use std::time::Duration;

use mail::address::Name;
use mail_auth::SpfResult;
use mail_auth::spf::verify::SpfParameters;
use tokio::time::timeout;

use crate::lookup::Resolver;

/// How long an evaluation may take: ten terms that look something up (RFC 7208 4.6.4), each in its time.
const DEADLINE: Duration = Duration::from_secs(20);

/// The result, in the words of RFC 7208 2.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyResult {
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

impl PolicyResult {
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

/// What the SPF record of `domain` says of mail from `address`, whose host says `hello`.
pub async fn check(resolver: &Resolver, domain: &Name, (address, hello): (IpAddr, &Name)) -> PolicyResult {
    let sender = format!("postmaster@{domain}");
    let asked = SpfParameters::verify_mail_from(address, hello.as_str(), hello.as_str(), &sender);
    match timeout(DEADLINE, resolver.authenticator().check_host(asked.into())).await {
        Err(_) => PolicyResult::TempError,
        Ok(output) => match output.result() {
            SpfResult::Pass => PolicyResult::Pass,
            SpfResult::Fail => PolicyResult::Fail,
            SpfResult::SoftFail => PolicyResult::SoftFail,
            SpfResult::Neutral => PolicyResult::Neutral,
            SpfResult::None => PolicyResult::None,
            SpfResult::TempError => PolicyResult::TempError,
            SpfResult::PermError => PolicyResult::PermError,
        },
    }
}
