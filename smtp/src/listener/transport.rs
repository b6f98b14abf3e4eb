//! The byte stream of a connection, plain or under TLS.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::handler::SessionTls;

/// The stream. The TLS state is boxed, so that a plain session does not need memory for it.
#[derive(Debug)]
pub(super) enum ServerStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// During a handshake, or after a failed one.
    Closed,
}

impl ServerStream {
    /// Performs the TLS handshake.
    pub(super) async fn accept_tls(&mut self, acceptor: TlsAcceptor) -> io::Result<SessionTls> {
        let Self::Plain(stream) = std::mem::replace(self, Self::Closed) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let stream = Box::pin(acceptor.accept(stream)).await?;
        let facts = negotiated_tls(&stream);
        *self = Self::Tls(Box::new(stream));
        Ok(facts)
    }

    /// Sends as many bytes as the socket accepts at once and returns how many were taken. Under TLS some of them may
    /// still be in the TLS session and need a flush: see [`Self::is_flushed`].
    pub(super) fn try_send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = match self {
            Self::Plain(stream) => stream.try_write(bytes),
            Self::Tls(stream) => {
                let (stream, session) = stream.get_mut();
                let sent = session.writer().write(bytes)?;
                while session.wants_write() {
                    match session.write_tls(&mut NonBlockingSocket(stream)) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
                Ok(sent)
            }
            Self::Closed => Err(not_connected()),
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    /// Returns whether the kernel has all bytes that were taken.
    pub(super) fn is_flushed(&self) -> bool {
        !matches!(self, Self::Tls(stream) if stream.get_ref().1.wants_write())
    }

    /// Sends the last reply and closes the stream. Under TLS the reply and the close_notify alert (RFC 8446 6.1) are
    /// sent in one write. A client that disconnects on the reply would answer a separate alert with a reset.
    pub(super) async fn close_with(&mut self, last_words: &[u8]) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.get_mut().1.writer().write_all(last_words)?,
            Self::Plain(stream) => stream.write_all(last_words).await?,
            Self::Closed => {}
        }
        self.shutdown().await
    }
}

/// Adapter through which rustls writes to the socket without blocking.
struct NonBlockingSocket<'a>(&'a TcpStream);

impl io::Write for NonBlockingSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    /// Writes several TLS records at once.
    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn negotiated_tls(stream: &TlsStream<TcpStream>) -> SessionTls {
    let session = stream.get_ref().1;
    SessionTls {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLS",
        },
        cipher: session.negotiated_cipher_suite().and_then(|s| s.suite().as_str()).unwrap_or("unknown"),
    }
}

fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            Self::Closed => Poll::Ready(Err(not_connected())),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
            Self::Closed => Poll::Ready(Err(not_connected())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Self::Closed => Poll::Ready(Err(not_connected())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Self::Closed => Poll::Ready(Ok(())),
        }
    }
}
