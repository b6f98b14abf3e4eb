//! `POST /affiliate/signups` and `/affiliate/identify`: what a page says of a referred visitor.
//!
//! The answer is the same, and comes after the same time, whatever becomes of it: from it nobody learns whether an address
//! is known, a visit there, or a key right. What is done is done behind it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use mail::address::Address;
use mail::affiliate::program::Program;
use mail::id::VisitId;
use serde_json::{Value, json};

use super::{Caller, REPORT_BYTES_MAX, Report, TEXT_CHARS_MAX, cut_schema};
use crate::call::{Answer, Call, Input, Media, Reply, Takes};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};
use ::affiliate::refusal::Refusal;

/// The answer comes after this time: with a disk in good health it is all done by then.
const ANSWER_AFTER: Duration = Duration::from_millis(200);

/// A visitor of whom a page says something.
#[derive(Debug)]
pub struct TellPerson {
    caller: Caller,
    key: String,
    visit: Option<VisitId>,
    email: Option<Address>,
}

impl Input for TellPerson {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Whatever;

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("TellAffiliatePerson", |_| {
            let fields = [
                ("key", schema::string("The program's publishable key (`pk_…`)")),
                ("referral", schema::string("The visit (`vis_…`)")),
                ("email", schema::string("The visitor's address")),
                ("visitor", cut_schema("The cookie `stx_vid`")),
            ];
            let mut person =
                schema::object_with("A referred visitor; what is missing or wrong is not told", &[], fields);
            // Whatever comes is answered alike, so nothing is wrong.
            take_types_off(&mut person);
            person["examples"] = json!([{
                "key": "pk_5f1d2c3b4a5968778695a4b3c2d1e0f0", "referral": "vis_01K9ZQ4Y8M3T5V7W2X6B0C1D9E",
                "email": "grace@example.net", "visitor": "5f1d2c3b4a5968778695a4b3c2d1e0f0",
            }]);
            person
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let names = names!("key", "referral", "email", "visitor");
        let nothing = Self { caller: Caller::of(call), key: String::new(), visit: None, email: None };
        // What cannot be read tells of nobody; and so little is said to that, as to all else.
        let Ok(mut report) = Report::of(call, &names) else { return Ok(nothing) };
        let (visit, email) = (report.text("referral", TEXT_CHARS_MAX), report.text("email", TEXT_CHARS_MAX));
        let key = report.text("key", TEXT_CHARS_MAX);
        let told = Self { key, visit: visit.parse().ok(), email: email.trim().parse().ok(), ..nothing };
        Ok(told)
    }
}

/// A schema that everything fits, and which says what is meant.
fn take_types_off(schema: &mut Value) {
    let properties = schema["properties"].as_object_mut().map(std::mem::take);
    let named = properties.into_iter().flatten().map(|(name, field)| {
        let about = field["description"].clone();
        (name, json!({"description": about}))
    });
    let properties: Value = named.collect();
    *schema = json!({"description": schema["description"], "properties": properties});
}

/// It was heard.
#[derive(Debug)]
pub struct Heard(Vec<(HeaderName, HeaderValue)>);

impl Reply for Heard {
    const STATUS: StatusCode = StatusCode::ACCEPTED;

    fn describe(_: &mut Schemas) -> Value {
        let ok = json!({"type": "boolean", "const": true});
        schema::object("It was heard; what becomes of it is not said", [("ok", ok)])
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from_static(b"{\"ok\":true}"))
    }

    fn answer(self) -> Result<Answer, Problem> {
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        let (status, body) = (Self::STATUS, Bytes::from_static(b"{\"ok\":true}"));
        Ok(Answer { status, media_type, headers: self.0, body, more: None })
    }
}

/// What is said of them.
#[derive(Debug, Clone, Copy)]
enum Said {
    SignedUp,
    Identified,
}

/// `POST /affiliate/signups`.
///
/// # Errors
/// There is no room.
pub async fn signed_up(room: Arc<Room>, told: TellPerson) -> Result<Heard, Problem> {
    hear(room, told, Said::SignedUp).await
}

/// `POST /affiliate/identify`.
///
/// # Errors
/// As [`signed_up`].
pub async fn identified(room: Arc<Room>, told: TellPerson) -> Result<Heard, Problem> {
    hear(room, told, Said::Identified).await
}

async fn hear(room: Arc<Room>, told: TellPerson, said: Said) -> Result<Heard, Problem> {
    let answer = tokio::time::sleep(ANSWER_AFTER);
    let place = Arc::clone(&room.people_told).try_acquire_owned().map_err(|_| Problem::busy())?;
    let found = room.affiliate.program_of_key(&told.key).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "a sign-up cannot be heard");
        None
    });
    let found = found.filter(|program| told.caller.may_tell(program));
    let headers = told.caller.cors(found.is_some());
    if let Some(program) = found {
        let behind = Arc::clone(&room);
        room.tasks.spawn(async move {
            if let Err(error) = take(&behind, &program, &told, said).await {
                tracing::warn!(%error, ?said, "what a page said of a visitor was not kept");
            }
            drop(place);
        });
    }
    answer.await;
    Ok(Heard(headers))
}

async fn take(room: &Room, program: &Program, told: &TellPerson, said: Said) -> Result<(), Refusal> {
    let now = room.hall.clock().now();
    let (Some(visit), Some(email)) = (told.visit, &told.email) else { return Ok(()) };
    let is_often = room.click_limits.address(told.caller.from, now).is_err()
        || room.click_limits.site(program.account, now).is_err();
    if is_often || told.caller.is_machine() {
        return Ok(());
    }
    let (ledger, of): (_, (_, VisitId)) = (room.affiliate.ledger(), (program.account, visit));
    let from: Option<IpAddr> = told.caller.from;
    match said {
        Said::SignedUp => ledger.sign_up(of, email, from).await.map(drop),
        Said::Identified => ledger.identify(of, email).await,
    }
}
