//! One SMTP session as a state machine without a socket: [`Session::step`] takes an [`Input`] and says
//! what comes [`Next`], writing replies on the way.
//!
//! ```text
//! Line | Bytes | Malformed | Secured | Answer | Now | Drain  ─►  step  ─►  Replies + Next
//! ```
//!
//! The session outlives its transactions (session/transaction.rs), of which there is at most one. While
//! a [`Question`] is open nothing but its answer, time and shutdown may come in. Time is a duration since
//! the session began; the listener says what it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mail::id::AccountId;
use mail::reply::SmtpReply;
use tokio::time::Instant;

use crate::answers::{Hook, HookVerdict, SessionTls, SessionTrace};
use crate::budget::MemoryReservation;
use crate::command::{self, ParsedCommand, stage};
use crate::inbox::MalformedLine;
use crate::limits::{AUTH_LINE_BYTES_MAX, COMMAND_LINE_BYTES_MAX, SessionLimits};
use crate::quota::QuotaHolder;
use crate::replies::{self, ReplyBuffer};
use crate::sasl::SaslExchange;
use crate::settings::{ListenerRole, SessionSettings};

pub(crate) mod greeting;
pub(crate) mod transaction;

use transaction::{BdatChunk, DataContent, MailTransaction};

/// What a session takes.
#[derive(Debug)]
pub enum Input<'a> {
    /// A line, CRLF included, when [`Session::expects`] a line.
    Line(&'a [u8]),
    /// What came in place of a line.
    Malformed(MalformedLine),
    /// Content, when [`Session::expects`] bytes. Not empty.
    Bytes(&'a [u8]),
    /// The handshake is done.
    TlsEstablished(SessionTls),
    /// The answer to the open question.
    Verdict(HookVerdict),
    /// What time it is, since the session began.
    Now(Duration),
    /// We are shutting down: end when the transaction under way is done.
    Drain,
}

/// What comes next.
#[derive(Debug)]
pub enum SessionAction {
    /// More input.
    Read,
    /// An answer. Replies may wait for it, so that a pipelined group goes out in one write.
    CallHook(Hook),
    /// Send the replies, drop all bytes that came after the command, begin the handshake (RFC 3207 4.2).
    StartTls,
    /// Send the replies and hang up.
    Close,
}

/// What a step did.
#[derive(Debug)]
pub struct StepOutput {
    /// How much of [`Input::Bytes`] it used; the whole of anything else.
    pub consumed: usize,
    /// What comes next.
    pub action: SessionAction,
}

/// What a session can take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedInput {
    /// A line of at most so many bytes, CRLF included; an AUTH command may be longer.
    Line {
        /// The bound for a command.
        bytes_max: usize,
        /// The bound for a command that begins with AUTH.
        auth_bytes_max: usize,
    },
    /// Content.
    Bytes,
    /// Nothing but an answer, a handshake, or the end.
    Nothing,
}

/// What the session waits for.
#[derive(Debug)]
enum InputMode {
    /// The greeting is held back.
    Greeting,
    Command,
    Sasl(SaslExchange),
    Data(Box<DataContent>),
    BdatChunk(BdatChunk),
    AwaitingHook(PendingHook),
    /// By STARTTLS, or, when it `greets` afterwards, at the very start.
    Handshake {
        greets: bool,
    },
    Closed,
    /// Closed, by QUIT.
    Quit,
}

/// Which question is open, with what waits for its answer.
#[derive(Debug)]
pub(crate) enum PendingHook {
    Authenticate,
    MailFrom(Box<MailTransaction>),
    RcptTo(Box<mail::draft::DraftRecipient>),
    Submit,
}

/// How much has been done, against the limits.
#[derive(Debug, Default)]
struct SessionCounters {
    commands: u64,
    mails: u64,
    junk: u32,
    errors: u32,
    auth_failures: u32,
}

