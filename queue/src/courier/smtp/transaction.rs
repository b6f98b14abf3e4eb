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

use mail::reply::{Severity, SmtpReply};

use super::answers::{EnvelopeCommand, EnvelopeReplies, RejectedPhase};
use super::command::EnvelopeCommands;
use super::connection::{CheckedMessage, DataMethod, PipelinedEnvelope, SmtpConnection, SmtpConnectionState};
use super::delivery::{SmtpFault, TransactionPhase, TransactionVerdict};
use super::load::{DataPayload, FINAL_DOT};
use super::shipment::OutgoingMessage;
use super::wire::PartialWriteError;

/// What goes in one flight with its envelope before we know whether the recipient is taken: about
/// what a fresh TCP connection sends before it hears back anyway (RFC 6928 and a doubling or two).
const ONE_FLIGHT_BYTES_MAX: u64 = 64 * 1024;
/// How long to look for a host's last words after it stopped reading.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// How a transaction ended, and what the connection is good for now.
pub(super) struct TransactionEnd {
    pub verdict: TransactionVerdict,
    pub reply: Option<SmtpReply>,
    pub phase: TransactionPhase,
    pub fault: Option<SmtpFault>,
    pub state: SmtpConnectionState,
}

impl TransactionEnd {
    pub(super) fn connection_lost(phase: TransactionPhase, fault: SmtpFault) -> Self {
        Self {
            verdict: TransactionVerdict::ConnectionLost,
            reply: None,
            phase,
            fault: Some(fault),
            state: SmtpConnectionState::Ended,
        }
    }

    fn unconfirmed(phase: TransactionPhase, fault: SmtpFault) -> Self {
        Self { verdict: TransactionVerdict::Unconfirmed, ..Self::connection_lost(phase, fault) }
    }

    pub(super) fn rejected((phase, reply): RejectedPhase, state: SmtpConnectionState) -> Self {
        let verdict = if reply.severity() == Severity::Permanent {
            TransactionVerdict::PermanentFailure
        } else {
            TransactionVerdict::TransientFailure
        };
        // 421 says that the host is about to hang up, whatever was asked (RFC 5321 3.8).
        let state = if reply.code == 421 { SmtpConnectionState::Ended } else { state };
        Self { verdict, reply: Some(reply), phase, fault: None, state }
    }
}

impl SmtpConnection {
    /// Delivers from whatever state the connection was left in.
    pub(super) async fn transact(
        &mut self,
        state: SmtpConnectionState,
        this: &OutgoingMessage,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        let parcel = match (self.check_message(this), &state) {
            (Ok(parcel), _) => parcel,
            (Err(_), SmtpConnectionState::Pipelined(_)) => {
                return TransactionEnd::connection_lost(TransactionPhase::Local, SmtpFault::WrongEnvelope);
            }
            (Err(end), _) => return TransactionEnd { state, ..*end },
        };
        match state {
            SmtpConnectionState::Quitting | SmtpConnectionState::Ended => {
                TransactionEnd::connection_lost(TransactionPhase::Idle, SmtpFault::ConnectionEnded)
            }
            SmtpConnectionState::Pipelined(primed) => {
                if primed.envelope != parcel.envelope {
                    return TransactionEnd::connection_lost(TransactionPhase::Local, SmtpFault::WrongEnvelope);
                }
                for step in self.envelope_commands(primed.reset) {
                    self.wire.transcript().sent_ahead(step.command(&primed.envelope));
                }
                let answers = self.send_envelope(&parcel.envelope, primed.reset, true).await;
                self.after_envelope(answers, &parcel, next).await
            }
            SmtpConnectionState::Idle { .. } if !self.allows_transaction() => {
                TransactionEnd::connection_lost(TransactionPhase::Idle, SmtpFault::ConnectionEnded)
            }
            SmtpConnectionState::Idle { reset } => {
                if let Err((fault, reply)) = self.wire.check_unsolicited() {
                    return TransactionEnd { reply, ..TransactionEnd::connection_lost(TransactionPhase::Idle, fault) };
                }
                self.transactions = self.transactions.saturating_add(1);
                let whole = self.data_method == DataMethod::Bdat
                    && self.capabilities().pipelining
                    && parcel.content.size_bytes() <= ONE_FLIGHT_BYTES_MAX;
                if whole {
                    return self.send_one_flight(&parcel, reset, next).await;
                }
                let answers = self.send_envelope(&parcel.envelope, reset, false).await;
                self.after_envelope(answers, &parcel, next).await
            }
        }
    }

