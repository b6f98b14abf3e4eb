//! Reading messages of strangers: apart from everything else, few at a time, and a bug met on the way is the
//! end of the reading and of nothing else.

use bytes::Bytes;
use mail::received::{Attachment, Heading, Reading};
use tokio::sync::Semaphore;

/// Messages read at once: each may take some times its size in memory.
const READINGS_MAX: usize = 8;

static PLACES: Semaphore = Semaphore::const_new(READINGS_MAX);

/// What a message's header says.
pub(super) async fn heading(message: Bytes) -> Heading {
    let read = move || Reading::heading(&message);
    apart(read).await.unwrap_or_default()
}

/// A message, whole; none when it cannot be read.
pub async fn whole(message: Bytes) -> Option<Reading> {
    apart(move || Reading::of(&message)).await
}

/// One file of a message.
pub async fn attachment(message: Bytes, place: usize) -> Option<Attachment> {
    apart(move || Reading::attachment(&message, place)).await.flatten()
}

async fn apart<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // Never closed.
    let place = PLACES.acquire().await.ok()?;
    let reading = tokio::task::spawn_blocking(move || {
        let _place = place;
        read()
    });
    // A panic in the parser ends the task.
    reading.await.inspect_err(|error| tracing::warn!(%error, "a received message could not be read")).ok()
}
