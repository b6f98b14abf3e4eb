//! TLS reporter: sends daily TLS reports to the domains that request them (RFC 8460).
//!
//! ```text
//! end of day, within four hours ─► rows without delivery state ─► _smtp._tls.{domain} TXT ─► JSON, gzip
//!        mailto: ─► intake ─►[ email + delivery state ]          https: ─► POST ─►[ delivery state ]
//! ```
//!
//! The owner of the first partition reports for all nodes. The delivery state is part of the row of the day's counts. A
//! mailed report is recorded in the commit that accepts the email, so it is mailed once across restarts. A POST may be
//! repeated, with the same report id. Failed deliveries are retried for a day.
//!
//! The mail is signed like any other, requires no TLS (RFC 8689 5), and its own TLS sessions are not counted.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dns::resolver::Resolver;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use message::address::{Address, DomainName};
use message::header::SubmittedMessage;
use message::tls_report::write::{MEDIA_TYPE, OutgoingTlsReport};
use message::tls_report::{self, Day, ReportDestination};
use model::domain::DomainState;
use model::draft::{Draft, DraftContent, DraftRecipient, SendOptions, SubmissionEnvelope};
use model::email::{Category, Ingress};
use model::recipient::{DsnOptions, RecipientKind};
use model::tls_report_delivery::{ReportDelivery, ReportSendState};
use net::http_client::{HttpClient, HttpClientError, HttpPost, RequestIdempotency};
use sha2::{Digest as _, Sha256};
use store::engine::{Batch, CommitError, ReadError};
use store::tls_daily_stats::StoredTlsStats;

use crate::delivery::tls_session_stats::TlsSessionStats;
use crate::intake::submit_error::SubmitError;
use crate::intake::system_mailer::SystemMailer;
use crate::intake::{Intake, SubmitReceipt};
use crate::services::Services;
use crate::subsystems::DeliverySubsystems;

/// Time after the end of a day in which other nodes may still write their counts.
const COUNT_SETTLE_DELAY: SignedDuration = SignedDuration::from_mins(2);
/// Number of send slots: reports are spread over four hours (RFC 8460 4.1).
const SEND_SLOTS: u64 = 47;
const SEND_SLOT: SignedDuration = SignedDuration::from_mins(5);
/// Days checked: four hours, and a day of retries.
const DAYS_CHECKED: i64 = 2;
/// Rows read per page.
const PAGE_ROWS: usize = 500;
/// Domains processed concurrently.
const CONCURRENCY: usize = 8;
/// Timeout of a POST.
const POST_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before a store error is retried.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Local parts of the sender if the contact's domain is not verified here.
const LOCAL_PARTS: [&str; 2] = ["tls-reports", "no-reply"];

/// Settings of TLS reports.
#[derive(Debug, Clone)]
pub struct TlsReportSettings {
    /// Contact address of the reports.
    pub contact: Address,
    /// HTTP client for `https:` destinations.
    pub client: HttpClient,
}

/// A rendered report.
struct RenderedTlsReport<'a> {
    report: OutgoingTlsReport<'a>,
    gzipped: Bytes,
    from: Option<&'a Address>,
}

/// Returns the send time of a domain's report: spread over hours, and always the same for a day and domain.
fn report_due_at(hostname: &DomainName, day: Day, domain: &DomainName) -> Timestamp {
    let digest = Sha256::digest(format!("{hostname} {day} {domain}"));
    let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let slot = i32::try_from(number % SEND_SLOTS).unwrap_or(0);
    day.ends_at().checked_add(COUNT_SETTLE_DELAY + SEND_SLOT * slot).unwrap_or(Timestamp::MAX)
}

/// Sends TLS reports.
pub struct TlsReporter {
    services: Services,
    settings: TlsReportSettings,
    /// Accepts the mail of reports.
    intake: Arc<Intake>,
    stats: Arc<TlsSessionStats>,
    resolver: Resolver,
    hostname: DomainName,
}

impl TlsReporter {
    pub fn new(intake: Arc<Intake>, delivery: &DeliverySubsystems, settings: TlsReportSettings) -> Self {
        Self {
            services: intake.services.clone(),
            settings,
            stats: Arc::clone(&delivery.tls_stats),
            resolver: delivery.router.resolver().clone(),
            hostname: delivery.hostname.clone(),
            intake,
        }
    }

