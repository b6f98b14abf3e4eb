//! Back-filling: the processor is asked for what happened before its events came here, and what it answers goes the way
//! of its events.
//!
//! ```text
//! window of time ─► checkouts, customers, subscriptions, invoices, refunded charges, refunds, disputes, credit notes, and
//!                   its events, as far as it keeps them; each oldest first
//!                     ─► [Ledger::take_asked] ─► … ─► the next window, when this one is booked
//! ```
//!
//! Lists come newest first, and what is a customer's first invoice goes by what is heard first: so time is gone through in
//! windows, each of which is read whole and turned round. A window that was cut off is read again, which changes nothing.
//! Until it is told, a window is the bytes of the answers, paid for by one permit: a window that does not fit is cut.
//!
//! Who begins with a window writes that down first. So a window that ends the process is not begun again and again: after
//! three such ends, or others, the back-fill has failed.
//!
//! Invoices are listed by when they were made, and count by when they were paid: so windows begin a year before the time
//! that is asked for, and of those only what was paid since is told. What else changed since in what is older (a refund
//! has a list of its own) the events of the last thirty days tell.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, select};
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::backfill::{Backfill, BackfillStatus, WindowResult};
use mail::affiliate::commission::Commission;
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, BackfillId};
use queue::courier::http::ResponsePermit;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{backfill, commission, program};
use store::engine::{Batch, ReadError};
use tokio::time::timeout;

use crate::asking::{StripeAnswer, StripeClient, StripeError, StripeList, StripeRefusal, escaped};
use crate::comparing::dispute_event_type;
use crate::lanes::{AccountJob, FairExecutor};
use crate::ledger::{IngestOutcome, Ledger, LedgerError};
use crate::office::{AffiliateService, CommitResult, ExtendCommit};
use crate::processor::ProcessorJson;
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason};

/// How often is looked for one to go on with.
const EVERY: SignedDuration = SignedDuration::from_secs(2);
/// Pages of one list in a window, unless the window is as short as can be.
const PAGES_MAX: usize = 5;
/// Pages of the shortest window, if they fit into its memory.
const PAGES_MAX_OF_SHORTEST: usize = 100;
/// Before this nobody was paid by the processor.
const BEGINNING: i64 = 1_293_840_000;
/// For how long the processor keeps its events (Stripe: 30 days).
const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24 * 30);
/// Which of them are asked for: those that something follows from, of which Stripe takes twenty names.
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
/// Lines that are counted at once.
const LINES_AT_ONCE: usize = 500;
/// Back-fills that are looked for at once.
const OPEN_MAX: usize = 1_000;
/// How long a window may take, so that a slow processor gives the lane back to others; then the window is cut.
const WINDOW_TIMEOUT: Duration = Duration::from_mins(5);
/// Back-fills that go on side by side: together they hold half of the memory for answers at most.
const LANES: usize = 4;

/// Why a window is not read.
enum WindowError {
    /// More happened in it than is looked at at once: what the processor did.
    TooLarge(String),
    /// The processor does not answer as it must, or the store cannot be read or written.
    Refused(AffiliateError),
    /// The processor refuses once and for all: to ask again is in vain.
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
    fn from(why: StripeError) -> Self {
        match why {
            StripeError::TooLarge(why) => Self::TooLarge(why),
            StripeError::KeyRejected(why) | StripeError::KeyNotPermitted(why) => {
                Self::Denied(AffiliateError::Upstream(why))
            }
            why => Self::Refused(why.into()),
        }
    }
}

impl From<StripeError> for AffiliateError {
    fn from(why: StripeError) -> Self {
        match why {
            StripeError::MemoryBusy(busy) => Self::Ledger(LedgerError::Budget(busy)),
            why => Self::Upstream(why.to_string()),
        }
    }
}

/// How a list is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListRequirement {
    /// Without it there is no back-fill.
    Required,
    /// A processor that does not have it goes without; a key that may not read it does not.
    IfSupported,
    /// A processor that does not have it, or a key that may not read it, goes without.
    Optional,
}

