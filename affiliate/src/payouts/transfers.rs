//! Payouts that the processor makes, by transfers to its own accounts (`POST /v1/transfers`).
//!
//! ```text
//! payout ─[ asked since, on disk ]─► the processor ─► made: paid
//!                  ▲                     ├──────────► refused for good: failed
//!                  │                     ├──────────► not enough money: once a day, three times, then failed
//!                  │                     ├──────────► the key was used already: looked up, and never failed
//!                  └─ same key, later ◄──┴─ no answer, or not now
//! ```
//!
//! However often a transfer is asked for, it is made once: the idempotency key names the payout and the attempt, and the
//! processor makes one transfer for a key. The request is on disk before it is sent, so that after a crash the same request
//! goes out with the same key. A key that was refused for good is never used again: the next attempt has the next number.
//!
//! A transfer is looked up in the processor's list before it is asked for (again) where the key is so old that the processor
//! may have forgotten it, and where the processor said that the key was used with other figures.
//!
//! A store that was restored from a backup knows nothing of transfers that were made after it. For half a year each payout is
//! therefore compared first with all transfers to its destination: one that no payout accounts for is taken for this
//! payout, if its amount is the same, and fails the payout, if not. While a restored store holds its queue, no transfer is
//! asked for at all.

use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::payout::{Payout, PayoutRunStatus, PayoutState, PayoutStatus, TransferDoubt};
use mail::id::{AccountId, PayoutId, PayoutRunId};
use queue::courier::http::{HttpClientError, HttpPost, HttpResponse, RequestIdempotency};
use store::affiliate::payout_work::{self, PayoutJob};
use store::affiliate::{payout, payout_run, program};
use store::engine::Batch;
use store::queue_hold::{self, Hold};
use url::form_urlencoded::Serializer;

use super::PayoutView;
use super::lookup::TransferLookup;
use crate::ledger::{Ledger, LedgerError, PayoutOutcome};
use crate::office::{AffiliateService, no_extension};
use crate::processor::{OBJECT_BYTES_MAX, TransferResponseBody};
use crate::refusal::AffiliateError;

/// Transfers that are asked for side by side.
const AT_ONCE: usize = 8;
/// Transfers of a run that are looked at before other work has its turn.
const SLICE: usize = 64;
/// How long the processor may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// For how long the processor surely remembers a key (Stripe: at least 24 hours).
const KEY_KEPT: SignedDuration = SignedDuration::from_hours(20);
/// How long it takes until the same is asked again; the last stands for all further ones.
const BACKOFF_S: [i64; 6] = [30, 120, 600, 1_800, 3_600, 7_200];
/// How long it takes until there may be enough money.
const SHORT_WAIT: SignedDuration = SignedDuration::from_hours(24);
/// How long it takes until there may be somebody to ask.
const UNASKED_WAIT: SignedDuration = SignedDuration::from_mins(10);
/// How long it takes until a queue that is held is looked at again.
const HELD_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// For how long after a restore payouts are compared with what was transferred before.
const RESTORE_COMPARED: SignedDuration = SignedDuration::from_hours(24 * 183);
/// How often a payout waits for enough money.
const SHORT_MAX: u32 = 3;
/// The longest reason that is kept.
const REASON_CHARS_MAX: usize = 500;

/// A transfer to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRequest {
    /// The payout as it is.
    pub payout: Payout,
    /// What makes asking again harmless.
    pub key: String,
}

impl TransferRequest {
    fn from_payout(payout: &Payout) -> Self {
        Self { key: format!("{}:{}", payout.id, payout.asking.attempt), payout: payout.clone() }
    }

    /// The body of the request.
    #[must_use]
    pub fn request_body(&self) -> String {
        let Payout { id, partner, run, amount, currency, destination, .. } = &self.payout;
        let mut form = Serializer::new(String::new());
        form.append_pair("amount", &amount.to_string());
        form.append_pair("currency", currency.as_str());
        form.append_pair("destination", destination);
        form.append_pair("transfer_group", &run.to_string());
        form.append_pair("metadata[payout_id]", &id.to_string());
        form.append_pair("metadata[affiliate_id]", &partner.to_string());
        form.append_pair("metadata[run_id]", &run.to_string());
        form.finish()
    }

