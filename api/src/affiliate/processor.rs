//! Webhook endpoint of the payment processor; for the owner, the list of received events and the retry of failed ones.

use ::affiliate::api_objects::ApiTimestamp;
use ::affiliate::ledger::ingest::IngestOutcome;
use ::affiliate::processor::signature::HEADER;
use httpd::paging::KIND_PROCESSOR_EVENT;
use store::affiliate::processor_event::{EventStatus, ProcessorEvent};

use super::request::{ReadRequest, ResolvedRequest};
use super::view::ListResponse;
use crate::prelude::*;

/// Maximum size of an event.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Maximum length of an event id in a path.
const EVENT_ID_BYTES_MAX: usize = 255;

/// `POST /processor/stripe/{id}`: the raw body and its signature.
pub struct SignedProcessorEvent {
    program: Option<ProgramId>,
    signature: String,
    body: Bytes,
}

impl FromRequest for SignedProcessorEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(EVENT_BYTES_MAX);
    const MEDIA: Media = Media::Signed;
    const BODY: Option<BodySchema> =
        Some(|schemas| schemas.component("ProcessorEventBody", |_| schema::processor_event()));

    fn parameters() -> Vec<Value> {
        vec![
            schema::path_parameter("id", "The program's id (`prog_…`)"),
            schema::header_parameter(HEADER, "`t=…,v1=…`: the payment processor's signature of the time and the body"),
        ]
    }

    fn read(call: &Request) -> Result<Self> {
        let mut values = call.headers.get_all(HEADER).iter();
        let signature = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let program = call.path_parameter("id").parse().ok();
        Ok(Self { program, signature, body: call.body.clone() })
    }
}

/// Acknowledgement of an event; it does not need to be sent again
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TakenProcessorEvent")]
pub struct EventAcknowledgement {
    #[schema(const = true)]
    received: bool,
    /// The result
    #[schema(enum = ["done", "duplicate", "ignored"])]
    status: &'static str,
    /// Why the event is ignored
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

    pub(crate) fn ignored(reason: String) -> Self {
        Self { received: true, status: "ignored", reason: Some(reason) }
    }
}

/// `POST /processor/stripe/{id}`: receives an event. The processor resends events that are not answered with 200.
///
/// # Errors
/// The program does not exist, the signature is invalid, or the event could not be processed.
pub async fn receive_event(state: State, input: SignedProcessorEvent) -> Result<EventAcknowledgement> {
    let SignedProcessorEvent { program, signature, body } = input;
    let unknown = || Problem::not_found("affiliate program with a payment processor");
    let program = program.ok_or_else(unknown)?;
    let received = state.affiliate.events.receive_webhook(program, &signature, &body).await;
    match received.or_problem(&state)? {
        IngestOutcome::Done => Ok(EventAcknowledgement::processed()),
        IngestOutcome::Duplicate => Ok(EventAcknowledgement::duplicate()),
        IngestOutcome::Ignored(reason) => Ok(EventAcknowledgement::ignored(reason)),
        IngestOutcome::Unknown => Err(unknown()),
        IngestOutcome::BadSignature(error) => Err(Problem::field(HEADER, error.to_string())),
        IngestOutcome::Failed(fault) => Err(Problem::internal(fault)),
    }
}

object_view! {
    /// An event received from the payment processor
    #[schema(name = "AffiliateProcessorEvent")]
    pub struct ProcessorEventObject, fn from_event(event: ProcessorEvent) {
        /// The payment processor's event id (`evt_…`)
        id: String = event.id,
        /// The payment processor's event type
        r#type: String = event.kind,
        /// The result
        #[schema(as = String, enum = EventStatus::WORDS)]
        status: EventStatus = event.status,
        /// Why the event failed or is ignored
        error: Option<String> = event.error,
        /// Number of attempts
        attempts: u32 = event.attempts,
        /// When it was first received
        received_at: ApiTimestamp = ApiTimestamp(event.received_at),
    }
}

/// Query of `GET …/processor/events`.
#[derive(Debug)]
pub struct ListProcessorEvents {
    page: PageParameters,
    statuses: Vec<EventStatus>,
}

impl RequestQuery for ListProcessorEvents {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let (words, parse) = (EventStatus::WORDS, EventStatus::from_word);
        let statuses = query.words_of("status", "Filter by result; several separated by commas", words, parse)?;
        Ok(Self { page, statuses })
    }
}

/// `GET …/processor/events`.
pub async fn list(
    state: State,
    owner: Owner,
    request: ReadRequest<ListProcessorEvents>,
) -> Result<ListResponse<ProcessorEventObject>> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let after = input.page.cursor_time(KIND_PROCESSOR_EVENT)?;
    let found = state
        .affiliate
        .events
        .list_processor_events(program.account, &input.statuses, after.as_ref(), input.page.limit)
        .await
        .or_problem(&state)?;
    let next = found.next.map(|(at, id)| paging::after_time(KIND_PROCESSOR_EVENT, at, &id));
    Ok(ListResponse::new(found.events.into_iter().map(ProcessorEventObject::from_event).collect(), next))
}

/// Path of an event, by the payment processor's id.
#[derive(Debug)]
pub struct ProcessorEventPath(Option<String>);

impl FromRequest for ProcessorEventPath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter("id", "The payment processor's event id (`evt_…`)")]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(call.path_text("id").filter(|id| id.len() <= EVENT_ID_BYTES_MAX)))
    }
}

object_response! { "A response with a single object", pub ProcessorEventResponse { event: ProcessorEventObject } as "OneAffiliateProcessorEvent" }

/// `POST …/processor/events/{id}/replay`: retries a failed event. An event that did not fail is not changed.
pub async fn replay(
    state: State,
    owner: Owner,
    request: ReadRequest<ProcessorEventPath>,
) -> Result<ProcessorEventResponse> {
    let ResolvedRequest { program, input, .. } = request.require_program(&state, owner.tenant()).await?;
    let unknown = || Problem::not_found("event");
    let id = input.0.ok_or_else(unknown)?;
    let event =
        state.affiliate.events.replay_event(program.account, &id).await.or_problem(&state)?.ok_or_else(unknown)?;
    Ok(ProcessorEventResponse { event: ProcessorEventObject::from_event(event) })
}

/// Errors of the operation besides those of every operation.
pub(super) const RECEIVE_ERRORS: &[ErrorCode] = &[ErrorCode::NOT_FOUND, ErrorCode::PLAN_FULL];
