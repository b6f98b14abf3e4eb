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

use mail::address::{Address, Name};
use mail::reply::Reply;
use queue::inbound::{Failing, Inbound, Incoming, NotTaken, Nowhere, Place};
use queue::refusal::Refusal;

use crate::answers::{Answer, Answers, Message, Question};
use crate::policy::reply;
use crate::received;

use self::strangers::Strangers;

/// Mailboxes that are not there, asked for in one session, before answers are held back.
const UNKNOWN_FREE: u32 = 2;
/// How long the first answer is held back; each one doubles it.
const DELAY_FIRST: Duration = Duration::from_secs(1);
/// It is held back no longer than this.
const DELAY_MAX: Duration = Duration::from_secs(16);
/// Letters of a local part that ask for another host.
const ROUTING: [char; 3] = ['%', '!', '@'];

/// What the operator allows strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Mailboxes that are not there, asked for in one session; with the next one it ends.
    pub unknown_recipients_max: u32,
    /// And by one address in an hour; then it is not listened to until the hour is over.
    pub unknown_recipients_per_hour_max: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { unknown_recipients_max: 10, unknown_recipients_per_hour_max: 100 }
    }
}

/// Answers for the MX door.
pub struct Mx {
    inbound: Inbound,
    patience: Patience,
    strangers: Strangers,
}

/// What is remembered of a session.
#[derive(Debug)]
pub struct Caller {
    peer: IpAddr,
    /// The list that it is on, if its mail is marked for it.
    listed: bool,
    /// Mailboxes that are not there, so far.
    unknown: u32,
    /// The transaction: from whom, and for whom.
    reverse_path: Option<Address>,
    recipients: Vec<(Address, Place)>,
}

impl Mx {
    /// Takes mail in.
    #[must_use]
    pub fn new(inbound: Inbound, patience: Patience) -> Self {
        Self { inbound, patience, strangers: Strangers::new(patience.unknown_recipients_per_hour_max) }
    }

    async fn sender(
        &self,
        visitor: &mut Option<Box<Caller>>,
        reverse_path: Option<Address>,
        peer: IpAddr,
    ) -> Result<(), Reply> {
        self.inbound.hall().ready().map_err(|refusal| match refusal {
            Refusal::Full => reply(452, (4, 3, 1), refusal.to_string()),
            _ => reply(451, (4, 3, 0), refusal.to_string()),
        })?;
        if let Some(caller) = visitor {
            (caller.reverse_path, caller.recipients) = (reverse_path, Vec::new());
            return Ok(());
        }
        // Once a session.
        if self.strangers.are_too_many(peer, self.inbound.hall().clock().now()) && !is_this_machine(peer) {
            let text = "Too many unknown recipients from your address; try again later";
            return Err(reply(421, (4, 7, 0), text));
        }
        let listed = self.inbound.listed(peer).await.filter(|_| !is_this_machine(peer));
        if let Some((list, Failing::Refuse)) = &listed {
            return Err(reply(554, (5, 7, 1), format!("Your address is listed by {list}")));
        }
        let listed = listed.is_some();
        *visitor = Some(Box::new(Caller { peer, listed, unknown: 0, reverse_path, recipients: Vec::new() }));
        Ok(())
    }

    async fn recipient(&self, caller: &mut Caller, address: Address) -> Result<(), Reply> {
        // However it is written, it is one mailbox.
        if caller.recipients.iter().any(|(known, _)| is_same(known, &address)) {
            return Ok(());
        }
        if caller.reverse_path.is_none() && !caller.recipients.is_empty() {
            return Err(reply(550, (5, 5, 3), "A report (MAIL FROM:<>) has one recipient"));
        }
        let refusal = if address.local().contains(ROUTING) {
            relaying_denied()
        } else {
            match self.inbound.place(&address).await {
                Ok(place) if is_apart(&place, &caller.recipients) => {
                    return Err(reply(
                        452,
                        (4, 5, 3),
                        "Mail to us is taken by itself; send it to this one apart",
                    ));
                }
                Ok(place) => {
                    caller.recipients.push((address, place));
                    return Ok(());
                }
                Err(Nowhere::Unread(error)) => {
                    if !error.is_away() {
                        tracing::error!(%error, "recipients cannot be looked up");
                    }
                    return Err(reply(451, (4, 3, 0), "Recipients cannot be looked up; try again later"));
                }
                Err(Nowhere::Unknown) => reply(550, (5, 1, 1), "No such mailbox"),
                Err(Nowhere::Full(_)) => {
                    return Err(reply(452, (4, 2, 2), "The mailbox is full; try again later"));
                }
                Err(Nowhere::Elsewhere) => relaying_denied(),
            }
        };
        Err(self.unknown(caller, refusal).await)
    }

    /// A dictionary is read slowly, and not to its end.
    async fn unknown(&self, caller: &mut Caller, refusal: Reply) -> Reply {
        caller.unknown += 1;
        let clock = self.inbound.hall().clock();
        let is_stranger = !is_this_machine(caller.peer);
        if is_stranger {
            self.strangers.count(caller.peer, clock.now());
        }
        if caller.unknown > self.patience.unknown_recipients_max {
            metrics::counter!("postrider_smtp_dictionaries_total").increment(1);
            return reply(421, (4, 7, 0), "Too many unknown recipients");
        }
        if is_stranger && let Ok(until) = clock.now().checked_add(delay(caller.unknown)) {
            clock.sleep_until(until).await;
        }
        refusal
    }