    /// Whether the transfer is looked up before it is asked for.
    fn needs_lookup_first(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt.is_some() || self.may_key_be_forgotten(now)
    }

    /// Whether the processor may have forgotten the key.
    fn may_key_be_forgotten(&self, now: Timestamp) -> bool {
        self.payout.asking.since.is_some_and(|since| now.duration_since(since) > KEY_KEPT)
    }

    /// Whether it may be asked for, with the same key, once a lookup has found no transfer.
    fn may_retry_if_not_found(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt == Some(TransferDoubt::StoreRestored) && !self.may_key_be_forgotten(now)
    }
}

/// What the processor said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferResponse {
    /// The transfer is made: its id.
    Created(String),
    /// It is not, and will not be with this key.
    Rejected(String),
    /// The key was used before, with other figures: whether a transfer was made then is to be looked up.
    IdempotencyKeyReused(String),
    /// There is not enough money; nothing was made.
    InsufficientFunds,
    /// Nobody knows whether it was made.
    NoResponse(String),
    /// It was not asked: there is no key, or none that it takes, or its address will not do.
    NotSent(String),
    /// There is no such transfer (of one that was looked up).
    NotFound,
}

/// A transfer as the processor lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeTransfer {
    /// Its id.
    pub id: String,
    /// The payout that it names.
    pub payout: Option<PayoutId>,
    /// How much, in minor units.
    pub amount: i64,
    /// Its currency, in lower case.
    pub currency: String,
    /// All of it came back.
    pub is_reversed: bool,
}

/// Who makes transfers.
pub trait PayoutGateway: Sync {
    /// Asks for a transfer.
    fn transfer(&self, order: &TransferRequest) -> impl Future<Output = TransferResponse> + Send;
    /// Looks transfers of one run up, in the order of `orders`.
    fn look_up(&self, orders: &[TransferRequest]) -> impl Future<Output = Vec<TransferResponse>> + Send;
    /// All transfers to the destination of an order; the error is why they are not known.
    fn list_transfers_to_destination(
        &self,
        order: &TransferRequest,
    ) -> impl Future<Output = Result<Vec<StripeTransfer>, TransferResponse>> + Send;
}

/// What it says that there was no answer.
pub(super) fn response_of_error(error: &HttpClientError) -> TransferResponse {
    match error {
        HttpClientError::Url(_) | HttpClientError::NotPublic(_) => TransferResponse::NotSent(error.to_string()),
        HttpClientError::ConnectionFailed(_) | HttpClientError::Timeout(_) | HttpClientError::Budget(_) => {
            TransferResponse::NoResponse(error.to_string())
        }
    }
}

/// What an answer says.
#[must_use]
pub fn read_response(status: u16, body: &[u8]) -> TransferResponse {
    let said = TransferResponseBody::read(body);
    let reason = || -> String {
        let reason = said.message.clone().or(said.code.clone()).unwrap_or_else(|| format!("status {status}"));
        reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect()
    };
    match status {
        200..=299 => match said.id.clone() {
            Some(id) => TransferResponse::Created(id),
            None => TransferResponse::NoResponse("the answer has no id".to_owned()),
        },
        // The program's key is not good, or may not do this: the processor did not look at the order at all.
        401 | 403 => TransferResponse::NotSent(reason()),
        // Another request with the same key, or too many: nothing was said of the transfer.
        408 | 409 | 425 | 429 => TransferResponse::NoResponse(reason()),
        400..=499 if said.kind.as_deref() == Some("idempotency_error") => {
            TransferResponse::IdempotencyKeyReused(reason())
        }
        400..=499 if said.code.as_deref() == Some("balance_insufficient") => TransferResponse::InsufficientFunds,
        400..=499 => TransferResponse::Rejected(reason()),
        _ => TransferResponse::NoResponse(reason()),
    }
}

