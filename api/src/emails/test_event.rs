//! `POST /emails/test`: sends a test event to the webhook endpoints.
//!
//! The payload is that of a stored email and its latest event of this kind, or an example. It contains `test: true`, so
//! that a receiver can distinguish it from a real event.

mod affiliate_examples;
pub(crate) mod example_event;
pub(crate) mod example_payloads;

use httpd::request_value::AnyText;
use model::email::EmailRollup;
use model::event::{Event, EventKind};
use model::webhook::Webhook;
use model::webhook_delivery::WebhookDeliveryStatus;
use model::webhook_payload::email_event_data;
use serde_json::Map;
use store::email::EmailWithRecipients;

use self::example_event::ExampleEvent;
use self::example_payloads::{PayloadSubject, add_missing, example_for, set_recipient};
use super::path::{email_not_found, find};
use super::timeline::TIMELINE_MAX;
use crate::prelude::*;

/// Enough for a body with three short fields.
const BODY_BYTES_MAX: usize = 16 << 10;

/// A test event
#[derive(Debug, RequestObject)]
#[schema(name = "TestEvent")]
pub struct TestEvent {
    /// The event name
    #[field(foreign = ["Event"], examples = ["email.delivered"])]
    event: ExampleEvent,
    /// The email that the event is about (`msg_…`)
    #[field(aliases = ["emailId"], foreign = ["MessageID"], reader = AnyText, schema = schema::id(EmailId::PREFIX, ""))]
    email_id: Option<String>,
    /// Whether to send it to subscribed endpoints; defaults to true
    #[field(absent = true)]
    deliver: bool,
}

impl FromRequest for TestEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(Self::schema);

    fn read(call: &Request) -> Result<Self> {
        let test: Self = read_body(call)?;
        let ExampleEvent(kind) = test.event;
        if test.email_id.is_some() && example_for(kind).subject == PayloadSubject::Object {
            let name = kind.name();
            return Err(Problem::field("email_id", format!("`{name}` is not about an email that was sent")));
        }
        test.email()?;
        Ok(test)
    }
}

impl TestEvent {
    /// The id of the email. A malformed id is answered 404, like an unknown one.
    fn email(&self) -> Result<Option<EmailId>> {
        self.email_id.as_ref().map(|id| id.parse().map_err(|_| email_not_found())).transpose()
    }
}

/// The body of a delivery
#[derive(Debug, Serialize, ToSchema)]
pub struct TestEventPayload {
    /// The event's name
    r#type: &'static str,
    /// When it happened
    created_at: JsonTimestamp,
    /// The event data; `test` is true
    #[schema(as = Value, type = "object")]
    data: Map<String, Value>,
}

/// A test event as sent to webhooks
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "TestedEvent")]
pub struct TestEventResponse {
    payload: TestEventPayload,
    /// Whether deliveries were enqueued
    queued: bool,
    /// One delivery per endpoint
    deliveries: Vec<QueuedTestDelivery>,
}

/// A delivery
#[derive(Debug, Serialize, ToSchema)]
pub struct QueuedTestDelivery {
    /// `whd_…`
    id: DeliveryId,
    /// The endpoint (`whk_…`)
    webhook_id: WebhookId,
    /// The endpoint's URL
    url: String,
    /// The status
    status: WebhookDeliveryStatus,
}

/// `POST /emails/test`.
pub async fn send_test_event(state: State, tenant: Tenant, input: TestEvent) -> Result<TestEventResponse> {
    let email = input.email()?;
    let TestEvent { event: ExampleEvent(kind), deliver, .. } = input;
    let now = state.services.clock.now();
    let event_id = EventId::new(now, state.services.entropy.unique_bits());
    let mut created_at = now;
    let mut example = example_for(kind);
    let mut data = match email {
        None => example.data(event_id),
        Some(id) => {
            let found = find(&state, &tenant, id).await?;
            let events = store::event::list(&state.services.store, tenant.account().id, id, TIMELINE_MAX).await?;
            let newest = events.into_iter().rfind(|entry| entry.kind == kind);
            created_at = newest.as_ref().map_or(now, |entry| entry.created_at);
            if let Some(first) = found.recipients.first() {
                set_recipient(&mut example.fields, &first.address);
            }
            let mut data = payload_for_email(&found, newest, example.subject, event_id);
            add_missing(&mut data, example.fields);
            data
        }
    };
    data.insert("test".to_owned(), Value::Bool(true));
    let payload = TestEventPayload { r#type: kind.name(), created_at: JsonTimestamp(created_at), data };
    // Endpoints belong to the whole account: for a key restricted to a domain only the payload is returned.
    let deliveries = if deliver && tenant.bound_to().is_none() {
        queue_test_deliveries(&state, &tenant, &payload).await?
    } else {
        Vec::new()
    };
    Ok(TestEventResponse { payload, queued: !deliveries.is_empty(), deliveries })
}

/// Enqueues the event for every enabled endpoint that subscribes to it.
async fn queue_test_deliveries(
    state: &AppState,
    tenant: &Tenant,
    payload: &TestEventPayload,
) -> Result<Vec<QueuedTestDelivery>> {
    let all = store::webhook::list(&state.services.store, tenant.account().id).await?;
    let kind = EventKind::from_name(payload.r#type);
    let is_subscribed = |entry: &Webhook| entry.enabled && kind.is_some_and(|kind| entry.subscribes_to(kind));
    let subscribed: Vec<Webhook> = all.into_iter().filter(is_subscribed).collect();
    let text = serde_json::to_string(payload).map_err(Problem::internal)?;
    let id = payload.data.get("event_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| Problem::internal("test payload has no event id"))?;
    let queued_deliveries = state.accounts.webhooks.send_test_deliveries(&subscribed, id, payload.r#type, &text).await;
    let queued_deliveries = queued_deliveries.or_problem(state)?;
    let queued = queued_deliveries.into_iter().zip(subscribed).map(|(delivery, endpoint)| QueuedTestDelivery {
        id: delivery.id,
        webhook_id: endpoint.id,
        url: endpoint.url,
        status: delivery.status,
    });
    Ok(queued.collect())
}

fn payload_for_email(
    found: &EmailWithRecipients,
    newest: Option<Event>,
    subject: PayloadSubject,
    fresh: EventId,
) -> Map<String, Value> {
    let EmailWithRecipients { email, recipients, .. } = found;
    let status = EmailRollup::from_recipients(recipients).status;
    if let Some(event) = newest {
        return email_event_data(email, &event, status);
    }
    let recipient = recipients.first().map(|recipient| recipient.address.clone());
    let event = Event {
        id: fresh,
        account: email.account,
        subject: email.id.into(),
        // The kind decides only which fields are added; the example provides the status.
        kind: if subject == PayloadSubject::Contact { EventKind::Unsubscribed } else { EventKind::Opened },
        recipient: recipient.filter(|_| subject != PayloadSubject::WholeEmail),
        created_at: email.created_at,
        detail: Value::Null,
    };
    let mut data = email_event_data(email, &event, status);
    data.remove("status");
    data
}
