//! The partner portal: sign-in and the operations on its pages. The pages themselves are in `api/src/portal.rs`.
//!
//! ```text
//! [login]: links and sessions              [application]: the public form, the invitation
//! [statistics]: sums that the pages show   [payout_destination]: set by the partner, confirmed by mail
//! [receipts]: paid payouts                 [settings]: a new postback secret
//! [host]: a host of the program's own
//! ```
//!
//! Operations use the same functions as the API and commit together with their event. Only an active partner may change
//! anything; an invited one may accept, and all others may only read.

pub mod application;
pub mod host;
pub mod login;
pub mod payout_destination;
pub mod receipts;
pub mod settings;
pub mod statistics;

use mail::address::DomainName;
use mail::affiliate::partner::PartnerLink;
use mail::affiliate::program::AffiliateProgram;
use store::engine::ReadError;
use url::Url;

use crate::error::AffiliateError;
use crate::service::AffiliateService;

impl AffiliateService {
    /// Returns the origin of a program's portal, without a trailing slash: its own host, if usable, with scheme and
    /// port of the service; else the service's base URL. `None` while the base URL is unknown.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_origin(&self, program: &AffiliateProgram) -> Result<Option<String>, ReadError> {
        let Some(base) = self.intake.base_url() else { return Ok(None) };
        let Some(host) = self.portal_host(program).await? else { return Ok(Some(base.to_owned())) };
        let Ok(url) = Url::parse(base) else { return Ok(None) };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        Ok(Some(format!("{}://{host}{port}", url.scheme())))
    }

    /// Finds a program by its publishable key, if its setup is complete.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_portal_by_key(&self, key: &str) -> Result<Option<AffiliateProgram>, AffiliateError> {
        let found = self.find_program_by_key(key).await?;
        Ok(found.filter(|program| program.missing_steps().is_empty()))
    }

    /// Finds the program whose portal has this host, if its setup is complete and the host is usable ([`host`]). Hosts
    /// of the service belong to no program.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_program_by_host(&self, host: &DomainName) -> Result<Option<AffiliateProgram>, AffiliateError> {
        let found = store::affiliate::program::find_by_host(self.store(), host).await?;
        let Some(program) = found.filter(|program| program.missing_steps().is_empty()) else {
            return Ok(None);
        };
        let holds = self.check_portal_host(program.account, host).await?.is_ok();
        Ok(holds.then_some(program))
    }

    /// Returns the address by which a partner recruits others.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn recruiting_address(
        &self,
        program: &AffiliateProgram,
        link: &PartnerLink,
    ) -> Result<Option<String>, AffiliateError> {
        let Some(origin) = self.portal_origin(program).await? else { return Ok(None) };
        let (key, token) = (&program.publishable_key, link.token.as_str());
        Ok(Some(format!("{origin}/portal/join?key={key}&via={token}")))
    }
}
