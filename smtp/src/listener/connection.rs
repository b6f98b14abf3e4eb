//! One connection: the task that moves bytes between a socket and a [`Session`], awaits answers and
//! keeps time.
//!
//! While idle it holds no buffer: bytes are read onto the stack and kept only as far as the session
//! does not take them at once; replies are kept only until they are sent. One timer serves all
//! deadlines; it is set again only when it fires or must fire sooner. For strangers it fires every few seconds, to
//! look whether places have become short: they have less time then.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mail::reply::{Severity, SmtpReply};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, timeout, timeout_at};

use super::ListenerContext;
use super::transport::ServerStream;
use crate::answers::{Hook, HookVerdict, SessionHandler};
use crate::inbox::LineFramer;
use crate::peers::ConnectionPermit;
use crate::replies::{self, ReplyBuffer};
use crate::session::{Input, SessionAction, SmtpSession};

/// One read takes at most this much: a TLS record's worth.
const READ_BYTES_MAX: usize = 16 * 1024;
/// How often a stranger's session looks whether places are short.
const OVERLOAD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the last reply may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long, and for how much, we listen on after our last reply, so that the client can read it
/// before unread bytes of its own make the kernel reset the connection.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_READS_MAX: usize = 64;

/// Why a read returned.
enum WakeReason {
    Bytes,
    Disconnected,
    Timer,
    /// The message under way was cut off.
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
    /// Its place among the sessions; given back with the connection.
    pub(super) permit: ConnectionPermit,
}

impl<A: SessionHandler> ServerConnection<A> {
    /// Runs the session to its end. What is awaited seldom is boxed, so that an idle session has no
    /// room for it.
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
                SessionAction::CallHook(question) => {
                    let answer = Box::pin(self.call_handler(question)).await;
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
        let now = self.session.began().elapsed();
        self.step(Input::Now(now))
    }

    /// Waits for something to happen, and tells the session. `None`: the client has gone.
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
            let mut room = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES_MAX];
            let mut room = ReadBuf::uninit(&mut room);
            if let Poll::Ready(read) = Pin::new(&mut *transport).poll_read(cx, &mut room) {
                read?;
                if room.filled().is_empty() {
                    return Poll::Ready(Ok(WakeReason::Disconnected));
                }
                inbox.push(room.filled());
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

    /// Sends what was said, in one write, if the socket takes it all: it nearly always does.
    fn try_send_replies(&mut self) -> io::Result<bool> {
        let bytes = self.transport.try_send(self.replies.wire())?;
        Ok(self.replies.mark_sent(bytes) && self.transport.is_flushed())
    }

    /// Sends what was said, however long the client takes to read it, within the session's patience.
    async fn send_replies(&mut self) -> io::Result<()> {
        let Self { transport, replies, session, permit: guest, .. } = self;
        let sending = async {
            transport.write_all(replies.wire()).await?;
            transport.flush().await
        };
        within_deadline(session, guest, sending).await?;
        let bytes = self.replies.wire().len();
        self.replies.mark_sent(bytes);
        Ok(())
    }

    async fn call_handler(&mut self, question: Hook) -> HookVerdict {
        let Hook::Authenticate(credentials, from) = question else {
            return self.listener.handler.handle(&mut self.context, question).await;
        };
        let (logins, peer) = (Arc::clone(self.listener.connections.logins()), self.session.peer());
        let key = logins.credential_key(&credentials);
        let is_known = self.listener.handler.is_user_name(&credentials.username);
        let user = credentials.user_to_log(is_known).to_owned();
        let question = Hook::Authenticate(credentials, from);
        // Always looked at: what others fail with from the same address shuts nobody out.
        let answer = self.listener.handler.handle(&mut self.context, question).await;
        let account = match &answer {
            HookVerdict::AuthenticatedAs(account) => Some(*account),
            HookVerdict::Accept => None,
            HookVerdict::Reply(reply) if reply.severity() == Severity::Permanent => {
                metrics::counter!("postrider_smtp_auth_failures_total").increment(1);
                let now = Instant::now();
                if let Some(left_out) = logins.take_log_line(now) {
                    let (session, by) = (self.session.id(), "smtp_password");
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
        // RFC 3207 4.2: what came in the clear behind STARTTLS is dropped, not answered under TLS.
        self.framer.discard();
        let Self { listener: shared, transport, session, permit: guest, .. } = self;
        let facts = within_deadline(session, guest, shared.handshake(transport)).await?;
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
            let mut room = [0; 512];
            for _ in 0..LINGER_READS_MAX {
                if self.transport.read(&mut room).await? == 0 {
                    break;
                }
            }
            Ok(())
        };
        timeout(LINGER, linger).await.unwrap_or(Ok(()))
    }
}

/// When the session's patience ends; far off when it has no end.
fn deadline(session: &SmtpSession) -> Instant {
    const FAR_OFF: Duration = Duration::from_secs(24 * 3600);
    let began = session.began();
    began + session.deadline().unwrap_or_else(|| began.elapsed() + FAR_OFF)
}

/// When the session is to be looked at: its patience may end sooner than it seems now.
fn next_deadline_check(session: &SmtpSession) -> Instant {
    let deadline = deadline(session);
    if session.is_untrusted() { deadline.min(Instant::now() + OVERLOAD_CHECK_INTERVAL) } else { deadline }
}

/// Waits for a client, within the session's patience.
async fn within_deadline<T>(
    session: &mut SmtpSession,
    guest: &ConnectionPermit,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let mut work = pin!(work);
    loop {
        session.set_overloaded(guest.is_near_capacity());
        if deadline(session) <= Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Ok(done) = timeout_at(next_deadline_check(session), work.as_mut()).await {
            return done;
        }
    }
}

/// A fixed reply as a [`Reply`].
fn fixed_reply(wire: &'static str) -> SmtpReply {
    let (code, text) = wire.trim_end().split_once(' ').unwrap_or(("421", ""));
    SmtpReply::without_enhanced(code.parse().unwrap_or(421), text)
}
