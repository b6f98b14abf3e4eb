//! Session handler of the MX listener: accepts mail for receiving domains of accounts, for the return paths of sent
//! mail and for the operator's postmaster, and for no other recipients.
//!
//! Addresses are taken literally, so that the server cannot be used as a relay. Source routes are cut off and ignored
//! (RFC 5321 appendix F.2); `user%host` and `host!user` are refused. Replies about unknown recipients are delayed more
//! and more, and too many of them end the session. A message with a null reverse path has one recipient (RFC 5321
//! 4.5.5): a report is about one message. Refusals happen in the session: an accepted message never causes a bounce.

mod unknown_recipients;

use std::net::IpAddr;

use std::time::Duration;

use inbound::service::{
    InboundRejection, InboundService, IncomingMessage, OnPolicyFail, RecipientRoute, UnknownRecipient,
};
use message::address::{Address, DomainName};
use message::header::RECEIVED_MAX;
use message::reply::SmtpReply;
use net::clock::Clock;
use net::local_addresses::LocalAddresses;
use queue::intake::submit_error::SubmitError;

use tokio_util::sync::CancellationToken;

use crate::handler::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use crate::listener::{Listener, ServedHandler, ServedListener};
use crate::received_field;
use crate::sending_handlers::reply;

use self::unknown_recipients::UnknownRecipientLimiter;

/// Unknown recipients in one session whose refusals are not delayed.
const UNKNOWN_WITHOUT_DELAY: u32 = 2;
/// The first delay; each further unknown recipient doubles it.
const DELAY_FIRST: Duration = Duration::from_secs(1);
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(16);
/// Characters of a local part that request routing to another host.
const ROUTING_CHARS: [char; 3] = ['%', '!', '@'];

/// Limits against harvesting of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbuseLimits {
    /// Unknown recipients per session; the next one ends it with 421.
    pub unknown_recipients_max: u32,
    /// Unknown recipients per address and hour; then MAIL is refused until the hour ends.
    pub unknown_recipients_per_hour_max: u32,
}

impl Default for AbuseLimits {
    fn default() -> Self {
        Self { unknown_recipients_max: 10, unknown_recipients_per_hour_max: 100 }
    }
}

/// Session handler of the MX listener.
pub struct MxHandler {
    inbound: InboundService,
    clock: Clock,
    limits: AbuseLimits,
    unknown_recipients: UnknownRecipientLimiter,
    local_addresses: LocalAddresses,
}

/// State of an MX session.
#[derive(Debug)]
pub struct MxSession {
    peer: IpAddr,
    /// The client is listed in a DNSBL whose listings mark the mail.
    listed: bool,
    /// Unknown recipients so far.
    unknown_count: u32,
    /// The current transaction.
    reverse_path: Option<Address>,
    recipients: Vec<(Address, RecipientRoute)>,
}

impl MxHandler {
    pub fn new(inbound: InboundService, clock: Clock, limits: AbuseLimits) -> Self {
        Self {
            inbound,
            clock,
            limits,
            unknown_recipients: UnknownRecipientLimiter::new(limits.unknown_recipients_per_hour_max),
            local_addresses: LocalAddresses::default(),
        }
    }

    async fn handle_mail_from(
        &self,
        context: &mut Option<Box<MxSession>>,
        reverse_path: Option<Address>,
        peer: IpAddr,
    ) -> Result<(), SmtpReply> {
        self.inbound.check_ready().map_err(|refusal| match refusal {
            SubmitError::InsufficientStorage => reply(452, (4, 3, 1), refusal.to_string()),
            _ => reply(451, (4, 3, 0), refusal.to_string()),
        })?;
        if let Some(session) = context {
            (session.reverse_path, session.recipients) = (reverse_path, Vec::new());
            return Ok(());
        }
        // The checks of the client run once per session.
        if self.unknown_recipients.is_over_limit(peer, self.clock.now()) && !self.is_own_address(peer) {
            let text = "Too many unknown recipients from your address; try again later";
            return Err(reply(421, (4, 7, 0), text));
        }
        let listed = self.inbound.dnsbl_listing(peer).await.filter(|_| !self.is_own_address(peer));
        if let Some((list, OnPolicyFail::Refuse)) = &listed {
            return Err(reply(554, (5, 7, 1), format!("Your address is listed by {list}")));
        }
        let listed = listed.is_some();
        *context = Some(Box::new(MxSession { peer, listed, unknown_count: 0, reverse_path, recipients: Vec::new() }));
        Ok(())
    }

