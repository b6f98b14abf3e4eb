//! The admin requests as the console's pages call them.
//!
//! ```text
//! Call { operation: "queue_list", body } ─► {"ask": "queue_list", …body} ─► AdminRequest ─► admin::perform
//! ```
//!
//! Requests that take long run in the background ([`CommandRuns`](super::command_run::CommandRuns)). Those that read the whole queue or probe
//! the network are cached for some seconds, until a change.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use jiff::Timestamp;
use mail::address::{Address, DomainName};
use mail::slug::{PoolName, SmarthostName};
use pages::console::SignInFailure;
use pages::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::OperatorConsole;
use super::cookie::CookieWriter;
use crate::admin::console_access::LinkError;
use crate::admin::{AdminError, AdminRequest, perform};

/// Time for counting the recipients that a filter matches.
const COUNT_MAX: Duration = Duration::from_secs(10);

/// The requests of one client.
pub(super) struct AdminBackend<'a> {
    pub(super) console: &'a OperatorConsole,
    /// Token of the session, if the client has one.
    pub(super) session: Option<&'a str>,
    pub(super) cookies: CookieWriter,
    pub(super) client_ip: Option<IpAddr>,
}

impl AdminBackend<'_> {
    async fn run(&self, call: &Call) -> Result<Reply, Failure> {
        let body = match &call.body {
            CallBody::Json(Value::Object(body)) => body.clone(),
            _ => Map::new(),
        };
        match call.operation {
            "sign_in" => return self.sign_in(&body),
            "sign_out" => return Ok(self.sign_out()),
            _ => {}
        }
        let console = self.console;
        let answer = match call.operation {
            "doctor" => {
                console.doctor.start(console.config.clone());
                json!({})
            }
            "doctor_findings" => console.doctor.view(),
            "command_runs" => console.runs.list(),
            "command_run" => {
                let number = body.get("number").and_then(Value::as_u64).unwrap_or(0);
                console.runs.view(number).ok_or_else(Failure::not_found)?
            }
            "queue_many" | "store_check" => self.start(call.operation, body).await?,
            operation => self.ask(operation, body).await?,
        };
        Ok(Reply { status: 200, body: answer.to_string().into(), ..Reply::default() })
    }

    async fn ask(&self, operation: &str, body: Map<String, Value>) -> Result<Value, Failure> {
        let console = self.console;
        let request = read_request(operation, body)?;
        if let Some(cached) = console.cached(operation) {
            return cached.get(&request, || console.perform(request.clone())).await.map_err(failure);
        }
        let is_count = matches!(request, AdminRequest::QueueCount { .. });
        let is_reading = is_reading(&request);
        let performed = console.perform(request);
        let result = if is_count {
            // A count reads the whole queue.
            timeout(COUNT_MAX, performed).await.unwrap_or_else(|_| Ok(json!({"recipients": null})))
        } else {
            performed.await
        };
        if !is_reading {
            console.forget_cached();
        }
        result.map_err(failure)
    }

    /// Starts a long command.
    async fn start(&self, operation: &str, body: Map<String, Value>) -> Result<Value, Failure> {
        let console = self.console;
        let request = read_request(operation, body.clone())?;
        let (services, permissions) = (console.services.clone(), console.permissions.clone());
        let command = move |progress: mpsc::Sender<String>| async move {
            perform(&services, &permissions, request, progress).await
        };
        let mut shown = Value::Object(body);
        shown["ask"] = Value::from(operation);
        let number = console.runs.start(shown, command).await.map_err(failure)?;
        console.forget_cached();
        Ok(json!({"number": number}))
    }

    fn sign_in(&self, body: &Map<String, Value>) -> Result<Reply, Failure> {
        let link = body.get("token").and_then(Value::as_str).unwrap_or_default();
        let from = self.client_ip.map(tracing::field::display);
        match self.console.permissions.console.sign_in(link, self.client_ip) {
            Ok(token) => {
                tracing::info!(from, "operator: console sign-in");
                Ok(Reply { status: 200, cookies: vec![self.cookies.set(&token)], body: "{}".into(), ..Reply::default() })
            }
            Err(LinkError::Wrong) => {
                tracing::warn!(from, "console: a sign-in with a wrong or expired link was refused");
                Err(SignInFailure::Wrong.into())
            }
            Err(LinkError::TooMany) => Err(SignInFailure::TooMany.into()),
        }
    }

    fn sign_out(&self) -> Reply {
        if let Some(session) = self.session {
            self.console.permissions.console.sign_out(session);
            tracing::info!(from = self.client_ip.map(tracing::field::display), "operator: console sign-out");
        }
        Reply { status: 200, cookies: vec![self.cookies.clear()], body: "{}".into(), ..Reply::default() }
    }
}

