//! Back-fill: reads the processor's history from before its webhooks were connected, and ingests it like events.
//!
//! ```text
//! window of time ─► checkouts, customers, subscriptions, invoices, refunded charges, refunds, disputes, credit notes, and
//!                   its events, as far as it retains them; each oldest first
//!                     ─► [FactIngest::ingest_fetched_object] ─► … ─► the next window, when this one is committed
//! ```
//!
//! The processor lists newest first, but the result depends on which of a customer's invoices is ingested first. So a
//! back-fill reads the time range in windows; each is read whole and reversed. A window that was interrupted is read
//! again, which changes nothing. Until it is ingested, a window is held as the bytes of the responses, paid for by one
//! permit. A window that does not fit is shortened.
//!
//! A process writes to the store that it begins a window before it reads it. After three failed attempts in
//! a row (the process ended, or an error occurred) the back-fill fails. So a window that crashes the process is not
//! retried forever.
//!
//! Invoices are listed by creation but count by payment. So windows begin one year before `since`, and from that year
//! only invoices paid since then are ingested. Other changes to older objects come from the events of the last 30 days;
//! refunds have a list of their own.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, select};
use jiff::{SignedDuration, Timestamp};
use model::affiliate::backfill::{Backfill, BackfillStatus, WindowResult};
use model::affiliate::commission::Commission;
use model::affiliate::program::AffiliateProgram;
use model::id::{AccountId, BackfillId};
use net::http_client::ResponsePermit;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{backfill, commission, program};
use store::engine::{Batch, Key, ReadError};
use tokio::time::timeout;

use crate::context::ExtendCommit;
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, LedgerError, Result};
use crate::fair_executor::{AccountJob, FairExecutor};
use crate::ledger::ingest::{FactIngest, IngestOutcome};
use crate::processor::ProcessorJson;
use crate::stripe::client::{
    StripeAnswer, StripeClient, StripeError, StripeList, StripeProcessor, StripeRefusal, escaped,
};
use crate::stripe::enrichment::Enrichment;
use crate::stripe::reconciler::dispute_event_type;

/// Poll interval for running back-fills.
const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);
/// Maximum pages of one list in a window, except in the shortest window.
const PAGES_MAX: usize = 5;
/// Maximum pages of one list in the shortest window.
const PAGES_MAX_OF_SHORTEST: usize = 100;
/// Unix time of the default start, 2011-01-01: the processor had no payments before.
const BEGINNING: i64 = 1_293_840_000;
/// Event retention of the processor (Stripe: 30 days).
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24 * 30);
/// Event types that are fetched: those that change the ledger. Stripe accepts up to 20 types.
const EVENT_TYPES: [&str; 20] = [
    "account.updated",
    "charge.dispute.closed",
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.refunded",
    "checkout.session.async_payment_succeeded",
    "checkout.session.completed",
    "credit_note.created",
    "credit_note.updated",
    "credit_note.voided",
    "customer.created",
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.updated",
    "customer.updated",
    "invoice.paid",
    "invoice_payment.paid",
    "refund.failed",
    "refund.updated",
    "transfer.reversed",
];
const SECONDS_OF_DAY: i64 = 86_400;
/// Page size when the commissions written by a back-fill are counted.
const LINES_AT_ONCE: usize = 500;
/// Maximum number of running back-fills per poll.
const OPEN_MAX: usize = 1_000;
/// Time limit of one window, so that a slow processor does not block other accounts; the window is then shortened.
const WINDOW_TIMEOUT: Duration = Duration::from_mins(5);
/// Back-fills that run concurrently. Together they use at most half of the memory budget for responses.
const CONCURRENT_BACKFILLS_MAX: usize = 4;

/// Why a window was not ingested.
enum WindowError {
    /// The window has more objects than the limit, or is too slow: shorten it.
    TooLarge(String),
    /// The processor's response is unusable, or the store failed: retry.
    Refused(AffiliateError),
    /// The processor refuses permanently: a retry does not help.
    Denied(AffiliateError),
}

