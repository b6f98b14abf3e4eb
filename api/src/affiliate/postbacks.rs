//! `/dashboard/api/affiliate-program/partners/{id}/postbacks`: what was posted to a partner's own address. The owner sees
//! the rows that the partner sees in its portal.

use std::sync::Arc;

use ::affiliate::object::ApiTimestamp;
use ::affiliate::postbacks::PostbackDelivery;
use ::affiliate::refusal::AffiliateNoun;
use mail::delivery::WebhookDeliveryStatus;
use mail::id::{DeliveryId, EventId};
use serde::Serialize;
use serde_json::Value;

use super::asked::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use super::{PartnerPath, refusal_problem};
use crate::call::{FromRequest, Owner, Request, RequestSpec};
use crate::page::{self, KIND_POSTBACK, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// Something that was posted to a partner's address, or is to be.
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
            ("event_id", schema::string("The event (`evt_…`): `webhook-id` of what is posted")),
            ("type", schema::string("The event's name")),
            ("status", schema::string_enum(WebhookDeliveryStatus::WORDS, "How far it is")),
            ("attempts_count", schema::count("Attempts made")),
            ("next_attempt_at", schema::nullable_time("When it is tried next")),
            ("response_status", schema::nullable_count("What the address answered last")),
            ("error", schema::nullable_string("Why nothing was answered last")),
            ("created_at", schema::time("When it was made")),
            ("delivered_at", schema::nullable_time("When it was taken")),
        ];
        schemas.component("AffiliatePostback", |_| schema::object("What is posted to a partner's address", fields))
    }
}

/// What `GET …/partners/{id}/postbacks` takes.
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
/// The cursor is none of this list's; there is no program, or no such partner.
pub async fn list(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<ListPostbacks>,
) -> Result<ListResponse<PostbackObject>, Problem> {
    let ResolvedRequest { program, input: ListPostbacks(of, page), .. } =
        asked.require_program(&room, owner.tenant()).await?;
    let before = page.before_id(KIND_POSTBACK)?.map(DeliveryId::from_bytes);
    let found = room.affiliate.get_partner_view(program.account, of.id(AffiliateNoun::Partner)?).await;
    let partner = found.map_err(|refusal| refusal_problem(&room, refusal))?.partner;
    let sent = room.affiliate.list_postbacks((partner.account, partner.id), before, page.limit).await;
    let (sent, next) = sent.map_err(|refusal| refusal_problem(&room, refusal))?;
    let next = next.map(|id| page::after_id(KIND_POSTBACK, id.to_bytes()));
    Ok(ListResponse::new(sent.into_iter().map(PostbackObject::from).collect(), next))
}
