//! Transport security: which policies decide how mail to a domain is protected (MTA-STS and DANE).
//!
//! Both are decided for a recipient domain, never for a ready queue: domains that share hosts but require more have
//! their own queue. A host's TLSA records take precedence over the domain's MTA-STS policy (RFC 8461 2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dns::resolver::Resolver;
use jiff::{SignedDuration, Timestamp};
use message::mta_sts::MtaStsMode;
use tokio::sync::Mutex;

use crate::routing::mta_sts::StsPolicies;

/// Interval of probing whether the name server validates, while unknown domains get mail.
const PROBE_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Timeout of a probe; mail waits for it.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Published security of the path to a domain's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportSecurity {
    /// Mode of the domain's MTA-STS policy, if it has one (RFC 8461).
    pub sts: Option<MtaStsMode>,
    /// True if the MX records are DNSSEC-signed, so that the hosts' TLSA records apply (RFC 7672 2.2).
    pub is_dnssec_signed: bool,
}

impl TransportSecurity {
    /// Suffix of the ready queue's name.
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

/// Policy sources of the router.
#[derive(Debug, Default)]
pub struct TransportSecurityPolicies {
    /// MTA-STS policies.
    pub sts: Option<StsPolicies>,
    /// DNSSEC validation, for DANE.
    pub dnssec: Option<DnssecResolver>,
}

/// A DNSSEC-validating resolver.
///
/// *Strict*: a bogus answer is an error, and no mail is sent on it. *Once validated*: DANE starts when the configured
/// name server was seen to validate, and the name server rejects forged answers. If it answers but our own validation
/// fails (aliases and wildcards are hard to prove), the name counts as unsigned. Other mail servers rely on the name
/// server for DANE in the same way.
#[derive(Debug)]
pub struct DnssecResolver {
    resolver: Resolver,
    is_strict: bool,
    is_validating: AtomicBool,
    probed_at: Mutex<Option<Timestamp>>,
}

impl DnssecResolver {
    /// Always validates; if signatures do not get through, no mail is sent.
    pub fn strict(resolver: Resolver) -> Self {
        Self { resolver, is_strict: true, is_validating: AtomicBool::new(true), probed_at: Mutex::default() }
    }

    /// Validates from the moment the name server was seen to validate, permanently.
    pub fn once_validated(resolver: Resolver) -> Self {
        Self { resolver, is_strict: false, is_validating: AtomicBool::new(false), probed_at: Mutex::default() }
    }

    /// Returns whether a name that only our own validation rejects counts as unsigned.
    pub(crate) fn is_lenient(&self) -> bool {
        !self.is_strict
    }

    /// Returns whether validation is active.
    pub(crate) fn is_active(&self) -> bool {
        self.is_validating.load(Ordering::Relaxed)
    }

    /// Returns the resolver if validation is active, probing the name server if needed.
    pub(crate) async fn validating_resolver(&self, now: Timestamp) -> Option<&Resolver> {
        if self.is_validating.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        // Concurrent callers wait for the probe's result.
        let mut probed_at = self.probed_at.lock().await;
        if self.is_validating.load(Ordering::Relaxed) {
            return Some(&self.resolver);
        }
        if probed_at.is_some_and(|at| now.duration_since(at) < PROBE_INTERVAL) {
            return None;
        }
        *probed_at = Some(now);
        let signed = tokio::time::timeout(PROBE_TIMEOUT, self.resolver.is_validating()).await;
        if signed != Ok(true) {
            tracing::debug!("the name server does not validate DNSSEC: DANE is disabled");
            return None;
        }
        tracing::info!("the name server validates DNSSEC: DANE is enabled");
        self.is_validating.store(true, Ordering::Relaxed);
        Some(&self.resolver)
    }
}