impl From<AffiliateError> for WindowError {
    fn from(refusal: AffiliateError) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ReadError> for WindowError {
    fn from(error: ReadError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<StripeError> for WindowError {
    fn from(error: StripeError) -> Self {
        match error {
            StripeError::TooLarge(error) => Self::TooLarge(error),
            StripeError::KeyRejected(error) | StripeError::KeyNotPermitted(error) => {
                Self::Denied(AffiliateError::Upstream(error))
            }
            error => Self::Refused(error.into()),
        }
    }
}

/// Whether a back-fill can do without a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListRequirement {
    /// The back-fill fails without it.
    Required,
    /// Skipped if the processor does not have it (404), but the key must be able to read it.
    IfSupported,
    /// Skipped if the processor does not have it, or the key may not read it.
    Optional,
}

/// The objects of a window, each list oldest first.
#[derive(Default)]
struct BackfillWindow {
    sessions: Vec<ProcessorJson>,
    subscriptions: Vec<ProcessorJson>,
    invoices: Vec<ProcessorJson>,
    charges: Vec<ProcessorJson>,
    refunds: Vec<ProcessorJson>,
    disputes: Vec<ProcessorJson>,
    notes: Vec<ProcessorJson>,
    events: Vec<ProcessorJson>,
}

impl StripeProcessor {
    /// Starts a back-fill from `since` on; from 2011 if it is `None`. With `silent`, no events are emitted.
    ///
    /// # Errors
    /// `NotConnected` or `NoApiKey` if the processor cannot be queried, `MissingSteps` if the program is not set up,
    /// and `BackfillRunning` if one is already running.
    pub async fn start_backfill(
        &self,
        account: AccountId,
        since: Option<Timestamp>,
        silent: bool,
        extend_commit: ExtendCommit<'_, Backfill>,
    ) -> Result<Backfill> {
        let program = self.context.get_program(account).await?;
        let processor = program.processor.as_ref().ok_or(ConflictReason::NotConnected)?;
        if processor.restricted_key.is_none() {
            return Err(ConflictReason::NoApiKey.into());
        }
        if !program.missing_steps().is_empty() {
            return Err(AffiliateError::MissingSteps(program.missing_steps()));
        }
        let now = self.context.now();
        let epoch = Timestamp::from_second(BEGINNING).unwrap_or(now);
        let new = Backfill::new(BackfillId::new(now, self.context.random()), account, since, epoch, silent, now);
        let mut batch = Batch::intake();
        backfill::create(&mut batch, &new);
        extend_commit(&mut batch, &new);
        let refusal = |_: &Key| Some(ConflictReason::BackfillRunning);
        self.context.commit_unless(batch, refusal).await.map(|_| new)
    }

    /// Fetches a back-fill.
    ///
    /// # Errors
    /// `NotFound` if there is no such back-fill; the store cannot be read.
    pub async fn get_backfill(&self, account: AccountId, id: BackfillId) -> Result<Backfill> {
        backfill::get(&self.context.store, account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Backfill))
    }

    /// Runs the back-fills of this node's partitions until `stop`, one window of each at a time. On `stop`, releases
    /// the windows in progress, so that they do not count as failures.
    pub fn run_backfills<'a>(&'a self, stop: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let process = self.new_process_id();
            {
                let work = pin!(self.run_backfill_loop(&process));
                select(work, pin!(stop)).await;
            }
            for partitions in self.context.leases.owned_ranges() {
                if let Err(refusal) = self.release_backfills(partitions, &process).await {
                    store::warn_unless_away!(self.context.store, %refusal, "cannot release the running back-fills");
                }
            }
        })
    }

    async fn run_backfill_loop(&self, process: &str) {
        let mut lanes = FairExecutor::new(CONCURRENT_BACKFILLS_MAX, 1);
        loop {
            let now = self.context.now();
            let mut due = Vec::new();
            for partitions in self.context.leases.owned_ranges() {
                match self.due_backfills(partitions, now).await {
                    Ok(further) => due.extend(further),
                    Err(error) => {
                        store::warn_unless_away!(self.context.store, %error, "cannot list running back-fills")
                    }
                }
            }
            let next = now.checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
            let time_is_up = self.context.clock.sleep_until(next);
            let progressed = lanes.run(due, |job| self.backfill_one(job, process), time_is_up).await;
            if lanes.is_idle() && !progressed.contains(&true) {
                self.context.clock.sleep_until(next).await;
            }
        }
    }

    /// Clears this process's claim on windows, so that their interruption is not counted as a crash.
    async fn release_backfills(&self, partitions: RangeInclusive<u16>, process: &str) -> Result<()> {
        for before in backfill::list_running(&self.context.store, partitions, OPEN_MAX).await? {
            if before.process.as_deref() == Some(process) {
                let after = Backfill { process: None, ..before.clone() };
                let mut batch = Batch::progress();
                backfill::update(&mut batch, &before, &after);
                self.context.commit(batch).await?;
            }
        }
        Ok(())
    }

    fn new_process_id(&self) -> String {
        format!("{:032x}", self.context.random())
    }

    /// Reads one window of each due back-fill of these partitions, under a new process id. Returns true if any made
    /// progress.
    pub async fn backfill_due(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<bool> {
        let (due, process) = (self.due_backfills(partitions, now).await?, self.new_process_id());
        let progressed = FairExecutor::new(CONCURRENT_BACKFILLS_MAX, 1)
            .run(due, |job| self.backfill_one(job, &process), pending())
            .await;
        Ok(progressed.contains(&true))
    }

    async fn due_backfills(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<Vec<AccountJob<BackfillId>>, ReadError> {
        let mut open = backfill::list_running(&self.context.store, partitions, OPEN_MAX).await?;
        open.retain(|backfill| backfill.not_before.is_none_or(|not_before| not_before <= now));
        Ok(open.into_iter().map(|backfill| (backfill.account, backfill.id)).collect())
    }

    /// Reads one window of a back-fill and logs errors. Returns true if the progress was stored.
    fn backfill_one<'a>(&'a self, (account, id): AccountJob<BackfillId>, process: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let result = self.continue_backfill((account, id), process).await;
            result
                .inspect_err(
                    |refusal| store::warn_unless_away!(self.context.store, %account, %refusal, "back-fill window failed"),
                )
                .is_ok()
        })
    }

    async fn continue_backfill(&self, (account, id): AccountJob<BackfillId>, process: &str) -> Result<()> {
        let before = self.get_backfill(account, id).await?;
        if before.status != BackfillStatus::Running {
            return Ok(());
        }
        // Stored before the work: if the process ends during the window, the next process counts it as a failure.
        let mut started = before.clone();
        let has_begun = started.begin_window(process, self.context.now());
        if !self.write_backfill(&before, &started).await? || !has_begun {
            return Ok(());
        }
        let mut after = started.clone();
        let too_slow = || Err(WindowError::TooLarge("takes too long to list a window of objects".to_owned()));
        match timeout(WINDOW_TIMEOUT, self.read_window(&started)).await.unwrap_or_else(|_| too_slow()) {
            Ok(read) => after.advance(read),
            Err(WindowError::TooLarge(reason)) => {
                if !after.shorten_window() {
                    after.fail(&format!("the processor {reason}, in the shortest window"), self.context.now());
                }
            }
            // The store or the memory budget failed. Neither is the processor's fault, so it does not count as a
            // failure.
            Err(WindowError::Refused(
                refusal @ (AffiliateError::Read(_)
                | AffiliateError::Commit(_)
                | AffiliateError::Ledger(LedgerError::Budget(_))),
            )) => {
                after.defer(self.context.now());
                self.write_backfill(&started, &after).await?;
                return Err(refusal);
            }
            Err(WindowError::Refused(refusal)) => after.fail(&refusal.to_string(), self.context.now()),
            Err(WindowError::Denied(refusal)) => after.fail_permanently(&refusal.to_string()),
        }
        self.write_backfill(&started, &after).await?;
        Ok(())
    }

    /// Writes the back-fill's new state. Returns false if another process changed it first.
    async fn write_backfill(&self, before: &Backfill, after: &Backfill) -> Result<bool> {
        if before == after {
            return Ok(true);
        }
        let mut batch = Batch::progress();
        backfill::update(&mut batch, before, after);
        let is_committed = self.context.commit(batch).await?;
        if is_committed && after.status != BackfillStatus::Running {
            let (account, status) = (after.account, after.status.word());
            tracing::info!(%account, status, error = after.error, "back-fill ended");
        }
        Ok(is_committed)
    }

    /// Fetches a window and ingests it.
    async fn read_window(&self, backfill: &Backfill) -> Result<WindowResult, WindowError> {
        let program = program::get(&self.context.store, backfill.account).await?.ok_or(AffiliateError::NotSetUp)?;
        let processor = program.processor.as_ref().ok_or(AffiliateError::Conflict(ConflictReason::NotConnected))?;
        if !processor.has_api_access() {
            return Err(AffiliateError::Conflict(ConflictReason::NoApiKey).into());
        }
        let client = self.client_of(&program).ok_or(AffiliateError::Seal)?;
        // Everything is fetched before anything is committed: a window that is too long is shortened, not read twice.
        let mut permit = client.permit();
        let window = WindowReader::for_backfill(&client, backfill, self.context.now()).read(&mut permit).await?;
        let context = if backfill.silent { self.context.clone().without_events() } else { self.context.clone() };
        let ingest = FactIngest::new(&context, Some(Enrichment::new(self)));
        let mut ingestion = WindowIngest { client, ingest, program, backfill, read: WindowResult::default() };
        ingestion.ingest_all(&window).await?;
        drop(permit);
        let mut read = ingestion.read;
        read.objects = window.objects();
        // Ids have millisecond resolution: include the rows written in the current millisecond.
        let now = self.context.now();
        read.counted_at = Some(now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now));
        read.lines = self.count_lines_written(backfill, read.counted_at).await?;
        Ok(read)
    }

    /// Counts the commissions that this back-fill wrote since the last count. The count is committed with the window:
    /// if the process is killed before, they are counted when the window is read again.
    async fn count_lines_written(&self, backfill: &Backfill, until: Option<Timestamp>) -> Result<u64> {
        let filter = commission::CommissionFilter {
            created_after: backfill.counted_until,
            created_before: until,
            ..commission::CommissionFilter::default()
        };
        let last = backfill.until.as_second();
        let (mut before, mut lines) = (None, 0_u64);
        loop {
            let wanted = ListPageRequest { before, limit: LINES_AT_ONCE, from: None };
            let page = commission::list(&self.context.store, backfill.account, &filter, wanted).await?;
            // Later payments were ingested from live events.
            let paid_at =
                |line: &Commission| line.earns_at.as_second() - i64::from(line.snapshot.hold_days) * SECONDS_OF_DAY;
            let is_in_window = |line: &&Commission| line.sold_invoice().is_some() && paid_at(line) <= last;
            lines = lines.saturating_add(page.rows.iter().filter(is_in_window).count() as u64);
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(lines),
            }
        }
    }
}

