//! Inbound: whom mail comes in for, and what becomes of it.
//!
//! ```text
//! RCPT ─► place: a customer's domain · a return path of ours · our postmaster · nobody
//! content ─► loop? ─► verdict (dns) ∥ heading (mail) ─► refuse? ─► spam? ─► Received ─► [line]─►[ rows + event + body ]
//!       └──► return paths: queue::returned        └──► postmaster: the hall
//! ```
//!
//! Everything is decided while the peer waits: what was taken never bounces, so nobody can have us write to
//! somebody who wrote nothing (backscatter). Taken means: on disk, for all its recipients, or for none.

mod filter;
mod line;
mod postmaster;
pub mod read;

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use dns::lookup::Resolver;
use dns::verdict::arrival::{self, Author, Verdict, Way};
use dns::verdict::blocklist;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::{Address, Name};
use mail::arrival::Arrival;
use mail::domain::Domain;
use mail::id::{AccountId, ReceivedId};
use mail::message::HEADER_BYTES_MAX;
use mail::quota::Noun;
use mail::received::{Heading, Received, SpamStatus, Trace, field_count, without_results_of};
use mail::returned::reporter::Reporter;
use mail::spam::{self, Signs};
use store::engine::{Body, ReadError};

use crate::accept::Hall;
use crate::quota::QuotaError;
use crate::returned::{Mailbox, Returned, Taken};

use filter::Opinion;
pub use filter::{Filter, Rspamd, RspamdSettings};
use line::{Intake, Line};

/// Our own mailboxes that every host must have (RFC 5321 4.5.1, RFC 2142 4).
const OWN_MAILBOXES: [&str; 2] = ["postmaster", ABUSE];
/// Where complaints go, of people and, at the return-path host, of machines.
const ABUSE: &str = "abuse";

/// What is done with mail that the owner of its author's domain wants refused (DMARC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failing {
    /// It is refused.
    #[default]
    Refuse,
    /// It is taken in and marked as spam.
    Mark,
}

/// What is done when it cannot be found out now where mail comes from, or whether it is spam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unsure {
    /// It is taken in.
    #[default]
    Accept,
    /// It is to come again later.
    Defer,
}

/// What the operator wants.
#[derive(Debug, Clone)]
pub struct Manners {
    /// Mail that the owner of its author's domain wants refused.
    pub dmarc: Failing,
    /// The DNS gives no answer.
    pub dns_failure: Unsure,
    /// Lists of bad addresses.
    pub lists: Vec<Name>,
    /// What a listed host hears, or what becomes of its mail.
    pub listed: Failing,
    /// Looks for spam.
    pub filter: Filter,
    /// Where mail to our own mailboxes goes; none: it is refused.
    pub postmaster: Option<Address>,
    /// Who is believed about complaints.
    pub reporters: Vec<Reporter>,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            dmarc: Failing::default(),
            dns_failure: Unsure::default(),
            lists: Vec::new(),
            listed: Failing::default(),
            filter: Filter::Rules,
            postmaster: None,
            reporters: Reporter::usual(),
        }
    }
}

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub struct Names {
    /// Our own name.
    pub hostname: Name,
    /// Where return paths lead.
    pub return_path_host: Name,
}

impl Names {
    /// Whether a name is ours: mail to it is for the operator, or comes back.
    pub(crate) fn is_own(&self, name: &Name) -> bool {
        *name == self.hostname || *name == self.return_path_host
    }

