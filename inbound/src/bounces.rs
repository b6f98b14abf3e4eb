//! Bounces and complaints: reports about sent mail that are received at the return-path host.
//!
//! ```text
//! MX listener ─► find_mailbox ─► process ─► parse (model::returned) ─► recipient? ─►[ recipient + event + suppression ]
//!                                  └─────► open, parse           ─► domain?    ─►[ report + sums ]
//! ```
//!
//! Return paths are signed ([`model::verp`]): mail to one is about one recipient, and its sender must have received the
//! email. A report about an unknown recipient, or about one that finished too long ago, is accepted without effect.
//! Nothing is ever sent in reply.

mod apply;
mod complaint;
mod dmarc_reports;
mod host_names;
mod report_file;
#[cfg(test)]
mod tests;
mod tls_reports;

use std::sync::Arc;

use dns::resolver::Resolver;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use message::address::{Address, DomainName};
use message::bounce::feedback_reporter::FeedbackReporter;
use message::bounce::{self, ParsedReport};
use message::inbound_message::InboundMessage;
use model::domain_setup::ServiceHosts;
use model::email::Email;
use model::id::AccountId;
use model::task::TaskId;
use model::verp::VerpKey;
use queue::delivery::keys::DeliveryKeys;
use queue::dsn::pending_dsns::PendingDsns;
use queue::services::Services;
use queue::subsystems::DeliverySubsystems;
use store::engine::ReadError;
use thiserror::Error;
use tokio::sync::Semaphore;

use self::apply::BounceReport;

/// Time after a recipient finished in which reports still count.
const COUNTED_WITHIN: SignedDuration = SignedDuration::from_hours(30 * 24);
/// DMARC and TLS reports opened concurrently; each takes at most some 100 MB, by the limits of its format.
const REPORT_CONCURRENCY: usize = 2;
/// Local parts for complaints at the return-path host.
const COMPLAINT_LOCAL_PARTS: [&str; 2] = ["fbl", "abuse"];
/// Local part for DMARC reports, as in the suggested record ([`model::domain_setup`]).
const DMARC_REPORT_LOCAL_PART: &str = "dmarc";
/// Local part for TLS reports (RFC 8460).
const TLS_REPORT_LOCAL_PART: &str = "tls-reports";

/// Purpose of an address at a return-path host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceMailbox {
    /// Signed return path of one recipient of one email.
    ReturnPath,
    /// Aggregate DMARC reports (RFC 7489 7.2).
    DmarcReports,
    /// TLS reports (RFC 8460).
    TlsReports,
    /// Complaints (RFC 5965).
    Complaints,
}

/// Result of processing a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceHandling {
    /// A report of a known kind, whether it changed anything or not.
    Recognized,
    /// Not a known kind of report.
    Unrecognized,
}

/// Metric label for messages of an unknown kind.
const UNRECOGNIZED: &str = "nothing";

/// The report was not processed and must be delivered again.
#[derive(Debug, Error)]
pub enum BounceError {
    #[error(transparent)]
    Read(#[from] store::engine::ReadError),
    #[error(transparent)]
    Commit(#[from] store::engine::CommitError),
    /// The recipient's task is not finished: its outcome would overwrite this report.
    #[error("the email of this report is still being delivered")]
    StillDelivering,
}

/// Processes bounces, complaints, DMARC reports and TLS reports.
#[derive(Clone)]
pub struct BounceProcessor {
    services: Services,
    pending_dsns: Arc<PendingDsns>,
    resolver: Resolver,
    /// Host name for EHLO.
    hostname: DomainName,
    keys: DeliveryKeys,
    facts: Arc<ServiceHosts>,
    report_permits: Arc<Semaphore>,
}

impl BounceProcessor {
    pub fn new(services: Services, delivery: &DeliverySubsystems, facts: ServiceHosts) -> Self {
        Self {
            services,
            pending_dsns: Arc::clone(&delivery.pending_dsns),
            resolver: delivery.router.resolver().clone(),
            hostname: delivery.hostname.clone(),
            keys: delivery.keys.clone(),
            facts: Arc::new(facts),
            report_permits: Arc::new(Semaphore::new(REPORT_CONCURRENCY)),
        }
    }

    /// Returns the purpose of an address at a return-path host; `None` if it takes no mail. Called at RCPT.
    pub async fn find_mailbox(&self, address: &Address) -> Result<Option<BounceMailbox>, ReadError> {
        if let Some(task) = self.keys.verp.verify(address) {
            return Ok(self.matches_return_path_host(address, task).await?.then_some(BounceMailbox::ReturnPath));
        }
        let is = |name: &str| address.local_part().eq_ignore_ascii_case(name);
        Ok(match address.domain() == &self.facts.return_path_host {
            true if is(DMARC_REPORT_LOCAL_PART) => Some(BounceMailbox::DmarcReports),
            true if is(TLS_REPORT_LOCAL_PART) => Some(BounceMailbox::TlsReports),
            true if COMPLAINT_LOCAL_PARTS.into_iter().any(is) => Some(BounceMailbox::Complaints),
            _ => None,
        })
    }

    /// True if a signed return path is at the host for which it was made: the one below the domain that the email was
    /// sent from. The service's own return-path host, to which that name is an alias, is accepted too, because some
    /// hosts substitute it (qmail, sendmail).
    async fn matches_return_path_host(&self, path: &Address, task: TaskId) -> Result<bool, ReadError> {
        if *path.domain() == self.facts.return_path_host {
            return Ok(true);
        }
        let Some(domain) = VerpKey::sending_domain(path) else { return Ok(false) };
        Ok(match self.find_email(&domain, task).await? {
            Some(email) => email.domain == Some(domain),
            // The email was purged: accept the message, which has no effect.
            None => self.find_account(Some(domain)).await?.is_some(),
        })
    }

    /// Processes a message to an address for which [`Self::find_mailbox`] returned `mailbox`, and returns when the
    /// result is stored. A message that is not understood is accepted without effect, because an error would bounce a
    /// bounce (RFC 5321 6.1). `trusted` are the reporters whose complaints need no further proof.
    ///
    /// # Errors
    /// [`BounceError`]: nothing was stored.
    pub fn process<'a>(
        &'a self,
        mailbox: BounceMailbox,
        arrival: &'a InboundMessage,
        trusted: &'a [FeedbackReporter],
    ) -> BoxFuture<'a, Result<BounceHandling, BounceError>> {
        Box::pin(async move {
            let kind = match mailbox {
                BounceMailbox::ReturnPath => self.process_return_path(arrival).await?,
                BounceMailbox::Complaints => match bounce::parse_complaint(&arrival.message) {
                    Some(complaint) => self.apply_complaint(complaint, arrival, trusted).await?,
                    None => UNRECOGNIZED,
                },
                BounceMailbox::DmarcReports => self.store_dmarc_report(arrival).await?,
                BounceMailbox::TlsReports => self.store_tls_report(arrival).await?,
            };
            count_processed(mailbox, kind);
            Ok(if kind == UNRECOGNIZED { BounceHandling::Unrecognized } else { BounceHandling::Recognized })
        })
    }

