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
use dns::verdict::arrival::{self, AuthenticationVerdict, AuthorDomain, MessageSource};
use dns::verdict::blocklist;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::{Address, DomainName};
use mail::arrival::InboundMessage;
use mail::domain::SendingDomain;
use mail::id::{AccountId, ReceivedId};
use mail::message::HEADER_BYTES_MAX;
use mail::quota::Noun;
use mail::received::{ReceivedEmail, ReceivedHeader, SpamStatus, TraceFields, field_count, strip_forged_auth_results};
use mail::returned::reporter::FeedbackReporter;
use mail::spam::{self, SpamSignals};
use store::engine::{Body, ReadError};

use crate::accept::Intake;
use crate::quota::StorageQuotaError;
use crate::returned::{BounceHandling, BounceMailbox, BounceProcessor};

use filter::SpamVerdict;
pub use filter::{RspamdClient, RspamdSettings, SpamScanner};
use line::{BatchWriter, InboundRecord};

/// Our own mailboxes that every host must have (RFC 5321 4.5.1, RFC 2142 4).
const OWN_MAILBOXES: [&str; 2] = ["postmaster", ABUSE_LOCAL_PART];
/// Where complaints go, of people and, at the return-path host, of machines.
const ABUSE_LOCAL_PART: &str = "abuse";

/// What is done with mail that the owner of its author's domain wants refused (DMARC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPolicyFail {
    /// It is refused.
    #[default]
    Refuse,
    /// It is taken in and marked as spam.
    MarkAsSpam,
}

/// What is done when it cannot be found out now where mail comes from, or whether it is spam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTempError {
    /// It is taken in.
    #[default]
    Accept,
    /// It is to come again later.
    Defer,
}

/// What the operator wants.
#[derive(Debug, Clone)]
pub struct InboundPolicy {
    /// Mail that the owner of its author's domain wants refused.
    pub on_dmarc_fail: OnPolicyFail,
    /// The DNS gives no answer.
    pub on_dns_temp_error: OnTempError,
    /// Lists of bad addresses.
    pub dnsbls: Vec<DomainName>,
    /// What a listed host hears, or what becomes of its mail.
    pub on_dnsbl_listed: OnPolicyFail,
    /// Looks for spam.
    pub spam_filter: SpamScanner,
    /// Where mail to our own mailboxes goes; none: it is refused.
    pub postmaster: Option<Address>,
    /// Who is believed about complaints.
    pub reporters: Vec<FeedbackReporter>,
}

impl Default for InboundPolicy {
    fn default() -> Self {
        Self {
            on_dmarc_fail: OnPolicyFail::default(),
            on_dns_temp_error: OnTempError::default(),
            dnsbls: Vec::new(),
            on_dnsbl_listed: OnPolicyFail::default(),
            spam_filter: SpamScanner::Rules,
            postmaster: None,
            reporters: FeedbackReporter::defaults(),
        }
    }
}

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub struct OwnHostnames {
    /// Our own name.
    pub hostname: DomainName,
    /// Where return paths lead.
    pub return_path_host: DomainName,
}

impl OwnHostnames {
    /// Whether a name is ours: mail to it is for the operator, or comes back.
    pub(crate) fn is_own(&self, name: &DomainName) -> bool {
        *name == self.hostname || *name == self.return_path_host
    }

