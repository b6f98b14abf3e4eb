//! Payout destination set by the partner: a change requested in the session takes effect after confirmation by email.
//!
//! ```text
//! form ─►[ queued email ] ─► mail with a link ─► page with a button ─►[ link deleted, destination, event, emails ]
//! ```

use model::affiliate::partner::{Partner, PartnerStatus, PayoutDestination};
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::portal::{PortalLinkPurpose, PortalLinkSecret};
use model::affiliate::program::{AffiliateProgram, PayoutMethod};
use store::affiliate::{partner, portal_link};
use store::engine::Batch;

use super::login::LoginTarget;
use crate::error::{AffiliateError, ConflictReason, Result};
use crate::partner_emails::sender::queue_email;
use crate::partners::changes::Partners;
use crate::partners::lookup::PartnerView;

/// Returns the payout methods that a partner may choose: the allowed ones except transfers, whose accounts the owner
/// connects.
pub fn payout_methods(program: &AffiliateProgram) -> Vec<PayoutMethod> {
    let allowed = &program.settings.allowed_methods;
    allowed.iter().copied().filter(|method| method.is_manual()).collect()
}

/// Validates a payout destination entered by a partner.
///
/// # Errors
/// A field error on `method` or `destination`.
pub fn parse_payout_destination(
    program: &AffiliateProgram,
    method: &str,
    destination: &str,
) -> Result<PayoutDestination> {
    let method = PayoutMethod::from_word(method).filter(|method| payout_methods(program).contains(method));
    let method = method.ok_or_else(|| AffiliateError::field("method", "is not a payout method of this program"))?;
    PayoutDestination::new(method, destination).map_err(|reason| AffiliateError::field("destination", reason))
}

impl Partners {
    /// Mails the partner a link that confirms a new payout destination.
    ///
    /// # Errors
    /// `NoMail` if the email cannot be sent; `Changed`; the store failed.
    pub async fn request_payout_change(
        &self,
        partner: &Partner,
        program: &AffiliateProgram,
        payout: PayoutDestination,
    ) -> Result<()> {
        if !self.senders.answers_by_mail(program).await? {
            return Err(ConflictReason::NoMail.into());
        }
        let PayoutDestination { method, destination, .. } = payout;
        let mut batch = Batch::intake();
        partner::check_unchanged(&mut batch, partner);
        queue_email(&self.context, &mut batch, partner, PartnerEmailKind::ConfirmPayout { method, destination });
        self.context.commit_unless(batch, |_| Some(ConflictReason::Changed)).await.map(drop)
    }

    /// Returns the destination that a link would confirm, if the link is valid.
    pub async fn find_payout_change(
        &self,
        secret: &PortalLinkSecret,
    ) -> Result<Option<(LoginTarget, PayoutDestination)>> {
        let Some(target) = self.context.find_login_target(secret).await? else { return Ok(None) };
        let PortalLinkPurpose::Payout { method, destination } = target.link.purpose.clone() else {
            return Ok(None);
        };
        let payout = PayoutDestination { method, destination, is_able: true };
        Ok(Some((target, payout)))
    }

    /// Sets the destination named by a link, and consumes the link.
    ///
    /// # Errors
    /// `PortalLinkExpired` if the link was used or has expired, or the partner is not active; `MethodNotOffered`; the
    /// store failed.
    pub async fn confirm_payout_change(&self, secret: &PortalLinkSecret) -> Result<PartnerView> {
        let over = || AffiliateError::from(ConflictReason::PortalLinkExpired);
        let (LoginTarget { link, partner, program }, payout) =
            self.find_payout_change(secret).await?.ok_or_else(over)?;
        if partner.status != PartnerStatus::Active {
            return Err(over());
        }
        if !payout_methods(&program).contains(&payout.method) {
            return Err(ConflictReason::MethodNotOffered.into());
        }
        let using = |batch: &mut Batch, _: &PartnerView| portal_link::consume(batch, secret, &link);
        self.set_payout_destination(link.account, link.partner, &payout, None, &using).await
    }
}
