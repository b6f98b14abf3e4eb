//! How partners get into the portal, and out of it.
//!
//! ```text
//! POST /affiliates/{id}/login-link ─► a link of a minute ─┐
//! "mail me a link", an invitation  ─► a mailed link      ─┴─►[ - link, + session ] ─► a cookie of 12 hours
//! ```

use std::net::IpAddr;

use jiff::Timestamp;
use mail::address::Address;
use mail::affiliate::partner::{Partner, PartnerStatus};
use mail::affiliate::partner_letter::PartnerEmailKind;
use mail::affiliate::portal::{
    LOGIN_LINK_TTL, PortalLink, PortalLinkPurpose, PortalLinkSecret, PortalSession, PortalToken,
};
use mail::affiliate::program::AffiliateProgram;
use mail::domain::SealedSecret;
use mail::id::{AccountId, PartnerId, SessionId};
use serde::{Deserialize, Serialize};
use store::affiliate::{own_visitor, partner, portal_link, portal_session};
use store::engine::Batch;

use crate::office::{AffiliateService, CommitResult, ExtendCommit, TRIES_MAX};
use crate::refusal::{AffiliateError, ConflictReason, ForbiddenReason};

/// A link that was just made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewLink {
    /// Where it leads.
    pub url: String,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// A partner at the portal, with its program.
#[derive(Debug, Clone)]
pub struct PartnerSession {
    /// The session.
    pub session: PortalSession,
    /// The partner, as of this request.
    pub partner: Partner,
    /// Its program.
    pub program: AffiliateProgram,
}

/// The browser in which a partner signs in: what is bought in it later is the partner's own purchase.
#[derive(Debug, Clone, Default)]
pub struct SignInContext {
    /// What the browser script knows it by, where the portal is on the website's own domain.
    pub visitor: Option<String>,
    /// From where.
    pub from: Option<IpAddr>,
}

/// What a link that works leads to.
#[derive(Debug, Clone)]
pub struct LoginTarget {
    /// The link.
    pub link: PortalLink,
    /// Whose it is.
    pub partner: Partner,
    /// Its program.
    pub program: AffiliateProgram,
}

impl AffiliateService {
    /// Makes a link that lets a partner in, once, within a minute; those before it end.
    ///
    /// # Errors
    /// There is no such partner, or it was refused; [`Refusal`].
    pub async fn create_login_link(
        &self,
        (account, id): (AccountId, PartnerId),
        beside: ExtendCommit<'_, NewLink>,
    ) -> Result<NewLink, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let program = self.require_set_up(account).await?;
            let partner = self.get_partner(account, id).await?;
            if partner.status == PartnerStatus::Rejected {
                return Err(ForbiddenReason::RejectedPartner.into());
            }
            let (now, secret) = (self.now(), PortalLinkSecret::new(self.hall.entropy().secret()));
            let expires_at = now.checked_add(LOGIN_LINK_TTL).unwrap_or(now);
            let link = PortalLink { account, partner: id, purpose: PortalLinkPurpose::Login, expires_at };
            let minting = portal_link::prepare(self.store(), link, &secret, now).await?;
            let mut batch = Batch::intake();
            // Who is refused or deleted meanwhile is not let in.
            partner::check_unchanged(&mut batch, &partner);
            minting.write(&mut batch);
            let origin = self.portal_origin(&program).await?.unwrap_or_default();
            let minted = NewLink { url: format!("{origin}/portal/enter/{}", secret.text()), expires_at };
            beside(&mut batch, &minted);
            if matches!(self.commit(batch).await?, CommitResult::Committed) {
                return Ok(minted);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// A link as it is kept for who asks for the same once more: sealed, since it lets in who has it.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub fn seal_login_link(&self, id: PartnerId, minted: &NewLink) -> Result<String, AffiliateError> {
        let text = serde_json::to_string(minted).map_err(|_| AffiliateError::Seal)?;
        Ok(self.seal(&id.to_bytes(), &text)?.0)
    }

    /// A link that was kept so, while it lives.
    ///
    /// # Errors
    /// It cannot be opened; it was used, another took its place, or its time is over.
    pub async fn open_login_link(&self, id: PartnerId, sealed: &str) -> Result<NewLink, AffiliateError> {
        let text = self.open(&id.to_bytes(), &SealedSecret(sealed.to_owned())).ok_or(AffiliateError::Seal)?;
        let minted: NewLink = serde_json::from_str(&text).map_err(|_| AffiliateError::Seal)?;
        let secret = minted.url.rsplit('/').next().and_then(PortalLinkSecret::parse);
        match secret {
            Some(secret) if self.find_login_target(&secret).await?.is_some() => Ok(minted),
            _ => Err(ConflictReason::LoginLinkExpired.into()),
        }
    }

