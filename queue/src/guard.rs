//! Guards: whose word is asked for how mail to a domain is to be protected.
//!
//! Both kinds are decided for a recipient's domain, never for a site: hosts that many domains share are another site for
//! those that ask for more. Where both are there, a host's own TLSA records go before the domain's policy (RFC 8461 2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dns::lookup::Resolver;
use jiff::{SignedDuration, Timestamp};
use mail::mta_sts::MtaStsMode;
use tokio::sync::Mutex;

use crate::sts::StsPolicies;

/// How often is looked whether the name server validates, while mail goes to domains that are not known yet.
const PROBE_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// How long a look may take: mail waits for it.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// What was published about the way to a domain's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportSecurity {
    /// What the domain's policy asks for, where it asks for something (RFC 8461).
    pub sts: Option<MtaStsMode>,
    /// The MX records are signed, so that the hosts' TLSA records count (RFC 7672 2.2).
    pub is_dnssec_signed: bool,
}

impl TransportSecurity {
    /// As it stands in the name of a site.
    #[must_use]
    pub(crate) fn queue_suffix(self) -> &'static str {
        match (self.sts, self.is_dnssec_signed) {
            (Some(MtaStsMode::Enforce), true) => " (MTA-STS, signed)",
            (Some(MtaStsMode::Enforce), false) => " (MTA-STS)",
            (Some(MtaStsMode::Testing), true) => " (MTA-STS testing, signed)",
            (Some(MtaStsMode::Testing), false) => " (MTA-STS testing)",
            (Some(MtaStsMode::None) | None, true) => " (signed)",
            (Some(MtaStsMode::None) | None, false) => "",
        }
    }
}

/// Whom a planner asks.
#[derive(Debug, Default)]
pub struct TransportSecurityPolicies {
    /// Finds policies of MTA-STS.
    pub sts: Option<StsPolicies>,
    /// Checks signatures, for DANE.
    pub dnssec: Option<DnssecResolver>,
}

/// A resolver that checks signatures, as far as there are any to check.
///
/// *Always* is strict: what does not hold is nothing to send by. *Once seen* begins when the name server that we ask was
/// seen to validate, and leaves what is forged to it: its own check gives no answer then. Where it answers, and our check
/// alone does not follow (aliases and wildcards are hard to prove), the name counts as unsigned. That is what other mail
/// servers rest DANE upon.
#[derive(Debug)]
pub struct DnssecResolver {
    resolver: Resolver,
    is_strict: bool,
    is_validating: AtomicBool,
    probed_at: Mutex<Option<Timestamp>>,
}

impl DnssecResolver {
    /// Checked, come what may: where they do not come through, no mail goes.
    #[must_use]
    pub fn strict(resolver: Resolver) -> Self {
        Self { resolver, is_strict: true, is_validating: AtomicBool::new(true), probed_at: Mutex::default() }
    }

    /// Checked from the moment on at which the name server was seen to validate, and for good.
    #[must_use]
    pub fn once_validated(resolver: Resolver) -> Self {
        Self { resolver, is_strict: false, is_validating: AtomicBool::new(false), probed_at: Mutex::default() }
    }

    /// Whether a name whose signatures do not hold for us is to be taken as unsigned, if the name server answers for it.
    pub(crate) fn is_lenient(&self) -> bool {
        !self.is_strict
    }

    /// Whether it is known that they are checked.
    pub(crate) fn is_active(&self) -> bool {
        self.is_validating.load(Ordering::Relaxed)
    }

    /// Who checks them, if they come through.
    pub(crate) async fn validating_resolver(&self, now: Timestamp) -> Option<&Resolver> {
        if self.is_validating.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        // Who comes meanwhile waits for what is seen.
        let mut looked_at = self.probed_at.lock().await;
        if self.is_validating.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        if looked_at.is_some_and(|at| now.duration_since(at) < PROBE_INTERVAL) {
            return None;
        }
        *looked_at = Some(now);
        let signed = tokio::time::timeout(PROBE_TIMEOUT, self.resolver.is_validating()).await;
        if signed != Ok(true) {
            tracing::debug!("the name server does not validate: DANE is left out");
            return None;
        }
        tracing::info!("the name server validates: DANE is looked for");
        self.is_validating.store(true, Ordering::Relaxed);
        Some(&self.resolver)
    }
}
