//! One SMTP transaction: envelope, replies, content, final reply.
//!
//! ```text
//!                    ┌ rejected ─► (on 354: a lone dot) ─► verdict from the rejection
//! envelope ─► replies┤
//!                    └ accepted ─► content + next envelope in one write ─► final reply ─► verdict
//! ```
//!
//! With PIPELINING, the envelope is one group (RFC 2920 3.1), and the next message's envelope follows the content, so
//! that its replies have arrived, or almost, when read. With CHUNKING too, the first message on a connection is
//! sent whole in one flight (RFC 3030 4.2).
//!
//! Invariants, whatever a host replies: every reply that a command will get is read before the next message, or the
//! connection ends. A message counts as accepted only by the 2yz to its own content. Content is sent only after every
//! command of its envelope was accepted, or in the one flight whose replies then decide. Anything that RFC 5321 does
//! not foresee ends the connection.

use std::time::Duration;

use message::reply::{Severity, SmtpReply};

use super::command::EnvelopeCommands;
use super::connection::{CheckedMessage, DataMethod, PipelinedEnvelope, SmtpConnection, SmtpConnectionState};
use super::data_payload::{DataPayload, FINAL_DOT};
use super::delivery::{SmtpFault, TransactionPhase, TransactionVerdict};
use super::envelope_replies::{EnvelopeCommand, EnvelopeReplies, RejectedPhase};
use super::outgoing_message::OutgoingMessage;
use super::wire::PartialWriteError;

/// Limit of content sent in one flight with its envelope, before the recipient is known to be accepted: about what a
/// fresh TCP connection sends before the first ACK matters (RFC 6928 and a doubling or two).
const ONE_FLIGHT_BYTES_MAX: u64 = 64 * 1024;
/// Timeout for a host's final reply after it stopped reading.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of a transaction, and the connection's state after it.
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

    fn accepted(reply: SmtpReply, state: SmtpConnectionState) -> Self {
        let (verdict, phase) = (TransactionVerdict::Accepted, TransactionPhase::Content);
        Self { verdict, reply: Some(reply), phase, fault: None, state }
    }

    pub(super) fn rejected((phase, reply): RejectedPhase, state: SmtpConnectionState) -> Self {
        let verdict = if reply.severity() == Severity::Permanent {
            TransactionVerdict::PermanentFailure
        } else {
            TransactionVerdict::TransientFailure
        };
        // 421 means that the host closes the connection, whatever the command (RFC 5321 3.8).
        let state = if reply.code == 421 { SmtpConnectionState::Ended } else { state };
        Self { verdict, reply: Some(reply), phase, fault: None, state }
    }
}

impl SmtpConnection {
    /// Delivers a message, from any state of the connection.
    pub(super) async fn transact(
        &mut self,
        state: SmtpConnectionState,
        message: &OutgoingMessage,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        let checked = match (self.check_message(message), &state) {
            (Ok(checked), _) => checked,
            (Err(_), SmtpConnectionState::Pipelined(_)) => {
                return TransactionEnd::connection_lost(TransactionPhase::Local, SmtpFault::WrongEnvelope);
            }
            (Err(end), _) => return TransactionEnd { state, ..*end },
        };
        match state {
            SmtpConnectionState::Quitting | SmtpConnectionState::Ended => {
                TransactionEnd::connection_lost(TransactionPhase::Idle, SmtpFault::ConnectionEnded)
            }
            SmtpConnectionState::Pipelined(pipelined) => {
                if pipelined.envelope != checked.envelope {
                    return TransactionEnd::connection_lost(TransactionPhase::Local, SmtpFault::WrongEnvelope);
                }
                for step in self.envelope_commands(pipelined.reset) {
                    self.wire.transcript().sent_ahead(step.command(&pipelined.envelope));
                }
                let replies = self.send_envelope(&checked.envelope, pipelined.reset, true).await;
                self.after_envelope(replies, &checked, next).await
            }
            SmtpConnectionState::Idle { .. } if !self.allows_transaction() => {
                TransactionEnd::connection_lost(TransactionPhase::Idle, SmtpFault::ConnectionEnded)
            }
            SmtpConnectionState::Idle { reset } => {
                if let Err((fault, reply)) = self.wire.check_unsolicited() {
                    return TransactionEnd { reply, ..TransactionEnd::connection_lost(TransactionPhase::Idle, fault) };
                }
                self.transactions = self.transactions.saturating_add(1);
                let is_single_write = self.data_method == DataMethod::Bdat
                    && self.capabilities.pipelining
                    && checked.content.size_bytes() <= ONE_FLIGHT_BYTES_MAX;
                if is_single_write {
                    return self.send_one_flight(&checked, reset, next).await;
                }
                let replies = self.send_envelope(&checked.envelope, reset, false).await;
                self.after_envelope(replies, &checked, next).await
            }
        }
    }

