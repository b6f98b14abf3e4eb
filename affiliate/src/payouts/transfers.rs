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
use mail::affiliate::payout::{Doubt, Payout, PayoutState, PayoutStatus, RunStatus};
use mail::id::{AccountId, PayoutId, PayoutRunId};
use queue::courier::http::{Again, Answer, Post, PostError};
use store::affiliate::payout_work::{self, Work};
use store::affiliate::{payout, payout_run, program};
use store::engine::Batch;
use store::queue_hold::{self, Hold};
use url::form_urlencoded::Serializer;

use super::ShownPayout;
use super::lookup::Lookup;
use crate::ledger::{Fault, Ledger, Outlay};
use crate::office::{Office, nothing_beside};
use crate::processor::{OBJECT_BYTES_MAX, TransferAnswer};
use crate::refusal::Refusal;

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
pub struct Order {
    /// The payout as it is.
    pub payout: Payout,
    /// What makes asking again harmless.
    pub key: String,
}

impl Order {
    fn of(payout: &Payout) -> Self {
        Self { key: format!("{}:{}", payout.id, payout.asking.attempt), payout: payout.clone() }
    }

    /// The body of the request.
    #[must_use]
    pub fn form(&self) -> String {
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
    fn is_looked_up_first(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt.is_some() || self.is_old(now)
    }

    /// Whether the processor may have forgotten the key.
    fn is_old(&self, now: Timestamp) -> bool {
        self.payout.asking.since.is_some_and(|since| now.duration_since(since) > KEY_KEPT)
    }

    /// Whether it may be asked for, with the same key, once a lookup has found no transfer.
    fn is_askable_when_unmade(&self, now: Timestamp) -> bool {
        self.payout.asking.doubt == Some(Doubt::StoreRestored) && !self.is_old(now)
    }
}

/// What the processor said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The transfer is made: its id.
    Made(String),
    /// It is not, and will not be with this key.
    Refused(String),
    /// The key was used before, with other figures: whether a transfer was made then is to be looked up.
    KeyUsed(String),
    /// There is not enough money; nothing was made.
    Short,
    /// Nobody knows whether it was made.
    Unanswered(String),
    /// It was not asked: there is no key, or none that it takes, or its address will not do.
    Unasked(String),
    /// There is no such transfer (of one that was looked up).
    Unmade,
}

/// A transfer as the processor lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
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
pub trait Pays: Sync {
    /// Asks for a transfer.
    fn transfer(&self, order: &Order) -> impl Future<Output = Told> + Send;
    /// Looks transfers of one run up, in the order of `orders`.
    fn look_up(&self, orders: &[Order]) -> impl Future<Output = Vec<Told>> + Send;
    /// All transfers to the destination of an order; the error is why they are not known.
    fn transfers_to(&self, order: &Order) -> impl Future<Output = Result<Vec<Transfer>, Told>> + Send;
}

/// What it says that there was no answer.
pub(super) fn unheard(error: &PostError) -> Told {
    match error {
        PostError::Url(_) | PostError::NotPublic(_) => Told::Unasked(error.to_string()),
        PostError::Lost(_) | PostError::Timeout(_) | PostError::Budget(_) => {
            Told::Unanswered(error.to_string())
        }
    }
}

/// What an answer says.
#[must_use]
pub fn told(status: u16, body: &[u8]) -> Told {
    let said = TransferAnswer::read(body);
    let reason = || -> String {
        let reason = said.message.clone().or(said.code.clone()).unwrap_or_else(|| format!("status {status}"));
        reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect()
    };
    match status {
        200..=299 => match said.id.clone() {
            Some(id) => Told::Made(id),
            None => Told::Unanswered("the answer has no id".to_owned()),
        },
        // The program's key is not good, or may not do this: the processor did not look at the order at all.
        401 | 403 => Told::Unasked(reason()),
        // Another request with the same key, or too many: nothing was said of the transfer.
        408 | 409 | 425 | 429 => Told::Unanswered(reason()),
        400..=499 if said.kind.as_deref() == Some("idempotency_error") => Told::KeyUsed(reason()),
        400..=499 if said.code.as_deref() == Some("balance_insufficient") => Told::Short,
        400..=499 => Told::Refused(reason()),
        _ => Told::Unanswered(reason()),
    }
}

