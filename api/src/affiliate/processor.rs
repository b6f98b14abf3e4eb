//! The payment processor: where it sends its events, and for the owner what they came to and trying again what failed.

use std::sync::Arc;

use ::affiliate::ledger::IngestOutcome as Heard;
use ::affiliate::object::ApiTimestamp;
use ::affiliate::processor::signature::HEADER;
use bytes::Bytes;
use mail::id::ProgramId;
use serde::Serialize;
use serde_json::{Value, json};
use store::affiliate::processor_event::{EventStatus, ProcessorEvent};

use super::asked::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use super::{list_filter_parameter, refusal_problem};
use crate::call::{FromRequest, Media, Owner, Request, RequestSpec};
use crate::page::{self, KIND_PROCESSOR_EVENT, PageParameters};
use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// The largest event (completions-affiliate.md 2.2).
const EVENT_BYTES_MAX: usize = 1 << 20;
/// The longest id of an event that is looked for.
const EVENT_ID_BYTES_MAX: usize = 255;

/// What `POST /processor/stripe/{id}` takes: bytes, and a signature over them.
pub struct SignedProcessorEvent {
    program: Option<ProgramId>,
    signature: String,
    body: Bytes,
}

impl FromRequest for SignedProcessorEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(EVENT_BYTES_MAX);
    const MEDIA: Media = Media::Signed;

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("ProcessorEventBody", |_| schema::processor_event());
        let parameters = vec![
            schema::path_parameter("id", "The program's id (`prog_…`)"),
            schema::header_parameter(HEADER, "`t=…,v1=…`: the processor's signature over time and body"),
        ];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut values = call.headers.get_all(HEADER).iter();
        let signature = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let program = call.path_parameter("id").parse().ok();
        Ok(Self { program, signature, body: call.body.clone() })
    }
}

