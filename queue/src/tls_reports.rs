//! Reporting how TLS went to the domains that ask for it (RFC 8460).
//!
//! ```text
//! the day is over, and up to four hours ─► rows without books ─► _smtp._tls.{domain} TXT ─► JSON, gzip
//!        mailto: ─► the hall ─►[ email + books ]          https: ─► POST ─►[ books ]
//! ```
//!
//! The owner of the first partition reports for all nodes. The books stand in the row of what was counted: a report that
//! is mailed is booked in the commit that accepts it, so it is mailed once, whatever restarts; one that is posted may be
//! posted twice, under one id. What does not go is tried again for a day.
//!
//! The mail is signed like any other, asks for no protection on its way (RFC 8689 5), and is itself not counted.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use mail::address::{Address, Name};
use mail::domain::DomainState;
use mail::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use mail::email::{Category, Door};
use mail::recipient::{Notify, RecipientKind};
use mail::tls_report::write::{MEDIA_TYPE, Report};
use mail::tls_report::{self, Book, Day, Destination, SendingState};
use sha2::{Digest as _, Sha256};
use store::engine::{Batch, CommitError, ReadError};
use store::tls_day::Found;

use crate::accept::{Accepted, Hall};
use crate::courier::http::{Again, Post, PostError, Poster};
use crate::postman::Postman;
use crate::refusal::Refusal;

/// After the end of a day other nodes may still write what they counted.
const SETTLED: SignedDuration = SignedDuration::from_mins(2);
/// Reports go out over four hours (RFC 8460 4.1), in turns: so often is looked.
const TURNS: u64 = 47;
const TURN: SignedDuration = SignedDuration::from_mins(5);
/// Days that are looked at: four hours, and a day of tries.
const DAYS: i64 = 2;
/// Rows read at once.
const SLICE: usize = 500;
/// Domains reported to at once.
const AT_ONCE: usize = 8;
/// How long one POST may take.
const POST_TIMEOUT: Duration = Duration::from_secs(60);
/// How soon is looked again when the store could not be read or written.
const AGAIN: Duration = Duration::from_secs(60);
/// Who writes, when the contact's own domain is not one of ours.
const LOCAL_PARTS: [&str; 2] = ["tls-reports", "no-reply"];

/// Who reports.
#[derive(Debug, Clone)]
pub struct TlsReporter {
    /// Who can be asked.
    pub contact: Address,
    /// Posts to web servers of strangers.
    pub poster: Poster,
}

/// A report on its way.
struct Written<'a> {
    report: Report<'a>,
    packed: Bytes,
    from: Option<&'a Address>,
}

/// When the report of a domain's day is due: spread over hours, always the same.
fn due(hostname: &Name, (day, domain): (Day, &Name)) -> Timestamp {
    let digest = Sha256::digest(format!("{hostname} {day} {domain}"));
    let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let turns = i32::try_from(number % TURNS).unwrap_or(0);
    day.ends_at().checked_add(SETTLED + TURN * turns).unwrap_or(Timestamp::MAX)
}

