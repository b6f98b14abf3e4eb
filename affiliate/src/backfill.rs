//! Back-filling: the processor is asked for what happened before its events came here, and what it answers goes the way
//! of its events.
//!
//! ```text
//! window of time ─► checkouts, customers, subscriptions, invoices, refunded charges, disputes, each oldest first
//!                     ─► an event's body of each ─► [Ledger::take] ─► … ─► the next window, when this one is booked
//! ```
//!
//! Lists come newest first, and what is a customer's first invoice goes by what is heard first: so time is gone through in
//! windows, each of which is read whole and turned round. A window that was cut off is read again, which changes nothing.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};
use mail::affiliate::backfill::{Backfill, BackfillStatus};
use mail::affiliate::program::{Mode, Program};
use mail::id::{AccountId, BackfillId};
use serde_json::Value;
use store::affiliate::{backfill, commission, program};
use store::engine::Batch;

use crate::comparing::dispute_kind;
use crate::ledger::{Answer, Fault, Ledger};
use crate::office::{Committed, Office};
use crate::processor::{Page, event_about};
use crate::refusal::{Noun, Obstacle, Refusal};

/// How often is looked for one to go on with.
const EVERY: SignedDuration = SignedDuration::from_secs(2);
/// Objects of a page.
const PAGE_OBJECTS: usize = 100;
/// Pages of one list in a window, unless the window is as short as can be.
const PAGES_MAX: usize = 5;
/// Pages of the shortest window.
const PAGES_MAX_OF_SHORTEST: usize = 100;
/// Before this nobody was paid by the processor.
const BEGINNING: i64 = 1_293_840_000;
/// Back-fills gone on with at once.
const OPEN_MAX: usize = 100;

/// Why a window is not read.
enum Unread {
    /// More happened in it than is looked at at once.
    TooMuch,
    /// The processor does not answer as it must, or the store cannot be read or written.
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for Unread {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Whom is asked.
struct Asked<'a> {
    program: &'a Program,
    api_base: &'a str,
    key: String,
    /// From when, and until when.
    window: (Timestamp, Timestamp),
    pages_max: usize,
}

impl Office {
    /// Has the past be read into the ledger, from `since` on: from the beginning, when that is not said. With `silent`
    /// nobody is told of what is written.
    ///
    /// # Errors
    /// The processor cannot be asked, or a back-fill goes on; [`Refusal`].
    pub async fn back_fill(
        &self,
        account: AccountId,
        (since, silent): (Option<Timestamp>, bool),
    ) -> Result<Backfill, Refusal> {
        let program = self.program(account).await?;
        let processor = program.processor.as_ref().ok_or(Obstacle::NotConnected)?;
        if processor.restricted_key.is_none() {
            return Err(Obstacle::OnlyListening.into());
        }
        if !program.missing().is_empty() {
            return Err(Refusal::Steps(program.missing()));
        }
        let now = self.now();
        let since = since.or_else(|| Timestamp::from_second(BEGINNING).ok()).unwrap_or(now);
        let new = Backfill::new((BackfillId::new(now, self.random()), account), since, silent, now);
        let mut batch = Batch::intake();
        backfill::create(&mut batch, &new);
        match self.commit(batch).await? {
            Committed::Done => Ok(new),
            Committed::Beaten(_) => Err(Obstacle::BackfillGoesOn.into()),
        }
    }

    /// A back-fill.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn backfill(&self, account: AccountId, id: BackfillId) -> Result<Backfill, Refusal> {
        backfill::get(self.store(), account, id).await?.ok_or(Refusal::Unknown(Noun::Backfill))
    }

    /// Goes on with back-fills as long as it is polled: those of this node's partitions.
    pub async fn keep_backfilling(&self) {
        loop {
            let now = self.now();
            let mut went_on = false;
            for partitions in self.hall.partitions() {
                match self.backfill_some(partitions, now).await {
                    Ok(some) => went_on |= some,
                    Err(refusal) => tracing::warn!(%refusal, "back-fills cannot be gone on with"),
                }
            }
            if !went_on {
                self.hall.clock().sleep_until(now.checked_add(EVERY).unwrap_or(Timestamp::MAX)).await;
            }
        }
    }