/// What is in a window, oldest first.
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

impl AffiliateService {
    /// Has the past be read into the ledger, from `since` on: from the beginning, when that is not said. With `silent`
    /// nobody is told of what is written.
    ///
    /// # Errors
    /// The processor cannot be asked, or a back-fill goes on; [`Refusal`].
    pub async fn start_backfill(
        &self,
        account: AccountId,
        (since, silent): (Option<Timestamp>, bool),
        beside: ExtendCommit<'_, Backfill>,
    ) -> Result<Backfill, AffiliateError> {
        let program = self.get_program(account).await?;
        let processor = program.processor.as_ref().ok_or(ConflictReason::NotConnected)?;
        if processor.restricted_key.is_none() {
            return Err(ConflictReason::NoApiKey.into());
        }
        if !program.missing_steps().is_empty() {
            return Err(AffiliateError::MissingSteps(program.missing_steps()));
        }
        let now = self.now();
        let beginning = Timestamp::from_second(BEGINNING).unwrap_or(now);
        let ids = (BackfillId::new(now, self.random()), account);
        let new = Backfill::new(ids, (since, beginning), silent, now);
        let mut batch = Batch::intake();
        backfill::create(&mut batch, &new);
        beside(&mut batch, &new);
        match self.commit(batch).await? {
            CommitResult::Committed => Ok(new),
            CommitResult::Conflict(_) => Err(ConflictReason::BackfillRunning.into()),
        }
    }

