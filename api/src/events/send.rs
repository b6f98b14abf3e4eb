//! `POST /events`: parses an event, ingests it once per idempotency key, and returns the stored copy.

use std::marker::PhantomData;

use events::automations::DryRunError;
use events::product_events::IngestedProductEvent;
use httpd::request_object::{RequestValue, bounded_text_schema};
use httpd::request_value::AnyText;
use model::automation::context::EventFacts;
use model::automation::run::RunMode;
use model::event::EventKind;
use model::idempotency::IdempotencyScope;
use model::product_event::{DATA_BYTES_MAX, DATA_LEVELS_MAX, NAME_BYTES_MAX, USER_ID_BYTES_MAX, check_name};
use model::raw_number;
use model::trigger_event::TriggerEvent;
use queue::intake::idempotency::IdempotencyKey;
use queue::intake::submit_error::SubmitError;
use serde_json::Map;
use store::access::Actor;

use super::view::SendEventResponse;
use crate::automations::path::automation_not_found;
use crate::automations::view::AutomationRunView;
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, stored_outcome};
use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;

/// Maximum body size: the event's data and the other fields.
const BODY_BYTES_MAX: usize = 128 << 10;

/// A product event; `name` or `type` is required
#[derive(Debug, RequestObject)]
#[schema(name = "SendEvent", examples = [{
    "name": "user.created",
    "user_id": "u_42",
    "email": "grace@example.net",
    "data": {"id": "u_42", "plan": "trial", "signup_method": "google"},
}])]
struct EventFields {
    /// The event name, like `user.created`. No control characters, no leading or trailing spaces, no name of an event of
    /// the service (`email.delivered`)
    #[field(foreign = ["Name"], parse = parse_name, schema = name_schema)]
    name: Option<String>,
    /// Alias of `name`; one of them is required
    #[field(read = read_type, schema = name_schema)]
    r#type: Option<String>,
    /// The person's user id in your product
    #[field(aliases = ["userId"], foreign = ["UserId"], parse = parse_user_id, schema = user_id_schema)]
    user_id: Option<String>,
    /// The person's email address
    #[field(foreign = ["Email"], parse = parse_email, schema = email_schema)]
    email: Option<String>,
    #[field(foreign = ["Data"], parse = parse_data, schema = data_schema, absent = Value::Object(Map::new()))]
    data: Value,
    /// Dashboard sessions only: run an automation as a test without sending anything
    #[field(aliases = ["dryRun"], reader = FallibleField<bool>)]
    dry_run: Option<Result<bool, String>>,
    /// Dashboard sessions only: run an automation as a test and send its messages
    #[field(aliases = ["testSend"], reader = FallibleField<bool>)]
    test_send: Option<Result<bool, String>>,
    /// Dashboard sessions only: the automation to test
    #[field(aliases = ["automationId"], reader = FallibleField<AnyText>)]
    automation_id: Option<Result<String, String>>,
}

/// A value whose error is reported only to those who may use the field.
struct FallibleField<R>(PhantomData<R>);

impl<R: RequestValue> RequestValue for FallibleField<R> {
    type Value = Result<R::Value, String>;

    fn schema(schemas: &mut Schemas) -> Value {
        R::schema(schemas)
    }

    fn parse(value: &RawValue) -> Result<Self::Value, String> {
        Ok(R::parse(value))
    }
}

/// A requested dry run of an automation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRunRequest {
    pub mode: RunMode,
    /// The automation's id as given, not yet validated.
    pub automation: String,
}

/// A parsed event.
#[derive(Debug)]
pub struct SendEvent {
    event: EventFacts,
    /// The dry-run fields that were given.
    dry_run_fields: Vec<&'static str>,
    /// The parsed dry run or its error; `None` if none was requested.
    dry_run: Option<Result<DryRunRequest>>,
    claim: Option<IdempotencyKey>,
}

