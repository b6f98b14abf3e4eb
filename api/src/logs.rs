//! The request log: `GET /logs` and `GET /logs/{id}` (completions-email.md 2.7).
//!
//! Requests are in the order of their ids, which is that of time: filters by time are places in it. The
//! other filters are tried on each request, and of these a bounded number is looked through for a page;
//! so a page may be shorter than asked, and still have a next one.

use std::sync::Arc;

use jiff::Timestamp;
use mail::id::RequestId;
use mail::request_log::LoggedRequest;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use crate::call::{Call, Input, Takes};
use crate::emails::view::Moment;
use crate::page::{self, KIND_REQUEST, Page, after_id};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// Requests that are looked through for a page.
const LOOKED_THROUGH_MAX: usize = 2_000;
/// A path that is longer is that of no request.
const PATH_BYTES_MAX: usize = 2 << 10;

/// A request as it is shown.
#[derive(Debug, Serialize)]
pub struct RequestView {
    id: RequestId,
    method: String,
    path: String,
    operation: String,
    status: u16,
    error_code: Option<String>,
    duration_ms: u32,
    api_key_id: Option<mail::id::ApiKeyId>,
    user_id: Option<mail::id::UserId>,
    created_at: Moment,
}

impl RequestView {
    fn of(request: LoggedRequest) -> Self {
        Self {
            id: request.id,
            method: request.method,
            path: request.path,
            operation: request.operation,
            status: request.status,
            error_code: request.error_code,
            duration_ms: request.duration_ms,
            api_key_id: request.api_key,
            user_id: request.user,
            created_at: Moment(request.created_at),
        }
    }
}

impl Describe for RequestView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("LoggedRequest", |_| {
            schema::object(
                "A request: neither its query nor its body is kept",
                [
                    ("id", schema::string("`req_…`: the answer's `x-request-id`")),
                    ("method", schema::string("The method")),
                    ("path", schema::string("The path; addresses in it are left out")),
                    ("operation", schema::string("What was asked for")),
                    ("status", schema::count("The answer's status")),
                    ("error_code", schema::nullable_string("The error's code")),
                    ("duration_ms", schema::count("How long it took, in milliseconds")),
                    ("api_key_id", schema::nullable_string("The key that it came with")),
                    ("user_id", schema::nullable_string("The user whose session it came with")),
                    ("created_at", schema::time("When it came")),
                ],
            )
        })
    }
}

/// A page of the log.
#[derive(Debug, Serialize)]
pub struct LogList {
    logs: Vec<RequestView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for LogList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = RequestView::schema(schemas);
        schema::page("logs", entry)
    }
}

/// One request.
#[derive(Debug, Serialize)]
pub struct OneRequest {
    log: RequestView,
}

impl Describe for OneRequest {
    fn schema(schemas: &mut Schemas) -> Value {
        schema::object("A request", [("log", RequestView::schema(schemas))])
    }
}

/// Which statuses are asked for: `404`, or `4xx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statuses {
    One(u16),
    Class(u16),
}

impl Statuses {
    fn read(text: &str) -> Option<Self> {
        if let Some(digit) = text.strip_suffix("xx") {
            return digit.parse().ok().filter(|n| (1..=5).contains(n)).map(Self::Class);
        }
        text.parse().ok().filter(|n| (100..=599).contains(n)).map(Self::One)
    }

    fn holds(self, status: u16) -> bool {
        match self {
            Self::One(one) => status == one,
            Self::Class(class) => status / 100 == class,
        }
    }
}

/// What `GET /logs` takes.
#[derive(Debug)]
pub struct ListLogs {
    page: Page,
    method: Option<String>,
    statuses: Option<Statuses>,
    path: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl ListLogs {
    fn holds(&self, request: &LoggedRequest) -> bool {
        self.method.as_ref().is_none_or(|method| request.method.eq_ignore_ascii_case(method))
            && self.statuses.is_none_or(|statuses| statuses.holds(request.status))
            && self.path.as_ref().is_none_or(|path| request.path.starts_with(path.as_str()))
            && self.after.is_none_or(|after| request.created_at > after)
            && self.before.is_none_or(|before| request.created_at < before)
    }
}

impl Input for ListLogs {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let mut parameters = Page::parameters();
        parameters.extend([
            schema::query_parameter("method", "The method: `POST`", text()),
            schema::query_parameter("status", "The status, or a class of them: `404`, `4xx`", text()),
            schema::query_parameter("path", "What the path begins with: `/emails`", text()),
            schema::time_parameter("created_after", "Only requests that came after this time"),
            schema::time_parameter("created_before", "Only requests that came before this time"),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let text = |name: &str| page::one(&given, name);
        let time = |name: &str| match text(name)? {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| Problem::field(name, "must be a time like `2026-01-01T10:00:00Z`")),
        };
        let statuses = match text("status")? {
            None => None,
            Some(text) => Some(
                Statuses::read(text)
                    .ok_or_else(|| Problem::field("status", "must be a status or a class: `404`, `4xx`"))?,
            ),
        };
        let path = text("path")?.map(str::to_owned);
        if path.as_ref().is_some_and(|path| path.len() > PATH_BYTES_MAX) {
            return Err(Problem::field("path", format!("is longer than {PATH_BYTES_MAX} bytes")));
        }
        Ok(Self {
            page: Page::read(&call.query)?,
            method: text("method")?.map(str::to_owned),
            statuses,
            path,
            after: time("created_after")?,
            before: time("created_before")?,
        })
    }
}

/// `GET /logs`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, asked: ListLogs) -> Result<LogList, Problem> {
    let store = room.hall.store();
    room.journal.write(store).await;
    let since = asked.after.map(|after| RequestId::new(after, 0));
    // The cursor lies before the end of time that was asked for: it was given for it.
    let cursor = asked.page.before_id(KIND_REQUEST)?.map(RequestId::from_bytes);
    let end = asked.before.map(|before| RequestId::new(before, u128::MAX));
    let before = cursor.or(end);
    let account = tenant.account().id;
    let looked = store::request_log::list(store, account, (since, before), LOOKED_THROUGH_MAX).await?;
    let all_looked_at = looked.len() < LOOKED_THROUGH_MAX;
    let mut last = None;
    let mut logs = Vec::with_capacity(asked.page.limit);
    let mut rest = looked.into_iter().peekable();
    while logs.len() < asked.page.limit
        && let Some(request) = rest.next()
    {
        last = Some(request.id);
        if asked.holds(&request) {
            logs.push(RequestView::of(request));
        }
    }
    let has_more = !all_looked_at || rest.any(|request| asked.holds(&request));
    let next_cursor = last.filter(|_| has_more).map(|id| after_id(KIND_REQUEST, id.to_bytes()));
    Ok(LogList { logs, has_more, next_cursor })
}

/// A request's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfRequest(RequestId);

impl Input for OfRequest {
    fn describe(_: &mut Schemas) -> Takes {
        let id = schema::path_parameter("id", "The request's id (`req_…`)");
        Takes { parameters: vec![id], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter("id").parse().map(Self).map_err(|_| Problem::not_found("request"))
    }
}

/// `GET /logs/{id}`.
///
/// # Errors
/// No such request; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, OfRequest(id): OfRequest) -> Result<OneRequest, Problem> {
    let store = room.hall.store();
    room.journal.write(store).await;
    let found = store::request_log::get(store, tenant.account().id, id).await?;
    found.map(|found| OneRequest { log: RequestView::of(found) }).ok_or_else(|| Problem::not_found("request"))
}
