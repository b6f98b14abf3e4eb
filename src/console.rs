//! The operator's console on the `[ops]` listener: the pages of crate `pages` over the admin requests.
//!
//! ```text
//! /console/… ─► host ─► origin (POST) ─► session ─► pages::console::router ─► AdminBackend ─► admin::perform
//! ```
//!
//! The pages show and do what `postrider admin` shows and does, through the same handlers. A page of another site
//! cannot read or send anything: its name is no host of the console (DNS rebinding), the cookie is `SameSite=Strict`,
//! and every form has a CSRF token.

mod backend;
mod cached_answer;
pub mod command_run;
mod cookie;
pub mod doctor_run;
pub mod queue_depth;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use api::serve::ops::{OpsPageRequest, OpsPages};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Uri};
use httpd::header_limits;
use httpd::origin::check_same_site;
use httpd::response::Response;
use pages::console::router::{self, ConsoleAnswer};
use pages::dashboard::backend::Failure;
use pages::dashboard::request::{Fields, PageRequest};
use pages::dashboard::viewer::Viewer;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::backend::AdminBackend;
use self::cached_answer::CachedAnswer;
use self::command_run::CommandRuns;
use self::cookie::CookieWriter;
use self::doctor_run::DoctorRuns;
use self::queue_depth::QueueDepthHistory;
use crate::admin::{AdminError, AdminRequest, Permissions, perform};
use crate::config::Config;
use crate::dashboard::page_response;
use crate::services::Server;

/// Seconds after which a page with work in progress is loaded again.
const REFRESH_SECONDS: &str = "2";
const REFRESH: HeaderName = HeaderName::from_static("refresh");

pub struct OperatorConsole {
    server: Server,
    permissions: Permissions,
    config: Config,
    doctor: DoctorRuns,
    runs: CommandRuns,
    status: CachedAnswer,
    top: CachedAnswer,
    depth: QueueDepthHistory,
}

impl OperatorConsole {
    pub fn new(server: Server, permissions: Permissions, config: Config, stop: CancellationToken) -> Self {
        let clock = server.clock.clone();
        Self {
            doctor: DoctorRuns::new(clock.clone(), stop.clone()),
            runs: CommandRuns::new(clock, stop),
            server,
            permissions,
            config,
            status: CachedAnswer::default(),
            top: CachedAnswer::default(),
            depth: QueueDepthHistory::default(),
        }
    }

    /// Samples the depth of the queue until `stop`.
    pub async fn sample_queue(self: Arc<Self>, stop: CancellationToken) {
        self.depth.run(&self.server, &stop).await;
    }

    fn perform(&self, request: AdminRequest) -> impl Future<Output = Result<Value, AdminError>> + Send + '_ {
        // Nobody looks at the progress of a page.
        let (progress, _) = mpsc::channel(1);
        perform(&self.server, &self.permissions, request, progress)
    }

    fn cached(&self, operation: &str) -> Option<&CachedAnswer> {
        match operation {
            "status" => Some(&self.status),
            "queue_top" => Some(&self.top),
            _ => None,
        }
    }

    fn forget_cached(&self) {
        self.status.forget();
        self.top.forget();
    }

    fn url(&self) -> Option<Uri> {
        self.config.ops.console_url.as_deref()?.parse().ok()
    }

    async fn respond(&self, request: OpsPageRequest) -> Response {
        let url = self.url();
        let Some(host) = named_host(&request.headers).filter(|host| is_own_host(host, url.as_ref())) else {
            return text_response(
                StatusCode::MISDIRECTED_REQUEST,
                "The console is only served at loopback names and at the host of `console_url` in [ops]\n",
            );
        };
        if request.method == Method::POST
            && let Err(problem) =
                check_same_site(&request.headers, self.config.ops.console_url.as_deref().unwrap_or_default())
        {
            return text_response(problem.status(), &format!("{}\n", problem.message()));
        }
        let access = &self.permissions.console;
        let session = cookie::tokens(&request.headers).find_map(|token| Some((token, access.session(token)?)));
        let is_secure = url.is_some_and(|url| {
            url.scheme_str() == Some("https") && url.host().is_some_and(|name| name.eq_ignore_ascii_case(&host))
        });
        let viewer = session.as_ref().map(|(_, session)| Viewer {
            user_id: String::new(),
            email: String::new(),
            role: "operator".to_owned(),
            account_id: String::new(),
            csrf: session.csrf.clone(),
            session_id: String::new(),
            has_password: false,
            signed_in_at: session.started_at,
        });
        let backend = AdminBackend {
            console: self,
            session: session.as_ref().map(|(token, _)| *token),
            cookies: CookieWriter { is_secure },
            client_ip: request.client_ip,
        };
        let answer = match page_request(&request) {
            Ok(page_request) => router::answer(&backend, viewer.as_ref(), &page_request).await,
            Err(failure) => {
                let unread = PageRequest { path: request.uri.path().to_owned(), ..PageRequest::default() };
                router::failure_answer(&backend, viewer.as_ref(), &unread, &failure)
            }
        };
        http_response(answer)
    }
}

