//! One SMTP session as a state machine without a socket: [`SmtpSession::step`] takes an [`Input`], appends replies, and
//! returns the [`SessionAction`] that is needed next.
//!
//! ```text
//! Line | Bytes | Malformed | TlsEstablished | Verdict | Now | Drain  ─►  step  ─►  ReplyBuffer + SessionAction
//! ```
//!
//! A session has at most one transaction at a time (session/transaction.rs). While a [`Hook`] is pending, the only
//! valid inputs are its verdict, the time and the shutdown. Time is a duration since the session began; the listener
//! passes it.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use message::reply::SmtpReply;
use net::limit::fair_share::QuotaHolder;

use crate::command::{self, ParsedCommand, state};
use crate::content_budget::MemoryReservation;
use crate::handler::{Hook, HookVerdict, SessionTls};
use crate::limits::{AUTH_LINE_BYTES_MAX, COMMAND_LINE_BYTES_MAX, SessionTimeouts};
use crate::line_framer::MalformedLine;
use crate::replies::{self, ReplyBuffer};
use crate::sasl::SaslExchange;
use crate::settings::{ListenerRole, SessionSettings};

mod client;
mod counters;
pub(crate) mod greeting;
mod times;
pub(crate) mod transaction;

use client::SessionClient;
use counters::SessionCounters;
use times::SessionTimes;
use transaction::{BdatChunk, DataContent, MailTransaction};

/// An input of [`SmtpSession::step`].
#[derive(Debug)]
pub enum Input<'a> {
    /// A line with its CRLF, if [`SmtpSession::expected_input`] is a line.
    Line(&'a [u8]),
    /// An input that is not a valid line.
    Malformed(MalformedLine),
    /// Content, if [`SmtpSession::expected_input`] is bytes. Not empty.
    Bytes(&'a [u8]),
    /// The TLS handshake is complete.
    TlsEstablished(SessionTls),
    /// The verdict of the pending hook.
    Verdict(HookVerdict),
    /// The time since the session began.
    Now(Duration),
    /// The server shuts down: the session ends after its current transaction.
    Drain,
}

/// The next step of the listener.
#[derive(Debug)]
pub enum SessionAction {
    /// Read more input.
    Read,
    /// Call this hook and pass the verdict. Replies may wait for it, so that a pipelined group is sent in one write.
    CallHook(Hook),
    /// Send the replies, drop all bytes behind the command, and start the handshake (RFC 3207 4.2).
    StartTls,
    /// Send the replies and close the connection.
    Close,
}

/// The result of a step.
#[derive(Debug)]
pub struct StepOutput {
    /// Bytes used of [`Input::Bytes`] or [`Input::Line`]; 0 for other inputs.
    pub consumed: usize,
    pub action: SessionAction,
}

/// The input that a session expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedInput {
    /// A line of at most so many bytes, CRLF included. An AUTH command may be longer.
    Line {
        /// Limit of other commands and of lines of a SASL exchange.
        bytes_max: usize,
        /// Limit of a command that begins with AUTH.
        auth_bytes_max: usize,
    },
    Bytes,
    /// No bytes: the session waits for a verdict or a handshake, or is closed.
    Nothing,
}

/// The state of the session's input.
#[derive(Debug)]
enum InputMode {
    /// Before a delayed greeting.
    Greeting,
    Command,
    Sasl(SaslExchange),
    Data(Box<DataContent>),
    BdatChunk(BdatChunk),
    AwaitingHook(PendingHook),
    /// Started by STARTTLS, or with implicit TLS by the connection; the latter `greets` afterwards.
    Handshake {
        greets: bool,
    },
    Closed,
    /// Closed by QUIT.
    Quit,
}

/// The pending hook, with the data that its verdict completes.
#[derive(Debug)]
pub(crate) enum PendingHook {
    Authenticate,
    MailFrom(Box<MailTransaction>),
    RcptTo(Box<model::draft::DraftRecipient>),
    Submit,
}

/// One SMTP session.
#[derive(Debug)]
pub struct SmtpSession {
    pub(crate) settings: Arc<SessionSettings>,
    /// The session's number, shown in the `Received` field and the log.
    pub(crate) id: u64,
    pub(crate) client: SessionClient,
    pub(crate) times: SessionTimes,
    mode: InputMode,
    draining: bool,
    /// Overload: session slots are short, and the session is untrusted.
    overloaded: bool,
    /// The last command was a refused DATA, so the next line may be content.
    refused_data: bool,
    transaction: Option<Box<MailTransaction>>,
    /// The memory of the session's messages, created for the first one.
    reservation: Option<Arc<MemoryReservation>>,
    counts: SessionCounters,
}

