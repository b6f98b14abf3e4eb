//! `POST /emails/test`: what a webhook would be sent, to try a receiver with (completions-email.md 2.3).
//!
//! The payload is that of a stored email and its newest event of this kind, or, where there is none, an
//! example. It says `test: true`, and so cannot be taken for the real thing.

pub(crate) mod example;
mod partners;

use std::sync::Arc;

use mail::delivery::DeliveryStatus;
use mail::email::Rollup;
use mail::event::{Event, EventKind};
use mail::id::{DeliveryId, EmailId, EventId, WebhookId};
use mail::payload::data_of;
use mail::webhook::Webhook;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::access::Tenant;
use store::email::EmailWithRecipients;

use self::example::{OF_ALL, UNSUBSCRIBED};
use super::timeline::TIMELINE_MAX;
use super::view::Moment;
use super::{find, no_such_email};
use crate::call::{Call, Input, Takes};
use crate::fields::{self, Names, Notes};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// The body: three short fields.
const BODY_BYTES_MAX: usize = 16 << 10;

const NAMES: Names = Names {
    known: &[("event", "event"), ("email_id", "email_id"), ("emailId", "email_id"), ("deliver", "deliver")],
    foreign: &[("Event", "event"), ("MessageID", "email_id")],
};

/// What it takes.
#[derive(Debug)]
pub struct Rehearsal {
    event: String,
    example: Value,
    email: Option<EmailId>,
    deliver: bool,
}