    /// Whether a name looks like the return path of a sending domain.
    pub(crate) fn is_return_path(name: &Name) -> bool {
        let rest = name.as_str().strip_prefix(mail::setup::RETURN_PATH_LABEL);
        rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Whose an address is.
#[derive(Debug, Clone)]
pub enum Place {
    /// A customer's.
    Customer(Arc<Domain>),
    /// Ours, for what comes back.
    Returned(Mailbox),
    /// Our own people's.
    Postmaster,
}

/// Why an address is nobody's.
#[derive(Debug)]
pub enum Nowhere {
    /// The domain is ours, and has no such mailbox.
    Unknown,
    /// The domain is not ours.
    Elsewhere,
    /// The account keeps as many received emails as its plan includes, or they are being counted.
    Full(QuotaError),
    /// It could not be found out.
    Unread(ReadError),
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// It goes round in circles.
    Loop,
    /// Its header is too large.
    Header,
    /// The owner of the author's domain wants it refused.
    Dmarc(Name),
    /// It is spam.
    Spam,
    /// It is to come again: the spam filter wants that.
    FilterDefers,
    /// It is to come again: the DNS gives no answer.
    Unresolved,
    /// It is to come again: the disk is full.
    Full,
    /// It is to come again: the store or a filter cannot be asked.
    Unavailable,
}

/// A message that came.
#[derive(Debug)]
pub struct Incoming {
    /// Who handed it in.
    pub peer: IpAddr,
    /// What that host calls itself.
    pub helo: String,
    /// The envelope's sender.
    pub reverse_path: Option<Address>,
    /// For whom, and whose each is; each once.
    pub recipients: Vec<(Address, Place)>,
    /// The message.
    pub message: Bytes,
    /// The `Received` field of the door.
    pub received: String,
    /// The peer is on a list of bad addresses.
    pub listed: bool,
}

/// What a message is, once it was looked at.
struct Looked {
    verdict: Verdict,
    heading: Heading,
    opinion: Opinion,
    received_at: Timestamp,
}

/// Takes mail in. Clones share all.
#[derive(Clone)]
pub struct Inbound(Arc<Shared>);

struct Shared {
    hall: Hall,
    returned: Returned,
    resolver: Resolver,
    names: Names,
    manners: RwLock<Arc<Manners>>,
    line: Line,
}

impl Inbound {
    /// Takes mail in for the domains of a hall.
    #[must_use]
    pub fn new(hall: Hall, resolver: Resolver, names: Names, manners: Manners) -> Self {
        let returned = hall.returned().clone();
        let line = Line::new(Arc::clone(&hall.worker));
        let manners = RwLock::new(Arc::new(manners));
        Self(Arc::new(Shared { hall, returned, resolver, names, manners, line }))
    }

    /// Goes on as the operator wants from now on.
    pub fn adopt(&self, manners: Manners) {
        *self.0.manners.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(manners);
    }

    /// The hall.
    #[must_use]
    pub fn hall(&self) -> &Hall {
        &self.0.hall
    }

    /// Asks the DNS.
    #[must_use]
    pub fn resolver(&self) -> &Resolver {
        &self.0.resolver
    }

    /// Our own name.
    #[must_use]
    pub fn hostname(&self) -> &Name {
        &self.0.names.hostname
    }

    fn manners(&self) -> Arc<Manners> {
        Arc::clone(&self.0.manners.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The list that a peer is on, and what is to be done with it.
    pub async fn listed(&self, peer: IpAddr) -> Option<(Name, Failing)> {
        let manners = self.manners();
        let list = blocklist::listed(&self.0.resolver, peer, &manners.lists).await?;
        Some((list, manners.listed))
    }

    /// Whose an address is. A change of a domain counts from the next question on.
    ///
    /// # Errors
    /// [`Nowhere`].
    pub async fn place(&self, address: &Address) -> Result<Place, Nowhere> {
        let name = address.domain();
        let found = store::domain::by_name(self.0.hall.store(), name).await.map_err(Nowhere::Unread)?;
        if let Some(domain) = found.filter(Domain::takes_mail_in) {
            let is_one = domain.receives(address);
            if !is_one {
                return Err(Nowhere::Unknown);
            }
            self.check_room(domain.account).await?;
            return Ok(Place::Customer(Arc::new(domain)));
        }
        let own = self.0.names.is_own(name);
        if (own || Names::is_return_path(name))
            && let Some(mailbox) = self.0.returned.knows(address).await.map_err(Nowhere::Unread)?
        {
            return Ok(Place::Returned(mailbox));
        }
        if !own {
            return Err(Nowhere::Elsewhere);
        }
        let is_own = OWN_MAILBOXES.iter().any(|mailbox| address.local().eq_ignore_ascii_case(mailbox));
        match self.manners().postmaster {
            Some(_) if is_own => Ok(Place::Postmaster),
            _ => Err(Nowhere::Unknown),
        }
    }

    /// Takes a message: returns when it is on disk for everybody it is for.
    ///
    /// # Errors
    /// [`NotTaken`], for everybody.
    pub fn take(&self, incoming: Incoming) -> BoxFuture<'_, Result<Vec<ReceivedId>, NotTaken>> {
        Box::pin(async move {
            // What comes back goes nowhere from here, however long its way was.
            let comes_back = |(_, place): &(Address, Place)| matches!(place, Place::Returned(_));
            if !incoming.recipients.iter().all(comes_back) && Trace::is_worn(&incoming.message) {
                return Err(NotTaken::Loop);
            }
            if header_bytes(&incoming.message) > HEADER_BYTES_MAX {
                return Err(NotTaken::Header);
            }
            let customers =
                incoming.recipients.iter().filter(|(_, place)| matches!(place, Place::Customer(_)));
            let was_here = |(address, place): &(Address, Place)| match place {
                Place::Customer(_) => Trace::was_delivered_to(&incoming.message, address),
                Place::Postmaster => Trace::was_passed_on_for(&incoming.message, address),
                Place::Returned(_) => false,
            };
            if incoming.recipients.iter().any(was_here) {
                return Err(NotTaken::Loop);
            }
            let for_customers = customers.count() > 0;
            let looked = self.look(&incoming, for_customers).await?;
            self.hand_over(&incoming, &looked).await?;
            if !for_customers {
                return Ok(Vec::new());
            }
            let intakes = self.received(&incoming, &looked);
            let ids = intakes.iter().flat_map(|intake| intake.received.iter().map(|one| one.id)).collect();
            let sizes: Vec<_> = intakes
                .iter()
                .flat_map(|intake| intake.received.iter().map(|one| (one.account, one.size_bytes)))
                .collect();
            self.0.line.take(intakes).await?;
            for (account, size_bytes) in sizes {
                let quotas = self.0.hall.quotas();
                quotas.record(account, Noun::ReceivedEmails, 1);
                quotas.record(account, Noun::ReceivedBytes, size_bytes);
            }
            metrics::counter!("postrider_received_total").increment(1);
            self.0.hall.count_received();
            Ok(ids)
        })
    }

    /// Whether an account may keep one more received email. It is asked for each recipient, before the message: a
    /// mailbox that is full keeps no mail from others.
    async fn check_room(&self, id: AccountId) -> Result<(), Nowhere> {
        let hall = &self.0.hall;
        let account = store::account::get(hall.store(), id).await.map_err(Nowhere::Unread)?;
        let Some(account) = account else { return Ok(()) };
        for noun in [Noun::ReceivedEmails, Noun::ReceivedBytes] {
            match hall.quotas().reserve(&account, noun, 1).await {
                Ok(_given_back) => {}
                Err(QuotaError::Read(error)) => return Err(Nowhere::Unread(error)),
                Err(error) => return Err(Nowhere::Full(error)),
            }
        }
        Ok(())
    }

    /// Looks at a message. What comes back to a return path is never refused: its loss would be ours.
    async fn look(&self, incoming: &Incoming, for_customers: bool) -> Result<Looked, NotTaken> {
        let shared = &self.0;
        let manners = self.manners();
        let received_at = shared.hall.clock().now();
        let way = Way {
            peer: incoming.peer,
            helo: incoming.helo.clone(),
            reverse_path: incoming.reverse_path.clone(),
            hostname: shared.names.hostname.clone(),
            received_at,
        };
        let (verdict, heading) = tokio::join!(
            arrival::judge(&shared.resolver, incoming.message.clone(), way),
            read::heading(incoming.message.clone()),
        );
        let mut looked = Looked { verdict, heading, opinion: Opinion::default(), received_at };
        if !for_customers {
            return Ok(looked);
        }
        if manners.dns_failure == Unsure::Defer && looked.verdict.is_unresolved() {
            return Err(NotTaken::Unresolved);
        }
        let refused = looked.verdict.is_to_be_refused();
        if let Author::One(domain) = &looked.verdict.author
            && refused
            && manners.dmarc == Failing::Refuse
        {
            return Err(NotTaken::Dmarc(domain.clone()));
        }
        looked.opinion = self.opinion(&manners, incoming, &looked).await?;
        Ok(looked)
    }

    /// Whether it is spam.
    async fn opinion(
        &self,
        manners: &Manners,
        incoming: &Incoming,
        looked: &Looked,
    ) -> Result<Opinion, NotTaken> {
        let Looked { verdict, heading, .. } = looked;
        let signs = Signs {
            auth: verdict.auth,
            iprev: verdict.iprev,
            has_author: verdict.author != Author::Nobody,
            is_listed: incoming.listed,
            heading,
            has_date: field_count(&incoming.message, "Date") > 0,
            message: &incoming.message,
        };
        let own = signs.score();
        // Points that speak for it do not outweigh what marks by itself.
        let status = if signs.is_marked() { SpamStatus::Spam } else { spam::status(own) };
        let by_rules = Opinion { status, score: Some(own) };
        match &manners.filter {
            Filter::Off => Ok(Opinion::default()),
            Filter::Rules => Ok(by_rules),
            Filter::Rspamd(rspamd) => match rspamd.ask(incoming, &self.0.names.hostname).await {
                Ok(asked) => asked.map(|opinion| opinion.or_marked(signs.is_marked(), own)),
                Err(error) => {
                    metrics::counter!("postrider_spam_filter_failures_total").increment(1);
                    tracing::warn!(%error, "the spam filter gives no answer");
                    match rspamd.failure() {
                        Unsure::Defer => Err(NotTaken::Unavailable),
                        // Nobody has looked into it; where it comes from still counts.
                        Unsure::Accept if signs.is_marked() => Ok(by_rules),
                        Unsure::Accept => Ok(Opinion { status: SpamStatus::NotChecked, score: None }),
                    }
                }
            },
        }
    }

    /// Hands over what is not a customer's. Should the rest fail, it comes again, and changes nothing twice.
    async fn hand_over(&self, incoming: &Incoming, looked: &Looked) -> Result<(), NotTaken> {
        let manners = self.manners();
        for (address, place) in &incoming.recipients {
            match place {
                Place::Customer(_) => {}
                Place::Returned(mailbox) => {
                    let arrival = Arrival {
                        received_at: looked.received_at,
                        peer: incoming.peer,
                        helo: incoming.helo.clone(),
                        reverse_path: incoming.reverse_path.clone(),
                        recipient: address.clone(),
                        message: incoming.message.clone(),
                        authenticated: looked.verdict.stands_behind().to_vec(),
                    };
                    let taken = self.0.returned.take(*mailbox, &arrival, &manners.reporters).await;
                    let taken = taken.map_err(|error| {
                        // It comes again: to what is still being delivered in a while, to a store in need later.
                        store::warn_unless_away!(self.0.hall.worker.store, %error, "what came back is not booked yet");
                        NotTaken::Unavailable
                    })?;
                    // People write to `abuse` as well as machines do (RFC 2142 4).
                    let is_abuse = address.local().eq_ignore_ascii_case(ABUSE);
                    if taken == Taken::NotUnderstood && is_abuse && *mailbox == Mailbox::Complaints {
                        self.pass_on(&manners, address, incoming).await?;
                    }
                }
                Place::Postmaster => self.pass_on(&manners, address, incoming).await?,
            }
        }
        Ok(())
    }

    /// Passes a message on to our own people, if there is somebody.
    async fn pass_on(
        &self,
        manners: &Manners,
        mailbox: &Address,
        incoming: &Incoming,
    ) -> Result<(), NotTaken> {
        match manners.postmaster.clone() {
            Some(to) if !Trace::was_passed_on_for(&incoming.message, mailbox) => {
                Box::pin(postmaster::forward(&self.0.hall, to, mailbox, incoming)).await
            }
            _ => Ok(()),
        }
    }

    /// What is to be kept: an intake for each account, a received email for each recipient.
    fn received(&self, incoming: &Incoming, looked: &Looked) -> Vec<Intake> {
        let Looked { verdict, heading, opinion, received_at } = looked;
        let door = format!("{}{}", verdict.field(), incoming.received);
        let body: Body = without_results_of(&incoming.message, &self.0.names.hostname).into_iter().collect();
        let mut intakes: Vec<Intake> = Vec::new();
        for (address, place) in &incoming.recipients {
            let Place::Customer(domain) = place else { continue };
            let id = ReceivedId::new(*received_at, self.0.hall.entropy().id());
            let intake = intake_of(&mut intakes, domain.account, id, &body);
            intake.received.push(Received {
                id,
                account: domain.account,
                domain: domain.id,
                // Given out in the commit.
                sequence: 0,
                rcpt_to: address.folded(),
                envelope_from: incoming.reverse_path.clone(),
                heading: heading.clone(),
                auth: verdict.auth,
                spam_status: opinion.status,
                spam_score: opinion.score,
                trace: Trace::on_top(incoming.reverse_path.as_ref(), address, &door),
                body: intake.body_id,
                size_bytes: incoming.message.len() as u64,
                received_at: *received_at,
            });
        }
        intakes
    }
}

fn intake_of<'a>(
    intakes: &'a mut Vec<Intake>,
    account: AccountId,
    id: ReceivedId,
    body: &Body,
) -> &'a mut Intake {
    let place = intakes.iter().position(|intake| intake.account == account).unwrap_or_else(|| {
        intakes.push(Intake { account, body_id: id, body: body.clone(), received: Vec::new() });
        intakes.len() - 1
    });
    &mut intakes[place]
}

/// How large the header is.
fn header_bytes(message: &[u8]) -> usize {
    memchr::memmem::find(message, b"\r\n\r\n").unwrap_or(message.len())
}
