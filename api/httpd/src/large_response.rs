//! Limits the number of large responses in memory. Without a limit, a client that requests a 26 MB message on forty
//! connections and does not read would occupy two gigabytes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use schema::Schemas;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::Problem;
use crate::response::{ExtraResponse, IntoResponse, Response};

/// Responses of at least this size need a permit.
const LARGE_BYTES: u64 = 1 << 20;
/// Maximum number of large responses at once. The write timeout (`api/httpd/src/write_timeout.rs`) closes a client that does
/// not read, which releases its permit.
const LARGE_RESPONSES_MAX: usize = 12;
/// Maximum wait for a permit.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(15);

static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LARGE_RESPONSES_MAX)));

/// A permit for a response; small responses need none.
#[derive(Debug)]
pub struct LargeResponsePermit(Option<OwnedSemaphorePermit>);

impl LargeResponsePermit {
    /// Acquires a permit for a response of `bytes` bytes, before its content is read.
    ///
    /// # Errors
    /// 503: no permit became free in time.
    pub async fn acquire(bytes: u64) -> Result<Self, Problem> {
        if bytes < LARGE_BYTES {
            return Ok(Self(None));
        }
        let permit = timeout(PERMIT_WAIT_MAX, Arc::clone(&PERMITS).acquire_owned()).await;
        // The semaphore is never closed.
        permit.ok().and_then(Result::ok).map(|permit| Self(Some(permit))).ok_or_else(Problem::busy)
    }

    /// Attaches the permit to a response; it is released when the response was sent.
    pub fn attach_to<R>(self, reply: R) -> LargeResponse<R> {
        LargeResponse { reply, permit: self }
    }
}

/// A response that holds its permit until it was sent.
#[derive(Debug)]
pub struct LargeResponse<R> {
    reply: R,
    permit: LargeResponsePermit,
}

/// Releases the permit when the bytes are dropped.
struct BytesWithPermit {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BytesWithPermit {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl LargeResponsePermit {
    fn attach_to_bytes(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(permit) => Bytes::from_owner(BytesWithPermit { bytes, _permit: permit }),
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

    fn into_response(self) -> Result<Response, Problem> {
        let Self { reply, permit } = self;
        let response = reply.into_response()?;
        let body = permit.attach_to_bytes(response.body);
        Ok(Response { body, ..response })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_held_until_the_bytes_are_dropped() {
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