    /// Sends an envelope, unless it was sent ahead, and hears its replies.
    async fn send_envelope(&mut self, envelope: &EnvelopeCommands, reset: bool, is_sent: bool) -> EnvelopeReplies {
        let mut answers = EnvelopeReplies::default();
        let steps = self.envelope_commands(reset);
        let in_group = is_sent || self.capabilities().pipelining;
        if in_group && !is_sent {
            let at_ms = self.wire.elapsed_ms();
            for step in steps {
                self.wire.transcript().sent(at_ms, step.command(envelope));
            }
            let group = steps.iter().map(|step| step.command(envelope));
            if let Err(failed) = self.wire.write(group, self.timeouts.block).await {
                // A host that hung up may have said why: for the transcript.
                let _ = self.wire.read_reply(LAST_REPLY_TIMEOUT).await;
                answers.fault = Some((TransactionPhase::Mail, failed.fault));
                return answers;
            }
        }
        for &step in steps {
            if !in_group && let Err(fault) = self.wire.send_command(step.command(envelope), self.timeouts.block).await {
                answers.fault = Some((step.phase(), fault));
                break;
            }
            let heard = self.wire.read_reply(self.reply_timeout(step)).await;
            let goes_on = answers.record_reply(step, heard, self.transactions > 1);
            if !goes_on || (!in_group && answers.rejection.is_some()) {
                break;
            }
        }
        answers
    }

    fn reply_timeout(&self, step: EnvelopeCommand) -> Duration {
        match step {
            EnvelopeCommand::Reset | EnvelopeCommand::Mail => self.timeouts.mail,
            EnvelopeCommand::Rcpt => self.timeouts.rcpt,
            EnvelopeCommand::Data => self.timeouts.data,
        }
    }

