//! Partners as operations read them: with their program and links.

use std::borrow::Cow;

use model::affiliate::partner::{Partner, PartnerLink, PartnerLinkToken, PartnerStatus};
use model::affiliate::program::AffiliateProgram;
use model::event::EventKind;
use model::id::{AccountId, PartnerId};
use store::affiliate::{partner, partner_link};
use store::engine::{Batch, ReadError};

use crate::api_objects::PartnerObject;
use crate::context::Context;
use crate::error::{AffiliateError, AffiliateNoun, MailWarning, Result};
use crate::events::EventBuilder;

/// A partner with its program and links: the primary one only, or all.
#[derive(Debug, Clone)]
pub struct PartnerView {
    pub partner: Partner,
    pub links: Vec<PartnerLink>,
    pub program: AffiliateProgram,
    /// Warning for the owner about the email of this operation.
    pub warning: Option<MailWarning>,
    /// True if the recruiter was deleted; it is then shown as none.
    pub is_recruiter_gone: bool,
}

impl PartnerView {
    pub fn of(partner: Partner, links: Vec<PartnerLink>, program: AffiliateProgram) -> Self {
        Self { partner, links, program, warning: None, is_recruiter_gone: false }
    }

    /// Builds the API object.
    pub fn object(&self) -> PartnerObject {
        let mut partner = Cow::Borrowed(&self.partner);
        if self.is_recruiter_gone {
            partner.to_mut().parent = None;
        }
        PartnerObject::of(&partner, &self.links, &self.program)
    }

    pub(crate) fn event(&self) -> EventBuilder<'_> {
        EventBuilder::for_partner(&self.program, self.partner.id).with("affiliate", &self.object())
    }

    /// Adds the event of the partner to the commit of the change it reports.
    pub(crate) fn record_event(&self, batch: &mut Batch, kind: EventKind, context: &Context) {
        self.event().record_now(batch, kind, self.partner.id, context);
    }
}

impl Context {
    /// Fetches a partner.
    pub async fn get_partner(&self, account: AccountId, id: PartnerId) -> Result<Partner> {
        partner::get(&self.store, account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))
    }

    /// Returns a partner with its program and all links.
    ///
    /// # Errors
    /// `NotFound`; `NotSetUp`; the store cannot be read.
    pub async fn get_partner_view(&self, account: AccountId, id: PartnerId) -> Result<PartnerView> {
        let program = self.require_set_up(account).await?;
        let partner = self.get_partner(account, id).await?;
        let links = self.list_links(account, id).await?;
        let is_recruiter_gone = self.is_recruiter_gone(&partner).await?;
        Ok(PartnerView { is_recruiter_gone, ..PartnerView::of(partner, links, program) })
    }

    /// True if the partner's recruiter was deleted.
    pub(crate) async fn is_recruiter_gone(&self, partner: &Partner) -> Result<bool> {
        Ok(match partner.parent {
            Some(parent) => partner::get(&self.store, partner.account, parent).await?.is_none(),
            None => false,
        })
    }

    /// Lists a partner's links, oldest first.
    pub async fn list_links(&self, account: AccountId, partner: PartnerId) -> Result<Vec<PartnerLink>> {
        Ok(partner_link::list(&self.store, account, partner).await?)
    }
}

/// Returns the link of a token with its partner, if that is active.
pub(crate) async fn find_active_partner(
    context: &Context,
    account: AccountId,
    token: &PartnerLinkToken,
) -> Result<Option<(PartnerLink, Partner)>, ReadError> {
    let Some(link) = partner_link::find_by_token(&context.store, account, token).await? else { return Ok(None) };
    let found = partner::get(&context.store, account, link.partner).await?;
    Ok(found.filter(|partner| partner.status == PartnerStatus::Active).map(|partner| (link, partner)))
}
