//! Test support for payouts: payable partners, earned lines, and a scripted processor.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::task::Poll;

use affiliate::audit::audit;
use affiliate::context::{Context, no_extension};
use affiliate::error::{AffiliateError, LedgerError};
use affiliate::payouts::jobs::PayoutJobs;
use affiliate::payouts::runs::DraftResult;
use affiliate::payouts::settle::PayoutQuery;
use affiliate::payouts::transfers::{PayoutGateway, StripeTransfer, TransferRequest, TransferResponse};
use affiliate::payouts::view::PayoutView;
use affiliate::reconciliation::{ReconcileOutcome, Reconciler};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::{Commission, CommissionOrigin, CommissionState, TermsSnapshot};
use model::affiliate::partner::{Partner, PayoutDestination};
use model::affiliate::payout::{PayoutRun, PayoutStatus, SkippedPartner};
use model::affiliate::program::{AfterPayout, PayoutMethod};
use model::affiliate::referral::{Referral, ReferralActivity, ReferralSource, ReferralStatus};
use model::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};
use net::entropy::Entropy;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::{commission, partner, program, referral};
use store::engine::{Batch, RedbOptions, Store};
use store::task::PARTITIONS;

use super::processor_objects;
use super::world::{World, connected, terms};

/// Returns a store on disk or in a new database. Its commits are awaited, so operations can be interrupted and
/// interleaved there.
pub(crate) async fn on_disk() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    if let Some(store) = connected().await {
        return (directory, store);
    }
    let options = RedbOptions { segment_bytes: 4 << 20, ..RedbOptions::new(directory.path().join("store")) };
    (directory, Store::open(&options).unwrap())
}

/// Creates two partners with PayPal destinations, and a lead of Ada's with customer `cus_1`.
pub(crate) async fn payable() -> World {
    let world = World::new().await;
    set_destinations(&world).await;
    world
}

pub(crate) async fn payable_on(store: Store) -> World {
    let world = World::with_settings(store, terms(), |_| {}).await;
    set_destinations(&world).await;
    world
}

async fn set_destinations(world: &World) {
    world.pay_by(world.ada, PayoutMethod::Paypal, "ada@paypal.example").await;
    world.pay_by(world.bob, PayoutMethod::Paypal, "bob@paypal.example").await;
    world.lead("lin@example.org", Some("cus_1")).await;
}

impl World {
    pub(crate) async fn partner(&self, id: PartnerId) -> Partner {
        partner::get(self.store(), self.account, id).await.unwrap().unwrap()
    }

    pub(crate) async fn change(&self, id: PartnerId, change: impl FnOnce(&mut Partner)) {
        let before = self.partner(id).await;
        let mut after = before.clone();
        change(&mut after);
        let mut batch = Batch::progress();
        partner::update(&mut batch, &before, &after);
        self.store().commit(batch).await.unwrap();
    }

    /// Changes the effect of refunds after a payout.
    pub(crate) async fn set_after_payout(&self, setting: AfterPayout) {
        let before = program::get(self.store(), self.account).await.unwrap().unwrap();
        let mut after = before.clone();
        after.settings.payout_after_refund = setting;
        after.rev += 1;
        let mut batch = Batch::progress();
        program::update(&mut batch, &before, &after);
        self.store().commit(batch).await.unwrap();
    }

    pub(crate) async fn pay_by(&self, id: PartnerId, method: PayoutMethod, destination: &str) {
        let destination = destination.to_owned();
        let payout = PayoutDestination { method, destination, is_able: true };
        self.change(id, |partner| partner.payout = Some(payout)).await;
    }

    /// Ingests an invoice of the lead, paid `after` seconds after the start.
    pub(crate) async fn sell(&self, invoice: &str, cents: i64, after: i64) {
        self.ingest_event(&self.paid(invoice, "cus_1", cents, after)).await;
    }

    /// Advances the clock by a month, so that pending lines are earned.
    pub(crate) async fn earn(&self) {
        self.advance_days(31);
        self.end_holds().await;
    }