impl Hall {
    /// Keeps reporting until the worker stops; not at all without a reporter.
    pub(crate) async fn keep_tls_reporting(&self) {
        let worker = &self.worker;
        let Some(reporter) = worker.tls_reporter.get() else { return };
        while !worker.stop.is_cancelled() {
            let leases = worker.leases.changed();
            let next = match worker.leases.is_active(0) {
                true => self.report_days(reporter).await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.store(), %error, "reports about TLS cannot be made at the moment");
                    worker.later(AGAIN)
                }),
                false => Timestamp::MAX,
            };
            tokio::select! {
                () = self.clock().sleep_until(next) => {}
                () = leases => {}
                () = worker.stop.cancelled() => {}
            }
        }
    }

    /// Reports what is due. Says when to look again.
    async fn report_days(&self, reporter: &TlsReporter) -> Result<Timestamp, ReadError> {
        self.worker.write_sessions().await;
        let now = self.clock().now();
        let today = Day::of(now);
        let days = (today.earlier(DAYS), today.earlier(1));
        let from = self.report_writer(reporter).await?;
        let mut next = today.ends_at().checked_add(SETTLED).unwrap_or(Timestamp::MAX);
        let mut at = None;
        loop {
            let slice = store::tls_day::slice(self.store(), days, at, SLICE).await?;
            let mut reporting = Vec::new();
            for found in &slice.found {
                match self.turn_of(found) {
                    Some((turn, since)) if turn <= now => {
                        reporting.push(self.report_day(reporter, from.as_ref(), (found, since)));
                    }
                    Some((turn, _)) => next = next.min(turn),
                    None => {}
                }
            }
            let mut reporting = futures_util::stream::iter(reporting).buffer_unordered(AT_ONCE);
            while let Some(later) = reporting.next().await {
                next = later.map_or(next, |later| next.min(later));
            }
            match slice.next {
                Some(more) if !self.worker.stop.is_cancelled() => at = Some(more),
                _ => return Ok(next),
            }
        }
    }

    /// When a report has its turn, and when it was first due; none when it is done with.
    fn turn_of(&self, found: &Found) -> Option<(Timestamp, Timestamp)> {
        match &found.stands.book {
            None => {
                let due = due(&self.worker.settings.hostname, (found.day, &found.domain));
                Some((due, due))
            }
            Some(book) => (!book.is_done()).then(|| (book.next_at.unwrap_or(book.since), book.since)),
        }
    }

    /// Who writes: the contact, where mail is sent from its domain here, or the service.
    async fn report_writer(&self, reporter: &TlsReporter) -> Result<Option<Address>, ReadError> {
        let domain = store::domain::by_name(self.store(), reporter.contact.domain()).await?;
        Ok(match domain {
            Some(domain) if domain.state == DomainState::Verified => Some(reporter.contact.clone()),
            _ => self.service_address(LOCAL_PARTS),
        })
    }

    /// Reports one day to one domain. Says when it has its next turn, if it has one.
    async fn report_day(
        &self,
        reporter: &TlsReporter,
        from: Option<&Address>,
        (found, since): (&Found, Timestamp),
    ) -> Option<Timestamp> {
        let now = self.clock().now();
        let book = match &found.stands.book {
            Some(book) if !book.sendings.is_empty() => book.clone(),
            _ => match self.wanted_by(&found.domain).await {
                Ok(to) => Book::open(since, to),
                Err(why) => Book::unknown(since, why, now),
            },
        };
        if book.sendings.is_empty() {
            return self.book_report(found, book).await.map_or_else(Some, |booked| next_of(&booked));
        }
        let report = Report {
            domain: &found.domain,
            day: found.day,
            counts: &found.stands.counts,
            contact: &reporter.contact,
            submitter: from.map_or(&self.worker.settings.hostname, Address::domain),
        };
        let written = Written { packed: packed(&report.json()), report, from };
        let mut stands = found.clone();
        stands.stands.book = Some(book.clone());
        for (at, to) in book.waiting() {
            let done = match &to {
                Destination::Mail(to) => self.mail_report(&stands, &written, (at, to)).await,
                Destination::Web(url) => self.post_report(reporter, &stands, &written, (at, url)).await,
            };
            match done {
                Ok(after) => stands = after,
                Err(later) => return Some(later),
            }
        }
        next_of(&stands)
    }

    /// To whom a domain wants its reports sent.
    async fn wanted_by(&self, domain: &Name) -> Result<Vec<Destination>, String> {
        let Ok(name) = domain.child("_tls").and_then(|name| name.child("_smtp")) else {
            return Ok(Vec::new());
        };
        let texts = self.worker.planner.resolver().txt(&name).await.map_err(|error| error.to_string())?;
        Ok(tls_report::destinations(&texts.data))
    }

    /// Writes the books; or says when to look again.
    async fn book_report(&self, found: &Found, book: Book) -> Result<Found, Timestamp> {
        let mut batch = Batch::progress();
        let booked = found.book(&mut batch, book);
        match self.store().commit(batch).await {
            Ok(()) => Ok(booked),
            Err(error) => {
                if !matches!(error, CommitError::Conflict { .. }) {
                    store::warn_unless_away!(self.store(), %error, "the report of a day cannot be booked at the moment");
                }
                Err(self.worker.later(AGAIN))
            }
        }
    }

    async fn mail_report(
        &self,
        found: &Found,
        written: &Written<'_>,
        (at, to): (usize, &Address),
    ) -> Result<Found, Timestamp> {
        let Some(book) = &found.stands.book else { return Ok(found.clone()) };
        let now = self.clock().now();
        let state_of = |outcome: &Result<Accepted, Refusal>| match outcome {
            Ok(accepted) => Some(SendingState::Mailed(accepted.id)),
            Err(Refusal::Blocked { .. }) => {
                Some(SendingState::Failed("the address is suppressed".to_owned()))
            }
            Err(_) => None,
        };
        let also = |outcomes: &[Result<Accepted, Refusal>], batch: &mut Batch| {
            if let Some(state) = outcomes.first().and_then(state_of) {
                let _ = found.book(batch, book.with(at, state, now));
            }
        };
        let mailed = async {
            let from = written.from.ok_or_else(|| {
                "nobody writes: the contact's domain is not verified here, and `sandbox_sender` is not set".to_owned()
            })?;
            let postman = Postman::find(self, from.clone()).await.map_err(|error| error.to_string())?;
            let draft = draft(from, to, written.report.message(from, to, &written.packed));
            match postman.send_draft_with(self, draft, &also).await {
                Ok(Some(outcome)) => match state_of(&outcome) {
                    Some(state) => Ok(Some(state)),
                    None => Err(outcome.err().map(|refusal| refusal.to_string()).unwrap_or_default()),
                },
                // Somebody else has changed the books.
                Ok(None) | Err(Refusal::DoneMeanwhile) => Ok(None),
                Err(refusal) => Err(refusal.to_string()),
            }
        };
        match mailed.await {
            Ok(Some(state)) => {
                told("mailed", &found.domain);
                // As it was written along with the email.
                Ok(found.book(&mut Batch::progress(), book.with(at, state, now)))
            }
            Ok(None) => Err(self.worker.later(AGAIN)),
            Err(why) => {
                tracing::warn!(domain = %found.domain, %why, "a report about TLS is not mailed");
                self.book_report(found, book.with(at, SendingState::Waiting(Some(why)), now)).await
            }
        }
    }

    async fn post_report(
        &self,
        reporter: &TlsReporter,
        found: &Found,
        written: &Written<'_>,
        (at, url): (usize, &str),
    ) -> Result<Found, Timestamp> {
        let Some(book) = &found.stands.book else { return Ok(found.clone()) };
        let post = Post {
            url: url.to_owned(),
            headers: vec![("content-type", MEDIA_TYPE.to_owned())],
            body: written.packed.clone(),
            timeout: POST_TIMEOUT,
            again: Again::Harmless,
        };
        let state = match reporter.poster.post(post).await {
            Ok(answer) if (200..300).contains(&answer.status) => {
                told("posted", &found.domain);
                SendingState::Posted(answer.status)
            }
            Ok(answer) => SendingState::Waiting(Some(format!("it answered {}", answer.status))),
            Err(error @ (PostError::Url(_) | PostError::NotPublic(_))) => {
                SendingState::Failed(error.to_string())
            }
            Err(error) => SendingState::Waiting(Some(error.to_string())),
        };
        self.book_report(found, book.with(at, state, self.clock().now())).await
    }
}

fn told(how: &'static str, domain: &Name) {
    metrics::counter!("postrider_tls_reports_total", "sent" => how).increment(1);
    tracing::info!(%domain, how, "a report about TLS was sent");
}

fn next_of(found: &Found) -> Option<Timestamp> {
    found.stands.book.as_ref().and_then(|book| book.next_at)
}

fn packed(json: &[u8]) -> Bytes {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Into memory: this does not fail.
    let _ = packer.write_all(json);
    packer.finish().unwrap_or_default().into()
}

fn draft(from: &Address, to: &Address, message: Vec<u8>) -> Draft {
    let recipient =
        DraftRecipient { address: to.clone(), kind: RecipientKind::To, notify: Notify::default() };
    Draft {
        door: Door::System,
        from: Some(from.clone().into()),
        envelope: Envelope { tls_optional: true, ..Envelope::default() },
        recipients: vec![recipient],
        content: Content::Raw { message: message.into(), received: String::new() },
        tags: Vec::new(),
        category: Category::Transactional,
        wishes: Wishes::default(),
    }
}
