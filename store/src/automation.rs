//! Automations: one row each, one row for each version, and an index of the events that trigger them.
//!
//! ```text
//! Automation        · account · id                 ─►  the automation
//! AutomationVersion · account · id · number        ─►  its definition
//! AutomationTrigger · account · event · role · id  ─►  (empty)
//! ```
//!
//! Only active automations start runs, so start triggers are added and removed with activation. Triggers that cancel or
//! resume runs of any version remain until the automation is deleted.

use std::collections::HashSet;

use jiff::Timestamp;
use model::automation::{Automation, AutomationDefinition, AutomationVersion, parse};
use model::id::{AccountId, AutomationId};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::rows;

/// Maximum number of triggers of an account for which [`list_trigger_events`] returns the set of events.
const NAMES_MAX: usize = 10_000;
/// Maximum number of triggers by one event: each automation in up to three roles.
const TRIGGERED_MAX: usize = 3 * model::automation::AUTOMATIONS_MAX;

stored!(Automation);

/// A stored version. The definition is the JSON that the API shows.
#[derive(Serialize, Deserialize)]
pub(crate) struct AutomationVersionRow {
    number: u32,
    definition: Json,
    created_at: Timestamp,
}
stored!(AutomationVersionRow);

/// An automation with the row it was read from, which updates check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAutomation {
    pub automation: Automation,
    row: Value,
}

impl StoredAutomation {
    /// Makes the commit conflict if the automation has changed since it was read.
    pub fn check(&self, batch: &mut Batch) {
        batch.check(key_of(self.automation.account, self.automation.id), Some(self.row.clone()));
    }
}

/// Role of an event for an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TriggerRole {
    /// The event starts a run.
    Starts = 0,
    /// The event cancels runs.
    Cancels = 1,
    /// Runs may wait for the event.
    Awaits = 2,
}

impl TriggerRole {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Starts),
            1 => Some(Self::Cancels),
            2 => Some(Self::Awaits),
            _ => None,
        }
    }
}

fn key_of(account: AccountId, id: AutomationId) -> Key {
    key(Space::Automation).account(account).id(id.to_bytes()).build()
}

fn version_key(account: AccountId, id: AutomationId, number: u32) -> Key {
    key(Space::AutomationVersion).account(account).id(id.to_bytes()).u32(number).build()
}

fn trigger_key(account: AccountId, event: &str, role: TriggerRole, id: AutomationId) -> Key {
    key(Space::AutomationTrigger).account(account).text(event).u8(role as u8).id(id.to_bytes()).build()
}

pub fn create(batch: &mut Batch, automation: &Automation) {
    batch.put_fresh(key_of(automation.account, automation.id), codec::encode(automation));
}

pub fn put_version(batch: &mut Batch, automation: &Automation, version: &AutomationVersion) {
    let row = AutomationVersionRow {
        number: version.number,
        definition: version.definition.to_json(),
        created_at: version.created_at,
    };
    batch.put(version_key(automation.account, automation.id, version.number), codec::encode(&row));
}

/// Updates an automation. The commit conflicts if the stored row has changed since it was read.
pub fn update(batch: &mut Batch, before: &StoredAutomation, after: &Automation) {
    before.check(batch);
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Deletes the automation's row. A job deletes its versions, triggers and runs later.
pub fn delete(batch: &mut Batch, before: &StoredAutomation) {
    before.check(batch);
    batch.delete(key_of(before.automation.account, before.automation.id));
}

/// Adds the triggers of a definition: start, cancel and awaited events.
pub fn add_triggers(batch: &mut Batch, automation: &Automation, definition: &AutomationDefinition) {
    let mut put = |event: &str, role| {
        batch.put(trigger_key(automation.account, event, role, automation.id), Value::new());
    };
    put(&definition.trigger.event, TriggerRole::Starts);
    definition.trigger.cancel_on_events.iter().for_each(|event| put(event, TriggerRole::Cancels));
    definition.awaited_events().for_each(|event| put(event, TriggerRole::Awaits));
}

/// Removes the start trigger, so that no event starts a new run.
pub fn remove_start_trigger(batch: &mut Batch, automation: &Automation, definition: &AutomationDefinition) {
    batch.delete(trigger_key(automation.account, &definition.trigger.event, TriggerRole::Starts, automation.id));
}

/// Makes the commit conflict if the event no longer starts runs of the automation.
pub fn check_start_trigger(batch: &mut Batch, account: AccountId, id: AutomationId, event: &str) {
    batch.check(trigger_key(account, event, TriggerRole::Starts, id), Some(Value::new()));
}

/// Deletes up to `limit` versions of an automation and their triggers. Returns whether more remain.
pub async fn purge_versions(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    id: AutomationId,
    limit: usize,
) -> Result<bool> {
    let range = key(Space::AutomationVersion).account(account).id(id.to_bytes()).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (row_key, row) in &rows {
        // A version that cannot be decoded has no known triggers; delete only its row.
        if let Ok(version) = decode_version(row) {
            let definition = &version.definition;
            let mut forget = |event: &str, role| {
                batch.delete(trigger_key(account, event, role, id));
            };
            forget(&definition.trigger.event, TriggerRole::Starts);
            definition.trigger.cancel_on_events.iter().for_each(|event| forget(event, TriggerRole::Cancels));
            definition.awaited_events().for_each(|event| forget(event, TriggerRole::Awaits));
        }
        batch.delete(row_key.clone());
    }
    Ok(rows.len() == limit)
}

pub async fn get(store: &Store, account: AccountId, id: AutomationId) -> Result<Option<StoredAutomation>> {
    store.get(&key_of(account, id)).await?.map(decode_stored).transpose()
}

fn decode_stored(row: Value) -> Result<StoredAutomation> {
    Ok(StoredAutomation { automation: codec::decode(&row)?, row })
}

/// Reads several automations, in the order of `ids`; missing ones are left out.
pub async fn get_many(store: &Store, account: AccountId, ids: &[AutomationId]) -> Result<Vec<StoredAutomation>> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    store.get_many(&keys).await?.into_iter().flatten().map(decode_stored).collect()
}

