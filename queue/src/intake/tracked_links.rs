//! Open and click tracking: adds the pixel to, and rewrites the links of, HTML that came in through the API, according
//! to its domain's settings. It runs after all other changes to the text. A message received over SMTP belongs to
//! its sender and is not changed.

use std::collections::HashSet;

use jiff::Timestamp;
use model::draft::{Draft, DraftContent};
use model::email::Ingress;
use model::id::EmailId;
use model::tracking::{TrackingTarget, rewrite_with_settings};
use store::access::Tenant;

use super::Intake;
use crate::intake::submit_error::SubmitError;

impl Intake {
    /// Adds tracking to the HTML of a draft, if the domain enables it.
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
        let (Some(html), Some(service)) = (&mut parts.html, self.links.base_url()) else { return Ok(()) };
        let sender = self.sender_authorization.authorize(tenant, &parts.from.address, now).await?;
        if !sender.delivery.open_tracking && !sender.delivery.click_tracking {
            return Ok(());
        }
        // Count each recipient once.
        let recipients: HashSet<_> = draft.recipients.iter().map(|recipient| &recipient.address).collect();
        let target = TrackingTarget::new(tenant.account().id, id, recipients.len());
        *html = rewrite_with_settings(html, &sender.delivery, service, &self.links.key, target);
        Ok(())
    }
}
