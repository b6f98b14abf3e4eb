//! One transaction: an envelope, its replies, the content, the last reply.
//!
//! ```text
//!                    ┌ refused ─► (354 came all the same: a lone dot) ─► verdict by the refusal
//! envelope ─► replies┤
//!                    └ taken ─► content + next's envelope in one write ─► last reply ─► verdict
//! ```
//!
//! With PIPELINING the envelope is one group (RFC 2920 3.1), and behind the content goes the next
//! message's, so that its replies are there, or nearly, when its turn comes. With CHUNKING too, the
//! first message on a connection goes out whole in one flight (RFC 3030 4.2).
//!
//! What must hold whatever a host says: every reply that a command will get is read before the next
//! turn, or the connection ends; a shipment counts as accepted by the 2yz to its own content alone;
//! content is sent only under an envelope whose every command was taken, or in the one flight whose
//! replies then decide. After anything that RFC 5321 does not foresee the connection ends.

use std::time::Duration;

use mail::reply::{Reply, Severity};

use super::answers::{Answers, Refusal, Step};
use super::command::Envelope;
use super::connection::{Channel, Connection, Parcel, Primed, State};
use super::delivery::{Fault, Phase, Verdict};
use super::load::{DOT, Load};
use super::shipment::Shipment;
use super::wire::WriteFault;

/// What goes in one flight with its envelope before we know whether the recipient is taken: about
/// what a fresh TCP connection sends before it hears back anyway (RFC 6928 and a doubling or two).
const AHEAD_BYTES_MAX: u64 = 64 * 1024;
/// How long to look for a host's last words after it stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How a transaction ended, and what the connection is good for now.
pub(super) struct End {
    pub verdict: Verdict,
    pub reply: Option<Reply>,
    pub phase: Phase,
    pub fault: Option<Fault>,
    pub state: State,
}

impl End {
    pub(super) fn broken(phase: Phase, fault: Fault) -> Self {
        Self { verdict: Verdict::Broken, reply: None, phase, fault: Some(fault), state: State::Ended }
    }

    fn unconfirmed(phase: Phase, fault: Fault) -> Self {
        Self { verdict: Verdict::Unconfirmed, ..Self::broken(phase, fault) }
    }

    pub(super) fn refused((phase, reply): Refusal, state: State) -> Self {
        let verdict =
            if reply.severity() == Severity::Permanent { Verdict::Refused5 } else { Verdict::Refused4 };
        // 421 says that the host is about to hang up, whatever was asked (RFC 5321 3.8).
        let state = if reply.code == 421 { State::Ended } else { state };
        Self { verdict, reply: Some(reply), phase, fault: None, state }
    }
}

impl Connection {
    /// Delivers from whatever state the connection was left in.
    pub(super) async fn transact(&mut self, state: State, this: &Shipment, next: Option<&Shipment>) -> End {
        let parcel = match (self.prepare(this), &state) {
            (Ok(parcel), _) => parcel,
            (Err(_), State::Primed(_)) => return End::broken(Phase::Local, Fault::NotTheNext),
            (Err(end), _) => return End { state, ..*end },
        };
        match state {
            State::Leaving | State::Ended => End::broken(Phase::Idle, Fault::Ended),
            State::Primed(primed) => {
                if primed.envelope != parcel.envelope {
                    return End::broken(Phase::Local, Fault::NotTheNext);
                }
                for step in self.steps(primed.reset) {
                    self.wire.transcript().sent_ahead(step.command(&primed.envelope));
                }
                let answers = self.envelope(&parcel.envelope, primed.reset, true).await;
                self.go_on(answers, &parcel, next).await
            }
            State::Idle { .. } if !self.may_begin() => End::broken(Phase::Idle, Fault::Ended),
            State::Idle { reset } => {
                if let Err((fault, reply)) = self.wire.look() {
                    return End { reply, ..End::broken(Phase::Idle, fault) };
                }
                self.begun = self.begun.saturating_add(1);
                let whole = self.channel == Channel::Bdat
                    && self.capabilities().pipelining
                    && parcel.content.size_bytes() <= AHEAD_BYTES_MAX;
                if whole {
                    return self.fly(&parcel, reset, next).await;
                }
                let answers = self.envelope(&parcel.envelope, reset, false).await;
                self.go_on(answers, &parcel, next).await
            }
        }
    }

