//! Portal host: a host at or below a domain that the account has verified.
//!
//! The host is checked when it is set and at each use. It stops working when the domain is deleted, loses its records
//! or moves to another account, and works again when the domain does.

use mail::address::DomainName;
use mail::affiliate::program::AffiliateProgram;
use mail::affiliate::web_origin;
use mail::domain::{DomainState, SendingDomain};
use mail::domain_setup::RETURN_PATH_LABEL;
use mail::id::AccountId;
use store::affiliate::program;
use store::engine::ReadError;
use thiserror::Error;

use crate::service::AffiliateService;

/// Maximum labels of a host: each parent is looked up among the domains.
const LABELS_MAX: usize = 12;
/// First label of the host of MTA-STS policies (RFC 8461 3.3).
const POLICY_LABEL: &str = "mta-sts";

/// Why a host cannot be the portal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PortalHostError {
    /// No verified domain of the account covers the host.
    #[error("must be at or below a verified domain of the account; verify the domain first")]
    Unverified,
    /// The host belongs to the service.
    #[error("is a host of this service; choose a host of your own")]
    Service,
    /// Tracking links use this host.
    #[error("is a tracking host; choose another host below your domain")]
    Tracking,
    /// Bounces are sent to this host.
    #[error("is a return path (`rp`); choose another host below your domain")]
    ReturnPath,
    /// MTA-STS policies are served there.
    #[error("is the host of an MTA-STS policy; choose another host below your domain")]
    Policy,
    /// The host receives mail.
    #[error("receives mail; choose another host below your domain")]
    Inbound,
    /// The host cannot be a website's.
    #[error("is not a valid website host; use up to 12 labels of letters, digits and hyphens")]
    Malformed,
}

impl AffiliateService {
    /// Checks a host for the portal of an account's program. The inner error is the reason why it is refused.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn check_portal_host(
        &self,
        account: AccountId,
        host: &DomainName,
    ) -> Result<Result<(), PortalHostError>, ReadError> {
        if host.as_str().split('.').count() > LABELS_MAX || host.as_str().contains('_') {
            return Ok(Err(PortalHostError::Malformed));
        }
        if self.is_of_service(host) {
            return Ok(Err(PortalHostError::Service));
        }
        // The nearest verified domain covers the host; any verified domain above may use the host itself.
        let (mut covering, mut next) = (None, Some(host.clone()));
        while let Some(name) = next {
            if let Some(domain) = store::domain::find_by_name(self.store(), &name).await?
                && domain.state == DomainState::Verified
            {
                if let Some(fault) = host_error_by_domain(&domain, host) {
                    return Ok(Err(fault));
                }
                covering = covering.or(Some(domain.account));
            }
            next = name.parent();
        }
        Ok(if covering == Some(account) { Ok(()) } else { Err(PortalHostError::Unverified) })
    }

    /// True if the host is one of the service's own, for mail, API or pages.
    fn is_of_service(&self, host: &DomainName) -> bool {
        let base = self.intake.base_url().and_then(web_origin::host_of);
        base.is_some_and(|base| base.eq_ignore_ascii_case(host.as_str()))
            || self.intake.domains().facts().is_service_host(host)
            || self.intake.service_domain().as_ref() == Some(host)
    }

    /// Returns the host of a program's portal, if it is usable.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_host(&self, program: &AffiliateProgram) -> Result<Option<DomainName>, ReadError> {
        let Some(host) = &program.settings.portal_domain else { return Ok(None) };
        Ok(self.check_portal_host(program.account, host).await?.ok().map(|()| host.clone()))
    }

    /// Returns why a program's portal host is not usable, if so.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_host_error(&self, program: &AffiliateProgram) -> Result<Option<PortalHostError>, ReadError> {
        let Some(host) = &program.settings.portal_domain else { return Ok(None) };
        Ok(self.check_portal_host(program.account, host).await?.err())
    }

    /// Returns another account's program that still has this host, but may no longer use it.
    pub(crate) async fn former_program_of_host(
        &self,
        account: AccountId,
        host: &DomainName,
    ) -> Result<Option<AffiliateProgram>, ReadError> {
        let Some(program) = program::find_by_host(self.store(), host).await? else { return Ok(None) };
        if program.account == account || self.check_portal_host(program.account, host).await?.is_ok() {
            return Ok(None);
        }
        Ok(Some(program))
    }
}

/// Returns what a verified domain at or above the host already uses it for.
fn host_error_by_domain(domain: &SendingDomain, host: &DomainName) -> Option<PortalHostError> {
    let subdomain = host.as_str().strip_suffix(domain.name.as_str()).and_then(|prefix| prefix.strip_suffix('.'));
    if domain.delivery.tracking_host.as_ref() == Some(host) {
        return Some(PortalHostError::Tracking);
    }
    match subdomain {
        Some(RETURN_PATH_LABEL) => Some(PortalHostError::ReturnPath),
        Some(POLICY_LABEL) => Some(PortalHostError::Policy),
        None if domain.inbound_enabled => Some(PortalHostError::Inbound),
        _ => None,
    }
}