    /// Sends due reports until shutdown.
    pub async fn run(self) {
        let services = &self.services;
        while !services.stop.is_cancelled() {
            let leases = services.leases.changed();
            let next = match services.leases.is_active(0) {
                true => self.send_due_tls_reports().await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.services.store, %error, "cannot send TLS reports; retrying");
                    services.clock.after(RETRY_DELAY)
                }),
                false => Timestamp::MAX,
            };
            tokio::select! {
                () = self.services.clock.sleep_until(next) => {}
                () = leases => {}
                () = services.stop.cancelled() => {}
            }
        }
    }

    /// Sends due reports. Returns the time of the next check.
    async fn send_due_tls_reports(&self) -> Result<Timestamp, ReadError> {
        self.stats.flush().await;
        let now = self.services.clock.now();
        let today = Day::containing(now);
        let (first, last) = (today.days_before(DAYS_CHECKED), today.days_before(1));
        let from = self.tls_report_sender().await?;
        let mut next = today.ends_at().checked_add(COUNT_SETTLE_DELAY).unwrap_or(Timestamp::MAX);
        let mut at = None;
        loop {
            let slice = store::tls_daily_stats::list(&self.services.store, first, last, at, PAGE_ROWS).await?;
            let mut reporting = Vec::new();
            for found in &slice.found {
                match self.next_send(found) {
                    Some((send_at, since)) if send_at <= now => {
                        reporting.push(self.send_tls_report(from.as_ref(), found, since));
                    }
                    Some((send_at, _)) => next = next.min(send_at),
                    None => {}
                }
            }
            let mut reporting = futures_util::stream::iter(reporting).buffer_unordered(CONCURRENCY);
            while let Some(next_report) = reporting.next().await {
                next = next_report.map_or(next, |next_report| next.min(next_report));
            }
            match slice.next {
                Some(next_page) if !self.services.stop.is_cancelled() => at = Some(next_page),
                _ => return Ok(next),
            }
        }
    }

    /// Returns the time of the next try and the time when the report was first due; `None` if it is finished.
    fn next_send(&self, found: &StoredTlsStats) -> Option<(Timestamp, Timestamp)> {
        match &found.stats.book {
            None => {
                let due = report_due_at(&self.hostname, found.day, &found.domain);
                Some((due, due))
            }
            Some(delivery) => {
                (!delivery.is_done()).then(|| (delivery.next_at.unwrap_or(delivery.since), delivery.since))
            }
        }
    }

    /// Returns the sender: the contact if its domain is verified here, else a service address.
    async fn tls_report_sender(&self) -> Result<Option<Address>, ReadError> {
        let domain = store::domain::find_by_name(&self.services.store, self.settings.contact.domain()).await?;
        Ok(match domain {
            Some(domain) if domain.state == DomainState::Verified => Some(self.settings.contact.clone()),
            _ => self.intake.sender_authorization.service_address(LOCAL_PARTS),
        })
    }

    /// Sends the report of one day to one domain. Returns the time of the next try, if one is needed.
    async fn send_tls_report(
        &self,
        from: Option<&Address>,
        found: &StoredTlsStats,
        since: Timestamp,
    ) -> Option<Timestamp> {
        let now = self.services.clock.now();
        let delivery = match &found.stats.book {
            Some(delivery) if !delivery.sendings.is_empty() => delivery.clone(),
            _ => match self.tls_report_destinations(&found.domain).await {
                Ok(to) => ReportDelivery::start(since, to),
                Err(reason) => ReportDelivery::with_unknown_recipients(since, reason, now),
            },
        };
        if delivery.sendings.is_empty() {
            return self.commit_tls_report(found, delivery).await.map_or_else(Some, |booked| next_try_at(&booked));
        }
        let report = OutgoingTlsReport {
            domain: &found.domain,
            day: found.day,
            counts: &found.stats.counts,
            contact: &self.settings.contact,
            submitter: from.map_or(&self.hostname, Address::domain),
        };
        let written = RenderedTlsReport { gzipped: gzip(&report.to_json()), report, from };
        let mut current = found.clone();
        current.stats.book = Some(delivery.clone());
        for (at, to) in delivery.waiting() {
            let done = match &to {
                ReportDestination::Mail(to) => self.mail_tls_report(&current, &written, at, to).await,
                ReportDestination::Web(url) => self.post_tls_report(&current, &written, at, url).await,
            };
            match done {
                Ok(after) => current = after,
                Err(retry_at) => return Some(retry_at),
            }
        }
        next_try_at(&current)
    }

    /// Returns the destinations that a domain publishes for its reports.
    async fn tls_report_destinations(&self, domain: &DomainName) -> Result<Vec<ReportDestination>, String> {
        let Ok(name) = domain.child("_tls").and_then(|name| name.child("_smtp")) else {
            return Ok(Vec::new());
        };
        let texts = self.resolver.txt(&name).await.map_err(|error| error.to_string())?;
        Ok(tls_report::report_destinations(&texts.data))
    }

    /// Saves the delivery state, or returns the time of the next try.
    async fn commit_tls_report(
        &self,
        found: &StoredTlsStats,
        delivery: ReportDelivery,
    ) -> Result<StoredTlsStats, Timestamp> {
        let mut batch = Batch::progress();
        let booked = found.save_report_state(&mut batch, delivery);
        match self.services.store.commit(batch).await {
            Ok(()) => Ok(booked),
            Err(error) => {
                if !matches!(error, CommitError::Conflict { .. }) {
                    store::warn_unless_away!(self.services.store, %error, "cannot save the state of a TLS report; retrying");
                }
                Err(self.services.clock.after(RETRY_DELAY))
            }
        }
    }

    async fn mail_tls_report(
        &self,
        found: &StoredTlsStats,
        written: &RenderedTlsReport<'_>,
        at: usize,
        to: &Address,
    ) -> Result<StoredTlsStats, Timestamp> {
        let Some(delivery) = &found.stats.book else { return Ok(found.clone()) };
        let now = self.services.clock.now();
        let state_of = |outcome: &Result<SubmitReceipt, SubmitError>| match outcome {
            Ok(accepted) => Some(ReportSendState::Mailed(accepted.id)),
            Err(SubmitError::Suppressed { .. }) => {
                Some(ReportSendState::Failed("the address is suppressed".to_owned()))
            }
            Err(_) => None,
        };
        let extend_commit = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            if let Some(state) = outcomes.first().and_then(state_of) {
                let _ = found.save_report_state(batch, delivery.with_result(at, state, now));
            }
        };
        let mailed = async {
            let from = written.from.ok_or_else(|| {
                "no sender: the contact's domain is not verified here, and `sandbox_sender` is not set".to_owned()
            })?;
            let mailer = SystemMailer::for_service(&self.services.store, from.clone()).await;
            let mailer = mailer.map_err(|error| error.to_string())?;
            let draft = tls_report_draft(from, to, written.report.to_message(from, to, &written.gzipped));
            match mailer.send_draft_with(&self.intake, draft, &extend_commit).await {
                Ok(Some(outcome)) => match state_of(&outcome) {
                    Some(state) => Ok(Some(state)),
                    None => Err(outcome.err().map(|refusal| refusal.to_string()).unwrap_or_default()),
                },
                // The delivery state changed concurrently.
                Ok(None) | Err(SubmitError::DoneConcurrently) => Ok(None),
                Err(refusal) => Err(refusal.to_string()),
            }
        };
        match mailed.await {
            Ok(Some(state)) => {
                count_sent("mailed", &found.domain);
                // The state as committed with the email.
                Ok(found.save_report_state(&mut Batch::progress(), delivery.with_result(at, state, now)))
            }
            Ok(None) => Err(self.services.clock.after(RETRY_DELAY)),
            Err(reason) => {
                tracing::warn!(domain = %found.domain, why = %reason, "TLS report not mailed");
                self.commit_tls_report(found, delivery.with_result(at, ReportSendState::Waiting(Some(reason)), now))
                    .await
            }
        }
    }

    async fn post_tls_report(
        &self,
        found: &StoredTlsStats,
        written: &RenderedTlsReport<'_>,
        at: usize,
        url: &str,
    ) -> Result<StoredTlsStats, Timestamp> {
        let Some(delivery) = &found.stats.book else { return Ok(found.clone()) };
        let post = HttpPost {
            url: url.to_owned(),
            headers: vec![("content-type", MEDIA_TYPE.to_owned())],
            body: written.gzipped.clone(),
            timeout: POST_TIMEOUT,
            idempotency: RequestIdempotency::Idempotent,
        };
        let state = match self.settings.client.post(post).await {
            Ok(answer) if (200..300).contains(&answer.status) => {
                count_sent("posted", &found.domain);
                ReportSendState::Posted(answer.status)
            }
            Ok(answer) => ReportSendState::Waiting(Some(format!("the server answered with status {}", answer.status))),
            Err(error @ (HttpClientError::Url(_) | HttpClientError::NotPublic(_))) => {
                ReportSendState::Failed(error.to_string())
            }
            Err(error) => ReportSendState::Waiting(Some(error.to_string())),
        };
        self.commit_tls_report(found, delivery.with_result(at, state, self.services.clock.now())).await
    }
}

fn count_sent(channel: &'static str, domain: &DomainName) {
    metrics::counter!("postrider_tls_reports_total", "sent" => channel).increment(1);
    tracing::info!(%domain, how = channel, "TLS report sent");
}

fn next_try_at(found: &StoredTlsStats) -> Option<Timestamp> {
    found.stats.book.as_ref().and_then(|delivery| delivery.next_at)
}

fn gzip(json: &[u8]) -> Bytes {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packer.write_all(json);
    packer.finish().unwrap_or_default().into()
}

fn tls_report_draft(from: &Address, to: &Address, message: Vec<u8>) -> Draft {
    let recipient = DraftRecipient { address: to.clone(), kind: RecipientKind::To, notify: DsnOptions::default() };
    Draft {
        ingress: Ingress::System,
        from: Some(from.clone().into()),
        envelope: SubmissionEnvelope { tls_optional: true, ..SubmissionEnvelope::default() },
        recipients: vec![recipient],
        content: DraftContent::Raw { message: SubmittedMessage::new(message), received: String::new() },
        tags: Vec::new(),
        category: Category::Transactional,
        options: SendOptions::default(),
    }
}
