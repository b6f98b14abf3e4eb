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
use mail::reply::Reply;
use tokio::time::Instant;

use crate::answers::{Answer, Question, TlsFacts, Trace};
use crate::budget::Reservation;
use crate::command::{self, Found, stage};
use crate::inbox::Malformed;
use crate::limits::{AUTH_LINE_BYTES_MAX, COMMAND_LINE_BYTES_MAX, Limits};
use crate::quota::Holder;
use crate::replies::{self, Replies};
use crate::sasl::Exchange;
use crate::settings::{Role, Settings};

pub(crate) mod greeting;
pub(crate) mod transaction;

use transaction::{Chunk, Receiving, Transaction};

/// What a session takes.
#[derive(Debug)]
pub enum Input<'a> {
    /// A line, CRLF included, when [`Session::expects`] a line.
    Line(&'a [u8]),
    /// What came in place of a line.
    Malformed(Malformed),
    /// Content, when [`Session::expects`] bytes. Not empty.
    Bytes(&'a [u8]),
    /// The handshake is done.
    Secured(TlsFacts),
    /// The answer to the open question.
    Answer(Answer),
    /// What time it is, since the session began.
    Now(Duration),
    /// We are shutting down: end when the transaction under way is done.
    Drain,
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// More input.
    Listen,
    /// An answer. Replies may wait for it, so that a pipelined group goes out in one write.
    Ask(Question),
    /// Send the replies, drop all bytes that came after the command, begin the handshake (RFC 3207 4.2).
    StartTls,
    /// Send the replies and hang up.
    Close,
}

/// What a step did.
#[derive(Debug)]
pub struct Step {
    /// How much of [`Input::Bytes`] it used; the whole of anything else.
    pub used: usize,
    /// What comes next.
    pub next: Next,
}

/// What a session can take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
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
enum Mode {
    /// The greeting is held back.
    Greeting,
    Command,
    Sasl(Exchange),
    Data(Box<Receiving>),
    Chunk(Chunk),
    Asked(Asked),
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
pub(crate) enum Asked {
    Authenticate,
    Sender(Box<Transaction>),
    Recipient(Box<mail::draft::DraftRecipient>),
    Take,
}

/// How much has been done, against the limits.
#[derive(Debug, Default)]
struct Counts {
    commands: u64,
    mails: u64,
    junk: u32,
    errors: u32,
    auth_failures: u32,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    settings: Arc<Settings>,
    id: u64,
    peer: IpAddr,
    began: Instant,
    now: Duration,
    /// When the last complete thing happened.
    active_at: Duration,
    /// When it last brought a message.
    brought_at: Duration,
    mode: Mode,
    /// What it calls itself, once it did, and whether by EHLO.
    greeted: Option<(Box<str>, bool)>,
    tls: Option<TlsFacts>,
    authenticated: bool,
    /// Whose login it was.
    account: Option<AccountId>,
    draining: bool,
    /// Places are short, and it is a stranger's.
    hurried: bool,
    /// The last command was a DATA that was refused: the next line may be content.
    refused_data: bool,
    transaction: Option<Box<Transaction>>,
    /// What its messages hold, from the first on.
    reservation: Option<Arc<Reservation>>,
    counts: Counts,
}

impl Session {
    /// A session with a peer, under a number. It greets at once; with `implicit_tls` it waits for
    /// [`Input::Secured`] and greets then.
    #[must_use]
    pub fn new(
        settings: Arc<Settings>,
        (id, peer): (u64, IpAddr),
        implicit_tls: bool,
        replies: &mut Replies,
    ) -> Self {
        let mode = match (implicit_tls, settings.limits.greet_delay.is_zero()) {
            (true, _) => Mode::Handshake { greets: true },
            (false, false) => Mode::Greeting,
            (false, true) => {
                replies.say_wire(settings.greeting().as_bytes());
                Mode::Command
            }
        };
        Self {
            settings,
            id,
            peer,
            began: Instant::now(),
            now: Duration::ZERO,
            active_at: Duration::ZERO,
            brought_at: Duration::ZERO,
            mode,
            greeted: None,
            tls: None,
            authenticated: false,
            account: None,
            draining: false,
            hurried: false,
            refused_data: false,
            transaction: None,
            reservation: None,
            counts: Counts::default(),
        }
    }

    /// Takes one input. An input that cannot come now changes nothing.
    pub fn step(&mut self, input: Input<'_>, replies: &mut Replies) -> Step {
        let mut used = 0;
        let next = match input {
            Input::Line(line) => {
                used = line.len();
                self.line(line, replies)
            }
            Input::Malformed(malformed) => self.malformed(malformed, replies),
            Input::Bytes(bytes) => {
                let (n, next) = self.bytes(bytes, replies);
                used = n;
                next
            }
            Input::Secured(tls) => self.secured(tls, replies),
            Input::Answer(answer) => self.answered(answer, replies),
            Input::Now(now) => self.at(now, replies),
            Input::Drain => {
                self.draining = true;
                Next::Listen
            }
        };
        if matches!(next, Next::Close) {
            if !matches!(self.mode, Mode::Quit) {
                self.mode = Mode::Closed;
            }
            self.transaction = None;
        } else if self.draining && matches!(self.mode, Mode::Command) && self.transaction.is_none() {
            return Step { used, next: self.close(replies::SHUTTING_DOWN, replies) };
        }
        Step { used, next }
    }

    /// What it can take now.
    #[must_use]
    pub fn expects(&self) -> Expect {
        match self.mode {
            Mode::Command | Mode::Greeting => {
                Expect::Line { bytes_max: COMMAND_LINE_BYTES_MAX, auth_bytes_max: AUTH_LINE_BYTES_MAX }
            }
            Mode::Sasl(_) => {
                Expect::Line { bytes_max: AUTH_LINE_BYTES_MAX, auth_bytes_max: AUTH_LINE_BYTES_MAX }
            }
            Mode::Data(_) | Mode::Chunk(_) => Expect::Bytes,
            Mode::Asked(_) | Mode::Handshake { .. } | Mode::Closed | Mode::Quit => Expect::Nothing,
        }
    }

    /// When patience ends, unless something comes before; none while an answer is awaited.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let limits = self.limits();
        let patience = match &self.mode {
            Mode::Greeting => Some(limits.greet_delay),
            Mode::Command | Mode::Sasl(_) => {
                let useless = || self.brought_at.saturating_add(limits.message_timeout);
                Some(self.slow_at().unwrap_or_else(useless).min(self.active_at + limits.command_timeout))
            }
            Mode::Data(_) | Mode::Chunk(_) => {
                let paused = self.active_at + limits.content_timeout;
                Some(self.slow_at().map_or(paused, |slow| slow.min(paused)))
            }
            Mode::Handshake { .. } => Some(self.active_at + limits.handshake_timeout),
            Mode::Asked(_) | Mode::Closed | Mode::Quit => None,
        };
        if self.awaits_login() { patience.map(|at| at.min(limits.login_timeout)) } else { patience }
    }

    /// When the content under way, between its chunks too, has come too slowly.
    fn slow_at(&self) -> Option<Duration> {
        let (limits, (began, seen)) = (self.limits(), self.received()?);
        let earned = seen / limits.content_bytes_per_s_min.max(1);
        Some(began + limits.content_timeout + Duration::from_secs(earned))
    }

    /// Whether it is worth a place only once somebody has logged in.
    #[must_use]
    pub fn awaits_login(&self) -> bool {
        self.settings.role() == Role::Submission && !self.authenticated
    }

    /// Whether it has less time while places are short: at MX, and before a login.
    #[must_use]
    pub fn is_strangers(&self) -> bool {
        self.settings.role() == Role::Mx || self.awaits_login()
    }

    /// Says whether places are short, before it is told the time or asked for its deadline.
    pub fn hurry(&mut self, is_short: bool) {
        self.hurried = is_short && self.is_strangers();
    }

    fn limits(&self) -> &Limits {
        if self.hurried { &self.settings.limits_short } else { &self.settings.limits }
    }

    /// Ready once the message under way was cut off, to make room for others: tell the session the time then.
    pub fn poll_cut(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.reservation.as_ref().map_or(Poll::Pending, |reservation| reservation.poll_cut(cx))
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
        self.transaction.is_some() || matches!(self.mode, Mode::Data(_) | Mode::Chunk(_) | Mode::Asked(_))
    }

    /// Whether the client ended it, and has nothing more to say.
    #[must_use]
    pub fn has_quit(&self) -> bool {
        matches!(self.mode, Mode::Quit)
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

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// How far it has come.
    pub(crate) fn stage(&self) -> u8 {
        match (&self.transaction, &self.greeted) {
            (Some(transaction), _) => transaction.stage(),
            (None, Some((_, true))) => stage::EHLO,
            (None, Some((_, false))) => stage::HELO,
            (None, None) => stage::FRESH,
        }
    }

    fn trace(&self) -> Trace {
        let (helo, extended) = self.greeted.clone().unwrap_or_default();
        Trace {
            session: self.id,
            peer: self.peer,
            helo,
            extended,
            tls: self.tls,
            authenticated: self.authenticated,
            hostname: self.settings.hostname().clone(),
        }
    }

    fn line(&mut self, line: &[u8], replies: &mut Replies) -> Next {
        self.active_at = self.now;
        match std::mem::replace(&mut self.mode, Mode::Command) {
            Mode::Command => self.command(line, replies),
            Mode::Greeting => self.close(replies::TOO_EARLY, replies),
            Mode::Sasl(exchange) => {
                let text = line.strip_suffix(b"\r\n").unwrap_or(line);
                self.sasl(exchange.step(text), replies)
            }
            other => {
                self.mode = other;
                Next::Listen
            }
        }
    }

    fn command(&mut self, line: &[u8], replies: &mut Replies) -> Next {
        let limits = &self.settings.limits;
        let after_refused_data = std::mem::take(&mut self.refused_data);
        self.counts.commands += 1;
        if self.counts.commands > limits.commands_max {
            return self.close(replies::TOO_MANY_COMMANDS, replies);
        }
        let (verb, arguments) = match command::find(line) {
            Found::Verb(verb, arguments) => (verb, arguments),
            Found::Http => return self.close(replies::NOT_HTTP, replies),
            // Content begins with a field, which is no command: the client did not wait for 354.
            Found::Unknown if after_refused_data => {
                return self.close(replies::CONTENT_AFTER_REFUSAL, replies);
            }
            Found::Unknown => return self.refuse(replies::UNKNOWN, replies),
        };
        if verb.junk {
            self.counts.junk += 1;
            if self.counts.junk > limits.junk_max {
                return self.close(replies::TOO_MANY_JUNK, replies);
            }
        }
        let at = self.stage();
        let refusal = match (verb.check)(self) {
            _ if verb.stages & at == 0 => command::out_of_order(verb, at),
            Err(reply) => reply,
            Ok(()) if verb.bare && !arguments.text().is_empty() => replies::NO_ARGUMENT,
            Ok(()) => return (verb.run)(self, arguments, replies),
        };
        if verb.brings_content() { self.refuse_data(refusal, replies) } else { self.refuse(refusal, replies) }
    }

    /// A line that is none. When its end was not CRLF, we and the client no longer agree on where lines
    /// end, and whatever follows could be read in two ways: so that ends the session.
    fn malformed(&mut self, malformed: Malformed, replies: &mut Replies) -> Next {
        self.active_at = self.now;
        let in_sasl = matches!(self.mode, Mode::Sasl(_));
        let after_refused_data = std::mem::take(&mut self.refused_data);
        match malformed {
            _ if self.expects() == Expect::Nothing => Next::Listen,
            _ if matches!(self.mode, Mode::Greeting) => self.close(replies::TOO_EARLY, replies),
            Malformed::BareLineEnd => self.close(replies::BARE_LINE_END, replies),
            Malformed::ClientHello => self.close(replies::NOT_PLAIN_TLS, replies),
            Malformed::Content => self.close(replies::CONTENT_AFTER_REFUSAL, replies),
            Malformed::Nul | Malformed::TooLong if after_refused_data => {
                self.close(replies::CONTENT_AFTER_REFUSAL, replies)
            }
            Malformed::Endless => {
                replies.say(replies::LINE_TOO_LONG);
                self.close(replies::LINE_ENDLESS, replies)
            }
            Malformed::Nul | Malformed::TooLong => {
                self.mode = Mode::Command;
                let reply = match malformed {
                    Malformed::Nul => replies::NUL,
                    _ if in_sasl => replies::AUTH_LINE_TOO_LONG,
                    _ => replies::LINE_TOO_LONG,
                };
                self.refuse(reply, replies)
            }
        }
    }

    fn answered(&mut self, answer: Answer, replies: &mut Replies) -> Next {
        self.active_at = self.now;
        match std::mem::replace(&mut self.mode, Mode::Command) {
            Mode::Asked(Asked::Authenticate) => self.authenticated_as(answer, replies),
            Mode::Asked(Asked::Sender(transaction)) => self.sender_judged(transaction, answer, replies),
            Mode::Asked(Asked::Recipient(recipient)) => self.recipient_judged(*recipient, answer, replies),
            Mode::Asked(Asked::Take) => self.taken(answer, replies),
            other => {
                self.mode = other;
                Next::Listen
            }
        }
    }

    fn at(&mut self, now: Duration, replies: &mut Replies) -> Next {
        self.now = now;
        let is_open = self.expects() != Expect::Nothing;
        if is_open && self.reservation.as_ref().is_some_and(|reservation| reservation.is_cut()) {
            return self.close(replies::CUT_OFF, replies);
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Next::Listen;
        }
        match self.mode {
            // Nothing can be said in the middle of a handshake.
            Mode::Handshake { .. } => Next::Close,
            _ if self.awaits_login() && now >= self.limits().login_timeout => {
                self.close(replies::NO_LOGIN, replies)
            }
            Mode::Greeting => {
                replies.say_wire(self.settings.greeting().as_bytes());
                (self.mode, self.active_at) = (Mode::Command, now);
                Next::Listen
            }
            Mode::Data(_) | Mode::Chunk(_) if now >= self.active_at + self.limits().content_timeout => {
                self.close(replies::TIMED_OUT, replies)
            }
            _ if self.slow_at().is_some_and(|slow| now >= slow) => self.close(replies::TOO_SLOW, replies),
            _ if now < self.active_at + self.limits().command_timeout => {
                self.close(replies::NO_MESSAGE, replies)
            }
            _ => self.close(replies::TIMED_OUT, replies),
        }
    }

    /// Its messages are counted for the account; where there is no login for the client's site, and at MX for the
    /// network of that too.
    fn reservation(&mut self) -> Arc<Reservation> {
        let (peer, budget, began) = (self.peer, self.settings.budget(), self.began);
        Arc::clone(self.reservation.get_or_insert_with(|| match self.account {
            Some(account) => budget.reserve([Holder::Account(account)], began),
            None if self.settings.role() == Role::Mx => budget.reserve(Holder::stranger(peer), began),
            None => budget.reserve([Holder::site(peer)], began),
        }))
    }

    fn ask(&mut self, asked: Asked, question: Question) -> Next {
        self.mode = Mode::Asked(asked);
        Next::Ask(question)
    }

    /// Says the last reply.
    fn close(&mut self, reply: &'static str, replies: &mut Replies) -> Next {
        replies.say(reply);
        self.mode = Mode::Closed;
        self.transaction = None;
        Next::Close
    }

    /// Refuses a command, and counts it: a client that gets everything wrong is not a mail client.
    fn refuse(&mut self, reply: &'static str, replies: &mut Replies) -> Next {
        if self.is_error_too_many() {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.say(reply);
        Next::Listen
    }

    /// Refuses DATA, and the transaction is over. What comes behind it may be content that did not wait for 354
    /// (RFC 2920 3.1 lets nothing follow DATA in a group): it must not be read as commands.
    fn refuse_data(&mut self, reply: &'static str, replies: &mut Replies) -> Next {
        self.transaction = None;
        self.refused_data = true;
        self.refuse(reply, replies)
    }

    fn refuse_reply(&mut self, reply: &Reply, replies: &mut Replies) -> Next {
        if self.is_error_too_many() {
            return self.close(replies::TOO_MANY_ERRORS, replies);
        }
        replies.say_reply(reply);
        Next::Listen
    }

    fn is_error_too_many(&mut self) -> bool {
        self.counts.errors += 1;
        self.counts.errors >= self.settings.limits.errors_max
    }
}