/// An event was taken, and needs not be sent again.
#[derive(Debug, Serialize)]
pub struct EventAcknowledgement {
    received: bool,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl EventAcknowledgement {
    pub(crate) fn processed() -> Self {
        Self { received: true, status: "done", reason: None }
    }

    fn duplicate() -> Self {
        Self { received: true, status: "duplicate", reason: None }
    }

    pub(crate) fn ignored(why: String) -> Self {
        Self { received: true, status: "ignored", reason: Some(why) }
    }
}

impl ToSchema for EventAcknowledgement {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("TakenProcessorEvent", |_| {
            schema::object_with(
                "An event that needs not be sent again",
                &["received", "status"],
                [
                    ("received", json!({"type": "boolean", "const": true})),
                    ("status", schema::string_enum(&["done", "duplicate", "ignored"], "What became of it")),
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
pub async fn receive_event(room: Arc<AppState>, said: SignedProcessorEvent) -> Result<EventAcknowledgement, Problem> {
    let SignedProcessorEvent { program, signature, body } = said;
    let unknown = || Problem::not_found("affiliate program with a payment processor");
    let program = program.ok_or_else(unknown)?;
    let heard = room.affiliate.receive_webhook(program, &signature, &body).await;
    match heard.map_err(|refusal| refusal_problem(&room, refusal))? {
        Heard::Done => Ok(EventAcknowledgement::processed()),
        Heard::Duplicate => Ok(EventAcknowledgement::duplicate()),
        Heard::Ignored(why) => Ok(EventAcknowledgement::ignored(why)),
        Heard::Unknown => Err(unknown()),
        Heard::BadSignature(error) => Err(Problem::field(HEADER, error.to_string())),
        Heard::Failed(fault) => Err(Problem::internal(fault)),
    }
}

/// An event that came in.
#[derive(Debug, Serialize)]
pub struct ProcessorEventObject {
    id: String,
    r#type: String,
    status: EventStatus,
    error: Option<String>,
    attempts: u32,
    received_at: ApiTimestamp,
}

impl From<ProcessorEvent> for ProcessorEventObject {
    fn from(event: ProcessorEvent) -> Self {
        let ProcessorEvent { id, kind, status, error, attempts, received_at, .. } = event;
        Self { id, r#type: kind, status, error, attempts, received_at: ApiTimestamp(received_at) }
    }
}

impl ToSchema for ProcessorEventObject {
    fn schema(schemas: &mut Schemas) -> Value {
        let fields = [
            ("id", schema::string("The processor's id (`evt_…`)")),
            ("type", schema::string("Its type, in the processor's words")),
            ("status", schema::string_enum(EventStatus::WORDS, "What became of it")),
            ("error", schema::nullable_string("Why it failed, or is ignored")),
            ("attempts", schema::count("How often it was tried")),
            ("received_at", schema::time("When it came first")),
        ];
        schemas.component("AffiliateProcessorEvent", |_| {
            schema::object("An event of the payment processor that came in", fields)
        })
    }
}

/// What `GET …/processor/events` takes.
#[derive(Debug)]
pub struct ListProcessorEvents {
    page: PageParameters,
    statuses: Vec<EventStatus>,
}

impl FromRequest for ListProcessorEvents {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        parameters.push(list_filter_parameter("status", EventStatus::WORDS, "What became of it; of several, one"));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let statuses = page::parse_words(&call.query, "status", EventStatus::WORDS, EventStatus::from_word)?;
        Ok(Self { page: PageParameters::from_query(&call.query)?, statuses })
    }
}

/// `GET …/processor/events`.
///
/// # Errors
/// The cursor is none of this list's; there is no program.
pub async fn list(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<ListProcessorEvents>,
) -> Result<ListResponse<ProcessorEventObject>, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let after = said.page.cursor_time(KIND_PROCESSOR_EVENT)?;
    let wanted = (after.as_ref(), said.page.limit);
    let found = room.affiliate.list_processor_events(program.account, &said.statuses, wanted).await;
    let found = found.map_err(|refusal| refusal_problem(&room, refusal))?;
    let next = found.next.map(|(at, id)| page::after_time(KIND_PROCESSOR_EVENT, (at, &id)));
    Ok(ListResponse::new(found.events.into_iter().map(ProcessorEventObject::from).collect(), next))
}

/// An event, named in the path by the processor's id.
#[derive(Debug)]
pub struct ProcessorEventPath(Option<String>);

impl FromRequest for ProcessorEventPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let id = schema::path_parameter("id", "The processor's id of the event (`evt_…`)");
        RequestSpec { parameters: vec![id], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        Ok(Self(call.path_text("id").filter(|id| id.len() <= EVENT_ID_BYTES_MAX)))
    }
}

/// One event.
#[derive(Debug, Serialize)]
pub struct ProcessorEventResponse {
    event: ProcessorEventObject,
}

impl ToSchema for ProcessorEventResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = ProcessorEventObject::schema(schemas);
        schemas.component("OneAffiliateProcessorEvent", |_| schema::object("One of them", [("event", event)]))
    }
}

/// `POST …/processor/events/{id}/replay`: an event that failed is tried again; one that did not stays as it is.
///
/// # Errors
/// There is no such event, or no program.
pub async fn replay(
    room: Arc<AppState>,
    owner: Owner,
    asked: ReadRequest<ProcessorEventPath>,
) -> Result<ProcessorEventResponse, Problem> {
    let ResolvedRequest { program, input: said, .. } = asked.require_program(&room, owner.tenant()).await?;
    let unknown = || Problem::not_found("event");
    let id = said.0.ok_or_else(unknown)?;
    let tried = room.affiliate.replay_event(program.account, &id).await;
    let event = tried.map_err(|refusal| refusal_problem(&room, refusal))?.ok_or_else(unknown)?;
    Ok(ProcessorEventResponse { event: event.into() })
}

/// The errors that are its own.
pub(super) const RECEIVE_ERRORS: &[ErrorCode] = &[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL];
