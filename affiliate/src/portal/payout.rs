//! Where a partner's money goes, said by the partner: what its session asks for counts when its mail says so too.
//!
//! ```text
//! form ─►[ letter ] ─► mail with a link ─► page with a button ─►[ - link, destination, event, letters ]
//! ```

use mail::affiliate::partner::{Partner, PartnerStatus, PayoutDestination};
use mail::affiliate::partner_letter::PartnerEmailKind;
use mail::affiliate::portal::{PortalLinkPurpose, PortalLinkSecret};
use mail::affiliate::program::{AffiliateProgram, PayoutMethod};
use store::affiliate::{partner, portal_link};
use store::engine::Batch;

use super::entrance::LoginTarget;
use crate::office::{AffiliateService, CommitResult};
use crate::partners::PartnerView;
use crate::refusal::{AffiliateError, ConflictReason};

/// The ways of payment that a partner may choose: those that the program allows, but for accounts at the processor, which
/// the owner connects.
#[must_use]
pub fn payout_methods(program: &AffiliateProgram) -> Vec<PayoutMethod> {
    let allowed = &program.settings.allowed_methods;
    allowed.iter().copied().filter(|method| method.is_manual()).collect()
}

/// Where a partner wants its money to go.
///
/// # Errors
/// What is wrong with it.
pub fn parse_payout_destination(
    program: &AffiliateProgram,
    (method, destination): (&str, &str),
) -> Result<PayoutDestination, AffiliateError> {
    let method = PayoutMethod::from_word(method).filter(|method| payout_methods(program).contains(method));
    let method = method.ok_or_else(|| AffiliateError::field("method", "is none that this program pays by"))?;
    PayoutDestination::new(method, destination).map_err(|why| AffiliateError::field("destination", why))
}

impl AffiliateService {
    /// Has a letter written by which a partner confirms another destination of its payouts.
    ///
    /// # Errors
    /// It could not be mailed; [`Refusal`].
    pub async fn request_payout_change(
        &self,
        (partner, program): (&Partner, &AffiliateProgram),
        payout: PayoutDestination,
    ) -> Result<(), AffiliateError> {
        if !self.answers_by_mail(program).await? {
            return Err(ConflictReason::NoMail.into());
        }
        let PayoutDestination { method, destination, .. } = payout;
        let mut batch = Batch::intake();
        partner::check_unchanged(&mut batch, partner);
        self.queue_email(&mut batch, partner, PartnerEmailKind::ConfirmPayout { method, destination });
        match self.commit(batch).await? {
            CommitResult::Committed => Ok(()),
            CommitResult::Conflict(_) => Err(ConflictReason::Changed.into()),
        }
    }

    /// What a link is to confirm, if it works.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_payout_change(
        &self,
        secret: &PortalLinkSecret,
    ) -> Result<Option<(LoginTarget, PayoutDestination)>, AffiliateError> {
        let Some(door) = self.find_login_target(secret).await? else { return Ok(None) };
        let PortalLinkPurpose::Payout { method, destination } = door.link.purpose.clone() else {
            return Ok(None);
        };
        let payout = PayoutDestination { method, destination, is_able: true };
        Ok(Some((door, payout)))
    }

    /// Has payouts go where a link says, and uses it up.
    ///
    /// # Errors
    /// The link was used, or is too old, or the partner is not active any more; [`Refusal`].
    pub async fn confirm_payout_change(&self, secret: &PortalLinkSecret) -> Result<PartnerView, AffiliateError> {
        let over = || AffiliateError::from(ConflictReason::PortalLinkExpired);
        let (LoginTarget { link, partner, program }, payout) =
            self.find_payout_change(secret).await?.ok_or_else(over)?;
        if partner.status != PartnerStatus::Active || !payout_methods(&program).contains(&payout.method) {
            return Err(over());
        }
        let using = |batch: &mut Batch, _: &PartnerView| portal_link::consume(batch, secret, &link);
        self.set_payout_destination((link.account, link.partner), (&payout, None), &using).await
    }
}
