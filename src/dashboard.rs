//! The dashboard on the API's port: the pages of crate `pages` over the operations of crate `api`.
//!
//! ```text
//! /dashboard/… ─► [`DashboardPages`] ─► pages::dashboard::router ─► [`SessionBackend`] ─► OperationCaller::perform
//! ```

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use api::serve::static_pages::Policy;
use api::session_pages::{OperationCall, OperationCaller, PageRequest as ApiPageRequest, SessionPages};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ETAG, HeaderName,
    HeaderValue, IF_MATCH, LOCATION, REFERRER_POLICY, SET_COOKIE, USER_AGENT,
};
use http::{HeaderMap, Method, StatusCode, Uri};
use httpd::problem::Problem;
use httpd::response::{Response, attachment_disposition};
use jiff::Timestamp;
use pages::dashboard::answer::{PageAnswer, PageContent};
use pages::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use pages::dashboard::identity_proof::REAUTHENTICATE;
use pages::dashboard::request::{Fields, PageRequest, UploadedFile};
use pages::dashboard::router;
use pages::dashboard::screens::{encode, sign_in};
use pages::dashboard::viewer::Viewer;
use serde_json::Value;
use store::access::SignedInUser;

use crate::form_data;

#[derive(Debug)]
pub struct DashboardPages {
    /// `/` leads browsers to the dashboard. `postrider dev` has its inbox there.
    pub has_root: bool,
}

impl SessionPages for DashboardPages {
    fn has(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        router::is_dashboard(uri.path()) || (self.has_root && uri.path() == "/" && wants_page(headers))
    }

    fn answer(self: Arc<Self>, request: ApiPageRequest) -> BoxFuture<'static, Response> {
        Box::pin(answer(request))
    }
}

/// True for a browser.
fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

async fn answer(request: ApiPageRequest) -> Response {
    if request.uri.path() == "/" {
        return page_response(PageAnswer::see_other(pages::dashboard::PATH));
    }
    let backend = SessionBackend {
        operations: &*request.operations,
        user: RwLock::new(request.user.clone()),
        client_ip: request.client_ip,
        headers: &request.headers,
    };
    let viewer = request.user.as_ref().map(viewer);
    let page_request = match page_request(&request) {
        Ok(parsed) => parsed,
        Err(failure) => {
            let unread = PageRequest { path: request.uri.path().to_owned(), ..PageRequest::default() };
            return page_response(router::failure_answer(&backend, viewer.as_ref(), &unread, &failure));
        }
    };
    let answer = router::answer(&backend, viewer.as_ref(), &page_request).await;
    let PageContent::Download { call, file_name } = &answer.content else { return page_response(answer) };
    match backend.call(call).await {
        Ok(response) => download(response, file_name),
        Err(problem) => {
            let failure = failure(&problem, &backend);
            page_response(router::failure_answer(&backend, viewer.as_ref(), &page_request, &failure))
        }
    }
}

fn viewer(user: &SignedInUser) -> Viewer {
    Viewer {
        user_id: user.user().id.to_string(),
        email: user.user().email.to_string(),
        role: user.user().role.word().to_owned(),
        account_id: user.user().account.to_string(),
        csrf: user.token().csrf(),
        session_id: user.session().id.to_string(),
        has_password: user.user().password.is_some(),
        signed_in_at: user.session().created_at,
    }
}

