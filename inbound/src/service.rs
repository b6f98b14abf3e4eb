//! Inbound mail: routing of recipients, checks and storage.
//!
//! ```text
//! RCPT ─► route: a customer's domain · a return path of this server · its postmaster · unknown
//! content ─► loop? ─► authenticate (dns) ∥ parse header (mail) ─► reject? ─► spam? ─►[ rows + event + body ]
//!       └──► return paths: bounce processing        └──► postmaster: forwarded through intake
//! ```
//!
//! Every decision is made while the peer waits. Accepted mail never bounces, so the server sends no backscatter. A
//! message is accepted once it is on disk for all its recipients; otherwise it is rejected for all.

mod batch_writer;
pub mod parser;
mod postmaster;
mod spam_filter;
mod withheld;

use parking_lot::RwLock;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use dns::authentication::blocklist;
use dns::authentication::inbound::{self, AuthenticationVerdict, AuthorDomain, MessageSource};
use dns::resolver::Resolver;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::bounce::feedback_reporter::FeedbackReporter;
use message::header::HEADER_BYTES_MAX;
use message::inbound_message::InboundMessage;
use message::received::{ReceivedHeader, TraceFields, field_count, strip_forged_auth_results};
use model::domain::SendingDomain;
use model::id::{AccountId, ReceivedId};
use model::quota::Noun;
use model::received::{ReceivedEmail, SpamStatus};
use model::spam::{self, SpamSignals};
use model::system_email::SystemEmail;
use queue::delivery::delivery_metrics::DeliveryMetrics;
use queue::delivery::last_hour::HourlyCounter;
use queue::intake::Intake;
use queue::intake::storage_quota::{StorageQuotaError, StorageQuotaTracker};
use queue::intake::submit_error::SubmitError;
use queue::routing::own_hostnames::OwnHostnames;
use queue::services::Services;
use serde::Deserialize;
use store::engine::{Body, ReadError};

use crate::bounces::{BounceHandling, BounceMailbox, BounceProcessor};

use batch_writer::{BatchWriter, InboundRecord};
use spam_filter::SpamVerdict;
pub use spam_filter::{RspamdClient, RspamdSettings, SpamScanner};

/// Local mailboxes that every host must have (RFC 5321 4.5.1, RFC 2142 4).
const OWN_MAILBOXES: [&str; 2] = ["postmaster", ABUSE_LOCAL_PART];
/// Mailbox for complaints: from people, and at the return-path host from feedback loops.
const ABUSE_LOCAL_PART: &str = "abuse";

/// Action for mail that fails DMARC with the policy `reject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnPolicyFail {
    #[default]
    Refuse,
    /// Accept it and mark it as spam.
    #[serde(rename = "mark")]
    MarkAsSpam,
}

/// Action when authentication or the spam check fails temporarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum OnTempError {
    #[default]
    #[serde(rename = "open")]
    Accept,
    /// Reject with a 4yz reply, so that the peer retries.
    #[serde(rename = "closed")]
    Defer,
}

/// The operator's policy for inbound mail.
#[derive(Debug, Clone)]
pub struct InboundPolicy {
    /// Action for mail that fails DMARC with `p=reject`.
    pub on_dmarc_fail: OnPolicyFail,
    /// Action for temporary DNS errors.
    pub on_dns_temp_error: OnTempError,
    /// DNS blocklists that peers are checked against.
    pub dnsbls: Vec<DomainName>,
    /// Action for mail from a listed peer.
    pub on_dnsbl_listed: OnPolicyFail,
    pub spam_filter: SpamScanner,
    /// Address that mail to local mailboxes is forwarded to; if `None`, it is rejected.
    pub postmaster: Option<Address>,
    /// Trusted senders of complaint reports.
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

/// Route of an inbound recipient.
#[derive(Debug, Clone)]
pub enum RecipientRoute {
    /// A customer's domain.
    Customer(Arc<SendingDomain>),
    /// A return path or complaint mailbox of this server.
    Bounce(BounceMailbox),
    /// The operator's postmaster.
    Postmaster,
}

/// Why a recipient is rejected.
#[derive(Debug)]
pub enum UnknownRecipient {
    /// The domain is local and has no such mailbox.
    NoSuchMailbox,
    /// The domain is not local.
    NotLocal,
    /// The account's storage for received email is full, or is being counted.
    MailboxFull(StorageQuotaError),
    /// The store cannot be read.
    Read(ReadError),
}

/// Why a message is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundRejection {
    /// A mail loop: the message was delivered to a recipient, or forwarded, before.
    Loop,
    /// [`RECEIVED_MAX`](message::header::RECEIVED_MAX) or more `Received` fields: a mail loop of any hosts.
    TooManyHops,
    HeaderTooLarge,
    /// The message fails DMARC, and the author's domain has the policy `reject`.
    Dmarc(DomainName),
    Spam,
    /// Temporary: the spam filter requests a retry.
    FilterDefers,
    /// Temporary: DNS does not respond.
    DnsTempError,
    /// Temporary: the disk is full.
    InsufficientStorage,
    /// Temporary: the store or a filter is unavailable.
    Unavailable,
}