    /// What follows the envelope's replies.
    async fn after_envelope(
        &mut self,
        mut answers: EnvelopeReplies,
        parcel: &CheckedMessage<'_>,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        if let Some(end) = answers.decided_end() {
            return end;
        }
        match answers.rejection {
            None => self.send_content(parcel, next).await,
            Some(refusal) if !answers.awaits_content => {
                TransactionEnd::rejected(refusal, SmtpConnectionState::Idle { reset: true })
            }
            // The host took the recipient, refused something else and waits for content: even an
            // empty message would be a delivery.
            Some(refusal) if answers.rcpt_accepted => TransactionEnd::rejected(refusal, SmtpConnectionState::Ended),
            Some(refusal) => self.send_lone_dot(refusal, next).await,
        }
    }

    /// 354 although no recipient was taken: RFC 2920 3.1 says to send a lone dot. Whatever the host
    /// answers, the message went to nobody.
    async fn send_lone_dot(&mut self, refusal: RejectedPhase, next: Option<&OutgoingMessage>) -> TransactionEnd {
        let primed = self.pipeline_envelope(next, true);
        let at_ms = self.wire.elapsed_ms();
        self.wire.transcript().sent(at_ms, FINAL_DOT);
        let slices = std::iter::once(FINAL_DOT).chain(self.pipelined_commands(primed.as_ref()));
        if self.wire.write(slices, self.timeouts.block).await.is_err() {
            return TransactionEnd::rejected(refusal, SmtpConnectionState::Ended);
        }
        let state = match self.wire.read_reply(self.timeouts.data).await {
            Ok(reply) if reply.code != 421 && reply.severity() != Severity::Intermediate => {
                primed.map_or(SmtpConnectionState::Idle { reset: true }, SmtpConnectionState::Pipelined)
            }
            _ => SmtpConnectionState::Ended,
        };
        TransactionEnd::rejected(refusal, state)
    }

    /// Sends the content, and the next envelope behind it.
    async fn send_content(&mut self, parcel: &CheckedMessage<'_>, next: Option<&OutgoingMessage>) -> TransactionEnd {
        let primed = self.pipeline_envelope(next, self.data_method == DataMethod::Bdat);
        let load = DataPayload::new(self.data_method, &parcel.content);
        let at_ms = self.wire.elapsed_ms();
        if self.data_method == DataMethod::Bdat {
            self.wire.transcript().sent(at_ms, &load.head);
        }
        self.wire.transcript().content(at_ms, load.size_bytes);
        let farewell = self.record_pipelined_quit(at_ms);
        let slices = load.slices(parcel).chain(self.pipelined_commands(primed.as_ref())).chain(farewell);
        match self.wire.write(slices, self.timeouts.block).await {
            Err(failed) if failed.written_bytes < load.total_bytes() => self.write_failed(failed).await,
            // The end of the content is out: only the reply can tell, if it still comes.
            Err(_) => self.read_final_reply(SmtpConnectionState::Ended).await,
            Ok(()) => {
                let reset = self.data_method == DataMethod::Bdat;
                self.read_final_reply(self.state_after(primed, reset)).await
            }
        }
    }

    /// Envelope and content in one flight (BDAT), and the next envelope behind it.
    async fn send_one_flight(
        &mut self,
        parcel: &CheckedMessage<'_>,
        reset: bool,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        let primed = self.pipeline_envelope(next, true);
        let load = DataPayload::new(self.data_method, &parcel.content);
        let steps = self.envelope_commands(reset);
        let at_ms = self.wire.elapsed_ms();
        let mut before_bytes = 0;
        for step in steps {
            let command = step.command(&parcel.envelope);
            before_bytes += command.len() as u64;
            self.wire.transcript().sent(at_ms, command);
        }
        self.wire.transcript().sent(at_ms, &load.head);
        self.wire.transcript().content(at_ms, load.size_bytes);
        let farewell = self.record_pipelined_quit(at_ms);
        let slices = steps
            .iter()
            .map(|step| step.command(&parcel.envelope))
            .chain(load.slices(parcel))
            .chain(self.pipelined_commands(primed.as_ref()))
            .chain(farewell);
        let sent = self.wire.write(slices, self.timeouts.block).await;
        let is_whole = match &sent {
            Ok(()) => true,
            Err(failed) => failed.written_bytes >= before_bytes + load.total_bytes(),
        };
        let mut answers = self.send_envelope(&parcel.envelope, reset, true).await;
        if let Some(end) = answers.decided_end() {
            // Without a refusal the host may have taken all of it.
            let may_have_arrived = end.verdict == TransactionVerdict::ConnectionLost && is_whole;
            return if may_have_arrived {
                TransactionEnd { verdict: TransactionVerdict::Unconfirmed, ..end }
            } else {
                end
            };
        }
        if let (Err(failed), false) = (sent, is_whole) {
            return match answers.rejection {
                Some(refusal) => TransactionEnd::rejected(refusal, SmtpConnectionState::Ended),
                None => self.write_failed(failed).await,
            };
        }
        let state = self.state_after(primed, true);
        let Some(refusal) = answers.rejection else { return self.read_final_reply(state).await };
        // The host has read the content and dropped it (RFC 3030 2); its reply must be read too.
        let is_in_step = match self.wire.read_reply(self.timeouts.final_dot).await {
            Ok(reply) => reply.code != 421 && reply.severity() != Severity::Intermediate,
            Err(_) => false,
        };
        let state = if is_in_step && !answers.rcpt_accepted { state } else { SmtpConnectionState::Ended };
        TransactionEnd::rejected(refusal, state)
    }

    /// QUIT, if it goes behind this content, written down.
    fn record_pipelined_quit(&mut self, at_ms: u32) -> Option<&'static [u8]> {
        let farewell = self.pipelined_quit()?;
        self.wire.transcript().sent(at_ms, farewell);
        Some(farewell)
    }

    /// What the host stands ready for when the replies to this message are read.
    fn state_after(&self, primed: Option<PipelinedEnvelope>, reset: bool) -> SmtpConnectionState {
        match primed {
            Some(primed) => SmtpConnectionState::Pipelined(primed),
            None if self.pipelined_quit().is_some() => SmtpConnectionState::Quitting,
            None => SmtpConnectionState::Idle { reset },
        }
    }

    /// The reply to the content decides.
    async fn read_final_reply(&mut self, state: SmtpConnectionState) -> TransactionEnd {
        match self.wire.read_reply(self.timeouts.final_dot).await {
            Err(fault) => TransactionEnd::unconfirmed(TransactionPhase::Content, fault),
            Ok(reply) => match reply.severity() {
                Severity::Completed => TransactionEnd {
                    verdict: TransactionVerdict::Accepted,
                    reply: Some(reply),
                    phase: TransactionPhase::Content,
                    fault: None,
                    // Taken, so nothing is left open.
                    state: if matches!(state, SmtpConnectionState::Idle { .. }) {
                        SmtpConnectionState::Idle { reset: false }
                    } else {
                        state
                    },
                },
                Severity::Transient | Severity::Permanent => {
                    TransactionEnd::rejected((TransactionPhase::Content, reply), state)
                }
                Severity::Intermediate => {
                    let fault = SmtpFault::UnexpectedReply(reply.code);
                    TransactionEnd {
                        reply: Some(reply),
                        ..TransactionEnd::unconfirmed(TransactionPhase::Content, fault)
                    }
                }
            },
        }
    }

    /// The host stopped reading before the end of the content: it may have said why.
    async fn write_failed(&mut self, failed: PartialWriteError) -> TransactionEnd {
        match self.wire.read_reply(LAST_REPLY_TIMEOUT).await {
            Ok(reply) if matches!(reply.severity(), Severity::Transient | Severity::Permanent) => {
                TransactionEnd::rejected((TransactionPhase::Content, reply), SmtpConnectionState::Ended)
            }
            _ => TransactionEnd::connection_lost(TransactionPhase::Content, failed.fault),
        }
    }

    /// The steps of an envelope on this connection, RSET first if asked for.
    fn envelope_commands(&self, reset: bool) -> &'static [EnvelopeCommand] {
        match (reset, self.data_method) {
            (true, DataMethod::Data) => {
                &[EnvelopeCommand::Reset, EnvelopeCommand::Mail, EnvelopeCommand::Rcpt, EnvelopeCommand::Data]
            }
            (false, DataMethod::Data) => &[EnvelopeCommand::Mail, EnvelopeCommand::Rcpt, EnvelopeCommand::Data],
            (true, DataMethod::Bdat) => &[EnvelopeCommand::Reset, EnvelopeCommand::Mail, EnvelopeCommand::Rcpt],
            (false, DataMethod::Bdat) => &[EnvelopeCommand::Mail, EnvelopeCommand::Rcpt],
        }
    }

    /// The commands of an envelope that goes ahead, if one does.
    fn pipelined_commands<'a>(
        &self,
        primed: Option<&'a PipelinedEnvelope>,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let steps = primed.map(|primed| (self.envelope_commands(primed.reset), &primed.envelope));
        steps.into_iter().flat_map(|(steps, envelope)| steps.iter().map(|step| step.command(envelope)))
    }
}
