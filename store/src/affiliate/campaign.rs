//! Campaigns: a row each under the account, and a key by name that only one of them can hold.
//!
//! Which one is the default stands in the program's row, so that there is never more than one.

use jiff::Timestamp;
use mail::affiliate::campaign::{Campaign, CommissionTerms, Visibility};
use mail::id::{AccountId, CampaignId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

/// Campaigns of a program: a list of them is not paged.
pub const CAMPAIGNS_MAX: usize = 200;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Campaign")]
struct CampaignRow {
    id: CampaignId,
    account: AccountId,
    name: String,
    visibility: Visibility,
    auto_approve: bool,
    terms: CommissionTerms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archived_at: Option<Timestamp>,
    rev: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
}
stored!(Campaign as CampaignRow);

fn key_of(account: AccountId, id: CampaignId) -> Key {
    key(Space::Campaign).account(account).id(id.to_bytes()).build()
}

fn key_by_name(account: AccountId, name: &str) -> Key {
    key(Space::CampaignByName).account(account).text(&name.to_lowercase()).build()
}

/// Whether a conflict was about a campaign's name.
#[must_use]
pub fn is_name_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::CampaignByName as u8))
}

fn reserve_name(batch: &mut Batch, campaign: &Campaign) {
    let by = key_by_name(campaign.account, &campaign.name);
    batch.check(by.clone(), None);
    batch.put(by, campaign.id.to_string().into_bytes());
}

/// Writes a new campaign; the commit conflicts when its name is taken.
pub fn create(batch: &mut Batch, campaign: &Campaign) {
    reserve_name(batch, campaign);
    batch.put(key_of(campaign.account, campaign.id), row::encode(campaign));
}

/// Changes a campaign that was read as `before`; the commit conflicts when it is no more like that, or its new name is
/// taken.
pub fn update(batch: &mut Batch, before: &Campaign, after: &Campaign) {
    check_unchanged(batch, before);
    let (old, new) = (key_by_name(before.account, &before.name), key_by_name(after.account, &after.name));
    if old != new {
        batch.delete(old);
        reserve_name(batch, after);
    }
    batch.put(key_of(after.account, after.id), row::encode(after));
}

/// What is committed holds only while the campaign is as it was read.
pub fn check_unchanged(batch: &mut Batch, campaign: &Campaign) {
    batch.check(key_of(campaign.account, campaign.id), Some(row::encode(campaign)));
}

/// A campaign.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: CampaignId) -> Result<Option<Campaign>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// A campaign by its name, whatever the case.
///
/// # Errors
/// The store cannot be read.
pub async fn find_by_name(store: &Store, account: AccountId, name: &str) -> Result<Option<Campaign>, ReadError> {
    let Some(row) = store.get(&key_by_name(account, name)).await? else { return Ok(None) };
    match std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok()) {
        Some(id) => get(store, account, id).await,
        None => Err(row::damaged("a campaign's id")),
    }
}

/// All campaigns of an account, newest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<Campaign>, ReadError> {
    let range = key(Space::Campaign).account(account).range();
    // Two that are made at the same time are one too many at most.
    let rows = store.scan(range, ScanOrder::Descending, 2 * CAMPAIGNS_MAX).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}
