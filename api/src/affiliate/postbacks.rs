//! `/dashboard/api/affiliate-program/partners/{id}/postbacks`: what was posted to a partner's own address. The owner sees
//! the rows that the partner sees in its portal.

use std::sync::Arc;

use ::affiliate::object::Moment;
use ::affiliate::postbacks::Sent;
use ::affiliate::refusal::Noun;
use mail::delivery::DeliveryStatus;
use mail::id::{DeliveryId, EventId};
use serde::Serialize;
use serde_json::Value;

use super::asked::{Opened, Read};
use super::view::Listed;
use super::{OfPartner, refused};
use crate::call::{Call, Input, Owner, Takes};
use crate::page::{self, KIND_POSTBACK, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// Something that was posted to a partner's address, or is to be.
#[derive(Debug, Serialize)]
pub struct PostbackObject {
    id: DeliveryId,
    event_id: EventId,
    r#type: String,
    status: DeliveryStatus,
    attempts_count: u32,
    next_attempt_at: Option<Moment>,
    response_status: Option<u16>,
    error: Option<String>,
    created_at: Moment,
    delivered_at: Option<Moment>,
}

impl From<Sent> for PostbackObject {
    fn from(Sent { delivery, mut attempts }: Sent) -> Self {
        Self {
            id: delivery.id,
            event_id: delivery.event,
            r#type: delivery.kind,
            status: delivery.status,
            attempts_count: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(Moment),
            response_status: delivery.response_status,
            error: attempts.pop().and_then(|last| last.error),
            created_at: Moment(delivery.created_at),
            delivered_at: delivery.delivered_at.map(Moment),
        }
    }
}

impl Describe for PostbackObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("id", schema::string("`whd_…`")),
            ("event_id", schema::string("The event (`evt_…`): `webhook-id` of what is posted")),
            ("type", schema::string("The event's name")),
            ("status", schema::words(DeliveryStatus::WORDS, "How far it is")),
            ("attempts_count", schema::count("Attempts made")),
            ("next_attempt_at", schema::nullable_time("When it is tried next")),
            ("response_status", schema::nullable_count("What the address answered last")),
            ("error", schema::nullable_string("Why nothing was answered last")),
            ("created_at", schema::time("When it was made")),
            ("delivered_at", schema::nullable_time("When it was taken")),
        ];
        schemas
            .named("AffiliatePostback", |_| schema::object("What is posted to a partner's address", fields))
    }
}

/// What `GET …/partners/{id}/postbacks` takes.
#[derive(Debug)]
pub struct ListPostbacks(OfPartner, Page);

impl Input for ListPostbacks {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = vec![OfPartner::parameter()];
        parameters.extend(Page::parameters());
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(OfPartner::of(call), Page::read(&call.query)?))
    }
}

/// `GET …/partners/{id}/postbacks`.
///
/// # Errors
/// The cursor is none of this list's; there is no program, or no such partner.
pub async fn list(
    room: Arc<Room>,
    owner: Owner,
    asked: Read<ListPostbacks>,
) -> Result<Listed<PostbackObject>, Problem> {
    let Opened { program, said: ListPostbacks(of, page), .. } = asked.open_any(&room, owner.tenant()).await?;
    let before = page.before_id(KIND_POSTBACK)?.map(DeliveryId::from_bytes);
    let found = room.affiliate.show_partner(program.account, of.id(Noun::Partner)?).await;
    let partner = found.map_err(|refusal| refused(&room, refusal))?.partner;
    let sent = room.affiliate.postbacks((partner.account, partner.id), before, page.limit).await;
    let (sent, next) = sent.map_err(|refusal| refused(&room, refusal))?;
    let next = next.map(|id| page::after_id(KIND_POSTBACK, id.to_bytes()));
    Ok(Listed::of(sent.into_iter().map(PostbackObject::from).collect(), next))
}
