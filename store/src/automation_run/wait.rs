//! Runs that wait for an event: one key for each identity of the person that the event must concern.
//!
//! ```text
//! RunWait · account · event · person · automation · run  ─►  (empty)
//! ```

use model::automation::person_key::PersonKey;
use model::automation::run::AutomationRun;
use model::id::{AccountId, AutomationId, RunId};

use super::RunKey;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key, successor};

fn keys(run: &AutomationRun) -> impl Iterator<Item = Key> + '_ {
    let waiting = run.waiting.iter().filter_map(|waiting| Some((waiting.event.as_deref()?, &waiting.persons)));
    waiting.flat_map(move |(event, persons)| {
        persons.iter().map(move |person| {
            key(Space::AutomationRunWait)
                .account(run.account)
                .text(event)
                .fixed(*person)
                .id(run.automation.to_bytes())
                .id(run.id.to_bytes())
                .build()
        })
    })
}

pub(super) fn create(batch: &mut Batch, run: &AutomationRun) {
    for at in keys(run) {
        batch.put(at, Value::new());
    }
}

pub(super) fn update(batch: &mut Batch, before: &AutomationRun, after: &AutomationRun) {
    delete(batch, before);
    create(batch, after);
}

pub(super) fn delete(batch: &mut Batch, run: &AutomationRun) {
    for at in keys(run) {
        batch.delete(at);
    }
}

/// Lists the runs that wait for an event about a person, after a key, at most `limit`, each with its key.
pub async fn list_waiting_for(
    store: &Store,
    account: AccountId,
    event: &str,
    person: PersonKey,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Key, RunKey)>> {
    let mut range = key(Space::AutomationRunWait).account(account).text(event).fixed(person).range();
    if let Some(after) = after {
        range.start = successor(after).max(range.start);
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let read = |(at, _): (Key, Value)| {
        let mut reader = KeyReader::new(Space::AutomationRunWait, &at)?;
        let (account, _event, _person) = (reader.account()?, reader.text()?, reader.id()?);
        let automation = AutomationId::from_bytes(reader.id()?);
        let run = RunId::from_bytes(reader.id()?);
        Ok((at, (account, automation, run)))
    };
    rows.into_iter().map(read).collect()
}
