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

use mail::reply::{Reply, Severity};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, timeout, timeout_at};

use super::Shared;
use super::transport::Transport;
use crate::answers::{Answer, Answers, Question};
use crate::inbox::Inbox;
use crate::peers::Guest;
use crate::replies::{self, Replies};
use crate::session::{Input, Next, Session};

/// One read takes at most this much: a TLS record's worth.
const READ_BYTES_MAX: usize = 16 * 1024;
/// How often a stranger's session looks whether places are short.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long the last reply may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long, and for how much, we listen on after our last reply, so that the client can read it
/// before unread bytes of its own make the kernel reset the connection.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_READS_MAX: usize = 64;

/// Why a read returned.
enum Wake {
    Bytes,
    End,
    Timer,
    /// The message under way was cut off.
    Cut,
    Shutdown,
}

pub(super) struct Connection<A: Answers> {
    pub(super) shared: Arc<Shared<A>>,
    pub(super) transport: Transport,
    pub(super) session: Session,
    pub(super) replies: Replies,
    pub(super) inbox: Inbox,
    pub(super) visitor: A::Visitor,
    pub(super) draining: bool,
    /// Its place among the sessions; given back with the connection.
    pub(super) guest: Guest,
}

impl<A: Answers> Connection<A> {
    /// Runs the session to its end. What is awaited seldom is boxed, so that an idle session has no
    /// room for it.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        let mut timer = pin!(tokio::time::sleep_until(next_look(&self.session)));
        let mut next = if self.shared.door.implicit_tls { Next::StartTls } else { Next::Listen };
        loop {
            next = match next {
                Next::Listen => match self.inbox.drive(&mut self.session, &mut self.replies) {
                    Next::Listen => {
                        if !self.replies.wire().is_empty() && !self.send_at_once()? {
                            Box::pin(self.send()).await?;
                        }
                        if self.inbox.is_paused() {
                            Next::Listen
                        } else {
                            self.inbox.rest();
                            match self.listen(timer.as_mut()).await? {
                                Some(next) => next,
                                None => return Ok(()),
                            }
                        }
                    }
                    other => other,
                },
                Next::Ask(question) => {
                    let answer = Box::pin(self.ask(question)).await;
                    self.tell_time();
                    self.step(Input::Answer(answer))
                }
                Next::StartTls => Box::pin(self.secure()).await?,
                Next::Close => return Box::pin(self.close()).await,
            }
        }
    }

    fn step(&mut self, input: Input<'_>) -> Next {
        self.session.step(input, &mut self.replies).next
    }

    fn tell_time(&mut self) -> Next {
        self.session.hurry(self.guest.are_places_short());
        let now = self.session.began().elapsed();
        self.step(Input::Now(now))
    }

    /// Waits for something to happen, and tells the session. `None`: the client has gone.
    async fn listen(&mut self, mut timer: Pin<&mut Sleep>) -> io::Result<Option<Next>> {
        let deadline = deadline(&self.session);
        if deadline < timer.deadline() {
            timer.as_mut().reset(deadline);
        }
        Ok(match self.wake(timer.as_mut()).await? {
            Wake::End => None,
            Wake::Bytes | Wake::Cut => Some(self.tell_time()),
            Wake::Timer => {
                let next = self.tell_time();
                timer.reset(next_look(&self.session));
                Some(next)
            }
            Wake::Shutdown => {
                self.draining = true;
                Some(self.step(Input::Drain))
            }
        })
    }

    async fn wake(&mut self, mut timer: Pin<&mut Sleep>) -> io::Result<Wake> {
        let Self { shared, transport, session, inbox, draining, .. } = self;
        let mut shutdown = pin!(shared.shutdown.cancelled());
        poll_fn(|cx| {
            let mut room = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES_MAX];
            let mut room = ReadBuf::uninit(&mut room);
            if let Poll::Ready(read) = Pin::new(&mut *transport).poll_read(cx, &mut room) {
                read?;
                if room.filled().is_empty() {
                    return Poll::Ready(Ok(Wake::End));
                }
                inbox.push(room.filled());
                return Poll::Ready(Ok(Wake::Bytes));
            }
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(Wake::Timer));
            }
            if session.poll_cut(cx).is_ready() {
                return Poll::Ready(Ok(Wake::Cut));
            }
            if !*draining && shutdown.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(Wake::Shutdown));
            }
            Poll::Pending
        })
        .await
    }

    /// Sends what was said, in one write, if the socket takes it all: it nearly always does.
    fn send_at_once(&mut self) -> io::Result<bool> {
        let bytes = self.transport.try_send(self.replies.wire())?;
        Ok(self.replies.sent(bytes) && self.transport.is_flushed())
    }

    /// Sends what was said, however long the client takes to read it, within the session's patience.
    async fn send(&mut self) -> io::Result<()> {
        let Self { transport, replies, session, guest, .. } = self;
        let sending = async {
            transport.write_all(replies.wire()).await?;
            transport.flush().await
        };
        within(session, guest, sending).await?;
        let bytes = self.replies.wire().len();
        self.replies.sent(bytes);
        Ok(())
    }

    async fn ask(&mut self, question: Question) -> Answer {
        let Question::Authenticate(credentials, from) = question else {
            return self.shared.answers.answer(&mut self.visitor, question).await;
        };
        let (logins, peer) = (Arc::clone(self.shared.peers.logins()), self.session.peer());
        let key = logins.key(&credentials);
        let is_known = self.shared.answers.is_user_name(&credentials.username);
        let user = credentials.user_to_log(is_known).to_owned();
        let question = Question::Authenticate(credentials, from);
        // Always looked at: what others fail with from the same address shuts nobody out.
        let answer = self.shared.answers.answer(&mut self.visitor, question).await;
        let account = match &answer {
            Answer::Account(account) => Some(*account),
            Answer::Granted => None,
            Answer::Said(reply) if reply.severity() == Severity::Permanent => {
                metrics::counter!("postrider_smtp_auth_failures_total").increment(1);
                let now = Instant::now();
                if let Some(left_out) = logins.take_log_line(now) {
                    let (session, by) = (self.session.id(), "smtp_password");
                    let not_logged = (left_out > 0).then_some(left_out);
                    tracing::warn!(ip = %peer, by, user, not_logged, session.id = session, "authentication failed");
                }
                let delay = logins.failed(peer, key, now);
                let Some(_wait) = logins.wait(peer) else {
                    self.shared.count_refused("logins");
                    return Answer::Said(plain(replies::TOO_MANY_AUTH_FAILURES));
                };
                tokio::time::sleep(delay).await;
                return answer;
            }
            Answer::Said(_) => return answer,
        };
        logins.succeeded(peer, account, Instant::now());
        if !self.guest.log_in(account) {
            self.shared.count_refused("account");
            return Answer::Said(plain(replies::TOO_MANY_OF_ACCOUNT));
        }
        answer
    }

    async fn secure(&mut self) -> io::Result<Next> {
        if !self.send_at_once()? {
            self.send().await?;
        }
        // RFC 3207 4.2: what came in the clear behind STARTTLS is dropped, not answered under TLS.
        self.inbox.discard();
        let Self { shared, transport, session, guest, .. } = self;
        let facts = within(session, guest, shared.handshake(transport)).await?;
        self.tell_time();
        Ok(self.step(Input::Secured(facts)))
    }

    async fn close(&mut self) -> io::Result<()> {
        let ending = self.transport.end(self.replies.wire());
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
fn deadline(session: &Session) -> Instant {
    const FAR_OFF: Duration = Duration::from_secs(24 * 3600);
    let began = session.began();
    began + session.deadline().unwrap_or_else(|| began.elapsed() + FAR_OFF)
}

/// When the session is to be looked at: its patience may end sooner than it seems now.
fn next_look(session: &Session) -> Instant {
    let deadline = deadline(session);
    if session.is_strangers() { deadline.min(Instant::now() + LOOK_EVERY) } else { deadline }
}

/// Waits for a client, within the session's patience.
async fn within<T>(
    session: &mut Session,
    guest: &Guest,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let mut work = pin!(work);
    loop {
        session.hurry(guest.are_places_short());
        if deadline(session) <= Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Ok(done) = timeout_at(next_look(session), work.as_mut()).await {
            return done;
        }
    }
}

/// A fixed reply as a [`Reply`].
fn plain(wire: &'static str) -> Reply {
    let (code, text) = wire.trim_end().split_once(' ').unwrap_or(("421", ""));
    Reply::plain(code.parse().unwrap_or(421), text)
}
