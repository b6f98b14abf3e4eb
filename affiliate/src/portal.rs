//! The partner portal: how partners get in, and what they do there. Its pages are the API's (`api/src/portal.rs`).
//!
//! ```text
//! [entrance]: links and sessions        [joining]: the public form, the invitation
//! [figures]: what the pages show summed [payout]: where money goes, confirmed by mail
//! [receipts]: what was paid out         [settings]: a new secret of postbacks
//! [host]: a host of the program's own
//! ```
//!
//! What a partner does here is done by the office's own functions, in one commit with the event that tells of it. Only
//! an active partner changes anything; who is invited accepts, and everybody else looks.

pub mod entrance;
pub mod figures;
pub mod host;
pub mod joining;
pub mod payout;
pub mod receipts;
pub mod settings;

use mail::address::DomainName;
use mail::affiliate::partner::PartnerLink;
use mail::affiliate::program::AffiliateProgram;
use store::engine::ReadError;
use url::Url;

use crate::office::AffiliateService;
use crate::refusal::AffiliateError;

impl AffiliateService {
    /// Where the pages of a program's portal are, without a slash at the end: on its own host, where it has one that holds,
    /// by the scheme and the port of the service; else with the service's other pages. None before that is known.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn portal_origin(&self, program: &AffiliateProgram) -> Result<Option<String>, ReadError> {
        let Some(base) = self.hall.base_url() else { return Ok(None) };
        let Some(host) = self.portal_host(program).await? else { return Ok(Some(base.to_owned())) };
        let Ok(url) = Url::parse(base) else { return Ok(None) };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        Ok(Some(format!("{}://{host}{port}", url.scheme())))
    }

    /// The program of a publishable key, if it is set up.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_portal_by_key(&self, key: &str) -> Result<Option<AffiliateProgram>, AffiliateError> {
        let found = self.find_program_by_key(key).await?;
        Ok(found.filter(|program| program.missing_steps().is_empty()))
    }

    /// The program whose portal is at this host, if it is set up and the host holds ([`host`]). A host of the service is
    /// nobody's.
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

    /// The address by which a partner recruits others.
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
