//! The rules of the MX door: mail for our customers' domains, for our return paths and for our own people, and
//! for nobody else.
//!
//! An address is taken as it is written: there is no way through us to another host, whatever stands before the
//! `@` (RFC 5321 appendix F.2: source routes are cut off and ignored; `user%host` and `host!user` are refused,
//! lest somebody takes us for a relay). Who asks for mailboxes that are not there waits longer for each answer,
//! and is then sent away. A message to the null path has one recipient (RFC 5321 4.5.5): a report is about
//! one. What is refused is refused here, in the session: nothing that was taken bounces.

mod strangers;

use std::net::IpAddr;

use std::time::Duration;

use mail::address::{Address, DomainName};
use mail::reply::SmtpReply;
use queue::inbound::{
    InboundRejection, InboundService, IncomingMessage, OnPolicyFail, RecipientRoute, UnknownRecipient,
};
use queue::refusal::SubmitError;

use crate::answers::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use crate::policy::reply;
use crate::received;

use self::strangers::UnknownRecipientLimiter;

/// Mailboxes that are not there, asked for in one session, before answers are held back.
const UNKNOWN_WITHOUT_DELAY: u32 = 2;
/// How long the first answer is held back; each one doubles it.
const DELAY_FIRST: Duration = Duration::from_secs(1);
/// It is held back no longer than this.
const DELAY_MAX: Duration = Duration::from_secs(16);
/// Letters of a local part that ask for another host.
const ROUTING_CHARS: [char; 3] = ['%', '!', '@'];

/// What the operator allows strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbuseLimits {
    /// Mailboxes that are not there, asked for in one session; with the next one it ends.
    pub unknown_recipients_max: u32,
    /// And by one address in an hour; then it is not listened to until the hour is over.
    pub unknown_recipients_per_hour_max: u32,
}

impl Default for AbuseLimits {
    fn default() -> Self {
        Self { unknown_recipients_max: 10, unknown_recipients_per_hour_max: 100 }
    }
}

/// Answers for the MX door.
pub struct MxHandler {
    inbound: InboundService,
    limits: AbuseLimits,
    unknown_recipients: UnknownRecipientLimiter,
}

/// What is remembered of a session.
#[derive(Debug)]
pub struct MxSession {
    peer: IpAddr,
    /// The list that it is on, if its mail is marked for it.
    listed: bool,
    /// Mailboxes that are not there, so far.
    unknown_count: u32,
    /// The transaction: from whom, and for whom.
    reverse_path: Option<Address>,
    recipients: Vec<(Address, RecipientRoute)>,
}

impl MxHandler {
    /// Takes mail in.
    #[must_use]
    pub fn new(inbound: InboundService, limits: AbuseLimits) -> Self {
        Self {
            inbound,
            limits,
            unknown_recipients: UnknownRecipientLimiter::new(limits.unknown_recipients_per_hour_max),
        }
    }

    async fn handle_mail_from(
        &self,
        visitor: &mut Option<Box<MxSession>>,
        reverse_path: Option<Address>,
        peer: IpAddr,
    ) -> Result<(), SmtpReply> {
        self.inbound.intake().check_ready().map_err(|refusal| match refusal {
            SubmitError::InsufficientStorage => reply(452, (4, 3, 1), refusal.to_string()),
            _ => reply(451, (4, 3, 0), refusal.to_string()),
        })?;
        if let Some(caller) = visitor {
            (caller.reverse_path, caller.recipients) = (reverse_path, Vec::new());
            return Ok(());
        }
        // Once a session.
        if self.unknown_recipients.is_over_limit(peer, self.inbound.intake().clock().now()) && !is_own_address(peer) {
            let text = "Too many unknown recipients from your address; try again later";
            return Err(reply(421, (4, 7, 0), text));
        }
        let listed = self.inbound.dnsbl_listing(peer).await.filter(|_| !is_own_address(peer));
        if let Some((list, OnPolicyFail::Refuse)) = &listed {
            return Err(reply(554, (5, 7, 1), format!("Your address is listed by {list}")));
        }
        let listed = listed.is_some();
        *visitor = Some(Box::new(MxSession { peer, listed, unknown_count: 0, reverse_path, recipients: Vec::new() }));
        Ok(())
    }