/// Returns whether a request changes nothing.
fn is_reading(request: &AdminRequest) -> bool {
    matches!(
        request,
        AdminRequest::AccountList { .. }
            | AdminRequest::AccountShow { .. }
            | AdminRequest::QueueList { .. }
            | AdminRequest::EmailList { .. }
            | AdminRequest::QueueCount { .. }
            | AdminRequest::DestinationList
            | AdminRequest::PoolList
            | AdminRequest::Trace { .. }
            | AdminRequest::Reply { .. }
            | AdminRequest::CertificateShow
            | AdminRequest::SessionCreate { .. }
    )
}

/// Requests that pages may make: those that are shown and that change, but not those about files and secrets.
const ALLOWED: &[&str] = &[
    "account_create",
    "account_list",
    "account_show",
    "account_update",
    "certificate_show",
    "destination",
    "destination_list",
    "email_list",
    "pool_assign",
    "pool_list",
    "pool_warm_up",
    "queue",
    "queue_count",
    "queue_list",
    "queue_many",
    "queue_top",
    "reply",
    "session_create",
    "status",
    "store_check",
    "trace",
    "user_reset",
];

/// Reads a page's call as a request.
fn read_request(operation: &str, mut body: Map<String, Value>) -> Result<AdminRequest, Failure> {
    if !ALLOWED.contains(&operation) {
        return Err(Failure::internal(format!("pages make no request {operation}")));
    }
    check_fields(operation, &body)?;
    body.insert("ask".to_owned(), Value::from(operation));
    serde_json::from_value(Value::Object(body)).map_err(|error| Failure {
        status: 400,
        code: "bad_request".to_owned(),
        message: format!("This is not valid: {error}"),
        ..Failure::default()
    })
}

/// Checks the fields that people enter, so that an error names its field.
fn check_fields(operation: &str, fields: &Map<String, Value>) -> Result<(), Failure> {
    for (name, value) in fields {
        if let Value::Object(inner) = value {
            check_fields(operation, inner)?;
        }
        let Some(text) = value.as_str() else { continue };
        let is_valid = match name.as_str() {
            "to" | "mail_host" | "from" => text.parse::<DomainName>().is_ok(),
            "pool" => text.parse::<PoolName>().is_ok(),
            "smarthost" => text.parse::<SmarthostName>().is_ok(),
            "recipient" | "sender" => text.parse::<Address>().is_ok(),
            "email" if matches!(operation, "account_create" | "user_reset") => text.parse::<Address>().is_ok(),
            _ => true,
        };
        if !is_valid {
            let noun = match name.as_str() {
                "to" | "mail_host" | "from" => "a domain name (example: example.com)",
                "pool" | "smarthost" => "a name: lower-case letters, digits and hyphens",
                _ => "an email address",
            };
            return Err(Failure::field(name, format!("This is not {noun}")));
        }
    }
    Ok(())
}

/// An error of the admin handler as pages show it.
fn failure(error: AdminError) -> Failure {
    let AdminError { message, code } = error;
    let status = match &*code {
        "not_found" => StatusCode::NOT_FOUND,
        "busy" => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    };
    Failure { status: status.as_u16(), code: code.into_owned(), message, ..Failure::default() }
}

impl Backend for AdminBackend<'_> {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(self.run(call))
    }

    fn allows(&self, operation: &str) -> bool {
        matches!(operation, "sign_in") || self.session.is_some()
    }

    fn now(&self) -> Timestamp {
        self.console.services.clock.now()
    }

    fn base_url(&self) -> &str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(operation: &str, body: Value) -> Result<AdminRequest, Failure> {
        let Value::Object(body) = body else { panic!("no object: {body}") };
        read_request(operation, body)
    }

    #[test]
    fn errors_name_their_field() {
        let fields = |operation, body| read(operation, body).unwrap_err().fields.into_keys().collect::<Vec<_>>();
        assert_eq!(fields("destination", json!({"to": "a b", "order": "resume"})), ["to"]);
        assert_eq!(fields("queue_list", json!({"limit": 1, "search": {"recipient": "x"}})), ["recipient"]);
        assert_eq!(fields("user_reset", json!({"email": "x"})), ["email"]);
        assert!(read("queue", json!({"order": "hold", "email": "msg_1"})).is_ok(), "an id is no address");
        assert_eq!(read("queue_list", json!({})).unwrap_err().status, 400);
    }

    #[test]
    fn pages_cannot_write_files_or_move_the_clock() {
        for operation in ["backup", "clock_advance", "owner", "console", "no_such_request"] {
            assert_eq!(read(operation, json!({"seconds": 1, "file": "x"})).unwrap_err().code, "internal_error");
        }
    }
}
