//! Work with large texts of others, off the async runtime: other requests on the same thread do not wait for it.

use std::future::pending;

/// Smaller texts are read on the runtime: that takes less time than to move them.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;

/// Does work with a text of so many bytes.
pub(crate) async fn offload<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends: nobody waits for it any more.
            Err(_) => pending().await,
        },
    }
}