    /// Sends an envelope, unless it was pipelined already, and reads its replies.
    async fn send_envelope(&mut self, envelope: &EnvelopeCommands, reset: bool, is_sent: bool) -> EnvelopeReplies {
        let mut replies = EnvelopeReplies::default();
        let steps = self.envelope_commands(reset);
        let in_group = is_sent || self.capabilities.pipelining;
        if in_group && !is_sent {
            let at_ms = self.wire.elapsed_ms();
            for step in steps {
                self.wire.transcript().sent(at_ms, step.command(envelope));
            }
            let group = steps.iter().map(|step| step.command(envelope));
            if let Err(failed) = self.wire.write(group, self.timeouts.block).await {
                // A host that closed the connection may have sent a reason: record it in the transcript.
                let _ = self.wire.read_reply(LAST_REPLY_TIMEOUT).await;
                replies.fault = Some((TransactionPhase::Mail, failed.fault));
                return replies;
            }
        }
        for &step in steps {
            if !in_group && let Err(fault) = self.wire.send_command(step.command(envelope), self.timeouts.block).await {
                replies.fault = Some((step.phase(), fault));
                break;
            }
            let result = self.wire.read_reply(self.reply_timeout(step)).await;
            let continues = replies.record_reply(step, result, self.transactions > 1);
            if !continues || (!in_group && replies.rejection.is_some()) {
                break;
            }
        }
        replies
    }

    fn reply_timeout(&self, step: EnvelopeCommand) -> Duration {
        match step {
            EnvelopeCommand::Reset | EnvelopeCommand::Mail => self.timeouts.mail,
            EnvelopeCommand::Rcpt => self.timeouts.rcpt,
            EnvelopeCommand::Data => self.timeouts.data,
        }
    }