impl FromRequest for SendEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(EventFields::schema);

    fn parameters() -> Vec<Value> {
        vec![idempotency::header_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        let mut body: EventFields = read_checked_body(call, check_names)?;
        let name = body.name.take().or(body.r#type.take());
        let name = name.ok_or_else(|| Problem::internal("an event without a name and no error"))?;
        let dry_run_fields = body.dry_run_fields();
        let dry_run_request = body.read_dry_run().transpose();
        let EventFields { user_id, email, data, .. } = body;
        // Clients cannot send events of the service, because these must be true. A dry run sends no event.
        if dry_run_request.is_none() && EventKind::from_name_ignoring_case(&name).is_some() {
            return Err(Problem::field("name", "is reserved for an event of the service; use another name"));
        }
        let event = EventFacts { name, user_id, email, data };
        let dry_run = dry_run_request.as_ref().and_then(|request| request.as_ref().ok());
        let claim =
            idempotency::parse_claim(&call.headers, || event_fingerprint(&event, dry_run, &call.warnings.borrow()))?;
        Ok(Self { event, dry_run_fields, dry_run: dry_run_request, claim })
    }
}

fn parse_name(value: &RawValue) -> Result<String, String> {
    let name = fields::parse_text(value)?.into_owned();
    check_name(&name).map(|()| name)
}

/// Its errors are those of the name.
fn read_type(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<String> {
    parse_name(fields.value("type")?).map_err(|text| notes.errors.add("name", text)).ok()
}

fn check_names(_: &EventFields, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    match (fields.is_present_or_misnamed("name"), fields.value("type")) {
        (true, Some(_)) => notes.errors.add("name", "is given more than once"),
        (false, None) => notes.errors.add("name", "is required"),
        _ => {}
    }
}

fn name_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(1, NAME_BYTES_MAX)
}

pub(crate) fn parse_user_id(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?.into_owned();
    if text.is_empty() || text.len() > USER_ID_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be 1 to {USER_ID_BYTES_MAX} bytes without control characters"));
    }
    Ok(text)
}

pub(crate) fn user_id_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(1, USER_ID_BYTES_MAX)
}

pub(crate) fn parse_email(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_text(value)?.trim().to_owned();
    text.parse::<Address>().map(|_| text.clone()).map_err(|error| error.to_string())
}

pub(crate) fn email_schema(_: &mut Schemas) -> Value {
    schema::address("")
}

pub(crate) fn parse_data(value: &RawValue) -> Result<Value, String> {
    if fields::JsonKind::of_value(value) != fields::JsonKind::Object {
        return Err("must be an object".to_owned());
    }
    if value.get().len() > DATA_BYTES_MAX {
        return Err(format!("is larger than {DATA_BYTES_MAX} bytes"));
    }
    // The JSON grammar was checked already: only an unpaired surrogate can fail.
    let data = raw_number::parse(value.get()).map_err(|_| "contains invalid text".to_owned())?;
    if nesting_depth(&data) > DATA_LEVELS_MAX {
        return Err(format!("is nested deeper than {DATA_LEVELS_MAX} levels"));
    }
    Ok(data)
}

pub(crate) fn data_schema(_: &mut Schemas) -> Value {
    let text = format!(
        "Event data, at most {DATA_BYTES_MAX} bytes and {DATA_LEVELS_MAX} levels. Automations receive it unchanged; \
         credentials in it are stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, \
         `gbraid`, `wbraid` (or the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, \
         `currency`"
    );
    json!({"type": "object", "description": text})
}

/// Nesting depth of lists and objects. Recursion is bounded by `unparsed::LEVELS_MAX`.
fn nesting_depth(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(nesting_depth).max().unwrap_or(0),
        number if raw_number::is_number(number) => 0,
        Value::Object(members) => 1 + members.values().map(nesting_depth).max().unwrap_or(0),
        _ => 0,
    }
}