/// What came of a slice of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Payouts that are paid now.
    pub paid: usize,
    /// Payouts that failed.
    pub failed: usize,
    /// Payouts that are to be tried again.
    pub waiting: usize,
}

impl Ledger {
    /// Asks for transfers of a run that is approved, those that are due; the rest when they are, or at once if there are
    /// many.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn transfer_due_payouts(
        &self,
        (account, id): (AccountId, PayoutRunId),
        processor: &impl PayoutGateway,
    ) -> Result<TransferCounts, LedgerError> {
        let (store, now) = (self.store(), self.now());
        let mut came = TransferCounts::default();
        let Some(run) = payout_run::get(store, account, id).await? else { return Ok(came) };
        if !run.is_approved() {
            return Ok(came);
        }
        let hold = queue_hold::get_queue_hold(store).await?;
        if hold.is_some_and(|hold| hold.is_active()) {
            let mut batch = Batch::progress();
            let due = now.checked_add(HELD_WAIT).unwrap_or(Timestamp::MAX);
            payout_work::schedule(&mut batch, account, PayoutJob::Run(id), due);
            self.commit(batch).await?;
            return Ok(came);
        }
        self.begin_processing(&run.id, account).await?;
        let (mut after, mut next, mut room) = (None, None::<Timestamp>, SLICE);
        loop {
            let found = payout::list_to_transfer(store, (account, id), after, SLICE).await?;
            after = found.last().map(|last| last.id);
            let is_last = found.len() < SLICE;
            let (due, later): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|one| one.asking.not_before.is_none_or(|at| at <= now));
            next = later.iter().filter_map(|one| one.asking.not_before).chain(next).min();
            room = room.saturating_sub(self.transfer_slice(due, (hold, processor), &mut came).await?);
            if is_last || room == 0 {
                let due = if room == 0 {
                    Some(next_wake(now, came.waiting > 0 && came.paid + came.failed == 0))
                } else {
                    next
                };
                return self.finish_slice((account, id), (is_last, due), came).await;
            }
        }
    }

    /// Looks up and asks for transfers that are due; gives how much of a slice that was.
    async fn transfer_slice(
        &self,
        due: Vec<Payout>,
        (hold, processor): (Option<Hold>, &impl PayoutGateway),
        came: &mut TransferCounts,
    ) -> Result<usize, LedgerError> {
        let (now, count) = (self.now(), due.len());
        let (doubtful, mut plain): (Vec<_>, Vec<_>) = due
            .into_iter()
            .partition(|one| TransferRequest::from_payout(&with_restore_doubt(one, hold, now)).needs_lookup_first(now));
        let mut looked_up = Vec::new();
        for seen in &doubtful {
            looked_up.extend(self.begin_request(seen, &with_restore_doubt(seen, hold, now)).await?);
        }
        let (restored, used): (Vec<_>, Vec<_>) =
            looked_up.into_iter().partition(|order| order.payout.asking.doubt == Some(TransferDoubt::StoreRestored));
        let mut told = self.look_up(used, processor).await;
        for order in restored {
            let compared = self.compare_with_transfers(&order, processor).await?;
            told.push((order, compared));
        }
        for (order, told) in told {
            if told == TransferResponse::NotFound && order.may_retry_if_not_found(now) {
                // The next request is what clears the doubt on disk.
                plain.push(order.payout);
            } else {
                came.add(self.apply_response(&order.payout, told).await?);
            }
        }
        let mut used = Vec::new();
        for some in plain.chunks(AT_ONCE) {
            let waiting = came.waiting;
            for one in join_all(some.iter().map(|one| self.transfer_one(one, processor))).await {
                let (step, key_used) = one?;
                came.add(step);
                used.extend(key_used);
            }
            // Where none of several is answered, the others would wait in vain.
            if came.waiting == waiting + some.len() {
                return Ok(SLICE);
            }
        }
        for (order, told) in self.look_up(used, processor).await {
            came.add(self.apply_response(&order.payout, told).await?);
        }
        Ok(count)
    }

    async fn look_up(
        &self,
        orders: Vec<TransferRequest>,
        processor: &impl PayoutGateway,
    ) -> Vec<(TransferRequest, TransferResponse)> {
        if orders.is_empty() {
            return Vec::new();
        }
        let told = processor.look_up(&orders).await;
        orders.into_iter().zip(told).collect()
    }

    async fn finish_slice(
        &self,
        (account, id): (AccountId, PayoutRunId),
        (is_last, due): (bool, Option<Timestamp>),
        came: TransferCounts,
    ) -> Result<TransferCounts, LedgerError> {
        let now = self.now();
        let left = payout::list_to_transfer(self.store(), (account, id), None, SLICE).await?;
        let mut batch = Batch::progress();
        if left.is_empty() {
            payout_work::delete(&mut batch, account, PayoutJob::Run(id));
        } else {
            let first = left.iter().map(|one| one.asking.not_before.unwrap_or(now)).min();
            let due = due.filter(|_| !is_last || left.len() == SLICE).or(first).unwrap_or(now);
            payout_work::schedule(&mut batch, account, PayoutJob::Run(id), due);
        }
        self.commit(batch).await?;
        Ok(came)
    }

    /// Money is under way.
    async fn begin_processing(&self, id: &PayoutRunId, account: AccountId) -> Result<(), LedgerError> {
        while let Some(run) = payout_run::get(self.store(), account, *id).await?
            && run.status == PayoutRunStatus::Approved
        {
            let mut after = run.clone();
            after.status = PayoutRunStatus::Processing;
            after.rev = after.rev.saturating_add(1);
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &run, &after);
            self.commit(batch).await?;
        }
        Ok(())
    }

    /// Compares a payout of a restored store with what was transferred to its destination.
    async fn compare_with_transfers(
        &self,
        order: &TransferRequest,
        processor: &impl PayoutGateway,
    ) -> Result<TransferResponse, LedgerError> {
        let Payout { id, account, amount, currency, .. } = &order.payout;
        let transfers = match processor.list_transfers_to_destination(order).await {
            Ok(transfers) => transfers,
            Err(told) => return Ok(told),
        };
        if let Some(own) = transfers.iter().find(|transfer| transfer.payout == Some(*id)) {
            return Ok(TransferResponse::Created(own.id.clone()));
        }
        let mut unaccounted = Vec::new();
        for transfer in transfers.into_iter().filter(|transfer| !transfer.is_reversed) {
            // One that names no payout is none of ours; one of a payout that is under way is for that to be told of.
            let Some(named) = transfer.payout else { continue };
            let is_under_way = payout::get(self.store(), *account, named)
                .await?
                .is_some_and(|payout| payout.state == PayoutState::Open);
            if !is_under_way && payout::find_by_transfer(self.store(), *account, &transfer.id).await?.is_none() {
                unaccounted.push(transfer);
            }
        }
        let is_same = |transfer: &&StripeTransfer| transfer.amount == *amount && transfer.currency == currency.as_str();
        Ok(match (unaccounted.iter().find(is_same), unaccounted.first()) {
            (Some(same), _) => TransferResponse::Created(same.id.clone()),
            (None, Some(StripeTransfer { id, amount, currency, .. })) => TransferResponse::Rejected(format!(
                "the transfer {id} of {amount} {currency} (minor units) to this destination was made after the backup that \
                 the server was restored from, and no payout accounts for it: reverse it at the processor, and what is \
                 due is in the next run"
            )),
            (None, None) => TransferResponse::NotFound,
        })
    }

    /// Asks for a transfer, and books the answer. Where the key was used, the transfer is to be looked up.
    async fn transfer_one(
        &self,
        seen: &Payout,
        processor: &impl PayoutGateway,
    ) -> Result<(TransferCounts, Option<TransferRequest>), LedgerError> {
        let mut undoubted = seen.clone();
        undoubted.asking.doubt = None;
        let Some(order) = self.begin_request(seen, &undoubted).await? else {
            return Ok((TransferCounts::default(), None));
        };
        match processor.transfer(&order).await {
            // The payout has not failed: its lines would be paid by another one, beside the transfer that was made.
            told @ TransferResponse::IdempotencyKeyReused(_) => {
                let waiting = self.schedule_retry(&order.payout, &told).await?;
                Ok((TransferCounts::default(), waiting.map(|payout| TransferRequest::from_payout(&payout))))
            }
            told => Ok((self.apply_response(&order.payout, told).await?, None)),
        }
    }

    /// Writes that the processor is being asked, before it is; nothing when the payout was changed meanwhile.
    async fn begin_request(&self, seen: &Payout, doubted: &Payout) -> Result<Option<TransferRequest>, LedgerError> {
        let now = self.now();
        let mut asked = doubted.clone();
        if asked.asking.since.is_none() {
            let program = program::get(self.store(), seen.account).await?;
            asked.asking.of = program.and_then(|program| program.processor?.account_id);
        }
        asked.asking.since.get_or_insert(now);
        asked.asking.tries = asked.asking.tries.saturating_add(1);
        // Whoever goes on after a crash waits for an answer that may still come.
        asked.asking.not_before = Some(backoff(now, asked.asking.tries));
        asked.touch(now);
        let mut batch = Batch::progress();
        payout::update(&mut batch, seen, &asked);
        Ok(self.commit(batch).await?.then(|| TransferRequest::from_payout(&asked)))
    }

    /// What the processor said becomes of the payout. It may have been settled meanwhile: then it stays so.
    async fn apply_response(&self, asked: &Payout, told: TransferResponse) -> Result<TransferCounts, LedgerError> {
        let (account, id) = (asked.account, asked.id);
        let mut came = TransferCounts::default();
        let outlay = match told {
            TransferResponse::Created(transfer) => PayoutOutcome::Paid { reference: None, transfer: Some(transfer) },
            TransferResponse::Rejected(reason) => PayoutOutcome::Failed { reason, transfer: None },
            TransferResponse::InsufficientFunds if asked.asking.short >= SHORT_MAX => {
                let reason = "There was not enough money at the processor".to_owned();
                PayoutOutcome::Failed { reason, transfer: None }
            }
            TransferResponse::InsufficientFunds
            | TransferResponse::NotFound
            | TransferResponse::IdempotencyKeyReused(_)
            | TransferResponse::NoResponse(_)
            | TransferResponse::NotSent(_) => {
                came.waiting = 1;
                self.schedule_retry(asked, &told).await?;
                return Ok(came);
            }
        };
        let is_failed = matches!(outlay, PayoutOutcome::Failed { .. });
        for _ in 0..TRIES_MAX {
            let shown = match self.get_payout(account, id).await {
                Ok(shown) => shown,
                Err(AffiliateError::Read(error)) => return Err(error.into()),
                Err(_) => return Ok(came),
            };
            if shown.status != PayoutStatus::Processing {
                return Ok(came);
            }
            let settled = self.settle_open_payout(&shown, outlay.clone(), &no_extension::<PayoutView>).await;
            match settled {
                Ok(None) => {}
                Ok(Some(_)) => {
                    came.failed = usize::from(is_failed);
                    came.paid = usize::from(!is_failed);
                    return Ok(came);
                }
                Err(AffiliateError::Read(error)) => return Err(error.into()),
                Err(AffiliateError::Commit(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::error!(payout = %id, %refusal, "a transfer cannot be booked; it is asked for again");
                    came.waiting = 1;
                    return Ok(came);
                }
            }
        }
        Err(LedgerError::Contended)
    }

    /// Writes when the processor is asked again; gives the payout as it is then, unless it was changed meanwhile.
    async fn schedule_retry(&self, asked: &Payout, told: &TransferResponse) -> Result<Option<Payout>, LedgerError> {
        let now = self.now();
        let mut after = asked.clone();
        let asking = &mut after.asking;
        asking.not_before = Some(backoff(now, asking.tries));
        match told {
            TransferResponse::InsufficientFunds => {
                // Nothing was made, for good: another key the next time.
                asking.short = asking.short.saturating_add(1);
                asking.next_attempt();
                asking.not_before = now.checked_add(SHORT_WAIT).ok();
            }
            TransferResponse::NotFound if TransferRequest::from_payout(asked).may_key_be_forgotten(now) => {
                asking.next_attempt();
                asking.not_before = None;
            }
            TransferResponse::NotSent(_) => {
                asking.not_before = now.checked_add(UNASKED_WAIT).ok();
                asking.tries = asking.tries.saturating_sub(1);
                if asking.tries == 0 && asking.doubt.is_none() {
                    // Nothing is on its way.
                    asking.since = None;
                }
            }
            TransferResponse::IdempotencyKeyReused(_) => asking.doubt = Some(TransferDoubt::KeyUsed),
            TransferResponse::NotFound
            | TransferResponse::Created(_)
            | TransferResponse::Rejected(_)
            | TransferResponse::NoResponse(_) => {}
        }
        if let Some(why) = retry_reason(told) {
            tracing::warn!(payout = %asked.id, why, "the processor has not made a transfer; it is asked again later");
            after.asking.obstacle = Some(why.to_owned());
        }
        after.touch(now);
        let mut batch = Batch::progress();
        payout::update(&mut batch, asked, &after);
        Ok(self.commit(batch).await?.then_some(after))
    }
}