impl BackfillWindow {
    fn objects(&self) -> usize {
        let lists = [&self.sessions, &self.subscriptions, &self.invoices, &self.charges];
        let secondary = [&self.refunds, &self.disputes, &self.notes, &self.events];
        lists.into_iter().chain(secondary).map(Vec::len).sum()
    }
}

/// Fetches the lists of one window.
struct WindowReader<'a> {
    client: &'a StripeClient,
    backfill: &'a Backfill,
    /// Unix seconds: start (inclusive) and end (exclusive).
    seconds: (i64, i64),
    pages_max: usize,
    now: Timestamp,
}

impl<'a> WindowReader<'a> {
    fn for_backfill(client: &'a StripeClient, backfill: &'a Backfill, now: Timestamp) -> Self {
        let (from, until) = backfill.window();
        // The last window includes the second in which the back-fill was started.
        let end = until.as_second().saturating_add(i64::from(backfill.is_last_window()));
        let is_shortest = !backfill.clone().shorten_window();
        let pages_max = if is_shortest { PAGES_MAX_OF_SHORTEST } else { PAGES_MAX };
        Self { client, backfill, seconds: (from.as_second(), end), pages_max, now }
    }

    async fn read(&self, permit: &mut ResponsePermit) -> Result<BackfillWindow, WindowError> {
        let mut invoices = self.invoices(permit).await?;
        if self.backfill.is_before_since() {
            let since = self.backfill.since.map_or(i64::MIN, Timestamp::as_second);
            invoices.retain(|invoice| {
                let paid_at = invoice.number_in("status_transitions.paid_at");
                invoice.is_too_large() || paid_at.is_some_and(|paid_at| paid_at >= since)
            });
            return Ok(BackfillWindow { invoices, ..BackfillWindow::default() });
        }
        Ok(BackfillWindow {
            sessions: self.list("checkout/sessions", "", ListRequirement::IfSupported, permit).await?,
            subscriptions: self.list("subscriptions", "&status=all", ListRequirement::Required, permit).await?,
            invoices,
            charges: self.list("charges", "", ListRequirement::Required, permit).await?,
            refunds: self.list("refunds", "", ListRequirement::Optional, permit).await?,
            disputes: self.list("disputes", "", ListRequirement::IfSupported, permit).await?,
            notes: self.list("credit_notes", "", ListRequirement::Optional, permit).await?,
            events: self.events(permit).await?,
        })
    }

