//! Tracking: what came by the API and is HTML gets its pixel and links, as its domain's settings say. It
//! comes last of what changes a text, so that what is filled in before it stays untracked or is tracked
//! whole. A message that came by SMTP is its sender's own, and stays as it is.

use std::collections::HashSet;

use jiff::Timestamp;
use mail::draft::{Draft, DraftContent};
use mail::email::Ingress;
use mail::id::EmailId;
use mail::tracking::{TrackingTarget, rewrite_with_settings};
use store::access::Tenant;

use super::Intake;
use crate::refusal::SubmitError;

impl Intake {
    /// Has the HTML of a draft tracked, if it is to be.
    pub(super) async fn track_links(
        &self,
        tenant: &Tenant,
        id: EmailId,
        draft: &mut Draft,
        now: Timestamp,
    ) -> Result<(), SubmitError> {
        let (Ingress::Api, DraftContent::Parts(parts)) = (draft.ingress, &mut draft.content) else {
            return Ok(());
        };
        let (Some(html), Some(service)) = (&mut parts.html, self.base_url.get()) else { return Ok(()) };
        let sender = self.sender_authorization.authorize(tenant, &parts.from.address, now).await?;
        if !sender.delivery.open_tracking && !sender.delivery.click_tracking {
            return Ok(());
        }
        // Everybody once, as they are addressed.
        let recipients: HashSet<_> = draft.recipients.iter().map(|recipient| &recipient.address).collect();
        let of = TrackingTarget::new(tenant.account().id, id, recipients.len());
        *html = rewrite_with_settings(html, &sender.delivery, service, &self.link_key, of);
        Ok(())
    }
}
