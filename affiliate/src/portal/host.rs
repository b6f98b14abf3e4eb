//! The host of a program's portal: at or below a domain that the account has verified, as long as that is so.
//!
//! A host is judged when it is set and whenever it is used: it ends with the domain, whether that was deleted, lost its
//! records or went to another account, and comes back with it.

use mail::address::DomainName;
use mail::affiliate::origin;
use mail::affiliate::program::AffiliateProgram;
use mail::domain::{DomainState, SendingDomain};
use mail::id::AccountId;
use mail::setup::RETURN_PATH_LABEL;
use store::affiliate::program;
use store::engine::ReadError;
use thiserror::Error;

use crate::office::AffiliateService;

/// The labels that a host may have: each is looked up among the domains.
const LABELS_MAX: usize = 12;
/// The first label of the host where policies for mail lie (RFC 8461 3.3).
const POLICY_LABEL: &str = "mta-sts";

/// Why a host is not the portal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PortalHostError {
    /// No domain of the account's covers it.
    #[error("must be at or below a verified domain of the account; verify the domain first")]
    Unverified,
    /// It is the service's.
    #[error("is a host of this service; choose a host of your own")]
    Service,
    /// Tracking links lead there.
    #[error("is a tracking host; choose another host below your domain")]
    Tracking,
    /// Bounces come back there.
    #[error("is a return path (`rp`); choose another host below your domain")]
    ReturnPath,
    /// Policies for mail lie there.
    #[error("is the host of an MTA-STS policy; choose another host below your domain")]
    Policy,
    /// Mail comes in there.
    #[error("takes in mail; choose another host below your domain")]
    Inbound,
    /// It is none that a browser asks for.
    #[error("is no host of a website; use up to 12 labels of letters, digits and hyphens")]
    Malformed,
}

impl AffiliateService {
    /// Judges a host for the portal of an account's program.
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
        // The nearest verified domain covers it; what stands above may have put a host of its own there.
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

    /// Whether a host is one of the service's own, by which its mail, its API and its pages are known.
    fn is_of_service(&self, host: &DomainName) -> bool {
        let base = self.hall.base_url().and_then(origin::host_of);
        base.is_some_and(|base| base.eq_ignore_ascii_case(host.as_str()))
            || self.hall.domains().facts().is_service_host(host)
            || self.hall.service_domain().as_ref() == Some(host)
    }

    /// The host of a program's portal, if it has one that holds.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_host(&self, program: &AffiliateProgram) -> Result<Option<DomainName>, ReadError> {
        let Some(host) = &program.settings.portal_domain else { return Ok(None) };
        Ok(self.check_portal_host(program.account, host).await?.ok().map(|()| host.clone()))
    }

    /// Why the host of a program's portal does not hold, if it has one that does not.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_host_error(&self, program: &AffiliateProgram) -> Result<Option<PortalHostError>, ReadError> {
        let Some(host) = &program.settings.portal_domain else { return Ok(None) };
        Ok(self.check_portal_host(program.account, host).await?.err())
    }

    /// Another account's program that has a host which is not its own any more.
    pub(crate) async fn former_program_of_host(
        &self,
        account: AccountId,
        host: &DomainName,
    ) -> Result<Option<AffiliateProgram>, ReadError> {
        let Some(holder) = program::find_by_host(self.store(), host).await? else { return Ok(None) };
        if holder.account == account || self.check_portal_host(holder.account, host).await?.is_ok() {
            return Ok(None);
        }
        Ok(Some(holder))
    }
}

/// What a verified domain at or above a host has there itself.
fn host_error_by_domain(domain: &SendingDomain, host: &DomainName) -> Option<PortalHostError> {
    let below = host.as_str().strip_suffix(domain.name.as_str()).and_then(|rest| rest.strip_suffix('.'));
    if domain.delivery.tracking_host.as_ref() == Some(host) {
        return Some(PortalHostError::Tracking);
    }
    match below {
        Some(RETURN_PATH_LABEL) => Some(PortalHostError::ReturnPath),
        Some(POLICY_LABEL) => Some(PortalHostError::Policy),
        None if domain.inbound_enabled => Some(PortalHostError::Inbound),
        _ => None,
    }
}