    /// Fetches the paid invoices of the window, with their payments expanded where the processor supports it.
    ///
    /// Not every processor can filter invoices. So the first request has no filter, and the window is selected locally;
    /// only if the list is longer than a page, the processor filters.
    async fn invoices(&self, permit: &mut ResponsePermit) -> Result<Vec<ProcessorJson>, WindowError> {
        let (expanded, paid) = ("&expand%5B%5D=data.payments", "&status=paid");
        let response = self.client.list_objects(&format!("/v1/invoices?{expanded}"), 1, permit).await;
        let mut invoices = match response {
            Ok(Ok(fetched)) if !fetched.has_more => self.within_window(fetched),
            Ok(Ok(_)) | Err(StripeError::TooLarge(_)) => {
                match self.list_filtered("invoices", &format!("{paid}{expanded}"), permit).await? {
                    Ok(invoices) => invoices,
                    Err(_) => self.list("invoices", paid, ListRequirement::Required, permit).await?,
                }
            }
            Ok(Err(_)) => self.list("invoices", paid, ListRequirement::Required, permit).await?,
            Err(error) => return Err(error.into()),
        };
        invoices.retain(|invoice| {
            invoice.is_too_large() || invoice.text_in("status").is_none_or(|status| status == "paid")
        });
        Ok(invoices)
    }

