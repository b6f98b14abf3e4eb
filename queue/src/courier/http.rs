//! The garden gate to the web: a POST to an endpoint that a stranger named.

use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;

/// What is posted.
#[derive(Debug, Clone)]
pub struct Post {
    /// Where to: `https://…`.
    pub url: String,
    /// Header fields beside `content-type`, `content-length`, `host` and `user-agent`.
    pub headers: Vec<(&'static str, String)>,
    /// The body, JSON.
    pub body: Bytes,
    /// How long it may take, from resolving the name to the last byte of the answer that is read.
    pub timeout: Duration,
}

/// What was answered: any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `retry-after`, in seconds, if it was said so.
    pub retry_after_s: Option<u64>,
    /// The beginning of the body, at most [`ANSWER_BYTES_MAX`].
    pub body: Bytes,
}

/// How much of an answer's body is read and kept.
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
}

/// Posts. Clones share connections.
#[derive(Clone)]
pub struct Poster {}

impl Poster {
    /// Posts once; follows no redirect.
    ///
    /// # Errors
    /// [`PostError`].
    pub async fn post(&self, post: Post) -> Result<Answer, PostError> {
        Err(PostError::Lost(format!("nothing posts to {} yet", post.url)))
    }
}
