//! Retention: purges emails and all rows about them at the end of their retention time.
//!
//! Once an hour each account's oldest emails are read. Ids are ordered by time, so the scan stops at the first one that
//! is young enough. An email with a queued recipient is not purged.
//!
//! The same job purges expired received emails, sessions, sign-in links and idempotency keys. It also purges old
//! request logs, metrics, product events, event logs, deliveries, reports and affiliate visits.

mod automation_runs;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::affiliate::visit::COUNTS_RETENTION;
use model::id::{AccountId, ApprovalId, DeliveryId, EmailId, ProductEventId, RequestId, RunId};
use model::metric::Hour;
use queue::delivery::delivery_policy::SharedDeliveryPolicy;
use queue::services::Services;
use store::affiliate::{click_count, self_referral_guard, visit};
use store::engine::{Batch, CommitError, ReadError};
use store::request_log::LogPart;
use thiserror::Error;

/// Interval between purges.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Delay before a failed purge is continued.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Emails purged per commit.
const BATCH_EMAILS: usize = 100;
/// Idempotency keys purged per commit.
const BATCH_KEYS: usize = 1_000;
/// Rows read or purged per commit.
const BATCH_ROWS: usize = 1_000;
/// Approvals of a commit; each has up to 320 KiB.
const BATCH_APPROVALS: usize = 20;
/// Event log chunks purged per commit; each holds up to a thousand events.
const BATCH_EVENT_CHUNKS: usize = 20;
/// Retention of the ids of processor events, which detect repeated deliveries. The processor repeats them for three
/// days by itself and for a month by hand. A later repetition is ingested again without effect, because the ledger is
/// computed from the current state.
const PROCESSOR_EVENTS_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Accounts read per page.
const PAGE_ACCOUNTS: usize = 500;

/// A purge ended early; the next one continues.
#[derive(Debug, Error)]
enum RetentionError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Purges expired rows.
pub(crate) struct RetentionJob {
    services: Services,
    policy: Arc<SharedDeliveryPolicy>,
}

impl RetentionJob {
    pub(crate) fn new(services: Services, policy: Arc<SharedDeliveryPolicy>) -> Self {
        Self { services, policy }
    }

    /// Purges expired rows until shutdown.
    pub(crate) async fn run(self) {
        let mut policy = self.policy.subscribe();
        loop {
            let retention = policy.borrow_and_update().retention;
            // The next purge counts from the start of this one, so that a long purge is not followed by a late one.
            let started_at = self.services.clock.now();
            let mut wait = INTERVAL;
            match self.purge_older_than(retention).await {
                Ok(0) => {}
                Ok(purged) => tracing::info!(forgotten = purged, "expired emails purged"),
                // Purged rows changed concurrently, or the store is unavailable.
                Err(error) => {
                    store::warn_unless_away!(self.services.store, %error, "purge of expired rows failed; retrying in a minute");
                    wait = RETRY_DELAY;
                }
            }
            let next = started_at.checked_add(wait).unwrap_or(jiff::Timestamp::MAX);
            tokio::select! {
                () = self.services.clock.sleep_until(next) => {}
                _ = policy.changed() => {}
                () = self.services.stop.cancelled() => return,
            }
        }
    }

    async fn purge_older_than(&self, retention: Duration) -> Result<usize, RetentionError> {
        // Only the owner of partition 0 purges.
        if !self.services.leases.is_active(0) {
            return Ok(0);
        }
        self.purge_idempotency_keys().await?;
        self.purge_sign_in_links().await?;
        self.purge_oauth().await?;
        self.purge_tls_daily_stats().await?;
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(retention) else { return Ok(0) };
        let before = EmailId::new(oldest_kept, 0);
        let runs_before = RunId::new(oldest_kept, 0);
        let mut purged = 0;
        let mut after = None;
        loop {
            let accounts = store::account::list_ids(&self.services.store, after, PAGE_ACCOUNTS).await?;
            for account in &accounts {
                self.purge_sessions(*account).await?;
                self.purge_grants(*account).await?;
                self.purge_request_logs(*account).await?;
                self.purge_approvals(*account).await?;
                self.purge_metrics(*account).await?;
                automation_runs::purge_runs(&self.services, *account, runs_before).await?;
                self.purge_dmarc_reports(*account).await?;
                self.purge_product_events(*account, oldest_kept).await?;
                self.purge_event_log(*account).await?;
                self.purge_webhook_deliveries(*account).await?;
                self.purge_processor_events(*account).await?;
                self.purge_affiliate_visits(*account).await?;
                self.purge_affiliate_clicks(*account).await?;
                purged += self.purge_emails(*account, before).await?;
                purged += self.purge_received_emails(*account, oldest_kept).await?;
            }
            after = accounts.last().copied();
            if accounts.len() < PAGE_ACCOUNTS || self.services.stop.is_cancelled() {
                return Ok(purged);
            }
        }
    }