    /// Whether a name looks like the return path of a sending domain.
    pub(crate) fn is_return_path(name: &DomainName) -> bool {
        let rest = name.as_str().strip_prefix(mail::setup::RETURN_PATH_LABEL);
        rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Whose an address is.
#[derive(Debug, Clone)]
pub enum RecipientRoute {
    /// A customer's.
    Customer(Arc<SendingDomain>),
    /// Ours, for what comes back.
    Bounce(BounceMailbox),
    /// Our own people's.
    Postmaster,
}

/// Why an address is nobody's.
#[derive(Debug)]
pub enum UnknownRecipient {
    /// The domain is ours, and has no such mailbox.
    NoSuchMailbox,
    /// The domain is not ours.
    NotLocal,
    /// The account keeps as many received emails as its plan includes, or they are being counted.
    MailboxFull(StorageQuotaError),
    /// It could not be found out.
    Read(ReadError),
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundRejection {
    /// It goes round in circles.
    Loop,
    /// Its header is too large.
    HeaderTooLarge,
    /// The owner of the author's domain wants it refused.
    Dmarc(DomainName),
    /// It is spam.
    Spam,
    /// It is to come again: the spam filter wants that.
    FilterDefers,
    /// It is to come again: the DNS gives no answer.
    DnsTempError,
    /// It is to come again: the disk is full.
    InsufficientStorage,
    /// It is to come again: the store or a filter cannot be asked.
    Unavailable,
}

/// A message that came.
#[derive(Debug)]
pub struct IncomingMessage {
    /// Who handed it in.
    pub peer: IpAddr,
    /// What that host calls itself.
    pub helo: String,
    /// The envelope's sender.
    pub reverse_path: Option<Address>,
    /// For whom, and whose each is; each once.
    pub recipients: Vec<(Address, RecipientRoute)>,
    /// The message.
    pub message: Bytes,
    /// The `Received` field of the door.
    pub received: String,
    /// The peer is on a list of bad addresses.
    pub is_dnsbl_listed: bool,
}

/// What a message is, once it was looked at.
struct InspectedMessage {
    authentication: AuthenticationVerdict,
    header: ReceivedHeader,
    spam: SpamVerdict,
    received_at: Timestamp,
}

/// Takes mail in. Clones share all.
#[derive(Clone)]
pub struct InboundService(Arc<InboundState>);

struct InboundState {
    intake: Intake,
    bounces: BounceProcessor,
    resolver: Resolver,
    hostnames: OwnHostnames,
    policy: RwLock<Arc<InboundPolicy>>,
    writer: BatchWriter,
}

impl InboundService {
    /// Takes mail in for the domains of a hall.
    #[must_use]
    pub fn new(hall: Intake, resolver: Resolver, names: OwnHostnames, manners: InboundPolicy) -> Self {
        let returned = hall.bounces().clone();
        let line = BatchWriter::new(Arc::clone(&hall.worker));
        let manners = RwLock::new(Arc::new(manners));
        Self(Arc::new(InboundState {
            intake: hall,
            bounces: returned,
            resolver,
            hostnames: names,
            policy: manners,
            writer: line,
        }))
    }

    /// Goes on as the operator wants from now on.
    pub fn reload(&self, manners: InboundPolicy) {
        *self.0.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(manners);
    }

    /// The hall.
    #[must_use]
    pub fn intake(&self) -> &Intake {
        &self.0.intake
    }

    /// Asks the DNS.
    #[must_use]
    pub fn resolver(&self) -> &Resolver {
        &self.0.resolver
    }

    /// Our own name.
    #[must_use]
    pub fn hostname(&self) -> &DomainName {
        &self.0.hostnames.hostname
    }

    fn policy(&self) -> Arc<InboundPolicy> {
        Arc::clone(&self.0.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The list that a peer is on, and what is to be done with it.
    pub async fn dnsbl_listing(&self, peer: IpAddr) -> Option<(DomainName, OnPolicyFail)> {
        let manners = self.policy();
        let list = blocklist::find_listing(&self.0.resolver, peer, &manners.dnsbls).await?;
        Some((list, manners.on_dnsbl_listed))
    }

    /// Whose an address is. A change of a domain counts from the next question on.
    ///
    /// # Errors
    /// [`Nowhere`].
    pub async fn route_recipient(&self, address: &Address) -> Result<RecipientRoute, UnknownRecipient> {
        let name = address.domain();
        let found = store::domain::find_by_name(self.0.intake.store(), name).await.map_err(UnknownRecipient::Read)?;
        if let Some(domain) = found.filter(SendingDomain::accepts_inbound) {
            let is_one = domain.accepts_address(address);
            if !is_one {
                return Err(UnknownRecipient::NoSuchMailbox);
            }
            self.check_mailbox_quota(domain.account).await?;
            return Ok(RecipientRoute::Customer(Arc::new(domain)));
        }
        let own = self.0.hostnames.is_own(name);
        if (own || OwnHostnames::is_return_path(name))
            && let Some(mailbox) = self.0.bounces.find_mailbox(address).await.map_err(UnknownRecipient::Read)?
        {
            return Ok(RecipientRoute::Bounce(mailbox));
        }
        if !own {
            return Err(UnknownRecipient::NotLocal);
        }
        let is_own = OWN_MAILBOXES.iter().any(|mailbox| address.local_part().eq_ignore_ascii_case(mailbox));
        match self.policy().postmaster {
            Some(_) if is_own => Ok(RecipientRoute::Postmaster),
            _ => Err(UnknownRecipient::NoSuchMailbox),
        }
    }

    /// Takes a message: returns when it is on disk for everybody it is for.
    ///
    /// # Errors
    /// [`NotTaken`], for everybody.
    pub fn receive(&self, incoming: IncomingMessage) -> BoxFuture<'_, Result<Vec<ReceivedId>, InboundRejection>> {
        Box::pin(async move {
            // What comes back goes nowhere from here, however long its way was.
            let comes_back = |(_, place): &(Address, RecipientRoute)| matches!(place, RecipientRoute::Bounce(_));
            if !incoming.recipients.iter().all(comes_back) && TraceFields::exceeds_hop_limit(&incoming.message) {
                return Err(InboundRejection::Loop);
            }
            if header_bytes(&incoming.message) > HEADER_BYTES_MAX {
                return Err(InboundRejection::HeaderTooLarge);
            }
            let customers =
                incoming.recipients.iter().filter(|(_, place)| matches!(place, RecipientRoute::Customer(_)));
            let was_here = |(address, place): &(Address, RecipientRoute)| match place {
                RecipientRoute::Customer(_) => TraceFields::was_delivered_to(&incoming.message, address),
                RecipientRoute::Postmaster => TraceFields::was_forwarded_for(&incoming.message, address),
                RecipientRoute::Bounce(_) => false,
            };
            if incoming.recipients.iter().any(was_here) {
                return Err(InboundRejection::Loop);
            }
            let for_customers = customers.count() > 0;
            let looked = self.inspect(&incoming, for_customers).await?;
            self.deliver_to_service(&incoming, &looked).await?;
            if !for_customers {
                return Ok(Vec::new());
            }
            let intakes = self.received_records(&incoming, &looked);
            let ids = intakes.iter().flat_map(|intake| intake.received.iter().map(|one| one.id)).collect();
            let sizes: Vec<_> = intakes
                .iter()
                .flat_map(|intake| intake.received.iter().map(|one| (one.account, one.size_bytes)))
                .collect();
            self.0.writer.write(intakes).await?;
            for (account, size_bytes) in sizes {
                let quotas = self.0.intake.storage_quotas();
                quotas.record(account, Noun::ReceivedEmails, 1);
                quotas.record(account, Noun::ReceivedBytes, size_bytes);
            }
            metrics::counter!("postrider_received_total").increment(1);
            self.0.intake.count_received();
            Ok(ids)
        })
    }

    /// Whether an account may keep one more received email. It is asked for each recipient, before the message: a
    /// mailbox that is full keeps no mail from others.
    async fn check_mailbox_quota(&self, id: AccountId) -> Result<(), UnknownRecipient> {
        let hall = &self.0.intake;
        let account = store::account::get(hall.store(), id).await.map_err(UnknownRecipient::Read)?;
        let Some(account) = account else { return Ok(()) };
        for noun in [Noun::ReceivedEmails, Noun::ReceivedBytes] {
            match hall.storage_quotas().reserve(&account, noun, 1).await {
                Ok(_given_back) => {}
                Err(StorageQuotaError::Read(error)) => return Err(UnknownRecipient::Read(error)),
                Err(error) => return Err(UnknownRecipient::MailboxFull(error)),
            }
        }
        Ok(())
    }

    /// Looks at a message. What comes back to a return path is never refused: its loss would be ours.
    async fn inspect(
        &self,
        incoming: &IncomingMessage,
        for_customers: bool,
    ) -> Result<InspectedMessage, InboundRejection> {
        let shared = &self.0;
        let manners = self.policy();
        let received_at = shared.intake.clock().now();
        let way = MessageSource {
            peer: incoming.peer,
            helo: incoming.helo.clone(),
            reverse_path: incoming.reverse_path.clone(),
            hostname: shared.hostnames.hostname.clone(),
            received_at,
        };
        let (verdict, heading) = tokio::join!(
            arrival::authenticate(&shared.resolver, incoming.message.clone(), way),
            read::parse_header(incoming.message.clone()),
        );
        let mut looked =
            InspectedMessage { authentication: verdict, header: heading, spam: SpamVerdict::default(), received_at };
        if !for_customers {
            return Ok(looked);
        }
        if manners.on_dns_temp_error == OnTempError::Defer && looked.authentication.has_temporary_error() {
            return Err(InboundRejection::DnsTempError);
        }
        let refused = looked.authentication.is_dmarc_reject();
        if let AuthorDomain::Single(domain) = &looked.authentication.author
            && refused
            && manners.on_dmarc_fail == OnPolicyFail::Refuse
        {
            return Err(InboundRejection::Dmarc(domain.clone()));
        }
        looked.spam = self.scan_for_spam(&manners, incoming, &looked).await?;
        Ok(looked)
    }

    /// Whether it is spam.
    async fn scan_for_spam(
        &self,
        manners: &InboundPolicy,
        incoming: &IncomingMessage,
        looked: &InspectedMessage,
    ) -> Result<SpamVerdict, InboundRejection> {
        let InspectedMessage { authentication: verdict, header: heading, .. } = looked;
        let signs = SpamSignals {
            auth: verdict.auth,
            iprev: verdict.iprev,
            has_author: verdict.author != AuthorDomain::Invalid,
            is_listed: incoming.is_dnsbl_listed,
            heading,
            has_date: field_count(&incoming.message, "Date") > 0,
            message: &incoming.message,
        };
        let own = signs.score();
        // Points that speak for it do not outweigh what marks by itself.
        let status = if signs.fails_authentication() { SpamStatus::Spam } else { spam::spam_status(own) };
        let by_rules = SpamVerdict { status, score: Some(own) };
        match &manners.spam_filter {
            SpamScanner::Off => Ok(SpamVerdict::default()),
            SpamScanner::Rules => Ok(by_rules),
            SpamScanner::Rspamd(rspamd) => {
                match rspamd.check_message(incoming, &self.0.hostnames.hostname).await {
                    Ok(asked) => asked.map(|opinion| opinion.or_marked(signs.fails_authentication(), own)),
                    Err(error) => {
                        metrics::counter!("postrider_spam_filter_failures_total").increment(1);
                        tracing::warn!(%error, "the spam filter gives no answer");
                        match rspamd.on_failure() {
                            OnTempError::Defer => Err(InboundRejection::Unavailable),
                            // Nobody has looked into it; where it comes from still counts.
                            OnTempError::Accept if signs.fails_authentication() => Ok(by_rules),
                            OnTempError::Accept => Ok(SpamVerdict { status: SpamStatus::NotChecked, score: None }),
                        }
                    }
                }
            }
        }
    }

    /// Hands over what is not a customer's. Should the rest fail, it comes again, and changes nothing twice.
    async fn deliver_to_service(
        &self,
        incoming: &IncomingMessage,
        looked: &InspectedMessage,
    ) -> Result<(), InboundRejection> {
        let manners = self.policy();
        for (address, place) in &incoming.recipients {
            match place {
                RecipientRoute::Customer(_) => {}
                RecipientRoute::Bounce(mailbox) => {
                    let arrival = InboundMessage {
                        received_at: looked.received_at,
                        peer: incoming.peer,
                        helo: incoming.helo.clone(),
                        reverse_path: incoming.reverse_path.clone(),
                        recipient: address.clone(),
                        message: incoming.message.clone(),
                        authenticated: looked.authentication.authenticated_domains().to_vec(),
                    };
                    let taken = self.0.bounces.process(*mailbox, &arrival, &manners.reporters).await;
                    let taken = taken.map_err(|error| {
                        // It comes again: to what is still being delivered in a while, to a store in need later.
                        store::warn_unless_away!(self.0.intake.worker.store, %error, "what came back is not booked yet");
                        InboundRejection::Unavailable
                    })?;
                    // People write to `abuse` as well as machines do (RFC 2142 4).
                    let is_abuse = address.local_part().eq_ignore_ascii_case(ABUSE_LOCAL_PART);
                    if taken == BounceHandling::Unrecognized && is_abuse && *mailbox == BounceMailbox::Complaints {
                        self.forward_to_postmaster(&manners, address, incoming).await?;
                    }
                }
                RecipientRoute::Postmaster => self.forward_to_postmaster(&manners, address, incoming).await?,
            }
        }
        Ok(())
    }

    /// Passes a message on to our own people, if there is somebody.
    async fn forward_to_postmaster(
        &self,
        manners: &InboundPolicy,
        mailbox: &Address,
        incoming: &IncomingMessage,
    ) -> Result<(), InboundRejection> {
        match manners.postmaster.clone() {
            Some(to) if !TraceFields::was_forwarded_for(&incoming.message, mailbox) => {
                Box::pin(postmaster::forward_to_operator(&self.0.intake, to, mailbox, incoming)).await
            }
            _ => Ok(()),
        }
    }

    /// What is to be kept: an intake for each account, a received email for each recipient.
    fn received_records(&self, incoming: &IncomingMessage, looked: &InspectedMessage) -> Vec<InboundRecord> {
        let InspectedMessage { authentication: verdict, header: heading, spam: opinion, received_at } = looked;
        let door = format!("{}{}", verdict.header_field(), incoming.received);
        let body: Body = strip_forged_auth_results(&incoming.message, &self.0.hostnames.hostname).into_iter().collect();
        let mut intakes: Vec<InboundRecord> = Vec::new();
        for (address, place) in &incoming.recipients {
            let RecipientRoute::Customer(domain) = place else { continue };
            let id = ReceivedId::new(*received_at, self.0.intake.entropy().unique_bits());
            let intake = record_for(&mut intakes, domain.account, id, &body);
            intake.received.push(ReceivedEmail {
                id,
                account: domain.account,
                domain: domain.id,
                // Given out in the commit.
                sequence: 0,
                rcpt_to: address.to_canonical(),
                envelope_from: incoming.reverse_path.clone(),
                heading: heading.clone(),
                auth: verdict.auth,
                spam_status: opinion.status,
                spam_score: opinion.score,
                trace: TraceFields::build(incoming.reverse_path.as_ref(), address, &door),
                body: intake.body_id,
                size_bytes: incoming.message.len() as u64,
                received_at: *received_at,
            });
        }
        intakes
    }
}

fn record_for<'a>(
    intakes: &'a mut Vec<InboundRecord>,
    account: AccountId,
    id: ReceivedId,
    body: &Body,
) -> &'a mut InboundRecord {
    let place = intakes.iter().position(|intake| intake.account == account).unwrap_or_else(|| {
        intakes.push(InboundRecord { account, body_id: id, body: body.clone(), received: Vec::new() });
        intakes.len() - 1
    });
    &mut intakes[place]
}

/// How large the header is.
fn header_bytes(message: &[u8]) -> usize {
    memchr::memmem::find(message, b"\r\n\r\n").unwrap_or(message.len())
}
