//! Postbacks as the owner and the portal see them: what was sent to a partner's address, and a try of it.
//!
//! ```text
//! event of a partner's referral or commission ─► tell ─► delivery ─► posted, signed, tried again (queue/src/webhooks)
//!                                                           └─► the log
//! ```

use jiff::Timestamp;
use mail::affiliate::postback;
use mail::delivery::{WebhookDelivery, WebhookDeliveryAttempt};
use mail::event::{Event, EventKind};
use mail::id::{AccountId, DeliveryId, EventId, PartnerId, ReferralId};
use queue::webhooks::WebhookError;
use serde_json::json;

use crate::office::AffiliateService;
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason};

/// Something that was sent to a partner's address, or is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackDelivery {
    /// The event, its body, and how far it is.
    pub delivery: WebhookDelivery,
    /// How each attempt went, the first one first.
    pub attempts: Vec<WebhookDeliveryAttempt>,
}

impl AffiliateService {
    /// What was sent to a partner's address in the last thirty days, newest first, at most `limit`; and before which the
    /// next page begins.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_postbacks(
        &self,
        of: (AccountId, PartnerId),
        before: Option<DeliveryId>,
        limit: usize,
    ) -> Result<(Vec<PostbackDelivery>, Option<DeliveryId>), AffiliateError> {
        let (found, next) = self.hall.list_postbacks(of, before, limit).await?;
        let mut sent = Vec::with_capacity(found.len());
        for delivery in found {
            let attempts = store::delivery::list_attempts(self.store(), &delivery).await?;
            sent.push(PostbackDelivery { delivery, attempts });
        }
        Ok((sent, next))
    }

    /// Sends an example to a partner's address: one attempt, signed as all else is; the log says how it went.
    ///
    /// # Errors
    /// The partner has no address; [`Refusal`].
    pub async fn send_test_postback(
        &self,
        (account, id): (AccountId, PartnerId),
    ) -> Result<WebhookDelivery, AffiliateError> {
        let program = self.get_program(account).await?;
        let found = store::affiliate::partner::get(self.store(), account, id).await?;
        let partner = found.ok_or(AffiliateError::NotFound(AffiliateNoun::Partner))?;
        if partner.postback_url.is_none() {
            return Err(AffiliateError::field("postback_url", "is not set"));
        }
        let now = self.now();
        let event = example_event(account, (program.id, id), (now, self.random()));
        let body = postback::postback_body(&event, program.settings.share_customer_email).unwrap_or_default();
        let tried = self.hall.send_test_postback((account, id), (event.id, event.kind.name()), &body).await;
        tried.map_err(|error| match error {
            WebhookError::Read(error) => AffiliateError::Read(error),
            WebhookError::Commit(error) => AffiliateError::Commit(error),
            _ => ConflictReason::Changed.into(),
        })
    }
}

/// A lead that there never was.
fn example_event(
    account: AccountId,
    (program, partner): (mail::id::ProgramId, PartnerId),
    (now, random): (Timestamp, u128),
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
