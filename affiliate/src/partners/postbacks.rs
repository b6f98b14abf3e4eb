//! Postbacks as the owner and the portal see them: the log of a partner's deliveries, a test delivery,
//! and the rotation of the secret.
//!
//! ```text
//! event of a partner's referral or commission ─► outbox ─► delivery ─► signed POST with retries (events/src/webhooks)
//!                                                            └─► the log
//! ```

use events::webhooks::WebhookError;
use jiff::Timestamp;
use model::affiliate::partner::Partner;
use model::affiliate::postback;
use model::event::{Event, EventKind};
use model::id::{AccountId, DeliveryId, EventId, PartnerId, ReferralId};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt};
use serde_json::json;
use store::affiliate::partner;
use store::engine::Batch;
use store::retry_on_conflict;

use crate::error::{AffiliateError, ConflictReason, Result};
use crate::partners::changes::Partners;
use crate::partners::lookup::PartnerView;
use crate::secrets;

/// A delivery to a partner's address, sent or pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackDelivery {
    /// The event with its body and delivery status.
    pub delivery: WebhookDelivery,
    /// Oldest first.
    pub attempts: Vec<WebhookDeliveryAttempt>,
}

impl Partners {
    /// Lists the deliveries to a partner's address in the last 30 days, newest first, at most `limit`. Returns the
    /// cursor of the next page as well.
    pub async fn list_postbacks(
        &self,
        account: AccountId,
        partner: PartnerId,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<PostbackDelivery>, Option<DeliveryId>)> {
        let (found, next) = self.processor.webhooks.list_postbacks(account, partner, before, limit).await?;
        let mut sent = Vec::with_capacity(found.len());
        for delivery in found {
            let attempts = store::webhook_delivery::list_attempts(&self.context.store, &delivery).await?;
            sent.push(PostbackDelivery { delivery, attempts });
        }
        Ok((sent, next))
    }

    /// Sends a test event to a partner's address: one signed attempt, whose result is in the log.
    ///
    /// # Errors
    /// A field error if the partner has no address; `NotFound`; `NotSetUp`; `Changed`; the store failed.
    pub async fn send_test_postback(&self, account: AccountId, id: PartnerId) -> Result<WebhookDelivery> {
        let program = self.context.get_program(account).await?;
        let partner = self.context.get_partner(account, id).await?;
        if partner.postback_url.is_none() {
            return Err(AffiliateError::field("postback_url", "is not set"));
        }
        let now = self.context.now();
        let event = example_event(account, program.id, id, now, self.context.random());
        let body = postback::postback_body(&event, program.settings.share_customer_email).unwrap_or_default();
        let attempt = self.processor.webhooks.send_test_postback(account, id, event.id, event.kind.name(), &body).await;
        attempt.map_err(|error| match error {
            WebhookError::Read(error) => AffiliateError::Read(error),
            WebhookError::Commit(error) => AffiliateError::Commit(error),
            _ => ConflictReason::Changed.into(),
        })
    }

    /// Replaces the secret of a partner's postbacks and returns the new one. It is not shown to the partner again.
    ///
    /// # Errors
    /// `NotFound`; `Changed` after too many conflicts; the store failed.
    pub async fn rotate_postback_secret(&self, account: AccountId, id: PartnerId) -> Result<String> {
        retry_on_conflict(|| async {
            let PartnerView { partner: before, links, program, .. } =
                self.context.get_partner_view(account, id).await?;
            let secret = model::webhook::format_secret(&self.context.entropy.secret());
            let after = Partner {
                postback_secret: secrets::seal(&self.vault, &id.to_bytes(), &secret)?,
                rev: before.rev.saturating_add(1),
                updated_at: self.context.now(),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            partner::update(&mut batch, &before, &after);
            let view = PartnerView::of(after, links, program);
            view.record_event(&mut batch, EventKind::AffiliateUpdated, &self.context);
            Ok(self.context.commit(batch).await?.then_some(secret))
        })
        .await
    }
}

/// Builds an example event of a referral that does not exist.
fn example_event(
    account: AccountId,
    program: model::id::ProgramId,
    partner: PartnerId,
    now: Timestamp,
    random: u128,
) -> Event {
    let referral = ReferralId::new(now, random);
    let detail = json!({
        "program_id": program,
        "affiliate_id": partner,
        "test": true,
        "referral_id": referral,
        "referral": {
            "object": "affiliate_referral", "id": referral, "affiliate_id": partner, "status": "lead",
            "source": "signup", "email": "customer@example.com", "sub_id": null,
        },
    });
    Event::new(EventId::new(now, random), account, referral, EventKind::ReferralCreated, now, detail)
}
