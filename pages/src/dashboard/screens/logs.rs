//! The request log: every request to the API, with filters.

use std::collections::BTreeMap;

use crate::dashboard::csv::{CsvColumn, export_list, text};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::day_start;
use crate::reference::operation::{ApiErrorCode, ApiTable, anchor};

pub const PAGES: &[PageRow] = page_rows! {
    "/logs" => list, reads ["list_logs"];
    "/logs/export.csv" => export, reads ["list_logs"];
    "/logs/{id}" => detail, reads ["get_log"];
};

const PATH: &str = "/dashboard/logs";
const EXPORT: &str = "/dashboard/logs/export.csv";

#[derive(Debug, Deserialize)]
struct LoggedRequest {
    id: String,
    method: String,
    path: String,
    operation: String,
    status: u16,
    error_code: Option<String>,
    duration_ms: u64,
    api_key_id: Option<String>,
    user_id: Option<String>,
    created_at: String,
}

impl LoggedRequest {
    fn status_badge(&self) -> Badge {
        let tone = match self.status {
            0..400 => Tone::Good,
            400..500 => Tone::Warning,
            _ => Tone::Bad,
        };
        Badge::new(self.status.to_string(), tone)
    }
}

/// The names of those who can make requests, by id; none if they cannot be read.
pub(super) struct ActorNames {
    keys: BTreeMap<String, String>,
    users: BTreeMap<String, String>,
}

impl ActorNames {
    pub(super) async fn load(context: &Context<'_>) -> Self {
        let keys = context.read_names("api_keys", &Call::new("list_api_keys").query("limit", "100")).await;
        let users = context.read_names("users", &Call::new("list_users")).await;
        let by_id = |names: Result<Vec<_>, _>| names.unwrap_or_default().into_iter().collect();
        Self { keys: by_id(keys), users: by_id(users) }
    }

    /// The name of a key or the address of a user; the id of one that is gone, and of an app.
    pub(super) fn label<'n>(&'n self, id: &'n str) -> &'n str {
        self.keys.get(id).or_else(|| self.users.get(id)).map_or(id, String::as_str)
    }

    /// The filter by key or user. A key that was deleted is a choice as long as it is chosen.
    fn filter(&self, chosen: &str) -> Filter {
        let mut choices = vec![(String::new(), "Everyone".to_owned())];
        choices.extend(self.keys.iter().map(|(id, name)| (id.clone(), format!("Key {name}"))));
        choices.extend(self.users.iter().map(|(id, email)| (id.clone(), email.clone())));
        if !choices.iter().any(|(id, _)| id == chosen) {
            choices.push((chosen.to_owned(), chosen.to_owned()));
        }
        Filter::select("by", "By", choices)
    }
}

/// The key or user of a request.
fn made_by<'a>(request: &'a LoggedRequest, names: &'a ActorNames) -> impl Renderable + 'a {
    maud! {
        @match (&request.api_key_id, &request.user_id) {
            (Some(key), _) => {
                a href={ "/dashboard/api-keys/" (encode(key)) } { (names.keys.get(key).unwrap_or(key)) }
            }
            (None, Some(user)) => { @match names.users.get(user) { Some(email) => (email), None => "A user's session" } }
            (None, None) => span.soft { "Nobody" },
        }
    }
}

fn filters(names: &ActorNames, by: &str) -> [Filter; 6] {
    let methods =
        [("", "All"), ("GET", "GET"), ("POST", "POST"), ("PATCH", "PATCH"), ("PUT", "PUT"), ("DELETE", "DELETE")];
    let statuses = [
        ("", "All"),
        ("2xx", "Succeeded (2xx)"),
        ("4xx", "Refused (4xx)"),
        ("5xx", "Failed (5xx)"),
        ("400", "400 invalid"),
        ("401", "401 not signed in"),
        ("403", "403 not allowed"),
        ("404", "404 not found"),
        ("409", "409 conflict"),
        ("429", "429 too many"),
    ];
    [
        Filter::select("status", "Status", choices(&statuses)),
        Filter::select("method", "Method", choices(&methods)),
        Filter::text("path", "Path starts with", "/emails"),
        names.filter(by),
        Filter::date("from", "From date"),
        Filter::date("to", "To date"),
    ]
}