fn page_request(request: &ApiPageRequest) -> Result<PageRequest, Failure> {
    let is_post = request.method == Method::POST;
    let media_type = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (form, files) = match form_data::boundary(media_type) {
        Some(boundary) if is_post => {
            let parts = form_data::parse(&request.body, boundary)
                .ok_or_else(|| Failure::field("form", "The form was not received completely; try again"))?;
            let (files, fields): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.file_name.is_some());
            let fields =
                fields.into_iter().map(|part| (part.name, String::from_utf8_lossy(&part.content).into_owned()));
            let files = files.into_iter().map(|part| UploadedFile {
                field: part.name,
                file_name: part.file_name.unwrap_or_default(),
                content: part.content,
            });
            (Fields::from_pairs(fields.collect()), files.collect())
        }
        _ => {
            let too_many = || Failure::field("form", "The form has too many fields: send fewer at once");
            (Fields::parse_form(&request.body).ok_or_else(too_many)?, Vec::new())
        }
    };
    let mut cookies = request.headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    Ok(PageRequest {
        is_post,
        path: request.uri.path().to_owned(),
        query: Fields::parse(request.uri.query().unwrap_or_default().as_bytes()),
        form,
        files,
        wanted: cookies.find_map(sign_in::wanted_path),
    })
}

/// The operations as the user of a session.
struct SessionBackend<'a> {
    operations: &'a dyn OperationCaller,
    /// Read again after the user confirmed a password.
    user: RwLock<Option<SignedInUser>>,
    client_ip: Option<IpAddr>,
    headers: &'a HeaderMap,
}

impl SessionBackend<'_> {
    async fn call(&self, call: &Call) -> Result<Response, Problem> {
        let mut headers = HeaderMap::new();
        if let Some(agent) = self.headers.get(USER_AGENT) {
            headers.insert(USER_AGENT, agent.clone());
        }
        if let Some(Ok(key)) = call.idempotency_key.as_deref().map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        if let Some(Ok(etag)) = call.if_match.as_deref().map(HeaderValue::from_str) {
            headers.insert(IF_MATCH, etag);
        }
        let (media_type, body) = match &call.body {
            CallBody::None => (None, Bytes::new()),
            CallBody::Json(value) => (Some("application/json"), value.to_string().into()),
            CallBody::File(media_type, content) => (Some(*media_type), content.clone()),
        };
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        let call = OperationCall {
            operation: call.operation.to_owned(),
            path: call.path.iter().map(|(name, value)| ((*name).to_owned(), encode(value))).collect(),
            query: Fields::from_pairs(call.query.clone()).to_query(),
            headers,
            body,
            client_ip: self.client_ip,
        };
        let is_confirmation = call.operation == REAUTHENTICATE;
        let response = self.operations.perform(self.user().as_ref(), call).await?;
        if is_confirmation {
            let user = self.operations.session_user(self.headers, self.client_ip).await?;
            *self.user.write() = user;
        }
        Ok(response)
    }

    fn user(&self) -> Option<SignedInUser> {
        self.user.read().clone()
    }
}

impl Backend for SessionBackend<'_> {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(async move {
            let response = self.call(call).await.map_err(|problem| failure(&problem, self))?;
            let cookies = response.headers.iter().filter(|(name, _)| *name == SET_COOKIE);
            let cookies = cookies.filter_map(|(_, value)| value.to_str().ok().map(str::to_owned)).collect();
            let mut body = response.body;
            if let Some(mut chunks) = response.stream {
                let mut whole = body.to_vec();
                while let Some(chunk) = chunks.recv().await {
                    let broken = |_| Failure::internal("the answer of an operation ended early".into());
                    whole.extend_from_slice(&chunk.map_err(broken)?);
                }
                body = whole.into();
            }
            let etag = response.headers.iter().find(|(name, _)| *name == ETAG);
            let etag = etag.and_then(|(_, value)| value.to_str().ok().map(str::to_owned));
            let media_type = response.media_type.to_str().unwrap_or_default().to_owned();
            Ok(Reply { status: response.status.as_u16(), media_type, body, cookies, etag })
        })
    }

    fn allows(&self, operation: &str) -> bool {
        self.operations.allows(self.user().as_ref(), operation)
    }

    fn may_decide(&self, operation: &str) -> bool {
        self.operations.may_decide(self.user().as_ref(), operation)
    }

    fn now(&self) -> Timestamp {
        self.operations.now()
    }

    fn base_url(&self) -> &str {
        self.operations.base_url()
    }
}