/// A session.
#[derive(Debug)]
pub struct SmtpSession {
    settings: Arc<SessionSettings>,
    id: u64,
    peer: IpAddr,
    began: Instant,
    now: Duration,
    /// When the last complete thing happened.
    active_at: Duration,
    /// When it last brought a message.
    last_message_at: Duration,
    mode: InputMode,
    /// What it calls itself, once it did, and whether by EHLO.
    helo: Option<(Box<str>, bool)>,
    tls: Option<SessionTls>,
    authenticated: bool,
    /// Whose login it was.
    account: Option<AccountId>,
    draining: bool,
    /// Places are short, and it is a stranger's.
    overloaded: bool,
    /// The last command was a DATA that was refused: the next line may be content.
    refused_data: bool,
    transaction: Option<Box<MailTransaction>>,
    /// What its messages hold, from the first on.
    reservation: Option<Arc<MemoryReservation>>,
    counts: SessionCounters,
}

impl SmtpSession {
    /// A session with a peer, under a number. It greets at once; with `implicit_tls` it waits for
    /// [`Input::Secured`] and greets then.
    #[must_use]
    pub fn new(
        settings: Arc<SessionSettings>,
        (id, peer): (u64, IpAddr),
        implicit_tls: bool,
        replies: &mut ReplyBuffer,
    ) -> Self {
        let mode = match (implicit_tls, settings.limits.greet_delay.is_zero()) {
            (true, _) => InputMode::Handshake { greets: true },
            (false, false) => InputMode::Greeting,
            (false, true) => {
                replies.push_wire(settings.greeting().as_bytes());
                InputMode::Command
            }
        };
        Self {
            settings,
            id,
            peer,
            began: Instant::now(),
            now: Duration::ZERO,
            active_at: Duration::ZERO,
            last_message_at: Duration::ZERO,
            mode,
            helo: None,
            tls: None,
            authenticated: false,
            account: None,
            draining: false,
            overloaded: false,
            refused_data: false,
            transaction: None,
            reservation: None,
            counts: SessionCounters::default(),
        }
    }

    /// Takes one input. An input that cannot come now changes nothing.
    pub fn step(&mut self, input: Input<'_>, replies: &mut ReplyBuffer) -> StepOutput {
        let mut used = 0;
        let next = match input {
            Input::Line(line) => {
                used = line.len();
                self.handle_line(line, replies)
            }
            Input::Malformed(malformed) => self.handle_malformed(malformed, replies),
            Input::Bytes(bytes) => {
                let (n, next) = self.handle_content(bytes, replies);
                used = n;
                next
            }
            Input::TlsEstablished(tls) => self.handle_tls_established(tls, replies),
            Input::Verdict(answer) => self.handle_verdict(answer, replies),
            Input::Now(now) => self.handle_time(now, replies),
            Input::Drain => {
                self.draining = true;
                SessionAction::Read
            }
        };
        if matches!(next, SessionAction::Close) {
            if !matches!(self.mode, InputMode::Quit) {
                self.mode = InputMode::Closed;
            }
            self.transaction = None;
        } else if self.draining && matches!(self.mode, InputMode::Command) && self.transaction.is_none() {
            return StepOutput { consumed: used, action: self.close(replies::SHUTTING_DOWN, replies) };
        }
        StepOutput { consumed: used, action: next }
    }

    /// What it can take now.
    #[must_use]
    pub fn expected_input(&self) -> ExpectedInput {
        match self.mode {
            InputMode::Command | InputMode::Greeting => {
                ExpectedInput::Line { bytes_max: COMMAND_LINE_BYTES_MAX, auth_bytes_max: AUTH_LINE_BYTES_MAX }
            }
            InputMode::Sasl(_) => {
                ExpectedInput::Line { bytes_max: AUTH_LINE_BYTES_MAX, auth_bytes_max: AUTH_LINE_BYTES_MAX }
            }
            InputMode::Data(_) | InputMode::BdatChunk(_) => ExpectedInput::Bytes,
            InputMode::AwaitingHook(_) | InputMode::Handshake { .. } | InputMode::Closed | InputMode::Quit => {
                ExpectedInput::Nothing
            }
        }
    }

