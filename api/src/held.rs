//! Answers of megabytes: a few at a time, each until it is sent. Otherwise whoever asks on forty connections for a message
//! of 26 MB, and does not read, has us hold two gigabytes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::call::{Also, Answer, Reply};
use crate::problem::Problem;
use crate::schema::Schemas;

/// From this size on what is answered is large.
const LARGE_BYTES: u64 = 1 << 20;
/// Large answers at once. Who does not read is hung up on (`api/src/serve/stall.rs`), and gives its place back.
const LARGE_MAX: usize = 12;
/// How long a place is waited for.
const PATIENCE: Duration = Duration::from_secs(15);

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LARGE_MAX)));

/// A place for an answer; none is needed for a small one.
#[derive(Debug)]
pub struct Place(Option<OwnedSemaphorePermit>);

impl Place {
    /// A place for what is made of so many bytes. It is taken before they are read.
    ///
    /// # Errors
    /// There was none for a while.
    pub async fn of(bytes: u64) -> Result<Self, Problem> {
        if bytes < LARGE_BYTES {
            return Ok(Self(None));
        }
        let place = timeout(PATIENCE, Arc::clone(&PLACES).acquire_owned()).await;
        // Never closed.
        place.ok().and_then(Result::ok).map(|place| Self(Some(place))).ok_or_else(Problem::busy)
    }

    /// A reply that keeps the place until it is sent.
    pub fn holds<R>(self, reply: R) -> Held<R> {
        Held { reply, place: self }
    }
}

/// A reply that keeps its place until it is sent.
#[derive(Debug)]
pub struct Held<R> {
    reply: R,
    place: Place,
}

/// Bytes that are let go with their place.
struct Kept {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Place {
    fn keep(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(place) => Bytes::from_owner(Kept { bytes, _place: place }),
            None => bytes,
        }
    }
}

impl<R: Reply> Reply for Held<R> {
    const MEDIA_TYPE: &'static str = R::MEDIA_TYPE;
    const STATUS: StatusCode = R::STATUS;
    const ALSO: &'static [Also] = R::ALSO;

    fn describe(schemas: &mut Schemas) -> Value {
        R::describe(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        let Self { reply, place } = self;
        Ok(place.keep(reply.write()?))
    }

    fn answer(self) -> Result<Answer, Problem> {
        let Self { reply, place } = self;
        let answer = reply.answer()?;
        let body = place.keep(answer.body);
        Ok(Answer { body, ..answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_until_the_bytes_are_gone() {
        let mut sent = Vec::new();
        for _ in 0..LARGE_MAX {
            sent.push(Place::of(LARGE_BYTES).await.unwrap().keep(Bytes::from_static(b"x")));
        }
        assert!(Place::of(LARGE_BYTES).await.is_err());
        assert!(Place::of(LARGE_BYTES - 1).await.is_ok(), "a small one needs none");
        sent.pop();
        assert!(Place::of(LARGE_BYTES).await.is_ok());
    }
}