impl EventFields {
    /// The given fields that request a dry run; accepted from dashboard sessions only.
    fn dry_run_fields(&self) -> Vec<&'static str> {
        let given = [
            ("dry_run", self.dry_run.is_some()),
            ("test_send", self.test_send.is_some()),
            ("automation_id", self.automation_id.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    fn read_dry_run(&self) -> Result<Option<DryRunRequest>> {
        let flag = |name: &str, value: &Option<Result<bool, String>>| match value {
            Some(value) => value.clone().map_err(|text| Problem::field(name, text)),
            None => Ok(false),
        };
        let mode = match (flag("dry_run", &self.dry_run)?, flag("test_send", &self.test_send)?) {
            (true, true) => return Err(Problem::field("test_send", "cannot be combined with `dry_run`")),
            (true, false) => RunMode::DryRun,
            (false, true) => RunMode::TestSend,
            (false, false) if self.automation_id.is_some() => {
                return Err(Problem::field("automation_id", "requires `dry_run` or `test_send`"));
            }
            (false, false) => return Ok(None),
        };
        let automation = self.automation_id.clone().unwrap_or_else(|| Err("is required".to_owned()));
        let automation = automation.map_err(|text| Problem::field("automation_id", text))?;
        Ok(Some(DryRunRequest { mode, automation }))
    }
}

/// Fingerprint of an event's content, independent of its JSON formatting.
fn event_fingerprint(event: &EventFacts, dry_run: Option<&DryRunRequest>, ignored: &[String]) -> String {
    let EventFacts { name, user_id, email, data } = event;
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add(name);
    fingerprint.add_optional(user_id.as_ref());
    fingerprint.add_optional(email.as_ref());
    fingerprint.add_json(data);
    if let Some(DryRunRequest { mode, automation }) = dry_run {
        fingerprint.add(format!("{mode:?} {automation}"));
    }
    fingerprint.add_count(ignored.len());
    ignored.iter().for_each(|warning| fingerprint.add(warning));
    fingerprint.finish()
}

/// `POST /events`.
///
/// # Errors
/// The key is in progress or was used for another request; the intake rejects the event.
pub async fn send(state: State, tenant: Tenant, input: SendEvent) -> Result<IdempotentResponse<SendEventResponse>> {
    let SendEvent { event, dry_run_fields: used_fields, dry_run: dry_run_request, claim } = input;
    if !matches!(tenant.actor(), Actor::User(_))
        && let Some(name) = used_fields.first()
    {
        return Err(Problem::field(name, "is available to dashboard sessions only, not to API keys"));
    }
    let dry_run_request = dry_run_request.transpose()?;
    let guard = match idempotency::begin(&state, &tenant, IdempotencyScope::SendEvent, claim).await? {
        RequestDecision::Replay(body) => return Ok(IdempotentResponse::replay(body)),
        RequestDecision::Proceed(guard) => guard,
    };
    let now = state.services.clock.now();
    if let Some(dry_run_request) = dry_run_request {
        let accepted = dry_run(&state, &tenant, event, dry_run_request).await?;
        if let Some(guard) = &guard {
            let mut batch = Batch::progress();
            guard.record_outcome(&mut batch, stored_outcome(&accepted), now);
            let stored = state.services.store.commit(batch).await.map_err(SubmitError::from);
            return finish(Some(guard), &state, stored.map(|()| accepted)).await;
        }
        return IdempotentResponse::fresh(accepted);
    }
    let record_outcome = |ingested: &IngestedProductEvent, batch: &mut Batch| {
        if let Some(guard) = &guard {
            guard.record_outcome(batch, stored_outcome(&SendEventResponse::from_accepted_event(ingested)), now);
        }
    };
    let ingested = state.accounts.product_events.ingest(&tenant, event, &record_outcome).await;
    finish(guard.as_deref(), &state, ingested.map(|ingested| SendEventResponse::from_accepted_event(&ingested))).await
}

/// Runs an automation with the event, which is not stored.
async fn dry_run(
    state: &AppState,
    tenant: &Tenant,
    incoming: EventFacts,
    DryRunRequest { mode, automation }: DryRunRequest,
) -> Result<SendEventResponse> {
    let automation = automation.parse().map_err(|_| automation_not_found())?;
    let event = state.accounts.product_events.with_id_and_time(tenant, incoming);
    let run = state.accounts.automations.dry_run(tenant, automation, &TriggerEvent::from(&event), mode).await;
    let run = run.map_err(|error| match error {
        DryRunError::NotFound => automation_not_found(),
        DryRunError::Read(error) => error.into(),
    })?;
    Ok(SendEventResponse::from_dry_run(&event, AutomationRunView::from_run_in_mode(&run, mode)))
}
