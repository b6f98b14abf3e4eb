//! A connection that is ready for messages, and what it remembers between them.

use std::net::IpAddr;
use std::time::Duration;

use mail::reply::{Enhanced, SmtpReply};
use mail::tls_report::{self, TlsResultType};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capabilities::EhloCapabilities;
use super::command::EnvelopeCommands;
use super::content::CheckedBody;
use super::delivery::{SmtpFault, TransactionPhase, TransactionResult, TransactionVerdict};
use super::dial::{EhloResponse, SmtpDialer};
use super::shipment::OutgoingMessage;
use super::timeouts::SmtpTimeouts;
use super::tls::OutboundTls;
use super::transaction::TransactionEnd;
use super::transcript::Transcript;
use super::wire::SmtpWire;

/// How a session ends (RFC 5321 4.1.1.10).
const QUIT: &[u8] = b"QUIT\r\n";

/// One connection to one host. Kept for as many messages as there are.
pub struct SmtpConnection {
    pub(super) wire: SmtpWire,
    pub(super) timeouts: SmtpTimeouts,
    pub(super) data_method: DataMethod,
    pub(super) state: SmtpConnectionState,
    /// MAIL commands sent, those sent ahead included.
    pub(super) transactions: u32,
    capabilities: EhloCapabilities,
    ehlo_name: String,
    tls: Option<OutboundTls>,
    tls_fault: Option<tls_report::TlsFault>,
    source_ip: Option<IpAddr>,
    ordinal: u32,
    /// Whether QUIT goes behind the next content.
    quits_after_content: bool,
}

/// How content goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataMethod {
    /// DATA, dot-stuffed (RFC 5321 4.1.1.4).
    Data,
    /// BDAT, counted (RFC 3030).
    Bdat,
}

/// What the host stands ready for.
pub(super) enum SmtpConnectionState {
    /// An envelope; RSET before it when the last one was left open or half refused.
    Idle { reset: bool },
    /// The envelope has gone ahead: its replies, then its content.
    Pipelined(PipelinedEnvelope),
    /// Its last reply: QUIT has gone ahead.
    Quitting,
    /// Nothing. Also what a dropped `deliver` leaves behind.
    Ended,
}

/// An envelope that was sent behind the content before it.
pub(super) struct PipelinedEnvelope {
    pub envelope: EnvelopeCommands,
    /// Whether RSET went before it.
    pub reset: bool,
}

/// A shipment that was looked at and can go over this connection.
pub(super) struct CheckedMessage<'a> {
    pub message: &'a OutgoingMessage,
    pub content: CheckedBody,
    pub envelope: EnvelopeCommands,
}

impl SmtpConnection {
    pub(super) fn new(dialer: &SmtpDialer, wire: SmtpWire, learnt: EhloResponse, tls: Option<OutboundTls>) -> Self {
        let EhloResponse { capabilities, name: ehlo_name } = learnt;
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

    /// The same, which came from there, and of whose TLS this is to be said.
    pub(super) fn with_facts(self, local: Option<IpAddr>, tls_fault: Option<tls_report::TlsFault>) -> Self {
        Self { source_ip: local.or(self.source_ip), tls_fault: tls_fault.or(self.tls_fault), ..self }
    }

    /// Where it comes from.
    #[must_use]
    pub fn source_ip(&self) -> Option<IpAddr> {
        self.source_ip
    }

    /// What is wrong with its TLS, although mail may go: there is none, or it failed, or the certificate does not hold.
    #[must_use]
    pub fn tls_fault(&self) -> Option<&tls_report::TlsFault> {
        self.tls_fault.as_ref()
    }

    /// Sends `this`. When `next` is given, its envelope goes out right behind the content of `this`
    /// (RFC 2920 3.1 lets the content be the first of a group), so that each message costs one round
    /// trip. Returns when the reply to `this` was read.
    ///
    /// With `next` given, the only calls that make sense afterwards are `deliver(next, …)`, `quit`
    /// and dropping the connection; content never goes under another message's envelope, such a call
    /// ends as [`Verdict::Broken`]. Dropping the future before it is done ends the connection.
    pub async fn deliver(&mut self, this: &OutgoingMessage, next: Option<&OutgoingMessage>) -> TransactionResult {
        let started = Instant::now();
        let state = std::mem::replace(&mut self.state, SmtpConnectionState::Ended);
        self.ordinal = self.ordinal.saturating_add(1);
        // The first delivery's transcript begins with the dial.
        if self.ordinal > 1 {
            self.wire.begin_transcript(Transcript::with_typical_capacity(), started);
        }
        let end = self.transact(state, this, next).await;
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

    /// Sends `this`, the last message that this connection is for: where the host takes groups, QUIT goes out
    /// right behind the content (RFC 2920 3.1), which saves both ends a round trip. [`Self::quit`] is called
    /// all the same.
    pub async fn deliver_last(&mut self, this: &OutgoingMessage) -> TransactionResult {
        self.quits_after_content = self.capabilities.pipelining;
        self.deliver(this, None).await
    }

    /// From now on, when this is cancelled, a delivery ends with what is known then: as unconfirmed when the
    /// end of the content is out, with [`Fault::Stopped`] in any case.
    pub fn cancel_with(&mut self, stop: CancellationToken) {
        self.wire.cancel_with(stop);
    }

    /// Whether another message may be given to it. A host that hung up meanwhile is found out by
    /// `deliver`, which then ends in [`Phase::Idle`] with nothing sent.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        match self.state {
            SmtpConnectionState::Idle { .. } => self.allows_transaction(),
            SmtpConnectionState::Pipelined(_) => true,
            SmtpConnectionState::Quitting | SmtpConnectionState::Ended => false,
        }
    }

