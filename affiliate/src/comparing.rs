//! Comparing with the processor: what became of a charge by now, before its line is its partner's and before it is paid. A
//! refund or a dispute whose event was lost is heard of so (completions-affiliate.md 2.2, "Reconcile job").
//!
//! ```text
//! line ─► its invoice ─► charges, payments ─► GET each ─► refunded, disputed? ─► [Ledger::take_asked]
//! ```
//!
//! What the processor says once and for all, also that it knows of no such charge, is an answer; that the key may not see
//! it is none. Where there is none, a line waits some time for it, and is its partner's in the end: the run that pays it
//! asks once more (`affiliate/src/payouts/compare.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::ops::RangeInclusive;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::{Commission, ReconciliationState};
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, CommissionId};
use queue::courier::http::ResponsePermit;
use store::affiliate::commission::{self, DueCommission};
use store::affiliate::program;
use store::engine::Batch;

use crate::asking::{StripeAnswer, StripeClient, StripeError, StripeList, escaped};
use crate::completing::PaymentLookup;
use crate::ledger::{HoldReleaseCounts, IngestOutcome, Ledger, LedgerError, NoEnricher, PaymentSource, UnitOfWork};
use crate::office::AffiliateService;
use crate::processor::ProcessorJson;

/// Invoices that are asked about side by side.
const AT_ONCE: usize = 16;
/// How long it takes at least until the next ones are asked about: with up to three questions for each invoice, the rate
/// limit of a processor (Stripe: 100 requests a second, 25 in its test mode) is kept, and other programs' reads fit in.
const PACE: SignedDuration = SignedDuration::from_secs(1);
/// Accounts whose processors are asked side by side.
const ACCOUNTS_AT_ONCE: usize = 16;
/// Lines that are looked for at once.
const LINES_AT_ONCE: usize = 200;
/// Lines of an account that are compared in a round.
const LINES_OF_EACH: usize = 200;
/// After so long nothing more is asked for an account in a round: the others have their turn.
const TURN: SignedDuration = SignedDuration::from_secs(10);
/// After so long nothing more is asked about an invoice.
const INVOICE_TURN: SignedDuration = SignedDuration::from_secs(30);
/// How long it takes until is asked again, where there was no answer.
const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// For how long a line that would be its partner's waits for an answer.
const ANSWER_WAIT_MAX: SignedDuration = SignedDuration::from_hours(24);

/// What came of asking about an invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// What the processor says is in the ledger.
    Reconciled,
    /// It did not answer, or not to the point: why.
    Unanswered(String),
}

/// Who asks what became of an invoice's money.
pub trait Reconciler: Sync {
    /// Asks, and has the ledger hear the answer.
    fn reconcile(
        &self,
        account: AccountId,
        invoice: &str,
    ) -> impl Future<Output = Result<ReconcileOutcome, LedgerError>> + Send;

