//! Sending a batch: each email that can be, in one commit with what is kept under its keys.
//!
//! ```text
//! the batch's key ─► done? replay; done in part? what was answered for good stays
//! each other item ─► its own key: sent before? ─► its template ─► draft ─┐
//! drafts ─► hall ─[ emails + each key's answer + the batch's answer ]─► entries ◄─ what was refused before
//! ```
//!
//! An email that was refused for the moment (429, 503) stays open under the batch's key: the same batch with the
//! same key sends what is open, and nothing else, and answers for all of them.

use std::sync::Arc;

use jiff::Timestamp;
use mail::draft::Draft;
use mail::idempotency::{Operation, Outcome};
use queue::accept::Accepted;
use queue::once::{Holding, Slot};
use queue::refusal::Refusal;
use store::access::Tenant;
use store::engine::Batch;

use super::BatchRequest;
use super::answer::{BatchSent, Entry, outcome};
use crate::emails::send::{SendRequest, Sent};
use crate::idempotency::{self, Once, Turn, conclude, done, keep_doubt};
use crate::problem::Problem;
use crate::room::Room;

/// What is known of an email before the hall has seen it.
enum Fate {
    /// This came of it.
    Told(Result<Entry, Problem>),
    /// It is handed in: with these warnings, and under its own key if it has one.
    HandedIn(Vec<String>, Option<Box<Slot>>),
}

/// A batch on its way.
struct Run<'a> {
    room: &'a Room,
    strict: bool,
    slot: Option<Box<Slot>>,
    fates: Vec<Fate>,
    now: Timestamp,
}

type Outcomes = [Result<Accepted, Refusal>];

impl Run<'_> {
    /// What came of each email. What the hall did not see, for another's sake, is not told of.
    fn told(&self, outcomes: &Outcomes) -> Vec<Result<Entry, Problem>> {
        let mut outcomes = outcomes.iter();
        let told = |(index, fate): (usize, &Fate)| match fate {
            Fate::Told(told) => Some(told.clone()),
            Fate::HandedIn(warnings, _) => outcomes.next().map(|outcome| match outcome {
                Ok(accepted) => Ok(Entry::sent(index, accepted, warnings)),
                Err(refusal) => Err(Problem::of_refusal(refusal.clone(), self.room.upgrade_url())),
            }),
        };
        self.fates.iter().enumerate().filter_map(told).collect()
    }

    /// Of a batch that is sent whole or not at all, why it is not.
    fn refused(&self, outcomes: &Outcomes) -> Option<Problem> {
        let mut outcomes = outcomes.iter();
        let problem = |(index, fate): (usize, &Fate)| match fate {
            Fate::Told(told) => Some((index, told.clone().err()?)),
            Fate::HandedIn(..) => {
                let refusal = outcomes.next()?.clone().err()?;
                Some((index, Problem::of_refusal(refusal, self.room.upgrade_url())))
            }
        };
        let problems: Vec<_> = self.fates.iter().enumerate().filter_map(problem).collect();
        (self.strict && !problems.is_empty()).then(|| Problem::of_batch(&problems))
    }

    /// Keeps what came of it, under the batch's key and those of its emails.
    fn keep(&self, outcomes: &Outcomes, batch: &mut Batch) {
        let handed_in = self.fates.iter().filter_map(|fate| match fate {
            Fate::HandedIn(warnings, slot) => Some((warnings, slot)),
            Fate::Told(_) => None,
        });
        for ((warnings, slot), outcome) in handed_in.zip(outcomes) {
            let kept = match outcome {
                Ok(accepted) => done(&Sent::of(accepted, warnings)),
                Err(Refusal::Unconfirmed { id }) => Outcome::Unconfirmed(*id),
                Err(_) => continue,
            };
            if let Some(slot) = slot {
                slot.keep(batch, kept, self.now);
            }
        }
        let Some(slot) = &self.slot else { return };
        let kept = match in_doubt(outcomes) {
            // Nothing but the doubt is answered then.
            Some(id) if self.strict => Outcome::Unconfirmed(id),
            _ => outcome(&self.told(outcomes)),
        };
        slot.keep(batch, kept, self.now);
    }

    /// The keys that it has at work.
    fn held(&self) -> Vec<Holding> {
        let of_items = self.fates.iter().filter_map(|fate| match fate {
            Fate::HandedIn(_, slot) => slot.as_ref(),
            Fate::Told(_) => None,
        });
        of_items.chain(&self.slot).map(|slot| slot.hold()).collect()
    }
}

