//! Retention: purges emails and all rows about them at the end of their retention time.
//!
//! Once an hour each account's oldest emails are read. Ids are ordered by time of acceptance, so the scan stops at the
//! first one that is young enough. Of those before it, an email is purged if its last recipient finished long enough
//! ago.
//!
//! The same job purges expired received emails, sessions, sign-in links and idempotency keys. It also purges old
//! request logs, metrics, product events, event logs, deliveries, reports and affiliate visits.

mod automation_runs;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::affiliate::visit::COUNTS_RETENTION;
use model::id::{AccountId, ApprovalId, DeliveryId, EmailId, ProductEventId, RequestId};
use model::metric::Hour;
use model::recipient::Recipient;
use queue::delivery::delivery_policy::SharedDeliveryPolicy;
use queue::services::Services;
use store::affiliate::{click_count, processor_event, self_referral_guard, visit};
use store::engine::{Batch, CommitError, Key, ReadError, Store, StoreError};
use store::request_log::LogPart;

/// Interval between purges.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Delay before a failed purge is continued.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Emails purged per commit.
const BATCH_EMAILS: usize = 100;
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

/// Deletes up to a number of rows in a batch; returns how many it found.
type Purge<'p> =
    dyn for<'a> Fn(&'a Store, &'a mut Batch, usize) -> BoxFuture<'a, Result<usize, ReadError>> + Send + Sync + 'p;

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

    async fn purge_older_than(&self, retention: Duration) -> Result<usize, StoreError> {
        // Only the owner of partition 0 purges.
        if !self.services.leases.is_active(0) {
            return Ok(0);
        }
        self.purge_shared_rows().await?;
        let Ok(oldest_kept) = self.services.clock.now().checked_sub(retention) else { return Ok(0) };
        let mut purged = 0;
        let mut after = None;
        loop {
            let accounts = store::account::list_ids(&self.services.store, after, PAGE_ACCOUNTS).await?;
            for account in &accounts {
                self.purge_account_rows(*account).await?;
                automation_runs::purge_runs(&self.services, *account, oldest_kept).await?;
                self.purge_product_events(*account, oldest_kept).await?;
                self.purge_affiliate_visits(*account).await?;
                purged += self.purge_emails(*account, oldest_kept).await?;
                purged += self.purge_received_emails(*account, oldest_kept).await?;
            }
            after = accounts.last().copied();
            if accounts.len() < PAGE_ACCOUNTS || self.services.stop.is_cancelled() {
                return Ok(purged);
            }
        }
    }

    /// Purges expired rows that belong to no account.
    async fn purge_shared_rows(&self) -> Result<(), StoreError> {
        let now = self.services.clock.now();
        let (keys, tls) = (oldest(now, model::idempotency::RETENTION), oldest(now, message::tls_report::RETENTION));
        let purges: [&Purge<'_>; 8] = [
            &|store, batch, limit| Box::pin(store::idempotency::purge_before(store, batch, keys, limit)),
            &|store, batch, limit| Box::pin(store::sign_in_link::purge_expired(store, batch, now, limit)),
            &|store, batch, limit| Box::pin(store::oauth::token::purge_expired(store, batch, now, limit)),
            &|store, batch, limit| Box::pin(store::oauth::code::purge_expired(store, batch, now, limit)),
            &|store, batch, limit| Box::pin(store::oauth::device::purge_expired(store, batch, now, limit)),
            &|store, batch, limit| Box::pin(store::oauth::client::purge_expired(store, batch, now, limit)),
            &|store, batch, limit| Box::pin(store::tls_daily_stats::purge_before(store, batch, tls, limit)),
            &|store, batch, limit| Box::pin(store::tls_report_received::purge_before(store, batch, tls, limit)),
        ];
        for purge in purges {
            self.purge(BATCH_ROWS, purge).await?;
        }
        Ok(())
    }

    /// Purges expired rows of an account that no one renews.
    async fn purge_account_rows(&self, account: AccountId) -> Result<(), StoreError> {
        let now = self.services.clock.now();
        self.purge_pages(|store, batch, from| {
            Box::pin(store::session::purge_expired(store, batch, account, from, now, BATCH_ROWS))
        })
        .await?;
        self.purge_pages(|store, batch, from| {
            Box::pin(store::oauth::grant::purge_expired(store, batch, account, from, now, BATCH_ROWS))
        })
        .await?;
        for (part, retention) in
            [(LogPart::Reads, model::request_log::RETENTION), (LogPart::Audit, model::request_log::AUDIT_RETENTION)]
        {
            let before = RequestId::new(oldest(now, retention), 0);
            self.purge(BATCH_ROWS, |store, batch, limit| {
                Box::pin(store::request_log::purge_before(store, part, batch, account, before, limit))
            })
            .await?;
        }
        let before = ApprovalId::new(oldest(now, model::approval::RETENTION), 0);
        self.purge(BATCH_APPROVALS, |store, batch, limit| {
            Box::pin(store::approval::purge_before(store, batch, account, before, limit))
        })
        .await?;
        let before = Hour::containing(oldest(now, model::metric::RETENTION));
        self.purge(BATCH_ROWS, |store, batch, limit| {
            Box::pin(store::metric::purge_before(store, batch, account, before, limit))
        })
        .await?;
        let before = Hour::containing(oldest(now, message::dmarc::RETENTION)).day();
        self.purge(BATCH_ROWS, |store, batch, limit| {
            Box::pin(store::dmarc::purge_before(store, batch, account, before, limit))
        })
        .await?;
        let before = oldest(now, model::event::RETENTION);
        self.purge(BATCH_EVENT_CHUNKS, |store, batch, limit| {
            Box::pin(store::event_log::purge_before(store, batch, account, before, limit))
        })
        .await?;
        let before = DeliveryId::new(before, 0);
        self.purge_pages(|store, batch, from| {
            Box::pin(store::webhook_delivery::purge_before(store, batch, account, from, before, BATCH_ROWS))
        })
        .await?;
        let before = oldest(now, PROCESSOR_EVENTS_RETENTION);
        self.purge(BATCH_ROWS, |store, batch, limit| {
            Box::pin(processor_event::purge_before(store, batch, account, before, limit))
        })
        .await?;
        // Daily click counts of partner links.
        let before = Hour::containing(now.checked_sub(COUNTS_RETENTION).unwrap_or(Timestamp::MIN)).day();
        self.purge_pages(|store, batch, from| {
            Box::pin(click_count::purge_before(store, batch, account, from, before, BATCH_ROWS))
        })
        .await
    }

    /// Repeats a purge of up to `limit` rows, each time in a commit of its own, until it finds fewer.
    async fn purge(
        &self,
        limit: usize,
        purge: impl for<'a> Fn(&'a Store, &'a mut Batch, usize) -> BoxFuture<'a, Result<usize, ReadError>>,
    ) -> Result<(), StoreError> {
        loop {
            let mut batch = Batch::progress();
            let found = purge(&self.services.store, &mut batch, limit).await?;
            self.commit_unless_empty(batch).await?;
            if found < limit || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Repeats a purge of a page of rows, which returns where the next page begins, each time in a commit of its own.
    async fn purge_pages(
        &self,
        purge: impl for<'a> Fn(&'a Store, &'a mut Batch, Option<Key>) -> BoxFuture<'a, Result<Option<Key>, ReadError>>,
    ) -> Result<(), StoreError> {
        let mut from = None;
        loop {
            let mut batch = Batch::progress();
            from = purge(&self.services.store, &mut batch, from).await?;
            self.commit_unless_empty(batch).await?;
            if from.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Purges product events after the retention of emails, and the rows derived from them after their own retention.
    async fn purge_product_events(&self, account: AccountId, oldest: Timestamp) -> Result<(), StoreError> {
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

    /// Purges expired affiliate visits, and the browsers with which partners were seen.
    async fn purge_affiliate_visits(&self, account: AccountId) -> Result<(), StoreError> {
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

    async fn purge_received_emails(&self, account: AccountId, oldest_kept: Timestamp) -> Result<usize, StoreError> {
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

    /// Purges emails whose last recipient finished before `oldest_kept`. Their age counts from then and not from
    /// acceptance, so that an email that was scheduled or on hold for long is shown, and its bounces are recorded, for
    /// as long as those of any other.
    async fn purge_emails(&self, account: AccountId, oldest_kept: Timestamp) -> Result<usize, StoreError> {
        let before = EmailId::new(oldest_kept, 0);
        let is_over = |r: &Recipient| r.state.is_terminal() && r.last_event.1 < oldest_kept;
        let mut purged = 0;
        let mut from = None;
        loop {
            let old =
                store::email::list_accepted_before(&self.services.store, account, from, before, BATCH_EMAILS).await?;
            let mut finished = Vec::with_capacity(old.len());
            for id in &old {
                let email = store::email::get(&self.services.store, account, *id).await?;
                if email.is_some_and(|email| email.recipients.iter().all(is_over)) {
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

/// The time before which rows with this retention are old.
fn oldest(now: Timestamp, retention: Duration) -> Timestamp {
    now.checked_sub(retention).unwrap_or(Timestamp::MIN)
}