    async fn purge_idempotency_keys(&self) -> Result<(), RetentionError> {
        let Ok(before) = self.services.clock.now().checked_sub(model::idempotency::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = store::idempotency::purge_before(&self.services.store, &mut batch, before, BATCH_KEYS).await?;
            self.services.store.commit(batch).await?;
            if found < BATCH_KEYS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_sign_in_links(&self) -> Result<(), RetentionError> {
        loop {
            let (mut batch, now) = (Batch::progress(), self.services.clock.now());
            let found = store::sign_in_link::purge_expired(&self.services.store, &mut batch, now, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Deletes expired tokens, codes, device authorizations and registered clients.
    async fn purge_oauth(&self) -> Result<(), RetentionError> {
        loop {
            let (mut batch, now) = (Batch::progress(), self.services.clock.now());
            let found = [
                store::oauth::token::purge_expired(&self.services.store, &mut batch, now, BATCH_ROWS).await?,
                store::oauth::code::purge_expired(&self.services.store, &mut batch, now, BATCH_ROWS).await?,
                store::oauth::device::purge_expired(&self.services.store, &mut batch, now, BATCH_ROWS).await?,
                store::oauth::client::purge_expired(&self.services.store, &mut batch, now, BATCH_ROWS).await?,
            ];
            self.commit_unless_empty(batch).await?;
            if found.iter().all(|found| *found < BATCH_ROWS) || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_grants(&self, account: AccountId) -> Result<(), RetentionError> {
        let mut from = None;
        loop {
            let (mut batch, now) = (Batch::progress(), self.services.clock.now());
            let next =
                store::oauth::grant::purge_expired(&self.services.store, &mut batch, account, from, now, BATCH_ROWS)
                    .await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_tls_daily_stats(&self) -> Result<(), RetentionError> {
        let Ok(oldest) = self.services.clock.now().checked_sub(message::tls_report::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = [
                store::tls_daily_stats::purge_before(&self.services.store, &mut batch, oldest, BATCH_ROWS).await?,
                store::tls_report_received::purge_before(&self.services.store, &mut batch, oldest, BATCH_ROWS).await?,
            ];
            self.commit_unless_empty(batch).await?;
            if found.iter().all(|found| *found < BATCH_ROWS) || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_sessions(&self, account: AccountId) -> Result<(), RetentionError> {
        let mut from = None;
        loop {
            let (mut batch, now) = (Batch::progress(), self.services.clock.now());
            let next =
                store::session::purge_expired(&self.services.store, &mut batch, account, from, now, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_request_logs(&self, account: AccountId) -> Result<(), RetentionError> {
        self.purge_log_part(account, LogPart::Reads, model::request_log::RETENTION).await?;
        self.purge_log_part(account, LogPart::Audit, model::request_log::AUDIT_RETENTION).await
    }

    async fn purge_log_part(
        &self,
        account: AccountId,
        part: LogPart,
        retention: Duration,
    ) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(retention) else { return Ok(()) };
        let before = RequestId::new(oldest_kept, 0);
        loop {
            let mut batch = Batch::progress();
            let found =
                store::request_log::purge_before(&self.services.store, part, &mut batch, account, before, BATCH_ROWS)
                    .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_approvals(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(model::approval::RETENTION) else { return Ok(()) };
        let before = ApprovalId::new(oldest_kept, 0);
        loop {
            let mut batch = Batch::progress();
            let found =
                store::approval::purge_before(&self.services.store, &mut batch, account, before, BATCH_APPROVALS)
                    .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_APPROVALS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_metrics(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(model::metric::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = store::metric::purge_before(
                &self.services.store,
                &mut batch,
                account,
                Hour::containing(oldest_kept),
                BATCH_ROWS,
            )
            .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_dmarc_reports(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(message::dmarc::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = store::dmarc::purge_before(
                &self.services.store,
                &mut batch,
                account,
                Hour::containing(oldest_kept).day(),
                BATCH_ROWS,
            )
            .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_event_log(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(before) = self.services.clock.now().checked_sub(model::event::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found =
                store::event_log::purge_before(&self.services.store, &mut batch, account, before, BATCH_EVENT_CHUNKS)
                    .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_EVENT_CHUNKS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Purges product events after the retention of emails, and the rows derived from them after their own retention.
    async fn purge_product_events(&self, account: AccountId, oldest: Timestamp) -> Result<(), RetentionError> {
        let now = self.services.clock.now();
        let (oldest, since) = (ProductEventId::new(oldest, 0), |retention| now.checked_sub(retention));
        let person_cutoff = since(model::product_event::site_visit::RETENTION).unwrap_or(Timestamp::MIN);
        let conversions = since(model::product_event::conversion::RETENTION).unwrap_or(Timestamp::MIN);
        let counts = since(model::metric::RETENTION).unwrap_or(Timestamp::MIN);
        let conversions = ProductEventId::new(conversions, 0);
        loop {
            let (store, mut batch, limit) = (&self.services.store, Batch::progress(), BATCH_ROWS);
            let found = [
                store::product_event::purge_before(store, &mut batch, account, oldest, limit).await?,
                store::person::purge_before(store, &mut batch, account, person_cutoff, limit).await?,
                store::conversion::purge_before(store, &mut batch, account, conversions, limit).await?,
                store::product_event_count::purge_before(store, &mut batch, account, Hour::containing(counts), limit)
                    .await?,
            ];
            match self.commit_unless_empty(batch).await {
                // A person returned concurrently: retry.
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if found.iter().all(|found| *found < limit) || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_webhook_deliveries(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(model::event::RETENTION) else { return Ok(()) };
        let (before, mut from) = (DeliveryId::new(oldest_kept, 0), None);
        loop {
            let mut batch = Batch::progress();
            let next = store::webhook_delivery::purge_before(
                &self.services.store,
                &mut batch,
                account,
                from,
                before,
                BATCH_ROWS,
            )
            .await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_processor_events(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(before) = self.services.clock.now().checked_sub(PROCESSOR_EVENTS_RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = store::affiliate::processor_event::purge_before(
                &self.services.store,
                &mut batch,
                account,
                before,
                BATCH_ROWS,
            )
            .await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Purges expired affiliate visits, and the browsers with which partners were seen.
    async fn purge_affiliate_visits(&self, account: AccountId) -> Result<(), RetentionError> {
        let (now, mut from, mut own_browsers) = (self.services.clock.now(), (true, None), (true, None));
        let browser_cutoff = now.checked_sub(self_referral_guard::BROWSER_RETENTION).unwrap_or(Timestamp::MIN);
        while (from.0 || own_browsers.0) && !self.services.stop.is_cancelled() {
            let (store, mut batch) = (&self.services.store, Batch::progress());
            if from.0 {
                let next = visit::purge_expired(store, &mut batch, account, from.1, now, BATCH_ROWS).await?;
                from = (next.is_some(), next);
            }
            if own_browsers.0 {
                let next = self_referral_guard::purge_before(
                    store,
                    &mut batch,
                    account,
                    own_browsers.1,
                    browser_cutoff,
                    BATCH_ROWS,
                )
                .await?;
                own_browsers = (next.is_some(), next);
            }
            match self.commit_unless_empty(batch).await {
                // A visitor returned concurrently: the next purge deletes the others.
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Purges daily click counts of partner links.
    async fn purge_affiliate_clicks(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest) = self.services.clock.now().checked_sub(COUNTS_RETENTION) else { return Ok(()) };
        let mut from = None;
        loop {
            let mut batch = Batch::progress();
            let day = Hour::containing(oldest).day();
            let next =
                click_count::purge_before(&self.services.store, &mut batch, account, from, day, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_received_emails(&self, account: AccountId, oldest_kept: Timestamp) -> Result<usize, RetentionError> {
        let mut purged = 0;
        loop {
            let old = store::received_email::list_older_than(&self.services.store, account, oldest_kept, BATCH_EMAILS)
                .await?;
            for received in &old {
                // One commit each: of emails that share a body the last one deletes it.
                let mut batch = Batch::progress();
                store::received_email::delete(&self.services.store, &mut batch, received).await?;
                match self.services.store.commit(batch).await {
                    // The email, or one with the same body, was deleted concurrently: the next purge continues.
                    Ok(()) | Err(CommitError::Conflict { .. }) => purged += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            if old.len() < BATCH_EMAILS || self.services.stop.is_cancelled() {
                return Ok(purged);
            }
        }
    }

    async fn commit_unless_empty(&self, batch: Batch) -> Result<(), CommitError> {
        if batch.is_empty() { Ok(()) } else { self.services.store.commit(batch).await }
    }

    async fn purge_emails(&self, account: AccountId, before: EmailId) -> Result<usize, RetentionError> {
        let mut purged = 0;
        let mut from = None;
        loop {
            let old =
                store::email::list_accepted_before(&self.services.store, account, from, before, BATCH_EMAILS).await?;
            let mut finished = Vec::with_capacity(old.len());
            for id in &old {
                let email = store::email::get(&self.services.store, account, *id).await?;
                if email.is_some_and(|email| email.recipients.iter().all(|r| r.state.is_terminal())) {
                    finished.push(*id);
                }
            }
            if !finished.is_empty() {
                let mut batch = Batch::progress();
                store::email::purge(&self.services.store, &mut batch, account, &finished).await?;
                match self.services.store.commit(batch).await {
                    Ok(()) => purged += finished.len(),
                    // A report, open or click about one of them arrived concurrently: retry in the next purge.
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                self.services.outcome_recorded.notify_waiters();
            }
            from = old.last().copied();
            if old.len() < BATCH_EMAILS || self.services.stop.is_cancelled() {
                return Ok(purged);
            }
        }
    }
}