/// A message from the MX listener.
#[derive(Debug)]
pub struct IncomingMessage {
    /// IP address of the client.
    pub peer: IpAddr,
    /// The client's EHLO name.
    pub helo: String,
    /// The envelope sender.
    pub reverse_path: Option<Address>,
    /// Recipients with their routes, without duplicates.
    pub recipients: Vec<(Address, RecipientRoute)>,
    pub message: Bytes,
    /// REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// The `Received` field that the listener adds.
    pub received: String,
    /// True if the peer is on a DNS blocklist.
    pub is_dnsbl_listed: bool,
}

/// Results of inspecting a message.
struct InspectedMessage {
    authentication: AuthenticationVerdict,
    header: ReceivedHeader,
    spam: SpamVerdict,
    received_at: Timestamp,
}

/// Service for inbound mail. Clones share one state.
#[derive(Clone)]
pub struct InboundService(Arc<InboundState>);

struct InboundState {
    services: Services,
    intake: Arc<Intake>,
    storage_quotas: Arc<StorageQuotaTracker>,
    metrics: Arc<DeliveryMetrics>,
    bounces: Arc<BounceProcessor>,
    resolver: Resolver,
    hostnames: OwnHostnames,
    policy: RwLock<Arc<InboundPolicy>>,
    writer: BatchWriter,
}

impl InboundService {
    /// Creates the service.
    #[must_use]
    pub fn new(
        intake: Arc<Intake>,
        bounces: Arc<BounceProcessor>,
        resolver: Resolver,
        hostnames: OwnHostnames,
        policy: InboundPolicy,
    ) -> Self {
        let services = intake.services.clone();
        Self(Arc::new(InboundState {
            writer: BatchWriter::new(services.clone()),
            services,
            storage_quotas: Arc::clone(&intake.limits.storage),
            metrics: Arc::clone(intake.metrics()),
            intake,
            bounces,
            resolver,
            hostnames,
            policy: RwLock::new(Arc::new(policy)),
        }))
    }

    /// Replaces the policy, on a configuration reload.
    pub fn reload(&self, policy: InboundPolicy) {
        *self.0.policy.write() = Arc::new(policy);
    }

    /// Checks that mail can be accepted: the node is not shutting down and the store is healthy.
    ///
    /// # Errors
    /// [`SubmitError::InsufficientStorage`] or [`SubmitError::Unavailable`].
    pub fn check_ready(&self) -> Result<(), SubmitError> {
        self.0.intake.check_ready()
    }

    #[must_use]
    pub fn resolver(&self) -> &Resolver {
        &self.0.resolver
    }

    #[must_use]
    pub fn hostname(&self) -> &DomainName {
        &self.0.hostnames.hostname
    }

    fn policy(&self) -> Arc<InboundPolicy> {
        Arc::clone(&self.0.policy.read())
    }

    /// Returns the blocklist that a peer is on, and the action for it.
    pub async fn dnsbl_listing(&self, peer: IpAddr) -> Option<(DomainName, OnPolicyFail)> {
        let policy = self.policy();
        let list = blocklist::find_listing(&self.0.resolver, peer, &policy.dnsbls).await?;
        Some((list, policy.on_dnsbl_listed))
    }

