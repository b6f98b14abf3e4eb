//! Payouts by transfers of the processor to connected accounts (`POST /v1/transfers`).
//!
//! ```text
//! payout ─[ request stored ]─► the processor ─► created: paid
//!                  ▲                     ├──────────► rejected permanently: failed
//!                  │                     ├──────────► insufficient funds: retry daily, three times, then failed
//!                  │                     ├──────────► idempotency key reused: looked up, never failed
//!                  └─ same key, later ◄──┴─ no response, or a temporary refusal
//! ```
//!
//! A transfer is created once, however often it is requested: the idempotency key consists of the payout and the
//! attempt number, and the processor creates one transfer per key. The request is stored before it is sent, so that
//! after a crash the same key is used again. After a permanent refusal the next attempt uses a new number.
//!
//! Before a retry the transfer is looked up in the processor's list in two cases: the key is so old that the processor
//! may have forgotten it, or the processor reports that the key was used with other parameters.
//!
//! A store restored from a backup does not contain the transfers made after the backup. So for half a year each payout
//! is first compared with all transfers to its destination. A transfer that no local payout accounts for pays this
//! payout if the amount is equal, and fails it otherwise. While a restored store holds its queue, no transfer is
//! requested.

use futures_util::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use model::affiliate::payout::{Payout, PayoutRunStatus, PayoutState, PayoutStatus, TransferDoubt};
use model::id::{AccountId, PayoutId, PayoutRunId};
use net::http_client::HttpClientError;
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run, program};
use store::engine::Batch;
use store::queue_hold::{self, Hold};
use store::retry_on_conflict;
use url::form_urlencoded::Serializer;

use super::view::PayoutView;
use crate::context::{Context, no_extension};
use crate::error::{AffiliateError, LedgerResult as Result};
use crate::ledger::settlement::PayoutOutcome;
use crate::processor::TransferResponseBody;

/// Transfers that are requested concurrently.
const AT_ONCE: usize = 8;
/// Maximum transfers of a run that one job handles before other jobs run.
const SLICE: usize = 64;
/// Time for which the processor certainly remembers an idempotency key (Stripe: at least 24 hours).
const KEY_KEPT: SignedDuration = SignedDuration::from_hours(20);
/// Retry delays in seconds; the last one repeats.
const BACKOFF_S: [i64; 6] = [30, 120, 600, 1_800, 3_600, 7_200];
/// Retry delay after insufficient funds.
const SHORT_WAIT: SignedDuration = SignedDuration::from_hours(24);
/// Retry delay when no request can be sent.
const UNASKED_WAIT: SignedDuration = SignedDuration::from_mins(10);
/// Poll interval while the queue is held.
const HELD_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// Period after a restore in which payouts are compared with earlier transfers.
const RESTORE_COMPARED: SignedDuration = SignedDuration::from_hours(24 * 183);
/// Maximum retries after insufficient funds.
const SHORT_MAX: u32 = 3;
/// Maximum characters of a stored failure reason.
const REASON_CHARS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRequest {
    /// The payout as stored with the request.
    pub payout: Payout,
    /// The idempotency key.
    pub key: String,
}

impl TransferRequest {
    fn from_payout(payout: &Payout) -> Self {
        Self { key: format!("{}:{}", payout.id, payout.asking.attempt), payout: payout.clone() }
    }

    /// Returns the form-encoded body of the request.
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

    /// True if the transfer must be looked up before it is requested.
    fn needs_lookup_first(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt.is_some() || self.may_key_be_forgotten(now)
    }

    /// True if the processor may have forgotten the idempotency key.
    fn may_key_be_forgotten(&self, now: Timestamp) -> bool {
        self.payout.asking.since.is_some_and(|since| now.duration_since(since) > KEY_KEPT)
    }

    /// True if the request may be sent with the same key after a lookup found no transfer.
    fn may_retry_if_not_found(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt == Some(TransferDoubt::StoreRestored) && !self.may_key_be_forgotten(now)
    }
}

/// Result of a transfer request or lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferResponse {
    /// The transfer exists; its id.
    Created(String),
    /// Refused permanently for this key.
    Rejected(String),
    /// The key was used before with other parameters; look up whether that created a transfer.
    IdempotencyKeyReused(String),
    /// Insufficient funds; no transfer was created.
    InsufficientFunds,
    /// Unknown whether the transfer was created.
    NoResponse(String),
    /// Not sent or not processed: no valid API key, or an invalid address.
    NotSent(String),
    /// A lookup found no such transfer.
    NotFound,
}

