//! `/dashboard/api/affiliate-program/partners/{id}/postbacks`: deliveries to a partner's postback URL. The owner sees
//! the same rows as the partner in its portal.

use ::affiliate::api_objects::ApiTimestamp;
use ::affiliate::partners::postbacks::PostbackDelivery;
use httpd::paging::KIND_POSTBACK;
use model::webhook_delivery::WebhookDeliveryStatus;

use super::path::PartnerPath;
use super::request::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use crate::prelude::*;

object_view! {
    /// A delivery to a partner's postback URL
    #[schema(name = "AffiliatePostback")]
    pub struct PostbackObject, fn from_delivery(
        postback: PostbackDelivery;
        let PostbackDelivery { delivery, mut attempts } = postback
    ) {
        /// `whd_…`
        id: DeliveryId = delivery.id,
        /// The event's id (`evt_…`), sent as `webhook-id`
        event_id: EventId = delivery.event,
        /// The event's name
        r#type: String = delivery.kind,
        /// The status
        status: WebhookDeliveryStatus = delivery.status,
        /// Attempts made
        attempts_count: u32 = delivery.attempts,
        /// When the next attempt is made
        next_attempt_at: Option<ApiTimestamp> = delivery.next_attempt_at.map(ApiTimestamp),
        /// HTTP status of the last response
        response_status: Option<u16> = delivery.response_status,
        /// Why the last attempt received no response
        error: Option<String> = attempts.pop().and_then(|last| last.error),
        /// When it was created
        created_at: ApiTimestamp = ApiTimestamp(delivery.created_at),
        /// When it was delivered
        delivered_at: Option<ApiTimestamp> = delivery.delivered_at.map(ApiTimestamp),
    }
}

/// `GET …/partners/{id}/postbacks`.
pub async fn list(
    state: State,
    owner: Owner,
    request: ReadRequest<(PartnerPath, PageParameters)>,
) -> Result<ListResponse<PostbackObject>> {
    let ResolvedRequest { program, input: (target, page), .. } =
        request.require_program(&state, owner.tenant()).await?;
    let before = page.before_id(KIND_POSTBACK)?.map(DeliveryId::from_bytes);
    let partner = state.affiliate.context.get_partner_view(program.account, target.id()?).await;
    let partner = partner.or_problem(&state)?.partner;
    let sent = state.affiliate.partners.list_postbacks(partner.account, partner.id, before, page.limit).await;
    let (sent, next) = sent.or_problem(&state)?;
    let next = next.map(|id| paging::after_id(KIND_POSTBACK, id.to_bytes()));
    Ok(ListResponse::new(sent.into_iter().map(PostbackObject::from_delivery).collect(), next))
}