    /// Selects the objects that were created in the window, oldest first.
    fn within_window(&self, fetched: StripeList) -> Vec<ProcessorJson> {
        let (from, end) = self.seconds;
        let mut objects = fetched.objects;
        objects.retain(|object| object.number_in("created").is_none_or(|at| (from..end).contains(&at)));
        objects.reverse();
        objects
    }

    async fn events(&self, permit: &mut ResponsePermit) -> Result<Vec<ProcessorJson>, WindowError> {
        let kept_since = self.now.checked_sub(EVENTS_KEPT).unwrap_or(self.now).as_second();
        if self.seconds.1 <= kept_since {
            return Ok(Vec::new());
        }
        let types: String = EVENT_TYPES.iter().map(|kind| format!("&types%5B%5D={kind}")).collect();
        self.list("events", &types, ListRequirement::Optional, permit).await
    }

    /// Fetches all objects of a list that were created in the window, oldest first.
    async fn list(
        &self,
        list: &str,
        extra_query: &str,
        need: ListRequirement,
        permit: &mut ResponsePermit,
    ) -> Result<Vec<ProcessorJson>, WindowError> {
        match (self.list_filtered(list, extra_query, permit).await?, need) {
            (Ok(objects), _) => Ok(objects),
            (Err(_), ListRequirement::Optional)
            | (Err(StripeRefusal { status: 404, .. }), ListRequirement::IfSupported) => Ok(Vec::new()),
            (Err(denial), _) => Err(WindowError::Denied(AffiliateError::Upstream(denial.text))),
        }
    }

