//! What comes back: reports about mail that we sent, and complaints about it.
//!
//! ```text
//! MX door ─► knows ─► take ─► read (mail::returned) ─► whose recipient? ─►[ recipient + event + suppression ]   book
//!                        └──► open, parse            ─► whose domain?   ─►[ report + sums ]       aggregate, tls_report
//! ```
//!
//! A return path is signed ([`mail::verp`]): what comes to it is about one recipient, and who can write to it has
//! had the email. What is about no recipient that we know, or about one that was done with too long ago, is
//! taken and changes nothing. Nothing is ever sent in answer.

mod aggregate;
mod book;
mod complaint;
mod hosts;
mod report_file;
#[cfg(test)]
mod tests;
mod tls_report;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::address::{Address, DomainName};
use mail::arrival::InboundMessage;
use mail::email::Email;
use mail::id::AccountId;
use mail::returned::reporter::FeedbackReporter;
use mail::returned::{self, ParsedReport};
use mail::setup::ServiceHosts;
use mail::task::TaskId;
use mail::verp::VerpKey;
use store::engine::ReadError;
use thiserror::Error;
use tokio::sync::Semaphore;

use self::book::BounceReport;
use crate::worker::Worker;

/// For how long after a recipient was done with something that comes back still counts (completions-email.md 4).
const COUNTED_WITHIN: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Reports of DMARC and TLS opened at once: each takes at most some 100 MB, by the bounds of its format.
const REPORT_CONCURRENCY: usize = 2;
/// Where complaints come in, at the return-path host.
const COMPLAINT_LOCAL_PARTS: [&str; 2] = ["fbl", "abuse"];
/// Where reports of DMARC come in: what the suggested record says ([`mail::setup`]).
const DMARC_REPORT_LOCAL_PART: &str = "dmarc";
/// Where reports of how TLS went come in (RFC 8460).
const TLS_REPORT_LOCAL_PART: &str = "tls-reports";

/// Whose an address at one of our return-path hosts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceMailbox {
    /// A return path of ours, signed: what comes to it is about one recipient of one email.
    ReturnPath,
    /// Where aggregate reports of DMARC come in (RFC 7489 7.2).
    DmarcReports,
    /// Where reports of how TLS went come in (RFC 8460).
    TlsReports,
    /// Where complaints come in (RFC 5965).
    Complaints,
}

/// What was made of what came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceHandling {
    /// It is one of the things that come back, whether it changed anything or not.
    Recognized,
    /// It says nothing that we know.
    Unrecognized,
}

/// What was taken for nothing that we know, where it is counted.
const UNRECOGNIZED: &str = "nothing";

/// Why what came back could not be booked: it is to come again.
#[derive(Debug, Error)]
pub enum BounceError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::engine::ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] store::engine::CommitError),
    /// The recipient's task is not done with: what it comes to is not known yet, and this would be lost in it.
    #[error("the email that this is about is still being delivered")]
    StillDelivering,
}

/// Takes what comes back.
#[derive(Clone)]
pub struct BounceProcessor {
    worker: Arc<Worker>,
    facts: Arc<ServiceHosts>,
    report_permits: Arc<Semaphore>,
}

impl BounceProcessor {
    pub(crate) fn new(worker: Arc<Worker>, facts: ServiceHosts) -> Self {
        Self { worker, facts: Arc::new(facts), report_permits: Arc::new(Semaphore::new(REPORT_CONCURRENCY)) }
    }

