//! A connection that is ready for messages, and its state between them.

use std::net::IpAddr;
use std::time::Duration;

use message::reply::{Enhanced, SmtpReply};
use message::tls_report::{self, TlsResultType};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command::EnvelopeCommands;
use super::content::CheckedBody;
use super::delivery::{SmtpFault, TransactionPhase, TransactionResult, TransactionVerdict};
use super::dial::{EhloResponse, SmtpDialer};
use super::ehlo::EhloCapabilities;
use super::outgoing_message::OutgoingMessage;
use super::timeouts::SmtpTimeouts;
use super::tls::OutboundTls;
use super::transaction::TransactionEnd;
use super::transcript::Transcript;
use super::wire::SmtpWire;

/// Ends a session (RFC 5321 4.1.1.10).
const QUIT: &[u8] = b"QUIT\r\n";

/// One connection to one host, reused for many messages.
pub struct SmtpConnection {
    pub(super) wire: SmtpWire,
    pub(super) timeouts: SmtpTimeouts,
    pub(super) data_method: DataMethod,
    pub(super) state: SmtpConnectionState,
    /// MAIL commands sent, including pipelined ones.
    pub(super) transactions: u32,
    pub capabilities: EhloCapabilities,
    pub ehlo_name: String,
    tls: Option<OutboundTls>,
    tls_fault: Option<tls_report::TlsFault>,
    pub(crate) source_ip: Option<IpAddr>,
    ordinal: u32,
    /// True to send QUIT right behind the next content.
    quits_after_content: bool,
}

/// Command that transfers content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataMethod {
    /// DATA, dot-stuffed (RFC 5321 4.1.1.4).
    Data,
    /// BDAT, length-prefixed (RFC 3030).
    Bdat,
}

/// State of the session between messages.
pub(super) enum SmtpConnectionState {
    /// Ready for an envelope. `reset`: RSET must precede it, because the last envelope is open or partly rejected.
    Idle { reset: bool },
    /// The next envelope was sent already; its replies and content follow.
    Pipelined(PipelinedEnvelope),
    /// QUIT was sent behind the last content; its reply follows.
    Quitting,
    /// The connection cannot be used. A dropped `deliver` also leaves this state.
    Ended,
}

/// An envelope that was sent behind the content of the message before.
pub(super) struct PipelinedEnvelope {
    pub envelope: EnvelopeCommands,
    /// True if RSET preceded it.
    pub reset: bool,
}

/// A message that was checked and can be sent on this connection.
pub(super) struct CheckedMessage<'a> {
    pub message: &'a OutgoingMessage,
    pub content: CheckedBody,
    pub envelope: EnvelopeCommands,
}

impl SmtpConnection {
    pub(super) fn new(dialer: &SmtpDialer, wire: SmtpWire, ehlo: EhloResponse, tls: Option<OutboundTls>) -> Self {
        let EhloResponse { capabilities, name: ehlo_name } = ehlo;
        let data_method = if dialer.chunking && capabilities.chunking { DataMethod::Bdat } else { DataMethod::Data };
        Self {
            wire,
            timeouts: dialer.timeouts,
            data_method,
            state: SmtpConnectionState::Idle { reset: false },
            transactions: 0,
            capabilities,
            ehlo_name,
            tls,
            tls_fault: None,
            source_ip: None,
            ordinal: 0,
            quits_after_content: false,
        }
    }

    /// Sets the source address and the TLS fault, where given.
    pub(super) fn with_facts(self, local: Option<IpAddr>, tls_fault: Option<tls_report::TlsFault>) -> Self {
        Self { source_ip: local.or(self.source_ip), tls_fault: tls_fault.or(self.tls_fault), ..self }
    }

    /// The TLS fault of a connection that may send mail despite it: TLS is missing or failed, or the certificate is
    /// invalid.
    pub fn tls_fault(&self) -> Option<&tls_report::TlsFault> {
        self.tls_fault.as_ref()
    }

    /// Sends `message` and returns its result. If `next` is given, its envelope is pipelined right behind the content
    /// of `message` (RFC 2920 3.1 allows content as the first part of a group), so that each message costs one round trip.
    ///
    /// After a call with `next`, only `deliver(next, …)`, `quit` or dropping the connection make sense. Content is
    /// never sent under another message's envelope: such a call returns [`TransactionVerdict::ConnectionLost`].
    /// Dropping the future before it completes ends the connection.
    pub async fn deliver(&mut self, message: &OutgoingMessage, next: Option<&OutgoingMessage>) -> TransactionResult {
        let started = Instant::now();
        let state = std::mem::replace(&mut self.state, SmtpConnectionState::Ended);
        self.ordinal = self.ordinal.saturating_add(1);
        // The transcript of the first delivery includes the dial.
        if self.ordinal > 1 {
            self.wire.begin_transcript(Transcript::with_typical_capacity(), started);
        }
        let end = self.transact(state, message, next).await;
        self.state = end.state;
        TransactionResult {
            verdict: end.verdict,
            reply: end.reply,
            phase: end.phase,
            fault: end.fault,
            transcript: self.wire.begin_transcript(Transcript::default(), started),
            duration: started.elapsed(),
            tls: self.tls,
            ordinal: self.ordinal,
        }
    }

    /// Sends `message` as the last message of the connection. With PIPELINING, QUIT is sent right behind the content
    /// (RFC 2920 3.1), which saves a round trip. Call [`Self::quit`] afterwards all the same.
    pub async fn deliver_last(&mut self, message: &OutgoingMessage) -> TransactionResult {
        self.quits_after_content = self.capabilities.pipelining;
        self.deliver(message, None).await
    }

