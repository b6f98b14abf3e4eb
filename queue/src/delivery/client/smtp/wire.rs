//! The stream of a session: writes slices and reads replies, with timeouts, and records both in the transcript.
//!
//! Writes are not buffered: a group of commands, or a body with what follows it, is one vectored write (rustls makes
//! records of the slices directly). Reads use one small buffer, which is reused.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt as _;
use message::reply::SmtpReply;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::delivery::SmtpFault;
use super::reply_reader::ReplyReader;
use super::transcript::Transcript;

/// Slices in one write. A body with many dot lines has many; the kernel accepts 1,024.
const SLICES_MAX: usize = 256;
/// Slices of an ordinary write: two chunks, the terminator, the next envelope.
const SLICES_TYPICAL: usize = 8;
/// Limit on the bytes of an invalid reply shown in the transcript.
const MALFORMED_SHOWN_BYTES_MAX: usize = 256;

pub(super) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    async fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(slices).await,
            Self::Tls(stream) => stream.write_vectored(slices).await,
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        match self {
            // A plain write has no buffer.
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush().await,
        }
    }

    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Tls(stream) => stream.read_buf(buffer).await,
        }
    }
}

/// A failed write, and the bytes written before it failed.
#[derive(Debug)]
pub(super) struct PartialWriteError {
    pub fault: SmtpFault,
    pub written_bytes: u64,
}

/// The stream, its unread bytes and the transcript.
pub(super) struct SmtpWire {
    stream: ClientStream,
    replies: ReplyReader,
    transcript: Transcript,
    started: Instant,
    /// Cancels all waiting for the host.
    stop: CancellationToken,
}

/// Waits for an I/O operation until the deadline or cancellation. An operation that has completed already counts, even
/// after cancellation.
async fn with_deadline<T>(
    stop: &CancellationToken,
    deadline: Instant,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, SmtpFault> {
    tokio::select! {
        biased;
        done = timeout_at(deadline, work) => match done {
            Ok(done) => Ok(done?),
            Err(_) => Err(SmtpFault::TimedOut),
        },
        () = stop.cancelled() => Err(SmtpFault::Cancelled),
    }
}

impl SmtpWire {
    pub(super) fn new(stream: ClientStream, transcript: Transcript, started: Instant) -> Self {
        let stop = CancellationToken::new();
        Self { stream, replies: ReplyReader::default(), transcript, started, stop }
    }

    pub(super) fn source_ip(&self) -> Option<IpAddr> {
        let stream = match &self.stream {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        };
        stream.local_addr().ok().map(|address| address.ip())
    }

    /// Sets the token that cancels all waiting.
    pub(super) fn cancel_with(&mut self, stop: CancellationToken) {
        self.stop = stop;
    }

    /// Milliseconds since the transcript began.
    pub(super) fn elapsed_ms(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    pub(super) fn transcript(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    /// Starts a new transcript and returns the old one.
    pub(super) fn begin_transcript(&mut self, transcript: Transcript, started: Instant) -> Transcript {
        self.started = started;
        std::mem::replace(&mut self.transcript, transcript)
    }

    /// Returns the stream and the transcript; unread bytes are dropped.
    pub(super) fn into_parts(self) -> (ClientStream, Transcript) {
        (self.stream, self.transcript)
    }

    /// Sends commands and records them.
    pub(super) async fn send_command(&mut self, commands: &[u8], block: Duration) -> Result<(), SmtpFault> {
        let at_ms = self.elapsed_ms();
        self.transcript.sent(at_ms, commands);
        self.write(std::iter::once(commands), block).await.map_err(|failed| failed.fault)
    }

    /// Sends a command that contains a secret; the transcript records `logged` instead.
    pub(super) async fn send_secret(&mut self, command: &[u8], logged: &str, block: Duration) -> Result<(), SmtpFault> {
        let at_ms = self.elapsed_ms();
        self.transcript.sent(at_ms, logged.as_bytes());
        self.write(std::iter::once(command), block).await.map_err(|failed| failed.fault)
    }

    /// Writes slices in order; each write must make progress within `block` (RFC 5321 4.5.3.2.5).
    pub(super) async fn write<'a>(
        &mut self,
        mut slices: impl Iterator<Item = &'a [u8]>,
        block: Duration,
    ) -> Result<(), PartialWriteError> {
        let mut written_bytes = 0;
        let mut window: Vec<IoSlice<'a>> = Vec::with_capacity(SLICES_TYPICAL);
        loop {
            window.clear();
            window.extend(slices.by_ref().take(SLICES_MAX).map(IoSlice::new));
            let mut rest = window.as_mut_slice();
            if rest.is_empty() {
                break;
            }
            while !rest.is_empty() {
                let deadline = Instant::now() + block;
                let fault = match with_deadline(&self.stop, deadline, self.stream.write_vectored(rest)).await {
                    Ok(0) => SmtpFault::Closed,
                    Ok(count) => {
                        written_bytes += count as u64;
                        IoSlice::advance_slices(&mut rest, count);
                        continue;
                    }
                    Err(fault) => fault,
                };
                return Err(PartialWriteError { fault, written_bytes });
            }
        }
        with_deadline(&self.stop, Instant::now() + block, self.stream.flush())
            .await
            .map_err(|fault| PartialWriteError { fault, written_bytes })
    }

    /// Reads the next complete reply within `limit`.
    pub(super) async fn read_reply(&mut self, limit: Duration) -> Result<SmtpReply, SmtpFault> {
        let mut deadline = None;
        loop {
            let at_ms = self.elapsed_ms();
            match self.replies.next_reply() {
                Ok(Some(parsed)) => {
                    self.transcript.received(at_ms, parsed.raw);
                    return Ok(parsed.reply);
                }
                Ok(None) => {}
                Err(fault) => {
                    self.transcript.received(at_ms, self.replies.unread(MALFORMED_SHOWN_BYTES_MAX));
                    return Err(fault.into());
                }
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            if with_deadline(&self.stop, deadline, self.stream.read(self.replies.read_buffer())).await? == 0 {
                return Err(SmtpFault::Closed);
            }
        }
    }

    /// The beginning of the reply that [`Self::read_reply`] refused as malformed, if its codes are positive (2yz).
    pub(super) fn positive_reply(&self) -> Option<SmtpReply> {
        self.replies.positive_reply(MALFORMED_SHOWN_BYTES_MAX)
    }

    /// Checks without waiting whether the host sent data or closed the connection while idle.
    pub(super) fn check_unsolicited(&mut self) -> Result<(), (SmtpFault, Option<SmtpReply>)> {
        if self.replies.is_empty() {
            match self.stream.read(self.replies.read_buffer()).now_or_never() {
                None => return Ok(()),
                Some(Ok(0)) => return Err((SmtpFault::Closed, None)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err((error.into(), None)),
            }
        }
        let at_ms = self.elapsed_ms();
        self.transcript.received(at_ms, self.replies.unread(MALFORMED_SHOWN_BYTES_MAX));
        let reply = self.replies.next_reply().ok().flatten().map(|parsed| parsed.reply);
        Err((SmtpFault::UnsolicitedData, reply))
    }

    /// Returns whether unread bytes are left.
    pub(super) fn has_unread(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Closes the stream in order (close_notify, FIN).
    pub(super) async fn close(&mut self, limit: Duration) {
        // A plain stream closes when it is dropped.
        if let ClientStream::Tls(stream) = &mut self.stream {
            // The connection ends anyway: ignore errors.
            let _ = timeout(limit, stream.shutdown()).await;
        }
    }
}
