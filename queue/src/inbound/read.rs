//! Reading messages of strangers: apart from everything else, few at a time, and a bug met on the way is the
//! end of the reading and of nothing else.

use bytes::Bytes;
use mail::received::{ParsedReceivedEmail, ReceivedAttachment, ReceivedHeader};
use tokio::sync::Semaphore;

/// Messages read at once: each may take some times its size in memory.
const CONCURRENCY: usize = 8;

static PARSE_PERMITS: Semaphore = Semaphore::const_new(CONCURRENCY);

/// What a message's header says.
pub(super) async fn parse_header(message: Bytes) -> ReceivedHeader {
    let read = move || ParsedReceivedEmail::parse_header(&message);
    run_isolated(read).await.unwrap_or_default()
}

/// A message, whole; none when it cannot be read.
pub async fn parse_message(message: Bytes) -> Option<ParsedReceivedEmail> {
    run_isolated(move || ParsedReceivedEmail::parse(&message)).await
}

/// One file of a message.
pub async fn parse_attachment(message: Bytes, place: usize) -> Option<ReceivedAttachment> {
    run_isolated(move || ParsedReceivedEmail::parse_attachment(&message, place)).await.flatten()
}

async fn run_isolated<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // Never closed.
    let place = PARSE_PERMITS.acquire().await.ok()?;
    let reading = tokio::task::spawn_blocking(move || {
        let _place = place;
        read()
    });
    // A panic in the parser ends the task.
    reading.await.inspect_err(|error| tracing::warn!(%error, "a received message could not be read")).ok()
}
