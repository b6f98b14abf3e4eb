//! A connection that is ready for messages, and what it remembers between them.

use std::net::IpAddr;
use std::time::Duration;

use mail::reply::{Enhanced, Reply};
use mail::tls_report::{self, ResultType};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capabilities::Capabilities;
use super::command::Envelope;
use super::content::Content;
use super::delivery::{Delivery, Fault, Phase, Verdict};
use super::dial::{Dialer, Learnt};
use super::shipment::Shipment;
use super::timeouts::Timeouts;
use super::tls::TlsFacts;
use super::transaction::End;
use super::transcript::Transcript;
use super::wire::Wire;

/// How a session ends (RFC 5321 4.1.1.10).
const QUIT: &[u8] = b"QUIT\r\n";

/// One connection to one host. Kept for as many messages as there are.
pub struct Connection {
    pub(super) wire: Wire,
    pub(super) timeouts: Timeouts,
    pub(super) channel: Channel,
    pub(super) state: State,
    /// MAIL commands sent, those sent ahead included.
    pub(super) begun: u32,
    capabilities: Capabilities,
    name: String,
    tls: Option<TlsFacts>,
    tls_fault: Option<tls_report::Fault>,
    local: Option<IpAddr>,
    ordinal: u32,
    /// Whether QUIT goes behind the next content.
    leaves: bool,
}

/// How content goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// DATA, dot-stuffed (RFC 5321 4.1.1.4).
    Data,
    /// BDAT, counted (RFC 3030).
    Bdat,
}

/// What the host stands ready for.
pub(super) enum State {
    /// An envelope; RSET before it when the last one was left open or half refused.
    Idle { reset: bool },
    /// The envelope has gone ahead: its replies, then its content.
    Primed(Primed),
    /// Its last reply: QUIT has gone ahead.
    Leaving,
    /// Nothing. Also what a dropped `deliver` leaves behind.
    Ended,
}

/// An envelope that was sent behind the content before it.
pub(super) struct Primed {
    pub envelope: Envelope,
    /// Whether RSET went before it.
    pub reset: bool,
}

/// A shipment that was looked at and can go over this connection.
pub(super) struct Parcel<'a> {
    pub shipment: &'a Shipment,
    pub content: Content,
    pub envelope: Envelope,
}

impl Connection {
    pub(super) fn new(dialer: &Dialer, wire: Wire, learnt: Learnt, tls: Option<TlsFacts>) -> Self {
        let Learnt { capabilities, name } = learnt;
        let channel = if dialer.chunking && capabilities.chunking { Channel::Bdat } else { Channel::Data };
        Self {
            wire,
            timeouts: dialer.timeouts,
            channel,
            state: State::Idle { reset: false },
            begun: 0,
            capabilities,
            name,
            tls,
            tls_fault: None,
            local: None,
            ordinal: 0,
            leaves: false,
        }
    }

    /// The same, which came from there, and of whose TLS this is to be said.
    pub(super) fn known(self, local: Option<IpAddr>, tls_fault: Option<tls_report::Fault>) -> Self {
        Self { local: local.or(self.local), tls_fault: tls_fault.or(self.tls_fault), ..self }
    }

    /// Where it comes from.
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// What is wrong with its TLS, although mail may go: there is none, or it failed, or the certificate does not hold.
    #[must_use]
    pub fn tls_fault(&self) -> Option<&tls_report::Fault> {
        self.tls_fault.as_ref()
    }

    /// Sends `this`. When `next` is given, its envelope goes out right behind the content of `this`
    /// (RFC 2920 3.1 lets the content be the first of a group), so that each message costs one round
    /// trip. Returns when the reply to `this` was read.
    ///
    /// With `next` given, the only calls that make sense afterwards are `deliver(next, …)`, `quit`
    /// and dropping the connection; content never goes under another message's envelope, such a call
    /// ends as [`Verdict::Broken`]. Dropping the future before it is done ends the connection.
    pub async fn deliver(&mut self, this: &Shipment, next: Option<&Shipment>) -> Delivery {
        let started = Instant::now();
        let state = std::mem::replace(&mut self.state, State::Ended);
        self.ordinal = self.ordinal.saturating_add(1);
        // The first delivery's transcript begins with the dial.
        if self.ordinal > 1 {
            self.wire.begin(Transcript::ordinary(), started);
        }
        let end = self.transact(state, this, next).await;
        self.state = end.state;
        Delivery {
            verdict: end.verdict,
            reply: end.reply,
            phase: end.phase,
            fault: end.fault,
            transcript: self.wire.begin(Transcript::default(), started),
            duration: started.elapsed(),
            tls: self.tls,
            ordinal: self.ordinal,
        }
    }

