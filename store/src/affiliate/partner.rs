//! Partners: one row each under the account, a unique key by email address, and index entries for lists.

use message::address::Address;
use model::affiliate::partner::{Partner, PartnerStatus};
use model::affiliate::program::PayoutMethod;
use model::id::{AccountId, CampaignId, PartnerId};

use super::IndexValue;
use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

account_rows!(Partner, PartnerId, Partner);

/// Fields of the secondary index.
#[repr(u8)]
enum PartnerIndex {
    Status = 1,
    Campaign = 2,
    Parent = 3,
    Destination = 4,
}

fn by_status(status: PartnerStatus) -> IndexValue {
    (PartnerIndex::Status as u8, status.word().as_bytes().to_vec())
}

fn by_campaign(campaign: CampaignId) -> IndexValue {
    (PartnerIndex::Campaign as u8, campaign.to_bytes().to_vec())
}

fn by_destination(method: PayoutMethod, destination: &str) -> IndexValue {
    let text = format!("{method} {}", destination.trim().to_lowercase());
    (PartnerIndex::Destination as u8, text.into_bytes())
}

fn index_values(partner: &Partner) -> Vec<IndexValue> {
    let mut by = vec![by_status(partner.status), by_campaign(partner.campaign)];
    by.extend(partner.parent.map(|parent| (PartnerIndex::Parent as u8, parent.to_bytes().to_vec())));
    by.extend(partner.payout.as_ref().map(|payout| by_destination(payout.method, &payout.destination)));
    by
}

/// Addresses that differ only in case belong to the same partner.
fn key_by_email(account: AccountId, email: &Address) -> Key {
    key(Space::PartnerByEmail).account(account).text(&email.to_string().to_lowercase()).build()
}

/// Returns whether the conflicting key is a partner's email address.
pub fn is_email_conflict(conflict: &Key) -> bool {
    Space::PartnerByEmail.holds(conflict)
}

/// Writes a new partner. The commit conflicts if another partner has the address.
pub fn create(batch: &mut Batch, partner: &Partner) {
    let by = key_by_email(partner.account, &partner.email);
    batch.replace(by, None, partner.id.to_string().into_bytes());
    listing::update_index(batch, index_ref(partner), &[], &index_values(partner));
    batch.put(key_of(partner.account, partner.id), codec::encode(partner));
}

fn index_ref(partner: &Partner) -> listing::IndexRef {
    listing::IndexRef { space: Space::PartnerBy, account: partner.account, id: partner.id.to_bytes() }
}

/// Updates a partner that was read as `before`. The commit conflicts if the stored row has changed since. The address
/// must not change.
pub fn update(batch: &mut Batch, before: &Partner, after: &Partner) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Deletes a partner that was read as `before` and frees its address. The caller deletes its links.
pub fn delete(batch: &mut Batch, before: &Partner) {
    check_unchanged(batch, before);
    listing::update_index(batch, index_ref(before), &index_values(before), &[]);
    batch.delete(key_by_email(before.account, &before.email));
    batch.delete(key_of(before.account, before.id));
}

/// Reads several partners, in the order of `ids`.
pub async fn get_each(store: &Store, account: AccountId, ids: &[PartnerId]) -> Result<Vec<Option<Partner>>> {
    let keys: Vec<Key> = ids.iter().map(|id| key_of(account, *id)).collect();
    rows::get_each(store, &keys).await
}

/// Finds a partner by its email address, case-insensitively.
pub async fn find_by_email(store: &Store, account: AccountId, email: &Address) -> Result<Option<Partner>> {
    let Some(row) = store.get(&key_by_email(account, email)).await? else { return Ok(None) };
    get(store, account, rows::parse_text(&row, "an invalid partner id")?).await
}

/// Filter of a partner list; all conditions must match.
#[derive(Debug, Clone, Default)]
pub struct PartnerFilter {
    /// Any of these; all statuses if empty.
    pub statuses: Vec<PartnerStatus>,
    pub campaign: Option<CampaignId>,
}

impl PartnerFilter {
    /// Returns whether a partner matches.
    pub fn passes(&self, partner: &Partner) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&partner.status))
            && self.campaign.is_none_or(|campaign| partner.campaign == campaign)
    }
}

/// Reads a page of an account's partners.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &PartnerFilter,
    wanted: ListPageRequest,
) -> Result<ListPage<Partner>> {
    let values = match filter.campaign {
        Some(campaign) => vec![by_campaign(campaign)],
        None => filter.statuses.iter().copied().map(by_status).collect(),
    };
    let source = ListQuery { rows: Space::Partner, by: Space::PartnerBy, account, values };
    listing::list(store, &source, wanted, &|partner| filter.passes(partner)).await
}

/// Counts the partners of a campaign, up to `at_most`.
pub async fn count_of_campaign(
    store: &Store,
    account: AccountId,
    campaign: CampaignId,
    at_most: usize,
) -> Result<usize> {
    let (field, value) = by_campaign(campaign);
    let range = key(Space::PartnerBy).account(account).u8(field).bytes(&value).range();
    rows::count(store, range, at_most).await
}

/// Lists partners with this payout destination, at most `limit`.
pub async fn list_by_destination(
    store: &Store,
    account: AccountId,
    method: PayoutMethod,
    destination: &str,
    limit: usize,
) -> Result<Vec<PartnerId>> {
    let ids = listing::list_ids(store, Space::PartnerBy, account, by_destination(method, destination), None, limit);
    Ok(ids.await?.into_iter().map(PartnerId::from_bytes).collect())
}

/// Returns whether another partner has the same payout destination.
pub async fn shares_destination(store: &Store, partner: &Partner) -> Result<bool> {
    let Some(payout) = &partner.payout else { return Ok(false) };
    let sharing = list_by_destination(store, partner.account, payout.method, &payout.destination, 2).await?;
    Ok(sharing.iter().any(|id| *id != partner.id))
}