impl SmtpSession {
    /// Creates a session with a number and a peer. It greets at once, after the greeting delay, or with `implicit_tls`
    /// after [`Input::TlsEstablished`].
    pub fn new(
        settings: Arc<SessionSettings>,
        id: u64,
        peer: IpAddr,
        implicit_tls: bool,
        replies: &mut ReplyBuffer,
    ) -> Self {
        let mode = match (implicit_tls, settings.limits.timeouts.greet_delay.is_zero()) {
            (true, _) => InputMode::Handshake { greets: true },
            (false, false) => InputMode::Greeting,
            (false, true) => {
                replies.push_wire(settings.greeting.as_bytes());
                InputMode::Command
            }
        };
        Self {
            settings,
            id,
            client: SessionClient::new(peer),
            times: SessionTimes::start(),
            mode,
            draining: false,
            overloaded: false,
            refused_data: false,
            transaction: None,
            reservation: None,
            counts: SessionCounters::default(),
        }
    }

    /// Processes one input. An input that is not valid in the present state is ignored.
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

    /// The time at which the session times out unless there is input before; `None` while a hook is pending.
    pub fn deadline(&self) -> Option<Duration> {
        let timeouts = self.timeouts();
        let patience = match &self.mode {
            InputMode::Greeting => Some(timeouts.greet_delay),
            InputMode::Command | InputMode::Sasl(_) => {
                let useless = || self.times.message_due(timeouts.message);
                Some(self.too_slow_at().unwrap_or_else(useless).min(self.times.input_due(timeouts.command)))
            }
            InputMode::Data(_) | InputMode::BdatChunk(_) => {
                let paused = self.times.input_due(timeouts.content);
                Some(self.too_slow_at().map_or(paused, |slow| slow.min(paused)))
            }
            InputMode::Handshake { .. } => Some(self.times.input_due(timeouts.handshake)),
            InputMode::AwaitingHook(_) | InputMode::Closed | InputMode::Quit => None,
        };
        if self.awaits_login() { patience.map(|at| at.min(timeouts.login)) } else { patience }
    }

    /// The time at which the current content is too slow, also between its BDAT chunks. `None` without content.
    fn too_slow_at(&self) -> Option<Duration> {
        let (timeouts, (began, received)) = (self.timeouts(), self.content_progress()?);
        let earned_s = received / timeouts.content_bytes_per_s_min.max(1);
        Some(began + timeouts.content + Duration::from_secs(earned_s))
    }

    /// Returns whether this is a submission session without a login.
    pub fn awaits_login(&self) -> bool {
        self.settings.role == ListenerRole::Submission && !self.client.is_authenticated()
    }

    /// Returns whether overload shortens the session's timeouts: at MX, and at submission before a login.
    pub fn is_untrusted(&self) -> bool {
        self.settings.role == ListenerRole::Mx || self.awaits_login()
    }

    /// Sets whether session slots are short. Call it before [`Input::Now`] and before [`Self::deadline`].
    pub fn set_overloaded(&mut self, is_overloaded: bool) {
        self.overloaded = is_overloaded && self.is_untrusted();
    }

    fn timeouts(&self) -> &SessionTimeouts {
        if self.overloaded { &self.settings.overload_timeouts } else { &self.settings.limits.timeouts }
    }

