//! Postbacks as the owner and the portal see them: the log of a partner's deliveries, and a test delivery.
//!
//! ```text
//! event of a partner's referral or commission ─► outbox ─► delivery ─► signed POST with retries (queue/src/webhooks)
//!                                                            └─► the log
//! ```

use jiff::Timestamp;
use mail::affiliate::postback;
use mail::event::{Event, EventKind};
use mail::id::{AccountId, DeliveryId, EventId, PartnerId, ReferralId};
use mail::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt};
use queue::webhooks::WebhookError;
use serde_json::json;

use crate::error::{AffiliateError, AffiliateNoun, ConflictReason};
use crate::service::AffiliateService;

/// A delivery to a partner's address, sent or pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackDelivery {
    /// The event with its body and delivery status.
    pub delivery: WebhookDelivery,
    /// Oldest first.
    pub attempts: Vec<WebhookDeliveryAttempt>,
}

impl AffiliateService {
    /// Lists the deliveries to a partner's address in the last 30 days, newest first, at most `limit`. Returns the
    /// cursor of the next page as well.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_postbacks(
        &self,
        account: AccountId,
        partner: PartnerId,
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<PostbackDelivery>, Option<DeliveryId>), AffiliateError> {
        let (found, next) = self.intake.webhooks().list_postbacks(account, partner, before, limit).await?;
        let mut sent = Vec::with_capacity(found.len());
        for delivery in found {
            let attempts = store::webhook_delivery::list_attempts(self.store(), &delivery).await?;
            sent.push(PostbackDelivery { delivery, attempts });
        }
        Ok((sent, next))
    }

    /// Sends a test event to a partner's address: one signed attempt, whose result is in the log.
    ///
    /// # Errors
    /// A field error if the partner has no address; `NotFound`; `NotSetUp`; `Changed`; the store failed.
    pub async fn send_test_postback(
        &self,
        account: AccountId,
        id: PartnerId,
    ) -> Result<WebhookDelivery, AffiliateError> {
        let program = self.get_program(account).await?;
        let found = store::affiliate::partner::get(self.store(), account, id).await?;
        let partner = found.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))?;
        if partner.postback_url.is_none() {
            return Err(AffiliateError::field("postback_url", "is not set"));
        }
        let now = self.now();
        let event = example_event(account, program.id, id, now, self.random());
        let body = postback::postback_body(&event, program.settings.share_customer_email).unwrap_or_default();
        let attempt = self.intake.webhooks().send_test_postback(account, id, event.id, event.kind.name(), &body).await;
        attempt.map_err(|error| match error {
            WebhookError::Read(error) => AffiliateError::Read(error),
            WebhookError::Commit(error) => AffiliateError::Commit(error),
            _ => ConflictReason::Changed.into(),
        })
    }
}

/// Builds an example event of a referral that does not exist.
fn example_event(
    account: AccountId,
    program: mail::id::ProgramId,
    partner: PartnerId,
    now: Timestamp,
    random: u128,
) -> Event {
    let referral = ReferralId::new(now, random);
    Event {
        id: EventId::new(now, random),
        account,
        subject: referral.into(),
        kind: EventKind::ReferralCreated,
        recipient: None,
        created_at: now,
        detail: json!({
            "program_id": program,
            "affiliate_id": partner,
            "test": true,
            "referral_id": referral,
            "referral": {
                "object": "affiliate_referral", "id": referral, "affiliate_id": partner, "status": "lead",
                "source": "signup", "email": "customer@example.com", "sub_id": null,
            },
        }),
    }
}
