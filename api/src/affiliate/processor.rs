//! The payment processor: where it sends its events, and for the owner what they came to and trying again what failed.

use std::sync::Arc;

use ::affiliate::ledger::Answer as Heard;
use ::affiliate::object::Moment;
use ::affiliate::processor::signature::HEADER;
use bytes::Bytes;
use mail::id::ProgramId;
use serde::Serialize;
use serde_json::{Value, json};
use store::affiliate::processor_event::{EventStatus, ProcessorEvent};

use super::asked::{Opened, Read};
use super::view::Listed;
use super::{refused, several};
use crate::call::{Call, Input, Media, Owner, Takes};
use crate::page::{self, KIND_PROCESSOR_EVENT, Page};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// The largest event (completions-affiliate.md 2.2).
const EVENT_BYTES_MAX: usize = 1 << 20;
/// The longest id of an event that is looked for.
const EVENT_ID_BYTES_MAX: usize = 255;

/// What `POST /processor/stripe/{id}` takes: bytes, and a signature over them.
pub struct Signed {
    program: Option<ProgramId>,
    signature: String,
    body: Bytes,
}

impl Input for Signed {
    const BODY_BYTES_MAX: Option<usize> = Some(EVENT_BYTES_MAX);
    const MEDIA: Media = Media::Signed;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ProcessorEventBody", |_| schema::processor_event());
        let parameters = vec![
            schema::path_parameter("id", "The program's id (`prog_…`)"),
            schema::header_parameter(HEADER, "`t=…,v1=…`: the processor's signature over time and body"),
        ];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut values = call.headers.get_all(HEADER).iter();
        let signature = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let program = call.path_parameter("id").parse().ok();
        Ok(Self { program, signature, body: call.body.clone() })
    }
}

/// An event was taken, and needs not be sent again.
#[derive(Debug, Serialize)]
pub struct Taken {
    received: bool,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Taken {
    pub(crate) fn done() -> Self {
        Self { received: true, status: "done", reason: None }
    }

    fn duplicate() -> Self {
        Self { received: true, status: "duplicate", reason: None }
    }

    pub(crate) fn ignored(why: String) -> Self {
        Self { received: true, status: "ignored", reason: Some(why) }
    }
}

impl Describe for Taken {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("TakenProcessorEvent", |_| {
            schema::object_with(
                "An event that needs not be sent again",
                &["received", "status"],
                [
                    ("received", json!({"type": "boolean", "const": true})),
                    ("status", schema::words(&["done", "duplicate", "ignored"], "What became of it")),
                    ("reason", schema::string("Why it is ignored")),
                ],
            )
        })
    }
}

/// `POST /processor/stripe/{id}`: what the processor tells. It sends again what is not answered with 200.
///
/// # Errors
/// There is no such program; the signature does not hold; the event could not be worked with.
pub async fn hear(room: Arc<Room>, said: Signed) -> Result<Taken, Problem> {
    let Signed { program, signature, body } = said;
    let unknown = || Problem::not_found("affiliate program with a payment processor");
    let program = program.ok_or_else(unknown)?;
    let heard = room.affiliate.hear(program, &signature, &body).await;
    match heard.map_err(|refusal| refused(&room, refusal))? {
        Heard::Done => Ok(Taken::done()),
        Heard::Duplicate => Ok(Taken::duplicate()),
        Heard::Ignored(why) => Ok(Taken::ignored(why)),
        Heard::Unknown => Err(unknown()),
        Heard::BadSignature(error) => Err(Problem::field(HEADER, error.to_string())),
        Heard::Failed(fault) => Err(Problem::internal(fault)),
    }
}

/// An event that came in.
#[derive(Debug, Serialize)]
pub struct EventObject {
    id: String,
    r#type: String,
    status: EventStatus,
    error: Option<String>,
    attempts: u32,
    received_at: Moment,
}

impl From<ProcessorEvent> for EventObject {
    fn from(event: ProcessorEvent) -> Self {
        let ProcessorEvent { id, kind, status, error, attempts, received_at, .. } = event;
        Self { id, r#type: kind, status, error, attempts, received_at: Moment(received_at) }
    }
}

impl Describe for EventObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("id", schema::string("The processor's id (`evt_…`)")),
            ("type", schema::string("Its type, in the processor's words")),
            ("status", schema::words(EventStatus::WORDS, "What became of it")),
            ("error", schema::nullable_string("Why it failed, or is ignored")),
            ("attempts", schema::count("How often it was tried")),
            ("received_at", schema::time("When it came first")),
        ];
        schemas.named("AffiliateProcessorEvent", |_| {
            schema::object("An event of the payment processor that came in", fields)
        })
    }
}

/// What `GET …/processor/events` takes.
#[derive(Debug)]
pub struct ListEvents {
    page: Page,
    statuses: Vec<EventStatus>,
}

impl Input for ListEvents {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        parameters.push(several("status", EventStatus::WORDS, "What became of it; of several, one"));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let statuses = page::words(&call.query, "status", EventStatus::WORDS, EventStatus::of_word)?;
        Ok(Self { page: Page::read(&call.query)?, statuses })
    }
}

/// `GET …/processor/events`.
///
/// # Errors
/// The cursor is none of this list's; there is no program.
pub async fn events(
    room: Arc<Room>,
    owner: Owner,
    asked: Read<ListEvents>,
) -> Result<Listed<EventObject>, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let after = said.page.moment(KIND_PROCESSOR_EVENT)?;
    let wanted = (after.as_ref(), said.page.limit);
    let found = room.affiliate.processor_events(program.account, &said.statuses, wanted).await;
    let found = found.map_err(|refusal| refused(&room, refusal))?;
    let next = found.next.map(|(at, id)| page::after_moment(KIND_PROCESSOR_EVENT, (at, &id)));
    Ok(Listed::of(found.events.into_iter().map(EventObject::from).collect(), next))
}

/// An event, named in the path by the processor's id.
#[derive(Debug)]
pub struct OfEvent(Option<String>);

impl Input for OfEvent {
    fn describe(_: &mut Schemas) -> Takes {
        let id = schema::path_parameter("id", "The processor's id of the event (`evt_…`)");
        Takes { parameters: vec![id], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(call.path_text("id").filter(|id| id.len() <= EVENT_ID_BYTES_MAX)))
    }
}

/// One event.
#[derive(Debug, Serialize)]
pub struct OneEvent {
    event: EventObject,
}

impl Describe for OneEvent {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = EventObject::schema(schemas);
        schemas.named("OneAffiliateProcessorEvent", |_| schema::object("One of them", [("event", event)]))
    }
}

/// `POST …/processor/events/{id}/replay`: an event that failed is tried again; one that did not stays as it is.
///
/// # Errors
/// There is no such event, or no program.
pub async fn replay(room: Arc<Room>, owner: Owner, asked: Read<OfEvent>) -> Result<OneEvent, Problem> {
    let Opened { program, said, .. } = asked.open_any(&room, owner.tenant()).await?;
    let unknown = || Problem::not_found("event");
    let id = said.0.ok_or_else(unknown)?;
    let tried = room.affiliate.replay(program.account, &id).await;
    let event = tried.map_err(|refusal| refused(&room, refusal))?.ok_or_else(unknown)?;
    Ok(OneEvent { event: event.into() })
}

/// The errors that are its own.
pub(super) const HEARS: &[Code] = &[Code::NOT_FOUND, Code::PLAN_FULL];
