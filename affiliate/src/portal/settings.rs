//! Postback settings of a partner: rotation of the secret.

use mail::affiliate::partner::Partner;
use mail::event::EventKind;
use mail::id::{AccountId, PartnerId};
use store::affiliate::partner;
use store::engine::Batch;

use crate::error::{AffiliateError, ConflictReason};
use crate::partners::PartnerView;
use crate::service::{AffiliateService, CommitResult, TRIES_MAX};

impl AffiliateService {
    /// Replaces the secret of a partner's postbacks and returns the new one. It is not shown to the partner again.
    ///
    /// # Errors
    /// `NotFound`; `Changed` after too many conflicts; the store failed.
    pub async fn rotate_postback_secret(&self, account: AccountId, id: PartnerId) -> Result<String, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let PartnerView { partner: before, links, program, .. } = self.get_partner_view(account, id).await?;
            let secret = mail::webhook::format_secret(&self.intake.entropy().secret());
            let after = Partner {
                postback_secret: self.seal(&id.to_bytes(), &secret)?,
                rev: before.rev.saturating_add(1),
                updated_at: self.now(),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            partner::update(&mut batch, &before, &after);
            let view = PartnerView::of(after, links, program);
            self.record_partner_event(&mut batch, EventKind::AffiliateUpdated, &view);
            if matches!(self.commit(batch).await?, CommitResult::Committed) {
                return Ok(secret);
            }
        }
        Err(ConflictReason::Changed.into())
    }
}
