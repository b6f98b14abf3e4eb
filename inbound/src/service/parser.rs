//! Parsing untrusted messages: in blocking threads with bounded concurrency, where a panic of the parser fails only
//! that message.

use bytes::Bytes;
use message::received::{ParsedReceivedEmail, ReceivedAttachment, ReceivedHeader};
use tokio::sync::Semaphore;

/// Messages parsed concurrently; each may take several times its size in memory.
const CONCURRENCY: usize = 8;

static PARSE_PERMITS: Semaphore = Semaphore::const_new(CONCURRENCY);

/// Parses the header of a message; empty if the parser fails.
pub(super) async fn parse_header(message: Bytes) -> ReceivedHeader {
    let read = move || ParsedReceivedEmail::parse_header(&message);
    run_isolated(read).await.unwrap_or_default()
}

/// Parses a whole message; `None` if the parser fails.
pub async fn parse_message(message: Bytes) -> Option<ParsedReceivedEmail> {
    run_isolated(move || ParsedReceivedEmail::parse(&message)).await
}

/// Extracts one attachment by its position.
pub async fn parse_attachment(message: Bytes, index: usize) -> Option<ReceivedAttachment> {
    run_isolated(move || ParsedReceivedEmail::parse_attachment(&message, index)).await.flatten()
}

async fn run_isolated<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // The semaphore is never closed.
    let permit = PARSE_PERMITS.acquire().await.ok()?;
    let reading = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        read()
    });
    // A panic in the parser ends this task only.
    reading.await.inspect_err(|error| tracing::warn!(%error, "the parser failed on a received message")).ok()
}