    /// Refunds an invoice's charge, wholly or in part.
    pub(crate) async fn refund(&self, invoice: &str, paid: i64, refunded: i64, after: i64) {
        self.ingest_object("charge.refunded", after, processor_objects::charge(invoice, paid, refunded)).await;
    }

    pub(crate) async fn draft_run(&self, cutoff: Option<Timestamp>) -> Result<DraftResult, AffiliateError> {
        let run = self.ledger.begin_run(self.account, cutoff, &no_extension).await?;
        Ok(self.ledger.finish_draft(self.account, run).await?)
    }

    pub(crate) async fn draft(&self) -> PayoutRun {
        self.draft_run(None).await.unwrap().run.unwrap()
    }

    pub(crate) async fn approve(&self, run: &PayoutRun) -> PayoutRun {
        self.ledger.approve_run(self.account, run.id, run.rev, &run.totals, &no_extension).await.unwrap()
    }

    pub(crate) async fn run(&self, run: &PayoutRun) -> PayoutRun {
        self.ledger.get_run(self.account, run.id).await.unwrap()
    }

    pub(crate) async fn skipped(&self, run: &PayoutRun) -> Vec<SkippedPartner> {
        self.ledger.list_skipped(run, None, 100).await.unwrap()
    }

    pub(crate) async fn list(&self, statuses: &[PayoutStatus]) -> Vec<PayoutView> {
        let query = PayoutQuery { statuses: statuses.to_vec(), ..PayoutQuery::default() };
        let wanted = ListPageRequest { before: None, limit: 1_000, from: None };
        self.ledger.list_payouts(self.account, &query, wanted).await.unwrap().rows
    }