    /// Ready once the current message is aborted to free memory. Pass [`Input::Now`] then.
    pub fn poll_aborted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.reservation.as_ref().map_or(Poll::Pending, |reservation| reservation.poll_aborted(cx))
    }

    /// Returns whether the last command was a refused DATA.
    pub fn has_refused_data(&self) -> bool {
        self.refused_data
    }

    /// Returns whether the client ended the session with QUIT.
    pub fn has_quit(&self) -> bool {
        matches!(self.mode, InputMode::Quit)
    }

    /// The state as a bit of [`state`](crate::command::state).
    pub(crate) fn state(&self) -> u8 {
        match (&self.transaction, self.client.greeted_with_ehlo()) {
            (Some(transaction), _) => transaction.state(),
            (None, Some(true)) => state::EHLO,
            (None, Some(false)) => state::HELO,
            (None, None) => state::FRESH,
        }
    }

    fn handle_line(&mut self, line: &[u8], replies: &mut ReplyBuffer) -> SessionAction {
        self.times.record_input();
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
        if self.counts.count_command(limits) {
            return self.close(replies::TOO_MANY_COMMANDS, replies);
        }
        let (verb, arguments) = match command::parse_command(line) {
            ParsedCommand::Verb(verb, arguments) => (verb, arguments),
            ParsedCommand::Http => return self.close(replies::NOT_HTTP, replies),
            // Content begins with a header field, which is no command: the client did not wait for 354.
            ParsedCommand::Unknown if after_refused_data => {
                return self.close(replies::CONTENT_AFTER_REFUSAL, replies);
            }
            ParsedCommand::Unknown => return self.refuse(replies::UNKNOWN, replies),
        };
        if verb.junk && self.counts.count_junk(limits) {
            return self.close(replies::TOO_MANY_JUNK, replies);
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

    /// Handles an invalid line. If a line does not end in CRLF, server and client disagree on where lines end, and the
    /// following bytes are ambiguous. The session ends then.
    fn handle_malformed(&mut self, malformed: MalformedLine, replies: &mut ReplyBuffer) -> SessionAction {
        self.times.record_input();
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
        self.times.record_input();
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
        self.times.now = now;
        let is_open = self.expected_input() != ExpectedInput::Nothing;
        if is_open && self.reservation.as_ref().is_some_and(|reservation| reservation.is_aborted()) {
            return self.close(replies::ABORTED_SLOW, replies);
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return SessionAction::Read;
        }
        match self.mode {
            // No reply can be sent during a handshake.
            InputMode::Handshake { .. } => SessionAction::Close,
            _ if self.awaits_login() && now >= self.timeouts().login => self.close(replies::LOGIN_TIMED_OUT, replies),
            InputMode::Greeting => {
                replies.push_wire(self.settings.greeting.as_bytes());
                self.mode = InputMode::Command;
                self.times.record_input();
                SessionAction::Read
            }
            InputMode::Data(_) | InputMode::BdatChunk(_) if now >= self.times.input_due(self.timeouts().content) => {
                self.close(replies::TIMED_OUT, replies)
            }
            _ if self.too_slow_at().is_some_and(|slow| now >= slow) => self.close(replies::TOO_SLOW, replies),
            _ if now < self.times.input_due(self.timeouts().command) => self.close(replies::MESSAGE_TIMED_OUT, replies),
            _ => self.close(replies::TIMED_OUT, replies),
        }
    }

    /// Returns the session's memory reservation. It counts against the account, or without a login against the client's
    /// site; at MX also against the site's network.
    fn reservation(&mut self) -> Arc<MemoryReservation> {
        let (peer, budget, began) = (self.client.peer, &self.settings.budget, self.times.began);
        Arc::clone(self.reservation.get_or_insert_with(|| match self.client.account() {
            Some(account) => budget.reserve([QuotaHolder::Account(account)], began),
            None if self.settings.role == ListenerRole::Mx => {
                budget.reserve(QuotaHolder::untrusted_client(peer), began)
            }
            None => budget.reserve([QuotaHolder::for_site(peer)], began),
        }))
    }

    fn call_hook(&mut self, pending: PendingHook, hook: Hook) -> SessionAction {
        self.mode = InputMode::AwaitingHook(pending);
        SessionAction::CallHook(hook)
    }

    /// Appends the last reply and closes the session.
    fn close(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        replies.push_fixed(reply);
        self.mode = InputMode::Closed;
        self.transaction = None;
        SessionAction::Close
    }

    /// Refuses a command and counts the error. A client with too many errors is not a mail client.
    fn refuse(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        if self.counts.count_error(&self.settings.limits) {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.push_fixed(reply);
        SessionAction::Read
    }

    /// Refuses DATA and ends the transaction. The client may already be sending content without waiting for 354,
    /// although RFC 2920 3.1 allows nothing behind DATA in a group. That content must not be run as commands.
    fn refuse_data(&mut self, reply: &'static str, replies: &mut ReplyBuffer) -> SessionAction {
        self.transaction = None;
        self.refused_data = true;
        self.refuse(reply, replies)
    }

    fn refuse_reply(&mut self, reply: &SmtpReply, replies: &mut ReplyBuffer) -> SessionAction {
        if self.counts.count_error(&self.settings.limits) {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.push_reply(reply);
        SessionAction::Read
    }
}