impl Input for Rehearsal {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("TestEvent", |_| {
            schema::object_with(
                "An event to be tried",
                &["event"],
                [
                    (
                        "event",
                        json!({"type": "string", "examples": ["email.delivered"], "description": "Its name"}),
                    ),
                    ("email_id", schema::string("The email that it is to be about (`msg_…`)")),
                    ("deliver", schema::boolean("Whether it goes to the endpoints that ask for it; true")),
                ],
            )
        });
        Takes { parameters: Vec::new(), body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let event = match given.value("event").map(fields::text) {
            None => Err("is required".to_owned()),
            Some(text) => text.map(std::borrow::Cow::into_owned),
        };
        let found = event.and_then(|event| {
            let example = example::of(&event).ok_or_else(|| "is no event that there is".to_owned())?;
            Ok((event, example))
        });
        let found = found.map_err(|text| notes.errors.add("event", text)).ok();
        let deliver = given.value("deliver").map_or(Ok(true), fields::boolean);
        let deliver = deliver.map_err(|text| notes.errors.add("deliver", text)).unwrap_or(true);
        let email = given.value("email_id").map(fields::text);
        let email = email.transpose().map_err(|text| notes.errors.add("email_id", text)).ok().flatten();
        match found {
            Some((event, example)) if notes.errors.is_empty() => {
                if email.is_some() && example::is_of_its_own(&event) {
                    return Err(Problem::field(
                        "email_id",
                        format!("`{event}` is not about an email that was sent"),
                    ));
                }
                // What cannot be an id is the id of nothing.
                let email = email.map(|id| id.parse().map_err(|_| no_such_email())).transpose()?;
                Ok(Self { event, example, email, deliver })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// A webhook's body.
#[derive(Debug, Serialize)]
pub struct Payload {
    r#type: String,
    created_at: Moment,
    data: Map<String, Value>,
}

/// What would be sent, and to whom it was.
#[derive(Debug, Serialize)]
pub struct Rehearsed {
    payload: Payload,
    queued: bool,
    deliveries: Vec<Queued>,
}

/// A delivery of it.
#[derive(Debug, Serialize)]
pub struct Queued {
    id: DeliveryId,
    webhook_id: WebhookId,
    url: String,
    status: DeliveryStatus,
}

impl Describe for Rehearsed {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("TestedEvent", |_| {
            let payload = schema::object(
                "The body of a delivery",
                [
                    ("type", schema::string("The event's name")),
                    ("created_at", schema::time("When it happened")),
                    ("data", json!({"type": "object", "description": "What happened; `test` is true"})),
                ],
            );
            let queued = schema::object(
                "A delivery",
                [
                    ("id", schema::string("`whd_…`")),
                    ("webhook_id", schema::string("The endpoint (`whk_…`)")),
                    ("url", schema::string("Where it is")),
                    ("status", schema::words(DeliveryStatus::WORDS, "How far it is")),
                ],
            );
            schema::object(
                "What a webhook would be sent",
                [
                    ("payload", payload),
                    ("queued", schema::boolean("Whether it is on its way to an endpoint")),
                    ("deliveries", schema::list(queued, "One for each endpoint")),
                ],
            )
        })
    }
}

/// `POST /emails/test`.
///
/// # Errors
/// No such email; the store cannot be read.
pub async fn rehearse(room: Arc<Room>, tenant: Tenant, input: Rehearsal) -> Result<Rehearsed, Problem> {
    let Rehearsal { event, example, email, deliver } = input;
    let now = room.hall.clock().now();
    let mut created_at = now;
    let mut example = example;
    let mut data = match email {
        None => example::common(&event, EventId::new(now, room.hall.entropy().id())),
        Some(id) => {
            let found = find(&room, &tenant, id).await?;
            let events = store::event::list(room.hall.store(), tenant.account().id, id, TIMELINE_MAX).await?;
            let newest = events.into_iter().rfind(|one| one.kind.name() == event);
            created_at = newest.as_ref().map_or(now, |one| one.created_at);
            if let Some(first) = found.recipients.first() {
                example::address_to(&mut example, &first.address);
            }
            let fresh = (event.as_str(), EventId::new(now, room.hall.entropy().id()));
            of_email(&found, newest, fresh)
        }
    };
    if let Value::Object(example) = example {
        for (name, value) in example {
            data.entry(name).or_insert(value);
        }
    }
    data.insert("test".to_owned(), Value::Bool(true));
    let payload = Payload { r#type: event, created_at: Moment(created_at), data };
    // What goes to endpoints is the account's as a whole: a key that is bound to a domain sees the payload alone.
    let deliveries = if deliver && tenant.bound_to().is_none() {
        deliver_to_all(&room, &tenant, &payload).await?
    } else {
        Vec::new()
    };
    Ok(Rehearsed { payload, queued: !deliveries.is_empty(), deliveries })
}

/// Queues it to every endpoint that asks for such events.
async fn deliver_to_all(room: &Room, tenant: &Tenant, payload: &Payload) -> Result<Vec<Queued>, Problem> {
    let all = store::webhook::all(room.hall.store(), tenant.account().id).await?;
    let kind = EventKind::of_name(&payload.r#type);
    let asks = |one: &Webhook| one.enabled && kind.is_some_and(|kind| one.asks_for(kind));
    let asking: Vec<Webhook> = all.into_iter().filter(asks).collect();
    let text = serde_json::to_string(payload).map_err(Problem::internal)?;
    let id = payload.data.get("event_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| Problem::internal("a payload without an event's id"))?;
    let tried = room.hall.try_webhooks(&asking, (id, &payload.r#type), &text).await;
    let tried = tried.map_err(|error| crate::webhooks::problem(error, room))?;
    let queued = tried.into_iter().zip(asking).map(|(delivery, endpoint)| Queued {
        id: delivery.id,
        webhook_id: endpoint.id,
        url: endpoint.url,
        status: delivery.status,
    });
    Ok(queued.collect())
}

fn of_email(
    found: &EmailWithRecipients,
    newest: Option<Event>,
    (name, fresh): (&str, EventId),
) -> Map<String, Value> {
    let EmailWithRecipients { email, recipients, .. } = found;
    let status = Rollup::of(recipients).status;
    if let Some(event) = newest {
        return data_of(email, &event, status);
    }
    let recipient = recipients.first().map(|recipient| recipient.address.clone());
    let event = Event {
        id: fresh,
        account: email.account,
        subject: email.id.into(),
        // The example says what it would be then.
        kind: if name == UNSUBSCRIBED { EventKind::Unsubscribed } else { EventKind::Opened },
        recipient: recipient.filter(|_| !OF_ALL.contains(&name)),
        created_at: email.created_at,
        detail: Value::Null,
    };
    let mut data = data_of(email, &event, status);
    data.remove("status");
    data
}
