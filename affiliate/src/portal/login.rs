//! Portal sign-in and sign-out.
//!
//! ```text
//! POST /affiliates/{id}/login-link ─► a link valid for one minute ─┐
//! "mail me a link", an invitation  ─► a mailed link               ─┴─►[ - link, + session ] ─► cookie for 12 hours
//! ```

use std::net::IpAddr;

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::partner::{Partner, PartnerStatus};
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::portal::{
    LOGIN_LINK_TTL, PortalLink, PortalLinkPurpose, PortalLinkSecret, PortalSession, PortalToken,
};
use model::affiliate::program::AffiliateProgram;
use model::domain::SealedSecret;
use model::id::{AccountId, PartnerId, SessionId};
use serde::{Deserialize, Serialize};
use store::affiliate::{partner, portal_link, portal_session, self_referral_guard};
use store::engine::Batch;
use store::retry_on_conflict;

use super::host::PortalHosts;
use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, ConflictReason, ForbiddenReason, Result};
use crate::partner_emails::sender::queue_email;
use crate::partners::changes::Partners;
use crate::secrets;

/// A new sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewLink {
    pub url: String,
    pub expires_at: Timestamp,
}

/// An authenticated partner with its program.
#[derive(Debug, Clone)]
pub struct PartnerSession {
    pub session: PortalSession,
    /// As of this request.
    pub partner: Partner,
    pub program: AffiliateProgram,
}

/// The browser of a sign-in. Later purchases in it count as the partner's own.
#[derive(Debug, Clone, Default)]
pub struct SignInContext {
    /// The browser script's visitor id, if the portal is on the website's own domain.
    pub visitor: Option<String>,
    pub from: Option<IpAddr>,
}

/// A valid link with its partner and program.
#[derive(Debug, Clone)]
pub struct LoginTarget {
    pub link: PortalLink,
    pub partner: Partner,
    pub program: AffiliateProgram,
}

impl PortalHosts {
    /// Creates a sign-in link that works once within [`LOGIN_LINK_TTL`] and invalidates earlier ones.
    ///
    /// # Errors
    /// `NotFound`; `RejectedPartner`; the store failed.
    pub async fn create_login_link(
        &self,
        account: AccountId,
        id: PartnerId,
        extend_commit: ExtendCommit<'_, NewLink>,
    ) -> Result<NewLink> {
        retry_on_conflict(|| async {
            let program = self.context.require_set_up(account).await?;
            let partner = self.context.get_partner(account, id).await?;
            if partner.status == PartnerStatus::Rejected {
                return Err(ForbiddenReason::RejectedPartner.into());
            }
            let (now, secret) = (self.context.now(), PortalLinkSecret::new(self.context.entropy.secret()));
            let expires_at = now.checked_add(LOGIN_LINK_TTL).unwrap_or(now);
            let link = PortalLink { account, partner: id, purpose: PortalLinkPurpose::Login, expires_at };
            let prepared = portal_link::prepare(&self.context.store, link, &secret, now).await?;
            let mut batch = Batch::intake();
            // Conflicts if the partner is rejected or deleted meanwhile.
            partner::check_unchanged(&mut batch, &partner);
            prepared.write(&mut batch);
            let origin = self.portal_origin(&program).await?.unwrap_or_default();
            let login_link = NewLink { url: format!("{origin}/portal/enter/{}", secret.text()), expires_at };
            extend_commit(&mut batch, &login_link);
            Ok(self.context.commit_request(batch).await?.then_some(login_link))
        })
        .await
    }
}

impl Partners {
    /// Serializes a link for its idempotency record. It is sealed, because whoever has the link can sign in.
    ///
    /// # Errors
    /// The link cannot be sealed.
    pub fn seal_login_link(&self, id: PartnerId, login_link: &NewLink) -> Result<String> {
        let text = serde_json::to_string(login_link).map_err(|_| AffiliateError::Seal)?;
        Ok(secrets::seal(&self.vault, &id.to_bytes(), &text)?.0)
    }

