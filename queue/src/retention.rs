//! Retention: an email and all that is known about it is kept for so long, and then forgotten.
//!
//! Once an hour each account's oldest emails are looked at; ids are in order of time, so the walk ends
//! at the first that is young enough. An email that still has a recipient in the queue stays. So are received emails,
//! sessions and sign-in links forgotten that have ended, and requests, metrics, product events, streams of events,
//! deliveries and visits by partners' links that were kept for long.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mail::affiliate::visit::COUNTS_RETENTION;
use mail::id::{AccountId, DeliveryId, EmailId, ProductEventId, RequestId, RunId};
use mail::metric::Hour;
use store::affiliate::{click_count, own_visitor, visit};
use store::engine::{Batch, CommitError, ReadError};
use thiserror::Error;

use crate::worker::Worker;

/// How often is looked.
const INTERVAL: Duration = Duration::from_secs(3600);
/// When is gone on with a look that failed.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Emails forgotten in one commit.
const BATCH_EMAILS: usize = 100;
/// Idempotency keys forgotten in one commit.
const BATCH_KEYS: usize = 1_000;
/// Sessions looked at, and links, requests and metrics forgotten, in one commit.
const BATCH_ROWS: usize = 1_000;
/// Runs of an account's stream forgotten in one commit: each holds up to a thousand events.
const BATCH_EVENT_CHUNKS: usize = 20;
/// How long it is known which of the payment processor's events came. It sends them again for three days by itself and
/// for a month by hand; one that comes later is heard again, which changes nothing: the ledger follows from how things
/// stand.
const PROCESSOR_EVENTS_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Accounts read at once.
const PAGE_ACCOUNTS: usize = 500;

