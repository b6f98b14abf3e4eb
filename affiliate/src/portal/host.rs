//! Portal host: a host at or below a domain that the account has verified.
//!
//! The host is checked when it is set and at each use. It stops working when the domain is deleted, loses its records
//! or moves to another account, and works again when the domain does.

use std::sync::Arc;

use accounts::domains::SendingDomains;
use message::address::DomainName;
use model::affiliate::partner::PartnerLink;
use model::affiliate::program::AffiliateProgram;
use model::affiliate::web_origin;
use model::domain::{DomainState, SendingDomain};
use model::domain_setup::RETURN_PATH_LABEL;
use model::id::AccountId;
use queue::intake::sender_authorization::SenderAuthorization;
use queue::intake::service_links::ServiceLinks;
use store::affiliate::program;
use store::engine::ReadError;
use url::Url;

use crate::context::Context;
use crate::error::{PortalHostError, Result};

/// Maximum labels of a host: each parent is looked up among the domains.
const LABELS_MAX: usize = 12;
/// First label of the host of MTA-STS policies (RFC 8461 3.3).
const POLICY_LABEL: &str = "mta-sts";

/// The hosts of programs' portals.
#[derive(Clone)]
pub struct PortalHosts {
    pub(crate) context: Context,
    pub(crate) links: ServiceLinks,
    pub(crate) domains: Arc<SendingDomains>,
    pub(crate) senders: Arc<SenderAuthorization>,
}

impl PortalHosts {
    /// Checks a host for the portal of an account's program. The inner error is the reason why it is refused.
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
            if let Some(domain) = store::domain::find_by_name(&self.context.store, &name).await?
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
        let base = self.links.base_url().and_then(web_origin::host_of);
        base.is_some_and(|base| base.eq_ignore_ascii_case(host.as_str()))
            || self.domains.facts().is_service_host(host)
            || self.senders.service_domain() == Some(host)
    }

    /// Returns the host of a program's portal, if it is usable.
    pub async fn portal_host(&self, program: &AffiliateProgram) -> Result<Option<DomainName>, ReadError> {
        let Some(host) = &program.settings.portal_domain else { return Ok(None) };
        Ok(self.check_portal_host(program.account, host).await?.ok().map(|()| host.clone()))
    }

    /// Returns why a program's portal host is not usable, if so.
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
        let Some(program) = program::find_by_host(&self.context.store, host).await? else { return Ok(None) };
        if program.account == account || self.check_portal_host(program.account, host).await?.is_ok() {
            return Ok(None);
        }
        Ok(Some(program))
    }

    /// Returns the origin of a program's portal, without a trailing slash: its own host, if usable, with scheme and
    /// port of the service; else the service's base URL. `None` while the base URL is unknown.
    pub async fn portal_origin(&self, program: &AffiliateProgram) -> Result<Option<String>, ReadError> {
        let Some(base) = self.links.base_url() else { return Ok(None) };
        let Some(host) = self.portal_host(program).await? else { return Ok(Some(base.to_owned())) };
        let Ok(url) = Url::parse(base) else { return Ok(None) };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        Ok(Some(format!("{}://{host}{port}", url.scheme())))
    }

    /// Finds the program whose portal has this host, if its setup is complete and the host is usable ([`Self::check_portal_host`]). Hosts
    /// of the service belong to no program.
    pub async fn find_program_by_host(&self, host: &DomainName) -> Result<Option<AffiliateProgram>> {
        let found = program::find_by_host(&self.context.store, host).await?;
        let Some(program) = found.filter(|program| program.missing_steps().is_empty()) else {
            return Ok(None);
        };
        let holds = self.check_portal_host(program.account, host).await?.is_ok();
        Ok(holds.then_some(program))
    }

    /// Returns the address by which a partner recruits others.
    pub async fn recruiting_address(&self, program: &AffiliateProgram, link: &PartnerLink) -> Result<Option<String>> {
        let Some(origin) = self.portal_origin(program).await? else { return Ok(None) };
        let (key, token) = (&program.publishable_key, link.token.as_str());
        Ok(Some(format!("{origin}/portal/join?key={key}&via={token}")))
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
