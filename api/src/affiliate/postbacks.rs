//! `/dashboard/api/affiliate-program/partners/{id}/postbacks`: deliveries to a partner's postback URL. The owner sees
//! the same rows as the partner in its portal.

use std::sync::Arc;

use ::affiliate::api_objects::ApiTimestamp;
use ::affiliate::error::AffiliateNoun;
use ::affiliate::postbacks::PostbackDelivery;
use mail::id::{DeliveryId, EventId};
use mail::webhook_delivery::WebhookDeliveryStatus;
use serde::Serialize;
use serde_json::Value;

use super::path::PartnerPath;
use super::refusal::refusal_problem;
use super::request::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use crate::handler::Owner;
use crate::paging::{self, KIND_POSTBACK, PageParameters};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec};
use crate::schema::{self, Schemas, ToSchema};
use crate::state::AppState;

/// A delivery to a partner's postback URL, completed or pending.
#[derive(Debug, Serialize)]
pub struct PostbackObject {
    id: DeliveryId,
    event_id: EventId,
    r#type: String,
    status: WebhookDeliveryStatus,
    attempts_count: u32,
    next_attempt_at: Option<ApiTimestamp>,
    response_status: Option<u16>,
    error: Option<String>,
    created_at: ApiTimestamp,
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

impl ToSchema for PostbackObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("id", schema::string("`whd_…`")),
            ("event_id", schema::string("The event's id (`evt_…`), sent as `webhook-id`")),
            ("type", schema::string("The event's name")),
            ("status", schema::string_enum(WebhookDeliveryStatus::WORDS, "The status")),
            ("attempts_count", schema::count("Attempts made")),
            ("next_attempt_at", schema::nullable_time("When the next attempt is made")),
            ("response_status", schema::nullable_count("HTTP status of the last response")),
            ("error", schema::nullable_string("Why the last attempt received no response")),
            ("created_at", schema::time("When it was created")),
            ("delivered_at", schema::nullable_time("When it was delivered")),
        ];
        schemas.component("AffiliatePostback", |_| schema::object("A delivery to a partner's postback URL", fields))
    }
}

/// Path and query of `GET …/partners/{id}/postbacks`.
#[derive(Debug)]
pub struct ListPostbacks(PartnerPath, PageParameters);

impl FromRequest for ListPostbacks {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = vec![PartnerPath::parameter()];
        parameters.extend(PageParameters::parameters());
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(PartnerPath::of(call), PageParameters::from_query(&call.query)?))
    }
}

/// `GET …/partners/{id}/postbacks`.
///
/// # Errors
/// The cursor is invalid; the program or the partner does not exist.
pub async fn list(
    state: Arc<AppState>,
    owner: Owner,
    request: ReadRequest<ListPostbacks>,
) -> Result<ListResponse<PostbackObject>, Problem> {
    let ResolvedRequest { program, input: ListPostbacks(target, page), .. } =
        request.require_program(&state, owner.tenant()).await?;
    let before = page.before_id(KIND_POSTBACK)?.map(DeliveryId::from_bytes);
    let found = state.affiliate.get_partner_view(program.account, target.id(AffiliateNoun::Partner)?).await;
    let partner = found.map_err(|refusal| refusal_problem(&state, refusal))?.partner;
    let sent = state.affiliate.list_postbacks(partner.account, partner.id, before, page.limit).await;
    let (sent, next) = sent.map_err(|refusal| refusal_problem(&state, refusal))?;
    let next = next.map(|id| paging::after_id(KIND_POSTBACK, id.to_bytes()));
    Ok(ListResponse::new(sent.into_iter().map(PostbackObject::from).collect(), next))
}