/// A transfer in the processor's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeTransfer {
    pub id: String,
    /// The payout named in its metadata.
    pub payout: Option<PayoutId>,
    /// In minor units.
    pub amount: i64,
    /// Lowercase.
    pub currency: String,
    /// True if the whole amount was reversed.
    pub is_reversed: bool,
}

/// Creates and looks up transfers.
pub trait PayoutGateway: Send + Sync {
    fn transfer<'a>(&'a self, order: &'a TransferRequest) -> BoxFuture<'a, TransferResponse>;
    /// Looks up transfers of one run, in the order of `orders`.
    fn look_up<'a>(&'a self, orders: &'a [TransferRequest]) -> BoxFuture<'a, Vec<TransferResponse>>;
    /// Lists all transfers to an order's destination; the error is the reason why they are unknown.
    fn list_transfers_to_destination<'a>(
        &'a self,
        order: &'a TransferRequest,
    ) -> BoxFuture<'a, Result<Vec<StripeTransfer>, TransferResponse>>;
}

/// Maps a failed HTTP request to its result.
pub(crate) fn response_of_error(error: &HttpClientError) -> TransferResponse {
    match error {
        HttpClientError::Url(_) | HttpClientError::NotPublic(_) => TransferResponse::NotSent(error.to_string()),
        HttpClientError::ConnectionFailed(_) | HttpClientError::Timeout(_) | HttpClientError::Budget(_) => {
            TransferResponse::NoResponse(error.to_string())
        }
    }
}

/// Maps the response to a transfer request to its result.
pub fn read_response(status: u16, body: &[u8]) -> TransferResponse {
    let parsed = TransferResponseBody::read(body);
    let reason = || -> String {
        let reason = parsed.message.clone().or(parsed.code.clone()).unwrap_or_else(|| format!("status {status}"));
        reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect()
    };
    match status {
        200..=299 => match parsed.id.clone() {
            Some(id) => TransferResponse::Created(id),
            None => TransferResponse::NoResponse("the response has no id".to_owned()),
        },
        // The processor rejected the API key and did not process the request.
        401 | 403 => TransferResponse::NotSent(reason()),
        // A concurrent request with the same key, or rate limiting: no statement about the transfer.
        408 | 409 | 425 | 429 => TransferResponse::NoResponse(reason()),
        400..=499 if parsed.kind.as_deref() == Some("idempotency_error") => {
            TransferResponse::IdempotencyKeyReused(reason())
        }
        400..=499 if parsed.code.as_deref() == Some("balance_insufficient") => TransferResponse::InsufficientFunds,
        400..=499 => TransferResponse::Rejected(reason()),
        _ => TransferResponse::NoResponse(reason()),
    }
}

/// Results of one slice of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    pub paid: usize,
    pub failed: usize,
    /// Payouts to retry later.
    pub waiting: usize,
}

/// Requests the transfers of runs.
pub struct Transfers<'a> {
    context: &'a Context,
    gateway: &'a dyn PayoutGateway,
}

impl<'a> Transfers<'a> {
    pub fn new(context: &'a Context, gateway: &'a dyn PayoutGateway) -> Self {
        Self { context, gateway }
    }