    /// Routes a recipient. Changes of a domain apply to the next call.
    ///
    /// # Errors
    /// Returns [`UnknownRecipient`] if the address is not local or cannot receive mail.
    pub async fn route_recipient(&self, address: &Address) -> Result<RecipientRoute, UnknownRecipient> {
        let name = address.domain();
        let found = store::domain::find_by_name(&self.0.services.store, name).await.map_err(UnknownRecipient::Read)?;
        if let Some(domain) = found.filter(SendingDomain::accepts_inbound) {
            let is_accepted = domain.accepts_address(address);
            if !is_accepted {
                return Err(UnknownRecipient::NoSuchMailbox);
            }
            self.check_mailbox_quota(domain.account).await?;
            return Ok(RecipientRoute::Customer(Arc::new(domain)));
        }
        let is_own_host = self.0.hostnames.is_own(name);
        if (is_own_host || OwnHostnames::is_return_path(name))
            && let Some(mailbox) = self.0.bounces.find_mailbox(address).await.map_err(UnknownRecipient::Read)?
        {
            return Ok(RecipientRoute::Bounce(mailbox));
        }
        if !is_own_host {
            return Err(UnknownRecipient::NotLocal);
        }
        let is_own = OWN_MAILBOXES.iter().any(|mailbox| address.local_part().eq_ignore_ascii_case(mailbox));
        match self.policy().postmaster {
            Some(_) if is_own => Ok(RecipientRoute::Postmaster),
            _ => Err(UnknownRecipient::NoSuchMailbox),
        }
    }