    /// Fetches a list filtered by creation time, and unfiltered if the processor cannot filter (400). The inner error
    /// is a definite refusal, or a missing permission of the key.
    async fn list_filtered(
        &self,
        list: &str,
        extra_query: &str,
        permit: &mut ResponsePermit,
    ) -> Result<Result<Vec<ProcessorJson>, StripeRefusal>, WindowError> {
        let (from, end) = self.seconds;
        let within = format!("created%5Bgte%5D={from}&created%5Blt%5D={end}");
        let mut next_query = Some((format!("{within}{extra_query}"), self.pages_max));
        let mut denial = None;
        while let Some((query, pages_max)) = next_query.take() {
            match self.client.list_objects(&format!("/v1/{list}?{query}"), pages_max, permit).await {
                Ok(Ok(fetched)) if fetched.has_more => {
                    tracing::debug!(account = %self.backfill.account, list, "back-fill window is too large, shortening it");
                    let reason = format!("answered /v1/{list} with more than {pages_max} pages");
                    return Err(WindowError::TooLarge(reason));
                }
                Ok(Ok(fetched)) => return Ok(Ok(self.within_window(fetched))),
                Ok(Err(no)) => {
                    let is_unfiltered = query.is_empty();
                    next_query = (no.status == 400 && !is_unfiltered).then(|| (String::new(), PAGES_MAX_OF_SHORTEST));
                    denial = Some(no);
                }
                Err(StripeError::KeyNotPermitted(reason)) => denial = Some(StripeRefusal { status: 403, text: reason }),
                Err(error) => return Err(error.into()),
            }
        }
        let unusable_response =
            || StripeRefusal { status: 400, text: format!("gives no usable response to /v1/{list}") };
        Ok(Err(denial.unwrap_or_else(unusable_response)))
    }
}

/// Ingests the objects of a window as if they had arrived with events.
struct WindowIngest<'a> {
    client: StripeClient,
    ingest: FactIngest,
    program: AffiliateProgram,
    backfill: &'a Backfill,
    read: WindowResult,
}

