//! `POST /events`: an event is read, whole; taken in, once if the request has a key; and answered with the copy
//! that is stored.

use std::sync::Arc;

use mail::address::Address;
use mail::automation::run::Mode;
use mail::event::EventKind;
use mail::idempotency::Operation;
use mail::number;
use mail::product_event::{DATA_BYTES_MAX, DATA_LEVELS_MAX, NAME_BYTES_MAX, USER_ID_BYTES_MAX, check_name};
use mail::signal::Signal;
use queue::automations::RehearseError;
use queue::once::Claim;
use queue::product_events::{Taken, Told};
use queue::refusal::Refusal;
use serde_json::{Map, Value, json};
use store::access::{Actor, Tenant};
use store::engine::Batch;

use super::view::Accepted;
use crate::automations::{no_such_automation, view::RunView};
use crate::call::{Call, Input, Takes};
use crate::emails::fingerprint::Fingerprint;
use crate::fields::{self, Given, Names, Notes};
use crate::idempotency::{self, Once, Turn, conclude, done};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The largest body: the particulars, and room for the rest.
const BODY_BYTES_MAX: usize = 128 << 10;

const NAMES: Names = Names {
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
/// Fields of a rehearsal, which only sessions may ask for.
const REHEARSAL: [&str; 3] = ["dry_run", "test_send", "automation_id"];

/// A rehearsal that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    /// How.
    pub mode: Mode,
    /// Of which automation, as it was given.
    pub automation: String,
}

/// An event that was read.
#[derive(Debug)]
pub struct SendEvent {
    told: Told,
    /// Fields of a rehearsal that are given …
    rehearsing: Vec<&'static str>,
    /// … and what they ask for; none when nothing.
    rehearsal: Option<Result<Rehearsal, Problem>>,
    claim: Option<Claim>,
}

impl Input for SendEvent {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("SendEvent", |_| event_schema());
        Takes {
            parameters: vec![idempotency::parameter()],
            body: Some(body),
            body_bytes_max: Self::BODY_BYTES_MAX,
        }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let mut field = |name: &str, outcome: Result<Option<String>, String>| {
            outcome.map_err(|text| notes.errors.add(name, text)).ok().flatten()
        };
        let name = field("name", name(&given)).unwrap_or_default();
        let user_id = field("user_id", text(&given, "user_id", user_id));
        let email = field("email", text(&given, "email", email));
        let data = data(&given).map_err(|text| notes.errors.add("data", text)).unwrap_or_default();
        let rehearsing: Vec<_> = REHEARSAL.into_iter().filter(|name| given.value(name).is_some()).collect();
        if !notes.errors.is_empty() {
            return Err(notes.errors.into());
        }
        let rehearsal = rehearsal(&given).transpose();
        // Our own events are told by us alone: what they start must be true. Who tries an automation out tells nobody.
        if rehearsal.is_none() && EventKind::reserving(&name).is_some() {
            return Err(Problem::field("name", "is the name of an event of ours; give yours another"));
        }
        let told = Told { name, user_id, email, data };
        let tried = rehearsal.as_ref().and_then(|asked| asked.as_ref().ok());
        let claim = idempotency::claim(&call.headers, || fingerprint(&told, tried, &call.ignored.borrow()))?;
        Ok(Self { told, rehearsing, rehearsal, claim })
    }
}

fn name(given: &Given<'_>) -> Result<Option<String>, String> {
    let Some(value) = given.value("name") else {
        return if given.is_meant("name") { Ok(None) } else { Err("is required".to_owned()) };
    };
    let name = fields::text(value)?.into_owned();
    check_name(&name).map(|()| Some(name))
}

fn text(
    given: &Given<'_>,
    name: &str,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<String>, String> {
    given.value(name).map(|value| fields::text(value).and_then(|text| check(&text))).transpose()
}

fn user_id(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > USER_ID_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("is 1 to {USER_ID_BYTES_MAX} bytes without control characters"));
    }
    Ok(text.to_owned())
}

