//! Telling: what follows from events, after the commit that made them true.
//!
//! ```text
//! event + outbox key ─► gather for a moment ─►[ usage + catalog + metrics + stream + deliveries - outbox keys ]
//! ```
//!
//! Each node tells the events in its own partitions; the commit is fenced like a settlement, so that every
//! event is told once. What is behind does no harm but lateness: it lies on disk.

pub(crate) mod fresh;
mod metric;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::event::Event;
use mail::id::AccountId;
use mail::usage::{Period, counted};
use store::engine::{Batch, CommitError, Key, ReadError};
use store::outbox::Untold;
use store::usage::Additions;
use thiserror::Error;
use tokio::time::Instant;

use self::subjects::Subjects;
use crate::webhooks::make::Audience;
use crate::worker::Worker;

/// How long events are gathered before they are told: an email that is delivered at once is told of in one
/// commit, from beginning to end.
const GATHER: Duration = Duration::from_millis(100);
/// The same where somebody waits for them: an endpoint, or who follows the stream.
const GATHER_FOR_LISTENERS: Duration = Duration::from_millis(3);
/// Events told in one commit.
const EVENTS_MAX: usize = 1_000;
/// How often is looked for events that came into our partitions from elsewhere, or could not be told.
const LOOK: Duration = Duration::from_secs(1);
/// For how many times as long as a round took is rested, while there is more to tell.
const REST: u32 = 3;
/// The same where somebody waits.
const REST_FOR_LISTENERS: u32 = 1;
/// Commits tried at once, when other nodes write the same rows.
const TRIES_MAX: usize = 20;

/// How far the telling of each run of partitions is, by its first: what is taken away lies in the way of who begins
/// there again, until the store has forgotten it.
type Places = BTreeMap<u16, Option<Key>>;