/// The first email of which nobody knows whether it was accepted.
fn in_doubt(outcomes: &Outcomes) -> Option<mail::id::EmailId> {
    outcomes.iter().find_map(|outcome| match outcome {
        Err(Refusal::Unconfirmed { id }) => Some(*id),
        _ => None,
    })
}

/// What is known of one email, and its draft if it is to be handed in.
async fn prepare(
    room: &Room,
    tenant: &Tenant,
    (index, item): (usize, Result<SendRequest, Problem>),
) -> (Fate, Option<Draft>) {
    let prepared = async {
        let SendRequest { letter, mut warnings, claim } = item?;
        let slot = match idempotency::look(room, tenant, Operation::SendItem, claim).await? {
            Turn::Done(answer) => {
                return Entry::again(index, &answer).map(|entry| (Fate::Told(Ok(entry)), None));
            }
            Turn::Go(slot) => slot,
        };
        let draft = letter.fill(room, tenant, &mut warnings).await?;
        Ok((Fate::HandedIn(warnings, slot), Some(draft)))
    };
    prepared.await.unwrap_or_else(|problem| (Fate::Told(Err(problem)), None))
}

/// `POST /emails/batch`.
///
/// # Errors
/// What is wrong with the request as a whole; each email's own fate stands in its entry.
pub async fn send_batch(
    room: Arc<Room>,
    tenant: Tenant,
    request: BatchRequest,
) -> Result<Once<BatchSent>, Problem> {
    let BatchRequest { items, strict, claim } = request;
    let slot = match idempotency::look(&room, &tenant, Operation::SendBatch, claim).await? {
        Turn::Done(body) => return Ok(Once::again(body)),
        Turn::Go(slot) => slot,
    };
    let mut settled = match slot.as_ref().and_then(|slot| slot.begun()) {
        Some(before) => BatchSent::settled(before)?.into_iter(),
        None => Vec::new().into_iter(),
    };
    let (mut fates, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items.into_iter().enumerate() {
        let (fate, draft) = match settled.next().flatten() {
            Some(entry) => (Fate::Told(Ok(entry)), None),
            None => prepare(&room, &tenant, item).await,
        };
        fates.push(fate);
        drafts.extend(draft);
    }
    let run = Run { room: &room, strict, slot, fates, now: room.hall.clock().now() };
    if let Some(problem) = run.refused(&[]) {
        return Err(problem);
    }
    let also = |outcomes: &Outcomes, batch: &mut Batch| run.keep(outcomes, batch);
    let result = room.hall.accept_many(&tenant, drafts, strict, &also).await;
    if let Ok(outcomes) = &result {
        if in_doubt(outcomes).is_some() {
            let mut batch = Batch::progress();
            run.keep(outcomes, &mut batch);
            keep_doubt(&room, batch, run.held());
        }
        if let Some(problem) = run.refused(outcomes) {
            return Err(problem);
        }
    }
    // Of several the least: each was counted after the one before.
    let left = result.iter().flatten().flatten().map(|accepted| accepted.left);
    let left = left.min_by_key(|left| (left.day, left.month)).unwrap_or_default();
    let sent = result.map(|outcomes| BatchSent::of(&run.told(&outcomes)));
    Ok(conclude(run.slot.as_deref(), &room, sent).await?.with_quota(left))
}