    /// Reads a window of each back-fill of these partitions. Whether there was one.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn backfill_some(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<bool, Refusal> {
        let mut went_on = false;
        for before in backfill::open(self.store(), partitions, OPEN_MAX).await? {
            if before.not_before.is_some_and(|then| then > now) {
                continue;
            }
            went_on = true;
            let mut after = before.clone();
            match self.read_window(&before).await {
                Ok(counts) => after.went_on(counts),
                Err(Unread::TooMuch) => {
                    after.shorten();
                }
                Err(Unread::Refused(Refusal::Read(error))) => return Err(error.into()),
                Err(Unread::Refused(Refusal::Commit(error))) => return Err(error.into()),
                Err(Unread::Refused(refusal)) => after.fail(&refusal.to_string(), now),
            }
            let mut batch = Batch::progress();
            backfill::update(&mut batch, &before, &after);
            // Who was beaten to it has nothing to add.
            self.commit(batch).await?;
            if after.status != BackfillStatus::Running {
                tracing::info!(account = %after.account, status = after.status.as_str(), "a back-fill ended");
            }
        }
        Ok(went_on)
    }

    /// Reads a window into the ledger: how many objects, paid invoices and new lines that were.
    async fn read_window(&self, backfill: &Backfill) -> Result<(usize, u64, u64), Unread> {
        let program = program::get(self.store(), backfill.account).await?.ok_or(Refusal::NotSetUp)?;
        let processor = program.processor.as_ref().ok_or(Refusal::Obstacle(Obstacle::NotConnected))?;
        let sealed = processor.restricted_key.as_ref().ok_or(Refusal::Obstacle(Obstacle::OnlyListening))?;
        let key = self.open(&program.id.to_bytes(), sealed).ok_or(Refusal::Seal)?;
        let is_shortest = !backfill.clone().shorten();
        let asked = Asked {
            program: &program,
            api_base: &processor.api_base,
            key,
            window: backfill.window(),
            pages_max: if is_shortest { PAGES_MAX_OF_SHORTEST } else { PAGES_MAX },
        };
        // All is asked for before anything is booked: a window that is too long is cut, not read twice.
        let sessions = self.listed(&asked, "checkout/sessions", "").await?;
        let subscriptions = self.listed(&asked, "subscriptions", "&status=all").await?;
        let invoices = self.listed(&asked, "invoices", "&status=paid").await?;
        let charges = self.listed(&asked, "charges", "").await?;
        let disputes = self.listed(&asked, "disputes", "").await?;
        let objects = sessions.len() + subscriptions.len() + invoices.len() + charges.len() + disputes.len();
        let ledger = if backfill.silent { self.ledger().quietly() } else { self.ledger() };
        let teller = Teller { office: self, ledger, backfill, mode: program.settings.mode };
        for session in sessions.iter().filter(|session| session["status"] == "complete") {
            teller.tell("checkout.session.completed", session).await?;
        }
        let (mut customers, mut lines) = (BTreeSet::new(), 0);
        for invoice in &invoices {
            if let Some(customer) = id_in(&invoice["customer"]).filter(|id| customers.insert(id.clone())) {
                let path = format!("/v1/customers/{}", escaped(&customer));
                let customer = self.ask((asked.api_base, &asked.key), &path).await?;
                teller.tell("customer.updated", &customer).await?;
            }
            lines += teller.tell_invoice(invoice).await?;
        }
        for subscription in &subscriptions {
            teller.tell("customer.subscription.updated", subscription).await?;
        }
        for charge in charges.iter().filter(|charge| charge["amount_refunded"].as_i64().unwrap_or(0) > 0) {
            teller.tell("charge.refunded", charge).await?;
        }
        for dispute in &disputes {
            teller.tell(dispute_kind(dispute), dispute).await?;
        }
        Ok((objects, invoices.len() as u64, lines))
    }

    /// All objects of a list that were created in the window, oldest first.
    async fn listed(&self, asked: &Asked<'_>, list: &str, also: &str) -> Result<Vec<Value>, Unread> {
        let (from, until) = asked.window;
        let (mut objects, mut after) = (Vec::new(), String::new());
        for _ in 0..asked.pages_max {
            let path = format!(
                "/v1/{list}?limit={PAGE_OBJECTS}&created%5Bgte%5D={}&created%5Blt%5D={}{also}{after}",
                from.as_second(),
                until.as_second(),
            );
            let answer = self.ask((asked.api_base, &asked.key), &path).await?;
            let page = Page::from_value(answer)
                .map_err(|error| Refusal::Upstream(format!("answered with no list of {list}: {error}")))?;
            let next = page.next().map(escaped);
            objects.extend(page.objects);
            match next {
                Some(next) => after = format!("&starting_after={next}"),
                None => {
                    objects.reverse();
                    return Ok(objects);
                }
            }
        }
        tracing::debug!(program = %asked.program.id, list, "a window of a back-fill is cut");
        Err(Unread::TooMuch)
    }
}

/// Tells the ledger of objects as if they came with events.
struct Teller<'a> {
    office: &'a Office,
    ledger: Ledger,
    backfill: &'a Backfill,
    mode: Mode,
}

impl Teller<'_> {
    /// An object that cannot be worked with is kept among the events that failed, and goes on from there. Where the store
    /// fails nothing is kept: then the window is read again.
    async fn tell(&self, kind: &str, object: &Value) -> Result<(), Refusal> {
        let Some(id) = object["id"].as_str() else {
            return Err(Refusal::Upstream("answered with an object without an id".to_owned()));
        };
        let id = format!("{}_{id}", self.backfill.id);
        // As of when it was asked for.
        let event = event_about(object, (&id, kind), (self.backfill.until, self.mode));
        match self.ledger.take(self.backfill.account, event.to_string().as_bytes()).await {
            Answer::Failed(fault @ (Fault::Read(_) | Fault::Commit(_) | Fault::Contended)) => {
                Err(fault.into())
            }
            _ => Ok(()),
        }
    }

    /// How many lines were written for it.
    async fn tell_invoice(&self, invoice: &Value) -> Result<u64, Refusal> {
        let id = invoice["id"].as_str().unwrap_or_default();
        let (store, account) = (self.office.store(), self.backfill.account);
        let before = commission::of_invoice(store, account, id).await?.len();
        self.tell("invoice.paid", invoice).await?;
        let after = commission::of_invoice(store, account, id).await?.len();
        Ok(after.saturating_sub(before) as u64)
    }
}

/// An id, or that of the object that stands in its place.
fn id_in(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value["id"].as_str()).map(str::to_owned)
}

/// An id in an address: whatever the processor sent, it stays one segment or value (RFC 3986 2.1).
pub(crate) fn escaped(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}
