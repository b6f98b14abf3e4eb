//! Serves the dashboard over a running server, for work on pages: this crate builds in seconds, the server in minutes.
//! Everything else is passed on to the server, so people sign in as they do there.
//!
//! ```sh
//! postrider dev --json &
//! cargo run -p pages --example dashboard -- --server 127.0.0.1:8025 --listen 127.0.0.1:8100
//! ```
//!
//! `--cookie` is the session of requests without one; `postrider admin session create` prints it. `--ahead SECONDS` is
//! how far the server's clock was advanced.

#![allow(clippy::disallowed_methods, reason = "a program, at the clock of its machine")]

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, COOKIE, ETAG, HOST, HeaderMap, LOCATION, ORIGIN, REFERER, SET_COOKIE};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use pages::dashboard::answer::PageContent;
use pages::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use pages::dashboard::request::{Fields, PageRequest, UploadedFile};
use pages::dashboard::router;
use pages::dashboard::screens::{encode, sign_in};
use pages::dashboard::viewer::Viewer;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

type AnyError = Box<dyn Error + Send + Sync>;
type Body = BoxBody<Bytes, hyper::Error>;

/// The policy of pages, as the server sends it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";
const ROLES: [&str; 4] = ["viewer", "developer", "admin", "owner"];

/// The server behind the pages.
struct Server {
    address: String,
    base_url: String,
    /// The session of requests without one.
    cookie: String,
    /// How far the server's clock is ahead.
    ahead: SignedDuration,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    /// The least role; `None` for everybody.
    role: Option<String>,
}

/// The operations of a server as the user of a session.
struct HttpBackend<'s> {
    server: &'s Server,
    cookie: String,
    viewer: Option<Viewer>,
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |name: &str, default: &str| {
        let found = arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
        found.map_or_else(|| default.to_owned(), Clone::clone)
    };
    let address = argument("--server", "127.0.0.1:8025");
    let listener = TcpListener::bind(argument("--listen", "127.0.0.1:8100")).await?;
    let mut server = Server {
        base_url: format!("http://{}", listener.local_addr()?),
        address,
        cookie: argument("--cookie", ""),
        ahead: SignedDuration::from_secs(argument("--ahead", "0").parse()?),
        operations: Vec::new(),
    };
    let document = server.send(Request::get("/openapi.json").body(Full::default())?).await?;
    let document: Value = serde_json::from_slice(&document.into_body().collect().await?.to_bytes())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            server.operations.push(Operation {
                id: text(&operation["operationId"]),
                method: method.to_uppercase(),
                path: path.clone(),
                role: operation["x-role"].as_str().map(str::to_owned),
            });
        }
    }
    let server = Arc::new(server);
    println!("{}/dashboard", server.base_url);
    loop {
        let (socket, _) = listener.accept().await?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(answer(&server, request).await.unwrap_or_else(|error| broken(&*error))) }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

fn broken(error: &dyn Error) -> Response<Body> {
    let mut response = Response::new(whole(error.to_string()));
    *response.status_mut() = hyper::StatusCode::BAD_GATEWAY;
    response
}

fn whole(content: impl Into<Bytes>) -> Body {
    Full::new(content.into()).map_err(|never| match never {}).boxed()
}

async fn answer(server: &Server, request: Request<Incoming>) -> Result<Response<Body>, AnyError> {
    if !router::is_dashboard(request.uri().path()) {
        return Ok(server.pass_on(request).await?.map(|body| body.boxed()));
    }
    let backend = HttpBackend::of(server, request.headers()).await?;
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (form, files) = match media_type.split_once("boundary=") {
        Some((_, boundary)) => read_parts(&body, boundary),
        None => (Fields::parse(&body), Vec::new()),
    };
    let page_request = PageRequest {
        is_post: head.method == "POST",
        path: head.uri.path().to_owned(),
        query: Fields::parse(head.uri.query().unwrap_or_default().as_bytes()),
        form,
        files,
        wanted: sign_in::wanted_path(&backend.cookie),
    };
    let answer = router::answer(&backend, backend.viewer.as_ref(), &page_request).await;
    if let Some(fault) = &answer.fault {
        eprintln!("{}: {fault}", page_request.path);
    }
    let mut response = Response::builder().status(answer.status).header("referrer-policy", "same-origin");
    for cookie in &answer.cookies {
        response = response.header(SET_COOKIE, cookie);
    }
    let (media_type, body): (&str, Bytes) = match answer.content {
        PageContent::Html(html) => {
            response = response.header("content-security-policy", POLICY).header("cache-control", "no-store");
            ("text/html; charset=utf-8", html.into())
        }
        PageContent::FormTarget { html, .. } | PageContent::Foreign { html, .. } => {
            ("text/html; charset=utf-8", html.into())
        }
        PageContent::SeeOther(path) | PageContent::Leave(path) => {
            response = response.header(LOCATION, path);
            ("text/plain", Bytes::new())
        }
        PageContent::File { media_type, content, .. } => (media_type, content.into()),
        PageContent::Asset { media_type, content } => (media_type, content),
        PageContent::Download { call, .. } => match backend.perform(&call).await {
            Ok(reply) => ("application/octet-stream", reply.body),
            Err(failure) => ("text/plain", failure.message.into()),
        },
    };
    Ok(response.header(CONTENT_TYPE, media_type).body(whole(body))?)
}