fn email(text: &str) -> Result<String, String> {
    let text = text.trim();
    text.parse::<Address>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The particulars: an object, or none.
fn data(given: &Given<'_>) -> Result<Value, String> {
    let Some(value) = given.value("data") else { return Ok(Value::Object(Map::new())) };
    if fields::Kind::of(value) != fields::Kind::Object {
        return Err("must be an object".to_owned());
    }
    if value.get().len() > DATA_BYTES_MAX {
        return Err(format!("is larger than {DATA_BYTES_MAX} bytes"));
    }
    // The grammar was checked: what can be wrong is half of a surrogate pair.
    let data = number::read(value.get()).map_err(|_| "holds text that is not valid".to_owned())?;
    if levels(&data) > DATA_LEVELS_MAX {
        return Err(format!("is nested deeper than {DATA_LEVELS_MAX} levels"));
    }
    Ok(data)
}

/// Levels of lists and objects; bodies are nested no deeper than `unparsed::LEVELS_MAX`.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(levels).max().unwrap_or(0),
        number if number::is_number(number) => 0,
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// What the fields of a rehearsal ask for.
fn rehearsal(given: &Given<'_>) -> Result<Option<Rehearsal>, Problem> {
    let flag = |name: &str| match given.value(name) {
        Some(value) => fields::boolean(value).map_err(|text| Problem::field(name, text)),
        None => Ok(false),
    };
    let mode = match (flag("dry_run")?, flag("test_send")?) {
        (true, true) => return Err(Problem::field("test_send", "is not given together with `dry_run`")),
        (true, false) => Mode::DryRun,
        (false, true) => Mode::TestSend,
        (false, false) if given.value("automation_id").is_some() => {
            return Err(Problem::field("automation_id", "goes with `dry_run` or `test_send`"));
        }
        (false, false) => return Ok(None),
    };
    let id = given.value("automation_id");
    let id =
        id.ok_or_else(|| Problem::field("automation_id", "says which automation is tried; it is required"))?;
    let automation = fields::text(id).map_err(|text| Problem::field("automation_id", text))?.into_owned();
    Ok(Some(Rehearsal { mode, automation }))
}

/// The fingerprint of an event: what it says, however it is written.
fn fingerprint(told: &Told, rehearsal: Option<&Rehearsal>, ignored: &[String]) -> String {
    let Told { name, user_id, email, data } = told;
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(name);
    fingerprint.add_if(user_id.as_ref());
    fingerprint.add_if(email.as_ref());
    fingerprint.json(data);
    if let Some(Rehearsal { mode, automation }) = rehearsal {
        fingerprint.add(format!("{mode:?} {automation}"));
    }
    fingerprint.count(ignored.len());
    ignored.iter().for_each(|warning| fingerprint.add(warning));
    fingerprint.finish()
}

/// `POST /events`.
///
/// # Errors
/// What is wrong with the key; what the hall refuses.
pub async fn send(room: Arc<Room>, tenant: Tenant, input: SendEvent) -> Result<Once<Accepted>, Problem> {
    let SendEvent { told, rehearsing, rehearsal, claim } = input;
    if !matches!(tenant.actor(), Actor::User(_))
        && let Some(name) = rehearsing.first()
    {
        return Err(Problem::field(name, "is for dashboard sessions, not for API keys"));
    }
    let rehearsal = rehearsal.transpose()?;
    let slot = match idempotency::look(&room, &tenant, Operation::SendEvent, claim).await? {
        Turn::Done(body) => return Ok(Once::again(body)),
        Turn::Go(slot) => slot,
    };
    let now = room.hall.clock().now();
    if let Some(rehearsal) = rehearsal {
        let accepted = rehearse(&room, &tenant, told, rehearsal).await?;
        if let Some(slot) = &slot {
            let mut batch = Batch::progress();
            slot.keep(&mut batch, done(&accepted), now);
            let kept = room.hall.store().commit(batch).await.map_err(Refusal::from);
            return conclude(Some(slot), &room, kept.map(|()| accepted)).await;
        }
        return Once::first(accepted);
    }
    let also = |taken: &Taken, batch: &mut Batch| {
        if let Some(slot) = &slot {
            slot.keep(batch, done(&Accepted::of(taken)), now);
        }
    };
    let taken = room.hall.product_events().take(&tenant, told, &also).await;
    conclude(slot.as_deref(), &room, taken.map(|taken| Accepted::of(&taken))).await
}

/// Tries an automation out with an event, which is not stored.
async fn rehearse(
    room: &Room,
    tenant: &Tenant,
    told: Told,
    Rehearsal { mode, automation }: Rehearsal,
) -> Result<Accepted, Problem> {
    let automation = automation.parse().map_err(|_| no_such_automation())?;
    let event = room.hall.product_events().original(tenant, told);
    let run = room.hall.rehearse(tenant, automation, &Signal::from(&event), mode).await;
    let run = run.map_err(|error| match error {
        RehearseError::NotFound => no_such_automation(),
        RehearseError::Read(error) => error.into(),
    })?;
    Ok(Accepted::rehearsed(&event, RunView::in_mode(&run, mode)))
}

fn event_schema() -> Value {
    let text = |bytes_max: usize, description: &str| json!({"type": "string", "minLength": 1, "maxLength": bytes_max, "description": description});
    let for_sessions = |description: &str| format!("Dashboard sessions only: {description}");
    let mut event = schema::object_with(
        "Something that happened; `name` or `type`",
        &[],
        [
            (
                "name",
                text(
                    NAME_BYTES_MAX,
                    "What happened: `user.created`. No control characters, no spaces at its ends, and no name of an \
                     event of ours (`email.delivered`)",
                ),
            ),
            ("type", text(NAME_BYTES_MAX, "Another word for `name`: one of both is needed")),
            ("user_id", text(USER_ID_BYTES_MAX, "Whom it happened to, by your own id")),
            (
                "email",
                json!({"type": "string", "format": "email", "description": "Whom it happened to, by address"}),
            ),
            (
                "data",
                json!({
                    "type": "object",
                    "description": format!(
                        "Particulars, at most {DATA_BYTES_MAX} bytes and {DATA_LEVELS_MAX} levels. Automations see \
                         them as they are; credentials in them are stored as `REDACTED`. On sign-ups and \
                         subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or the cookie `rnl_ad`), \
                         `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`"
                    ),
                }),
            ),
            ("dry_run", schema::boolean(&for_sessions("try an automation out, without sending anything"))),
            ("test_send", schema::boolean(&for_sessions("try an automation out, and send what it sends"))),
            ("automation_id", schema::string(&for_sessions("which automation is tried out"))),
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