    /// When patience ends, unless something comes before; none while an answer is awaited.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let limits = self.limits();
        let patience = match &self.mode {
            InputMode::Greeting => Some(limits.greet_delay),
            InputMode::Command | InputMode::Sasl(_) => {
                let useless = || self.last_message_at.saturating_add(limits.message_timeout);
                Some(self.too_slow_at().unwrap_or_else(useless).min(self.active_at + limits.command_timeout))
            }
            InputMode::Data(_) | InputMode::BdatChunk(_) => {
                let paused = self.active_at + limits.content_timeout;
                Some(self.too_slow_at().map_or(paused, |slow| slow.min(paused)))
            }
            InputMode::Handshake { .. } => Some(self.active_at + limits.handshake_timeout),
            InputMode::AwaitingHook(_) | InputMode::Closed | InputMode::Quit => None,
        };
        if self.awaits_login() { patience.map(|at| at.min(limits.login_timeout)) } else { patience }
    }

    /// When the content under way, between its chunks too, has come too slowly.
    fn too_slow_at(&self) -> Option<Duration> {
        let (limits, (began, seen)) = (self.limits(), self.content_progress()?);
        let earned = seen / limits.content_bytes_per_s_min.max(1);
        Some(began + limits.content_timeout + Duration::from_secs(earned))
    }

    /// Whether it is worth a place only once somebody has logged in.
    #[must_use]
    pub fn awaits_login(&self) -> bool {
        self.settings.role() == ListenerRole::Submission && !self.authenticated
    }

    /// Whether it has less time while places are short: at MX, and before a login.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.settings.role() == ListenerRole::Mx || self.awaits_login()
    }

    /// Says whether places are short, before it is told the time or asked for its deadline.
    pub fn set_overloaded(&mut self, is_short: bool) {
        self.overloaded = is_short && self.is_untrusted();
    }

    fn limits(&self) -> &SessionLimits {
        if self.overloaded { &self.settings.overload_limits } else { &self.settings.limits }
    }

    /// Ready once the message under way was cut off, to make room for others: tell the session the time then.
    pub fn poll_aborted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.reservation.as_ref().map_or(Poll::Pending, |reservation| reservation.poll_aborted(cx))
    }

    /// Whether the last command was a DATA that was refused.
    #[must_use]
    pub fn has_refused_data(&self) -> bool {
        self.refused_data
    }

    /// When it began: its time is counted from here.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Whether a message is under way.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
            || matches!(self.mode, InputMode::Data(_) | InputMode::BdatChunk(_) | InputMode::AwaitingHook(_))
    }

    /// Whether the client ended it, and has nothing more to say.
    #[must_use]
    pub fn has_quit(&self) -> bool {
        matches!(self.mode, InputMode::Quit)
    }

    /// Who is at the other end.
    #[must_use]
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Its number, as the `Received` field shows it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    pub(crate) fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// How far it has come.
    pub(crate) fn state(&self) -> u8 {
        match (&self.transaction, &self.helo) {
            (Some(transaction), _) => transaction.state(),
            (None, Some((_, true))) => stage::EHLO,
            (None, Some((_, false))) => stage::HELO,
            (None, None) => stage::FRESH,
        }
    }

    fn trace(&self) -> SessionTrace {
        let (helo, extended) = self.helo.clone().unwrap_or_default();
        SessionTrace {
            session: self.id,
            peer: self.peer,
            helo,
            is_esmtp: extended,
            tls: self.tls,
            authenticated: self.authenticated,
            hostname: self.settings.hostname().clone(),
        }
    }

    fn handle_line(&mut self, line: &[u8], replies: &mut ReplyBuffer) -> SessionAction {
        self.active_at = self.now;
        match std::mem::replace(&mut self.mode, InputMode::Command) {
            InputMode::Command => self.handle_command(line, replies),
            InputMode::Greeting => self.close(replies::BEFORE_GREETING, replies),
            InputMode::Sasl(exchange) => {
                let text = line.strip_suffix(b"\r\n").unwrap_or(line);
                self.handle_sasl(exchange.step(text), replies)
            }
            other => {
                self.mode = other;
                SessionAction::Read
            }
        }
    }

    fn handle_command(&mut self, line: &[u8], replies: &mut ReplyBuffer) -> SessionAction {
        let limits = &self.settings.limits;
        let after_refused_data = std::mem::take(&mut self.refused_data);
        self.counts.commands += 1;
        if self.counts.commands > limits.commands_max {
            return self.close(replies::TOO_MANY_COMMANDS, replies);
        }
        let (verb, arguments) = match command::parse_command(line) {
            ParsedCommand::Verb(verb, arguments) => (verb, arguments),
            ParsedCommand::Http => return self.close(replies::NOT_HTTP, replies),
            // Content begins with a field, which is no command: the client did not wait for 354.
            ParsedCommand::Unknown if after_refused_data => {
                return self.close(replies::CONTENT_AFTER_REFUSAL, replies);
            }
            ParsedCommand::Unknown => return self.refuse(replies::UNKNOWN, replies),
        };
        if verb.junk {
            self.counts.junk += 1;
            if self.counts.junk > limits.junk_max {
                return self.close(replies::TOO_MANY_JUNK, replies);
            }
        }
        let at = self.state();
        let refusal = match (verb.check)(self) {
            _ if verb.states & at == 0 => command::bad_sequence_reply(verb, at),
            Err(reply) => reply,
            Ok(()) if verb.no_argument && !arguments.text().is_empty() => replies::NO_ARGUMENT,
            Ok(()) => return (verb.run)(self, arguments, replies),
        };
        if verb.brings_content() { self.refuse_data(refusal, replies) } else { self.refuse(refusal, replies) }
    }

    /// A line that is none. When its end was not CRLF, we and the client no longer agree on where lines
    /// end, and whatever follows could be read in two ways: so that ends the session.
    fn handle_malformed(&mut self, malformed: MalformedLine, replies: &mut ReplyBuffer) -> SessionAction {
        self.active_at = self.now;
        let in_sasl = matches!(self.mode, InputMode::Sasl(_));
        let after_refused_data = std::mem::take(&mut self.refused_data);
        match malformed {
            _ if self.expected_input() == ExpectedInput::Nothing => SessionAction::Read,
            _ if matches!(self.mode, InputMode::Greeting) => self.close(replies::BEFORE_GREETING, replies),
            MalformedLine::BareLineEnd => self.close(replies::BARE_LINE_END, replies),
            MalformedLine::ClientHello => self.close(replies::NOT_PLAIN_TLS, replies),
            MalformedLine::ContentAfterRefusedData => self.close(replies::CONTENT_AFTER_REFUSAL, replies),
            MalformedLine::Nul | MalformedLine::TooLong if after_refused_data => {
                self.close(replies::CONTENT_AFTER_REFUSAL, replies)
            }
            MalformedLine::Unterminated => {
                replies.push_fixed(replies::LINE_TOO_LONG);
                self.close(replies::LINE_UNTERMINATED, replies)
            }
            MalformedLine::Nul | MalformedLine::TooLong => {
                self.mode = InputMode::Command;
                let reply = match malformed {
                    MalformedLine::Nul => replies::NUL,
                    _ if in_sasl => replies::AUTH_LINE_TOO_LONG,
                    _ => replies::LINE_TOO_LONG,
                };
                self.refuse(reply, replies)
            }
        }
    }

    fn handle_verdict(&mut self, answer: HookVerdict, replies: &mut ReplyBuffer) -> SessionAction {
        self.active_at = self.now;
        match std::mem::replace(&mut self.mode, InputMode::Command) {
            InputMode::AwaitingHook(PendingHook::Authenticate) => self.complete_auth(answer, replies),
            InputMode::AwaitingHook(PendingHook::MailFrom(transaction)) => {
                self.complete_mail(transaction, answer, replies)
            }
            InputMode::AwaitingHook(PendingHook::RcptTo(recipient)) => self.complete_rcpt(*recipient, answer, replies),
            InputMode::AwaitingHook(PendingHook::Submit) => self.complete_submit(answer, replies),
            other => {
                self.mode = other;
                SessionAction::Read
            }
        }
    }

    fn handle_time(&mut self, now: Duration, replies: &mut ReplyBuffer) -> SessionAction {
        self.now = now;
        let is_open = self.expected_input() != ExpectedInput::Nothing;
        if is_open && self.reservation.as_ref().is_some_and(|reservation| reservation.is_aborted()) {
            return self.close(replies::ABORTED_SLOW, replies);
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return SessionAction::Read;
        }
        match self.mode {
            // Nothing can be said in the middle of a handshake.
            InputMode::Handshake { .. } => SessionAction::Close,
            _ if self.awaits_login() && now >= self.limits().login_timeout => {
                self.close(replies::LOGIN_TIMED_OUT, replies)
            }
            InputMode::Greeting => {
                replies.push_wire(self.settings.greeting().as_bytes());
                (self.mode, self.active_at) = (InputMode::Command, now);
                SessionAction::Read
            }
            InputMode::Data(_) | InputMode::BdatChunk(_) if now >= self.active_at + self.limits().content_timeout => {
                self.close(replies::TIMED_OUT, replies)
            }
            _ if self.too_slow_at().is_some_and(|slow| now >= slow) => self.close(replies::TOO_SLOW, replies),
            _ if now < self.active_at + self.limits().command_timeout => {
                self.close(replies::MESSAGE_TIMED_OUT, replies)
            }
            _ => self.close(replies::TIMED_OUT, replies),
        }
    }

    /// Its messages are counted for the account; where there is no login for the client's site, and at MX for the
    /// network of that too.
    fn reservation(&mut self) -> Arc<MemoryReservation> {
        let (peer, budget, began) = (self.peer, self.settings.budget(), self.began);
        Arc::clone(self.reservation.get_or_insert_with(|| match self.account {
            Some(account) => budget.reserve([QuotaHolder::Account(account)], began),
            None if self.settings.role() == ListenerRole::Mx => {
                budget.reserve(QuotaHolder::untrusted_client(peer), began)
            }
            None => budget.reserve([QuotaHolder::for_site(peer)], began),
        }))
    }

    fn call_hook(&mut self, asked: PendingHook, question: Hook) -> SessionAction {
        self.mode = InputMode::AwaitingHook(asked);
        SessionAction::CallHook(question)
    }

    /// Says the last reply.
    fn close(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        replies.push_fixed(reply);
        self.mode = InputMode::Closed;
        self.transaction = None;
        SessionAction::Close
    }

    /// Refuses a command, and counts it: a client that gets everything wrong is not a mail client.
    fn refuse(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        if self.count_error() {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.push_fixed(reply);
        SessionAction::Read
    }

    /// Refuses DATA, and the transaction is over. What comes behind it may be content that did not wait for 354
    /// (RFC 2920 3.1 lets nothing follow DATA in a group): it must not be read as commands.
    fn refuse_data(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        self.transaction = None;
        self.refused_data = true;
        self.refuse(reply, replies)
    }

    fn refuse_reply(&mut self, reply: &SmtpReply, replies: &mut ReplyBuffer) -> SessionAction {
        if self.count_error() {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.push_reply(reply);
        SessionAction::Read
    }

    fn count_error(&mut self) -> bool {
        self.counts.errors += 1;
        self.counts.errors >= self.settings.limits.errors_max
    }
}