    /// Waits before the next invoices are asked about, so that the processor's rate limit is kept.
    fn pace(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Who is asked, and who hears of it.
struct InvoiceReconciliation {
    asker: StripeClient,
    ledger: Ledger,
    program: AffiliateProgram,
    /// Nothing is asked after that.
    until: Timestamp,
}

impl Reconciler for AffiliateService {
    async fn reconcile(&self, account: AccountId, invoice: &str) -> Result<ReconcileOutcome, LedgerError> {
        let program = program::get(self.store(), account).await?.ok_or(LedgerError::NotSetUp)?;
        // Without a key there is nobody to ask any more.
        let Some(asker) = self.stripe_client(&program) else { return Ok(ReconcileOutcome::Reconciled) };
        let until = self.now().checked_add(INVOICE_TURN).unwrap_or(Timestamp::MAX);
        InvoiceReconciliation { asker, ledger: self.ledger(), program, until }.reconcile_invoice(invoice).await
    }

    async fn pace(&self) {
        let next = self.now().checked_add(PACE).unwrap_or(Timestamp::MAX);
        self.hall.clock().sleep_until(next).await;
    }
}

impl InvoiceReconciliation {
    async fn reconcile_invoice(&self, invoice: &str) -> Result<ReconcileOutcome, LedgerError> {
        let mut paid_by = self.paid_by(invoice).await?;
        if paid_by.is_empty() {
            // The shape since 2025 does not name them in the invoice.
            let mut permit = self.asker.permit();
            match self.asker.list_payments(PaymentLookup::Invoice(invoice), &mut permit).await {
                Ok(StripeList { objects, at, .. }) => {
                    for payment in &objects {
                        self.ingest("invoice_payment.paid", payment, at).await?;
                    }
                }
                Err(why) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {why}"))),
            }
            paid_by = self.paid_by(invoice).await?;
        }
        for one in paid_by {
            if let ReconcileOutcome::Unanswered(why) = self.reconcile_payment(&one).await? {
                return Ok(ReconcileOutcome::Unanswered(why));
            }
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn paid_by(&self, invoice: &str) -> Result<Vec<PaymentSource>, LedgerError> {
        UnitOfWork::for_program(&self.ledger, self.program.clone()).payment_sources(invoice).await
    }

    async fn reconcile_payment(&self, paid_by: &PaymentSource) -> Result<ReconcileOutcome, LedgerError> {
        let mut permit = self.asker.permit();
        let answer = match paid_by {
            PaymentSource::Charge(id) => self.fetch_charge(id, &mut permit).await,
            PaymentSource::Payment(id) => {
                self.fetch_list(&format!("/v1/charges?payment_intent={}", escaped(id)), &mut permit).await
            }
        };
        let StripeList { objects, at, .. } = match answer {
            Ok(answer) => answer,
            Err(why) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {why}"))),
        };
        for charge in &objects {
            if charge.is_too_large() || charge.number_in("amount_refunded").unwrap_or(0) > 0 {
                self.ingest("charge.refunded", charge, at).await?;
            }
            if charge.flag_in("disputed").unwrap_or(false)
                && let Some(id) = charge.id()
                && let ReconcileOutcome::Unanswered(why) = self.reconcile_disputes(&id).await?
            {
                return Ok(ReconcileOutcome::Unanswered(why));
            }
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn reconcile_disputes(&self, charge: &str) -> Result<ReconcileOutcome, LedgerError> {
        let mut permit = self.asker.permit();
        let path = format!("/v1/disputes?charge={}", escaped(charge));
        let StripeList { objects, at, .. } = match self.fetch_list(&path, &mut permit).await {
            Ok(answer) => answer,
            Err(why) => return Ok(ReconcileOutcome::Unanswered(format!("the processor {why}"))),
        };
        for dispute in &objects {
            self.ingest(dispute_event_type(dispute), dispute, at).await?;
        }
        Ok(ReconcileOutcome::Reconciled)
    }

    async fn fetch_charge(&self, id: &str, permit: &mut ResponsePermit) -> Result<StripeList, StripeError> {
        self.check_deadline()?;
        Ok(match self.asker.get_object(&format!("/v1/charges/{}", escaped(id)), permit).await? {
            StripeAnswer::Object(charge, at) => StripeList { objects: vec![charge], at, has_more: false },
            StripeAnswer::Refused(_) => StripeList::empty(),
        })
    }

    async fn fetch_list(&self, path: &str, permit: &mut ResponsePermit) -> Result<StripeList, StripeError> {
        self.check_deadline()?;
        Ok(self.asker.list_objects(path, 1, permit).await?.unwrap_or_else(|_| StripeList::empty()))
    }

    fn check_deadline(&self) -> Result<(), StripeError> {
        let is_late = self.ledger.now() > self.until;
        if is_late { Err(StripeError::NoResponse("takes too long to answer".to_owned())) } else { Ok(()) }
    }

    /// One that cannot be worked with is kept among the events that failed, and goes on from there.
    async fn ingest(&self, kind: &str, object: &ProcessorJson, at: Timestamp) -> Result<(), LedgerError> {
        match self.ledger.ingest_fetched_object(&self.program, (kind, object), (at, &NoEnricher)).await {
            IngestOutcome::Failed(fault @ (LedgerError::Read(_) | LedgerError::Commit(_) | LedgerError::Contended)) => {
                Err(fault)
            }
            _ => Ok(()),
        }
    }
}

/// The kind of event that tells of a dispute as it stands.
pub(crate) fn dispute_event_type(dispute: &ProcessorJson) -> &'static str {
    match dispute.text_in("status").as_deref() {
        Some("won" | "lost" | "warning_closed") => "charge.dispute.closed",
        _ => "charge.dispute.created",
    }
}

/// What came of asking about several invoices.
#[derive(Debug, Default)]
pub(crate) struct ReconcileAnswers {
    /// Those about which there was no answer, and why.
    pub(crate) unanswered: BTreeMap<String, String>,
    /// Those that were not asked about: the time was up before.
    pub(crate) unasked: BTreeSet<String>,
}

/// Asks about invoices side by side, and begins with no more of them when the time is up.
pub(crate) async fn reconcile_all(
    asker: &impl Reconciler,
    (account, invoices): (AccountId, &BTreeSet<String>),
    is_time_up: impl Fn() -> bool,
) -> Result<ReconcileAnswers, LedgerError> {
    let invoices: Vec<&String> = invoices.iter().collect();
    let (mut answers, mut silent) = (ReconcileAnswers::default(), None::<String>);
    for (nth, some) in invoices.chunks(AT_ONCE).enumerate() {
        if let Some(why) = &silent {
            // Nobody answered: these are not asked at all.
            answers.unanswered.extend(some.iter().map(|invoice| ((*invoice).clone(), why.clone())));
            continue;
        }
        if nth > 0 && is_time_up() {
            answers.unasked.extend(some.iter().map(|invoice| (*invoice).clone()));
            continue;
        }
        if nth > 0 {
            asker.pace().await;
        }
        let said = join_all(some.iter().map(|invoice| asker.reconcile(account, invoice))).await;
        let mut any = false;
        for (invoice, said) in some.iter().zip(said) {
            match said? {
                ReconcileOutcome::Reconciled => any = true,
                ReconcileOutcome::Unanswered(why) => {
                    answers.unanswered.insert((*invoice).clone(), why);
                }
            }
        }
        silent = answers.unanswered.values().next().filter(|_| !any).cloned();
    }
    Ok(answers)
}

/// Lines that wait to be compared, by whose program they are of.
type DueLines = BTreeMap<AccountId, Vec<CommissionId>>;

/// What came of a round of comparing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReconcileRound {
    /// Holds that ended at once, since the time was over.
    pub ended: HoldReleaseCounts,
    /// Whether lines are left that wait already.
    pub has_more: bool,
}

impl Ledger {
    /// Asks about the lines in these partitions that wait for it: some of each account, side by side. Whose processor is
    /// slow or does not answer keeps nobody waiting but its own.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reconcile_due(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        asker: &impl Reconciler,
    ) -> Result<ReconcileRound, LedgerError> {
        let mut waiting = DueLines::new();
        let has_more = self.collect_due_lines(partitions, now, &mut waiting).await?;
        let round = self.reconcile_accounts(waiting, asker).await;
        Ok(ReconcileRound { has_more: has_more || round.has_more, ..round })
    }

    /// Adds lines that wait to be compared, some of each account. Whether there are more.
    async fn collect_due_lines(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        waiting: &mut DueLines,
    ) -> Result<bool, LedgerError> {
        let (mut has_more, mut after) = (false, None::<DueCommission>);
        loop {
            let mut due =
                commission::list_due(self.store(), partitions.clone(), now, after.as_ref(), LINES_AT_ONCE).await?;
            let is_last = due.len() < LINES_AT_ONCE;
            after = due.last().cloned();
            // Who has its share is passed over unread.
            let found = due.len();
            due.retain(|due| waiting.get(&due.account).is_none_or(|lines| lines.len() < LINES_OF_EACH));
            has_more |= due.len() < found;
            for line in commission::get_due(self.store(), &due).await? {
                if matches!(line.comparison, ReconciliationState::Due(at) if at <= now) {
                    waiting.entry(line.account).or_default().push(line.id);
                }
            }
            if is_last {
                return Ok(has_more);
            }
        }
    }

    /// Accounts side by side.
    async fn reconcile_accounts(&self, waiting: DueLines, asker: &impl Reconciler) -> ReconcileRound {
        let rounds = waiting.into_iter().map(|(account, ids)| async move {
            self.reconcile_account((account, &ids), asker).await.unwrap_or_else(|fault| {
                tracing::warn!(%account, %fault, "charges cannot be compared");
                ReconcileRound::default()
            })
        });
        let sum = |sum: ReconcileRound, round: ReconcileRound| async move {
            let earned = sum.ended.earned.saturating_add(round.ended.earned);
            let failed = sum.ended.failed.saturating_add(round.ended.failed);
            ReconcileRound { ended: HoldReleaseCounts { earned, failed }, has_more: sum.has_more || round.has_more }
        };
        stream::iter(rounds).buffer_unordered(ACCOUNTS_AT_ONCE).fold(ReconcileRound::default(), sum).await
    }

    async fn reconcile_account(
        &self,
        (account, ids): (AccountId, &[CommissionId]),
        asker: &impl Reconciler,
    ) -> Result<ReconcileRound, LedgerError> {
        let lines = commission::get_each(self.store(), account, ids).await?;
        let invoice = |line: &Commission| line.sold_invoice().map(|sold| sold.invoice.clone());
        let invoices: BTreeSet<String> = lines.iter().filter_map(invoice).collect();
        let end = self.now().checked_add(TURN).unwrap_or(Timestamp::MAX);
        let ReconcileAnswers { unanswered, unasked } =
            reconcile_all(asker, (account, &invoices), || self.now() >= end).await?;
        if let Some(why) = unanswered.values().next() {
            tracing::warn!(%account, invoices = unanswered.len(), why, "charges are not compared");
        }
        let mut round = ReconcileRound { has_more: !unasked.is_empty(), ..ReconcileRound::default() };
        for line in &lines {
            let invoice = invoice(line).unwrap_or_default();
            if unasked.contains(&invoice) {
                continue;
            }
            self.record_answer((account, line.id), !unanswered.contains_key(&invoice), &mut round.ended).await?;
        }
        Ok(round)
    }

    /// Notes that there was an answer about a line, or none; where it waited for nothing else it is its partner's.
    async fn record_answer(
        &self,
        (account, id): (AccountId, CommissionId),
        has_answer: bool,
        ended: &mut HoldReleaseCounts,
    ) -> Result<(), LedgerError> {
        let (now, Some(before)) = (self.now(), commission::get(self.store(), account, id).await?) else {
            return Ok(());
        };
        let waited = before.earns_at.checked_add(ANSWER_WAIT_MAX).is_ok_and(|end| end <= now);
        let comparison = match (has_answer, waited) {
            (true, _) => ReconciliationState::Done(now),
            (false, true) => ReconciliationState::Needless,
            (false, false) => ReconciliationState::Due(now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX)),
        };
        let after = Commission { comparison, ..before.clone() };
        let mut batch = Batch::progress();
        commission::update(&mut batch, &before, &after);
        // Who was beaten to it finds it again.
        if self.commit(batch).await? && !matches!(comparison, ReconciliationState::Due(_)) && after.is_due(now) {
            ended.count(id, self.release_hold(account, id).await);
        }
        Ok(())
    }
}

impl AffiliateService {
    /// Compares as long as it is polled: lines of this node's partitions, each when it is time for it.
    pub fn run_reconciliation(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let (now, ledger) = (self.now(), self.ledger());
                let (mut waiting, mut has_more) = (DueLines::new(), false);
                for partitions in self.hall.partition_ranges() {
                    match ledger.collect_due_lines(partitions, now, &mut waiting).await {
                        Ok(more) => has_more |= more,
                        Err(fault) => tracing::warn!(%fault, "lines to be compared cannot be looked for"),
                    }
                }
                let round = ledger.reconcile_accounts(waiting, self).await;
                if !(has_more || round.has_more) {
                    self.hall.clock().sleep_until(self.next_due(now).await).await;
                }
            }
        })
    }
}