    /// Sets the token that cancels deliveries. A cancelled delivery ends with [`SmtpFault::Cancelled`]; its result is
    /// unconfirmed if the end of the content was sent already.
    pub fn cancel_with(&mut self, stop: CancellationToken) {
        self.wire.cancel_with(stop);
    }

    /// Returns whether another message can be delivered. If the host closed the connection meanwhile, `deliver` detects
    /// it and returns [`TransactionPhase::Idle`] with nothing sent.
    pub fn is_usable(&self) -> bool {
        match self.state {
            SmtpConnectionState::Idle { .. } => self.allows_transaction(),
            SmtpConnectionState::Pipelined(_) => true,
            SmtpConnectionState::Quitting | SmtpConnectionState::Ended => false,
        }
    }

    /// TLS parameters; `None` for a plaintext connection.
    pub fn tls(&self) -> Option<OutboundTls> {
        self.tls
    }

    /// Why the connection is in plaintext although the host offered TLS.
    pub fn plaintext_reason(&self) -> Option<&str> {
        let failed = |fault: &&tls_report::TlsFault| fault.result != TlsResultType::StarttlsNotSupported;
        self.tls_fault.as_ref().filter(|_| self.tls.is_none()).filter(failed).map(|fault| fault.reason.as_str())
    }

    /// Sends QUIT and closes the connection. Between a pipelined envelope and its content, QUIT is not possible: the
    /// connection is just closed, and the host discards the envelope.
    pub async fn quit(mut self) {
        let limit: Duration = self.timeouts.quit;
        let sends_quit = match self.state {
            SmtpConnectionState::Idle { .. } => self.wire.send_command(QUIT, limit).await.is_ok(),
            SmtpConnectionState::Quitting => true,
            SmtpConnectionState::Pipelined(_) | SmtpConnectionState::Ended => return,
        };
        if sends_quit {
            // The reply does not matter.
            let _ = self.wire.read_reply(limit).await;
        }
        self.wire.close(limit).await;
    }

    /// QUIT, if it follows the content.
    pub(super) fn pipelined_quit(&self) -> Option<&'static [u8]> {
        self.quits_after_content.then_some(QUIT)
    }

    /// Returns whether the host allows another transaction in this session (RFC 9422).
    pub(super) fn allows_transaction(&self) -> bool {
        self.capabilities.transactions_max.is_none_or(|max| self.transactions < max)
    }

    /// Checks a message before any of it is sent.
    pub(super) fn check_message<'a>(
        &self,
        message: &'a OutgoingMessage,
    ) -> Result<CheckedMessage<'a>, Box<TransactionEnd>> {
        let refuse = |verdict, reply, fault| {
            let state = SmtpConnectionState::Ended;
            Box::new(TransactionEnd { verdict, reply: Some(reply), phase: TransactionPhase::Local, fault, state })
        };
        let content = CheckedBody::check(&message.body).map_err(|fault| {
            let reply = SmtpReply::new(554, Enhanced::new(5, 6, 0), fault.to_string());
            refuse(TransactionVerdict::PermanentFailure, reply, Some(SmtpFault::Content(fault)))
        })?;
        if let Some(max) = self.capabilities.size_bytes_max.filter(|&max| content.size_bytes() > max) {
            let text =
                format!("The message has {} bytes; {} accepts at most {max}", content.size_bytes(), self.ehlo_name);
            return Err(refuse(
                TransactionVerdict::PermanentFailure,
                SmtpReply::new(552, Enhanced::new(5, 3, 4), text),
                None,
            ));
        }
        if message.needs_smtputf8() && !self.capabilities.smtputf8 {
            let text = "The host does not support internationalised addresses or headers (SMTPUTF8)";
            return Err(refuse(
                TransactionVerdict::Unsupported,
                SmtpReply::new(553, Enhanced::new(5, 6, 7), text),
                None,
            ));
        }
        // RFC 8689 4.2.1: requires REQUIRETLS to be offered, over TLS with a verified certificate.
        let keeps_tls = self.capabilities.require_tls && self.tls.is_some_and(|tls| tls.verified);
        if message.require_tls && !keeps_tls {
            let text = "The message requires REQUIRETLS, which the host does not support";
            return Err(refuse(
                TransactionVerdict::Unsupported,
                SmtpReply::new(550, Enhanced::new(5, 7, 30), text),
                None,
            ));
        }
        match EnvelopeCommands::render(message, content.size_bytes(), &self.capabilities) {
            Some(envelope) => Ok(CheckedMessage { message, content, envelope }),
            None => {
                let text = "The address cannot be used in an SMTP command";
                Err(refuse(
                    TransactionVerdict::PermanentFailure,
                    SmtpReply::new(553, Enhanced::new(5, 1, 3), text),
                    None,
                ))
            }
        }
    }

    /// Prepares the envelope of `next`, if it can be pipelined.
    pub(super) fn pipeline_envelope(
        &mut self,
        next: Option<&OutgoingMessage>,
        reset: bool,
    ) -> Option<PipelinedEnvelope> {
        if !self.capabilities.pipelining || !self.allows_transaction() {
            return None;
        }
        let checked = self.check_message(next?).ok()?;
        self.transactions = self.transactions.saturating_add(1);
        Some(PipelinedEnvelope { envelope: checked.envelope, reset })
    }
}
