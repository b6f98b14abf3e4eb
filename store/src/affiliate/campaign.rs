//! Campaigns: one row each under the account, and a unique key by name.
//!
//! The program's row names the default campaign, so that there is never more than one.

use model::affiliate::campaign::Campaign;
use model::id::{AccountId, CampaignId};

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

/// Maximum number of campaigns of a program; their list is not paged.
pub const CAMPAIGNS_MAX: usize = 200;

account_rows!(Campaign, CampaignId, Campaign);

fn key_by_name(account: AccountId, name: &str) -> Key {
    key(Space::CampaignByName).account(account).text(&name.to_lowercase()).build()
}

/// Returns whether the conflicting key is a campaign's name.
pub fn is_name_conflict(conflict: &Key) -> bool {
    Space::CampaignByName.holds(conflict)
}

fn reserve_name(batch: &mut Batch, campaign: &Campaign) {
    let by = key_by_name(campaign.account, &campaign.name);
    batch.replace(by, None, campaign.id.to_string().into_bytes());
}

/// Writes a new campaign. The commit conflicts if its name is taken.
pub fn create(batch: &mut Batch, campaign: &Campaign) {
    reserve_name(batch, campaign);
    batch.put(key_of(campaign.account, campaign.id), codec::encode(campaign));
}

/// Updates a campaign that was read as `before`. The commit conflicts if the stored row has changed since, or if its
/// new name is taken.
pub fn update(batch: &mut Batch, before: &Campaign, after: &Campaign) {
    check_unchanged(batch, before);
    let (old, new) = (key_by_name(before.account, &before.name), key_by_name(after.account, &after.name));
    if old != new {
        batch.delete(old);
        reserve_name(batch, after);
    }
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Finds a campaign by its name, case-insensitively.
pub async fn find_by_name(store: &Store, account: AccountId, name: &str) -> Result<Option<Campaign>> {
    let Some(row) = store.get(&key_by_name(account, name)).await? else { return Ok(None) };
    get(store, account, rows::parse_text(&row, "an invalid campaign id")?).await
}

/// Lists all campaigns of an account, newest first.
pub async fn list(store: &Store, account: AccountId) -> Result<Vec<Campaign>> {
    let range = key(Space::Campaign).account(account).range();
    // Concurrent creations can exceed the maximum by a few, so read beyond it.
    rows::scan(store, range, ScanOrder::Descending, 2 * CAMPAIGNS_MAX).await
}
