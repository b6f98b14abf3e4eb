//! `POST /events`: parses an event, ingests it once per idempotency key, and returns the stored copy.

use std::sync::Arc;

use mail::address::Address;
use mail::automation::run::RunMode;
use mail::event::EventKind;
use mail::idempotency::IdempotencyScope;
use mail::product_event::{DATA_BYTES_MAX, DATA_LEVELS_MAX, NAME_BYTES_MAX, USER_ID_BYTES_MAX, check_name};
use mail::raw_number;
use mail::trigger_event::TriggerEvent;
use queue::automations::DryRunError;
use queue::idempotency::IdempotencyKey;
use queue::product_events::{IncomingProductEvent, IngestedProductEvent};
use queue::submit_error::SubmitError;
use serde_json::{Map, Value, json};
use store::access::{Actor, Tenant};
use store::engine::Batch;

use super::view::SendEventResponse;
use crate::automations::path::automation_not_found;
use crate::automations::view::AutomationRunView;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::idempotency::{self, IdempotentResponse, RequestDecision, finish, stored_outcome};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec};
use crate::request_fingerprint::RequestFingerprint;
use crate::schema::{self, Schemas};
use crate::state::AppState;

/// Maximum body size: the event's data and the other fields.
const BODY_BYTES_MAX: usize = 128 << 10;

const NAMES: FieldNames = FieldNames {
    known: &[
        ("name", "name"),
        ("type", "name"),
        ("user_id", "user_id"),
        ("userId", "user_id"),
        ("email", "email"),
        ("data", "data"),
        ("dry_run", "dry_run"),
        ("dryRun", "dry_run"),
        ("test_send", "test_send"),
        ("testSend", "test_send"),
        ("automation_id", "automation_id"),
        ("automationId", "automation_id"),
    ],
    foreign: &[("Name", "name"), ("UserId", "user_id"), ("Email", "email"), ("Data", "data")],
};
/// Fields that request a dry run; accepted from dashboard sessions only.
const DRY_RUN_FIELDS: [&str; 3] = ["dry_run", "test_send", "automation_id"];

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
    event: IncomingProductEvent,
    /// The dry-run fields that were given.
    dry_run_fields: Vec<&'static str>,
    /// The parsed dry run or its error; `None` if none was requested.
    dry_run: Option<Result<DryRunRequest, Problem>>,
    claim: Option<IdempotencyKey>,
}

impl FromRequest for SendEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("SendEvent", |_| event_schema());
        RequestSpec {
            parameters: vec![idempotency::header_parameter()],
            body: Some(body),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let mut field = |name: &str, outcome: Result<Option<String>, String>| {
            outcome.map_err(|text| notes.errors.add(name, text)).ok().flatten()
        };
        let name = field("name", read_name(&fields)).unwrap_or_default();
        let user_id = field("user_id", read_text(&fields, "user_id", parse_user_id));
        let email = field("email", read_text(&fields, "email", parse_email));
        let data = read_data(&fields).map_err(|text| notes.errors.add("data", text)).unwrap_or_default();
        let dry_run_fields: Vec<_> = DRY_RUN_FIELDS.into_iter().filter(|name| fields.value(name).is_some()).collect();
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let dry_run_request = read_dry_run(&fields).transpose();
        // Clients cannot send events of the service, because these must be true. A dry run sends no event.
        if dry_run_request.is_none() && EventKind::from_name_ignoring_case(&name).is_some() {
            return Err(Problem::field("name", "is reserved for an event of the service; use another name"));
        }
        let event = IncomingProductEvent { name, user_id, email, data };
        let dry_run = dry_run_request.as_ref().and_then(|request| request.as_ref().ok());
        let claim =
            idempotency::parse_claim(&call.headers, || event_fingerprint(&event, dry_run, &call.warnings.borrow()))?;
        Ok(Self { event, dry_run_fields, dry_run: dry_run_request, claim })
    }
}

fn read_name(fields: &ObjectFields<'_>) -> Result<Option<String>, String> {
    let Some(value) = fields.value("name") else {
        return if fields.is_present_or_misnamed("name") { Ok(None) } else { Err("is required".to_owned()) };
    };
    let name = fields::parse_text(value)?.into_owned();
    check_name(&name).map(|()| Some(name))
}

fn read_text(
    fields: &ObjectFields<'_>,
    name: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<String>, String> {
    fields.value(name).map(|value| fields::parse_text(value).and_then(|text| check(&text))).transpose()
}

fn parse_user_id(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > USER_ID_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be 1 to {USER_ID_BYTES_MAX} bytes without control characters"));
    }
    Ok(text.to_owned())
}