    async fn handle_rcpt_to(&self, caller: &mut MxSession, address: Address) -> Result<(), SmtpReply> {
        // However it is written, it is one mailbox.
        if caller.recipients.iter().any(|(known, _)| is_same_mailbox(known, &address)) {
            return Ok(());
        }
        if caller.reverse_path.is_none() && !caller.recipients.is_empty() {
            return Err(reply(550, (5, 5, 3), "A report (MAIL FROM:<>) has one recipient"));
        }
        let refusal = if address.local_part().contains(ROUTING_CHARS) {
            relaying_denied()
        } else {
            match self.inbound.route_recipient(&address).await {
                Ok(place) if needs_own_transaction(&place, &caller.recipients) => {
                    return Err(reply(452, (4, 5, 3), "Mail to us is taken by itself; send it to this one apart"));
                }
                Ok(place) => {
                    caller.recipients.push((address, place));
                    return Ok(());
                }
                Err(UnknownRecipient::Read(error)) => {
                    if !error.is_away() {
                        tracing::error!(%error, "recipients cannot be looked up");
                    }
                    return Err(reply(451, (4, 3, 0), "Recipients cannot be looked up; try again later"));
                }
                Err(UnknownRecipient::NoSuchMailbox) => reply(550, (5, 1, 1), "No such mailbox"),
                Err(UnknownRecipient::MailboxFull(_)) => {
                    return Err(reply(452, (4, 2, 2), "The mailbox is full; try again later"));
                }
                Err(UnknownRecipient::NotLocal) => relaying_denied(),
            }
        };
        Err(self.reject_unknown_recipient(caller, refusal).await)
    }

    /// A dictionary is read slowly, and not to its end.
    async fn reject_unknown_recipient(&self, caller: &mut MxSession, refusal: SmtpReply) -> SmtpReply {
        caller.unknown_count += 1;
        let clock = self.inbound.intake().clock();
        let is_stranger = !is_own_address(caller.peer);
        if is_stranger {
            self.unknown_recipients.record(caller.peer, clock.now());
        }
        if caller.unknown_count > self.limits.unknown_recipients_max {
            metrics::counter!("postrider_smtp_dictionaries_total").increment(1);
            return reply(421, (4, 7, 0), "Too many unknown recipients");
        }
        if is_stranger && let Ok(until) = clock.now().checked_add(unknown_recipient_delay(caller.unknown_count)) {
            clock.sleep_until(until).await;
        }
        refusal
    }

    async fn handle_message(&self, caller: &mut MxSession, message: SmtpMessage) -> Result<SmtpReply, SmtpReply> {
        let recipients = std::mem::take(&mut caller.recipients);
        let is_whole =
            message.recipients.iter().all(|to| recipients.iter().any(|(known, _)| is_same_mailbox(known, &to.address)));
        if !is_whole {
            // The session asked for every one of them; should it not have, nothing is lost.
            return Err(reply(451, (4, 3, 0), "Try again later"));
        }
        let now = self.inbound.intake().clock().now();
        let received = received::received_field(&message.trace, message.envelope.smtputf8, now);
        let incoming = IncomingMessage {
            peer: message.trace.peer,
            helo: message.trace.helo.to_string(),
            reverse_path: message.envelope.reverse_path,
            recipients,
            message: message.content,
            received,
            is_dnsbl_listed: caller.listed,
        };
        // Its share of the memory budget, until it is done.
        let _held = message.memory;
        match self.inbound.receive(incoming).await {
            Ok(ids) => {
                let text = ids.first().map_or_else(|| "OK".to_owned(), |id| format!("OK {id}"));
                Ok(reply(250, (2, 0, 0), text))
            }
            Err(why) => Err(rejection_reply(&why, self.inbound.hostname())),
        }
    }
}

impl SessionHandler for MxHandler {
    type SessionContext = Option<Box<MxSession>>;