/// Why a walk ended early; the next one goes on.
#[derive(Debug, Error)]
enum RetentionError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Keeps forgetting until the worker stops.
    pub(crate) async fn run_retention(self: Arc<Self>) {
        let mut manners = self.watch_policy();
        loop {
            let retention = manners.borrow_and_update().retention;
            // As of the look's beginning: what grows old meanwhile is the next one's.
            let began = self.clock.now();
            let mut wait = INTERVAL;
            match self.purge_older_than(retention).await {
                Ok(0) => {}
                Ok(forgotten) => tracing::info!(forgotten, "old emails were forgotten"),
                // Somebody wrote what was to be forgotten, or the store is in need.
                Err(error) => {
                    store::warn_unless_away!(self.store, %error, "forgetting what is old; going on in a minute");
                    wait = RETRY_DELAY;
                }
            }
            let next = began.checked_add(wait).unwrap_or(jiff::Timestamp::MAX);
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                _ = manners.changed() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn purge_older_than(&self, retention: Duration) -> Result<usize, RetentionError> {
        // Of several nodes one is enough.
        if !self.leases.is_active(0) {
            return Ok(0);
        }
        self.purge_idempotency_keys().await?;
        self.purge_sign_in_links().await?;
        self.purge_tls_daily_stats().await?;
        let Ok(oldest_kept) = self.clock.now().checked_sub(retention) else { return Ok(0) };
        let before = EmailId::new(oldest_kept, 0);
        let runs_before = RunId::new(oldest_kept, 0);
        let mut forgotten = 0;
        let mut after = None;
        loop {
            let accounts = store::account::list_ids(&self.store, after, PAGE_ACCOUNTS).await?;
            for account in &accounts {
                self.purge_sessions(*account).await?;
                self.purge_request_logs(*account).await?;
                self.purge_metrics(*account).await?;
                self.purge_runs(*account, runs_before).await?;
                self.purge_dmarc_reports(*account).await?;
                self.purge_product_events(*account, oldest_kept).await?;
                self.purge_event_log(*account).await?;
                self.purge_webhook_deliveries(*account).await?;
                self.purge_processor_events(*account).await?;
                self.purge_affiliate_visits(*account).await?;
                self.purge_affiliate_clicks(*account).await?;
                forgotten += self.purge_emails(*account, before).await?;
                forgotten += self.purge_received_emails(*account, oldest_kept).await?;
            }
            after = accounts.last().copied();
            if accounts.len() < PAGE_ACCOUNTS || self.stop.is_cancelled() {
                return Ok(forgotten);
            }
        }
    }

    async fn purge_idempotency_keys(&self) -> Result<(), RetentionError> {
        let Ok(before) = self.clock.now().checked_sub(mail::idempotency::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = store::idempotency::purge_before(&self.store, &mut batch, before, BATCH_KEYS).await?;
            self.store.commit(batch).await?;
            if found < BATCH_KEYS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_sign_in_links(&self) -> Result<(), RetentionError> {
        loop {
            let (mut batch, now) = (Batch::progress(), self.clock.now());
            let found = store::sign_in_link::purge_expired(&self.store, &mut batch, now, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_tls_daily_stats(&self) -> Result<(), RetentionError> {
        let Ok(oldest) = self.clock.now().checked_sub(mail::tls_report::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let found = [
                store::tls_day::purge_before(&self.store, &mut batch, oldest, BATCH_ROWS).await?,
                store::tls_heard::purge_before(&self.store, &mut batch, oldest, BATCH_ROWS).await?,
            ];
            self.commit_unless_empty(batch).await?;
            if found.iter().all(|found| *found < BATCH_ROWS) || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_sessions(&self, account: AccountId) -> Result<(), RetentionError> {
        let mut from = None;
        loop {
            let (mut batch, now) = (Batch::progress(), self.clock.now());
            let of = (account, from);
            let next = store::session::purge_expired(&self.store, &mut batch, of, now, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_request_logs(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.clock.now().checked_sub(mail::request_log::RETENTION) else {
            return Ok(());
        };
        let of = (account, RequestId::new(oldest_kept, 0));
        loop {
            let mut batch = Batch::progress();
            let found = store::request_log::purge_before(&self.store, &mut batch, of, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_metrics(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.clock.now().checked_sub(mail::metric::RETENTION) else { return Ok(()) };
        let of = (account, Hour::containing(oldest_kept));
        loop {
            let mut batch = Batch::progress();
            let found = store::metric::purge_before(&self.store, &mut batch, of, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_dmarc_reports(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.clock.now().checked_sub(mail::dmarc::RETENTION) else { return Ok(()) };
        let of = (account, Hour::containing(oldest_kept).day());
        loop {
            let mut batch = Batch::progress();
            let found = store::dmarc::purge_before(&self.store, &mut batch, of, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_event_log(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(before) = self.clock.now().checked_sub(mail::event::RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let of = (account, before);
            let found = store::stream::purge_before(&self.store, &mut batch, of, BATCH_EVENT_CHUNKS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_EVENT_CHUNKS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Product events as long as emails; what was made of them longer.
    async fn purge_product_events(&self, account: AccountId, oldest: Timestamp) -> Result<(), RetentionError> {
        let now = self.clock.now();
        let (oldest, since) = (ProductEventId::new(oldest, 0), |kept| now.checked_sub(kept));
        let people = since(mail::product_event::visit::RETENTION).unwrap_or(Timestamp::MIN);
        let conversions = since(mail::product_event::conversion::RETENTION).unwrap_or(Timestamp::MIN);
        let counts = since(mail::metric::RETENTION).unwrap_or(Timestamp::MIN);
        let conversions = (account, ProductEventId::new(conversions, 0));
        loop {
            let (store, mut batch, most) = (&self.store, Batch::progress(), BATCH_ROWS);
            let events = (account, oldest);
            let found = [
                store::product_event::purge_before(store, &mut batch, events, most).await?,
                store::person::purge_before(store, &mut batch, (account, people), most).await?,
                store::conversion::purge_before(store, &mut batch, conversions, most).await?,
                store::product_event_count::purge_before(store, &mut batch, (account, Hour::containing(counts)), most)
                    .await?,
            ];
            match self.commit_unless_empty(batch).await {
                // Somebody came back this very moment.
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if found.iter().all(|found| *found < most) || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    async fn purge_webhook_deliveries(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest_kept) = self.clock.now().checked_sub(mail::event::RETENTION) else { return Ok(()) };
        let (before, mut from) = (DeliveryId::new(oldest_kept, 0), None);
        loop {
            let (mut batch, of) = (Batch::progress(), (account, from));
            let next = store::delivery::purge_before(&self.store, &mut batch, of, before, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_processor_events(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(before) = self.clock.now().checked_sub(PROCESSOR_EVENTS_RETENTION) else { return Ok(()) };
        loop {
            let mut batch = Batch::progress();
            let of = (account, before);
            let found =
                store::affiliate::processor_event::purge_before(&self.store, &mut batch, of, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if found < BATCH_ROWS || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Visits by partners' links whose time is over, and what partners were seen with.
    async fn purge_affiliate_visits(&self, account: AccountId) -> Result<(), RetentionError> {
        let (now, mut from, mut own) = (self.clock.now(), (true, None), (true, None));
        let seen = now.checked_sub(own_visitor::BROWSER_RETENTION).unwrap_or(Timestamp::MIN);
        while (from.0 || own.0) && !self.stop.is_cancelled() {
            let (store, mut batch) = (&self.store, Batch::progress());
            if from.0 {
                let next = visit::purge_expired(store, &mut batch, (account, from.1), now, BATCH_ROWS).await?;
                from = (next.is_some(), next);
            }
            if own.0 {
                let of = (account, own.1);
                let next = own_visitor::purge_before(store, &mut batch, of, seen, BATCH_ROWS).await?;
                own = (next.is_some(), next);
            }
            match self.commit_unless_empty(batch).await {
                // Somebody came back this very moment: the next look forgets the others.
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Days of clicks on partners' links.
    async fn purge_affiliate_clicks(&self, account: AccountId) -> Result<(), RetentionError> {
        let Ok(oldest) = self.clock.now().checked_sub(COUNTS_RETENTION) else { return Ok(()) };
        let mut from = None;
        loop {
            let (mut batch, of) = (Batch::progress(), (account, from));
            let day = Hour::containing(oldest).day();
            let next = click_count::purge_before(&self.store, &mut batch, of, day, BATCH_ROWS).await?;
            self.commit_unless_empty(batch).await?;
            if next.is_none() || self.stop.is_cancelled() {
                return Ok(());
            }
            from = next;
        }
    }

    async fn purge_received_emails(&self, account: AccountId, oldest_kept: Timestamp) -> Result<usize, RetentionError> {
        let mut forgotten = 0;
        loop {
            let old = store::received::list_older_than(&self.store, account, oldest_kept, BATCH_EMAILS).await?;
            for received in &old {
                // One by one: of those that share a body the last takes it along.
                let mut batch = Batch::progress();
                store::received::delete(&self.store, &mut batch, received).await?;
                match self.store.commit(batch).await {
                    // Somebody else deleted it, or its neighbour: the next look shows.
                    Ok(()) | Err(CommitError::Conflict { .. }) => forgotten += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            if old.len() < BATCH_EMAILS || self.stop.is_cancelled() {
                return Ok(forgotten);
            }
        }
    }

    async fn commit_unless_empty(&self, batch: Batch) -> Result<(), CommitError> {
        if batch.is_empty() { Ok(()) } else { self.store.commit(batch).await }
    }

    async fn purge_emails(&self, account: AccountId, before: EmailId) -> Result<usize, RetentionError> {
        let mut forgotten = 0;
        let mut from = None;
        loop {
            let old = store::email::list_accepted_before(&self.store, account, from, before, BATCH_EMAILS).await?;
            let mut finished = Vec::with_capacity(old.len());
            for id in &old {
                let email = store::email::get(&self.store, account, *id).await?;
                if email.is_some_and(|email| email.recipients.iter().all(|r| r.state.is_terminal())) {
                    finished.push(*id);
                }
            }
            if !finished.is_empty() {
                let mut batch = Batch::progress();
                store::email::purge(&self.store, &mut batch, account, &finished).await?;
                match self.store.commit(batch).await {
                    Ok(()) => forgotten += finished.len(),
                    // Something came back about one of them, or was opened, this very moment: another time.
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                self.outcome_recorded.notify_waiters();
            }
            from = old.last().copied();
            if old.len() < BATCH_EMAILS || self.stop.is_cancelled() {
                return Ok(forgotten);
            }
        }
    }
}