    /// Returns the only payout of a partner with this status.
    pub(crate) async fn payout_of(&self, partner: PartnerId, status: PayoutStatus) -> PayoutView {
        let mut found = self.list(&[status]).await;
        found.retain(|view| view.payout.partner == partner);
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    pub(crate) async fn mark_paid(&self, id: PayoutId, reference: &str) -> Result<PayoutView, AffiliateError> {
        self.ledger.mark_payout_paid(self.account, id, reference, None, &no_extension).await
    }

    pub(crate) async fn fail(&self, id: PayoutId, reason: &str) -> Result<PayoutView, AffiliateError> {
        self.ledger.fail_payout(self.account, id, reason, None, &no_extension).await
    }

    /// Runs the due jobs.
    pub(crate) async fn work(&self, processor: &Script) {
        let now = self.clock.now();
        let result = PayoutJobs::new(&self.ledger, processor).run_due_jobs(0..=PARTITIONS - 1, now).await.unwrap();
        assert_eq!(result.failed, 0);
    }

    /// Audits the ledger and returns the number of payouts checked.
    pub(crate) async fn check_ledger(&self) -> usize {
        // Commits are ordered: one that was interrupted is applied before this one, or never.
        store::setting::put(self.store(), "landed", store::engine::Value::from_static(b"x")).await.unwrap();
        let audit = audit(&self.ledger, self.account).await.unwrap();
        assert!(audit.ok, "{:#?}", audit.broken);
        audit.checked.payouts
    }

    /// Creates earned bounties of 100, 101, … cents, each with its own lead.
    pub(crate) async fn bounties(&self, partner: PartnerId, number: usize) {
        bounties(&self.ledger, &self.partner(partner).await, number).await;
    }
}

/// Writes leads with bounties as earned after their hold.
pub(crate) async fn bounties(ledger: &Context, partner: &Partner, number: usize) {
    let entropy = Entropy::default();
    // Older than the event retention, so the audit expects no events.
    let now = partner.created_at - SignedDuration::from_hours(24 * 100);
    for chunk in (0..number).collect::<Vec<_>>().chunks(500) {
        let mut batch = Batch::intake();
        for n in chunk {
            let lead = lead(partner, ReferralId::new(now, entropy.u128()));
            let line = Commission {
                id: CommissionId::new(now, entropy.u128()),
                account: partner.account,
                partner: partner.id,
                referral: lead.id,
                origin: CommissionOrigin::Bounty,
                amount: 100 + i64::try_from(*n).unwrap(),
                currency: "usd".parse().unwrap(),
                status: CommissionState::Earned {
                    earned_at: now,
                    frozen: model::affiliate::commission::FreezeReasons::default(),
                },
                earns_at: now,
                comparison: model::affiliate::commission::ReconciliationState::Needless,
                snapshot: TermsSnapshot { campaign: partner.campaign, campaign_rev: 1, hold_days: 0 },
                waived: Vec::new(),
                note: None,
                created_at: now,
                updated_at: now,
                rev: 1,
            };
            referral::create(&mut batch, &lead, None);
            commission::create(&mut batch, &line);
        }
        ledger.store().commit(batch).await.unwrap();
    }
}

fn lead(partner: &Partner, id: ReferralId) -> Referral {
    Referral {
        id,
        account: partner.account,
        partner: partner.id,
        status: ReferralStatus::Lead,
        source: ReferralSource::Api,
        email: None,
        customer: None,
        later_customers: Vec::new(),
        sub_id: None,
        link: None,
        visit: None,
        blocked: None,
        rejection: None,
        review: None,
        dealings: ReferralActivity::default(),
        revenue_cents: 0,
        currency: None,
        claimed_at: id.born_at(),
        converted_at: None,
        expires_at: id.born_at(),
        rev: 1,
        created_at: id.born_at(),
        updated_at: id.born_at(),
    }
}

/// A scripted processor that records requests. Like a real one it creates one transfer per key, and repeats the
/// response for the same key.
#[derive(Default)]
pub(crate) struct Script(Mutex<GatewayScript>);

#[derive(Default)]
struct GatewayScript {
    answers: VecDeque<TransferResponse>,
    keys: Vec<String>,
    lookups: usize,
    is_list_silent: bool,
    /// Transfers whose keys were forgotten.
    forgotten: Vec<(String, (String, i64))>,
    transfers: BTreeMap<String, (String, i64)>,
    compared: Vec<String>,
    comparisons: VecDeque<ReconcileOutcome>,
    /// Number of waits between batches.
    paced: usize,
}

impl Script {
    pub(crate) fn with_responses(answers: impl IntoIterator<Item = TransferResponse>) -> Self {
        let script = Self::default();
        script.add_responses(answers);
        script
    }

    pub(crate) fn add_responses(&self, answers: impl IntoIterator<Item = TransferResponse>) {
        self.0.lock().answers.extend(answers);
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.lock().keys.clone()
    }

    /// Makes the list of transfers unavailable.
    pub(crate) fn silence_list(&self, is_silent: bool) {
        self.0.lock().is_list_silent = is_silent;
    }

    /// Adds a transfer that is not in the store.
    pub(crate) fn add_unknown_transfer(&self, payout: PayoutId, amount: i64) {
        self.0.lock().forgotten.push((format!("{payout}:1"), ("tr_before".to_owned(), amount)));
    }

    /// Forgets the keys of existing transfers, but not the transfers.
    pub(crate) fn forget_keys(&self) {
        let mut script = self.0.lock();
        let transfers = std::mem::take(&mut script.transfers);
        script.forgotten.extend(transfers);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.0.lock().lookups
    }

    /// Queues answers to reconciliation requests.
    pub(crate) fn answer(&self, times: usize) {
        self.0.lock().comparisons.extend(vec![ReconcileOutcome::Reconciled; times]);
    }

    /// Queues reconciliation requests without an answer.
    pub(crate) fn ignore(&self, times: usize) {
        let silence = ReconcileOutcome::Unanswered("timeout".to_owned());
        self.0.lock().comparisons.extend(vec![silence; times]);
    }

    /// Returns the reconciled invoices since the last call.
    pub(crate) fn compared(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().compared)
    }

