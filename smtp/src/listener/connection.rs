//! The task of one connection: moves bytes between the socket and an [`SmtpSession`], awaits hook verdicts and enforces
//! timeouts.
//!
//! ```text
//! socket ─► LineFramer ─► SmtpSession ─► ReplyBuffer ─► socket
//!                           │ Hook ─► SessionHandler ─► Input::Verdict
//! timer, shutdown, abort ─► │ Input::Now, Input::Drain
//! ```
//!
//! An idle connection holds no buffer. Bytes are read into a buffer on the stack and copied only if the session does
//! not consume them at once. Replies are buffered only until they are sent. One timer serves all deadlines. It is reset
//! only when it fires or must fire sooner. For untrusted sessions it fires every few seconds to check for overload,
//! which shortens their timeouts.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use message::reply::{Severity, SmtpReply};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, timeout, timeout_at};

use super::ListenerContext;
use super::transport::ServerStream;
use crate::connection_limiter::ConnectionPermit;
use crate::handler::{Hook, HookVerdict, SessionHandler};
use crate::line_framer::LineFramer;
use crate::replies::{self, ReplyBuffer};
use crate::session::{Input, SessionAction, SmtpSession};

/// Maximum bytes of one read: a TLS record.
const READ_BYTES_MAX: usize = 16 * 1024;
/// How often an untrusted session checks for overload.
const OVERLOAD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Timeout for sending the last reply.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long, and for how many reads, the server keeps reading after its last reply. Otherwise unread bytes of the
/// client would make the kernel reset the connection before the client has read the reply.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_READS_MAX: usize = 64;

enum WakeReason {
    Bytes,
    Disconnected,
    Timer,
    /// The current message was aborted to free memory.
    Aborted,
    Shutdown,
}

pub(super) struct ServerConnection<A: SessionHandler> {
    pub(super) listener: Arc<ListenerContext<A>>,
    pub(super) transport: ServerStream,
    pub(super) session: SmtpSession,
    pub(super) replies: ReplyBuffer,
    pub(super) framer: LineFramer,
    pub(super) context: A::SessionContext,
    pub(super) draining: bool,
    /// The connection's session slot; released on drop.
    pub(super) permit: ConnectionPermit,
}