    /// Accepts a message. Returns when it is on disk for all recipients.
    ///
    /// # Errors
    /// Returns an [`InboundRejection`] that applies to all recipients.
    pub fn receive(&self, incoming: IncomingMessage) -> BoxFuture<'_, Result<Vec<ReceivedId>, InboundRejection>> {
        Box::pin(async move {
            // Bounces are not forwarded, so the hop limit does not apply to them.
            let is_bounce = |(_, route): &(Address, RecipientRoute)| matches!(route, RecipientRoute::Bounce(_));
            if !incoming.recipients.iter().all(is_bounce) && TraceFields::exceeds_hop_limit(&incoming.message) {
                return Err(InboundRejection::TooManyHops);
            }
            if header_bytes(&incoming.message) > HEADER_BYTES_MAX {
                return Err(InboundRejection::HeaderTooLarge);
            }
            let customers =
                incoming.recipients.iter().filter(|(_, route)| matches!(route, RecipientRoute::Customer(_)));
            let was_delivered = |(address, route): &(Address, RecipientRoute)| match route {
                RecipientRoute::Customer(_) => TraceFields::was_delivered_to(&incoming.message, address),
                RecipientRoute::Postmaster => TraceFields::was_forwarded_for(&incoming.message, address),
                RecipientRoute::Bounce(_) => false,
            };
            if incoming.recipients.iter().any(was_delivered) {
                return Err(InboundRejection::Loop);
            }
            let for_customers = customers.count() > 0;
            let inspected = self.inspect(&incoming, for_customers).await?;
            let has_secret_link = self.0.bounces.has_secret_link(incoming.reverse_path.as_ref()).await;
            let has_secret_link = has_secret_link.map_err(|_| InboundRejection::Unavailable)?;
            self.deliver_to_service(&incoming, &inspected, has_secret_link).await?;
            if !for_customers {
                return Ok(Vec::new());
            }
            let message = match has_secret_link {
                true => withheld::withhold_content(&incoming.message),
                false => incoming.message.clone(),
            };
            let records = self.received_records(&incoming, &message, &inspected);
            let ids = records.iter().flat_map(|intake| intake.received.iter().map(|email| email.id)).collect();
            let sizes: Vec<_> = records
                .iter()
                .flat_map(|intake| intake.received.iter().map(|email| (email.account, email.size_bytes)))
                .collect();
            self.0.writer.write(records).await?;
            for (account, size_bytes) in sizes {
                let quotas = &self.0.storage_quotas;
                quotas.record(account, Noun::ReceivedEmails, 1);
                quotas.record(account, Noun::ReceivedBytes, size_bytes);
            }
            metrics::counter!("postrider_received_total").increment(1);
            self.0.metrics.last_hour.count(HourlyCounter::Received, 1, self.0.services.clock.now());
            Ok(ids)
        })
    }

    /// Checks that an account may store another received email. It runs for each recipient before the message, so that
    /// a full mailbox does not block others.
    async fn check_mailbox_quota(&self, id: AccountId) -> Result<(), UnknownRecipient> {
        let account = store::account::get(&self.0.services.store, id).await.map_err(UnknownRecipient::Read)?;
        let Some(account) = account else { return Ok(()) };
        for quota in [Noun::ReceivedEmails, Noun::ReceivedBytes] {
            match self.0.storage_quotas.reserve(&account, quota, 1).await {
                Ok(_given_back) => {}
                Err(StorageQuotaError::Read(error)) => return Err(UnknownRecipient::Read(error)),
                Err(error) => return Err(UnknownRecipient::MailboxFull(error)),
            }
        }
        Ok(())
    }

    /// Authenticates and scans a message. Mail for return paths only is never rejected: losing a bounce would harm this
    /// server.
    async fn inspect(
        &self,
        incoming: &IncomingMessage,
        for_customers: bool,
    ) -> Result<InspectedMessage, InboundRejection> {
        let shared = &self.0;
        let policy = self.policy();
        let received_at = shared.services.clock.now();
        let source = MessageSource {
            peer: incoming.peer,
            helo: incoming.helo.clone(),
            reverse_path: incoming.reverse_path.clone(),
            hostname: shared.hostnames.hostname.clone(),
            received_at,
        };
        let (verdict, heading) = tokio::join!(
            inbound::authenticate(&shared.resolver, incoming.message.clone(), source),
            parser::parse_header(incoming.message.clone()),
        );
        let mut inspected =
            InspectedMessage { authentication: verdict, header: heading, spam: SpamVerdict::default(), received_at };
        if !for_customers {
            return Ok(inspected);
        }
        if policy.on_dns_temp_error == OnTempError::Defer && inspected.authentication.has_temporary_error() {
            return Err(InboundRejection::DnsTempError);
        }
        let refused = inspected.authentication.is_dmarc_reject();
        if let AuthorDomain::Single(domain) = &inspected.authentication.author
            && refused
            && policy.on_dmarc_fail == OnPolicyFail::Refuse
        {
            return Err(InboundRejection::Dmarc(domain.clone()));
        }
        inspected.spam = self.scan_for_spam(&policy, incoming, &inspected).await?;
        Ok(inspected)
    }

    /// Decides whether a message is spam.
    async fn scan_for_spam(
        &self,
        policy: &InboundPolicy,
        incoming: &IncomingMessage,
        inspected: &InspectedMessage,
    ) -> Result<SpamVerdict, InboundRejection> {
        let InspectedMessage { authentication: verdict, header: heading, .. } = inspected;
        let signs = SpamSignals {
            auth: verdict.auth,
            iprev: verdict.iprev,
            has_author: verdict.author != AuthorDomain::Invalid,
            is_listed: incoming.is_dnsbl_listed,
            heading,
            has_date: field_count(&incoming.message, "Date") > 0,
            message: &incoming.message,
        };
        let local_score = signs.score();
        // A good score does not outweigh failed authentication.
        let status = if signs.fails_authentication() { SpamStatus::Spam } else { spam::spam_status(local_score) };
        let by_rules = SpamVerdict { status, score: Some(local_score) };
        match &policy.spam_filter {
            SpamScanner::Off => Ok(SpamVerdict::default()),
            SpamScanner::Rules => Ok(by_rules),
            SpamScanner::Rspamd(rspamd) => {
                match rspamd.check_message(incoming, &self.0.hostnames.hostname).await {
                    Ok(scanned) => {
                        scanned.map(|spam_verdict| spam_verdict.or_marked(signs.fails_authentication(), local_score))
                    }
                    Err(error) => {
                        metrics::counter!("postrider_spam_filter_failures_total").increment(1);
                        tracing::warn!(%error, "the spam filter does not respond");
                        match rspamd.on_failure() {
                            OnTempError::Defer => Err(InboundRejection::Unavailable),
                            // Without a scan, failed authentication still marks the message.
                            OnTempError::Accept if signs.fails_authentication() => Ok(by_rules),
                            OnTempError::Accept => Ok(SpamVerdict { status: SpamStatus::NotChecked, score: None }),
                        }
                    }
                }
            }
        }
    }

    /// Delivers to recipients other than customers. If a later step fails, the peer retries; processing a message twice
    /// is harmless.
    async fn deliver_to_service(
        &self,
        incoming: &IncomingMessage,
        inspected: &InspectedMessage,
        has_secret_link: bool,
    ) -> Result<(), InboundRejection> {
        let policy = self.policy();
        for (address, route) in &incoming.recipients {
            match route {
                RecipientRoute::Customer(_) => {}
                RecipientRoute::Bounce(mailbox) => {
                    let verdict = &inspected.authentication;
                    let arrival = InboundMessage {
                        received_at: inspected.received_at,
                        peer: incoming.peer,
                        helo: incoming.helo.clone(),
                        reverse_path: incoming.reverse_path.clone(),
                        recipient: address.clone(),
                        message: incoming.message.clone(),
                        authenticated: match mailbox {
                            BounceMailbox::TlsReports => verdict.authenticated_for_tls_report(),
                            BounceMailbox::ReturnPath | BounceMailbox::DmarcReports | BounceMailbox::Complaints => {
                                verdict.authenticated_domains().to_vec()
                            }
                        },
                    };
                    let result = self.0.bounces.process(*mailbox, &arrival, &policy.reporters).await;
                    let result = result.map_err(|error| {
                        // The peer retries: soon if the message is being processed already, later if the store is
                        // unavailable.
                        store::warn_unless_away!(self.0.services.store, %error, "cannot process a bounce yet; the sender will retry");
                        InboundRejection::Unavailable
                    })?;
                    // People write to `abuse` as well as feedback loops do (RFC 2142 4).
                    let is_abuse = address.local_part().eq_ignore_ascii_case(ABUSE_LOCAL_PART);
                    if result == BounceHandling::Unrecognized && is_abuse && *mailbox == BounceMailbox::Complaints {
                        self.forward_to_postmaster(&policy, address, incoming, has_secret_link).await?;
                    }
                }
                RecipientRoute::Postmaster => {
                    self.forward_to_postmaster(&policy, address, incoming, has_secret_link).await?;
                }
            }
        }
        Ok(())
    }

    /// Forwards a message to the operator, if a postmaster address is configured.
    async fn forward_to_postmaster(
        &self,
        policy: &InboundPolicy,
        mailbox: &Address,
        incoming: &IncomingMessage,
        has_secret_link: bool,
    ) -> Result<(), InboundRejection> {
        match policy.postmaster.clone() {
            Some(to) if !TraceFields::was_forwarded_for(&incoming.message, mailbox) => {
                let email = postmaster::forwarding_email(to, mailbox, incoming);
                let email = SystemEmail { has_secret_link, ..email };
                Box::pin(postmaster::forward_to_operator(&self.0.intake, email)).await
            }
            _ => Ok(()),
        }
    }

    /// Records to be stored: one for each account, with a received email for each recipient.
    fn received_records(
        &self,
        incoming: &IncomingMessage,
        message: &Bytes,
        inspected: &InspectedMessage,
    ) -> Vec<InboundRecord> {
        let InspectedMessage { authentication: verdict, header: heading, spam: spam_verdict, received_at } = inspected;
        let trace_header = format!("{}{}", verdict.header_field(), incoming.received);
        let body: Body = strip_forged_auth_results(message, &self.0.hostnames.hostname).into_iter().collect();
        let mut records: Vec<InboundRecord> = Vec::new();
        for (address, route) in &incoming.recipients {
            let RecipientRoute::Customer(domain) = route else { continue };
            let id = ReceivedId::new(*received_at, self.0.services.entropy.unique_bits());
            let intake = record_for(&mut records, domain.account, id, &body);
            intake.received.push(ReceivedEmail {
                id,
                account: domain.account,
                domain: domain.id,
                // Assigned in the commit.
                sequence: 0,
                rcpt_to: address.to_canonical(),
                envelope_from: incoming.reverse_path.clone(),
                heading: heading.clone(),
                auth: verdict.auth,
                spam_status: spam_verdict.status,
                spam_score: spam_verdict.score,
                trace: TraceFields::build(incoming.reverse_path.as_ref(), address, &trace_header),
                body: intake.body_id,
                size_bytes: message.len() as u64,
                received_at: *received_at,
            });
        }
        records
    }
}

fn record_for<'a>(
    records: &'a mut Vec<InboundRecord>,
    account: AccountId,
    id: ReceivedId,
    body: &Body,
) -> &'a mut InboundRecord {
    let index = records.iter().position(|intake| intake.account == account).unwrap_or_else(|| {
        records.push(InboundRecord { account, body_id: id, body: body.clone(), received: Vec::new() });
        records.len() - 1
    });
    &mut records[index]
}

/// Size of the header in bytes.
fn header_bytes(message: &[u8]) -> usize {
    memchr::memmem::find(message, b"\r\n\r\n").unwrap_or(message.len())
}
