//! HTTP client: a POST to a URL that a customer configured, or a GET of one.
//!
//! ```text
//! HttpPost, HttpGet ─► UrlTarget (URL parsed and checked) ─► idle connection, or connect (resolve, check,
//! TCP to the checked address, TLS) ─► exchange (request, response head, start of the body) ─► HttpResponse
//! ```
//!
//! The client is an SSRF guard (server-side request forgery). A customer chooses the host, and the host's owner chooses
//! its address. So the address is checked after it was resolved, and exactly that address is connected to
//! (`model/src/public_ip.rs`). Redirects are not followed, and time, header and body of a response are bounded.

mod connect;
mod connection_pool;
mod exchange;
mod response_budget;
mod url_target;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dns::resolver::Resolver;
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use rustls::RootCertStore;
use thiserror::Error;
use tokio::time::Instant;

use connect::HttpConnector;
use connection_pool::HttpConnectionPool;
use exchange::{HttpExchange, ResponseHead};
pub use response_budget::{ResponseBudget, ResponseBudgetError, ResponsePermit};
pub use url_target::{URL_BYTES_MAX, UrlRules, UrlTarget};

#[derive(Debug, Clone)]
pub struct HttpPost {
    /// `https://…`
    pub url: String,
    /// Header fields besides `content-length`, `host` and `user-agent`; a name may occur several times. Set
    /// `content-type` if the body is not JSON.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, unless `content-type` differs.
    pub body: Bytes,
    /// Limit from resolving the name to the last byte of the response that is read.
    pub timeout: Duration,
    /// Permission to repeat the request at once after a lost connection.
    pub idempotency: RequestIdempotency,
}

#[derive(Debug, Clone)]
pub struct HttpGet {
    /// `https://…`
    pub url: String,
    /// Header fields besides `host` and `user-agent`.
    pub headers: Vec<(&'static str, String)>,
    /// Limit from resolving the name to the last byte of the response that is read.
    pub timeout: Duration,
    /// Limit on the bytes of the response's body that are read.
    pub response_bytes_max: usize,
}

/// Permission to send a request twice. An idle connection may close before a response arrives. Then it is unknown
/// whether the server processed the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIdempotency {
    /// The request is repeated on a fresh connection. The receiver detects duplicates by a key in the headers, or the
    /// request changes nothing.
    Idempotent,
    /// Never repeated; always sent on a fresh connection.
    NonIdempotent,
}

/// A response with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// `Retry-After` in seconds, if present.
    pub retry_after_s: Option<u64>,
    /// `Date` by the server's clock (RFC 9110 6.6.1), if present.
    pub date: Option<Timestamp>,
    /// `Content-Type`, if present.
    pub content_type: Option<String>,
    /// Start of the body: at most [`RESPONSE_BYTES_MAX`], or the requested limit.
    pub body: Bytes,
    /// True if `body` is the whole body.
    pub is_complete: bool,
}