    async fn handle(&self, visitor: &mut Option<Box<MxSession>>, question: Hook) -> HookVerdict {
        let answered = match (question, &mut *visitor) {
            (Hook::MailFrom { reverse_path, peer, .. }, _) => {
                self.handle_mail_from(visitor, reverse_path, peer).await.map(|()| HookVerdict::Accept)
            }
            (Hook::RcptTo(address), Some(caller)) => {
                self.handle_rcpt_to(caller, address).await.map(|()| HookVerdict::Accept)
            }
            (Hook::Submit(message), Some(caller)) => {
                self.handle_message(caller, *message).await.map(HookVerdict::Reply)
            }
            // The session does not get here; should it, nothing is taken.
            (Hook::Authenticate(..), _) => Err(reply(502, (5, 5, 1), "AUTH is not offered here")),
            (_, None) => Err(reply(503, (5, 5, 1), "Send MAIL first")),
        };
        answered.unwrap_or_else(HookVerdict::Reply)
    }
}

/// Whether two addresses are one mailbox, however they are written.
fn is_same_mailbox(one: &Address, other: &Address) -> bool {
    one == other || one.to_canonical() == other.to_canonical()
}

/// Whether mail for both cannot be taken at once: what is passed on to our people is not taken in with the same commit as
/// what others receive, and would be passed on again, should that fail.
fn needs_own_transaction(place: &RecipientRoute, others: &[(Address, RecipientRoute)]) -> bool {
    let is_ours = |place: &RecipientRoute| matches!(place, RecipientRoute::Postmaster);
    !others.is_empty() && (is_ours(place) || others.iter().any(|(_, place)| is_ours(place)))
}

/// Whether we are called from an address of our own: what a customer writes to many mailboxes that are not here must
/// not close the door to all others who write from here. Loopback is not meant: who is behind it is not known.
fn is_own_address(peer: IpAddr) -> bool {
    !peer.is_loopback() && std::net::UdpSocket::bind((peer, 0)).is_ok()
}

fn relaying_denied() -> SmtpReply {
    reply(550, (5, 7, 1), "Relaying denied: this host takes mail for its own domains only")
}

fn unknown_recipient_delay(unknown: u32) -> Duration {
    match unknown.checked_sub(UNKNOWN_WITHOUT_DELAY + 1) {
        None => Duration::ZERO,
        Some(doublings) => DELAY_FIRST.saturating_mul(1 << doublings.min(16)).min(DELAY_MAX),
    }
}

fn rejection_reply(why: &InboundRejection, hostname: &DomainName) -> SmtpReply {
    match why {
        InboundRejection::Loop => reply(554, (5, 4, 6), format!("Mail loop: the message was at {hostname} before")),
        InboundRejection::HeaderTooLarge => reply(554, (5, 6, 0), "The header of the message is too large"),
        InboundRejection::Dmarc(domain) => {
            reply(550, (5, 7, 1), format!("{domain} wants mail refused that fails DMARC, as this does"))
        }
        InboundRejection::Spam => reply(550, (5, 7, 1), "The message looks like spam"),
        InboundRejection::FilterDefers => reply(451, (4, 7, 1), "Try again later"),
        InboundRejection::DnsTempError => {
            reply(451, (4, 4, 3), "The DNS gives no answer about the sender; try again later")
        }
        InboundRejection::InsufficientStorage => reply(452, (4, 3, 1), "Too much mail at once; try again later"),
        InboundRejection::Unavailable => reply(451, (4, 3, 0), "The message cannot be taken now; try again later"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_back_longer_and_longer() {
        let delays: Vec<u64> = (0..9).map(|unknown| unknown_recipient_delay(unknown).as_secs()).collect();
        assert_eq!(delays, [0, 0, 0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(unknown_recipient_delay(u32::MAX), DELAY_MAX);
    }

    #[test]
    fn refusals_keep_their_codes() {
        let hostname = "mx.example".parse().unwrap();
        for (why, start) in [
            (InboundRejection::Loop, "554 5.4.6 "),
            (InboundRejection::Dmarc("a.example".parse().unwrap()), "550 5.7.1 a.example "),
            (InboundRejection::Spam, "550 5.7.1 "),
            (InboundRejection::DnsTempError, "451 4.4.3 "),
            (InboundRejection::InsufficientStorage, "452 4.3.1 "),
            (InboundRejection::Unavailable, "451 4.3.0 "),
        ] {
            assert!(rejection_reply(&why, &hostname).to_string().starts_with(start), "{why:?}");
        }
    }
}