    /// Requests the due transfers of an approved run. Schedules a job for the rest.
    pub async fn transfer_due_payouts(&self, account: AccountId, id: PayoutRunId) -> Result<TransferCounts> {
        let (store, now) = (&self.context.store, self.context.now());
        let mut counts = TransferCounts::default();
        let Some(run) = payout_run::get(store, account, id).await? else { return Ok(counts) };
        if !run.is_approved() {
            return Ok(counts);
        }
        let hold = queue_hold::get_queue_hold(store).await?;
        if hold.is_some_and(|hold| hold.is_active()) {
            let mut batch = Batch::progress();
            let due = now.checked_add(HELD_WAIT).unwrap_or(Timestamp::MAX);
            payout_job::schedule(&mut batch, account, PayoutJob::Run(id), due);
            self.context.commit(batch).await?;
            return Ok(counts);
        }
        self.begin_processing(&run.id, account).await?;
        let (mut after, mut next, mut remaining) = (None, None::<Timestamp>, SLICE);
        loop {
            let found = payout::list_to_transfer(store, account, id, after, SLICE).await?;
            after = found.last().map(|last| last.id);
            let is_last = found.len() < SLICE;
            let (due, postponed): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|payout| payout.asking.not_before.is_none_or(|at| at <= now));
            next = postponed.iter().filter_map(|payout| payout.asking.not_before).chain(next).min();
            remaining = remaining.saturating_sub(self.transfer_slice(due, hold, &mut counts).await?);
            if is_last || remaining == 0 {
                let due = if remaining == 0 {
                    Some(next_wake(now, counts.waiting > 0 && counts.paid + counts.failed == 0))
                } else {
                    next
                };
                return self.finish_slice(account, id, is_last, due, counts).await;
            }
        }
    }

    /// Looks up or requests the due transfers. Returns how much of the slice this used up.
    async fn transfer_slice(&self, due: Vec<Payout>, hold: Option<Hold>, counts: &mut TransferCounts) -> Result<usize> {
        let (now, count) = (self.context.now(), due.len());
        let (in_doubt, mut plain): (Vec<_>, Vec<_>) = due.into_iter().partition(|payout| {
            TransferRequest::from_payout(&with_restore_doubt(payout, hold, now)).needs_lookup_first(now)
        });
        let mut checked = Vec::new();
        for payout in &in_doubt {
            checked.extend(self.begin_request(payout, &with_restore_doubt(payout, hold, now)).await?);
        }
        let (restored, used): (Vec<_>, Vec<_>) =
            checked.into_iter().partition(|order| order.payout.asking.doubt == Some(TransferDoubt::StoreRestored));
        let mut responses = self.look_up(used).await;
        for order in restored {
            let compared = self.compare_with_transfers(&order).await?;
            responses.push((order, compared));
        }
        for (order, response) in responses {
            if response == TransferResponse::NotFound && order.may_retry_if_not_found(now) {
                // The next request clears the doubt in the stored payout.
                plain.push(order.payout);
            } else {
                counts.add(self.apply_response(&order.payout, response).await?);
            }
        }
        let mut used = Vec::new();
        for batch in plain.chunks(AT_ONCE) {
            let waiting = counts.waiting;
            for result in join_all(batch.iter().map(|result| self.transfer_one(result))).await {
                let (step, key_used) = result?;
                counts.add(step);
                used.extend(key_used);
            }
            // If none of several requests was answered, do not try the others now.
            if counts.waiting == waiting + batch.len() {
                return Ok(SLICE);
            }
        }
        for (order, response) in self.look_up(used).await {
            counts.add(self.apply_response(&order.payout, response).await?);
        }
        Ok(count)
    }

    async fn look_up(&self, orders: Vec<TransferRequest>) -> Vec<(TransferRequest, TransferResponse)> {
        if orders.is_empty() {
            return Vec::new();
        }
        let responses = self.gateway.look_up(&orders).await;
        orders.into_iter().zip(responses).collect()
    }

    async fn finish_slice(
        &self,
        account: AccountId,
        id: PayoutRunId,
        is_last: bool,
        due: Option<Timestamp>,
        counts: TransferCounts,
    ) -> Result<TransferCounts> {
        let now = self.context.now();
        let left = payout::list_to_transfer(&self.context.store, account, id, None, SLICE).await?;
        let mut batch = Batch::progress();
        if left.is_empty() {
            payout_job::delete(&mut batch, account, PayoutJob::Run(id));
        } else {
            let first = left.iter().map(|payout| payout.asking.not_before.unwrap_or(now)).min();
            let due = due.filter(|_| !is_last || left.len() == SLICE).or(first).unwrap_or(now);
            payout_job::schedule(&mut batch, account, PayoutJob::Run(id), due);
        }
        self.context.commit(batch).await?;
        Ok(counts)
    }

    /// Sets the run's status to `processing`.
    async fn begin_processing(&self, id: &PayoutRunId, account: AccountId) -> Result<()> {
        while let Some(run) = payout_run::get(&self.context.store, account, *id).await?
            && run.status == PayoutRunStatus::Approved
        {
            let mut after = run.clone();
            after.status = PayoutRunStatus::Processing;
            after.rev = after.rev.saturating_add(1);
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &run, &after);
            self.context.commit(batch).await?;
        }
        Ok(())
    }

    /// Compares a payout of a restored store with the transfers to its destination.
    async fn compare_with_transfers(&self, order: &TransferRequest) -> Result<TransferResponse> {
        let Payout { id, account, amount, currency, .. } = &order.payout;
        let transfers = match self.gateway.list_transfers_to_destination(order).await {
            Ok(transfers) => transfers,
            Err(response) => return Ok(response),
        };
        if let Some(own_transfer) = transfers.iter().find(|transfer| transfer.payout == Some(*id)) {
            return Ok(TransferResponse::Created(own_transfer.id.clone()));
        }
        let mut unaccounted = Vec::new();
        for transfer in transfers.into_iter().filter(|transfer| !transfer.is_reversed) {
            // A transfer without a payout id is not from this service; one of an open payout belongs to that payout.
            let Some(named) = transfer.payout else { continue };
            let is_under_way = payout::get(&self.context.store, *account, named)
                .await?
                .is_some_and(|payout| payout.state == PayoutState::Open);
            if !is_under_way && payout::find_by_transfer(&self.context.store, *account, &transfer.id).await?.is_none() {
                unaccounted.push(transfer);
            }
        }
        let is_same_amount =
            |transfer: &&StripeTransfer| transfer.amount == *amount && transfer.currency == currency.as_str();
        Ok(match (unaccounted.iter().find(is_same_amount), unaccounted.first()) {
            (Some(matching), _) => TransferResponse::Created(matching.id.clone()),
            (None, Some(StripeTransfer { id, amount, currency, .. })) => TransferResponse::Rejected(format!(
                "transfer {id} of {amount} {currency} (minor units) to this destination was created after the backup \
                 that this server was restored from, and does not belong to any payout here: reverse it at the \
                 processor; the amount due will then be in the next run"
            )),
            (None, None) => TransferResponse::NotFound,
        })
    }

    /// Requests a transfer and applies the response. If the key was reused, returns the request for a lookup.
    async fn transfer_one(&self, before: &Payout) -> Result<(TransferCounts, Option<TransferRequest>)> {
        let mut undisputed = before.clone();
        undisputed.asking.doubt = None;
        let Some(order) = self.begin_request(before, &undisputed).await? else {
            return Ok((TransferCounts::default(), None));
        };
        match self.gateway.transfer(&order).await {
            // Not failed: otherwise the next run would pay the lines again, in addition to the existing transfer.
            response @ TransferResponse::IdempotencyKeyReused(_) => {
                let waiting = self.schedule_retry(&order.payout, &response).await?;
                Ok((TransferCounts::default(), waiting.map(|payout| TransferRequest::from_payout(&payout))))
            }
            response => Ok((self.apply_response(&order.payout, response).await?, None)),
        }
    }

    /// Stores the request before it is sent; `None` if the payout has changed.
    async fn begin_request(&self, payout: &Payout, doubted: &Payout) -> Result<Option<TransferRequest>> {
        let now = self.context.now();
        let mut requested = doubted.clone();
        if requested.asking.since.is_none() {
            let program = program::get(&self.context.store, payout.account).await?;
            requested.asking.of = program.and_then(|program| program.processor?.account_id);
        }
        requested.asking.since.get_or_insert(now);
        requested.asking.tries = requested.asking.tries.saturating_add(1);
        // After a crash the retry waits, because the response may still have created the transfer.
        requested.asking.not_before = Some(backoff(now, requested.asking.tries));
        requested.touch(now);
        let mut batch = Batch::progress();
        payout::update(&mut batch, payout, &requested);
        Ok(self.context.commit(batch).await?.then(|| TransferRequest::from_payout(&requested)))
    }

    /// Applies the processor's response to the payout, unless it was settled meanwhile.
    async fn apply_response(&self, requested: &Payout, response: TransferResponse) -> Result<TransferCounts> {
        let (account, id) = (requested.account, requested.id);
        let (paid, failed, waiting) =
            (TransferCounts::of(1, 0, 0), TransferCounts::of(0, 1, 0), TransferCounts::of(0, 0, 1));
        let outcome = match response {
            TransferResponse::Created(transfer) => PayoutOutcome::Paid { reference: None, transfer: Some(transfer) },
            TransferResponse::Rejected(reason) => PayoutOutcome::Failed { reason, transfer: None },
            TransferResponse::InsufficientFunds if requested.asking.short >= SHORT_MAX => {
                let reason = "Insufficient funds at the payment processor".to_owned();
                PayoutOutcome::Failed { reason, transfer: None }
            }
            TransferResponse::InsufficientFunds
            | TransferResponse::NotFound
            | TransferResponse::IdempotencyKeyReused(_)
            | TransferResponse::NoResponse(_)
            | TransferResponse::NotSent(_) => {
                self.schedule_retry(requested, &response).await?;
                return Ok(waiting);
            }
        };
        let settled = if matches!(outcome, PayoutOutcome::Failed { .. }) { failed } else { paid };
        retry_on_conflict(|| async {
            let view = match self.context.get_payout(account, id).await {
                Ok(view) if view.status == PayoutStatus::Processing => view,
                Err(AffiliateError::Read(error)) => return Err(error.into()),
                Ok(_) | Err(_) => return Ok(Some(TransferCounts::default())),
            };
            match self.context.settle_open_payout(&view, outcome.clone(), &no_extension::<PayoutView>).await {
                Ok(done) => Ok(done.map(|_| settled)),
                Err(AffiliateError::Read(error)) => Err(error.into()),
                Err(AffiliateError::Commit(error)) => Err(error.into()),
                Err(refusal) => {
                    tracing::error!(payout = %id, %refusal, "cannot store the result of a transfer; retrying");
                    Ok(Some(waiting))
                }
            }
        })
        .await
    }

    /// Stores the time of the next request. Returns the updated payout, or `None` if it has changed.
    async fn schedule_retry(&self, requested: &Payout, response: &TransferResponse) -> Result<Option<Payout>> {
        let now = self.context.now();
        let mut after = requested.clone();
        let attempts = &mut after.asking;
        attempts.not_before = Some(backoff(now, attempts.tries));
        match response {
            TransferResponse::InsufficientFunds => {
                // Certainly no transfer was created: use a new key next time.
                attempts.short = attempts.short.saturating_add(1);
                attempts.next_attempt();
                attempts.not_before = now.checked_add(SHORT_WAIT).ok();
            }
            TransferResponse::NotFound if TransferRequest::from_payout(requested).may_key_be_forgotten(now) => {
                attempts.next_attempt();
                attempts.not_before = None;
            }
            TransferResponse::NotSent(_) => {
                attempts.not_before = now.checked_add(UNASKED_WAIT).ok();
                attempts.tries = attempts.tries.saturating_sub(1);
                if attempts.tries == 0 && attempts.doubt.is_none() {
                    // No request is in flight.
                    attempts.since = None;
                }
            }
            TransferResponse::IdempotencyKeyReused(_) => attempts.doubt = Some(TransferDoubt::KeyUsed),
            TransferResponse::NotFound
            | TransferResponse::Created(_)
            | TransferResponse::Rejected(_)
            | TransferResponse::NoResponse(_) => {}
        }
        if let Some(reason) = retry_reason(response) {
            tracing::warn!(payout = %requested.id, why = reason, "transfer not created; retrying later");
            after.asking.obstacle = Some(reason.to_owned());
        }
        after.touch(now);
        let mut batch = Batch::progress();
        payout::update(&mut batch, requested, &after);
        Ok(self.context.commit(batch).await?.then_some(after))
    }
}