/// A payout as it is to be asked for. What it pays may have been paid after the backup that the store was restored from.
fn with_restore_doubt(payout: &Payout, hold: Option<Hold>, now: Timestamp) -> Payout {
    let mut payout = payout.clone();
    let is_restored = hold.is_some_and(|Hold { since: restored_at, .. }| {
        let is_lately = now.duration_since(restored_at) < RESTORE_COMPARED;
        is_lately && payout.asking.since.is_none_or(|asked_at| asked_at < restored_at)
    });
    if is_restored && payout.asking.doubt.is_none() {
        payout.asking.doubt = Some(TransferDoubt::StoreRestored);
    }
    payout
}

/// Why a transfer is not made yet, in words for the owner.
fn retry_reason(told: &TransferResponse) -> Option<&str> {
    match told {
        TransferResponse::NoResponse(why)
        | TransferResponse::NotSent(why)
        | TransferResponse::IdempotencyKeyReused(why) => Some(why),
        TransferResponse::InsufficientFunds => {
            Some("there is not enough money at the processor; it is asked again in a day")
        }
        TransferResponse::NotFound | TransferResponse::Created(_) | TransferResponse::Rejected(_) => None,
    }
}

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 100;

impl TransferCounts {
    fn add(&mut self, other: Self) {
        self.paid += other.paid;
        self.failed += other.failed;
        self.waiting += other.waiting;
    }
}

