//! Mail host of `postrider dev`: accepts mail for any address, without AUTH.
//!
//! ```text
//! RCPT ─► local mailbox (receiving domain, return path)? ─► as in production (smtp::mx)
//!     └─► other addresses ─► the inbox; recipients of the simulator behave as their names say
//! ```
//!
//! Mail received for a local domain is also stored in the inbox; mail to a return path is not.

use inbound::service::{InboundService, RecipientRoute, UnknownRecipient};
use message::address::Address;
use message::reply::Severity;
use smtp::handler::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use smtp::listener::{Listener, ServedHandler, ServedListener};
use smtp::mx::MxHandler;
use tokio_util::sync::CancellationToken;

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
    captured_recipients: Vec<Address>,
    /// True if a recipient of the transaction is at a receiving domain.
    is_received: bool,
}

impl MailHost {
    /// Creates a handler that captures mail for recipients that `mx` does not accept.
    pub fn new(inbound: InboundService, mx: MxHandler, writer: InboxWriter) -> Self {
        Self { inbound, mx, writer }
    }

    async fn handle_recipient(&self, session: &mut Session, address: Address) -> HookVerdict {
        if let Some(reply) = Behaviour::of(&address).and_then(Behaviour::refusal) {
            self.writer.terminal.print_refused(&address, &reply);
            return HookVerdict::Reply(reply);
        }
        let route = self.inbound.route_recipient(&address).await;
        if matches!(route, Err(UnknownRecipient::NotLocal | UnknownRecipient::NoSuchMailbox)) {
            session.captured_recipients.push(address);
            return HookVerdict::Accept;
        }
        session.is_received |= matches!(route, Ok(RecipientRoute::Customer(_)));
        self.mx.handle(&mut session.mx, Hook::RcptTo(address)).await
    }

    async fn submit_message(&self, session: &mut Session, mut message: SmtpMessage) -> HookVerdict {
        let (captured_recipients, is_received) =
            (std::mem::take(&mut session.captured_recipients), std::mem::take(&mut session.is_received));
        let is_slow = message.recipients.iter().any(|to| Behaviour::of(&to.address) == Some(Behaviour::Slow));
        if is_slow {
            tokio::time::sleep(Behaviour::SLOW_FOR).await;
        }
        let inbox_message = (!captured_recipients.is_empty() || is_received).then(|| NewMessage {
            source: Source::HandedIn,
            sender: message.envelope.reverse_path.clone(),
            recipients: message.recipients.iter().map(|to| to.address.clone()).collect(),
            received_at: self.writer.clock.now(),
            tls: message.trace.tls.is_some(),
            raw: message.content.clone(),
            dkim: Vec::new(),
        });
        message.recipients.retain(|to| !captured_recipients.contains(&to.address));
        let verdict = match message.recipients.is_empty() {
            true => HookVerdict::Accept,
            false => self.mx.handle(&mut session.mx, Hook::Submit(Box::new(message))).await,
        };
        let is_refused = matches!(&verdict, HookVerdict::Reply(reply) if reply.severity() != Severity::Completed);
        match inbox_message.filter(|_| !is_refused) {
            None => verdict,
            Some(inbox_message) => {
                let reply = self.writer.write(inbox_message).await;
                // The reply for received mail has the email's id, which is more useful.
                if matches!(verdict, HookVerdict::Reply(_)) { verdict } else { HookVerdict::Reply(reply) }
            }
        }
    }
}

impl ServedHandler for MailHost {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener {
        Box::pin(listener.serve(shutdown))
    }
}

impl SessionHandler for MailHost {
    type SessionContext = Session;

    async fn handle(&self, session: &mut Session, hook: Hook) -> HookVerdict {
        match hook {
            Hook::RcptTo(address) => self.handle_recipient(session, address).await,
            Hook::Submit(message) => self.submit_message(session, *message).await,
            Hook::MailFrom { .. } => {
                (session.captured_recipients, session.is_received) = (Vec::new(), false);
                self.mx.handle(&mut session.mx, hook).await
            }
            Hook::Authenticate(..) => self.mx.handle(&mut session.mx, hook).await,
        }
    }
}