    async fn process_return_path(&self, arrival: &InboundMessage) -> Result<&'static str, BounceError> {
        let Some(recipient) = self.find_recipient(&arrival.recipient).await? else {
            return Ok("unknown");
        };
        let address =
            match store::email::get_stored_recipient(&self.services.store, recipient.account, recipient.task).await? {
                Some(found) => found.recipient.address,
                None => return Ok("unknown"),
            };
        let report = match bounce::parse(&arrival.message, Some(&address), arrival.reverse_path.as_ref()) {
            ParsedReport::Failed(failure) => BounceReport::Failed(failure),
            ParsedReport::Delayed(failure) => BounceReport::Delayed(failure),
            ParsedReport::Complaint(complaint) => {
                BounceReport::Complaint(complaint.with_default_arrival(arrival.received_at))
            }
            ParsedReport::Nothing => return Ok(UNRECOGNIZED),
        };
        self.apply(recipient, &report, arrival.received_at).await
    }

    /// Finds the recipient of a signed return path; `None` if the signature is not valid or the email is unknown.
    async fn find_recipient(&self, address: &Address) -> Result<Option<BouncedRecipient>, ReadError> {
        let Some(task) = self.keys.verp.verify(address) else { return Ok(None) };
        let email = match VerpKey::sending_domain(address) {
            Some(domain) => self.find_email(&domain, task).await?,
            None => store::email::find_in_any_account(&self.services.store, task.email).await?.map(|found| found.email),
        };
        Ok(email.map(|email| BouncedRecipient { account: email.account, task }))
    }

    /// True if a message with this envelope sender is one of the service's own emails with a secret link. The signature
    /// of the return path shows that this server sent it.
    pub async fn has_secret_link(&self, reverse_path: Option<&Address>) -> Result<bool, ReadError> {
        let Some((address, task)) = reverse_path.and_then(|address| Some((address, self.keys.verp.verify(address)?)))
        else {
            return Ok(false);
        };
        let Some(domain) = VerpKey::sending_domain(address) else { return Ok(false) };
        Ok(self.find_email(&domain, task).await?.is_some_and(|email| email.has_secret_link))
    }

    /// Finds the email of a task, first in the account that has `domain`.
    async fn find_email(&self, domain: &DomainName, task: TaskId) -> Result<Option<Email>, ReadError> {
        let store = &self.services.store;
        if let Some(account) = self.find_account(Some(domain.clone())).await?
            && let Some(email) = store::email::get_without_recipients(store, account, task.email).await?
        {
            return Ok(Some(email));
        }
        // The domain was deleted or moved to another account, or a host on the way rewrote the address.
        Ok(store::email::find_in_any_account(store, task.email).await?.map(|found| found.email))
    }

    async fn find_account(&self, domain: Option<DomainName>) -> Result<Option<AccountId>, ReadError> {
        let Some(domain) = domain else { return Ok(None) };
        Ok(store::domain::find_by_name(&self.services.store, &domain).await?.map(|domain| domain.account))
    }
}

/// Recipient that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BouncedRecipient {
    account: AccountId,
    task: TaskId,
}

/// True if a report at `now` still counts for a recipient that finished at `done_at`.
fn is_recent(done_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(done_at) <= COUNTED_WITHIN
}

/// Counts a processed message by its result.
fn count_processed(mailbox: BounceMailbox, result: &'static str) {
    let mailbox = match mailbox {
        BounceMailbox::ReturnPath => "return_path",
        BounceMailbox::DmarcReports => "dmarc",
        BounceMailbox::TlsReports => "tls_reports",
        BounceMailbox::Complaints => "complaints",
    };
    metrics::counter!("postrider_returned_total", "mailbox" => mailbox, "as" => result).increment(1);
}
