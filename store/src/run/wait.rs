//! Runs that wait for an event: a key for each key of the person that the event must be about.
//!
//! ```text
//! RunWait · account · event · person · automation · run  ─►  (nothing)
//! ```

use mail::automation::person::PersonKey;
use mail::automation::run::Run;
use mail::id::{AccountId, AutomationId, RunId};

use super::About;
use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyReader, Space, after, key};
use crate::row;

fn keys(run: &Run) -> impl Iterator<Item = Key> + '_ {
    let waiting =
        run.waiting.iter().filter_map(|waiting| Some((waiting.event.as_deref()?, &waiting.persons)));
    waiting.flat_map(move |(event, persons)| {
        persons.iter().map(move |person| {
            key(Space::RunWait)
                .account(run.account)
                .text(event)
                .fixed(*person)
                .id(run.automation.to_bytes())
                .id(run.id.to_bytes())
                .build()
        })
    })
}

pub(super) fn update(batch: &mut Batch, before: &Run, after: &Run) {
    forget(batch, before);
    for at in keys(after) {
        batch.put(at, Value::new());
    }
}

pub(super) fn forget(batch: &mut Batch, run: &Run) {
    for at in keys(run) {
        batch.delete(at);
    }
}

/// The runs that wait for an event about a person, after a key, at most `limit`, each with its key.
///
/// # Errors
/// The store cannot be read.
pub async fn for_event(
    store: &Store,
    (account, event, person): (AccountId, &str, PersonKey),
    behind: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Key, About)>, ReadError> {
    let mut range = key(Space::RunWait).account(account).text(event).fixed(person).range();
    if let Some(behind) = behind {
        range.start = after(behind).max(range.start);
    }
    let rows = store.scan(range, Order::Ascending, limit).await?;
    let read = |at: Key| {
        let mut reader = KeyReader::new(Space::RunWait, &at)?;
        let (account, _event, _person) = (reader.account()?, reader.text()?, reader.id()?);
        let automation = AutomationId::from_bytes(reader.id()?);
        let run = RunId::from_bytes(reader.id()?);
        Ok((at, (account, automation, run)))
    };
    rows.into_iter()
        .map(|(at, _)| read(at).map_err(|error: crate::key::KeyError| row::damaged(error)))
        .collect()
}