    async fn take(&self, caller: &mut Caller, message: Message) -> Result<Reply, Reply> {
        let recipients = std::mem::take(&mut caller.recipients);
        let is_whole = message
            .recipients
            .iter()
            .all(|to| recipients.iter().any(|(known, _)| is_same(known, &to.address)));
        if !is_whole {
            // The session asked for every one of them; should it not have, nothing is lost.
            return Err(reply(451, (4, 3, 0), "Try again later"));
        }
        let now = self.inbound.hall().clock().now();
        let received = received::field(&message.trace, message.envelope.smtputf8, now);
        let incoming = Incoming {
            peer: message.trace.peer,
            helo: message.trace.helo.to_string(),
            reverse_path: message.envelope.reverse_path,
            recipients,
            message: message.content,
            received,
            listed: caller.listed,
        };
        // Its share of the memory budget, until it is done.
        let _held = message.held;
        match self.inbound.take(incoming).await {
            Ok(ids) => {
                let text = ids.first().map_or_else(|| "OK".to_owned(), |id| format!("OK {id}"));
                Ok(reply(250, (2, 0, 0), text))
            }
            Err(why) => Err(not_taken(&why, self.inbound.hostname())),
        }
    }
}

impl Answers for Mx {
    type Visitor = Option<Box<Caller>>;

    async fn answer(&self, visitor: &mut Option<Box<Caller>>, question: Question) -> Answer {
        let answered = match (question, &mut *visitor) {
            (Question::Sender { reverse_path, peer, .. }, _) => {
                self.sender(visitor, reverse_path, peer).await.map(|()| Answer::Granted)
            }
            (Question::Recipient(address), Some(caller)) => {
                self.recipient(caller, address).await.map(|()| Answer::Granted)
            }
            (Question::Take(message), Some(caller)) => self.take(caller, *message).await.map(Answer::Said),
            // The session does not get here; should it, nothing is taken.
            (Question::Authenticate(..), _) => Err(reply(502, (5, 5, 1), "AUTH is not offered here")),
            (_, None) => Err(reply(503, (5, 5, 1), "Send MAIL first")),
        };
        answered.unwrap_or_else(Answer::Said)
    }
}

/// Whether two addresses are one mailbox, however they are written.
fn is_same(one: &Address, other: &Address) -> bool {
    one == other || one.folded() == other.folded()
}

/// Whether mail for both cannot be taken at once: what is passed on to our people is not taken in with the same commit as
/// what others receive, and would be passed on again, should that fail.
fn is_apart(place: &Place, others: &[(Address, Place)]) -> bool {
    let is_ours = |place: &Place| matches!(place, Place::Postmaster);
    !others.is_empty() && (is_ours(place) || others.iter().any(|(_, place)| is_ours(place)))
}

/// Whether we are called from an address of our own: what a customer writes to many mailboxes that are not here must
/// not close the door to all others who write from here. Loopback is not meant: who is behind it is not known.
fn is_this_machine(peer: IpAddr) -> bool {
    !peer.is_loopback() && std::net::UdpSocket::bind((peer, 0)).is_ok()
}

fn relaying_denied() -> Reply {
    reply(550, (5, 7, 1), "Relaying denied: this host takes mail for its own domains only")
}

fn delay(unknown: u32) -> Duration {
    match unknown.checked_sub(UNKNOWN_FREE + 1) {
        None => Duration::ZERO,
        Some(doublings) => DELAY_FIRST.saturating_mul(1 << doublings.min(16)).min(DELAY_MAX),
    }
}

fn not_taken(why: &NotTaken, hostname: &Name) -> Reply {
    match why {
        NotTaken::Loop => reply(554, (5, 4, 6), format!("Mail loop: the message was at {hostname} before")),
        NotTaken::Header => reply(554, (5, 6, 0), "The header of the message is too large"),
        NotTaken::Dmarc(domain) => {
            reply(550, (5, 7, 1), format!("{domain} wants mail refused that fails DMARC, as this does"))
        }
        NotTaken::Spam => reply(550, (5, 7, 1), "The message looks like spam"),
        NotTaken::FilterDefers => reply(451, (4, 7, 1), "Try again later"),
        NotTaken::Unresolved => {
            reply(451, (4, 4, 3), "The DNS gives no answer about the sender; try again later")
        }
        NotTaken::Full => reply(452, (4, 3, 1), "Too much mail at once; try again later"),
        NotTaken::Unavailable => reply(451, (4, 3, 0), "The message cannot be taken now; try again later"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_back_longer_and_longer() {
        let delays: Vec<u64> = (0..9).map(|unknown| delay(unknown).as_secs()).collect();
        assert_eq!(delays, [0, 0, 0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(delay(u32::MAX), DELAY_MAX);
    }

    #[test]
    fn refusals_keep_their_codes() {
        let hostname = "mx.example".parse().unwrap();
        for (why, start) in [
            (NotTaken::Loop, "554 5.4.6 "),
            (NotTaken::Dmarc("a.example".parse().unwrap()), "550 5.7.1 a.example "),
            (NotTaken::Spam, "550 5.7.1 "),
            (NotTaken::Unresolved, "451 4.4.3 "),
            (NotTaken::Full, "452 4.3.1 "),
            (NotTaken::Unavailable, "451 4.3.0 "),
        ] {
            assert!(not_taken(&why, &hostname).to_string().starts_with(start), "{why:?}");
        }
    }
}