    async fn handle_rcpt_to(&self, session: &mut MxSession, address: Address) -> Result<(), SmtpReply> {
        // Variants of one mailbox's address count as one recipient.
        if session.recipients.iter().any(|(known, _)| is_same_mailbox(known, &address)) {
            return Ok(());
        }
        if session.reverse_path.is_none() && !session.recipients.is_empty() {
            return Err(reply(550, (5, 5, 3), "A message from <> can have only one recipient"));
        }
        let refusal = if address.local_part().contains(ROUTING_CHARS) {
            relaying_denied()
        } else {
            match self.inbound.route_recipient(&address).await {
                Ok(route) if needs_own_transaction(&route, &session.recipients) => {
                    return Err(reply(452, (4, 5, 3), "Mail to postmaster requires its own transaction"));
                }
                Ok(route) => {
                    session.recipients.push((address, route));
                    return Ok(());
                }
                Err(UnknownRecipient::Read(error)) => {
                    if !error.is_away() {
                        tracing::error!(%error, "recipient lookup failed");
                    }
                    return Err(reply(451, (4, 3, 0), "Recipient lookup failed; try again later"));
                }
                Err(UnknownRecipient::NoSuchMailbox) => reply(550, (5, 1, 1), "No such mailbox"),
                Err(UnknownRecipient::MailboxFull(_)) => {
                    return Err(reply(452, (4, 2, 2), "The mailbox is full; try again later"));
                }
                Err(UnknownRecipient::NotLocal) => relaying_denied(),
            }
        };
        Err(self.reject_unknown_recipient(session, refusal).await)
    }

    /// Counts an unknown recipient and delays its refusal, so that harvesting of addresses is slow and limited.
    async fn reject_unknown_recipient(&self, session: &mut MxSession, refusal: SmtpReply) -> SmtpReply {
        session.unknown_count += 1;
        let clock = &self.clock;
        let is_stranger = !self.is_own_address(session.peer);
        if is_stranger {
            self.unknown_recipients.record(session.peer, clock.now());
        }
        if session.unknown_count > self.limits.unknown_recipients_max {
            metrics::counter!("postrider_smtp_dictionaries_total").increment(1);
            return reply(421, (4, 7, 0), "Too many unknown recipients");
        }
        if is_stranger {
            clock.sleep(unknown_recipient_delay(session.unknown_count)).await;
        }
        refusal
    }

    /// Returns whether the peer's address belongs to this host. A customer that sends from here to many unknown
    /// recipients must not block other clients of that address. Loopback is excluded, because any client can be behind
    /// it.
    fn is_own_address(&self, peer: IpAddr) -> bool {
        !peer.is_loopback() && self.local_addresses.contains(peer, self.clock.now())
    }

