//! Guards: whose word is asked for how mail to a domain is to be protected.
//!
//! Both kinds are decided for a recipient's domain, never for a site: hosts that many domains share are another site for
//! those that ask for more. Where both are there, a host's own TLSA records go before the domain's policy (RFC 8461 2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dns::lookup::Resolver;
use jiff::{SignedDuration, Timestamp};
use mail::mta_sts::Mode;
use tokio::sync::Mutex;

use crate::sts::StsPolicies;

/// How often is looked whether the name server validates, while mail goes to domains that are not known yet.
const LOOK: SignedDuration = SignedDuration::from_secs(60);
/// How long a look may take: mail waits for it.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// What was published about the way to a domain's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Protection {
    /// What the domain's policy asks for, where it asks for something (RFC 8461).
    pub sts: Option<Mode>,
    /// The MX records are signed, so that the hosts' TLSA records count (RFC 7672 2.2).
    pub is_signed: bool,
}

impl Protection {
    /// As it stands in the name of a site.
    #[must_use]
    pub(crate) fn label(self) -> &'static str {
        match (self.sts, self.is_signed) {
            (Some(Mode::Enforce), true) => " (MTA-STS, signed)",
            (Some(Mode::Enforce), false) => " (MTA-STS)",
            (Some(Mode::Testing), true) => " (MTA-STS testing, signed)",
            (Some(Mode::Testing), false) => " (MTA-STS testing)",
            (Some(Mode::None) | None, true) => " (signed)",
            (Some(Mode::None) | None, false) => "",
        }
    }
}

/// Whom a planner asks.
#[derive(Debug, Default)]
pub struct Guards {
    /// Finds policies of MTA-STS.
    pub sts: Option<StsPolicies>,
    /// Checks signatures, for DANE.
    pub signatures: Option<Signatures>,
}

/// A resolver that checks signatures, as far as there are any to check.
///
/// *Always* is strict: what does not hold is nothing to send by. *Once seen* begins when the name server that we ask was
/// seen to validate, and leaves what is forged to it: its own check gives no answer then. Where it answers, and our check
/// alone does not follow (aliases and wildcards are hard to prove), the name counts as unsigned. That is what other mail
/// servers rest DANE upon.
#[derive(Debug)]
pub struct Signatures {
    resolver: Resolver,
    is_strict: bool,
    come_through: AtomicBool,
    looked_at: Mutex<Option<Timestamp>>,
}

impl Signatures {
    /// Checked, come what may: where they do not come through, no mail goes.
    #[must_use]
    pub fn always(resolver: Resolver) -> Self {
        Self { resolver, is_strict: true, come_through: AtomicBool::new(true), looked_at: Mutex::default() }
    }

    /// Checked from the moment on at which the name server was seen to validate, and for good.
    #[must_use]
    pub fn once_seen(resolver: Resolver) -> Self {
        Self { resolver, is_strict: false, come_through: AtomicBool::new(false), looked_at: Mutex::default() }
    }

    /// Whether a name whose signatures do not hold for us is to be taken as unsigned, if the name server answers for it.
    pub(crate) fn is_lenient(&self) -> bool {
        !self.is_strict
    }

    /// Whether it is known that they are checked.
    pub(crate) fn is_settled(&self) -> bool {
        self.come_through.load(Ordering::Relaxed)
    }

    /// Who checks them, if they come through.
    pub(crate) async fn resolver(&self, now: Timestamp) -> Option<&Resolver> {
        if self.come_through.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        // Who comes meanwhile waits for what is seen.
        let mut looked_at = self.looked_at.lock().await;
        if self.come_through.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        if looked_at.is_some_and(|at| now.duration_since(at) < LOOK) {
            return None;
        }
        *looked_at = Some(now);
        let signed = tokio::time::timeout(LOOK_TIMEOUT, self.resolver.is_validated()).await;
        if signed != Ok(true) {
            tracing::debug!("the name server does not validate: DANE is left out");
            return None;
        }
        tracing::info!("the name server validates: DANE is looked for");
        self.come_through.store(true, Ordering::Relaxed);
        Some(&self.resolver)
    }
}