pub async fn get_version(
    store: &Store,
    account: AccountId,
    id: AutomationId,
    number: u32,
) -> Result<Option<AutomationVersion>> {
    store.get(&version_key(account, id, number)).await?.map(|row| decode_version(&row)).transpose()
}

fn decode_version(row: &Value) -> Result<AutomationVersion> {
    let AutomationVersionRow { number, definition, created_at } = codec::decode(row)?;
    let definition = parse::parse_stored(&definition).map_err(codec::damaged)?;
    Ok(AutomationVersion { number, definition, created_at })
}

/// Lists the versions of an automation before a number, newest first, at most `limit`.
pub async fn list_versions(
    store: &Store,
    account: AccountId,
    id: AutomationId,
    before: Option<u32>,
    limit: usize,
) -> Result<Vec<AutomationVersion>> {
    let mut range = key(Space::AutomationVersion).account(account).id(id.to_bytes()).range();
    if let Some(before) = before {
        range.end = version_key(account, id, before);
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| decode_version(row)).collect()
}

/// Lists an account's automations that pass, newest first, before one of them. Returns the position of the next page as
/// well.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<AutomationId>,
    limit: usize,
    passes: impl Fn(&Automation) -> bool,
) -> Result<(Vec<Automation>, Option<AutomationId>)> {
    let range = key(Space::Automation).account(account).range_before(before.map(AutomationId::to_bytes));
    rows::list_passing(store, range, limit, passes, |automation: &Automation| automation.id).await
}

/// Counts the automations of an account, up to `limit`.
pub async fn count(store: &Store, account: AccountId, limit: usize) -> Result<usize> {
    let range = key(Space::Automation).account(account).range();
    rows::count(store, range, limit).await
}

/// Lists the automations that an event triggers, each with its role.
pub async fn list_triggered(
    store: &Store,
    account: AccountId,
    event: &str,
) -> Result<Vec<(TriggerRole, AutomationId)>> {
    let range = key(Space::AutomationTrigger).account(account).text(event).range();
    let rows = store.scan(range, ScanOrder::Ascending, TRIGGERED_MAX).await?;
    let read = |(at, _): &(Key, Value)| {
        let (_, role, id) = read_trigger_key(at)?;
        Ok((role, id))
    };
    rows.iter().map(read).collect()
}

/// The events that trigger any automation of an account; `None` if there are too many to cache.
pub async fn list_trigger_events(store: &Store, account: AccountId) -> Result<Option<HashSet<String>>> {
    let range = key(Space::AutomationTrigger).account(account).range();
    let rows = store.scan(range, ScanOrder::Ascending, NAMES_MAX).await?;
    if rows.len() == NAMES_MAX {
        return Ok(None);
    }
    rows.iter().map(|(at, _)| Ok(read_trigger_key(at)?.0)).collect::<Result<_, _>>().map(Some)
}

fn read_trigger_key(at: &Key) -> Result<(String, TriggerRole, AutomationId)> {
    let mut reader = KeyReader::new(Space::AutomationTrigger, at)?;
    let _account = reader.account()?;
    let event = reader.text()?;
    let role = reader.u8()?;
    let id = reader.id().map(AutomationId::from_bytes)?;
    let role = TriggerRole::from_number(role).ok_or_else(|| codec::damaged("unknown trigger role of an automation"))?;
    Ok((event, role, id))
}