    async fn handle_message(&self, session: &mut MxSession, message: SmtpMessage) -> Result<SmtpReply, SmtpReply> {
        let recipients = std::mem::take(&mut session.recipients);
        let is_whole =
            message.recipients.iter().all(|to| recipients.iter().any(|(known, _)| is_same_mailbox(known, &to.address)));
        if !is_whole {
            // The session calls the hook for every recipient. If one is missing nonetheless, the client retries.
            return Err(reply(451, (4, 3, 0), "Try again later"));
        }
        let now = self.clock.now();
        let received = received_field::received_field(&message.trace, message.envelope.smtputf8, now);
        let incoming = IncomingMessage {
            peer: message.trace.peer,
            helo: message.trace.helo.to_string(),
            reverse_path: message.envelope.reverse_path,
            recipients,
            message: message.content,
            require_tls: message.envelope.require_tls,
            received,
            is_dnsbl_listed: session.listed,
        };
        // Holds the message's part of the content budget until the message is stored.
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

impl ServedHandler for MxHandler {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener {
        Box::pin(listener.serve(shutdown))
    }
}

impl SessionHandler for MxHandler {
    type SessionContext = Option<Box<MxSession>>;

    async fn handle(&self, context: &mut Option<Box<MxSession>>, hook: Hook) -> HookVerdict {
        let verdict = match (hook, &mut *context) {
            (Hook::MailFrom { reverse_path, peer, .. }, _) => {
                self.handle_mail_from(context, reverse_path, peer).await.map(|()| HookVerdict::Accept)
            }
            (Hook::RcptTo(address), Some(session)) => {
                self.handle_rcpt_to(session, address).await.map(|()| HookVerdict::Accept)
            }
            (Hook::Submit(message), Some(session)) => {
                self.handle_message(session, *message).await.map(HookVerdict::Reply)
            }
            // The session never calls these; a refusal is the safe default.
            (Hook::Authenticate(..), _) => Err(reply(502, (5, 5, 1), "AUTH is not offered here")),
            (_, None) => Err(reply(503, (5, 5, 1), "Send MAIL first")),
        };
        verdict.unwrap_or_else(HookVerdict::Reply)
    }
}

/// Returns whether two addresses denote the same mailbox.
fn is_same_mailbox(one: &Address, other: &Address) -> bool {
    one == other || one.to_canonical() == other.to_canonical()
}

/// Returns whether mail to `route` cannot share a transaction with mail to `others`. Mail to the postmaster is
/// forwarded in a commit of its own. If the other commit failed, the client would retry and the mail would be forwarded
/// twice.
fn needs_own_transaction(route: &RecipientRoute, others: &[(Address, RecipientRoute)]) -> bool {
    let is_postmaster = |route: &RecipientRoute| matches!(route, RecipientRoute::Postmaster);
    !others.is_empty() && (is_postmaster(route) || others.iter().any(|(_, route)| is_postmaster(route)))
}

fn relaying_denied() -> SmtpReply {
    reply(550, (5, 7, 1), "Relaying denied: this host accepts mail only for its own domains")
}

fn unknown_recipient_delay(unknown: u32) -> Duration {
    match unknown.checked_sub(UNKNOWN_WITHOUT_DELAY + 1) {
        None => Duration::ZERO,
        Some(doublings) => DELAY_FIRST.saturating_mul(1 << doublings.min(16)).min(DELAY_MAX),
    }
}

fn rejection_reply(why: &InboundRejection, hostname: &DomainName) -> SmtpReply {
    match why {
        InboundRejection::Loop => {
            reply(554, (5, 4, 6), format!("Mail loop: the message has already passed through {hostname}"))
        }
        InboundRejection::TooManyHops => {
            reply(554, (5, 4, 6), format!("The message has passed through {RECEIVED_MAX} hosts: a mail loop"))
        }
        InboundRejection::HeaderTooLarge => reply(554, (5, 6, 0), "The message header is too large"),
        InboundRejection::Dmarc(domain) => {
            reply(550, (5, 7, 1), format!("{domain} has a DMARC policy of reject, and this message fails DMARC"))
        }
        InboundRejection::Spam => reply(550, (5, 7, 1), "The message looks like spam"),
        InboundRejection::FilterDefers => reply(451, (4, 7, 1), "Try again later"),
        InboundRejection::DnsTempError => reply(451, (4, 4, 3), "DNS lookup of the sender failed; try again later"),
        InboundRejection::InsufficientStorage => reply(452, (4, 3, 1), "Too much mail at once; try again later"),
        InboundRejection::Unavailable => reply(451, (4, 3, 0), "The message cannot be accepted now; try again later"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_to_unknown_recipients_are_delayed_increasingly() {
        let delays: Vec<u64> = (0..9).map(|unknown| unknown_recipient_delay(unknown).as_secs()).collect();
        assert_eq!(delays, [0, 0, 0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(unknown_recipient_delay(u32::MAX), DELAY_MAX);
    }

    #[test]
    fn refusals_keep_their_codes() {
        let hostname = "mx.example".parse().unwrap();
        for (why, start) in [
            (InboundRejection::Loop, "554 5.4.6 Mail loop: the message has already passed through mx.example"),
            (InboundRejection::TooManyHops, "554 5.4.6 The message has passed through 100 hosts"),
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