fn backoff(now: Timestamp, tries: u32) -> Timestamp {
    let place = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = BACKOFF_S.get(place).or(BACKOFF_S.last()).copied().unwrap_or(60);
    now.checked_add(SignedDuration::from_secs(wait)).unwrap_or(Timestamp::MAX)
}

/// When a run that has more to do is looked at again: at once, or in a while where nobody answers.
fn next_wake(now: Timestamp, is_silent: bool) -> Timestamp {
    if is_silent { backoff(now, 1) } else { now }
}

/// The processor of a program: where it is asked, and with which key.
pub(super) struct TransferClient {
    api_base: String,
    key: String,
}

impl TransferClient {
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("authorization", format!("Bearer {}", self.key)), ("accept", "application/json".to_owned())]
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.api_base.trim_end_matches('/'))
    }
}

impl AffiliateService {
    /// The processor that pays a payout; none where no key was given, or where another account than the connected one was
    /// asked and may have paid.
    async fn transfer_client_for(&self, order: &TransferRequest) -> Result<TransferClient, TransferResponse> {
        let found = program::get(self.store(), order.payout.account).await;
        let found = found.map_err(|error| TransferResponse::NotSent(error.to_string()))?;
        let asked = found.and_then(|program| {
            let processor = program.processor?;
            let key = self.open(&program.id.to_bytes(), &processor.restricted_key?)?;
            Some((processor.account_id, TransferClient { api_base: processor.api_base, key }))
        });
        let none = || TransferResponse::NotSent("there is no key to ask the processor with".to_owned());
        let (account, processor) = asked.ok_or_else(none)?;
        let first = &order.payout.asking.of;
        if first.is_some() && *first != account {
            let why = "another account of the processor was asked for it, and has not answered";
            return Err(TransferResponse::NotSent(why.to_owned()));
        }
        Ok(processor)
    }
}