    /// Sends an envelope, unless it was sent ahead, and hears its replies.
    async fn envelope(&mut self, envelope: &Envelope, reset: bool, is_sent: bool) -> Answers {
        let mut answers = Answers::default();
        let steps = self.steps(reset);
        let in_group = is_sent || self.capabilities().pipelining;
        if in_group && !is_sent {
            let at_ms = self.wire.at_ms();
            for step in steps {
                self.wire.transcript().sent(at_ms, step.command(envelope));
            }
            let group = steps.iter().map(|step| step.command(envelope));
            if let Err(failed) = self.wire.write(group, self.timeouts.block).await {
                // A host that hung up may have said why: for the transcript.
                let _ = self.wire.hear(LAST_WORDS).await;
                answers.stop = Some((Phase::Mail, failed.fault));
                return answers;
            }
        }
        for &step in steps {
            if !in_group
                && let Err(fault) = self.wire.command(step.command(envelope), self.timeouts.block).await
            {
                answers.stop = Some((step.phase(), fault));
                break;
            }
            let heard = self.wire.hear(self.limit(step)).await;
            let goes_on = answers.take(step, heard, self.begun > 1);
            if !goes_on || (!in_group && answers.refusal.is_some()) {
                break;
            }
        }
        answers
    }

    fn limit(&self, step: Step) -> Duration {
        match step {
            Step::Reset | Step::Mail => self.timeouts.mail,
            Step::Rcpt => self.timeouts.rcpt,
            Step::Data => self.timeouts.data,
        }
    }

    /// What follows the envelope's replies.
    async fn go_on(&mut self, mut answers: Answers, parcel: &Parcel<'_>, next: Option<&Shipment>) -> End {
        if let Some(end) = answers.early_end() {
            return end;
        }
        match answers.refusal {
            None => self.carry(parcel, next).await,
            Some(refusal) if !answers.go => End::refused(refusal, State::Idle { reset: true }),
            // The host took the recipient, refused something else and waits for content: even an
            // empty message would be a delivery.
            Some(refusal) if answers.rcpt_taken => End::refused(refusal, State::Ended),
            Some(refusal) => self.dismiss(refusal, next).await,
        }
    }

    /// 354 although no recipient was taken: RFC 2920 3.1 says to send a lone dot. Whatever the host
    /// answers, the message went to nobody.
    async fn dismiss(&mut self, refusal: Refusal, next: Option<&Shipment>) -> End {
        let primed = self.prime(next, true);
        let at_ms = self.wire.at_ms();
        self.wire.transcript().sent(at_ms, DOT);
        let slices = std::iter::once(DOT).chain(self.ahead(primed.as_ref()));
        if self.wire.write(slices, self.timeouts.block).await.is_err() {
            return End::refused(refusal, State::Ended);
        }
        let state = match self.wire.hear(self.timeouts.data).await {
            Ok(reply) if reply.code != 421 && reply.severity() != Severity::Intermediate => {
                primed.map_or(State::Idle { reset: true }, State::Primed)
            }
            _ => State::Ended,
        };
        End::refused(refusal, state)
    }

    /// Sends the content, and the next envelope behind it.
    async fn carry(&mut self, parcel: &Parcel<'_>, next: Option<&Shipment>) -> End {
        let primed = self.prime(next, self.channel == Channel::Bdat);
        let load = Load::new(self.channel, &parcel.content);
        let at_ms = self.wire.at_ms();
        if self.channel == Channel::Bdat {
            self.wire.transcript().sent(at_ms, &load.head);
        }
        self.wire.transcript().content(at_ms, load.size_bytes);
        let farewell = self.take_leave(at_ms);
        let slices = load.slices(parcel).chain(self.ahead(primed.as_ref())).chain(farewell);
        match self.wire.write(slices, self.timeouts.block).await {
            Err(failed) if failed.written_bytes < load.all_bytes() => self.cut_off(failed).await,
            // The end of the content is out: only the reply can tell, if it still comes.
            Err(_) => self.last_reply(State::Ended).await,
            Ok(()) => {
                let reset = self.channel == Channel::Bdat;
                self.last_reply(self.state_after(primed, reset)).await
            }
        }
    }