    /// A back-fill.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn backfill(&self, account: AccountId, id: BackfillId) -> Result<Backfill, AffiliateError> {
        backfill::get(self.store(), account, id).await?.ok_or(AffiliateError::NotFound(AffiliateNoun::Backfill))
    }

    /// Goes on with back-fills until `stop`: those of this node's partitions, a window of each at a time. Windows that are
    /// under way then did not end badly, and that is written down.
    pub fn run_backfills<'a>(&'a self, stop: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let process = self.new_process_id();
            {
                let work = pin!(self.run_backfill_loop(&process));
                select(work, pin!(stop)).await;
            }
            for partitions in self.hall.partition_ranges() {
                if let Err(refusal) = self.release_backfills(partitions, &process).await {
                    store::warn_unless_away!(self.store(), %refusal, "it cannot be noted that back-fills did not end badly");
                }
            }
        })
    }

    async fn run_backfill_loop(&self, process: &str) {
        let mut lanes = FairExecutor::new(LANES, 1);
        loop {
            let now = self.now();
            let mut due = Vec::new();
            for partitions in self.hall.partition_ranges() {
                match self.due_backfills(partitions, now).await {
                    Ok(more) => due.extend(more),
                    Err(error) => {
                        store::warn_unless_away!(self.store(), %error, "back-fills cannot be looked for")
                    }
                }
            }
            let next = now.checked_add(EVERY).unwrap_or(Timestamp::MAX);
            let time_is_up = self.hall.clock().sleep_until(next);
            let went_on = lanes.run(due, |job| self.backfill_one(job, process), time_is_up).await;
            if lanes.is_idle() && !went_on.contains(&true) {
                self.hall.clock().sleep_until(next).await;
            }
        }
    }

    /// Windows that this process has begun with are not under way any more.
    async fn release_backfills(&self, partitions: RangeInclusive<u16>, process: &str) -> Result<(), AffiliateError> {
        for before in backfill::list_running(self.store(), partitions, OPEN_MAX).await? {
            if before.process.as_deref() == Some(process) {
                let after = Backfill { process: None, ..before.clone() };
                let mut batch = Batch::progress();
                backfill::update(&mut batch, &before, &after);
                self.commit(batch).await?;
            }
        }
        Ok(())
    }

    fn new_process_id(&self) -> String {
        format!("{:032x}", self.random())
    }

    /// Reads a window of each back-fill of these partitions, as a process of its own. Whether there was one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn backfill_due(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<bool, AffiliateError> {
        let (due, process) = (self.due_backfills(partitions, now).await?, self.new_process_id());
        let went_on = FairExecutor::new(LANES, 1).run(due, |job| self.backfill_one(job, &process), pending()).await;
        Ok(went_on.contains(&true))
    }

    async fn due_backfills(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<Vec<AccountJob<BackfillId>>, ReadError> {
        let mut open = backfill::list_running(self.store(), partitions, OPEN_MAX).await?;
        open.retain(|one| one.not_before.is_none_or(|then| then <= now));
        Ok(open.into_iter().map(|one| (one.account, one.id)).collect())
    }

    /// Reads a window of a back-fill. Whether that is noted.
    async fn backfill_one(&self, (account, id): AccountJob<BackfillId>, process: &str) -> bool {
        let went_on = self.continue_backfill((account, id), process).await;
        went_on
            .inspect_err(|refusal| store::warn_unless_away!(self.store(), %account, %refusal, "a back-fill cannot be gone on with"))
            .is_ok()
    }

    async fn continue_backfill(
        &self,
        (account, id): AccountJob<BackfillId>,
        process: &str,
    ) -> Result<(), AffiliateError> {
        let before = self.backfill(account, id).await?;
        if before.status != BackfillStatus::Running {
            return Ok(());
        }
        // On disk before the work: should the process end in the midst of it, the next one knows.
        let mut begun = before.clone();
        let begins = begun.begin_window(process, self.now());
        if !self.write_backfill((&before, &begun)).await? || !begins {
            return Ok(());
        }
        let mut after = begun.clone();
        let too_slow = || Err(WindowError::TooLarge("is too slow for a window of its objects".to_owned()));
        match timeout(WINDOW_TIMEOUT, self.read_window(&begun)).await.unwrap_or_else(|_| too_slow()) {
            Ok(read) => after.advance(read),
            Err(WindowError::TooLarge(why)) => {
                if !after.shorten_window() {
                    after.fail(&format!("the processor {why}, in the shortest time that is asked for"), self.now());
                }
            }
            // The store fails, or the memory is not free: neither is the processor's doing, so that is no bad end.
            Err(WindowError::Refused(
                refusal @ (AffiliateError::Read(_)
                | AffiliateError::Commit(_)
                | AffiliateError::Ledger(LedgerError::Budget(_))),
            )) => {
                after.defer(self.now());
                self.write_backfill((&begun, &after)).await?;
                return Err(refusal);
            }
            Err(WindowError::Refused(refusal)) => after.fail(&refusal.to_string(), self.now()),
            Err(WindowError::Denied(refusal)) => after.fail_permanently(&refusal.to_string()),
        }
        self.write_backfill((&begun, &after)).await?;
        Ok(())
    }

    /// Whether it is written. Who was beaten to it has nothing to add.
    async fn write_backfill(&self, (before, after): (&Backfill, &Backfill)) -> Result<bool, AffiliateError> {
        if before == after {
            return Ok(true);
        }
        let mut batch = Batch::progress();
        backfill::update(&mut batch, before, after);
        let is_written = matches!(self.commit(batch).await?, CommitResult::Committed);
        if is_written && after.status != BackfillStatus::Running {
            let (account, status) = (after.account, after.status.as_str());
            tracing::info!(%account, status, error = after.error, "a back-fill ended");
        }
        Ok(is_written)
    }

    /// Reads a window into the ledger.
    async fn read_window(&self, backfill: &Backfill) -> Result<WindowResult, WindowError> {
        let program = program::get(self.store(), backfill.account).await?.ok_or(AffiliateError::NotSetUp)?;
        let processor = program.processor.as_ref().ok_or(AffiliateError::Conflict(ConflictReason::NotConnected))?;
        if !processor.has_api_access() {
            return Err(AffiliateError::Conflict(ConflictReason::NoApiKey).into());
        }
        let asker = self.stripe_client(&program).ok_or(AffiliateError::Seal)?;
        // All is asked for before anything is booked: a window that is too long is cut, not read twice.
        let mut permit = asker.permit();
        let window = WindowReader::for_backfill(&asker, backfill, self.now()).read(&mut permit).await?;
        let ledger = if backfill.silent { self.ledger().without_events() } else { self.ledger() };
        let mut teller = WindowIngest { office: self, asker, ledger, program, backfill, read: WindowResult::default() };
        teller.ingest_all(&window).await?;
        drop(permit);
        let mut read = teller.read;
        read.objects = window.objects();
        // With what was written in this very millisecond: ids tell times no finer.
        let now = self.now();
        read.counted_at = Some(now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now));
        read.lines = self.count_lines_written(backfill, read.counted_at).await?;
        Ok(read)
    }

    /// How many commissions were written since they were counted last, for what this is about. They are counted when a
    /// window is read, in the commit that says so: whoever is killed in the midst of it counts them when it is read again.
    async fn count_lines_written(&self, backfill: &Backfill, until: Option<Timestamp>) -> Result<u64, AffiliateError> {
        let filter = commission::CommissionFilter {
            created_after: backfill.counted_until,
            created_before: until,
            ..commission::CommissionFilter::default()
        };
        let last = backfill.until.as_second();
        let (mut before, mut lines) = (None, 0_u64);
        loop {
            let wanted = ListPageRequest { before, limit: LINES_AT_ONCE, from: None };
            let page = commission::list(self.store(), backfill.account, &filter, wanted).await?;
            // What was paid later an event told.
            let paid_at =
                |line: &Commission| line.earns_at.as_second() - i64::from(line.snapshot.hold_days) * SECONDS_OF_DAY;
            let is_its = |line: &&Commission| line.sold_invoice().is_some() && paid_at(line) <= last;
            lines = lines.saturating_add(page.rows.iter().filter(is_its).count() as u64);
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
        let others = [&self.refunds, &self.disputes, &self.notes, &self.events];
        lists.into_iter().chain(others).map(Vec::len).sum()
    }
}

