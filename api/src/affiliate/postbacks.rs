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

/// A delivery to a partner's postback URL
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliatePostback")]
pub struct PostbackObject {
    /// `whd_…`
    id: DeliveryId,
    /// The event's id (`evt_…`), sent as `webhook-id`
    event_id: EventId,
    /// The event's name
    r#type: String,
    /// The status
    status: WebhookDeliveryStatus,
    /// Attempts made
    attempts_count: u32,
    /// When the next attempt is made
    next_attempt_at: Option<ApiTimestamp>,
    /// HTTP status of the last response
    response_status: Option<u16>,
    /// Why the last attempt received no response
    error: Option<String>,
    /// When it was created
    created_at: ApiTimestamp,
    /// When it was delivered
    delivered_at: Option<ApiTimestamp>,
}

impl From<PostbackDelivery> for PostbackObject {
    fn from(PostbackDelivery { delivery, mut attempts }: PostbackDelivery) -> Self {
        Self {
            id: delivery.id,
            event_id: delivery.event,
            r#type: delivery.kind,
            status: delivery.status,
            attempts_count: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(ApiTimestamp),
            response_status: delivery.response_status,
            error: attempts.pop().and_then(|last| last.error),
            created_at: ApiTimestamp(delivery.created_at),
            delivered_at: delivery.delivered_at.map(ApiTimestamp),
        }
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
    let partner = state.affiliate.lookup.get_partner_view(program.account, target.id()?).await;
    let partner = partner.or_problem(&state)?.partner;
    let sent = state.affiliate.postbacks.list_postbacks(partner.account, partner.id, before, page.limit).await;
    let (sent, next) = sent.or_problem(&state)?;
    let next = next.map(|id| paging::after_id(KIND_POSTBACK, id.to_bytes()));
    Ok(ListResponse::new(sent.into_iter().map(PostbackObject::from).collect(), next))
}