    /// Unseals such a link, if it is still valid.
    ///
    /// # Errors
    /// `Seal` if it cannot be opened; `LoginLinkExpired` if it was used, replaced or has expired.
    pub async fn open_login_link(&self, id: PartnerId, sealed: &str) -> Result<NewLink> {
        let text =
            secrets::open(&self.vault, &id.to_bytes(), &SealedSecret(sealed.to_owned())).ok_or(AffiliateError::Seal)?;
        let login_link: NewLink = serde_json::from_str(&text).map_err(|_| AffiliateError::Seal)?;
        let secret = login_link.url.rsplit('/').next().and_then(PortalLinkSecret::parse);
        match secret {
            Some(secret) if self.context.find_login_target(&secret).await?.is_some() => Ok(login_link),
            _ => Err(ConflictReason::LoginLinkExpired.into()),
        }
    }
}

impl Context {
    /// Returns the target of a valid link, without consuming the link.
    pub async fn find_login_target(&self, secret: &PortalLinkSecret) -> Result<Option<LoginTarget>> {
        let Some(link) = portal_link::get(&self.store, secret).await? else { return Ok(None) };
        if link.expires_at <= self.now() {
            return Ok(None);
        }
        let found = self.find_portal_partner(link.account, link.partner).await?;
        Ok(found.map(|(partner, program)| LoginTarget { link, partner, program }))
    }

    /// Returns a partner who may use the portal, with its program.
    async fn find_portal_partner(
        &self,
        account: AccountId,
        id: PartnerId,
    ) -> Result<Option<(Partner, AffiliateProgram)>> {
        let program = match self.require_set_up(account).await {
            Ok(program) => program,
            Err(AffiliateError::NotSetUp) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        let found = partner::get(&self.store, account, id).await?;
        let found = found.filter(|partner| partner.status != PartnerStatus::Rejected);
        Ok(found.map(|partner| (partner, program)))
    }

    /// Signs a partner in and consumes the link: of two concurrent requests one succeeds.
    ///
    /// # Errors
    /// `PortalLinkExpired` if the link was used or has expired; the store failed.
    pub async fn sign_in_partner(
        &self,
        secret: &PortalLinkSecret,
        context: &SignInContext,
    ) -> Result<(PortalToken, PartnerSession)> {
        let over = || AffiliateError::from(ConflictReason::PortalLinkExpired);
        retry_on_conflict(|| async {
            let LoginTarget { link, partner, program } = self.find_login_target(secret).await?.ok_or_else(over)?;
            if !link.purpose.signs_in() {
                return Err(over());
            }
            let (now, account, id) = (self.now(), partner.account, partner.id);
            let session = SessionId::new(now, self.random());
            let token = PortalToken::new(account, id, session, self.entropy.secret());
            let session = PortalSession::new(&token, now);
            let mut batch = Batch::intake();
            portal_link::consume(&mut batch, secret, &link);
            partner::check_unchanged(&mut batch, &partner);
            portal_session::evict_oldest(&self.store, &mut batch, account, id, now).await?;
            portal_session::create(&mut batch, &session);
            self_referral_guard::record_portal_visit(
                &mut batch,
                account,
                id,
                context.visitor.as_deref(),
                context.from,
                now,
            );
            // A concurrent request may have consumed the link.
            Ok(self
                .commit_unless(batch, |key| portal_link::caused_conflict(key).then(over))
                .await?
                .then_some((token, PartnerSession { session, partner, program })))
        })
        .await
    }

    /// Returns the session of a token; `None` if it has ended or the partner was rejected.
    pub async fn authenticate_partner(&self, token: &PortalToken) -> Result<Option<PartnerSession>> {
        let Some(session) = portal_session::get(&self.store, token, self.now()).await? else {
            return Ok(None);
        };
        let found = self.find_portal_partner(session.account, session.partner).await?;
        Ok(found.map(|(partner, program)| PartnerSession { session, partner, program }))
    }

    /// Ends a session.
    pub async fn sign_out_partner(&self, session: &PortalSession) -> Result<()> {
        let mut batch = Batch::progress();
        portal_session::delete(&mut batch, session);
        self.commit(batch).await?;
        Ok(())
    }

    /// Mails a sign-in link to the partner with this email, if there is one who may sign in. The page must not reveal
    /// whether there is.
    pub async fn request_login_link(&self, program: &AffiliateProgram, email: &Address) -> Result<()> {
        let found = partner::find_by_email(&self.store, program.account, email).await?;
        let Some(partner) = found.filter(|partner| partner.status != PartnerStatus::Rejected) else {
            return Ok(());
        };
        let mut batch = Batch::intake();
        queue_email(self, &mut batch, &partner, PartnerEmailKind::SignIn);
        self.commit(batch).await?;
        Ok(())
    }
}