fn list_call(context: &Context<'_>) -> Call {
    let query = context.query();
    Call::new("list_logs")
        .filters(query, &["status", "method", "path"])
        .query(if query.get("by").starts_with("user_") { "user_id" } else { "api_key_id" }, query.get("by"))
        .query("created_after", day_start(query.get("from"), 0))
        .query("created_before", day_start(query.get("to"), 1))
        .query("cursor", query.get("cursor"))
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let names = ActorNames::load(context).await;
    let (filters, call) = (filters(&names, context.query().get("by")), list_call(context));
    let bar = FilterBar { context, filters: &filters };
    let lead = "Requests to the API and changes made here, with their responses, newest first. Email addresses in paths are left out.";
    let found = &match context.read_list::<LoggedRequest>("logs", &call).await {
        Ok(found) => found,
        // A filter that the API refuses is shown with the reason, so that it can be corrected.
        Err(failure) if failure.status == 400 && bar.is_active() => {
            let body = maud_borrow! { (bar) div data-fragment="list" { div.notice.bad role="alert" { p { (failure.message) } } } };
            return Ok(Page::new("Request log", body).lead(lead).into());
        }
        Err(failure) => return Err(failure),
    };
    let table = Table::of("Requests", &found.entries)
        .column("Request", |one| {
            maud! {
                a.request href={ (PATH) "/" (encode(&one.id)) } { b { (one.method) } " " (one.path) }
            }
        })
        .column("Status", |one| one.status_badge())
        .column("Error", |one| or_dash(one.error_code.as_ref().map(|code| maud! { code { (code) } })))
        .column("By", |one| made_by(one, &names))
        .number("Duration", |one| maud! { (grouped(one.duration_ms)) " ms" })
        .column("Time", |one| time_or_dash(Some(&one.created_at)));
    let empty = match bar.is_active() {
        true => EmptyState {
            title: "No matching requests",
            text: "No stored requests match the filters.",
            action: Some((PATH, "Show all")),
        },
        false => EmptyState {
            title: "No requests yet",
            text: "Every request from your programs is listed here with its response, so that you can see what they \
                did and what was refused.",
            action: context.allows("create_api_key").then_some(("/dashboard/api-keys/new", "Create an API key")),
        },
    };
    let export = export_path(context);
    let body = bar.with_list(found, &table, empty);
    let actions = maud_borrow! { @if !table.is_empty() { a.button href=(export) { "Export as CSV" } } };
    Ok(Page::new("Request log", body).lead(lead).actions(actions).same_as(call).into())
}

/// The address of the export with the filters of the list.
fn export_path(context: &Context<'_>) -> String {
    let query = context.query().with("cursor", "").to_query();
    if query.is_empty() { EXPORT.to_owned() } else { format!("{EXPORT}?{query}") }
}

/// The filtered list as CSV.
async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let columns: &[CsvColumn<LoggedRequest>] = &[
        ("id", |one| one.id.clone()),
        ("created_at", |one| one.created_at.clone()),
        ("method", |one| one.method.clone()),
        ("path", |one| one.path.clone()),
        ("operation", |one| one.operation.clone()),
        ("status", |one| one.status.to_string()),
        ("error_code", |one| text(&one.error_code)),
        ("duration_ms", |one| one.duration_ms.to_string()),
        ("api_key_id", |one| text(&one.api_key_id)),
        ("user_id", |one| text(&one.user_id)),
    ];
    export_list(context, "requests", "logs", list_call(context), columns).await
}

