//! An envelope's commands, and what their replies come to.

use mail::reply::{Reply, Severity};

use super::command::Envelope;
use super::connection::State;
use super::delivery::{Fault, Phase};
use super::transaction::End;

const RSET: &[u8] = b"RSET\r\n";
const DATA: &[u8] = b"DATA\r\n";

/// The reply that decides, and what it answered.
pub(super) type Refusal = (Phase, Reply);

/// The commands of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Reset,
    Mail,
    Rcpt,
    Data,
}

impl Step {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::Reset | Self::Mail => Phase::Mail,
            Self::Rcpt => Phase::Rcpt,
            Self::Data => Phase::Data,
        }
    }

    pub(super) fn command(self, envelope: &Envelope) -> &[u8] {
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
pub(super) struct Answers {
    /// The first refusal: it decides.
    pub refusal: Option<Refusal>,
    /// Why no further reply can be expected, when it is not for 421.
    pub stop: Option<(Phase, Fault)>,
    pub rcpt_taken: bool,
    /// The host waits for content.
    pub go: bool,
    /// A 421 came: the host hangs up, and the rest of the group gets no reply.
    pub closing: bool,
}

impl Answers {
    /// Takes one reply; whether the next one can be expected.
    pub(super) fn take(&mut self, step: Step, heard: Result<Reply, Fault>, is_reused: bool) -> bool {
        let reply = match heard {
            Ok(reply) => reply,
            Err(fault) => {
                self.stop = Some((step.phase(), fault));
                return false;
            }
        };
        self.closing = reply.code == 421;
        match (reply.severity(), step) {
            (Severity::Completed, Step::Reset | Step::Mail) => {}
            (Severity::Completed, Step::Rcpt) => self.rcpt_taken = true,
            (Severity::Intermediate, Step::Data) => self.go = true,
            (Severity::Transient, Step::Reset) if self.closing => {
                self.refusal.get_or_insert((Phase::Mail, reply));
            }
            // RSET cannot fail (RFC 5321 4.1.1.5), and a MAIL that is out of sequence behind an
            // earlier transaction says nothing of the message: the two of us count differently.
            (_, Step::Reset) => self.stop = Some((Phase::Mail, Fault::Unexpected(reply.code))),
            (Severity::Permanent, Step::Mail) if reply.code == 503 && is_reused => {
                self.stop = Some((Phase::Mail, Fault::Unexpected(503)));
            }
            (Severity::Transient | Severity::Permanent, _) => {
                self.refusal.get_or_insert((step.phase(), reply));
            }
            (Severity::Completed | Severity::Intermediate, _) => {
                self.stop = Some((step.phase(), Fault::Unexpected(reply.code)));
            }
        }
        self.stop.is_none() && !self.closing
    }

    /// What is decided already; the rest is for the one who asked.
    pub(super) fn early_end(&mut self) -> Option<End> {
        let is_over = self.closing || self.stop.is_some();
        match (self.refusal.take(), self.stop) {
            (Some(refusal), _) if is_over => Some(End::refused(refusal, State::Ended)),
            (None, Some((phase, fault))) => Some(End::broken(phase, fault)),
            (refusal, _) => {
                self.refusal = refusal;
                None
            }
        }
    }
}
