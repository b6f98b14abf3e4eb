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
use mail::address::{Address, Name};
use mail::arrival::Arrival;
use mail::email::Email;
use mail::id::AccountId;
use mail::returned::reporter::Reporter;
use mail::returned::{self, Said};
use mail::setup::Facts;
use mail::task::TaskId;
use mail::verp::VerpKey;
use store::engine::ReadError;
use thiserror::Error;
use tokio::sync::Semaphore;

use self::book::News;
use crate::worker::Worker;

/// For how long after a recipient was done with something that comes back still counts (completions-email.md 4).
const COUNTS_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Reports of DMARC and TLS opened at once: each takes at most some 100 MB, by the bounds of its format.
const OPENED_AT_ONCE: usize = 2;
/// Where complaints come in, at the return-path host.
const COMPLAINTS: [&str; 2] = ["fbl", "abuse"];
/// Where reports of DMARC come in: what the suggested record says ([`mail::setup`]).
const DMARC_REPORTS: &str = "dmarc";
/// Where reports of how TLS went come in (RFC 8460).
const TLS_REPORTS: &str = "tls-reports";

/// Whose an address at one of our return-path hosts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mailbox {
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
pub enum Taken {
    /// It is one of the things that come back, whether it changed anything or not.
    Understood,
    /// It says nothing that we know.
    NotUnderstood,
}

/// What was taken for nothing that we know, where it is counted.
const NOTHING: &str = "nothing";

/// Why what came back could not be booked: it is to come again.
#[derive(Debug, Error)]
pub enum ReturnedError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::engine::ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] store::engine::CommitError),
    /// The recipient's task is not done with: what it comes to is not known yet, and this would be lost in it.
    #[error("the email that this is about is still being delivered")]
    TooEarly,
}

/// Takes what comes back.
#[derive(Clone)]
pub struct Returned {
    worker: Arc<Worker>,
    facts: Arc<Facts>,
    opening: Arc<Semaphore>,
}

impl Returned {
    pub(crate) fn new(worker: Arc<Worker>, facts: Facts) -> Self {
        Self { worker, facts: Arc::new(facts), opening: Arc::new(Semaphore::new(OPENED_AT_ONCE)) }
    }

    /// Whether an address at a return-path host is one that anything may come back to; asked at RCPT.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn knows(&self, address: &Address) -> Result<Option<Mailbox>, ReadError> {
        if let Some(task) = self.worker.verp.read(address) {
            return Ok(self.is_of(address, task).await?.then_some(Mailbox::ReturnPath));
        }
        let is = |name: &str| address.local().eq_ignore_ascii_case(name);
        Ok(match address.domain() == &self.facts.return_path_host {
            true if is(DMARC_REPORTS) => Some(Mailbox::DmarcReports),
            true if is(TLS_REPORTS) => Some(Mailbox::TlsReports),
            true if COMPLAINTS.into_iter().any(is) => Some(Mailbox::Complaints),
            _ => None,
        })
    }

    /// Whether a signed return path is at the host that it was made for: the one below the domain that the email
    /// was sent from; or that one's alias, which is our own name: some hosts put it in its place (qmail, sendmail).
    async fn is_of(&self, path: &Address, task: TaskId) -> Result<bool, ReadError> {
        if *path.domain() == self.facts.return_path_host {
            return Ok(true);
        }
        let Some(domain) = VerpKey::domain(path) else { return Ok(false) };
        Ok(match self.email_of(&domain, task).await? {
            Some(email) => email.domain == Some(domain),
            // The email is not kept any more: what comes is taken, and changes nothing.
            None => self.account_of(Some(domain)).await?.is_some(),
        })
    }

    /// Books what came back to an address that is [known](Self::knows): returns when what it says is on disk.
    /// What says nothing that we understand changes nothing, and is taken too: an error would bounce a
    /// bounce (RFC 5321 6.1). `trusted` are those who are believed about complaints.
    ///
    /// # Errors
    /// [`ReturnedError`]: nothing was booked.
    pub fn take<'a>(
        &'a self,
        mailbox: Mailbox,
        arrival: &'a Arrival,
        trusted: &'a [Reporter],
    ) -> BoxFuture<'a, Result<Taken, ReturnedError>> {
        Box::pin(async move {
            let taken_for = match mailbox {
                Mailbox::ReturnPath => self.take_at_return_path(arrival).await?,
                Mailbox::Complaints => match returned::read_complaint(&arrival.message) {
                    Some(complaint) => self.complain(complaint, arrival, trusted).await?,
                    None => NOTHING,
                },
                Mailbox::DmarcReports => self.count_aggregate(arrival).await?,
                Mailbox::TlsReports => self.keep_tls_report(arrival).await?,
            };
            told(mailbox, taken_for);
            Ok(if taken_for == NOTHING { Taken::NotUnderstood } else { Taken::Understood })
        })
    }

    async fn take_at_return_path(&self, arrival: &Arrival) -> Result<&'static str, ReturnedError> {
        let Some(about) = self.whose(&arrival.recipient).await? else {
            return Ok("unknown");
        };
        let address = match store::email::look(&self.worker.store, about.account, about.task).await? {
            Some(found) => found.recipient.address,
            None => return Ok("unknown"),
        };
        let news = match returned::read(&arrival.message, Some(&address), arrival.reverse_path.as_ref()) {
            Said::Failed(failure) => News::Failed(failure),
            Said::Delayed(failure) => News::Delayed(failure),
            Said::Complaint(complaint) => News::Complaint(complaint.arriving_at(arrival.received_at)),
            Said::Nothing => return Ok(NOTHING),
        };
        self.book(about, &news, arrival.received_at).await
    }

    /// Whose recipient a return path is; none when it is not one of ours.
    async fn whose(&self, address: &Address) -> Result<Option<About>, ReadError> {
        let Some(task) = self.worker.verp.read(address) else { return Ok(None) };
        let email = match VerpKey::domain(address) {
            Some(domain) => self.email_of(&domain, task).await?,
            None => store::email::find(&self.worker.store, task.email).await?.map(|found| found.email),
        };
        Ok(email.map(|email| About { account: email.account, task }))
    }

    /// The email of a task, most likely sent from this domain.
    async fn email_of(&self, domain: &Name, task: TaskId) -> Result<Option<Email>, ReadError> {
        let store = &self.worker.store;
        if let Some(account) = self.account_of(Some(domain.clone())).await?
            && let Some(email) = store::email::get_bare(store, account, task.email).await?
        {
            return Ok(Some(email));
        }
        // The domain is no more, or another's by now; or a host on the way has put the address into one of its own.
        Ok(store::email::find(store, task.email).await?.map(|found| found.email))
    }

    async fn account_of(&self, domain: Option<Name>) -> Result<Option<AccountId>, ReadError> {
        let Some(domain) = domain else { return Ok(None) };
        Ok(store::domain::by_name(&self.worker.store, &domain).await?.map(|domain| domain.account))
    }
}

/// What something that came back is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct About {
    account: AccountId,
    task: TaskId,
}

/// Whether what comes back at `now` still counts for a recipient that was done with at `done_at`.
fn counts(done_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(done_at) <= COUNTS_FOR
}

/// Counts what came back, by what it was taken for.
fn told(mailbox: Mailbox, what: &'static str) {
    let mailbox = match mailbox {
        Mailbox::ReturnPath => "return_path",
        Mailbox::DmarcReports => "dmarc",
        Mailbox::TlsReports => "tls_reports",
        Mailbox::Complaints => "complaints",
    };
    metrics::counter!("postrider_returned_total", "mailbox" => mailbox, "as" => what).increment(1);
}