/// How the lists of a window are asked for.
struct WindowReader<'a> {
    asker: &'a StripeClient,
    backfill: &'a Backfill,
    /// From which second, and before which.
    seconds: (i64, i64),
    pages_max: usize,
    now: Timestamp,
}

impl<'a> WindowReader<'a> {
    fn for_backfill(asker: &'a StripeClient, backfill: &'a Backfill, now: Timestamp) -> Self {
        let (from, until) = backfill.window();
        // Of the second in which it was asked for, too: the last one is not over then.
        let end = until.as_second().saturating_add(i64::from(backfill.is_last_window()));
        let is_shortest = !backfill.clone().shorten_window();
        let pages_max = if is_shortest { PAGES_MAX_OF_SHORTEST } else { PAGES_MAX };
        Self { asker, backfill, seconds: (from.as_second(), end), pages_max, now }
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
            sessions: self.list("checkout/sessions", ("", ListRequirement::IfSupported), permit).await?,
            subscriptions: self.list("subscriptions", ("&status=all", ListRequirement::Required), permit).await?,
            invoices,
            charges: self.list("charges", ("", ListRequirement::Required), permit).await?,
            refunds: self.list("refunds", ("", ListRequirement::Optional), permit).await?,
            disputes: self.list("disputes", ("", ListRequirement::IfSupported), permit).await?,
            notes: self.list("credit_notes", ("", ListRequirement::Optional), permit).await?,
            events: self.events(permit).await?,
        })
    }

    /// Paid invoices, with the payments that paid them, where the processor knows that list in them.
    ///
    /// They are asked for as they are, and those of the window are picked here: not every processor lets invoices be
    /// filtered. Only where they are more than a page, it is asked to.
    async fn invoices(&self, permit: &mut ResponsePermit) -> Result<Vec<ProcessorJson>, WindowError> {
        let (expanded, paid) = ("&expand%5B%5D=data.payments", "&status=paid");
        let whole = self.asker.list_objects(&format!("/v1/invoices?{expanded}"), 1, permit).await;
        let mut invoices = match whole {
            Ok(Ok(told)) if !told.has_more => self.within_window(told),
            Ok(Ok(_)) | Err(StripeError::TooLarge(_)) => {
                match self.list_filtered("invoices", &format!("{paid}{expanded}"), permit).await? {
                    Ok(invoices) => invoices,
                    Err(_) => self.list("invoices", (paid, ListRequirement::Required), permit).await?,
                }
            }
            Ok(Err(_)) => self.list("invoices", (paid, ListRequirement::Required), permit).await?,
            Err(why) => return Err(why.into()),
        };
        invoices.retain(|invoice| {
            invoice.is_too_large() || invoice.text_in("status").is_none_or(|status| status == "paid")
        });
        Ok(invoices)
    }

    /// The objects of a list that were made in the window, oldest first.
    fn within_window(&self, told: StripeList) -> Vec<ProcessorJson> {
        let (from, end) = self.seconds;
        let mut objects = told.objects;
        objects.retain(|one| one.number_in("created").is_none_or(|at| (from..end).contains(&at)));
        objects.reverse();
        objects
    }

    async fn events(&self, permit: &mut ResponsePermit) -> Result<Vec<ProcessorJson>, WindowError> {
        let kept_since = self.now.checked_sub(EVENTS_KEPT).unwrap_or(self.now).as_second();
        if self.seconds.1 <= kept_since {
            return Ok(Vec::new());
        }
        let types: String = EVENT_TYPES.iter().map(|kind| format!("&types%5B%5D={kind}")).collect();
        self.list("events", (&types, ListRequirement::Optional), permit).await
    }

    /// All objects of a list that were created in the window, oldest first.
    async fn list(
        &self,
        list: &str,
        (also, need): (&str, ListRequirement),
        permit: &mut ResponsePermit,
    ) -> Result<Vec<ProcessorJson>, WindowError> {
        match (self.list_filtered(list, also, permit).await?, need) {
            (Ok(objects), _) => Ok(objects),
            (Err(_), ListRequirement::Optional)
            | (Err(StripeRefusal { status: 404, .. }), ListRequirement::IfSupported) => Ok(Vec::new()),
            (Err(denial), _) => Err(WindowError::Denied(AffiliateError::Upstream(denial.why))),
        }
    }

    /// The same; the inner error is why there is none, or none that the key may read. A processor that does not know how to
    /// filter (400) is asked for all.
    async fn list_filtered(
        &self,
        list: &str,
        also: &str,
        permit: &mut ResponsePermit,
    ) -> Result<Result<Vec<ProcessorJson>, StripeRefusal>, WindowError> {
        let (from, end) = self.seconds;
        let within = format!("created%5Bgte%5D={from}&created%5Blt%5D={end}");
        let mut question = Some((format!("{within}{also}"), self.pages_max));
        let mut denial = None;
        while let Some((query, pages_max)) = question.take() {
            match self.asker.list_objects(&format!("/v1/{list}?{query}"), pages_max, permit).await {
                Ok(Ok(told)) if told.has_more => {
                    tracing::debug!(account = %self.backfill.account, list, "a window of a back-fill is cut");
                    let why = format!("answered /v1/{list} with more than {pages_max} pages");
                    return Err(WindowError::TooLarge(why));
                }
                Ok(Ok(told)) => return Ok(Ok(self.within_window(told))),
                Ok(Err(no)) => {
                    let is_unfiltered = query.is_empty();
                    question = (no.status == 400 && !is_unfiltered).then(|| (String::new(), PAGES_MAX_OF_SHORTEST));
                    denial = Some(no);
                }
                Err(StripeError::KeyNotPermitted(why)) => denial = Some(StripeRefusal { status: 403, why }),
                Err(why) => return Err(why.into()),
            }
        }
        let unsaid = || StripeRefusal { status: 400, why: format!("says nothing to /v1/{list}") };
        Ok(Err(denial.unwrap_or_else(unsaid)))
    }
}