impl PayoutGateway for AffiliateService {
    async fn list_transfers_to_destination(
        &self,
        order: &TransferRequest,
    ) -> Result<Vec<StripeTransfer>, TransferResponse> {
        let processor = self.transfer_client_for(order).await?;
        self.list_transfers_to(&order.payout, &processor).await
    }

    async fn transfer(&self, order: &TransferRequest) -> TransferResponse {
        let processor = match self.transfer_client_for(order).await {
            Ok(processor) => processor,
            Err(told) => return told,
        };
        let mut headers = processor.headers();
        headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        headers.push(("idempotency-key", order.key.clone()));
        let post = HttpPost {
            url: processor.url("/v1/transfers"),
            headers,
            body: order.request_body().into(),
            timeout: TIMEOUT,
            idempotency: RequestIdempotency::Idempotent,
        };
        match self.hall.post_url(post, OBJECT_BYTES_MAX).await {
            Ok(HttpResponse { status, body, .. }) => read_response(status, &body),
            Err(error) => response_of_error(&error),
        }
    }

    async fn look_up(&self, orders: &[TransferRequest]) -> Vec<TransferResponse> {
        let mut lookup = TransferLookup::default();
        let mut processors = Vec::new();
        for order in orders {
            processors.push(self.transfer_client_for(order).await);
        }
        // The run of all of them is one, and so is its program.
        if let (Some(Ok(processor)), Some(order)) = (processors.iter().find(|one| one.is_ok()), orders.first()) {
            let wanted = orders.iter().map(|order| order.payout.id).collect();
            lookup = self.look_up_run((order.payout.account, order.payout.run), processor, wanted).await;
        }
        let told = orders.iter().zip(processors);
        told.map(|(order, processor)| processor.map_or_else(|told| told, |_| lookup.response_for(order.payout.id)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let refused = |text: &str| TransferResponse::Rejected(text.to_owned());
        let unanswered = |text: &str| TransferResponse::NoResponse(text.to_owned());
        for (status, body, wanted) in [
            (200, r#"{"id":"tr_1","object":"transfer"}"#, TransferResponse::Created("tr_1".to_owned())),
            (200, "{", unanswered("the answer has no id")),
            (200, r#"{"id":""}"#, unanswered("the answer has no id")),
            (
                400,
                r#"{"error":{"code":"balance_insufficient","message":"too little"}}"#,
                TransferResponse::InsufficientFunds,
            ),
            (400, r#"{"error":{"code":"x","message":"No such destination"}}"#, refused("No such destination")),
            (402, r#"{"error":{"code":"declined"}}"#, refused("declined")),
            (
                400,
                r#"{"error":{"type":"idempotency_error","message":"Keys can only be used once"}}"#,
                TransferResponse::IdempotencyKeyReused("Keys can only be used once".to_owned()),
            ),
            (404, "", refused("status 404")),
            (401, "", TransferResponse::NotSent("status 401".to_owned())),
            (403, r#"{"error":{"message":"no permission"}}"#, TransferResponse::NotSent("no permission".to_owned())),
            (409, r#"{"error":{"message":"key in use"}}"#, unanswered("key in use")),
            (429, "", unanswered("status 429")),
            (500, "<html>", unanswered("status 500")),
            (503, "", unanswered("status 503")),
            (302, "", unanswered("status 302")),
        ] {
            assert_eq!(read_response(status, body.as_bytes()), wanted, "{status} {body}");
        }
    }

    #[test]
    fn waits_grow() {
        let now = Timestamp::UNIX_EPOCH;
        let waits: Vec<i64> = [0, 1, 2, 6, 7, u32::MAX].map(|tries| backoff(now, tries).as_second()).to_vec();
        assert_eq!(waits, [30, 30, 120, 7_200, 7_200, 7_200]);
    }
}