/// The meaning of the error code of a request.
fn error_description(code: &str, status: u16) -> Option<String> {
    let errors = ApiTable::load().errors();
    let fits = |exact: bool| {
        errors
            .iter()
            .find(|(_, error): &&(&str, ApiErrorCode)| error.code == code && (!exact || error.status == status))
    };
    fits(true).or_else(|| fits(false)).map(|(_, error)| error.description.clone())
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_log").id(context.id());
    let log: LoggedRequest = context.read_field("log", &call).await?;
    let names = ActorNames::load(context).await;
    let operation = ApiTable::load().operation(&log.operation);
    let facts = Facts::new()
        .row("Status", log.status_badge())
        .row("Time", time_or_dash(Some(&log.created_at)))
        .row("Duration", maud_borrow! { (grouped(log.duration_ms)) " ms" })
        .row(
            "Operation",
            maud_borrow! {
                @match operation {
                    Some(operation) => {
                        a href={ "/docs/" (operation.top_resource()) "#" (anchor(operation)) } { (operation.summary) }
                    }
                    None => code { (log.operation) },
                }
            },
        )
        .row("Made by", made_by(&log, &names))
        .row("Request id", maud_borrow! { code { (log.id) } });
    let like_this = |name: &str, value: &str| format!("{PATH}?{name}={}", encode(value));
    let body = maud_borrow! {
        div.card { (facts) }
        @if let Some(code) = &log.error_code {
            section {
                h2 { "Why it was refused" }
                div.card {
                    p { code { (code) } }
                    @if let Some(text) = error_description(code, log.status) { p { (text) } }
                    p { a href={ "/docs/errors#" (encode(code)) } { "What to do" } }
                }
            }
        }
        section {
            h2 { "Others like this" }
            ul.links {
                li { a href=(like_this("path", &log.path)) { "Requests to the same path" } }
                li { a href=(like_this("status", &log.status.to_string())) { "Requests with status " (log.status) } }
            }
        }
    };
    let page = Page::new(format!("{} {}", log.method, log.path), body).below(PATH, "Request log");
    Ok(page.same_as(call).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dashboard::answer::PageContent;
    use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html};

    fn request(path: &str) -> serde_json::Value {
        json!({
            "id": "req_1", "method": "POST", "path": path, "operation": "send_email", "status": 400,
            "error_code": "validation_error", "duration_ms": 12, "api_key_id": "key_1", "user_id": null,
            "created_at": "2026-11-20T10:00:00Z",
        })
    }

    #[test]
    fn requests_are_filtered_and_shown() {
        let keys = json!({"api_keys": [{"id": "key_1", "name": "shop"}]});
        let backend = FakeBackend::new()
            .answer("list_logs", json!({"logs": [request(HOSTILE)], "next_cursor": null}))
            .answer("get_log", json!({"log": request(HOSTILE)}))
            .answer("list_api_keys", keys)
            .answer("list_users", json!({"users": [{"id": "user_1", "email": "ada@example.com"}]}));
        let page = html(backend.get("/logs?status=4xx&from=2026-11-01&path=%2Femails&by=user_1"));
        assert!(page.contains("value=\"key_1\"") && page.contains("ada@example.com"), "{page}");
        assert_harmless(&page);
        assert!(page.contains(">shop</a>"), "{page}");
        let expected =
            [("status", "4xx"), ("path", "/emails"), ("user_id", "user_1"), ("created_after", "2026-11-01T00:00:00Z")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(backend.calls("list_logs")[0].query, expected);
        match backend.get("/logs/export.csv?status=4xx").content {
            PageContent::File { content, .. } => {
                assert!(content.contains("req_1,2026-11-20T10:00:00Z,POST,"), "{content}")
            }
            other => panic!("no file: {other:?}"),
        }
        let page = html(backend.get("/logs/req_1"));
        assert_harmless(&page);
        assert!(page.contains("Why it was refused"), "{page}");
    }

    #[test]
    fn a_refused_filter_is_shown_with_the_reason() {
        let refused = Failure { status: 400, message: "`status`: is wrong".into(), ..Failure::default() };
        let answer = FakeBackend::new().refuse("list_logs", refused).get("/logs?status=x");
        assert_eq!(answer.status, 200);
        assert!(html(answer).contains("is wrong"));
    }

    #[test]
    fn dates_become_times() {
        assert_eq!(day_start("2026-11-30", 0), "2026-11-30T00:00:00Z");
        assert_eq!(day_start("2026-11-30", 1), "2026-12-01T00:00:00Z");
        assert_eq!((day_start("", 1), day_start("x", 0)), (String::new(), "x".into()));
    }

    #[test]
    fn errors_are_described() {
        assert!(error_description("validation_error", 400).is_some());
        assert!(error_description("never_heard_of", 400).is_none());
    }
}