    /// Returns the number of waits between batches since the last call.
    pub(crate) fn paced(&self) -> usize {
        std::mem::take(&mut self.0.lock().paced)
    }

    /// Returns the sum of all transfers.
    pub(crate) fn total(&self) -> i64 {
        let script = self.0.lock();
        let forgotten = script.forgotten.iter().map(|(_, transfer)| transfer);
        script.transfers.values().chain(forgotten).map(|(_, amount)| amount).sum()
    }
}

impl PayoutGateway for Script {
    fn transfer<'a>(&'a self, order: &'a TransferRequest) -> BoxFuture<'a, TransferResponse> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut script = self.0.lock();
            script.keys.push(order.key.clone());
            let answer = script.answers.pop_front();
            match answer {
                Some(
                    refusal @ (TransferResponse::Rejected(_)
                    | TransferResponse::IdempotencyKeyReused(_)
                    | TransferResponse::InsufficientFunds
                    | TransferResponse::NotSent(_)),
                ) => refusal,
                answer => {
                    // The transfer is created, whether or not the response arrives.
                    let number = script.transfers.len() + script.forgotten.len();
                    let new = || (format!("tr_{number}"), order.payout.amount);
                    let id = script.transfers.entry(order.key.clone()).or_insert_with(new).0.clone();
                    answer.unwrap_or(TransferResponse::Created(id))
                }
            }
        })
    }

    fn list_transfers_to_destination<'a>(
        &'a self,
        order: &'a TransferRequest,
    ) -> BoxFuture<'a, Result<Vec<StripeTransfer>, TransferResponse>> {
        Box::pin(async move {
            let mut script = self.0.lock();
            script.lookups += 1;
            if script.is_list_silent {
                return Err(TransferResponse::NoResponse("timeout".to_owned()));
            }
            let transfers =
                script.transfers.iter().chain(script.forgotten.iter().map(|(key, transfer)| (key, transfer)));
            let transfer = |(key, (id, amount)): (&String, &(String, i64))| StripeTransfer {
                id: id.clone(),
                payout: key.split(':').next().unwrap().parse().ok(),
                amount: *amount,
                currency: order.payout.currency.as_str().to_owned(),
                is_reversed: false,
            };
            Ok(transfers.map(transfer).collect())
        })
    }

    fn look_up<'a>(&'a self, orders: &'a [TransferRequest]) -> BoxFuture<'a, Vec<TransferResponse>> {
        Box::pin(async move {
            let mut script = self.0.lock();
            script.lookups += 1;
            let all = || script.transfers.iter().chain(script.forgotten.iter().map(|(key, transfer)| (key, transfer)));
            let is_of = |key: &str, order: &TransferRequest| key.starts_with(&order.payout.id.to_string());
            let transfer_of = |order: &TransferRequest| {
                all().find(|(key, _)| is_of(key, order)).map(|(_, (id, _))| TransferResponse::Created(id.clone()))
            };
            let responses =
                orders.iter().map(|order| transfer_of(order).unwrap_or(TransferResponse::NotFound)).collect();
            match script.is_list_silent {
                true => orders.iter().map(|_| TransferResponse::NoResponse("timeout".to_owned())).collect(),
                false => responses,
            }
        })
    }
}

/// Polls a future that many times and drops it, like a kill. Returns its output if it was done.
pub(crate) async fn cut_off<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

impl Reconciler for Script {
    fn reconcile<'a>(&'a self, _: AccountId, invoice: &'a str) -> BoxFuture<'a, Result<ReconcileOutcome, LedgerError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut script = self.0.lock();
            script.compared.push(invoice.to_owned());
            Ok(script.comparisons.pop_front().unwrap_or(ReconcileOutcome::Reconciled))
        })
    }

    fn pace(&self) -> BoxFuture<'_, ()> {
        self.0.lock().paced += 1;
        Box::pin(std::future::ready(()))
    }
}
