//! The request log: `GET /logs` and `GET /logs/{id}`.
//!
//! Requests are ordered by id and thus by time, so filters by time are key ranges. Other filters are applied to each
//! request; a bounded number of requests is scanned per page. Therefore a page can be shorter than requested and still
//! have a next page.

use httpd::paging::{KIND_REQUEST, after_id};
use model::request_log::LoggedRequest;

use crate::prelude::*;
use crate::request_log_page::RequestLogPage;

/// No logged path is longer.
const PATH_BYTES_MAX: usize = 2 << 10;

object_view! {
    /// A logged request; its query and body are not stored
    #[schema(name = "LoggedRequest")]
    pub struct LoggedRequestView, fn from_request(request: LoggedRequest) {
        /// `req_…`, the response's `x-request-id`
        id: RequestId = request.id,
        /// The method
        method: String = request.method,
        /// The path; email addresses are redacted
        path: String = request.path,
        /// The operation
        operation: String = request.operation,
        /// The response status
        status: u16 = request.status,
        /// The error's code
        error_code: Option<String> = request.error_code,
        /// Duration in milliseconds
        duration_ms: u32 = request.duration_ms,
        /// The API key of the request
        api_key_id: Option<ApiKeyId> = request.api_key,
        /// The user whose session made the request
        user_id: Option<UserId> = request.user,
        /// The grant whose access token made the request
        grant_id: Option<model::id::GrantId> = request.grant,
        /// When it was received
        created_at: JsonTimestamp = JsonTimestamp(request.created_at),
    }
}

list_response! { pub LogList { logs: LoggedRequestView } }

object_response! { "A request", pub LoggedRequestResponse { log: LoggedRequestView } }

/// Filter by status: an exact one (`404`) or a class (`4xx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusFilter {
    Exact(u16),
    Class(u16),
}

impl std::str::FromStr for StatusFilter {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parsed = match text.strip_suffix("xx") {
            Some(digit) => digit.parse().ok().filter(|n| (1..=5).contains(n)).map(Self::Class),
            None => text.parse().ok().filter(|n| (100..=599).contains(n)).map(Self::Exact),
        };
        parsed.ok_or(())
    }
}

impl StatusFilter {
    fn matches(self, status: u16) -> bool {
        match self {
            Self::Exact(expected) => status == expected,
            Self::Class(class) => status / 100 == class,
        }
    }
}

/// Query of `GET /logs`.
#[derive(Debug)]
pub struct ListLogs {
    page: PageParameters,
    method: Option<String>,
    statuses: Option<StatusFilter>,
    path: Option<String>,
    api_key: Option<ApiKeyId>,
    user: Option<UserId>,
    operation: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl ListLogs {
    fn matches(&self, request: &LoggedRequest) -> bool {
        self.method.as_ref().is_none_or(|method| request.method.eq_ignore_ascii_case(method))
            && self.statuses.is_none_or(|statuses| statuses.matches(request.status))
            && self.path.as_ref().is_none_or(|path| request.path.starts_with(path.as_str()))
            && self.api_key.is_none_or(|api_key| request.api_key == Some(api_key))
            && self.user.is_none_or(|user| request.user == Some(user))
            && self.operation.as_ref().is_none_or(|operation| request.operation == *operation)
            && self.after.is_none_or(|after| request.created_at > after)
            && self.before.is_none_or(|before| request.created_at < before)
    }
}

impl RequestQuery for ListLogs {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let method = query.text("method", "Filter by method, like `POST`")?;
        let statuses = query.value(
            "status",
            "Filter by status or status class, like `404` or `4xx`",
            "a status or a status class, like `404` or `4xx`",
        )?;
        let path = query.text("path", "Filter by path prefix, like `/emails`")?;
        if path.as_ref().is_some_and(|path| path.len() > PATH_BYTES_MAX) {
            return Err(Problem::field("path", format!("is longer than {PATH_BYTES_MAX} bytes")));
        }
        Ok(Self {
            page,
            method,
            statuses,
            path,
            operation: query.text("operation", "Filter by operation, like `send_email`")?,
            api_key: query.value("api_key_id", "Filter by API key (`key_…`)", "an API key's id (`key_…`)")?,
            user: query.value(
                "user_id",
                "Filter by the user (`user_…`) whose session made the request",
                "a user's id (`user_…`)",
            )?,
            after: query.time("created_after", "Only requests received after this time")?,
            before: query.time("created_before", "Only requests received before this time")?,
        })
    }
}

/// `GET /logs`.
pub async fn list(state: State, tenant: Tenant, query: ListLogs) -> Result<LogList> {
    let store = &state.services.store;
    state.request_log.flush(store).await;
    // The audit log keeps its entries longer than the request log lists them.
    let kept_since = state.services.clock.now().checked_sub(model::request_log::RETENTION).unwrap_or(Timestamp::MIN);
    let since = query.after.map_or(kept_since, |after| after.max(kept_since));
    let since = Some(RequestId::new(since, 0));
    // A cursor is always before the requested end, because it was issued for the same filters.
    let cursor = query.page.before_id(KIND_REQUEST)?.map(RequestId::from_bytes);
    let end = query.before.map(|before| RequestId::new(before, u128::MAX));
    let account = tenant.account().id;
    let page = RequestLogPage::scan(
        query.page.limit,
        cursor.or(end),
        |before, rows_max| store::request_log::list(store, account, since, before, rows_max),
        |request| query.matches(request),
    );
    let RequestLogPage { requests, next } = page.await?;
    let next_cursor = next.map(|id| after_id(KIND_REQUEST, id.to_bytes()));
    let logs = requests.into_iter().map(LoggedRequestView::from_request).collect();
    Ok(LogList::new(logs, next_cursor))
}

id_path! { pub LoggedRequestPath(RequestId), "The request's id (`req_…`)", "request" }

/// `GET /logs/{id}`.
pub async fn get(
    state: State,
    tenant: Tenant,
    LoggedRequestPath(id): LoggedRequestPath,
) -> Result<LoggedRequestResponse> {
    let store = &state.services.store;
    state.request_log.flush(store).await;
    let found = store::request_log::get(store, tenant.account().id, id).await?;
    found
        .map(|found| LoggedRequestResponse { log: LoggedRequestView::from_request(found) })
        .ok_or_else(|| Problem::not_found("request"))
}
