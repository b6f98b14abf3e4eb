//! The commands of an envelope and the evaluation of their replies.

use message::reply::{Severity, SmtpReply};

use super::command::EnvelopeCommands;
use super::connection::SmtpConnectionState;
use super::delivery::{SmtpFault, TransactionPhase};
use super::transaction::TransactionEnd;

const RSET: &[u8] = b"RSET\r\n";
const DATA: &[u8] = b"DATA\r\n";

/// The reply that decides, and the phase it belongs to.
pub(super) type RejectedPhase = (TransactionPhase, SmtpReply);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvelopeCommand {
    Reset,
    Mail,
    Rcpt,
    Data,
}

impl EnvelopeCommand {
    pub(super) fn phase(self) -> TransactionPhase {
        match self {
            Self::Reset | Self::Mail => TransactionPhase::Mail,
            Self::Rcpt => TransactionPhase::Rcpt,
            Self::Data => TransactionPhase::Data,
        }
    }

    pub(super) fn command(self, envelope: &EnvelopeCommands) -> &[u8] {
        match self {
            Self::Reset => RSET,
            Self::Mail => envelope.mail(),
            Self::Rcpt => envelope.rcpt(),
            Self::Data => DATA,
        }
    }
}

/// Evaluated replies of an envelope.
#[derive(Debug, Default)]
pub(super) struct EnvelopeReplies {
    /// The first rejection, which decides.
    pub rejection: Option<RejectedPhase>,
    /// Why no further reply is expected, unless because of a 421.
    pub fault: Option<(TransactionPhase, SmtpFault)>,
    pub rcpt_accepted: bool,
    /// True after 354: the host waits for content.
    pub awaits_content: bool,
    /// True after a 421: the host closes the connection and sends no further replies.
    pub closing: bool,
}

impl EnvelopeReplies {
    /// Evaluates one reply. Returns whether another reply is expected.
    pub(super) fn record_reply(
        &mut self,
        step: EnvelopeCommand,
        reply_result: Result<SmtpReply, SmtpFault>,
        is_reused: bool,
    ) -> bool {
        let reply = match reply_result {
            Ok(reply) => reply,
            Err(fault) => {
                self.fault = Some((step.phase(), fault));
                return false;
            }
        };
        self.closing = reply.code == 421;
        match (reply.severity(), step) {
            (Severity::Completed, EnvelopeCommand::Reset | EnvelopeCommand::Mail) => {}
            (Severity::Completed, EnvelopeCommand::Rcpt) => self.rcpt_accepted = true,
            (Severity::Intermediate, EnvelopeCommand::Data) => self.awaits_content = true,
            (Severity::Transient, EnvelopeCommand::Reset) if self.closing => {
                self.rejection.get_or_insert((TransactionPhase::Mail, reply));
            }
            // RSET cannot fail (RFC 5321 4.1.1.5). A 503 to MAIL on a reused connection does not concern the message:
            // we and the host disagree about the session's state.
            (_, EnvelopeCommand::Reset) => {
                self.fault = Some((TransactionPhase::Mail, SmtpFault::UnexpectedReply(reply.code)))
            }
            (Severity::Permanent, EnvelopeCommand::Mail) if reply.code == 503 && is_reused => {
                self.fault = Some((TransactionPhase::Mail, SmtpFault::UnexpectedReply(503)));
            }
            (Severity::Transient | Severity::Permanent, _) => {
                self.rejection.get_or_insert((step.phase(), reply));
            }
            (Severity::Completed | Severity::Intermediate, _) => {
                self.fault = Some((step.phase(), SmtpFault::UnexpectedReply(reply.code)));
            }
        }
        self.fault.is_none() && !self.closing
    }

    /// Returns the end of the transaction if it is decided already; otherwise the caller decides.
    pub(super) fn decided_end(&mut self) -> Option<TransactionEnd> {
        let is_over = self.closing || self.fault.is_some();
        match (self.rejection.take(), self.fault) {
            (Some(refusal), _) if is_over => Some(TransactionEnd::rejected(refusal, SmtpConnectionState::Ended)),
            (None, Some((phase, fault))) => Some(TransactionEnd::connection_lost(phase, fault)),
            (refusal, _) => {
                self.rejection = refusal;
                None
            }
        }
    }
}