    /// What the host offers.
    #[must_use]
    pub fn capabilities(&self) -> &EhloCapabilities {
        &self.capabilities
    }

    /// The name that the host gave itself in its reply to EHLO, as it gave it: our own name here is
    /// a loop.
    #[must_use]
    pub fn ehlo_name(&self) -> &str {
        &self.ehlo_name
    }

    /// TLS as it is; `None` is a connection in the clear.
    #[must_use]
    pub fn tls(&self) -> Option<OutboundTls> {
        self.tls
    }

    /// Why the connection is in the clear although the host offered TLS.
    #[must_use]
    pub fn plaintext_reason(&self) -> Option<&str> {
        let failed = |fault: &&tls_report::TlsFault| fault.result != TlsResultType::StarttlsNotSupported;
        self.tls_fault.as_ref().filter(|_| self.tls.is_none()).filter(failed).map(|fault| fault.reason.as_str())
    }

    /// Says good-bye and closes. Between an envelope sent ahead and its content there is no place
    /// for QUIT: then the connection just ends, and the host forgets the envelope.
    pub async fn quit(mut self) {
        let limit: Duration = self.timeouts.quit;
        let is_asked = match self.state {
            SmtpConnectionState::Idle { .. } => self.wire.send_command(QUIT, limit).await.is_ok(),
            SmtpConnectionState::Quitting => true,
            SmtpConnectionState::Pipelined(_) | SmtpConnectionState::Ended => return,
        };
        if is_asked {
            // Whatever it answers, this is the end.
            let _ = self.wire.read_reply(limit).await;
        }
        self.wire.close(limit).await;
    }

    /// What follows the content when nothing else does: QUIT, if this was the last message.
    pub(super) fn pipelined_quit(&self) -> Option<&'static [u8]> {
        self.quits_after_content.then_some(QUIT)
    }

    /// Whether the host takes one more transaction in this session (RFC 9422).
    pub(super) fn allows_transaction(&self) -> bool {
        self.capabilities.transactions_max.is_none_or(|max| self.transactions < max)
    }

    /// Looks at a shipment before anything of it is sent.
    pub(super) fn check_message<'a>(
        &self,
        shipment: &'a OutgoingMessage,
    ) -> Result<CheckedMessage<'a>, Box<TransactionEnd>> {
        let refuse = |verdict, reply, fault| {
            let state = SmtpConnectionState::Ended;
            Box::new(TransactionEnd { verdict, reply: Some(reply), phase: TransactionPhase::Local, fault, state })
        };
        let content = CheckedBody::check(&shipment.body).map_err(|fault| {
            let reply = SmtpReply::new(554, Enhanced::new(5, 6, 0), fault.to_string());
            refuse(TransactionVerdict::PermanentFailure, reply, Some(SmtpFault::Content(fault)))
        })?;
        if let Some(max) = self.capabilities.size_bytes_max.filter(|&max| content.size_bytes() > max) {
            let text = format!("The message has {} bytes, {} takes {max}", content.size_bytes(), self.ehlo_name);
            return Err(refuse(
                TransactionVerdict::PermanentFailure,
                SmtpReply::new(552, Enhanced::new(5, 3, 4), text),
                None,
            ));
        }
        if shipment.needs_smtputf8() && !self.capabilities.smtputf8 {
            let text = "The host does not take internationalised addresses or headers";
            return Err(refuse(
                TransactionVerdict::Unsupported,
                SmtpReply::new(553, Enhanced::new(5, 6, 7), text),
                None,
            ));
        }
        // RFC 8689 4.2.1: offered, over TLS, to a host whose certificate was checked.
        let keeps_tls = self.capabilities.require_tls && self.tls.is_some_and(|tls| tls.verified);
        if shipment.require_tls && !keeps_tls {
            let text = "REQUIRETLS is asked for and the host cannot promise it";
            return Err(refuse(
                TransactionVerdict::Unsupported,
                SmtpReply::new(550, Enhanced::new(5, 7, 30), text),
                None,
            ));
        }
        match EnvelopeCommands::render(shipment, content.size_bytes(), &self.capabilities) {
            Some(envelope) => Ok(CheckedMessage { message: shipment, content, envelope }),
            None => {
                let text = "The address cannot be written in a command";
                Err(refuse(
                    TransactionVerdict::PermanentFailure,
                    SmtpReply::new(553, Enhanced::new(5, 1, 3), text),
                    None,
                ))
            }
        }
    }

    /// The envelope of `next`, when it can go ahead.
    pub(super) fn pipeline_envelope(
        &mut self,
        next: Option<&OutgoingMessage>,
        reset: bool,
    ) -> Option<PipelinedEnvelope> {
        if !self.capabilities.pipelining || !self.allows_transaction() {
            return None;
        }
        let parcel = self.check_message(next?).ok()?;
        self.transactions = self.transactions.saturating_add(1);
        Some(PipelinedEnvelope { envelope: parcel.envelope, reset })
    }
}
