//! Automations: a row each, a row for each version, and what events they hear.
//!
//! ```text
//! Automation · account · id                        ─►  the automation
//! AutomationVersion · account · id · number        ─►  what it does
//! AutomationHears · account · event · role · id    ─►  (nothing)
//! ```
//!
//! An event starts runs of those that are active alone: their keys come and go with that. What runs of any
//! version may wait for, or be ended by, is heard as long as there is the automation.

use std::collections::HashSet;

use jiff::Timestamp;
use mail::automation::{Automation, AutomationDefinition, AutomationStatus, AutomationVersion, read};
use mail::id::{AccountId, AutomationId};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

/// Rows that one call of [`list`] looks at.
const LOOKED_AT_MAX: usize = 2_000;
/// Rows read at once.
const SCAN_ROWS: usize = 200;
/// Events that an account hears, all of which are remembered; one that hears more is asked each time.
const NAMES_MAX: usize = 10_000;
/// Automations that hear one event, each in up to three ways.
const TRIGGERED_MAX: usize = 3 * mail::automation::AUTOMATIONS_MAX;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Automation")]
struct AutomationRow {
    id: AutomationId,
    account: AccountId,
    name: String,
    status: AutomationStatus,
    version: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activated_at: Option<Timestamp>,
}
stored!(Automation as AutomationRow);

/// A version: its definition as customers see it, which is the one form that there is.
#[derive(Serialize, Deserialize)]
pub(crate) struct AutomationVersionRow {
    number: u32,
    definition: Json,
    created_at: Timestamp,
}
stored!(AutomationVersionRow as AutomationVersionRow);

/// An automation as it was read: what a change of it checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAutomation {
    /// The automation.
    pub automation: Automation,
    row: Value,
}

impl StoredAutomation {
    /// Makes a commit conflict when the automation is not as it was read.
    pub fn check(&self, batch: &mut Batch) {
        batch.check(key_of(self.automation.account, self.automation.id), Some(self.row.clone()));
    }
}

/// In what way an automation hears an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TriggerRole {
    /// It starts a run.
    Starts = 0,
    /// It ends runs.
    Cancels = 1,
    /// Runs may wait for it.
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

/// Writes a new automation.
pub fn create(batch: &mut Batch, automation: &Automation) {
    batch.put_fresh(key_of(automation.account, automation.id), row::encode(automation));
}

/// Writes a version of an automation.
pub fn put_version(batch: &mut Batch, of: &Automation, version: &AutomationVersion) {
    let row = AutomationVersionRow {
        number: version.number,
        definition: version.definition.to_json(),
        created_at: version.created_at,
    };
    batch.put(version_key(of.account, of.id, version.number), row::encode(&row));
}

/// Changes an automation; the commit conflicts when it is no more as it was read.
pub fn update(batch: &mut Batch, before: &StoredAutomation, after: &Automation) {
    before.check(batch);
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// Deletes an automation; what else there is of it is forgotten by and by.
pub fn delete(batch: &mut Batch, before: &StoredAutomation) {
    before.check(batch);
    batch.delete(key_of(before.automation.account, before.automation.id));
}

/// From now on events start runs of it, and its runs hear what they wait for.
pub fn add_triggers(batch: &mut Batch, of: &Automation, definition: &AutomationDefinition) {
    let mut put = |event: &str, role| {
        batch.put(trigger_key(of.account, event, role, of.id), Value::new());
    };
    put(&definition.trigger.event, TriggerRole::Starts);
    definition.trigger.cancel_on_events.iter().for_each(|event| put(event, TriggerRole::Cancels));
    definition.awaited_events().for_each(|event| put(event, TriggerRole::Awaits));
}

/// No event starts a run of it any more.
pub fn remove_start_trigger(batch: &mut Batch, of: &Automation, definition: &AutomationDefinition) {
    batch.delete(trigger_key(of.account, &definition.trigger.event, TriggerRole::Starts, of.id));
}

/// Makes a commit conflict when an event does not start runs of it any more.
pub fn check_start_trigger(batch: &mut Batch, (account, id): (AccountId, AutomationId), event: &str) {
    batch.check(trigger_key(account, event, TriggerRole::Starts, id), Some(Value::new()));
}

/// Forgets versions of an automation and what they hear; says whether there are more.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_versions(
    store: &Store,
    batch: &mut Batch,
    (account, id): (AccountId, AutomationId),
    limit: usize,
) -> Result<bool, ReadError> {
    let range = key(Space::AutomationVersion).account(account).id(id.to_bytes()).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    for (row_key, row) in &rows {
        // What cannot be read hears nothing that matters.
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

/// An automation.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: AutomationId) -> Result<Option<StoredAutomation>, ReadError> {
    store.get(&key_of(account, id)).await?.map(decode_stored).transpose()
}

fn decode_stored(row: Value) -> Result<StoredAutomation, ReadError> {
    Ok(StoredAutomation { automation: row::decode(&row)?, row })
}

/// Several automations, in their order; those that are gone are left out.
///
/// # Errors
/// The store cannot be read.
pub async fn get_many(
    store: &Store,
    account: AccountId,
    ids: &[AutomationId],
) -> Result<Vec<StoredAutomation>, ReadError> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    store.get_many(&keys).await?.into_iter().flatten().map(decode_stored).collect()
}

