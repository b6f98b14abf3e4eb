//! The mail host of `postrider dev`: it takes mail for anybody, without AUTH.
//!
//! ```text
//! RCPT ─► a mailbox here (a receiving domain, a return path)? ─► as in production (smtp::mx)
//!     └─► anybody else ─► the inbox; recipients of the simulator behave
//! ```
//!
//! What is received for a domain here is shown in the inbox too; what comes back to a return path is not.

use mail::address::Address;
use mail::reply::Severity;
use queue::inbound::{Inbound, Nowhere, Place};
use smtp::answers::{Answer, Answers, Message, Question};
use smtp::mx::Mx;

use super::capture::InboxWriter;
use super::inbox::{NewMessage, Source};
use super::simulator::Behaviour;

/// Answers for the mail host.
pub struct MailHost {
    inbound: Inbound,
    mx: Mx,
    writer: InboxWriter,
}

/// What is remembered of a session.
#[derive(Debug, Default)]
pub struct Session {
    mx: <Mx as Answers>::Visitor,
    /// Recipients of the transaction that have no mailbox here.
    caught: Vec<Address>,
    /// A recipient of the transaction is at a receiving domain.
    is_received: bool,
}

impl MailHost {
    /// Catches what `mx` would not take.
    #[must_use]
    pub fn new(inbound: Inbound, mx: Mx, writer: InboxWriter) -> Self {
        Self { inbound, mx, writer }
    }

    async fn recipient(&self, visit: &mut Session, address: Address) -> Answer {
        if let Some(reply) = Behaviour::of(&address).and_then(Behaviour::refusal) {
            self.writer.terminal.refused(&address, &reply);
            return Answer::Said(reply);
        }
        let place = self.inbound.place(&address).await;
        if matches!(place, Err(Nowhere::Elsewhere | Nowhere::Unknown)) {
            visit.caught.push(address);
            return Answer::Granted;
        }
        visit.is_received |= matches!(place, Ok(Place::Customer(_)));
        self.mx.answer(&mut visit.mx, Question::Recipient(address)).await
    }

    async fn take(&self, visit: &mut Session, mut message: Message) -> Answer {
        let (caught, is_received) =
            (std::mem::take(&mut visit.caught), std::mem::take(&mut visit.is_received));
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
            true => Answer::Granted,
            false => self.mx.answer(&mut visit.mx, Question::Take(Box::new(message))).await,
        };
        let is_refused = matches!(&answer, Answer::Said(reply) if reply.severity() != Severity::Completed);
        match shown.filter(|_| !is_refused) {
            None => answer,
            Some(shown) => {
                let reply = self.writer.write(shown).await;
                // What is received has an id, which is more to the point.
                if matches!(answer, Answer::Said(_)) { answer } else { Answer::Said(reply) }
            }
        }
    }
}

impl Answers for MailHost {
    type Visitor = Session;

    async fn answer(&self, visit: &mut Session, question: Question) -> Answer {
        match question {
            Question::Recipient(address) => self.recipient(visit, address).await,
            Question::Take(message) => self.take(visit, *message).await,
            Question::Sender { .. } => {
                (visit.caught, visit.is_received) = (Vec::new(), false);
                self.mx.answer(&mut visit.mx, question).await
            }
            Question::Authenticate(..) => self.mx.answer(&mut visit.mx, question).await,
        }
    }
}
