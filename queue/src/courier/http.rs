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

pub use budget::{AnswerBudget, AnswerPermit, BudgetError};
use dial::Dialer;
use exchange::{Answering, Exchanged};
use kept::Kept;
pub use target::{Target, URL_BYTES_MAX, UrlRules};

/// What is posted.
#[derive(Debug, Clone)]
pub struct Post {
    /// Where to: `https://…`.
    pub url: String,
    /// Header fields beside `content-length`, `host` and `user-agent`; and `content-type`, where the body is no JSON.
    pub headers: Vec<(&'static str, String)>,
    /// The body: JSON, unless the headers say otherwise.
    pub body: Bytes,
    /// How long it may take, from resolving the name to the last byte of the answer that is read.
    pub timeout: Duration,
    /// Whether it may be posted again at once.
    pub again: Again,
}

/// What is got.
#[derive(Debug, Clone)]
pub struct Get {
    /// From where: `https://…`.
    pub url: String,
    /// Header fields beside `host` and `user-agent`.
    pub headers: Vec<(&'static str, String)>,
    /// How long it may take, from resolving the name to the last byte of the answer that is read.
    pub timeout: Duration,
    /// How much of the answer's body is read.
    pub answer_bytes_max: usize,
}

/// Whether something may be posted twice. A connection that was kept may end before anything was answered: its
/// server had closed it, or took what was posted and was lost, and nobody knows which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Then the same is posted over a fresh one: who receives tells doubles by a key in its headers, or it was only
    /// a question.
    Harmless,
    /// Never; so it has a fresh one from the start.
    Never,
}

/// What was answered: any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `retry-after`, in seconds, if it was said so.
    pub retry_after_s: Option<u64>,
    /// When it was answered, by the clock of who did (RFC 9110 6.6.1), if that was said.
    pub at: Option<Timestamp>,
    /// `content-type`, as it was said.
    pub content_type: Option<String>,
    /// The beginning of the body, at most [`ANSWER_BYTES_MAX`], or as many as were asked for.
    pub body: Bytes,
    /// Whether that is all of it.
    pub is_whole: bool,
}

/// How much of the body of an answer to a post is read and kept.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PostError {
    /// The URL cannot be posted to.
    #[error("{0}")]
    Url(String),
    /// It leads to an address that is not public.
    #[error("{0} is not a public address")]
    NotPublic(std::net::IpAddr),
    /// No connection, or it broke, or what came is no HTTP.
    #[error("{0}")]
    Lost(String),
    /// Time was up.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer does not fit into the memory that is set aside for answers.
    #[error("{0}")]
    Budget(#[from] BudgetError),
}

/// Whom a poster trusts, and how far.
#[derive(Debug, Clone)]
pub struct PosterSettings {
    /// What URLs it posts to.
    pub rules: UrlRules,
    /// What it calls itself.
    pub user_agent: String,
    /// Whose certificates it takes; the public roots unless said otherwise.
    pub roots: Option<RootCertStore>,
}

impl Default for PosterSettings {
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
pub struct PosterError(String);

/// Posts. Clones share connections.
#[derive(Clone)]
pub struct Poster(Arc<Shared>);

struct Shared {
    rules: UrlRules,
    user_agent: HeaderValue,
    dialer: Dialer,
    kept: Arc<Kept>,
}

impl std::fmt::Debug for Poster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poster").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl Poster {
    /// A poster that has names resolved by `resolver`.
    ///
    /// # Errors
    /// [`PosterError`]: the TLS library, or a user agent that is no header value.
    pub fn new(resolver: Resolver, settings: PosterSettings) -> Result<Self, PosterError> {
        let PosterSettings { rules, user_agent, roots } = settings;
        let user_agent = HeaderValue::try_from(user_agent).map_err(|error| PosterError(error.to_string()))?;
        let dialer = Dialer::new(resolver, rules.allow_private, roots)
            .map_err(|error| PosterError(error.to_string()))?;
        Ok(Self(Arc::new(Shared { rules, user_agent, dialer, kept: Arc::new(Kept::default()) })))
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
    pub async fn post(&self, post: Post) -> Result<Answer, PostError> {
        self.submit(post, ANSWER_BYTES_MAX).await
    }

    /// The same, with as much of the answer's body as is asked for.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn submit(&self, post: Post, answer_bytes_max: usize) -> Result<Answer, PostError> {
        let target = Target::read(&post.url, self.0.rules).map_err(PostError::Url)?;
        let request = exchange::request(&target, &post, &self.0.user_agent)?;
        let bounds = (post.timeout, answer_bytes_max);
        self.exchange(&target, (request, post.again), bounds, None).await
    }

    /// Gets once; follows no redirect.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn get(&self, get: Get) -> Result<Answer, PostError> {
        self.get_within(get, None).await
    }

    /// The same; what is kept of the answer's body is paid from a permit, as it comes.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn get_within(&self, get: Get, permit: Option<&mut AnswerPermit>) -> Result<Answer, PostError> {
        let target = Target::read(&get.url, self.0.rules).map_err(PostError::Url)?;
        let request = exchange::getting(&target, &get, &self.0.user_agent)?;
        let bounds = (get.timeout, get.answer_bytes_max);
        self.exchange(&target, (request, Again::Harmless), bounds, permit).await
    }

    fn exchange<'a>(
        &'a self,
        target: &'a Target,
        (request, again): (exchange::Request, Again),
        (time, answer_bytes_max): (Duration, usize),
        permit: Option<&'a mut AnswerPermit>,
    ) -> BoxFuture<'a, Result<Answer, PostError>> {
        Box::pin(async move {
            let until = Instant::now() + time;
            // What is dropped at the deadline takes its connection with it.
            let asked = tokio::time::timeout_at(until, self.ask(target, request, again)).await;
            let answering = asked.unwrap_or(Err(PostError::Timeout(time)))?;
            let Exchanged { answer, connection } = answering.read((until, answer_bytes_max), permit).await?;
            self.0.kept.put(target, connection);
            Ok(answer)
        })
    }

    async fn ask(
        &self,
        target: &Target,
        request: exchange::Request,
        again: Again,
    ) -> Result<Answering, PostError> {
        if again == Again::Harmless
            && let Some(connection) = self.0.kept.take(target).await
        {
            match exchange::ask(connection, request.clone()).await {
                Ok(answering) => return Ok(answering),
                Err(lost) if lost.unanswered => {}
                Err(lost) => return Err(PostError::Lost(lost.reason)),
            }
        }
        let connection = self.0.dialer.dial(target).await?;
        exchange::ask(connection, request).await.map_err(|lost| PostError::Lost(lost.reason))
    }
}