/// Marks a payout as doubtful if it may have been paid after the backup from which the store was restored.
fn with_restore_doubt(payout: &Payout, hold: Option<Hold>, now: Timestamp) -> Payout {
    let mut payout = payout.clone();
    let is_restored = hold.is_some_and(|Hold { since: restored_at, .. }| {
        let is_recent = now.duration_since(restored_at) < RESTORE_COMPARED;
        is_recent && payout.asking.since.is_none_or(|requested_at| requested_at < restored_at)
    });
    if is_restored && payout.asking.doubt.is_none() {
        payout.asking.doubt = Some(TransferDoubt::StoreRestored);
    }
    payout
}

/// Returns the reason, for the owner, why a transfer is not created yet.
fn retry_reason(response: &TransferResponse) -> Option<&str> {
    match response {
        TransferResponse::NoResponse(reason)
        | TransferResponse::NotSent(reason)
        | TransferResponse::IdempotencyKeyReused(reason) => Some(reason),
        TransferResponse::InsufficientFunds => Some("insufficient funds at the payment processor; retry in 24 hours"),
        TransferResponse::NotFound | TransferResponse::Created(_) | TransferResponse::Rejected(_) => None,
    }
}

impl TransferCounts {
    fn of(paid: usize, failed: usize, waiting: usize) -> Self {
        Self { paid, failed, waiting }
    }

    fn add(&mut self, other: Self) {
        self.paid += other.paid;
        self.failed += other.failed;
        self.waiting += other.waiting;
    }
}

fn backoff(now: Timestamp, tries: u32) -> Timestamp {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = BACKOFF_S.get(index).or(BACKOFF_S.last()).copied().unwrap_or(60);
    now.checked_add(SignedDuration::from_secs(wait)).unwrap_or(Timestamp::MAX)
}

/// Returns when a run with more work continues: at once, or after a delay if the processor does not answer.
fn next_wake(now: Timestamp, is_unanswered: bool) -> Timestamp {
    if is_unanswered { backoff(now, 1) } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_responses_are_classified() {
        let refused = |text: &str| TransferResponse::Rejected(text.to_owned());
        let unanswered = |text: &str| TransferResponse::NoResponse(text.to_owned());
        for (status, body, wanted) in [
            (200, r#"{"id":"tr_1","object":"transfer"}"#, TransferResponse::Created("tr_1".to_owned())),
            (200, "{", unanswered("the response has no id")),
            (200, r#"{"id":""}"#, unanswered("the response has no id")),
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
