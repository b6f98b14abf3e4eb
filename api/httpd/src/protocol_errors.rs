//! Replaces the bare error responses that hyper sends by itself with the API's error envelope.
//!
//! Input that is not HTTP, or that exceeds hyper's own limits, never becomes a request. hyper answers it with a bare
//! head (`HTTP/1.1 400 Bad Request`, no body) and closes. The stream recognises such a head, because all other
//! responses carry `x-request-id`, and writes the error envelope instead. HTTP/2 needs no replacement: there the
//! stream or the connection is reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use memchr::memmem::find;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Largest bare head in bytes.
const BARE_BYTES_MAX: usize = 256;

/// Builds the whole response for a bare one of this status.
pub type ErrorResponseBuilder = Arc<dyn Fn(u16) -> Bytes + Send + Sync>;

/// An HTTP/1 stream that replaces bare error responses.
pub(super) struct ProtocolErrorStream<T> {
    stream: T,
    error_response: Option<ErrorResponseBuilder>,
    /// The rest of the replacement that is still to be written.
    replacement: Bytes,
}

impl<T: AsyncWrite + Unpin> ProtocolErrorStream<T> {
    pub(super) fn new(stream: T, error_response: Option<ErrorResponseBuilder>) -> Self {
        Self { stream, error_response, replacement: Bytes::new() }
    }

    /// Writes the rest of the replacement.
    fn poll_write_replacement(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.replacement.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.replacement))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.replacement.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// If `given` is a bare head, stores the replacement and returns true.
    fn replace_bare_head(&mut self, bytes: &[u8]) -> bool {
        let (Some(build_response), Some(status)) = (&self.error_response, bare_head_status(bytes)) else {
            return false;
        };
        self.replacement = build_response(status);
        true
    }
}

/// The status of a bare head; `None` for anything else.
fn bare_head_status(bytes: &[u8]) -> Option<u16> {
    let rest = bytes.strip_prefix(b"HTTP/1.1 ")?;
    let has = |part: &[u8]| find(bytes, part).is_some();
    let bare = bytes.len() <= BARE_BYTES_MAX
        && bytes.ends_with(b"\r\n\r\n")
        && has(b"\r\ncontent-length: 0\r\n")
        && has(b"\r\nconnection: close\r\n")
        && !has(b"\r\nx-request-id: ");
    let status = std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()?;
    (bare && (400..500).contains(&status)).then_some(status)
}

impl<T: AsyncRead + Unpin> AsyncRead for ProtocolErrorStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ProtocolErrorStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_replacement(context))?;
        if self.replace_bare_head(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_replacement(context))?;
        if let [only] = slices
            && self.replace_bare_head(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_replacement(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_replacement(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_heads_and_nothing_else() {
        let head = |line: &str, extra: &str| {
            format!("HTTP/1.1 {line}\r\nconnection: close\r\ncontent-length: 0\r\n{extra}\r\n")
        };
        assert_eq!(bare_head_status(head("400 Bad Request", "date: x\r\n").as_bytes()), Some(400));
        assert_eq!(bare_head_status(head("431 Too Large", "").as_bytes()), Some(431));
        let long = format!("x: {}\r\n", "a".repeat(BARE_BYTES_MAX));
        for other in [
            head("200 OK", ""),
            head("404 Not Found", "x-request-id: req_1\r\n"),
            head("400 Bad Request", &long),
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n".to_owned(),
            "HTTP/1.1 4".to_owned(),
            String::new(),
        ] {
            assert_eq!(bare_head_status(other.as_bytes()), None, "{other}");
        }
    }
}