/// The problem as pages show it.
fn failure(problem: &Problem, backend: &SessionBackend<'_>) -> Failure {
    let id = backend.operations.next_request_id();
    let body: Value = serde_json::from_slice(&problem.body(id, backend.base_url())).unwrap_or_default();
    let error = body.get("error").cloned().unwrap_or_default();
    let details = error.get("details").cloned().unwrap_or_default();
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let fields = details.get("fields").and_then(Value::as_object).into_iter().flatten();
    let fields: BTreeMap<_, _> = fields
        .map(|(name, message)| (name.clone(), message.as_str().map_or_else(|| message.to_string(), str::to_owned)))
        .collect();
    Failure {
        status: problem.status().as_u16(),
        code: problem.code().word.to_owned(),
        message: problem.message().to_owned(),
        fields,
        upgrade_url: text("upgrade_url").map(String::into_boxed_str),
        request_id: problem.headers().iter().find(|(name, _)| name == "x-request-id").map(|(_, id)| id.clone().into()),
        details: Box::new(details),
    }
}

pub(crate) fn page_response(answer: PageAnswer) -> Response {
    let PageAnswer { status, content, cookies, fault } = answer;
    if let Some(cause) = fault {
        tracing::error!(cause, "a page could not be rendered");
    }
    let mut headers = vec![(REFERRER_POLICY, HeaderValue::from_static("same-origin"))];
    let mut policy = HeaderValue::from_static(Policy::Strict.header());
    let mut cache = "no-store";
    let html = "text/html; charset=utf-8";
    let (media_type, body) = match content {
        PageContent::Html(text) => (html, text.into()),
        PageContent::FormTarget { html: text, origin } => {
            policy = policy_with_form_target(&origin);
            (html, text.into())
        }
        PageContent::Leave(url) | PageContent::SeeOther(url) => {
            // The operation or the page checked it; a URL that is no header value leads to the start page.
            let location = HeaderValue::try_from(url).unwrap_or(HeaderValue::from_static(pages::dashboard::PATH));
            headers.push((LOCATION, location));
            ("text/plain; charset=utf-8", Bytes::new())
        }
        PageContent::Foreign { html: text, remote } => {
            let foreign = if remote { Policy::ForeignRemote } else { Policy::Foreign };
            policy = HeaderValue::from_static(foreign.header());
            (html, text.into())
        }
        PageContent::File { media_type, file_name, content } => {
            headers.push((CONTENT_DISPOSITION, attachment_disposition(&file_name)));
            (media_type, content.into())
        }
        PageContent::Asset { media_type, content } => {
            cache = "public, max-age=31536000, immutable";
            (media_type, content)
        }
        // Downloads are answered before.
        PageContent::Download { .. } => (html, Bytes::new()),
    };
    headers.push((CONTENT_SECURITY_POLICY, policy));
    headers.push((CACHE_CONTROL, HeaderValue::from_static(cache)));
    for cookie in cookies {
        headers.extend(HeaderValue::try_from(cookie).ok().map(|value| (SET_COOKIE, value)));
    }
    Response {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        media_type: HeaderValue::from_static(media_type),
        headers,
        body,
        stream: None,
    }
}

/// The strict policy, with an origin to which the answer of a form may lead. Browsers apply `form-action` to redirects,
/// too (CSP 3, 6.4.2). An origin with other characters is left out: it could end the directive.
fn policy_with_form_target(origin: &str) -> HeaderValue {
    let strict = Policy::Strict.header();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-+".contains(&byte);
    if origin.is_empty() || !origin.bytes().all(is_plain) {
        return HeaderValue::from_static(strict);
    }
    let policy = strict.replace("form-action 'self'", &format!("form-action 'self' {origin}"));
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(strict))
}

/// The answer of an operation as a file.
fn download(response: Response, file_name: &str) -> Response {
    let headers = vec![
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(Policy::Foreign.header())),
        (CONTENT_DISPOSITION, attachment_disposition(file_name)),
    ];
    Response { headers, ..response }
}
