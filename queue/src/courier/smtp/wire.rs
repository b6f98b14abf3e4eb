//! One stream: slices out, replies in, each with its timeout, both written to the transcript.
//!
//! Nothing is buffered on the way out: a group of commands, or a body with what follows it, leaves
//! in one vectored write (rustls makes records of the slices directly). On the way in one small
//! buffer is kept and used again.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt as _;
use mail::reply::SmtpReply;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::delivery::SmtpFault;
use super::replies::ReplyReader;
use super::transcript::Transcript;

/// Slices handed to one write. A body with many dotted lines has many; the kernel takes 1,024.
const SLICES_MAX: usize = 256;
/// Slices of an ordinary write: two chunks, the end, the next envelope.
const SLICES_TYPICAL: usize = 8;
/// How much of what is no reply is shown in the transcript.
const MALFORMED_SHOWN_BYTES_MAX: usize = 256;

/// A plain or a TLS stream.
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
            // The kernel has it already.
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

/// A write that did not end well, and the bytes that had been handed over before.
#[derive(Debug)]
pub(super) struct PartialWriteError {
    pub fault: SmtpFault,
    pub written_bytes: u64,
}

/// The stream, its unread bytes and what was said so far.
pub(super) struct SmtpWire {
    stream: ClientStream,
    replies: ReplyReader,
    transcript: Transcript,
    started: Instant,
    /// Cancelled, nothing is waited for any more.
    stop: CancellationToken,
}

/// Awaits what the host must let happen within `limit`, unless we are stopped before. What has happened
/// already counts, also when we are.
async fn with_deadline<T>(
    (stop, deadline): (&CancellationToken, Instant),
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

    /// Where it comes from.
    pub(super) fn source_ip(&self) -> Option<IpAddr> {
        let stream = match &self.stream {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        };
        stream.local_addr().ok().map(|address| address.ip())
    }

    /// Ends all waiting when this is cancelled.
    pub(super) fn cancel_with(&mut self, stop: CancellationToken) {
        self.stop = stop;
    }

    /// Milliseconds since the transcript began.
    pub(super) fn elapsed_ms(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    /// Where to write what is worth remembering.
    pub(super) fn transcript(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    /// Begins a new transcript and gives away the old one.
    pub(super) fn begin_transcript(&mut self, transcript: Transcript, started: Instant) -> Transcript {
        self.started = started;
        std::mem::replace(&mut self.transcript, transcript)
    }

    /// The stream and the transcript; unread bytes are dropped.
    pub(super) fn into_parts(self) -> (ClientStream, Transcript) {
        (self.stream, self.transcript)
    }

    /// Sends commands and writes them down.
    pub(super) async fn send_command(&mut self, commands: &[u8], block: Duration) -> Result<(), SmtpFault> {
        let at_ms = self.elapsed_ms();
        self.transcript.sent(at_ms, commands);
        self.write(std::iter::once(commands), block).await.map_err(|failed| failed.fault)
    }

    /// Sends a command that holds a secret; `shown` is written down in its place.
    pub(super) async fn send_secret(&mut self, command: &[u8], shown: &str, block: Duration) -> Result<(), SmtpFault> {
        let at_ms = self.elapsed_ms();
        self.transcript.sent(at_ms, shown.as_bytes());
        self.write(std::iter::once(command), block).await.map_err(|failed| failed.fault)
    }

    /// Sends slices in order; each write must make progress within `block` (RFC 5321 4.5.3.2.5).
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
                let until = (&self.stop, Instant::now() + block);
                let fault = match with_deadline(until, self.stream.write_vectored(rest)).await {
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
        let until = (&self.stop, Instant::now() + block);
        with_deadline(until, self.stream.flush()).await.map_err(|fault| PartialWriteError { fault, written_bytes })
    }

    /// The next reply, whole, within `limit`.
    pub(super) async fn read_reply(&mut self, limit: Duration) -> Result<SmtpReply, SmtpFault> {
        let mut deadline = None;
        loop {
            let at_ms = self.elapsed_ms();
            match self.replies.next_reply() {
                Ok(Some(heard)) => {
                    self.transcript.received(at_ms, heard.raw);
                    return Ok(heard.reply);
                }
                Ok(None) => {}
                Err(fault) => {
                    self.transcript.received(at_ms, self.replies.unread(MALFORMED_SHOWN_BYTES_MAX));
                    return Err(fault.into());
                }
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            if with_deadline((&self.stop, deadline), self.stream.read(self.replies.read_buffer())).await? == 0 {
                return Err(SmtpFault::Closed);
            }
        }
    }

    /// Looks, without waiting, whether the host said something or hung up when it was not its turn.
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
        let reply = self.replies.next_reply().ok().flatten().map(|heard| heard.reply);
        Err((SmtpFault::UnsolicitedData, reply))
    }

    /// Whether bytes were read that no reply has used.
    pub(super) fn has_unread(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Ends the stream in order (close_notify, FIN).
    pub(super) async fn close(&mut self, limit: Duration) {
        // A plain stream ends in order when it is dropped.
        if let ClientStream::Tls(stream) = &mut self.stream {
            // The connection is over either way: an error here tells nothing new.
            let _ = timeout(limit, stream.shutdown()).await;
        }
    }
}