impl WindowIngest<'_> {
    async fn ingest_all(&mut self, window: &BackfillWindow) -> Result<(), WindowError> {
        let is_complete = |session: &&ProcessorJson| {
            session.is_too_large() || session.text_in("status").is_some_and(|status| status == "complete")
        };
        for session in window.sessions.iter().filter(is_complete) {
            self.ingest("checkout.session.completed", session).await?;
        }
        // First everything whose flag may exclude an invoice, so that no line is written and reversed. A customer comes
        // before its subscriptions: its hints take precedence.
        let flag = format!("metadata.{}", self.program.settings.exclude_key);
        for charge in window.charges.iter().filter(|charge| charge.text_at(&flag).is_some()) {
            self.ingest("charge.updated", charge).await?;
        }
        let unread = self.ingest_customers(&window.invoices).await?;
        for subscription in &window.subscriptions {
            self.ingest("customer.subscription.updated", subscription).await?;
        }
        self.ingest_invoices(&window.invoices, &unread).await?;
        let is_refunded =
            |charge: &&ProcessorJson| charge.is_too_large() || charge.number_in("amount_refunded").unwrap_or(0) > 0;
        for charge in window.charges.iter().filter(is_refunded) {
            self.ingest("charge.refunded", charge).await?;
        }
        for refund in &window.refunds {
            self.ingest("refund.updated", refund).await?;
        }
        for dispute in &window.disputes {
            self.ingest(dispute_event_type(dispute), dispute).await?;
        }
        for note in &window.notes {
            self.ingest("credit_note.updated", note).await?;
        }
        for event in &window.events {
            let outcome = self.ingest.ingest_fetched_event(&self.program, event).await;
            self.check_outcome(event, outcome)?;
        }
        Ok(())
    }

    /// Ingests the customers of invoices. Returns those that are too large, with the cause.
    async fn ingest_customers(&mut self, invoices: &[ProcessorJson]) -> Result<BTreeMap<String, String>, WindowError> {
        let (mut seen, mut unread) = (BTreeSet::new(), BTreeMap::new());
        for invoice in invoices {
            let Some(id) = invoice.id_in("customer").map(Cow::into_owned) else { continue };
            if seen.insert(id.clone())
                && let Some(reason) = self.ingest_customer(&id).await?
            {
                unread.insert(id, reason);
            }
        }
        Ok(unread)
    }

    /// Ingests invoices. One whose customer cannot be read is recorded as failed.
    async fn ingest_invoices(
        &mut self,
        invoices: &[ProcessorJson],
        unread: &BTreeMap<String, String>,
    ) -> Result<(), WindowError> {
        for invoice in invoices {
            self.read.invoices += 1;
            let customer = invoice.id_in("customer");
            let Some(reason) = customer.and_then(|customer| unread.get(&*customer)) else {
                self.ingest("invoice.paid", invoice).await?;
                continue;
            };
            let id = format!("asked_{}", invoice.id().unwrap_or_default());
            let (account, error) = (self.program.account, LedgerError::Unanswered(reason.clone()));
            let refused = self.ingest.record_unreadable(account, id, "invoice.paid", error).await;
            let IngestOutcome::Failed(fault) = refused else { continue };
            self.record_unread(invoice, &fault);
        }
        Ok(())
    }

    /// Fetches and ingests a customer; one that the processor has deleted is skipped. A missing permission is an error,
    /// because the customer may carry the flag that excludes its sales. Returns the cause if the customer is too large.
    async fn ingest_customer(&mut self, id: &str) -> Result<Option<String>, WindowError> {
        let path = format!("/v1/customers/{}", escaped(id));
        let mut permit = self.client.permit();
        match self.client.get_object(&path, &mut permit).await {
            Ok(StripeAnswer::Object(customer, _)) => {
                Ok(self.ingest("customer.updated", &customer).await.map(|()| None)?)
            }
            Ok(StripeAnswer::Refused(_)) => Ok(None),
            Err(StripeError::TooLarge(reason)) => Ok(Some(reason)),
            Err(error) => Err(error.into()),
        }
    }

    async fn ingest(&mut self, kind: &str, object: &ProcessorJson) -> Result<()> {
        // The version is the time at which the back-fill was started.
        let outcome = self.ingest.ingest_fetched_object(&self.program, kind, object, self.backfill.until).await;
        self.check_outcome(object, outcome)
    }

    /// An object that cannot be applied is stored among the failed events, to be replayed from there. Errors of the
    /// store or the processor end the window, and it is read again.
    fn check_outcome(&mut self, object: &ProcessorJson, outcome: IngestOutcome) -> Result<()> {
        match outcome {
            IngestOutcome::Failed(
                fault @ (LedgerError::Read(_)
                | LedgerError::Commit(_)
                | LedgerError::RetriesExhausted
                | LedgerError::Budget(_)),
            ) => Err(fault.into()),
            IngestOutcome::Failed(LedgerError::Unanswered(reason)) => Err(AffiliateError::Upstream(reason)),
            IngestOutcome::Failed(fault) => {
                self.record_unread(object, &fault);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn record_unread(&mut self, object: &ProcessorJson, fault: &LedgerError) {
        let (unreadable, first) = &mut self.read.unreadable;
        *unreadable += 1;
        first.get_or_insert_with(|| format!("{}: {fault}", object.id().unwrap_or("no id".into())));
    }
}