impl<A: SessionHandler> ServerConnection<A> {
    /// Runs the session to its end. Futures that are awaited rarely are boxed, so that an idle session needs no memory
    /// for them.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        let mut timer = pin!(tokio::time::sleep_until(next_deadline_check(&self.session)));
        let mut next = if self.listener.config.implicit_tls { SessionAction::StartTls } else { SessionAction::Read };
        loop {
            next = match next {
                SessionAction::Read => match self.framer.drive_session(&mut self.session, &mut self.replies) {
                    SessionAction::Read => {
                        if !self.replies.wire().is_empty() && !self.try_send_replies()? {
                            Box::pin(self.send_replies()).await?;
                        }
                        if self.framer.is_paused() {
                            SessionAction::Read
                        } else {
                            self.framer.shrink();
                            match self.wait_for_input(timer.as_mut()).await? {
                                Some(next) => next,
                                None => return Ok(()),
                            }
                        }
                    }
                    other => other,
                },
                SessionAction::CallHook(hook) => {
                    let answer = Box::pin(self.call_handler(hook)).await;
                    self.update_time();
                    self.step(Input::Verdict(answer))
                }
                SessionAction::StartTls => Box::pin(self.start_tls()).await?,
                SessionAction::Close => return Box::pin(self.close()).await,
            }
        }
    }

    fn step(&mut self, input: Input<'_>) -> SessionAction {
        self.session.step(input, &mut self.replies).action
    }

    fn update_time(&mut self) -> SessionAction {
        self.session.set_overloaded(self.permit.is_near_capacity());
        let now = self.session.times.began.elapsed();
        self.step(Input::Now(now))
    }

    /// Waits for the next event and passes it to the session. Returns `None` if the client disconnected.
    async fn wait_for_input(&mut self, mut timer: Pin<&mut Sleep>) -> io::Result<Option<SessionAction>> {
        let deadline = deadline(&self.session);
        if deadline < timer.deadline() {
            timer.as_mut().reset(deadline);
        }
        Ok(match self.next_wake(timer.as_mut()).await? {
            WakeReason::Disconnected => None,
            WakeReason::Bytes | WakeReason::Aborted => Some(self.update_time()),
            WakeReason::Timer => {
                let next = self.update_time();
                timer.reset(next_deadline_check(&self.session));
                Some(next)
            }
            WakeReason::Shutdown => {
                self.draining = true;
                Some(self.step(Input::Drain))
            }
        })
    }

    async fn next_wake(&mut self, mut timer: Pin<&mut Sleep>) -> io::Result<WakeReason> {
        let Self { listener: shared, transport, session, framer: inbox, draining, .. } = self;
        let mut shutdown = pin!(shared.shutdown.cancelled());
        poll_fn(|cx| {
            let mut buffer = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES_MAX];
            let mut buffer = ReadBuf::uninit(&mut buffer);
            if let Poll::Ready(read) = Pin::new(&mut *transport).poll_read(cx, &mut buffer) {
                read?;
                if buffer.filled().is_empty() {
                    return Poll::Ready(Ok(WakeReason::Disconnected));
                }
                inbox.push(buffer.filled());
                return Poll::Ready(Ok(WakeReason::Bytes));
            }
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(WakeReason::Timer));
            }
            if session.poll_aborted(cx).is_ready() {
                return Poll::Ready(Ok(WakeReason::Aborted));
            }
            if !*draining && shutdown.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(WakeReason::Shutdown));
            }
            Poll::Pending
        })
        .await
    }

    /// Sends the buffered replies in one write, if the socket accepts them all, which it nearly always does.
    fn try_send_replies(&mut self) -> io::Result<bool> {
        let bytes = self.transport.try_send(self.replies.wire())?;
        Ok(self.replies.mark_sent(bytes) && self.transport.is_flushed())
    }

    /// Sends the buffered replies and waits for a slow client, within the session's deadline.
    async fn send_replies(&mut self) -> io::Result<()> {
        let Self { transport, replies, session, permit, .. } = self;
        let sending = async {
            transport.write_all(replies.wire()).await?;
            transport.flush().await
        };
        within_deadline(session, permit, sending).await?;
        let bytes = self.replies.wire().len();
        self.replies.mark_sent(bytes);
        Ok(())
    }

    async fn call_handler(&mut self, hook: Hook) -> HookVerdict {
        let Hook::Authenticate(credentials, from) = hook else {
            return self.listener.handler.handle(&mut self.context, hook).await;
        };
        let (logins, peer) = (Arc::clone(&self.listener.connections.logins), self.session.client.peer);
        let key = logins.credential_key(&credentials);
        let is_known = self.listener.handler.is_user_name(&credentials.username);
        let user = credentials.user_to_log(is_known).to_owned();
        let hook = Hook::Authenticate(credentials, from);
        // The login is always checked: failures of others from the same address do not lock out a client.
        let answer = self.listener.handler.handle(&mut self.context, hook).await;
        let account = match &answer {
            HookVerdict::AuthenticatedAs(account) => Some(*account),
            HookVerdict::Accept => None,
            HookVerdict::Reply(reply) if reply.severity() == Severity::Permanent => {
                metrics::counter!("postrider_smtp_auth_failures_total").increment(1);
                let now = Instant::now();
                if let Some(left_out) = logins.take_log_line(now) {
                    let (session, by) = (self.session.id, "smtp_password");
                    let not_logged = (left_out > 0).then_some(left_out);
                    tracing::warn!(ip = %peer, by, user, not_logged, session.id = session, "authentication failed");
                }
                let delay = logins.record_failure(peer, key, now);
                let Some(_wait) = logins.acquire_tarpit(peer) else {
                    self.listener.count_refused("logins");
                    return HookVerdict::Reply(fixed_reply(replies::TOO_MANY_AUTH_FAILURES));
                };
                tokio::time::sleep(delay).await;
                return answer;
            }
            HookVerdict::Reply(_) => return answer,
        };
        logins.record_success(peer, account, Instant::now());
        if !self.permit.authenticate(account) {
            self.listener.count_refused("account");
            return HookVerdict::Reply(fixed_reply(replies::TOO_MANY_OF_ACCOUNT));
        }
        answer
    }

    async fn start_tls(&mut self) -> io::Result<SessionAction> {
        if !self.try_send_replies()? {
            self.send_replies().await?;
        }
        // RFC 3207 4.2: bytes sent in the clear behind STARTTLS are dropped, not processed under TLS.
        self.framer.discard();
        let Self { listener: shared, transport, session, permit, .. } = self;
        let facts = within_deadline(session, permit, shared.handshake(transport)).await?;
        self.update_time();
        Ok(self.step(Input::TlsEstablished(facts)))
    }

    async fn close(&mut self) -> io::Result<()> {
        let ending = self.transport.close_with(self.replies.wire());
        timeout(CLOSE_TIMEOUT, ending).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if self.session.has_quit() {
            return Ok(());
        }
        let linger = async {
            let mut discarded = [0; 512];
            for _ in 0..LINGER_READS_MAX {
                if self.transport.read(&mut discarded).await? == 0 {
                    break;
                }
            }
            Ok(())
        };
        timeout(LINGER, linger).await.unwrap_or(Ok(()))
    }
}

/// The session's deadline; a day ahead if it has none.
fn deadline(session: &SmtpSession) -> Instant {
    const FAR_OFF: Duration = Duration::from_secs(24 * 3600);
    let began = session.times.began;
    began + session.deadline().unwrap_or_else(|| began.elapsed() + FAR_OFF)
}

/// When the deadline is checked next. Overload can make the deadline of an untrusted session earlier.
fn next_deadline_check(session: &SmtpSession) -> Instant {
    let deadline = deadline(session);
    if session.is_untrusted() { deadline.min(Instant::now() + OVERLOAD_CHECK_INTERVAL) } else { deadline }
}

/// Runs I/O with the client, within the session's deadline.
async fn within_deadline<T>(
    session: &mut SmtpSession,
    permit: &ConnectionPermit,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let mut work = pin!(work);
    loop {
        session.set_overloaded(permit.is_near_capacity());
        if deadline(session) <= Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Ok(output) = timeout_at(next_deadline_check(session), work.as_mut()).await {
            return output;
        }
    }
}

/// Parses a fixed reply in wire form.
fn fixed_reply(wire: &'static str) -> SmtpReply {
    let (code, text) = wire.trim_end().split_once(' ').unwrap_or(("421", ""));
    SmtpReply::without_enhanced(code.parse().unwrap_or(421), text)
}
