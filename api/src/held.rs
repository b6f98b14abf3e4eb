//! Answers of megabytes: a few at a time, each until it is sent. Otherwise whoever asks on forty connections for a message
//! of 26 MB, and does not read, has us hold two gigabytes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::call::{ExtraResponse, IntoResponse, Response};
use crate::problem::Problem;
use crate::schema::Schemas;

/// From this size on what is answered is large.
const LARGE_BYTES: u64 = 1 << 20;
/// Large answers at once. Who does not read is hung up on (`api/src/serve/stall.rs`), and gives its place back.
const LARGE_RESPONSES_MAX: usize = 12;
/// How long a place is waited for.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(15);

static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LARGE_RESPONSES_MAX)));

/// A place for an answer; none is needed for a small one.
#[derive(Debug)]
pub struct LargeResponsePermit(Option<OwnedSemaphorePermit>);

impl LargeResponsePermit {
    /// A place for what is made of so many bytes. It is taken before they are read.
    ///
    /// # Errors
    /// There was none for a while.
    pub async fn acquire(bytes: u64) -> Result<Self, Problem> {
        if bytes < LARGE_BYTES {
            return Ok(Self(None));
        }
        let place = timeout(PERMIT_WAIT_MAX, Arc::clone(&PERMITS).acquire_owned()).await;
        // Never closed.
        place.ok().and_then(Result::ok).map(|place| Self(Some(place))).ok_or_else(Problem::busy)
    }

    /// A reply that keeps the place until it is sent.
    pub fn attach_to<R>(self, reply: R) -> LargeResponse<R> {
        LargeResponse { reply, permit: self }
    }
}

/// A reply that keeps its place until it is sent.
#[derive(Debug)]
pub struct LargeResponse<R> {
    reply: R,
    permit: LargeResponsePermit,
}

/// Bytes that are let go with their place.
struct BytesWithPermit {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BytesWithPermit {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl LargeResponsePermit {
    fn attach_to_bytes(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(place) => Bytes::from_owner(BytesWithPermit { bytes, _place: place }),
            None => bytes,
        }
    }
}

impl<R: IntoResponse> IntoResponse for LargeResponse<R> {
    const MEDIA_TYPE: &'static str = R::MEDIA_TYPE;
    const STATUS: StatusCode = R::STATUS;
    const EXTRA_RESPONSES: &'static [ExtraResponse] = R::EXTRA_RESPONSES;

    fn describe(schemas: &mut Schemas) -> Value {
        R::describe(schemas)
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        let Self { reply, permit: place } = self;
        Ok(place.attach_to_bytes(reply.into_body()?))
    }

    fn into_response(self) -> Result<Response, Problem> {
        let Self { reply, permit: place } = self;
        let answer = reply.into_response()?;
        let body = place.attach_to_bytes(answer.body);
        Ok(Response { body, ..answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_until_the_bytes_are_gone() {
        let mut sent = Vec::new();
        for _ in 0..LARGE_RESPONSES_MAX {
            sent.push(
                LargeResponsePermit::acquire(LARGE_BYTES).await.unwrap().attach_to_bytes(Bytes::from_static(b"x")),
            );
        }
        assert!(LargeResponsePermit::acquire(LARGE_BYTES).await.is_err());
        assert!(LargeResponsePermit::acquire(LARGE_BYTES - 1).await.is_ok(), "a small one needs none");
        sent.pop();
        assert!(LargeResponsePermit::acquire(LARGE_BYTES).await.is_ok());
    }
}
