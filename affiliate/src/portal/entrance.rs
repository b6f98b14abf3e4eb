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
use mail::affiliate::partner_letter::Tells;
use mail::affiliate::portal::{LOGIN_LINK, LinkSecret, PortalLink, PortalSession, PortalToken, Purpose};
use mail::affiliate::program::Program;
use mail::domain::SealedKey;
use mail::id::{AccountId, PartnerId, SessionId};
use serde::{Deserialize, Serialize};
use store::affiliate::{own_visitor, partner, portal_link, portal_session};
use store::engine::Batch;

use crate::office::{Beside, Committed, Office, TRIES_MAX};
use crate::refusal::{Ban, Obstacle, Refusal};

/// A link that was just made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Minted {
    /// Where it leads.
    pub url: String,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// A partner at the portal, with its program.
#[derive(Debug, Clone)]
pub struct Guest {
    /// The session.
    pub session: PortalSession,
    /// The partner, as of this request.
    pub partner: Partner,
    /// Its program.
    pub program: Program,
}

/// The browser in which a partner signs in: what is bought in it later is the partner's own purchase.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// What the browser script knows it by, where the portal is on the website's own domain.
    pub visitor: Option<String>,
    /// From where.
    pub from: Option<IpAddr>,
}

/// What a link that works leads to.
#[derive(Debug, Clone)]
pub struct Door {
    /// The link.
    pub link: PortalLink,
    /// Whose it is.
    pub partner: Partner,
    /// Its program.
    pub program: Program,
}

impl Office {
    /// Makes a link that lets a partner in, once, within a minute; those before it end.
    ///
    /// # Errors
    /// There is no such partner, or it was refused; [`Refusal`].
    pub async fn mint_login_link(
        &self,
        (account, id): (AccountId, PartnerId),
        beside: Beside<'_, Minted>,
    ) -> Result<Minted, Refusal> {
        for _ in 0..TRIES_MAX {
            let program = self.set_up(account).await?;
            let partner = self.partner(account, id).await?;
            if partner.status == PartnerStatus::Rejected {
                return Err(Ban::RejectedPartner.into());
            }
            let (now, secret) = (self.now(), LinkSecret::new(self.hall.entropy().secret()));
            let expires_at = now.checked_add(LOGIN_LINK).unwrap_or(now);
            let link = PortalLink { account, partner: id, purpose: Purpose::Login, expires_at };
            let minting = portal_link::prepare(self.store(), link, &secret, now).await?;
            let mut batch = Batch::intake();
            // Who is refused or deleted meanwhile is not let in.
            partner::expect(&mut batch, &partner);
            minting.write(&mut batch);
            let origin = self.portal_origin(&program).await?.unwrap_or_default();
            let minted = Minted { url: format!("{origin}/portal/enter/{}", secret.text()), expires_at };
            beside(&mut batch, &minted);
            if matches!(self.commit(batch).await?, Committed::Done) {
                return Ok(minted);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// A link as it is kept for who asks for the same once more: sealed, since it lets in who has it.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub fn seal_minted(&self, id: PartnerId, minted: &Minted) -> Result<String, Refusal> {
        let text = serde_json::to_string(minted).map_err(|_| Refusal::Seal)?;
        Ok(self.seal(&id.to_bytes(), &text)?.0)
    }

    /// A link that was kept so, while it lives.
    ///
    /// # Errors
    /// It cannot be opened; it was used, another took its place, or its time is over.
    pub async fn open_minted(&self, id: PartnerId, sealed: &str) -> Result<Minted, Refusal> {
        let text = self.open(&id.to_bytes(), &SealedKey(sealed.to_owned())).ok_or(Refusal::Seal)?;
        let minted: Minted = serde_json::from_str(&text).map_err(|_| Refusal::Seal)?;
        let secret = minted.url.rsplit('/').next().and_then(LinkSecret::parse);
        match secret {
            Some(secret) if self.behind(&secret).await?.is_some() => Ok(minted),
            _ => Err(Obstacle::MintedOver.into()),
        }
    }

    /// What a link leads to, if it works: it is not used up by looking.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn behind(&self, secret: &LinkSecret) -> Result<Option<Door>, Refusal> {
        let Some(link) = portal_link::get(self.store(), secret).await? else { return Ok(None) };
        if link.expires_at <= self.now() {
            return Ok(None);
        }
        let found = self.of_portal(link.account, link.partner).await?;
        Ok(found.map(|(partner, program)| Door { link, partner, program }))
    }

    /// A partner who may look at the portal, and its program.
    async fn of_portal(
        &self,
        account: AccountId,
        id: PartnerId,
    ) -> Result<Option<(Partner, Program)>, Refusal> {
        let program = match self.set_up(account).await {
            Ok(program) => program,
            Err(Refusal::NotSetUp) => return Ok(None),
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
    pub async fn enter(&self, secret: &LinkSecret, seen: &Seen) -> Result<(PortalToken, Guest), Refusal> {
        let over = || Refusal::from(Obstacle::LinkOver);
        for _ in 0..TRIES_MAX {
            let Door { link, partner, program } = self.behind(secret).await?.ok_or_else(over)?;
            if !link.purpose.lets_in() {
                return Err(over());
            }
            let (now, of) = (self.now(), (partner.account, partner.id));
            let token =
                PortalToken::new(of, SessionId::new(now, self.random()), self.hall.entropy().secret());
            let session = PortalSession::new(&token, now);
            let mut batch = Batch::intake();
            portal_link::use_up(&mut batch, secret, &link);
            partner::expect(&mut batch, &partner);
            portal_session::make_room(self.store(), &mut batch, of, now).await?;
            portal_session::create(&mut batch, &session);
            own_visitor::note(&mut batch, of, (seen.visitor.as_deref(), seen.from), now);
            match self.commit(batch).await? {
                Committed::Done => return Ok((token, Guest { session, partner, program })),
                // Used by somebody else at the same moment.
                Committed::Beaten(key) if portal_link::is_about_one(&key) => return Err(over()),
                Committed::Beaten(_) => {}
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// Who comes with a session's token; nobody when it has ended, or when the partner was refused since.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn guest(&self, token: &PortalToken) -> Result<Option<Guest>, Refusal> {
        let Some(session) = portal_session::get(self.store(), token, self.now()).await? else {
            return Ok(None);
        };
        let found = self.of_portal(session.account, session.partner).await?;
        Ok(found.map(|(partner, program)| Guest { session, partner, program }))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn leave(&self, session: &PortalSession) -> Result<(), Refusal> {
        let mut batch = Batch::progress();
        portal_session::delete(&mut batch, session);
        self.commit(batch).await.map(drop)
    }

    /// Has a link to sign in with mailed to the partner of an address, if there is one who may come in. Whether there is,
    /// is not for the page to tell.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn ask_for_link(&self, program: &Program, email: &Address) -> Result<(), Refusal> {
        let found = partner::with_email(self.store(), program.account, email).await?;
        let Some(partner) = found.filter(|partner| partner.status != PartnerStatus::Rejected) else {
            return Ok(());
        };
        let mut batch = Batch::intake();
        self.write_to(&mut batch, &partner, Tells::SignIn);
        self.commit(batch).await.map(drop)
    }

    /// Forgets how a partner who is deleted got in.
    pub(crate) async fn shut_out(&self, of: (AccountId, PartnerId)) -> Result<(), Refusal> {
        let mut batch = Batch::progress();
        portal_link::forget(self.store(), &mut batch, of).await?;
        portal_session::forget(self.store(), &mut batch, of).await?;
        self.commit(batch).await.map(drop)
    }
}
