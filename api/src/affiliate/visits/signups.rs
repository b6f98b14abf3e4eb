//! `POST /affiliate/signups` and `/affiliate/identify`: a page reports the email address of a referred visitor.
//!
//! The response and its delay are always the same: they do not reveal whether an address, a visit or a key exists. The
//! report is applied after the response.

use std::net::IpAddr;

use http::header::{HeaderName, HeaderValue};
use httpd::response::{IntoResponse, Response};
use model::affiliate::program::AffiliateProgram;

use super::request::{BrowserClient, REPORT_BYTES_MAX, ReportReader, TEXT_CHARS_MAX, truncated_text_schema};
use crate::prelude::*;
use ::affiliate::error::AffiliateError;

/// Fixed delay of the response. On a healthy disk the report is applied by then.
const RESPONSE_DELAY: Duration = Duration::from_millis(200);

/// A report about a referred visitor.
#[derive(Debug)]
pub struct ReportPerson {
    caller: BrowserClient,
    key: String,
    visit: Option<VisitId>,
    email: Option<Address>,
}

impl FromRequest for ReportPerson {
    const BODY_BYTES_MAX: Option<usize> = Some(REPORT_BYTES_MAX);
    const MEDIA: Media = Media::Any;
    const BODY: Option<BodySchema> = Some(|schemas| {
        schemas.component("TellAffiliatePerson", |_| {
            let fields = [
                ("key", schema::string("The program's publishable key (`pk_…`)")),
                ("referral", schema::string("The visit (`vis_…`)")),
                ("email", schema::string("The visitor's email address")),
                ("visitor", truncated_text_schema("The cookie `stx_vid`")),
            ];
            let mut person =
                schema::object_with("A referred visitor; missing or invalid fields are not reported", &[], fields);
            // Every body gets the same response, so the schema rejects nothing.
            loosen_schema(&mut person);
            person["examples"] = json!([{
                "key": "pk_5f1d2c3b4a5968778695a4b3c2d1e0f0", "referral": "vis_01K9ZQ4Y8M3T5V7W2X6B0C1D9E",
                "email": "grace@example.net", "visitor": "5f1d2c3b4a5968778695a4b3c2d1e0f0",
            }]);
            person
        })
    });

    fn read(call: &Request) -> Result<Self> {
        let names = names!("key", "referral", "email", "visitor");
        let empty = Self { caller: BrowserClient::from_request(call), key: String::new(), visit: None, email: None };
        // An unreadable body is answered like any other.
        let Ok(mut report) = ReportReader::from_request(call, &names) else { return Ok(empty) };
        let (visit, email) = (report.read_text("referral", TEXT_CHARS_MAX), report.read_text("email", TEXT_CHARS_MAX));
        let key = report.read_text("key", TEXT_CHARS_MAX);
        let person = Self { key, visit: visit.parse().ok(), email: email.trim().parse().ok(), ..empty };
        Ok(person)
    }
}

/// Removes all constraints from a schema and keeps its descriptions.
fn loosen_schema(schema: &mut Value) {
    let properties = schema["properties"].as_object_mut().map(std::mem::take);
    let named = properties.into_iter().flatten().map(|(name, field)| {
        let description = field["description"].clone();
        (name, json!({"description": description}))
    });
    let properties: Value = named.collect();
    *schema = json!({"description": schema["description"], "properties": properties});
}

/// The report was received.
#[derive(Debug)]
pub struct ReportAccepted(Vec<(HeaderName, HeaderValue)>);

impl IntoResponse for ReportAccepted {
    const STATUS: StatusCode = StatusCode::ACCEPTED;

    fn describe(_: &mut Schemas) -> Value {
        let ok = json!({"type": "boolean", "const": true});
        schema::object("The report was received; its result is not reported", [("ok", ok)])
    }

    fn into_response(self) -> Result<Response> {
        let (status, body) = (Self::STATUS, Bytes::from_static(b"{\"ok\":true}"));
        Ok(Response::new(status, Self::MEDIA_TYPE, self.0, body))
    }
}

#[derive(Debug, Clone, Copy)]
enum PersonReportKind {
    SignUp,
    Identify,
}

/// `POST /affiliate/signups`.
///
/// # Errors
/// Too many reports are in progress.
pub async fn report_sign_up(state: State, person: ReportPerson) -> Result<ReportAccepted> {
    accept_report(state, person, PersonReportKind::SignUp).await
}

/// `POST /affiliate/identify`.
pub async fn report_identity(state: State, person: ReportPerson) -> Result<ReportAccepted> {
    accept_report(state, person, PersonReportKind::Identify).await
}

async fn accept_report(state: State, person: ReportPerson, kind: PersonReportKind) -> Result<ReportAccepted> {
    let delay = tokio::time::sleep(RESPONSE_DELAY);
    let permit = Arc::clone(&state.visits.signup_reports).try_acquire_owned().map_err(|_| Problem::busy())?;
    let found = state.affiliate.context.find_program_by_key(&person.key).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot look up the program of a sign-up report");
        None
    });
    let found = found.filter(|program| person.caller.is_from_program_page(program));
    let headers = person.caller.cors_headers(found.is_some());
    if let Some(program) = found {
        let task_state = Arc::clone(&state);
        state.background.tasks.spawn(async move {
            if let Err(error) = apply_report(&task_state, &program, &person, kind).await {
                tracing::warn!(%error, ?kind, "cannot store a visitor report");
            }
            drop(permit);
        });
    }
    delay.await;
    Ok(ReportAccepted(headers))
}

async fn apply_report(
    state: &AppState,
    program: &AffiliateProgram,
    person: &ReportPerson,
    kind: PersonReportKind,
) -> Result<(), AffiliateError> {
    let now = state.services.clock.now();
    let (Some(visit), Some(email)) = (person.visit, &person.email) else { return Ok(()) };
    let is_often = state.visits.referrals.check_address(person.caller.client_ip, now).is_err()
        || state.visits.referrals.check_site(program.account, now).is_err();
    if is_often || person.caller.is_bot() {
        return Ok(());
    }
    let (ledger, account) = (&state.affiliate.ledger, program.account);
    let from: Option<IpAddr> = person.caller.client_ip;
    match kind {
        PersonReportKind::SignUp => ledger.sign_up_visitor(account, visit, email, from).await.map(drop),
        PersonReportKind::Identify => ledger.identify_visitor(account, visit, email).await,
    }
}