    /// What a link leads to, if it works: it is not used up by looking.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_login_target(&self, secret: &PortalLinkSecret) -> Result<Option<LoginTarget>, AffiliateError> {
        let Some(link) = portal_link::get(self.store(), secret).await? else { return Ok(None) };
        if link.expires_at <= self.now() {
            return Ok(None);
        }
        let found = self.find_portal_partner(link.account, link.partner).await?;
        Ok(found.map(|(partner, program)| LoginTarget { link, partner, program }))
    }

    /// A partner who may look at the portal, and its program.
    async fn find_portal_partner(
        &self,
        account: AccountId,
        id: PartnerId,
    ) -> Result<Option<(Partner, AffiliateProgram)>, AffiliateError> {
        let program = match self.require_set_up(account).await {
            Ok(program) => program,
            Err(AffiliateError::NotSetUp) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        let found = partner::get(self.store(), account, id).await?;
        let found = found.filter(|partner| partner.status != PartnerStatus::Rejected);
        Ok(found.map(|partner| (partner, program)))
    }

    /// Lets in who comes by a link, and uses it up: of two who come at once, one is let in.
    ///
    /// # Errors
    /// The link was used, or is too old; [`Refusal`].
    pub async fn sign_in(
        &self,
        secret: &PortalLinkSecret,
        seen: &SignInContext,
    ) -> Result<(PortalToken, PartnerSession), AffiliateError> {
        let over = || AffiliateError::from(ConflictReason::PortalLinkExpired);
        for _ in 0..TRIES_MAX {
            let LoginTarget { link, partner, program } = self.find_login_target(secret).await?.ok_or_else(over)?;
            if !link.purpose.signs_in() {
                return Err(over());
            }
            let (now, of) = (self.now(), (partner.account, partner.id));
            let token = PortalToken::new(of, SessionId::new(now, self.random()), self.hall.entropy().secret());
            let session = PortalSession::new(&token, now);
            let mut batch = Batch::intake();
            portal_link::consume(&mut batch, secret, &link);
            partner::check_unchanged(&mut batch, &partner);
            portal_session::evict_oldest(self.store(), &mut batch, of, now).await?;
            portal_session::create(&mut batch, &session);
            own_visitor::record_portal_visit(&mut batch, of, (seen.visitor.as_deref(), seen.from), now);
            match self.commit(batch).await? {
                CommitResult::Committed => return Ok((token, PartnerSession { session, partner, program })),
                // Used by somebody else at the same moment.
                CommitResult::Conflict(key) if portal_link::caused_conflict(&key) => return Err(over()),
                CommitResult::Conflict(_) => {}
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Who comes with a session's token; nobody when it has ended, or when the partner was refused since.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn authenticate(&self, token: &PortalToken) -> Result<Option<PartnerSession>, AffiliateError> {
        let Some(session) = portal_session::get(self.store(), token, self.now()).await? else {
            return Ok(None);
        };
        let found = self.find_portal_partner(session.account, session.partner).await?;
        Ok(found.map(|(partner, program)| PartnerSession { session, partner, program }))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn sign_out(&self, session: &PortalSession) -> Result<(), AffiliateError> {
        let mut batch = Batch::progress();
        portal_session::delete(&mut batch, session);
        self.commit(batch).await.map(drop)
    }

    /// Has a link to sign in with mailed to the partner of an address, if there is one who may come in. Whether there is,
    /// is not for the page to tell.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn request_login_link(&self, program: &AffiliateProgram, email: &Address) -> Result<(), AffiliateError> {
        let found = partner::find_by_email(self.store(), program.account, email).await?;
        let Some(partner) = found.filter(|partner| partner.status != PartnerStatus::Rejected) else {
            return Ok(());
        };
        let mut batch = Batch::intake();
        self.queue_email(&mut batch, &partner, PartnerEmailKind::SignIn);
        self.commit(batch).await.map(drop)
    }

    /// Forgets how a partner who is deleted got in.
    pub(crate) async fn revoke_portal_access(&self, of: (AccountId, PartnerId)) -> Result<(), AffiliateError> {
        let mut batch = Batch::progress();
        portal_link::purge_by_partner(self.store(), &mut batch, of).await?;
        portal_session::delete_by_partner(self.store(), &mut batch, of).await?;
        self.commit(batch).await.map(drop)
    }
}