/// A version of an automation.
///
/// # Errors
/// The store cannot be read.
pub async fn get_version(
    store: &Store,
    account: AccountId,
    id: AutomationId,
    number: u32,
) -> Result<Option<AutomationVersion>, ReadError> {
    store.get(&version_key(account, id, number)).await?.map(|row| decode_version(&row)).transpose()
}

fn decode_version(row: &Value) -> Result<AutomationVersion, ReadError> {
    let AutomationVersionRow { number, definition, created_at } = row::decode(row)?;
    let definition = read::parse_stored(&definition).map_err(row::damaged)?;
    Ok(AutomationVersion { number, definition, created_at })
}

/// The versions of an automation before one, the newest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_versions(
    store: &Store,
    account: AccountId,
    id: AutomationId,
    (before, limit): (Option<u32>, usize),
) -> Result<Vec<AutomationVersion>, ReadError> {
    let mut range = key(Space::AutomationVersion).account(account).id(id.to_bytes()).range();
    if let Some(before) = before {
        range.end = version_key(account, id, before);
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| decode_version(row)).collect()
}

/// The automations of an account, newest first, from before one on, that pass; and where to go on.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<AutomationId>,
    limit: usize,
    passes: impl Fn(&Automation) -> bool,
) -> Result<(Vec<Automation>, Option<AutomationId>), ReadError> {
    let mut range = key(Space::Automation).account(account).range();
    if let Some(before) = before {
        range.end = key_of(account, before);
    }
    let mut found: Vec<Automation> = Vec::new();
    let mut last = None;
    for _ in 0..LOOKED_AT_MAX / SCAN_ROWS {
        let rows = store.scan(range.clone(), ScanOrder::Descending, SCAN_ROWS).await?;
        let is_end = rows.len() < SCAN_ROWS;
        for (row_key, row) in rows {
            let automation: Automation = row::decode(&row)?;
            range.end = row_key;
            if !passes(&automation) {
                continue;
            }
            if found.len() == limit {
                return Ok((found, last));
            }
            last = Some(automation.id);
            found.push(automation);
        }
        if is_end {
            return Ok((found, None));
        }
    }
    Ok((found, last))
}

/// How many automations an account has, counted up to `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn count(store: &Store, account: AccountId, limit: usize) -> Result<usize, ReadError> {
    let range = key(Space::Automation).account(account).range();
    Ok(store.scan(range, ScanOrder::Ascending, limit).await?.len())
}

/// The automations that hear an event, each with its role.
///
/// # Errors
/// The store cannot be read.
pub async fn list_triggered(
    store: &Store,
    account: AccountId,
    event: &str,
) -> Result<Vec<(TriggerRole, AutomationId)>, ReadError> {
    let range = key(Space::AutomationTrigger).account(account).text(event).range();
    let rows = store.scan(range, ScanOrder::Ascending, TRIGGERED_MAX).await?;
    let read = |(at, _): &(Key, Value)| {
        let (_, role, id) = read_trigger_key(at)?;
        Ok((role, id))
    };
    rows.iter().map(read).collect()
}

/// The events that some automation of an account hears; none when there are too many to be remembered.
///
/// # Errors
/// The store cannot be read.
pub async fn list_trigger_events(store: &Store, account: AccountId) -> Result<Option<HashSet<String>>, ReadError> {
    let range = key(Space::AutomationTrigger).account(account).range();
    let rows = store.scan(range, ScanOrder::Ascending, NAMES_MAX).await?;
    if rows.len() == NAMES_MAX {
        return Ok(None);
    }
    rows.iter().map(|(at, _)| Ok(read_trigger_key(at)?.0)).collect::<Result<_, _>>().map(Some)
}

fn read_trigger_key(at: &Key) -> Result<(String, TriggerRole, AutomationId), ReadError> {
    let mut reader = KeyReader::new(Space::AutomationTrigger, at).map_err(row::damaged)?;
    let _account = reader.account().map_err(row::damaged)?;
    let event = reader.text().map_err(row::damaged)?;
    let role = reader.u8().map_err(row::damaged)?;
    let id = reader.id().map(AutomationId::from_bytes).map_err(row::damaged)?;
    let role =
        TriggerRole::from_number(role).ok_or_else(|| row::damaged("an automation hears in a way that is none"))?;
    Ok((event, role, id))
}
