//! The admin requests as the console's pages call them.
//!
//! ```text
//! Call { operation: "queue_list", body } ─► {"ask": "queue_list", …body} ─► AdminRequest ─► admin::perform
//! ```
//!
//! Requests that take long run in the background ([`CommandRuns`](super::command_run::CommandRuns)). Those that read
//! much of the queue or probe the network are cached for some seconds, until a change.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::slug::{PoolName, SmarthostName};
use model::task::TaskClass;
use pages::console::SignInFailure;
use pages::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::OperatorConsole;
use super::cookie::CookieWriter;
use super::queue_depth::DepthRange;
use crate::admin::console_access::LinkError;
use crate::admin::email_state::EmailState;
use crate::admin::{AdminError, AdminRequest, perform};

/// Time for counting the recipients that a filter matches.
const COUNT_MAX: Duration = Duration::from_secs(10);
/// Destinations that are read for all pages, so that they share one cached answer.
const TOP_READ: usize = 100;

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
            "queue_depth" => self.queue_depth(&body).await?,
            operation if LONG_REQUESTS.contains(&operation) => self.start(operation, body).await?,
            operation => self.ask(operation, body).await?,
        };
        Ok(Reply { status: 200, body: answer.to_string().into(), ..Reply::default() })
    }

    async fn ask(&self, operation: &str, body: Map<String, Value>) -> Result<Value, Failure> {
        let console = self.console;
        let request = read_request(operation, body)?;
        if let Some(cached) = console.cached(operation) {
            let (request, shown) = shared_request(request);
            let answer =
                cached.get(&request, self.now(), || console.perform(request.clone())).await.map_err(failure)?;
            return Ok(cut(answer, shown));
        }
        let is_count = matches!(request, AdminRequest::QueueCount { .. });
        let performed = console.perform(request);
        let result = if is_count {
            // A count reads much of the queue.
            timeout(COUNT_MAX, performed).await.unwrap_or_else(|_| Ok(json!({"recipients": null})))
        } else {
            performed.await
        };
        if CHANGE_REQUESTS.contains(&operation) {
            console.forget_cached();
        }
        result.map_err(failure)
    }

    /// Starts a long command.
    async fn start(&self, operation: &str, body: Map<String, Value>) -> Result<Value, Failure> {
        let console = self.console;
        let request = read_request(operation, body.clone())?;
        let (server, permissions) = (console.server.clone(), console.permissions.clone());
        let command = move |progress: mpsc::Sender<String>| async move {
            perform(&server, &permissions, request, progress).await
        };
        let mut shown = Value::Object(body);
        shown["ask"] = Value::from(operation);
        let number = console.runs.start(shown, command).await.map_err(failure)?;
        console.forget_cached();
        Ok(json!({"number": number}))
    }

    /// The depth of the queue over time, and for a domain also its counts now.
    async fn queue_depth(&self, body: &Map<String, Value>) -> Result<Value, Failure> {
        let range = body.get("range").and_then(Value::as_str).unwrap_or_default();
        let range = DepthRange::from_word(range).unwrap_or_default();
        let domain = body.get("domain").and_then(Value::as_str).map(str::parse::<DomainName>).transpose();
        let domain = domain.map_err(|_| Failure::not_found())?;
        let server = &self.console.server;
        self.console.depth.refresh(server).await;
        let mut view = self.console.depth.view(self.now(), range, domain.as_ref().map(DomainName::as_str));
        view["nodes"] = server.queue.services.leases.nodes().into();
        if let Some(domain) = domain {
            let counts = server.store.queue_counts().domain(domain.as_str());
            view["domain"] = domain.as_str().into();
            view["now"] = json!({"queued": counts.queued, "deferred": counts.deferred, "held": counts.held});
        }
        Ok(view)
    }

    fn sign_in(&self, body: &Map<String, Value>) -> Result<Reply, Failure> {
        let link = body.get("token").and_then(Value::as_str).unwrap_or_default();
        let from = self.client_ip.map(tracing::field::display);
        match self.console.permissions.console.sign_in(link, self.client_ip) {
            Ok(token) => {
                tracing::info!(from, "operator: console sign-in");
                Ok(Reply {
                    status: 200,
                    cookies: vec![self.cookies.set(&token)],
                    body: "{}".into(),
                    ..Reply::default()
                })
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

/// The request whose answer several pages share, and how many destinations of it are shown.
fn shared_request(request: AdminRequest) -> (AdminRequest, Option<usize>) {
    match request {
        AdminRequest::QueueTop { limit } if limit <= TOP_READ => {
            (AdminRequest::QueueTop { limit: TOP_READ }, Some(limit))
        }
        other => (other, None),
    }
}

fn cut(mut answer: Value, shown: Option<usize>) -> Value {
    if let Some(shown) = shown
        && let Some(destinations) = answer["destinations"].as_array_mut()
    {
        destinations.truncate(shown);
    }
    answer
}

/// Requests that pages may make and that leave the cached answers valid. No list has requests about files and secrets.
const READ_REQUESTS: &[&str] = &[
    "account_list",
    "account_show",
    "certificate_show",
    "destination_list",
    "email_list",
    "pool_list",
    "queue_count",
    "queue_list",
    "queue_top",
    "reply",
    "session_create",
    "status",
    "trace",
];
/// Requests that pages may make and after which the cached answers are outdated.
const CHANGE_REQUESTS: &[&str] =
    &["account_create", "account_update", "destination", "pool_assign", "pool_warm_up", "queue", "user_reset"];
/// Requests that pages may make and that run in the background.
const LONG_REQUESTS: &[&str] = &["queue_many", "store_check"];

/// Reads a page's call as a request.
fn read_request(operation: &str, mut body: Map<String, Value>) -> Result<AdminRequest, Failure> {
    if ![READ_REQUESTS, CHANGE_REQUESTS, LONG_REQUESTS].iter().any(|names| names.contains(&operation)) {
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
            "status" => serde_json::from_value::<EmailState>(value.clone()).is_ok(),
            "class" => serde_json::from_value::<TaskClass>(value.clone()).is_ok(),
            "since" if operation == "email_list" => text.parse::<Timestamp>().is_ok(),
            _ => true,
        };
        if !is_valid {
            let noun = match name.as_str() {
                "to" | "mail_host" | "from" => "a domain name (example: example.com)",
                "pool" | "smarthost" => "a name: lower-case letters, digits and hyphens",
                "status" => "a state of emails (example: bounced)",
                "class" => "a class of mail (example: newsletter)",
                "since" => "a date (example: 2026-01-31)",
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
        self.console.server.clock.now()
    }

    fn base_url(&self) -> &str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pages::console::command::command_line;

    use super::*;
    use crate::cli::admin::build_request;
    use crate::cli::{CliArguments, CliCommand};

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
        for (name, value) in [("status", "x"), ("since", "abcT00:00:00Z")] {
            let refused = read("email_list", json!({"filter": {name: value}, "page": {"limit": 1}})).unwrap_err();
            assert!(refused.message.starts_with("This is not a ") && refused.fields.contains_key(name), "{refused:?}");
        }
        assert!(read("queue", json!({"order": "hold", "email": "msg_1"})).is_ok(), "an id is no address");
        assert_eq!(read("queue_list", json!({})).unwrap_err().status, 400);
    }

    /// The words of a command line, as a shell reads them.
    fn shell_words(line: &str) -> Vec<String> {
        let output = std::process::Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {line}")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn the_commands_of_same_as_are_the_same_requests() {
        let (host, order) = ("mx.b.example", json!({"suspend": {"seconds": 5400, "because": "it's `$(true)`\u{e4}"}}));
        let all = json!({"to": "a.example", "account": "acct_1", "from": "b.example", "class": "product", "held": true,
                         "attempts_min": 2, "older_seconds": 7200});
        let search = json!({"recipient": "a@b.example", "sender": "c@d.example", "message_id": "<x y@z>"});
        let emails = json!({"account": "a@b.example", "status": "bounced", "recipient": "a@b.example", "sender": "c@d.example",
                            "message_id": "<x@y>", "since": "2026-01-31T00:00:00Z"});
        for (operation, body) in [
            ("status", json!({})),
            ("certificate_show", json!({})),
            ("queue_top", json!({"limit": 7})),
            ("queue_list", json!({"limit": 50, "filter": all, "search": {}, "cursor": "00ff"})),
            ("queue_list", json!({"limit": 50, "filter": {}, "search": search})),
            ("queue_list", json!({"limit": 50, "filter": {}, "search": {}})),
            ("queue_many", json!({"order": "hold", "filter": all})),
            ("queue_many", json!({"order": "hold", "filter": {"accepted_before": "2026-11-26T12:00:00.5Z"}})),
            ("queue_many", json!({"order": "release", "filter": {}})),
            ("queue_many", json!({"order": "reroute by partner", "filter": {"to": "a.example"}})),
            ("queue_many", json!({"order": "reroute mx", "filter": {"to": "a.example"}})),
            ("queue", json!({"order": "reroute usual", "email": "msg_1"})),
            ("queue", json!({"order": "drop", "email": "msg_1"})),
            ("queue_many", json!({"order": "fail", "filter": {"to": "a.example", "older_seconds": 86400}})),
            ("email_list", json!({"filter": emails, "page": {"limit": 50, "cursor": "acct_1/msg_1"}})),
            ("destination_list", json!({})),
            ("destination", json!({"to": "a.example", "order": order})),
            ("destination", json!({"mail_host": host, "order": {"suspend": {"seconds": null, "because": null}}})),
            ("destination", json!({"mail_host": host, "order": "resume"})),
            (
                "destination",
                json!({"mail_host": host, "order": {"pace": {"connections_max": 2, "messages_per_second": 0.5}}}),
            ),
            ("destination", json!({"to": "a.example", "order": {"route": null}})),
            ("destination", json!({"to": "a.example", "order": {"route": "mail_hosts"}})),
            ("destination", json!({"to": "a.example", "order": {"route": {"smarthost": "partner"}}})),
            ("pool_list", json!({})),
            ("pool_assign", json!({"account": "acct_1", "pool": "warm"})),
            ("pool_assign", json!({"account": "acct_1", "pool": null})),
            ("pool_warm_up", json!({"pool": "warm", "warm_up": {"since": "2026-01-31"}})),
            ("pool_warm_up", json!({"pool": "warm", "warm_up": "over"})),
            ("pool_warm_up", json!({"pool": "warm", "warm_up": null})),
            ("account_list", json!({"page": {"limit": 50, "cursor": "acct_1"}})),
            ("account_show", json!({"account": "a@b.example"})),
            ("account_create", json!({"email": "a@b.example", "plan": "pro", "production": true})),
            ("account_update", json!({"account": "acct_1", "plan": "free"})),
            ("account_update", json!({"account": "acct_1", "production": false})),
            ("account_update", json!({"account": "acct_1", "suspended": true})),
            ("session_create", json!({"account": "acct_1"})),
            ("user_reset", json!({"email": "a@b.example"})),
            ("reply", json!({"reply": "421 4.7.28 it's busy", "host": "mx.a.example"})),
        ] {
            let line = command_line(&Call::new(operation).json(body.clone())).unwrap();
            let parsed =
                CliArguments::try_parse_from(shell_words(&line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            let CliCommand::Admin(arguments) = parsed.command else { panic!("{line}") };
            let request = build_request(&arguments.command).unwrap();
            assert_eq!(read(operation, body).unwrap(), request, "{line}");
        }
    }

    #[test]
    fn pages_share_the_longest_queues() {
        let shared = shared_request(AdminRequest::QueueTop { limit: 1 });
        assert_eq!(shared, (AdminRequest::QueueTop { limit: TOP_READ }, Some(1)));
        assert_eq!(shared_request(AdminRequest::Status), (AdminRequest::Status, None));
        let answer = json!({"tasks": 2, "destinations": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(cut(answer.clone(), Some(1)), json!({"tasks": 2, "destinations": [{"name": "a"}]}));
        assert_eq!(cut(answer.clone(), None), answer);
    }

    #[test]
    fn pages_cannot_write_files_or_move_the_clock() {
        for operation in ["backup", "clock_advance", "owner", "console", "no_such_request"] {
            assert_eq!(read(operation, json!({"seconds": 1, "file": "x"})).unwrap_err().code, "internal_error");
        }
    }
}
