//! Who joins by itself: by the program's public form, or by accepting its invitation.
//!
//! The form tells nobody whose partner an address is: who is one already is mailed a link to sign in, and the page says
//! the same. Of who waits for an answer the owner is told by mail.

use mail::affiliate::campaign::{Campaign, Visibility};
use mail::affiliate::partner::{Move, Partner, PartnerSource, PartnerStatus, Token};
use mail::affiliate::program::Program;
use mail::id::{AccountId, CampaignId, PartnerId};
use mail::owner_notice::About;
use store::affiliate::{campaign, partner, partner_link};
use store::engine::Batch;

use crate::office::{Office, nothing_beside};
use crate::partners::{Moving, PartnerDraft, Shown};
use crate::refusal::{Obstacle, Refusal};

/// What the form says.
#[derive(Debug, Clone)]
pub struct Application {
    /// Who, and where from; its campaign, status, source, token and recruiter are decided here.
    pub draft: PartnerDraft,
    /// The token of who recruited them.
    pub via: Option<Token>,
    /// The program's terms were accepted with it.
    pub accepts_terms: bool,
}

impl Office {
    /// The campaign that somebody joins by the form: the one named, if it is not private; else the default one, or the
    /// newest, of those that are public. None when the program takes nobody by itself.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn campaign_to_join(
        &self,
        program: &Program,
        named: Option<CampaignId>,
    ) -> Result<Option<Campaign>, Refusal> {
        let account = program.account;
        if let Some(id) = named {
            let found = campaign::get(self.store(), account, id).await?;
            let is_open = |campaign: &Campaign| {
                campaign.visibility != Visibility::Private && campaign.archived_at.is_none()
            };
            return Ok(found.filter(is_open));
        }
        let all = campaign::all(self.store(), account).await?;
        let mut open = all
            .into_iter()
            .filter(|campaign| campaign.visibility == Visibility::Public && campaign.archived_at.is_none());
        let first = open.next();
        let is_default = |campaign: &Campaign| Some(campaign.id) == program.default_campaign;
        match first {
            Some(first) if !is_default(&first) => Ok(Some(open.find(is_default).unwrap_or(first))),
            first => Ok(first),
        }
    }

    /// Takes in who applies by the form: active at once, or waiting for the owner, as the campaign says.
    ///
    /// # Errors
    /// [`Refusal`]; nothing about who is a partner already.
    pub async fn apply_by_form(
        &self,
        program: &Program,
        campaign: &Campaign,
        application: &Application,
    ) -> Result<(), Refusal> {
        let account = program.account;
        let parent = match &application.via {
            Some(token) => self.recruiter(account, token).await?,
            None => None,
        };
        let draft = PartnerDraft {
            campaign: Some(campaign.id.to_string()),
            token: None,
            status: if campaign.auto_approve { PartnerStatus::Active } else { PartnerStatus::Pending },
            parent,
            source: PartnerSource::Portal,
            send_invite: true,
            terms_accepted: application.accepts_terms,
            ..application.draft.clone()
        };
        let place = self.hall.notice_place();
        let tell_owner = |batch: &mut Batch, shown: &Shown| {
            let Partner { id: affiliate, email, status, .. } = &shown.partner;
            if *status == PartnerStatus::Pending {
                let about = About::Application { affiliate: *affiliate, applicant: email.clone() };
                self.hall.notice(batch, place, (account, about));
            }
        };
        match self.create_partner(account, &draft, &tell_owner).await {
            Ok(_) => {
                self.hall.noticed(place);
                Ok(())
            }
            Err(Refusal::Obstacle(Obstacle::EmailTaken)) => self.ask_for_link(program, &draft.email).await,
            Err(refusal) => Err(refusal),
        }
    }

    /// The partner who recruits by a token.
    async fn recruiter(&self, account: AccountId, token: &Token) -> Result<Option<PartnerId>, Refusal> {
        let Some(link) = partner_link::with_token(self.store(), account, token).await? else {
            return Ok(None);
        };
        let found = partner::get(self.store(), account, link.partner).await?;
        Ok(found.filter(|partner| partner.status == PartnerStatus::Active).map(|partner| partner.id))
    }

    /// A partner who was invited accepts, and is active.
    ///
    /// # Errors
    /// It is not invited; [`Refusal`].
    pub async fn accept_invitation(&self, partner: &Partner) -> Result<Shown, Refusal> {
        let moving = Moving { action: Move::Accept, seen: None, reason: None, send_email: false };
        self.move_partner((partner.account, partner.id), &moving, &nothing_beside).await
    }
}
