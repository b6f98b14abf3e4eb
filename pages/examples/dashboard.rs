//! Serves the dashboard over a running server, for work on pages: this crate builds in seconds, the server in minutes.
//!
//! ```sh
//! postrider dev --json &     # prints the API key
//! cargo run -p pages --example dashboard -- --server 127.0.0.1:8025 --key rnl_… --cookie __Host-postrider_session=…
//! ```
//!
//! `--ahead SECONDS` is how far the server's clock was advanced. Operations that accept a key are called with it, others
//! with the session's cookie; without a key, all with the cookie. Everybody may do everything that the server allows. `postrider admin session create` prints a session.

#![allow(clippy::disallowed_methods, reason = "a program, at the clock of its machine")]

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use pages::dashboard::answer::PageContent;
use pages::dashboard::backend::{Backend, Call, CallBody, Failure, Reply};
use pages::dashboard::request::{Fields, PageRequest, UploadedFile};
use pages::dashboard::router;
use pages::dashboard::screens::encode;
use pages::dashboard::viewer::Viewer;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

type AnyError = Box<dyn Error + Send + Sync>;

/// The operations of a server, over HTTP.
struct HttpBackend {
    server: String,
    base_url: String,
    key: String,
    cookie: String,
    csrf: String,
    /// How far the server's clock is ahead.
    ahead: SignedDuration,
    /// Id, method and path of the operations.
    operations: Vec<(String, String, String)>,
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |name: &str, default: &str| {
        let found = arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
        found.map_or_else(|| default.to_owned(), Clone::clone)
    };
    let server = argument("--server", "127.0.0.1:8025");
    let mut backend = HttpBackend {
        base_url: format!("http://{server}"),
        server,
        key: argument("--key", ""),
        cookie: argument("--cookie", ""),
        csrf: String::new(),
        ahead: SignedDuration::from_secs(argument("--ahead", "0").parse()?),
        operations: Vec::new(),
    };
    let document: Value =
        serde_json::from_slice(&backend.send("GET", "/openapi.json", Bytes::new(), None, None).await?.1)?;
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            backend.operations.push((id.to_owned(), method.to_uppercase(), path.clone()));
        }
    }
    let session: Value =
        serde_json::from_slice(&backend.send("GET", "/auth/session", Bytes::new(), None, None).await?.1)?;
    let session = &session["session"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    backend.csrf = text(&session["csrf_token"]);
    let viewer = (!backend.csrf.is_empty()).then(|| Viewer {
        user_id: text(&session["user"]["id"]),
        email: text(&session["user"]["email"]),
        role: text(&session["user"]["role"]),
        account_id: text(&session["account_id"]),
        csrf: backend.csrf.clone(),
        session_id: text(&session["id"]),
        has_password: session["user"]["has_password"] == true,
        signed_in_at: Timestamp::now(),
    });
    let shared = Arc::new((backend, viewer));
    let listener = TcpListener::bind(argument("--listen", "127.0.0.1:8100")).await?;
    println!("http://{}/dashboard", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(&shared.0, shared.1.as_ref(), request).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn answer(backend: &HttpBackend, viewer: Option<&Viewer>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let media_type = head.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
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
    };
    let answer = router::answer(backend, viewer, &page_request).await;
    let response = Response::builder().status(answer.status);
    let (media_type, location, body): (&str, String, Bytes) = match answer.content {
        PageContent::Html(html) | PageContent::FormTarget { html, .. } | PageContent::Foreign { html, .. } => {
            ("text/html; charset=utf-8", String::new(), html.into())
        }
        PageContent::SeeOther(path) | PageContent::Leave(path) => ("text/plain", path, Bytes::new()),
        PageContent::File { media_type, content, .. } => (media_type, String::new(), content.into()),
        PageContent::Asset { media_type, content } => (media_type, String::new(), content),
        PageContent::Download { call, .. } => match backend.perform(&call).await {
            Ok(reply) => ("application/octet-stream", String::new(), reply.body),
            Err(failure) => ("text/plain", String::new(), failure.message.into()),
        },
    };
    let response = response.header("content-type", media_type);
    let response = if location.is_empty() { response } else { response.header("location", location) };
    response.body(Full::new(body)).unwrap_or_default()
}

/// True for operations that accept no key.
fn is_for_sessions(target: &str) -> bool {
    ["/auth", "/users", "/dashboard/api", "/openapi.json"].iter().any(|prefix| target.starts_with(prefix))
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

impl HttpBackend {
    async fn send(
        &self,
        method: &str,
        target: &str,
        body: Bytes,
        media_type: Option<&str>,
        idempotency_key: Option<&str>,
    ) -> Result<(u16, Bytes), AnyError> {
        let stream = TcpStream::connect(&self.server).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        // Browsers call the operations that accept keys as well below this path.
        let prefix = if self.key.is_empty() && !is_for_sessions(target) { "/api" } else { "" };
        let mut request =
            Request::builder().method(method).uri(format!("{prefix}{target}")).header("host", &self.server);
        if self.key.is_empty() || is_for_sessions(target) {
            request = request.header("cookie", &self.cookie).header("x-csrf-token", &self.csrf);
        } else {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in [("content-type", media_type), ("idempotency-key", idempotency_key)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let response = sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    async fn call(&self, call: &Call) -> Result<(u16, Bytes), AnyError> {
        let found = self.operations.iter().find(|(id, ..)| id == call.operation);
        let (_, method, path) = found.ok_or_else(|| format!("there is no operation {}", call.operation))?;
        let mut target = path.clone();
        for (name, value) in &call.path {
            target = target.replace(&format!("{{{name}}}"), &encode(value));
        }
        let query = Fields::from_pairs(call.query.clone()).to_query();
        let target = if query.is_empty() { target } else { format!("{target}?{query}") };
        let (media_type, body) = match &call.body {
            CallBody::None => (None, Bytes::new()),
            CallBody::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
            CallBody::File(media_type, content) => (Some(*media_type), content.clone()),
        };
        self.send(method, &target, body, media_type, call.idempotency_key.as_deref()).await
    }
}

impl Backend for HttpBackend {
    fn perform<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(async move {
            let (status, body) = self.call(call).await.map_err(|error| Failure::internal(error.to_string()))?;
            if status < 400 {
                return Ok(Reply { status, media_type: String::new(), body, cookies: Vec::new() });
            }
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
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

    fn allows(&self, _: &str) -> bool {
        true
    }

    fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }
}
