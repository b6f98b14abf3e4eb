//! The audit log: `GET /audit-log`. It lists the requests that changed something, sent email or revealed a secret, with
//! the credential or user that made them; for 90 days.
//!
//! The entries are those of the request log ([`crate::request_log`]). Emails and events that an API key without a policy
//! sends are not in it: they name the key themselves.

use std::net::IpAddr;

use httpd::paging::{KIND_AUDIT, after_id};
use model::request_log::{LoggedRequest, RequestSurface};
use store::request_log::LogPart;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::request_log_page::RequestLogPage;

/// No filter is longer.
const FILTER_BYTES_MAX: usize = 200;

/// The operations, for the operation table.
pub(crate) fn operations() -> Vec<Operation> {
    vec![
        OperationTag::new("audit_log")
            .get("/audit-log", "List what credentials and users did in the last 90 days, newest first")
            .full_key_or_session(("list_audit_log", "auditLog.list"), list),
    ]
}

object_view! {
    /// An action of a credential or a user
    #[schema(name = "AuditEntry")]
    struct AuditEntryView, fn from_request(request: LoggedRequest; let audit = request.audit) {
        /// `req_…`, the response's `x-request-id`
        id: RequestId = request.id,
        /// The operation
        operation: String = request.operation,
        /// The id of the object, if the operation concerns one
        object_id: Option<String> = audit.as_ref().and_then(|audit| audit.object.clone()),
        /// The path; email addresses are redacted
        path: String = request.path,
        /// The response status
        status: u16 = request.status,
        /// The error's code
        error_code: Option<String> = request.error_code,
        /// How the request arrived; `approval` is a request that a person approved
        #[schema(enum = RequestSurface::WORDS)]
        surface: String = audit.as_ref().map_or(RequestSurface::Api, |audit| audit.surface).word().to_owned(),
        /// The API key of the request
        api_key_id: Option<ApiKeyId> = request.api_key,
        /// The grant of the app that made the request
        grant_id: Option<GrantId> = request.grant,
        /// The user whose session made the request
        user_id: Option<UserId> = request.user,
        /// The approval that the request waits for, or after which it was carried out
        approval_id: Option<ApprovalId> = audit.as_ref().and_then(|audit| audit.approval),
        /// The user who approved the request
        approved_by: Option<UserId> = audit.as_ref().and_then(|audit| audit.approved_by),
        /// The IP address of the request
        ip: Option<String> = audit.and_then(|audit| audit.address).as_ref().map(IpAddr::to_string),
        /// When it was received
        created_at: JsonTimestamp = JsonTimestamp(request.created_at),
    }
}

list_response! { AuditLog { entries: AuditEntryView } }

/// Query of `GET /audit-log`.
#[derive(Debug)]
struct ListAuditLog {
    page: PageParameters,
    api_key: Option<ApiKeyId>,
    grant: Option<GrantId>,
    user: Option<UserId>,
    operation: Option<String>,
    object: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl ListAuditLog {
    fn matches(&self, request: &LoggedRequest) -> bool {
        let has_object = |id: &String| {
            let audit = request.audit.as_ref();
            audit.is_some_and(|audit| {
                audit.object.as_ref() == Some(id) || audit.approval.is_some_and(|approval| approval.to_string() == *id)
            })
        };
        self.api_key.is_none_or(|id| request.api_key == Some(id))
            && self.grant.is_none_or(|id| request.grant == Some(id))
            && self.user.is_none_or(|id| request.user == Some(id))
            && self.operation.as_ref().is_none_or(|operation| request.operation == *operation)
            && self.object.as_ref().is_none_or(has_object)
            && self.after.is_none_or(|after| request.created_at > after)
            && self.before.is_none_or(|before| request.created_at < before)
    }
}

impl RequestQuery for ListAuditLog {
    fn read_query(query: &mut Query) -> Result<Self> {
        let text = || json!({"type": "string", "maxLength": FILTER_BYTES_MAX});
        Ok(Self {
            page: query.page()?,
            api_key: query.value_with("api_key_id", "Filter by API key", "the id of an API key (`key_…`)", text)?,
            grant: query.value_with(
                "grant_id",
                "Filter by the grant of an app",
                "the id of a grant (`grant_…`)",
                text,
            )?,
            user: query.value_with("user_id", "Filter by user", "the id of a user (`user_…`)", text)?,
            operation: query.bounded_text(
                "operation",
                "Filter by operation, like `delete_domain`",
                FILTER_BYTES_MAX,
            )?,
            object: query.bounded_text(
                "object_id",
                "Filter by the id of the object, or of the approval",
                FILTER_BYTES_MAX,
            )?,
            after: query.time("created_after", "Only entries after this time")?,
            before: query.time("created_before", "Only entries before this time")?,
        })
    }
}

/// `GET /audit-log`.
async fn list(state: State, tenant: Tenant, query: ListAuditLog) -> Result<AuditLog> {
    let (store, account) = (&state.services.store, tenant.account().id);
    state.request_log.flush(store).await;
    let since = query.after.map(|after| RequestId::new(after, 0));
    // A cursor is always before the requested end, because it was issued for the same filters.
    let cursor = query.page.before_id(KIND_AUDIT)?.map(RequestId::from_bytes);
    let before = cursor.or(query.before.map(|before| RequestId::new(before, u128::MAX)));
    let page = RequestLogPage::scan(
        query.page.limit,
        before,
        |before, rows_max| store::request_log::list_part(store, LogPart::Audit, account, since, before, rows_max),
        |request| query.matches(request),
    );
    let RequestLogPage { requests, next } = page.await?;
    let next_cursor = next.map(|id| after_id(KIND_AUDIT, id.to_bytes()));
    let entries = requests.into_iter().map(AuditEntryView::from_request).collect();
    Ok(AuditLog::new(entries, next_cursor))
}