    /// Continues after the replies to the envelope.
    async fn after_envelope(
        &mut self,
        mut replies: EnvelopeReplies,
        checked: &CheckedMessage<'_>,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        if let Some(end) = replies.decided_end() {
            return end;
        }
        match replies.rejection {
            None => self.send_content(checked, next).await,
            Some(refusal) if !replies.awaits_content => {
                TransactionEnd::rejected(refusal, SmtpConnectionState::Idle { reset: true })
            }
            // The host accepted the recipient, rejected something else and waits for content: even an empty message
            // would be delivered, so close the connection.
            Some(refusal) if replies.rcpt_accepted => TransactionEnd::rejected(refusal, SmtpConnectionState::Ended),
            Some(refusal) => self.send_lone_dot(refusal, next).await,
        }
    }

    /// Handles a 354 although no recipient was accepted: RFC 2920 3.1 requires a lone dot. Whatever the host
    /// replies, the message has no recipient.
    async fn send_lone_dot(&mut self, refusal: RejectedPhase, next: Option<&OutgoingMessage>) -> TransactionEnd {
        let pipelined = self.pipeline_envelope(next, true);
        let at_ms = self.wire.elapsed_ms();
        self.wire.transcript().sent(at_ms, FINAL_DOT);
        let slices = std::iter::once(FINAL_DOT).chain(self.pipelined_commands(pipelined.as_ref()));
        if self.wire.write(slices, self.timeouts.block).await.is_err() {
            return TransactionEnd::rejected(refusal, SmtpConnectionState::Ended);
        }
        let state = match self.wire.read_reply(self.timeouts.data).await {
            Ok(reply) if reply.code != 421 && reply.severity() != Severity::Intermediate => {
                pipelined.map_or(SmtpConnectionState::Idle { reset: true }, SmtpConnectionState::Pipelined)
            }
            _ => SmtpConnectionState::Ended,
        };
        TransactionEnd::rejected(refusal, state)
    }

    /// Sends the content, with the next envelope behind it.
    async fn send_content(&mut self, checked: &CheckedMessage<'_>, next: Option<&OutgoingMessage>) -> TransactionEnd {
        let pipelined = self.pipeline_envelope(next, self.data_method == DataMethod::Bdat);
        let load = DataPayload::new(self.data_method, &checked.content);
        let at_ms = self.wire.elapsed_ms();
        if self.data_method == DataMethod::Bdat {
            self.wire.transcript().sent(at_ms, &load.head);
        }
        self.wire.transcript().content(at_ms, load.size_bytes);
        let quit = self.record_pipelined_quit(at_ms);
        let slices = load.slices(checked).chain(self.pipelined_commands(pipelined.as_ref())).chain(quit);
        match self.wire.write(slices, self.timeouts.block).await {
            Err(failed) if failed.written_bytes < load.total_bytes() => self.write_failed(failed).await,
            // The end of the content was sent: only the final reply can decide, if it still arrives.
            Err(_) => self.read_final_reply(SmtpConnectionState::Ended).await,
            Ok(()) => {
                let reset = self.data_method == DataMethod::Bdat;
                self.read_final_reply(self.state_after(pipelined, reset)).await
            }
        }
    }

    /// Sends envelope and content in one flight (BDAT), with the next envelope behind it.
    async fn send_one_flight(
        &mut self,
        checked: &CheckedMessage<'_>,
        reset: bool,
        next: Option<&OutgoingMessage>,
    ) -> TransactionEnd {
        let pipelined = self.pipeline_envelope(next, true);
        let load = DataPayload::new(self.data_method, &checked.content);
        let steps = self.envelope_commands(reset);
        let at_ms = self.wire.elapsed_ms();
        let mut before_bytes = 0;
        for step in steps {
            let command = step.command(&checked.envelope);
            before_bytes += command.len() as u64;
            self.wire.transcript().sent(at_ms, command);
        }
        self.wire.transcript().sent(at_ms, &load.head);
        self.wire.transcript().content(at_ms, load.size_bytes);
        let quit = self.record_pipelined_quit(at_ms);
        let slices = steps
            .iter()
            .map(|step| step.command(&checked.envelope))
            .chain(load.slices(checked))
            .chain(self.pipelined_commands(pipelined.as_ref()))
            .chain(quit);
        let sent = self.wire.write(slices, self.timeouts.block).await;
        let is_complete = match &sent {
            Ok(()) => true,
            Err(failed) => failed.written_bytes >= before_bytes + load.total_bytes(),
        };
        let mut replies = self.send_envelope(&checked.envelope, reset, true).await;
        if let Some(end) = replies.decided_end() {
            // Without a rejection, the host may have accepted the message.
            let may_have_arrived = end.verdict == TransactionVerdict::ConnectionLost && is_complete;
            return if may_have_arrived {
                TransactionEnd { verdict: TransactionVerdict::Unconfirmed, ..end }
            } else {
                end
            };
        }
        if let (Err(failed), false) = (sent, is_complete) {
            return match replies.rejection {
                Some(refusal) => TransactionEnd::rejected(refusal, SmtpConnectionState::Ended),
                None => self.write_failed(failed).await,
            };
        }
        let state = self.state_after(pipelined, true);
        let Some(refusal) = replies.rejection else { return self.read_final_reply(state).await };
        // The host has read and discarded the content (RFC 3030 2); its reply must be read too.
        let is_in_step = match self.wire.read_reply(self.timeouts.final_dot).await {
            Ok(reply) => reply.code != 421 && reply.severity() != Severity::Intermediate,
            Err(_) => false,
        };
        let state = if is_in_step && !replies.rcpt_accepted { state } else { SmtpConnectionState::Ended };
        TransactionEnd::rejected(refusal, state)
    }

    /// Records QUIT in the transcript and returns it, if it follows this content.
    fn record_pipelined_quit(&mut self, at_ms: u32) -> Option<&'static [u8]> {
        let quit = self.pipelined_quit()?;
        self.wire.transcript().sent(at_ms, quit);
        Some(quit)
    }

    /// State of the connection after the replies to this message.
    fn state_after(&self, pipelined: Option<PipelinedEnvelope>, reset: bool) -> SmtpConnectionState {
        match pipelined {
            Some(pipelined) => SmtpConnectionState::Pipelined(pipelined),
            None if self.pipelined_quit().is_some() => SmtpConnectionState::Quitting,
            None => SmtpConnectionState::Idle { reset },
        }
    }

    /// Reads the reply to the content, which decides.
    async fn read_final_reply(&mut self, state: SmtpConnectionState) -> TransactionEnd {
        match self.wire.read_reply(self.timeouts.final_dot).await {
            // Only the code decides (RFC 5321 4.2), although the reply is malformed: otherwise the message would be
            // sent again.
            Err(SmtpFault::Malformed(_)) if let Some(reply) = self.wire.positive_reply() => {
                TransactionEnd::accepted(reply, SmtpConnectionState::Ended)
            }
            Err(fault) => TransactionEnd::unconfirmed(TransactionPhase::Content, fault),
            Ok(reply) => match reply.severity() {
                Severity::Completed => match state {
                    // The transaction is complete: no RSET is needed.
                    SmtpConnectionState::Idle { .. } => {
                        TransactionEnd::accepted(reply, SmtpConnectionState::Idle { reset: false })
                    }
                    state => TransactionEnd::accepted(reply, state),
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

    /// The host stopped reading before the end of the content: it may have sent a reason.
    async fn write_failed(&mut self, failed: PartialWriteError) -> TransactionEnd {
        match self.wire.read_reply(LAST_REPLY_TIMEOUT).await {
            Ok(reply) if matches!(reply.severity(), Severity::Transient | Severity::Permanent) => {
                TransactionEnd::rejected((TransactionPhase::Content, reply), SmtpConnectionState::Ended)
            }
            _ => TransactionEnd::connection_lost(TransactionPhase::Content, failed.fault),
        }
    }

    /// Commands of an envelope on this connection, with RSET first if `reset`.
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

    /// Commands of the pipelined envelope, if there is one.
    fn pipelined_commands<'a>(
        &self,
        pipelined: Option<&'a PipelinedEnvelope>,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let steps = pipelined.map(|pipelined| (self.envelope_commands(pipelined.reset), &pipelined.envelope));
        steps.into_iter().flat_map(|(steps, envelope)| steps.iter().map(|step| step.command(envelope)))
    }
}