    /// Envelope and content in one flight (BDAT), and the next envelope behind it.
    async fn fly(&mut self, parcel: &Parcel<'_>, reset: bool, next: Option<&Shipment>) -> End {
        let primed = self.prime(next, true);
        let load = Load::new(self.channel, &parcel.content);
        let steps = self.steps(reset);
        let at_ms = self.wire.at_ms();
        let mut before_bytes = 0;
        for step in steps {
            let command = step.command(&parcel.envelope);
            before_bytes += command.len() as u64;
            self.wire.transcript().sent(at_ms, command);
        }
        self.wire.transcript().sent(at_ms, &load.head);
        self.wire.transcript().content(at_ms, load.size_bytes);
        let farewell = self.take_leave(at_ms);
        let slices = steps
            .iter()
            .map(|step| step.command(&parcel.envelope))
            .chain(load.slices(parcel))
            .chain(self.ahead(primed.as_ref()))
            .chain(farewell);
        let sent = self.wire.write(slices, self.timeouts.block).await;
        let is_whole = match &sent {
            Ok(()) => true,
            Err(failed) => failed.written_bytes >= before_bytes + load.all_bytes(),
        };
        let mut answers = self.envelope(&parcel.envelope, reset, true).await;
        if let Some(end) = answers.early_end() {
            // Without a refusal the host may have taken all of it.
            let may_have_arrived = end.verdict == Verdict::Broken && is_whole;
            return if may_have_arrived { End { verdict: Verdict::Unconfirmed, ..end } } else { end };
        }
        if let (Err(failed), false) = (sent, is_whole) {
            return match answers.refusal {
                Some(refusal) => End::refused(refusal, State::Ended),
                None => self.cut_off(failed).await,
            };
        }
        let state = self.state_after(primed, true);
        let Some(refusal) = answers.refusal else { return self.last_reply(state).await };
        // The host has read the content and dropped it (RFC 3030 2); its reply must be read too.
        let is_in_step = match self.wire.hear(self.timeouts.final_dot).await {
            Ok(reply) => reply.code != 421 && reply.severity() != Severity::Intermediate,
            Err(_) => false,
        };
        let state = if is_in_step && !answers.rcpt_taken { state } else { State::Ended };
        End::refused(refusal, state)
    }

    /// QUIT, if it goes behind this content, written down.
    fn take_leave(&mut self, at_ms: u32) -> Option<&'static [u8]> {
        let farewell = self.farewell()?;
        self.wire.transcript().sent(at_ms, farewell);
        Some(farewell)
    }

    /// What the host stands ready for when the replies to this message are read.
    fn state_after(&self, primed: Option<Primed>, reset: bool) -> State {
        match primed {
            Some(primed) => State::Primed(primed),
            None if self.farewell().is_some() => State::Leaving,
            None => State::Idle { reset },
        }
    }

    /// The reply to the content decides.
    async fn last_reply(&mut self, state: State) -> End {
        match self.wire.hear(self.timeouts.final_dot).await {
            Err(fault) => End::unconfirmed(Phase::Content, fault),
            Ok(reply) => match reply.severity() {
                Severity::Completed => End {
                    verdict: Verdict::Accepted,
                    reply: Some(reply),
                    phase: Phase::Content,
                    fault: None,
                    // Taken, so nothing is left open.
                    state: if matches!(state, State::Idle { .. }) {
                        State::Idle { reset: false }
                    } else {
                        state
                    },
                },
                Severity::Transient | Severity::Permanent => End::refused((Phase::Content, reply), state),
                Severity::Intermediate => {
                    let fault = Fault::Unexpected(reply.code);
                    End { reply: Some(reply), ..End::unconfirmed(Phase::Content, fault) }
                }
            },
        }
    }

    /// The host stopped reading before the end of the content: it may have said why.
    async fn cut_off(&mut self, failed: WriteFault) -> End {
        match self.wire.hear(LAST_WORDS).await {
            Ok(reply) if matches!(reply.severity(), Severity::Transient | Severity::Permanent) => {
                End::refused((Phase::Content, reply), State::Ended)
            }
            _ => End::broken(Phase::Content, failed.fault),
        }
    }

    /// The steps of an envelope on this connection, RSET first if asked for.
    fn steps(&self, reset: bool) -> &'static [Step] {
        match (reset, self.channel) {
            (true, Channel::Data) => &[Step::Reset, Step::Mail, Step::Rcpt, Step::Data],
            (false, Channel::Data) => &[Step::Mail, Step::Rcpt, Step::Data],
            (true, Channel::Bdat) => &[Step::Reset, Step::Mail, Step::Rcpt],
            (false, Channel::Bdat) => &[Step::Mail, Step::Rcpt],
        }
    }

    /// The commands of an envelope that goes ahead, if one does.
    fn ahead<'a>(&self, primed: Option<&'a Primed>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let steps = primed.map(|primed| (self.steps(primed.reset), &primed.envelope));
        steps.into_iter().flat_map(|(steps, envelope)| steps.iter().map(|step| step.command(envelope)))
    }
}
