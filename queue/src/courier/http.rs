//! The garden gate to the web: a POST to an endpoint that a stranger named, or a GET of what stands there.
//!
//! ```text
//! Post, Get ─► target (the URL, read and judged) ─► kept (a connection that waits) or dial (resolve, check, connect
//! to the checked address, TLS) ─► exchange (request, head, the body's beginning) ─► Answer
//! ```
//!
//! Whoever names the URL names a host, and whoever owns the host's name chooses its address: so the address is
//! judged after it was resolved and just that address is connected to (`mail/src/egress.rs`), no redirect is
//! followed, and time, header and body of an answer are bounded, whatever the peer does.

mod budget;
mod dial;
mod exchange;
mod kept;
mod target;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dns::lookup::Resolver;
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use rustls::RootCertStore;
use thiserror::Error;
use tokio::time::Instant;

pub use budget::{ResponseBudget, ResponseBudgetError, ResponsePermit};
use dial::HttpConnector;
use exchange::{HttpExchange, ResponseHead};
use kept::HttpConnectionPool;
pub use target::{URL_BYTES_MAX, UrlRules, UrlTarget};

/// What is posted.
#[derive(Debug, Clone)]
pub struct HttpPost {
    /// Where to: `https://…`.
    pub url: String,
    /// Header fields beside `content-length`, `host` and `user-agent`; and `content-type`, where the body is no JSON.
    pub headers: Vec<(&'static str, String)>,
    /// The body: JSON, unless the headers say otherwise.
    pub body: Bytes,
    /// How long it may take, from resolving the name to the last byte of the answer that is read.
    pub timeout: Duration,
    /// Whether it may be posted again at once.
    pub idempotency: RequestIdempotency,
}

/// What is got.
#[derive(Debug, Clone)]
pub struct HttpGet {
    /// From where: `https://…`.
    pub url: String,
    /// Header fields beside `host` and `user-agent`.
    pub headers: Vec<(&'static str, String)>,
    /// How long it may take, from resolving the name to the last byte of the answer that is read.
    pub timeout: Duration,
    /// How much of the answer's body is read.
    pub response_bytes_max: usize,
}

/// Whether something may be posted twice. A connection that was kept may end before anything was answered: its
/// server had closed it, or took what was posted and was lost, and nobody knows which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIdempotency {
    /// Then the same is posted over a fresh one: who receives tells doubles by a key in its headers, or it was only
    /// a question.
    Idempotent,
    /// Never; so it has a fresh one from the start.
    NonIdempotent,
}

/// What was answered: any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// `retry-after`, in seconds, if it was said so.
    pub retry_after_s: Option<u64>,
    /// When it was answered, by the clock of who did (RFC 9110 6.6.1), if that was said.
    pub date: Option<Timestamp>,
    /// `content-type`, as it was said.
    pub content_type: Option<String>,
    /// The beginning of the body, at most [`ANSWER_BYTES_MAX`], or as many as were asked for.
    pub body: Bytes,
    /// Whether that is all of it.
    pub is_complete: bool,
}

/// How much of the body of an answer to a post is read and kept.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024;

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpClientError {
    /// The URL cannot be posted to.
    #[error("{0}")]
    Url(String),
    /// It leads to an address that is not public.
    #[error("{0} is not a public address")]
    NotPublic(std::net::IpAddr),
    /// No connection, or it broke, or what came is no HTTP.
    #[error("{0}")]
    ConnectionFailed(String),
    /// Time was up.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer does not fit into the memory that is set aside for answers.
    #[error("{0}")]
    Budget(#[from] ResponseBudgetError),
}

/// Whom a poster trusts, and how far.
#[derive(Debug, Clone)]
pub struct HttpClientSettings {
    /// What URLs it posts to.
    pub rules: UrlRules,
    /// What it calls itself.
    pub user_agent: String,
    /// Whose certificates it takes; the public roots unless said otherwise.
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

/// The poster could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("nothing can be posted: {0}")]
pub struct HttpClientSetupError(String);

/// Posts. Clones share connections.
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
        f.debug_struct("Poster").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A poster that has names resolved by `resolver`.
    ///
    /// # Errors
    /// [`PosterError`]: the TLS library, or a user agent that is no header value.
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

    /// Which URLs it posts to.
    #[must_use]
    pub fn rules(&self) -> UrlRules {
        self.0.rules
    }

    /// Posts once; follows no redirect. Only when a kept connection ends before anything was answered, the
    /// same is posted again over a fresh one, as far as [`Again`] allows it. An answer whose body does not come to
    /// its end in time is an answer: its status stands.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn post(&self, post: HttpPost) -> Result<HttpResponse, HttpClientError> {
        self.post_with_limit(post, RESPONSE_BYTES_MAX).await
    }

    /// The same, with as much of the answer's body as is asked for.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn post_with_limit(
        &self,
        post: HttpPost,
        answer_bytes_max: usize,
    ) -> Result<HttpResponse, HttpClientError> {
        let target = UrlTarget::parse(&post.url, self.0.rules).map_err(HttpClientError::Url)?;
        let request = exchange::post_request(&target, &post, &self.0.user_agent)?;
        let bounds = (post.timeout, answer_bytes_max);
        self.send(&target, (request, post.idempotency), bounds, None).await
    }

    /// Gets once; follows no redirect.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn get(&self, get: HttpGet) -> Result<HttpResponse, HttpClientError> {
        self.get_with_permit(get, None).await
    }

    /// The same; what is kept of the answer's body is paid from a permit, as it comes.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn get_with_permit(
        &self,
        get: HttpGet,
        permit: Option<&mut ResponsePermit>,
    ) -> Result<HttpResponse, HttpClientError> {
        let target = UrlTarget::parse(&get.url, self.0.rules).map_err(HttpClientError::Url)?;
        let request = exchange::get_request(&target, &get, &self.0.user_agent)?;
        let bounds = (get.timeout, get.response_bytes_max);
        self.send(&target, (request, RequestIdempotency::Idempotent), bounds, permit).await
    }

    fn send<'a>(
        &'a self,
        target: &'a UrlTarget,
        (request, again): (exchange::HttpRequest, RequestIdempotency),
        (time, answer_bytes_max): (Duration, usize),
        permit: Option<&'a mut ResponsePermit>,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpClientError>> {
        Box::pin(async move {
            let until = Instant::now() + time;
            // What is dropped at the deadline takes its connection with it.
            let asked = tokio::time::timeout_at(until, self.send_request(target, request, again)).await;
            let answering = asked.unwrap_or(Err(HttpClientError::Timeout(time)))?;
            let HttpExchange { response: answer, connection } =
                answering.read_response((until, answer_bytes_max), permit).await?;
            self.0.pool.put(target, connection);
            Ok(answer)
        })
    }

    async fn send_request(
        &self,
        target: &UrlTarget,
        request: exchange::HttpRequest,
        again: RequestIdempotency,
    ) -> Result<ResponseHead, HttpClientError> {
        if again == RequestIdempotency::Idempotent
            && let Some(connection) = self.0.pool.take(target).await
        {
            match exchange::send_request(connection, request.clone()).await {
                Ok(answering) => return Ok(answering),
                Err(lost) if lost.was_idle_close => {}
                Err(lost) => return Err(HttpClientError::ConnectionFailed(lost.reason)),
            }
        }
        let connection = self.0.connector.connect(target).await?;
        exchange::send_request(connection, request).await.map_err(|lost| HttpClientError::ConnectionFailed(lost.reason))
    }
}
