//! Where a partner's money goes, said by the partner: what its session asks for counts when its mail says so too.
//!
//! ```text
//! form ─►[ letter ] ─► mail with a link ─► page with a button ─►[ - link, destination, event, letters ]
//! ```

use mail::affiliate::partner::{Partner, PartnerStatus, PayoutDestination};
use mail::affiliate::partner_letter::Tells;
use mail::affiliate::portal::{LinkSecret, Purpose};
use mail::affiliate::program::{PayoutMethod, Program};
use store::affiliate::{partner, portal_link};
use store::engine::Batch;

use super::entrance::Door;
use crate::office::{Committed, Office};
use crate::partners::Shown;
use crate::refusal::{Obstacle, Refusal};

/// The ways of payment that a partner may choose: those that the program allows, but for accounts at the processor, which
/// the owner connects.
#[must_use]
pub fn choices(program: &Program) -> Vec<PayoutMethod> {
    let allowed = &program.settings.allowed_methods;
    allowed.iter().copied().filter(|method| method.is_manual()).collect()
}

/// Where a partner wants its money to go.
///
/// # Errors
/// What is wrong with it.
pub fn payout_wish(
    program: &Program,
    (method, destination): (&str, &str),
) -> Result<PayoutDestination, Refusal> {
    let method = PayoutMethod::of_word(method).filter(|method| choices(program).contains(method));
    let method = method.ok_or_else(|| Refusal::field("method", "is none that this program pays by"))?;
    PayoutDestination::new(method, destination).map_err(|why| Refusal::field("destination", why))
}

impl Office {
    /// Has a letter written by which a partner confirms another destination of its payouts.
    ///
    /// # Errors
    /// It could not be mailed; [`Refusal`].
    pub async fn ask_payout_change(
        &self,
        (partner, program): (&Partner, &Program),
        payout: PayoutDestination,
    ) -> Result<(), Refusal> {
        if !self.answers_by_mail(program).await? {
            return Err(Obstacle::NoMail.into());
        }
        let PayoutDestination { method, destination, .. } = payout;
        let mut batch = Batch::intake();
        partner::expect(&mut batch, partner);
        self.write_to(&mut batch, partner, Tells::ConfirmPayout { method, destination });
        match self.commit(batch).await? {
            Committed::Done => Ok(()),
            Committed::Beaten(_) => Err(Obstacle::Changed.into()),
        }
    }

    /// What a link is to confirm, if it works.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn payout_change(
        &self,
        secret: &LinkSecret,
    ) -> Result<Option<(Door, PayoutDestination)>, Refusal> {
        let Some(door) = self.behind(secret).await? else { return Ok(None) };
        let Purpose::Payout { method, destination } = door.link.purpose.clone() else { return Ok(None) };
        let payout = PayoutDestination { method, destination, is_able: true };
        Ok(Some((door, payout)))
    }

    /// Has payouts go where a link says, and uses it up.
    ///
    /// # Errors
    /// The link was used, or is too old, or the partner is not active any more; [`Refusal`].
    pub async fn confirm_payout_change(&self, secret: &LinkSecret) -> Result<Shown, Refusal> {
        let over = || Refusal::from(Obstacle::LinkOver);
        let (Door { link, partner, program }, payout) = self.payout_change(secret).await?.ok_or_else(over)?;
        if partner.status != PartnerStatus::Active || !choices(&program).contains(&payout.method) {
            return Err(over());
        }
        let using = |batch: &mut Batch, _: &Shown| portal_link::use_up(batch, secret, &link);
        self.set_payout((link.account, link.partner), (&payout, None), &using).await
    }
}