    /// Whether an address at a return-path host is one that anything may come back to; asked at RCPT.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_mailbox(&self, address: &Address) -> Result<Option<BounceMailbox>, ReadError> {
        if let Some(task) = self.worker.verp.verify(address) {
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

    /// Whether a signed return path is at the host that it was made for: the one below the domain that the email
    /// was sent from; or that one's alias, which is our own name: some hosts put it in its place (qmail, sendmail).
    async fn matches_return_path_host(&self, path: &Address, task: TaskId) -> Result<bool, ReadError> {
        if *path.domain() == self.facts.return_path_host {
            return Ok(true);
        }
        let Some(domain) = VerpKey::sending_domain(path) else { return Ok(false) };
        Ok(match self.find_email(&domain, task).await? {
            Some(email) => email.domain == Some(domain),
            // The email is not kept any more: what comes is taken, and changes nothing.
            None => self.find_account(Some(domain)).await?.is_some(),
        })
    }

    /// Books what came back to an address that is [known](Self::knows): returns when what it says is on disk.
    /// What says nothing that we understand changes nothing, and is taken too: an error would bounce a
    /// bounce (RFC 5321 6.1). `trusted` are those who are believed about complaints.
    ///
    /// # Errors
    /// [`ReturnedError`]: nothing was booked.
    pub fn process<'a>(
        &'a self,
        mailbox: BounceMailbox,
        arrival: &'a InboundMessage,
        trusted: &'a [FeedbackReporter],
    ) -> BoxFuture<'a, Result<BounceHandling, BounceError>> {
        Box::pin(async move {
            let taken_for = match mailbox {
                BounceMailbox::ReturnPath => self.process_return_path(arrival).await?,
                BounceMailbox::Complaints => match returned::parse_complaint(&arrival.message) {
                    Some(complaint) => self.apply_complaint(complaint, arrival, trusted).await?,
                    None => UNRECOGNIZED,
                },
                BounceMailbox::DmarcReports => self.store_dmarc_report(arrival).await?,
                BounceMailbox::TlsReports => self.store_tls_report(arrival).await?,
            };
            count_processed(mailbox, taken_for);
            Ok(if taken_for == UNRECOGNIZED { BounceHandling::Unrecognized } else { BounceHandling::Recognized })
        })
    }

    async fn process_return_path(&self, arrival: &InboundMessage) -> Result<&'static str, BounceError> {
        let Some(about) = self.find_recipient(&arrival.recipient).await? else {
            return Ok("unknown");
        };
        let address = match store::email::get_stored_recipient(&self.worker.store, about.account, about.task).await? {
            Some(found) => found.recipient.address,
            None => return Ok("unknown"),
        };
        let news = match returned::parse(&arrival.message, Some(&address), arrival.reverse_path.as_ref()) {
            ParsedReport::Failed(failure) => BounceReport::Failed(failure),
            ParsedReport::Delayed(failure) => BounceReport::Delayed(failure),
            ParsedReport::Complaint(complaint) => {
                BounceReport::Complaint(complaint.with_default_arrival(arrival.received_at))
            }
            ParsedReport::Nothing => return Ok(UNRECOGNIZED),
        };
        self.apply(about, &news, arrival.received_at).await
    }

    /// Whose recipient a return path is; none when it is not one of ours.
    async fn find_recipient(&self, address: &Address) -> Result<Option<BouncedRecipient>, ReadError> {
        let Some(task) = self.worker.verp.verify(address) else { return Ok(None) };
        let email = match VerpKey::sending_domain(address) {
            Some(domain) => self.find_email(&domain, task).await?,
            None => store::email::find_in_any_account(&self.worker.store, task.email).await?.map(|found| found.email),
        };
        Ok(email.map(|email| BouncedRecipient { account: email.account, task }))
    }

    /// The email of a task, most likely sent from this domain.
    async fn find_email(&self, domain: &DomainName, task: TaskId) -> Result<Option<Email>, ReadError> {
        let store = &self.worker.store;
        if let Some(account) = self.find_account(Some(domain.clone())).await?
            && let Some(email) = store::email::get_without_recipients(store, account, task.email).await?
        {
            return Ok(Some(email));
        }
        // The domain is no more, or another's by now; or a host on the way has put the address into one of its own.
        Ok(store::email::find_in_any_account(store, task.email).await?.map(|found| found.email))
    }

    async fn find_account(&self, domain: Option<DomainName>) -> Result<Option<AccountId>, ReadError> {
        let Some(domain) = domain else { return Ok(None) };
        Ok(store::domain::find_by_name(&self.worker.store, &domain).await?.map(|domain| domain.account))
    }
}

/// What something that came back is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BouncedRecipient {
    account: AccountId,
    task: TaskId,
}

/// Whether what comes back at `now` still counts for a recipient that was done with at `done_at`.
fn is_recent(done_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(done_at) <= COUNTED_WITHIN
}

/// Counts what came back, by what it was taken for.
fn count_processed(mailbox: BounceMailbox, what: &'static str) {
    let mailbox = match mailbox {
        BounceMailbox::ReturnPath => "return_path",
        BounceMailbox::DmarcReports => "dmarc",
        BounceMailbox::TlsReports => "tls_reports",
        BounceMailbox::Complaints => "complaints",
    };
    metrics::counter!("postrider_returned_total", "mailbox" => mailbox, "as" => what).increment(1);
}