/// What came of a slice of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
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
    pub async fn transfer_some(
        &self,
        (account, id): (AccountId, PayoutRunId),
        processor: &impl Pays,
    ) -> Result<Transferred, Fault> {
        let (store, now) = (self.store(), self.now());
        let mut came = Transferred::default();
        let Some(run) = payout_run::get(store, account, id).await? else { return Ok(came) };
        if !run.is_approved() {
            return Ok(came);
        }
        let hold = queue_hold::of_queue(store).await?;
        if hold.is_some_and(|hold| hold.is_on()) {
            let mut batch = Batch::progress();
            let due = now.checked_add(HELD_WAIT).unwrap_or(Timestamp::MAX);
            payout_work::put(&mut batch, account, Work::Run(id), due);
            self.commit(batch).await?;
            return Ok(came);
        }
        self.begin_processing(&run.id, account).await?;
        let (mut after, mut next, mut room) = (None, None::<Timestamp>, SLICE);
        loop {
            let found = payout::to_transfer(store, (account, id), after, SLICE).await?;
            after = found.last().map(|last| last.id);
            let is_last = found.len() < SLICE;
            let (due, later): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|one| one.asking.not_before.is_none_or(|at| at <= now));
            next = later.iter().filter_map(|one| one.asking.not_before).chain(next).min();
            room = room.saturating_sub(self.transfer_due(due, (hold, processor), &mut came).await?);
            if is_last || room == 0 {
                let due = if room == 0 {
                    Some(wake(now, came.waiting > 0 && came.paid + came.failed == 0))
                } else {
                    next
                };
                return self.end_slice((account, id), (is_last, due), came).await;
            }
        }
    }

    /// Looks up and asks for transfers that are due; gives how much of a slice that was.
    async fn transfer_due(
        &self,
        due: Vec<Payout>,
        (hold, processor): (Option<Hold>, &impl Pays),
        came: &mut Transferred,
    ) -> Result<usize, Fault> {
        let (now, count) = (self.now(), due.len());
        let (doubtful, mut plain): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|one| Order::of(&doubted(one, hold, now)).is_looked_up_first(now));
        let mut looked_up = Vec::new();
        for seen in &doubtful {
            looked_up.extend(self.begin_asking(seen, &doubted(seen, hold, now)).await?);
        }
        let (restored, used): (Vec<_>, Vec<_>) =
            looked_up.into_iter().partition(|order| order.payout.asking.doubt == Some(Doubt::StoreRestored));
        let mut told = self.look_up(used, processor).await;
        for order in restored {
            let compared = self.compare_with_transfers(&order, processor).await?;
            told.push((order, compared));
        }
        for (order, told) in told {
            if told == Told::Unmade && order.is_askable_when_unmade(now) {
                // The next request is what clears the doubt on disk.
                plain.push(order.payout);
            } else {
                came.add(self.hear_told(&order.payout, told).await?);
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
            came.add(self.hear_told(&order.payout, told).await?);
        }
        Ok(count)
    }

    async fn look_up(&self, orders: Vec<Order>, processor: &impl Pays) -> Vec<(Order, Told)> {
        if orders.is_empty() {
            return Vec::new();
        }
        let told = processor.look_up(&orders).await;
        orders.into_iter().zip(told).collect()
    }

    async fn end_slice(
        &self,
        (account, id): (AccountId, PayoutRunId),
        (is_last, due): (bool, Option<Timestamp>),
        came: Transferred,
    ) -> Result<Transferred, Fault> {
        let now = self.now();
        let left = payout::to_transfer(self.store(), (account, id), None, SLICE).await?;
        let mut batch = Batch::progress();
        if left.is_empty() {
            payout_work::delete(&mut batch, account, Work::Run(id));
        } else {
            let first = left.iter().map(|one| one.asking.not_before.unwrap_or(now)).min();
            let due = due.filter(|_| !is_last || left.len() == SLICE).or(first).unwrap_or(now);
            payout_work::put(&mut batch, account, Work::Run(id), due);
        }
        self.commit(batch).await?;
        Ok(came)
    }

    /// Money is under way.
    async fn begin_processing(&self, id: &PayoutRunId, account: AccountId) -> Result<(), Fault> {
        while let Some(run) = payout_run::get(self.store(), account, *id).await?
            && run.status == RunStatus::Approved
        {
            let mut after = run.clone();
            after.status = RunStatus::Processing;
            after.rev = after.rev.saturating_add(1);
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &run, &after);
            self.commit(batch).await?;
        }
        Ok(())
    }

    /// Compares a payout of a restored store with what was transferred to its destination.
    async fn compare_with_transfers(&self, order: &Order, processor: &impl Pays) -> Result<Told, Fault> {
        let Payout { id, account, amount, currency, .. } = &order.payout;
        let transfers = match processor.transfers_to(order).await {
            Ok(transfers) => transfers,
            Err(told) => return Ok(told),
        };
        if let Some(own) = transfers.iter().find(|transfer| transfer.payout == Some(*id)) {
            return Ok(Told::Made(own.id.clone()));
        }
        let mut unaccounted = Vec::new();
        for transfer in transfers.into_iter().filter(|transfer| !transfer.is_reversed) {
            // One that names no payout is none of ours; one of a payout that is under way is for that to be told of.
            let Some(named) = transfer.payout else { continue };
            let is_under_way = payout::get(self.store(), *account, named)
                .await?
                .is_some_and(|payout| payout.state == PayoutState::Open);
            if !is_under_way && payout::of_transfer(self.store(), *account, &transfer.id).await?.is_none() {
                unaccounted.push(transfer);
            }
        }
        let is_same =
            |transfer: &&Transfer| transfer.amount == *amount && transfer.currency == currency.as_str();
        Ok(match (unaccounted.iter().find(is_same), unaccounted.first()) {
            (Some(same), _) => Told::Made(same.id.clone()),
            (None, Some(Transfer { id, amount, currency, .. })) => Told::Refused(format!(
                "the transfer {id} of {amount} {currency} (minor units) to this destination was made after the backup that \
                 the server was restored from, and no payout accounts for it: reverse it at the processor, and what is \
                 due is in the next run"
            )),
            (None, None) => Told::Unmade,
        })
    }

    /// Asks for a transfer, and books the answer. Where the key was used, the transfer is to be looked up.
    async fn transfer_one(
        &self,
        seen: &Payout,
        processor: &impl Pays,
    ) -> Result<(Transferred, Option<Order>), Fault> {
        let mut undoubted = seen.clone();
        undoubted.asking.doubt = None;
        let Some(order) = self.begin_asking(seen, &undoubted).await? else {
            return Ok((Transferred::default(), None));
        };
        match processor.transfer(&order).await {
            // The payout has not failed: its lines would be paid by another one, beside the transfer that was made.
            told @ Told::KeyUsed(_) => {
                let waiting = self.try_again(&order.payout, &told).await?;
                Ok((Transferred::default(), waiting.map(|payout| Order::of(&payout))))
            }
            told => Ok((self.hear_told(&order.payout, told).await?, None)),
        }
    }

    /// Writes that the processor is being asked, before it is; nothing when the payout was changed meanwhile.
    async fn begin_asking(&self, seen: &Payout, doubted: &Payout) -> Result<Option<Order>, Fault> {
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
        Ok(self.commit(batch).await?.then(|| Order::of(&asked)))
    }

    /// What the processor said becomes of the payout. It may have been settled meanwhile: then it stays so.
    async fn hear_told(&self, asked: &Payout, told: Told) -> Result<Transferred, Fault> {
        let (account, id) = (asked.account, asked.id);
        let mut came = Transferred::default();
        let outlay = match told {
            Told::Made(transfer) => Outlay::Paid { reference: None, transfer: Some(transfer) },
            Told::Refused(reason) => Outlay::Failed { reason, transfer: None },
            Told::Short if asked.asking.short >= SHORT_MAX => {
                let reason = "There was not enough money at the processor".to_owned();
                Outlay::Failed { reason, transfer: None }
            }
            Told::Short | Told::Unmade | Told::KeyUsed(_) | Told::Unanswered(_) | Told::Unasked(_) => {
                came.waiting = 1;
                self.try_again(asked, &told).await?;
                return Ok(came);
            }
        };
        let is_failed = matches!(outlay, Outlay::Failed { .. });
        for _ in 0..TRIES_MAX {
            let shown = match self.payout(account, id).await {
                Ok(shown) => shown,
                Err(Refusal::Read(error)) => return Err(error.into()),
                Err(_) => return Ok(came),
            };
            if shown.status != PayoutStatus::Processing {
                return Ok(came);
            }
            let settled = self.settle(&shown, outlay.clone(), &nothing_beside::<ShownPayout>).await;
            match settled {
                Ok(None) => {}
                Ok(Some(_)) => {
                    came.failed = usize::from(is_failed);
                    came.paid = usize::from(!is_failed);
                    return Ok(came);
                }
                Err(Refusal::Read(error)) => return Err(error.into()),
                Err(Refusal::Commit(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::error!(payout = %id, %refusal, "a transfer cannot be booked; it is asked for again");
                    came.waiting = 1;
                    return Ok(came);
                }
            }
        }
        Err(Fault::Contended)
    }

    /// Writes when the processor is asked again; gives the payout as it is then, unless it was changed meanwhile.
    async fn try_again(&self, asked: &Payout, told: &Told) -> Result<Option<Payout>, Fault> {
        let now = self.now();
        let mut after = asked.clone();
        let asking = &mut after.asking;
        asking.not_before = Some(backoff(now, asking.tries));
        match told {
            Told::Short => {
                // Nothing was made, for good: another key the next time.
                asking.short = asking.short.saturating_add(1);
                asking.next_attempt();
                asking.not_before = now.checked_add(SHORT_WAIT).ok();
            }
            Told::Unmade if Order::of(asked).is_old(now) => {
                asking.next_attempt();
                asking.not_before = None;
            }
            Told::Unasked(_) => {
                asking.not_before = now.checked_add(UNASKED_WAIT).ok();
                asking.tries = asking.tries.saturating_sub(1);
                if asking.tries == 0 && asking.doubt.is_none() {
                    // Nothing is on its way.
                    asking.since = None;
                }
            }
            Told::KeyUsed(_) => asking.doubt = Some(Doubt::KeyUsed),
            Told::Unmade | Told::Made(_) | Told::Refused(_) | Told::Unanswered(_) => {}
        }
        if let Some(why) = obstacle(told) {
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
fn doubted(payout: &Payout, hold: Option<Hold>, now: Timestamp) -> Payout {
    let mut payout = payout.clone();
    let is_restored = hold.is_some_and(|Hold { since: restored_at, .. }| {
        let is_lately = now.duration_since(restored_at) < RESTORE_COMPARED;
        is_lately && payout.asking.since.is_none_or(|asked_at| asked_at < restored_at)
    });
    if is_restored && payout.asking.doubt.is_none() {
        payout.asking.doubt = Some(Doubt::StoreRestored);
    }
    payout
}

/// Why a transfer is not made yet, in words for the owner.
fn obstacle(told: &Told) -> Option<&str> {
    match told {
        Told::Unanswered(why) | Told::Unasked(why) | Told::KeyUsed(why) => Some(why),
        Told::Short => Some("there is not enough money at the processor; it is asked again in a day"),
        Told::Unmade | Told::Made(_) | Told::Refused(_) => None,
    }
}

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 100;

impl Transferred {
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
fn wake(now: Timestamp, is_silent: bool) -> Timestamp {
    if is_silent { backoff(now, 1) } else { now }
}

/// The processor of a program: where it is asked, and with which key.
pub(super) struct Processor {
    api_base: String,
    key: String,
}

impl Processor {
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("authorization", format!("Bearer {}", self.key)), ("accept", "application/json".to_owned())]
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.api_base.trim_end_matches('/'))
    }
}

impl Office {
    /// The processor that pays a payout; none where no key was given, or where another account than the connected one was
    /// asked and may have paid.
    async fn processor_of(&self, order: &Order) -> Result<Processor, Told> {
        let found = program::get(self.store(), order.payout.account).await;
        let found = found.map_err(|error| Told::Unasked(error.to_string()))?;
        let asked = found.and_then(|program| {
            let processor = program.processor?;
            let key = self.open(&program.id.to_bytes(), &processor.restricted_key?)?;
            Some((processor.account_id, Processor { api_base: processor.api_base, key }))
        });
        let none = || Told::Unasked("there is no key to ask the processor with".to_owned());
        let (account, processor) = asked.ok_or_else(none)?;
        let first = &order.payout.asking.of;
        if first.is_some() && *first != account {
            let why = "another account of the processor was asked for it, and has not answered";
            return Err(Told::Unasked(why.to_owned()));
        }
        Ok(processor)
    }
}

impl Pays for Office {
    async fn transfers_to(&self, order: &Order) -> Result<Vec<Transfer>, Told> {
        let processor = self.processor_of(order).await?;
        self.list_transfers_to(&order.payout, &processor).await
    }

    async fn transfer(&self, order: &Order) -> Told {
        let processor = match self.processor_of(order).await {
            Ok(processor) => processor,
            Err(told) => return told,
        };
        let mut headers = processor.headers();
        headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        headers.push(("idempotency-key", order.key.clone()));
        let post = Post {
            url: processor.url("/v1/transfers"),
            headers,
            body: order.form().into(),
            timeout: TIMEOUT,
            again: Again::Harmless,
        };
        match self.hall.submit(post, OBJECT_BYTES_MAX).await {
            Ok(Answer { status, body, .. }) => told(status, &body),
            Err(error) => unheard(&error),
        }
    }

    async fn look_up(&self, orders: &[Order]) -> Vec<Told> {
        let mut lookup = Lookup::default();
        let mut processors = Vec::new();
        for order in orders {
            processors.push(self.processor_of(order).await);
        }
        // The run of all of them is one, and so is its program.
        if let (Some(Ok(processor)), Some(order)) =
            (processors.iter().find(|one| one.is_ok()), orders.first())
        {
            let wanted = orders.iter().map(|order| order.payout.id).collect();
            lookup = self.look_up_run((order.payout.account, order.payout.run), processor, wanted).await;
        }
        let told = orders.iter().zip(processors);
        told.map(|(order, processor)| processor.map_or_else(|told| told, |_| lookup.told(order.payout.id)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let refused = |text: &str| Told::Refused(text.to_owned());
        let unanswered = |text: &str| Told::Unanswered(text.to_owned());
        for (status, body, wanted) in [
            (200, r#"{"id":"tr_1","object":"transfer"}"#, Told::Made("tr_1".to_owned())),
            (200, "{", unanswered("the answer has no id")),
            (200, r#"{"id":""}"#, unanswered("the answer has no id")),
            (400, r#"{"error":{"code":"balance_insufficient","message":"too little"}}"#, Told::Short),
            (
                400,
                r#"{"error":{"code":"x","message":"No such destination"}}"#,
                refused("No such destination"),
            ),
            (402, r#"{"error":{"code":"declined"}}"#, refused("declined")),
            (
                400,
                r#"{"error":{"type":"idempotency_error","message":"Keys can only be used once"}}"#,
                Told::KeyUsed("Keys can only be used once".to_owned()),
            ),
            (404, "", refused("status 404")),
            (401, "", Told::Unasked("status 401".to_owned())),
            (403, r#"{"error":{"message":"no permission"}}"#, Told::Unasked("no permission".to_owned())),
            (409, r#"{"error":{"message":"key in use"}}"#, unanswered("key in use")),
            (429, "", unanswered("status 429")),
            (500, "<html>", unanswered("status 500")),
            (503, "", unanswered("status 503")),
            (302, "", unanswered("status 302")),
        ] {
            assert_eq!(told(status, body.as_bytes()), wanted, "{status} {body}");
        }
    }

    #[test]
    fn waits_grow() {
        let now = Timestamp::UNIX_EPOCH;
        let waits: Vec<i64> = [0, 1, 2, 6, 7, u32::MAX].map(|tries| backoff(now, tries).as_second()).to_vec();
        assert_eq!(waits, [30, 30, 120, 7_200, 7_200, 7_200]);
    }
}