/// Limit on the bytes of a POST response's body that are read.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024;

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpClientError {
    /// The URL is invalid or not allowed.
    #[error("{0}")]
    Url(String),
    /// The host resolves to an address that is not public.
    #[error("{0} is not a public address")]
    NotPublic(std::net::IpAddr),
    /// The connection failed or was lost, or the response is not HTTP.
    #[error("{0}")]
    ConnectionFailed(String),
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// The response exceeds the memory budget of responses.
    #[error("{0}")]
    Budget(#[from] ResponseBudgetError),
}

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct HttpClientSettings {
    /// URLs that may be requested.
    pub rules: UrlRules,
    /// Value of `User-Agent`.
    pub user_agent: String,
    /// Trusted root certificates; the public roots if `None`.
    pub roots: Option<RootCertStore>,
}

impl Default for HttpClientSettings {
    /// Public addresses, HTTPS only, public roots.
    fn default() -> Self {
        Self {
            rules: UrlRules::default(),
            user_agent: concat!("postrider/", env!("CARGO_PKG_VERSION"), " (+webhooks)").to_owned(),
            roots: None,
        }
    }
}

/// The client cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the HTTP client cannot be set up: {0}")]
pub struct HttpClientSetupError(String);

/// The client. Clones share connections.
#[derive(Clone)]
pub struct HttpClient(Arc<HttpClientState>);

struct HttpClientState {
    rules: UrlRules,
    user_agent: HeaderValue,
    connector: HttpConnector,
    pool: Arc<HttpConnectionPool>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Creates a client that resolves names with `resolver`.
    ///
    /// # Errors
    /// The TLS configuration fails, or the user agent is not a valid header value.
    pub fn new(resolver: Resolver, settings: HttpClientSettings) -> Result<Self, HttpClientSetupError> {
        let HttpClientSettings { rules, user_agent, roots } = settings;
        let user_agent = HeaderValue::try_from(user_agent).map_err(|error| HttpClientSetupError(error.to_string()))?;
        let dialer = HttpConnector::new(resolver, rules.allow_private, roots)
            .map_err(|error| HttpClientSetupError(error.to_string()))?;
        Ok(Self(Arc::new(HttpClientState {
            rules,
            user_agent,
            connector: dialer,
            pool: Arc::new(HttpConnectionPool::default()),
        })))
    }

    /// URLs that may be requested.
    pub fn rules(&self) -> UrlRules {
        self.0.rules
    }

    /// Sends a POST; follows no redirect. If an idle connection closes before any response, the request is repeated on
    /// a fresh connection, as far as [`RequestIdempotency`] allows. A response whose body does not end in time is
    /// returned with the part that arrived.
    pub async fn post(&self, post: HttpPost) -> Result<HttpResponse, HttpClientError> {
        self.post_with_limit(post, RESPONSE_BYTES_MAX).await
    }

    /// Like [`post`](Self::post), reading up to `answer_bytes_max` bytes of the body.
    pub async fn post_with_limit(
        &self,
        post: HttpPost,
        answer_bytes_max: usize,
    ) -> Result<HttpResponse, HttpClientError> {
        let target = UrlTarget::parse(&post.url, self.0.rules).map_err(HttpClientError::Url)?;
        let request = exchange::post_request(&target, &post, &self.0.user_agent)?;
        self.send(&target, request, post.idempotency, post.timeout, answer_bytes_max, None).await
    }

    /// Sends a GET; follows no redirect.
    pub async fn get(&self, get: HttpGet) -> Result<HttpResponse, HttpClientError> {
        self.get_with_permit(get, None).await
    }

    /// Like [`get`](Self::get); the permit grows by the bytes of the body as they arrive.
    ///
    /// # Errors
    /// See [`get`](Self::get); [`HttpClientError::Budget`] if the permit cannot grow.
    pub async fn get_with_permit(
        &self,
        get: HttpGet,
        permit: Option<&mut ResponsePermit>,
    ) -> Result<HttpResponse, HttpClientError> {
        let target = UrlTarget::parse(&get.url, self.0.rules).map_err(HttpClientError::Url)?;
        let request = exchange::get_request(&target, &get, &self.0.user_agent)?;
        self.send(&target, request, RequestIdempotency::Idempotent, get.timeout, get.response_bytes_max, permit).await
    }

    fn send<'a>(
        &'a self,
        target: &'a UrlTarget,
        request: exchange::HttpRequest,
        idempotency: RequestIdempotency,
        time: Duration,
        answer_bytes_max: usize,
        permit: Option<&'a mut ResponsePermit>,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpClientError>> {
        Box::pin(async move {
            let until = Instant::now() + time;
            // Dropping the request at the deadline closes its connection.
            let sent = tokio::time::timeout_at(until, self.send_request(target, request, idempotency)).await;
            let head = sent.unwrap_or(Err(HttpClientError::Timeout(time)))?;
            let HttpExchange { response: answer, connection } =
                head.read_response(until, answer_bytes_max, permit).await?;
            self.0.pool.put(target, connection);
            Ok(answer)
        })
    }

    async fn send_request(
        &self,
        target: &UrlTarget,
        request: exchange::HttpRequest,
        idempotency: RequestIdempotency,
    ) -> Result<ResponseHead, HttpClientError> {
        if idempotency == RequestIdempotency::Idempotent
            && let Some(connection) = self.0.pool.take(target).await
        {
            match exchange::send_request(connection, request.clone()).await {
                Ok(head) => return Ok(head),
                Err(error) if error.was_idle_close => {}
                Err(error) => return Err(HttpClientError::ConnectionFailed(error.reason)),
            }
        }
        let connection = self.0.connector.connect(target).await?;
        exchange::send_request(connection, request)
            .await
            .map_err(|error| HttpClientError::ConnectionFailed(error.reason))
    }
}