    /// Sends `this`, the last message that this connection is for: where the host takes groups, QUIT goes out
    /// right behind the content (RFC 2920 3.1), which saves both ends a round trip. [`Self::quit`] is called
    /// all the same.
    pub async fn deliver_last(&mut self, this: &Shipment) -> Delivery {
        self.leaves = self.capabilities.pipelining;
        self.deliver(this, None).await
    }

    /// From now on, when this is cancelled, a delivery ends with what is known then: as unconfirmed when the
    /// end of the content is out, with [`Fault::Stopped`] in any case.
    pub fn stop_by(&mut self, stop: CancellationToken) {
        self.wire.stop_by(stop);
    }

    /// Whether another message may be given to it. A host that hung up meanwhile is found out by
    /// `deliver`, which then ends in [`Phase::Idle`] with nothing sent.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        match self.state {
            State::Idle { .. } => self.may_begin(),
            State::Primed(_) => true,
            State::Leaving | State::Ended => false,
        }
    }

    /// What the host offers.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The name that the host gave itself in its reply to EHLO, as it gave it: our own name here is
    /// a loop.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// TLS as it is; `None` is a connection in the clear.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFacts> {
        self.tls
    }

    /// Why the connection is in the clear although the host offered TLS.
    #[must_use]
    pub fn tls_failure(&self) -> Option<&str> {
        let failed = |fault: &&tls_report::Fault| fault.result != ResultType::StarttlsNotSupported;
        self.tls_fault
            .as_ref()
            .filter(|_| self.tls.is_none())
            .filter(failed)
            .map(|fault| fault.reason.as_str())
    }

    /// Says good-bye and closes. Between an envelope sent ahead and its content there is no place
    /// for QUIT: then the connection just ends, and the host forgets the envelope.
    pub async fn quit(mut self) {
        let limit: Duration = self.timeouts.quit;
        let is_asked = match self.state {
            State::Idle { .. } => self.wire.command(QUIT, limit).await.is_ok(),
            State::Leaving => true,
            State::Primed(_) | State::Ended => return,
        };
        if is_asked {
            // Whatever it answers, this is the end.
            let _ = self.wire.hear(limit).await;
        }
        self.wire.close(limit).await;
    }

    /// What follows the content when nothing else does: QUIT, if this was the last message.
    pub(super) fn farewell(&self) -> Option<&'static [u8]> {
        self.leaves.then_some(QUIT)
    }

    /// Whether the host takes one more transaction in this session (RFC 9422).
    pub(super) fn may_begin(&self) -> bool {
        self.capabilities.transactions_max.is_none_or(|max| self.begun < max)
    }

    /// Looks at a shipment before anything of it is sent.
    pub(super) fn prepare<'a>(&self, shipment: &'a Shipment) -> Result<Parcel<'a>, Box<End>> {
        let refuse = |verdict, reply, fault| {
            let state = State::Ended;
            Box::new(End { verdict, reply: Some(reply), phase: Phase::Local, fault, state })
        };
        let content = Content::check(&shipment.body).map_err(|fault| {
            let reply = Reply::new(554, Enhanced::new(5, 6, 0), fault.to_string());
            refuse(Verdict::Refused5, reply, Some(Fault::Content(fault)))
        })?;
        if let Some(max) = self.capabilities.size_bytes_max.filter(|&max| content.size_bytes() > max) {
            let text = format!("The message has {} bytes, {} takes {max}", content.size_bytes(), self.name);
            return Err(refuse(Verdict::Refused5, Reply::new(552, Enhanced::new(5, 3, 4), text), None));
        }
        if shipment.needs_smtputf8() && !self.capabilities.smtputf8 {
            let text = "The host does not take internationalised addresses or headers";
            return Err(refuse(Verdict::Unsupported, Reply::new(553, Enhanced::new(5, 6, 7), text), None));
        }
        // RFC 8689 4.2.1: offered, over TLS, to a host whose certificate was checked.
        let keeps_tls = self.capabilities.require_tls && self.tls.is_some_and(|tls| tls.verified);
        if shipment.require_tls && !keeps_tls {
            let text = "REQUIRETLS is asked for and the host cannot promise it";
            return Err(refuse(Verdict::Unsupported, Reply::new(550, Enhanced::new(5, 7, 30), text), None));
        }
        match Envelope::write(shipment, content.size_bytes(), &self.capabilities) {
            Some(envelope) => Ok(Parcel { shipment, content, envelope }),
            None => {
                let text = "The address cannot be written in a command";
                Err(refuse(Verdict::Refused5, Reply::new(553, Enhanced::new(5, 1, 3), text), None))
            }
        }
    }

    /// The envelope of `next`, when it can go ahead.
    pub(super) fn prime(&mut self, next: Option<&Shipment>, reset: bool) -> Option<Primed> {
        if !self.capabilities.pipelining || !self.may_begin() {
            return None;
        }
        let parcel = self.prepare(next?).ok()?;
        self.begun = self.begun.saturating_add(1);
        Some(Primed { envelope: parcel.envelope, reset })
    }
}
