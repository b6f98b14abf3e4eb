//! Self-service joining: by the program's public form, or by accepting an invitation.
//!
//! The form does not reveal whether an email is a partner's: an existing partner is mailed a sign-in link, and the page
//! shows the same text. The owner is mailed about each application that needs a decision.

use model::affiliate::campaign::{Campaign, Visibility};
use model::affiliate::partner::{Partner, PartnerAction, PartnerLinkToken, PartnerSource, PartnerStatus};
use model::affiliate::partner_fields::{PartnerDraft, PartnerOrigin};
use model::affiliate::program::AffiliateProgram;
use model::id::CampaignId;
use model::owner_alert::AlertSubject;
use store::affiliate::campaign;
use store::engine::Batch;

use crate::context::{Context, no_extension};
use crate::error::{AffiliateError, ConflictReason, Result};
use crate::partners::changes::{PartnerStatusChange, Partners};
use crate::partners::lookup::{PartnerView, find_active_partner};

/// A submitted application form.
#[derive(Debug, Clone)]
pub struct PartnerApplication {
    /// The applicant's fields. Campaign, status, source, token and recruiter are set here.
    pub draft: PartnerDraft,
    /// Token of the recruiter's link.
    pub via: Option<PartnerLinkToken>,
    pub accepts_terms: bool,
}

impl Context {
    /// Returns the campaign that the form joins: the named one unless it is private, else the default one if it is
    /// public, else the newest public one. `None` if the program is not open to applications.
    pub async fn campaign_to_join(
        &self,
        program: &AffiliateProgram,
        named: Option<CampaignId>,
    ) -> Result<Option<Campaign>> {
        let account = program.account;
        if let Some(id) = named {
            let found = campaign::get(&self.store, account, id).await?;
            let is_open =
                |campaign: &Campaign| campaign.visibility != Visibility::Private && campaign.archived_at.is_none();
            return Ok(found.filter(is_open));
        }
        let all = campaign::list(&self.store, account).await?;
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
}

impl Partners {
    /// Creates the applicant as a partner: active, or pending if the campaign requires approval.
    ///
    /// # Errors
    /// Field errors or a quota; the store failed. An existing partner is no error.
    pub async fn apply_by_form(
        &self,
        program: &AffiliateProgram,
        campaign: &Campaign,
        application: &PartnerApplication,
    ) -> Result<()> {
        let account = program.account;
        let parent = match &application.via {
            Some(token) => find_active_partner(&self.context, account, token).await?.map(|(_, partner)| partner.id),
            None => None,
        };
        let draft = PartnerDraft {
            campaign: Some(campaign.id.to_string()),
            token: None,
            status: if campaign.auto_approve { PartnerStatus::Active } else { PartnerStatus::Pending },
            parent,
            origin: PartnerOrigin { source: PartnerSource::Portal, terms_accepted: application.accepts_terms },
            send_invite: true,
            ..application.draft.clone()
        };
        let partition = self.owner_alerts.choose_partition();
        let alert_owner = |batch: &mut Batch, view: &PartnerView| {
            let Partner { id: affiliate, email, status, .. } = &view.partner;
            if *status == PartnerStatus::Pending {
                let subject = AlertSubject::Application { affiliate: *affiliate, applicant: email.clone() };
                self.owner_alerts.put(batch, partition, account, subject);
            }
        };
        match self.create_partner(account, &draft, &alert_owner).await {
            Ok(_) => {
                self.owner_alerts.notify(partition);
                Ok(())
            }
            Err(AffiliateError::Conflict(ConflictReason::EmailTaken)) => {
                self.context.request_login_link(program, &draft.email).await
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Accepts an invitation: the partner becomes active.
    ///
    /// # Errors
    /// The partner is not invited; the store failed.
    pub async fn accept_invitation(&self, partner: &Partner) -> Result<PartnerView> {
        let status_change =
            PartnerStatusChange { action: PartnerAction::Accept, seen: None, reason: None, send_email: false };
        self.change_partner_status(partner.account, partner.id, &status_change, &no_extension).await
    }
}
