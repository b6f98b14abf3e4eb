//! Mail host of `postrider dev`: accepts mail for any address, without AUTH.
//!
//! ```text
//! RCPT ─► local mailbox (receiving domain, return path)? ─► as in production (smtp::mx)
//!     └─► other addresses ─► the inbox; recipients of the simulator behave as their names say
//! ```
//!
//! Mail received for a local domain is also stored in the inbox; mail to a return path is not.

use mail::address::Address;
use mail::reply::Severity;
use queue::inbound::{InboundService, RecipientRoute, UnknownRecipient};
use smtp::handler::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use smtp::mx::MxHandler;

use super::capture::InboxWriter;
use super::inbox::{NewMessage, Source};
use super::simulator::Behaviour;

/// Session handler of the mail host.
pub struct MailHost {
    inbound: InboundService,
    mx: MxHandler,
    writer: InboxWriter,
}

/// State of a session.
#[derive(Debug, Default)]
pub struct Session {
    mx: <MxHandler as SessionHandler>::SessionContext,
    /// Recipients of the transaction that have no local mailbox.
    caught: Vec<Address>,
    /// True if a recipient of the transaction is at a receiving domain.
    is_received: bool,
}

impl MailHost {
    /// Creates a handler that captures mail for recipients that `mx` does not know.
    #[must_use]
    pub fn new(inbound: InboundService, mx: MxHandler, writer: InboxWriter) -> Self {
        Self { inbound, mx, writer }
    }

    async fn recipient(&self, visit: &mut Session, address: Address) -> HookVerdict {
        if let Some(reply) = Behaviour::of(&address).and_then(Behaviour::refusal) {
            self.writer.terminal.refused(&address, &reply);
            return HookVerdict::Reply(reply);
        }
        let place = self.inbound.route_recipient(&address).await;
        if matches!(place, Err(UnknownRecipient::NotLocal | UnknownRecipient::NoSuchMailbox)) {
            visit.caught.push(address);
            return HookVerdict::Accept;
        }
        visit.is_received |= matches!(place, Ok(RecipientRoute::Customer(_)));
        self.mx.handle(&mut visit.mx, Hook::RcptTo(address)).await
    }

    async fn take(&self, visit: &mut Session, mut message: SmtpMessage) -> HookVerdict {
        let (caught, is_received) = (std::mem::take(&mut visit.caught), std::mem::take(&mut visit.is_received));
        let is_slow = message.recipients.iter().any(|to| Behaviour::of(&to.address) == Some(Behaviour::Slow));
        if is_slow {
            tokio::time::sleep(Behaviour::SLOW_FOR).await;
        }
        let shown = (!caught.is_empty() || is_received).then(|| NewMessage {
            source: Source::HandedIn,
            sender: message.envelope.reverse_path.clone(),
            recipients: message.recipients.iter().map(|to| to.address.clone()).collect(),
            received_at: self.writer.clock.now(),
            tls: message.trace.tls.is_some(),
            raw: message.content.clone(),
            dkim: Vec::new(),
        });
        message.recipients.retain(|to| !caught.contains(&to.address));
        let answer = match message.recipients.is_empty() {
            true => HookVerdict::Accept,
            false => self.mx.handle(&mut visit.mx, Hook::Submit(Box::new(message))).await,
        };
        let is_refused = matches!(&answer, HookVerdict::Reply(reply) if reply.severity() != Severity::Completed);
        match shown.filter(|_| !is_refused) {
            None => answer,
            Some(shown) => {
                let reply = self.writer.write(shown).await;
                // The reply for received mail has the email's id, which is more useful.
                if matches!(answer, HookVerdict::Reply(_)) { answer } else { HookVerdict::Reply(reply) }
            }
        }
    }
}

impl SessionHandler for MailHost {
    type SessionContext = Session;

    async fn handle(&self, visit: &mut Session, question: Hook) -> HookVerdict {
        match question {
            Hook::RcptTo(address) => self.recipient(visit, address).await,
            Hook::Submit(message) => self.take(visit, *message).await,
            Hook::MailFrom { .. } => {
                (visit.caught, visit.is_received) = (Vec::new(), false);
                self.mx.handle(&mut visit.mx, question).await
            }
            Hook::Authenticate(..) => self.mx.handle(&mut visit.mx, question).await,
        }
    }
}