fn parse_email(text: &str) -> Result<String, String> {
    let text = text.trim();
    text.parse::<Address>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Reads the event's data: an object, empty if absent.
fn read_data(fields: &ObjectFields<'_>) -> Result<Value, String> {
    let Some(value) = fields.value("data") else { return Ok(Value::Object(Map::new())) };
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

/// Nesting depth of lists and objects. Recursion is bounded by `unparsed::LEVELS_MAX`.
fn nesting_depth(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(nesting_depth).max().unwrap_or(0),
        number if raw_number::is_number(number) => 0,
        Value::Object(members) => 1 + members.values().map(nesting_depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reads the dry-run fields.
fn read_dry_run(fields: &ObjectFields<'_>) -> Result<Option<DryRunRequest>, Problem> {
    let flag = |name: &str| match fields.value(name) {
        Some(value) => fields::parse_bool(value).map_err(|text| Problem::field(name, text)),
        None => Ok(false),
    };
    let mode = match (flag("dry_run")?, flag("test_send")?) {
        (true, true) => return Err(Problem::field("test_send", "cannot be combined with `dry_run`")),
        (true, false) => RunMode::DryRun,
        (false, true) => RunMode::TestSend,
        (false, false) if fields.value("automation_id").is_some() => {
            return Err(Problem::field("automation_id", "requires `dry_run` or `test_send`"));
        }
        (false, false) => return Ok(None),
    };
    let id = fields.value("automation_id");
    let id = id.ok_or_else(|| Problem::field("automation_id", "is required"))?;
    let automation = fields::parse_text(id).map_err(|text| Problem::field("automation_id", text))?.into_owned();
    Ok(Some(DryRunRequest { mode, automation }))
}

/// Fingerprint of an event's content, independent of its JSON formatting.
fn event_fingerprint(event: &IncomingProductEvent, dry_run: Option<&DryRunRequest>, ignored: &[String]) -> String {
    let IncomingProductEvent { name, user_id, email, data } = event;
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
pub async fn send(
    state: Arc<AppState>,
    tenant: Tenant,
    input: SendEvent,
) -> Result<IdempotentResponse<SendEventResponse>, Problem> {
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
    let now = state.intake.clock().now();
    if let Some(dry_run_request) = dry_run_request {
        let accepted = dry_run(&state, &tenant, event, dry_run_request).await?;
        if let Some(guard) = &guard {
            let mut batch = Batch::progress();
            guard.record_outcome(&mut batch, stored_outcome(&accepted), now);
            let stored = state.intake.store().commit(batch).await.map_err(SubmitError::from);
            return finish(Some(guard), &state, stored.map(|()| accepted)).await;
        }
        return IdempotentResponse::fresh(accepted);
    }
    let record_outcome = |ingested: &IngestedProductEvent, batch: &mut Batch| {
        if let Some(guard) = &guard {
            guard.record_outcome(batch, stored_outcome(&SendEventResponse::from_accepted_event(ingested)), now);
        }
    };
    let ingested = state.intake.product_events().ingest(&tenant, event, &record_outcome).await;
    finish(guard.as_deref(), &state, ingested.map(|ingested| SendEventResponse::from_accepted_event(&ingested))).await
}

/// Runs an automation with the event, which is not stored.
async fn dry_run(
    state: &AppState,
    tenant: &Tenant,
    incoming: IncomingProductEvent,
    DryRunRequest { mode, automation }: DryRunRequest,
) -> Result<SendEventResponse, Problem> {
    let automation = automation.parse().map_err(|_| automation_not_found())?;
    let event = state.intake.product_events().with_id_and_time(tenant, incoming);
    let run = state.intake.dry_run(tenant, automation, &TriggerEvent::from(&event), mode).await;
    let run = run.map_err(|error| match error {
        DryRunError::NotFound => automation_not_found(),
        DryRunError::Read(error) => error.into(),
    })?;
    Ok(SendEventResponse::from_dry_run(&event, AutomationRunView::from_run_in_mode(&run, mode)))
}

fn event_schema() -> Value {
    let text = |bytes_max: usize, description: &str| json!({"type": "string", "minLength": 1, "maxLength": bytes_max, "description": description});
    let for_sessions = |description: &str| format!("Dashboard sessions only: {description}");
    let mut event = schema::object_with(
        "A product event; `name` or `type` is required",
        &[],
        [
            (
                "name",
                text(
                    NAME_BYTES_MAX,
                    "The event name, like `user.created`. No control characters, no leading or trailing spaces, no \
                     name of an event of the service (`email.delivered`)",
                ),
            ),
            ("type", text(NAME_BYTES_MAX, "Alias of `name`; one of them is required")),
            ("user_id", text(USER_ID_BYTES_MAX, "The person's user id in your product")),
            ("email", json!({"type": "string", "format": "email", "description": "The person's email address"})),
            (
                "data",
                json!({
                    "type": "object",
                    "description": format!(
                        "Event data, at most {DATA_BYTES_MAX} bytes and {DATA_LEVELS_MAX} levels. Automations receive \
                         it unchanged; credentials in it are stored as `REDACTED`. For sign-ups and \
                         subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or the cookie `rnl_ad`), \
                         `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`"
                    ),
                }),
            ),
            ("dry_run", schema::boolean(&for_sessions("run an automation as a test without sending anything"))),
            ("test_send", schema::boolean(&for_sessions("run an automation as a test and send its messages"))),
            ("automation_id", schema::string(&for_sessions("the automation to test"))),
        ],
    );
    event["examples"] = json!([{
        "name": "user.created",
        "user_id": "u_42",
        "email": "grace@example.net",
        "data": {"id": "u_42", "plan": "trial", "signup_method": "google"},
    }]);
    event
}