/// Tells the ledger of objects as if they came with events.
struct WindowIngest<'a> {
    office: &'a AffiliateService,
    asker: StripeClient,
    ledger: Ledger,
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
        // Before what they paid is booked: then it is too late for a flag.
        let flag = format!("metadata.{}", self.program.settings.exclude_key);
        for charge in window.charges.iter().filter(|charge| charge.text_at(&flag).is_some()) {
            self.ingest("charge.updated", charge).await?;
        }
        self.ingest_invoices(&window.invoices).await?;
        for subscription in &window.subscriptions {
            self.ingest("customer.subscription.updated", subscription).await?;
        }
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
            let taken = self.ledger.ingest_fetched_event(&self.program, event, self.office).await;
            self.check_outcome(event, taken)?;
        }
        Ok(())
    }

    /// Invoices, each behind its customer, whom the first of them brings. Whose customer cannot be read is not booked.
    async fn ingest_invoices(&mut self, invoices: &[ProcessorJson]) -> Result<(), WindowError> {
        let mut customers = BTreeMap::<String, Option<String>>::new();
        for invoice in invoices {
            self.read.invoices += 1;
            let customer = invoice.id_in("customer").map(std::borrow::Cow::into_owned);
            let unread = match customer {
                None => None,
                Some(id) => match customers.get(&id) {
                    Some(unread) => unread.clone(),
                    None => {
                        let unread = self.ingest_customer(&id).await?;
                        customers.insert(id, unread.clone());
                        unread
                    }
                },
            };
            let Some(why) = unread else {
                self.ingest("invoice.paid", invoice).await?;
                continue;
            };
            let id = format!("asked_{}", invoice.id().unwrap_or_default());
            let of = (self.program.account, (id, "invoice.paid"));
            let refused = self.ledger.record_unreadable(of.0, of.1, LedgerError::Unanswered(why)).await;
            let IngestOutcome::Failed(fault) = refused else { continue };
            self.record_unread(invoice, &fault);
        }
        Ok(())
    }

    /// A customer; one whom the processor does not know any more is gone without. Who may not be read is not: the flag that
    /// excludes what was sold may stand there. Of one that is too large to be read is told why.
    async fn ingest_customer(&mut self, id: &str) -> Result<Option<String>, WindowError> {
        let path = format!("/v1/customers/{}", escaped(id));
        let mut permit = self.asker.permit();
        match self.asker.get_object(&path, &mut permit).await {
            Ok(StripeAnswer::Object(customer, _)) => {
                Ok(self.ingest("customer.updated", &customer).await.map(|()| None)?)
            }
            Ok(StripeAnswer::Refused(_)) => Ok(None),
            Err(StripeError::TooLarge(why)) => Ok(Some(why)),
            Err(why) => Err(why.into()),
        }
    }

    async fn ingest(&mut self, kind: &str, object: &ProcessorJson) -> Result<(), AffiliateError> {
        // As of when it was asked for.
        let of = (self.backfill.until, self.office);
        let taken = self.ledger.ingest_fetched_object(&self.program, (kind, object), of).await;
        self.check_outcome(object, taken)
    }

    /// An object that cannot be worked with is kept among the events that failed, and goes on from there. Where the store
    /// fails, or the processor, the window is read again.
    fn check_outcome(&mut self, object: &ProcessorJson, taken: IngestOutcome) -> Result<(), AffiliateError> {
        match taken {
            IngestOutcome::Failed(
                fault @ (LedgerError::Read(_)
                | LedgerError::Commit(_)
                | LedgerError::Contended
                | LedgerError::Budget(_)),
            ) => Err(fault.into()),
            IngestOutcome::Failed(LedgerError::Unanswered(why)) => Err(AffiliateError::Upstream(why)),
            IngestOutcome::Failed(fault) => {
                self.record_unread(object, &fault);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn record_unread(&mut self, object: &ProcessorJson, fault: &LedgerError) {
        let (unread, first) = &mut self.read.unread;
        *unread += 1;
        first.get_or_insert_with(|| format!("{}: {fault}", object.id().unwrap_or("no id".into())));
    }
}