/// Reads `multipart/form-data` of a browser. Only texts: files of this example have to be UTF-8.
fn read_parts(body: &[u8], boundary: &str) -> (Fields, Vec<UploadedFile>) {
    let text = String::from_utf8_lossy(body);
    let (mut fields, mut files) = (Vec::new(), Vec::new());
    for part in text.split(&format!("--{boundary}")) {
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let content = content.strip_suffix("\r\n").unwrap_or(content);
        let parameter = |name: &str| {
            let (_, rest) = head.split_once(&format!("; {name}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let name = parameter("name").unwrap_or_default();
        match parameter("filename") {
            Some(file_name) => {
                files.push(UploadedFile { field: name, file_name, content: Bytes::from(content.to_owned()) });
            }
            None => fields.push((name, content.to_owned())),
        }
    }
    (Fields::from_pairs(fields), files)
}

impl Server {
    /// Sends a request as a client of the server.
    async fn send<B>(&self, mut request: Request<B>) -> Result<Response<Incoming>, AnyError>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Error + Send + Sync,
    {
        let stream = TcpStream::connect(&self.address).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        request.headers_mut().insert(HOST, self.address.parse()?);
        Ok(sender.send_request(request).await?)
    }

    /// Passes a browser's request on, as if the browser had asked the server.
    async fn pass_on(&self, mut request: Request<Incoming>) -> Result<Response<Incoming>, AnyError> {
        let headers = request.headers_mut();
        if headers.contains_key(ORIGIN) {
            headers.insert(ORIGIN, format!("http://{}", self.address).parse()?);
        }
        headers.remove(REFERER);
        self.send(request).await
    }
}

impl<'s> HttpBackend<'s> {
    async fn of(server: &'s Server, headers: &HeaderMap) -> Result<Self, AnyError> {
        let cookie = headers.get(COOKIE).and_then(|value| value.to_str().ok()).unwrap_or(&server.cookie).to_owned();
        let request = Request::get("/auth/session").header(COOKIE, &cookie).body(Full::default())?;
        let session = server.send(request).await?.into_body().collect().await?.to_bytes();
        let session: Value = serde_json::from_slice(&session)?;
        let session = &session["session"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let viewer = session["csrf_token"].is_string().then(|| Viewer {
            user_id: text(&session["user"]["id"]),
            email: text(&session["user"]["email"]),
            role: text(&session["user"]["role"]),
            account_id: text(&session["account_id"]),
            csrf: text(&session["csrf_token"]),
            session_id: text(&session["id"]),
            has_password: session["user"]["has_password"] == true,
            signed_in_at: Timestamp::now(),
        });
        Ok(Self { server, cookie, viewer })
    }

    async fn call(&self, call: &Call) -> Result<Reply, AnyError> {
        let found = self.server.operations.iter().find(|operation| operation.id == call.operation);
        let operation = found.ok_or_else(|| format!("there is no operation {}", call.operation))?;
        let mut target = operation.path.clone();
        for (name, value) in &call.path {
            target = target.replace(&format!("{{{name}}}"), &encode(value));
        }
        let query = Fields::from_pairs(call.query.clone()).to_query();
        // Browsers call the operations that accept keys as well below this path.
        let is_for_sessions = ["/auth", "/users", "/dashboard/api"].iter().any(|prefix| target.starts_with(prefix));
        let prefix = if is_for_sessions { "" } else { "/api" };
        let mark = if query.is_empty() { "" } else { "?" };
        let (media_type, body) = match &call.body {
            CallBody::None => (None, Bytes::new()),
            CallBody::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
            CallBody::File(media_type, content) => (Some(*media_type), content.clone()),
        };
        let csrf = self.viewer.as_ref().map_or("", |viewer| &viewer.csrf);
        let mut request = Request::builder()
            .method(operation.method.as_str())
            .uri(format!("{prefix}{target}{mark}{query}"))
            .header(COOKIE, &self.cookie)
            .header("x-csrf-token", csrf);
        let if_match = call.if_match.as_deref();
        for (name, value) in
            [("content-type", media_type), ("idempotency-key", call.idempotency_key.as_deref()), ("if-match", if_match)]
        {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let (head, body) = self.server.send(request.body(Full::new(body))?).await?.into_parts();
        let cookies = head.headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        Ok(Reply {
            status: head.status.as_u16(),
            media_type: String::new(),
            cookies: cookies.map(str::to_owned).collect(),
            etag: head.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned),
            body: body.collect().await?.to_bytes(),
        })
    }
}

impl Backend for HttpBackend<'_> {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(async move {
            let reply = self.call(call).await.map_err(|error| Failure::internal(error.to_string()))?;
            if reply.status < 400 {
                return Ok(reply);
            }
            let status = reply.status;
            let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let error = &answer["error"];
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            let fields = error["details"]["fields"].as_object().into_iter().flatten();
            Err(Failure {
                status,
                code: text("code"),
                message: text("message"),
                fields: fields
                    .map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()))
                    .collect(),
                details: Box::new(error["details"].clone()),
                ..Failure::default()
            })
        })
    }

    fn allows(&self, operation: &str) -> bool {
        let found = self.server.operations.iter().find(|other| other.id == operation);
        let Some(least) = found.and_then(|operation| operation.role.as_deref()) else { return true };
        let rank = |role: &str| ROLES.iter().position(|other| *other == role);
        self.viewer.as_ref().is_some_and(|viewer| rank(&viewer.role) >= rank(least))
    }

    fn now(&self) -> Timestamp {
        Timestamp::now() + self.server.ahead
    }

    fn base_url(&self) -> &str {
        &self.server.base_url
    }
}
