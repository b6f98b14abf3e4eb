//! An envelope's commands, and what their replies come to.

use mail::reply::{Severity, SmtpReply};

use super::command::EnvelopeCommands;
use super::connection::SmtpConnectionState;
use super::delivery::{SmtpFault, TransactionPhase};
use super::transaction::TransactionEnd;

const RSET: &[u8] = b"RSET\r\n";
const DATA: &[u8] = b"DATA\r\n";

/// The reply that decides, and what it answered.
pub(super) type RejectedPhase = (TransactionPhase, SmtpReply);

/// The commands of an envelope.
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

/// What an envelope's replies came to.
#[derive(Debug, Default)]
pub(super) struct EnvelopeReplies {
    /// The first refusal: it decides.
    pub rejection: Option<RejectedPhase>,
    /// Why no further reply can be expected, when it is not for 421.
    pub fault: Option<(TransactionPhase, SmtpFault)>,
    pub rcpt_accepted: bool,
    /// The host waits for content.
    pub awaits_content: bool,
    /// A 421 came: the host hangs up, and the rest of the group gets no reply.
    pub closing: bool,
}

impl EnvelopeReplies {
    /// Takes one reply; whether the next one can be expected.
    pub(super) fn record_reply(
        &mut self,
        step: EnvelopeCommand,
        heard: Result<SmtpReply, SmtpFault>,
        is_reused: bool,
    ) -> bool {
        let reply = match heard {
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
            // RSET cannot fail (RFC 5321 4.1.1.5), and a MAIL that is out of sequence behind an
            // earlier transaction says nothing of the message: the two of us count differently.
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

    /// What is decided already; the rest is for the one who asked.
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