impl OpsPages for OperatorConsole {
    fn has(&self, uri: &Uri) -> bool {
        router::is_console(uri.path())
    }

    fn answer(self: Arc<Self>, request: OpsPageRequest) -> BoxFuture<'static, Response> {
        Box::pin(async move { self.respond(request).await })
    }
}

/// The host that a request names, without its port and brackets.
fn named_host(headers: &HeaderMap) -> Option<String> {
    let named = header_limits::named_host(headers)?;
    Some(named.host().trim_matches(['[', ']']).to_owned())
}

/// True for loopback names and addresses, and for the host of the configured URL. Another name would be one that
/// somebody pointed at this address, to let a browser read the console (DNS rebinding).
fn is_own_host(host: &str, url: Option<&Uri>) -> bool {
    let is_loopback =
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let configured = url.and_then(Uri::host).map(|name| name.trim_matches(['[', ']']));
    is_loopback || configured.is_some_and(|name| name.eq_ignore_ascii_case(host))
}

fn page_request(request: &OpsPageRequest) -> Result<PageRequest, Failure> {
    let form = Fields::parse_form(&request.body)
        .ok_or_else(|| Failure::field("form", "The form has too many fields: send fewer at once"))?;
    Ok(PageRequest {
        is_post: request.method == Method::POST,
        path: request.uri.path().to_owned(),
        query: Fields::parse(request.uri.query().unwrap_or_default().as_bytes()),
        form,
        files: Vec::new(),
        wanted: None,
    })
}

fn http_response(answer: ConsoleAnswer) -> Response {
    let ConsoleAnswer { answer, is_in_progress } = answer;
    let mut response = page_response(answer);
    if is_in_progress {
        response.headers.push((REFRESH, HeaderValue::from_static(REFRESH_SECONDS)));
    }
    response
}

fn text_response(status: StatusCode, text: &str) -> Response {
    Response {
        status,
        media_type: HeaderValue::from_static("text/plain; charset=utf-8"),
        headers: Vec::new(),
        body: Bytes::copy_from_slice(text.as_bytes()),
        stream: None,
    }
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    #[test]
    fn other_names_are_no_hosts_of_the_console() {
        let host = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, text.parse().unwrap());
            named_host(&headers)
        };
        let url: Uri = "https://ops.example.net".parse().unwrap();
        for name in ["localhost:9025", "127.0.0.1:9025", "127.8.8.8", "[::1]:9025", "LOCALHOST"] {
            assert!(host(name).is_some_and(|name| is_own_host(&name, None)), "{name}");
        }
        for name in ["ops.example.net:443", "OPS.example.net"] {
            let name = host(name).unwrap();
            assert!(is_own_host(&name, Some(&url)) && !is_own_host(&name, None), "{name}");
        }
        for name in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost:9025.evil.example",
            "ops.example.net.",
            "192.0.2.1",
            "0.0.0.0",
        ] {
            assert!(host(name).is_none_or(|name| !is_own_host(&name, Some(&url))), "{name}");
        }
    }
}