/// Why events could not be told; they are told later.
#[derive(Debug, Error)]
pub enum TellError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Keeps telling until the worker stops.
    pub(crate) async fn keep_telling(self: Arc<Self>) {
        let mut failing = false;
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.untold.notified() => {}
                () = tokio::time::sleep(LOOK), if self.store.is_shared() => {}
                () = self.stop.cancelled() => return,
            }
            let listened = self.webhooks.is_listened_to(self.clock.now());
            tokio::time::sleep(if listened { GATHER_FOR_LISTENERS } else { GATHER }).await;
            let told = self.tell_at_leisure().await;
            let failed_before = std::mem::replace(&mut failing, told.is_err());
            if let Err(error) = told {
                // Said once, however long it lasts.
                if !failed_before {
                    store::warn_unless_away!(self.store, %error, "events cannot be told at the moment");
                }
                tokio::time::sleep(LOOK).await;
                self.untold.notify_one();
            }
        }
    }

    /// Tells all events, and rests after each round for longer than it took: who hands in mail goes first.
    async fn tell_at_leisure(&self) -> Result<(), TellError> {
        let mut places = Places::default();
        loop {
            let (begun, at) = (Instant::now(), self.clock.now());
            if !self.tell_round(&mut places).await? {
                self.told_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
                return Ok(());
            }
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let listened = self.webhooks.is_listened_to(self.clock.now());
            let rest = if listened { REST_FOR_LISTENERS } else { REST };
            tokio::time::sleep(begun.elapsed() * rest).await;
        }
    }

    /// Tells some events of each run of our partitions. Says whether there may be more.
    async fn tell_round(&self, places: &mut Places) -> Result<bool, TellError> {
        let _telling = self.telling.lock().await;
        let mut more = false;
        for partitions in self.leases.runs() {
            let after = places.entry(*partitions.start()).or_default();
            more |= self.tell_some(partitions, after).await?;
        }
        Ok(more)
    }

    /// Tells all events that are in the outboxes of our partitions when this is called; of those that come meanwhile, some.
    ///
    /// # Errors
    /// [`TellError`].
    pub fn tell(&self) -> BoxFuture<'_, Result<(), TellError>> {
        Box::pin(async move {
            let at = self.clock.now();
            for partitions in self.leases.runs() {
                let mut after = None;
                loop {
                    let _telling = self.telling.lock().await;
                    if !self.tell_some(partitions.clone(), &mut after).await? || after.is_none() {
                        break;
                    }
                }
            }
            self.told_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
            Ok(())
        })
    }

    /// All events in our partitions that are older than this were told; 1970 before it is known.
    pub(crate) fn told_until(&self) -> Timestamp {
        Timestamp::from_millisecond(self.told_until_ms.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Tells what the time before this one has left behind; until that is done, whoever has a cap waits
    /// ([`crate::meter`]).
    pub(crate) async fn catch_up(self: Arc<Self>) {
        while let Err(error) = self.tell().await {
            store::warn_unless_away!(self.store, %error, "events of the time before cannot be told yet");
            tokio::time::sleep(LOOK).await;
        }
        self.meter.caught_up();
    }

    /// Tells some of the events after a place, and moves it. Says whether there may be more: after it, or, at the end,
    /// from the beginning on.
    async fn tell_some(
        &self,
        partitions: RangeInclusive<u16>,
        after: &mut Option<Key>,
    ) -> Result<bool, TellError> {
        for _ in 0..TRIES_MAX {
            let known = |id| self.fresh.take(id);
            let place = (after.as_ref(), EVENTS_MAX);
            let untold = store::outbox::read(&self.store, partitions.clone(), place, &known).await?;
            if untold.is_empty() {
                return Ok(after.take().is_some());
            }
            let (subjects, count) = Subjects::read((&self.store, &self.fresh), &untold).await?;
            let told = untold.get(..count).unwrap_or_default();
            let events = told.iter().filter_map(|one| one.event.as_ref());
            let audience = self.audience(&accounts(told), events).await?;
            let count = audience.room_for(untold.iter().take(count).map(|one| one.event.as_ref()));
            let some = untold.get(..count).unwrap_or_default();
            match self.commit_told(some, &subjects, &audience).await {
                Ok(true) => {
                    let is_all = after.is_none() && count == untold.len() && count < EVENTS_MAX;
                    *after = some.last().filter(|_| !is_all).map(|last| last.key().clone());
                    return Ok(!is_all);
                }
                Ok(false) => return Ok(false),
                // Another node counted for the same account, or has the partition by now; or an email was
                // forgotten meanwhile.
                Err(TellError::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// False: some of them are another node's by now.
    async fn commit_told(
        &self,
        untold: &[Untold],
        subjects: &Subjects,
        audience: &Audience,
    ) -> Result<bool, TellError> {
        let mut batch = Batch::progress();
        let events = || untold.iter().filter_map(|one| one.event.as_ref());
        let email_of = |event| subjects.of(event).map(|about| &*about.email);
        let about = events().map(|event| (event, email_of(event)));
        let Some(made) = self.make_deliveries(&mut batch, audience, about) else { return Ok(false) };
        let partitions = untold.iter().map(|one| one.partition).chain(made.partitions.iter().copied());
        if !self.leases.fence_partitions(&mut batch, partitions) {
            return Ok(false);
        }
        store::stream::append(&self.store, &mut batch, self.clock.now(), events()).await?;
        subjects.list(&self.store, &mut batch).await?;
        store::metric::add(&self.store, &mut batch, &metric::additions(events(), subjects)).await?;
        let heard = self.ears.heed(&self.store, &mut batch, untold, self.clock.now()).await?;
        let additions = additions(events());
        let _books = self.meter.books().await;
        store::usage::add(&self.store, &mut batch, &additions).await?;
        untold.iter().for_each(|one| one.told(&mut batch));
        self.store.commit(batch).await?;
        self.meter.told(events());
        self.deliveries_made(made);
        self.wake_followers(events().map(|event| event.account));
        self.ears.wake_at(&heard, self.clock.now());
        Ok(true)
    }
}

/// Whose events these are, each account once.
fn accounts(untold: &[Untold]) -> Vec<AccountId> {
    let accounts = untold.iter().filter_map(|one| one.event.as_ref()).map(|event| event.account);
    accounts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What events add to the usage.
fn additions<'a>(events: impl Iterator<Item = &'a Event>) -> Additions {
    let mut additions = Additions::new();
    for event in events {
        let Some((at, count)) = counted(event) else { continue };
        for period in [Period::day(at), Period::month(at)] {
            *additions.entry((event.account, period)).or_default() += count;
        }
    }
    additions
}
