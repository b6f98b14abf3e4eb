//! Referrals: one row each under the account, index entries for lists, and claims. A claim is a unique key by email
//! address or by processor customer; one referral holds it.

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::referral::{Referral, ReferralSource, ReferralStatus, RejectReason, ReviewStatus};
use model::id::{AccountId, PartnerId, ReferralId};

use super::listing::{self, ListPage, ListPageRequest, ListQuery};
use super::{IndexValue, referral_counts};
use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

account_rows!(Referral, ReferralId, Referral);

/// Fields of the secondary index.
#[repr(u8)]
enum ReferralIndex {
    Partner = 1,
    Status = 2,
    Email = 3,
    Review = 4,
}

fn by(field: ReferralIndex, value: impl AsRef<[u8]>) -> IndexValue {
    (field as u8, value.as_ref().to_vec())
}

fn by_email(email: &Address) -> IndexValue {
    by(ReferralIndex::Email, email.to_string().to_lowercase())
}

fn index_values(referral: &Referral) -> Vec<IndexValue> {
    let partner = by(ReferralIndex::Partner, referral.partner.to_bytes());
    let mut values = vec![partner, by(ReferralIndex::Status, referral.status.word())];
    values.extend(referral.email.as_ref().map(by_email));
    values.extend(referral.review.as_ref().map(|review| by(ReferralIndex::Review, review.status.word())));
    values
}

/// An identity of the referred person. The referral that holds it is the only one that earns for that person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferralClaim {
    /// Case-insensitive.
    Email(Address),
    /// Customer id at the processor.
    Customer(String),
}

impl ReferralClaim {
    fn key(&self, account: AccountId) -> Key {
        let (kind, text) = match self {
            Self::Email(email) => (1, email.to_string().to_lowercase()),
            Self::Customer(customer) => (2, customer.clone()),
        };
        key(Space::ReferralClaim).account(account).u8(kind).text(&text).build()
    }
}

fn claims(referral: &Referral) -> Vec<ReferralClaim> {
    // An expired referral releases its claims. One rejected by the owner retains them, so that the person cannot be
    // claimed again.
    if referral.rejection.is_some_and(|rejection| rejection.reason == RejectReason::Expired) {
        return Vec::new();
    }
    let email = referral.email.clone().map(ReferralClaim::Email);
    email.into_iter().chain(referral.customers().cloned().map(ReferralClaim::Customer)).collect()
}

fn holder_value(id: ReferralId) -> Vec<u8> {
    id.to_string().into_bytes()
}

/// Writes a new referral. The commit conflicts if another referral holds one of its claims. If `lapsed` is set, the new
/// referral takes over that one's email claim; the caller rejects it in the same batch, afterwards.
pub fn create(batch: &mut Batch, referral: &Referral, lapsed: Option<ReferralId>) {
    for claim in claims(referral) {
        let at = claim.key(referral.account);
        let stored_claim = match (&claim, lapsed) {
            // A lapsed referral has no customer.
            (ReferralClaim::Email(_), Some(lapsed)) => Some(holder_value(lapsed).into()),
            _ => None,
        };
        batch.replace(at, stored_claim, holder_value(referral.id));
    }
    listing::update_index(batch, index_ref(referral), &[], &index_values(referral));
    referral_counts::record_change(batch, None, referral);
    batch.put(key_of(referral.account, referral.id), codec::encode(referral));
}

fn index_ref(referral: &Referral) -> listing::IndexRef {
    listing::IndexRef { space: Space::ReferralBy, account: referral.account, id: referral.id.to_bytes() }
}

/// Updates a referral that was read as `before`. The commit conflicts if the stored row has changed since, or if
/// another referral holds a new claim.
pub fn update(batch: &mut Batch, before: &Referral, after: &Referral) {
    check_unchanged(batch, before);
    let (old, new) = (claims(before), claims(after));
    for claim in new.iter().filter(|claim| !old.contains(claim)) {
        let at = claim.key(after.account);
        batch.replace(at, None, holder_value(after.id));
    }
    for claim in old.iter().filter(|claim| !new.contains(claim)) {
        batch.delete(claim.key(before.account));
    }
    update_indexed_row(batch, before, after);
}

/// Rejects a lapsed referral, in the batch in which [`create`] took over its claim.
pub fn reject_lapsed(batch: &mut Batch, before: &Referral, after: &Referral) {
    check_unchanged(batch, before);
    update_indexed_row(batch, before, after);
}

fn update_indexed_row(batch: &mut Batch, before: &Referral, after: &Referral) {
    listing::update_index(batch, index_ref(before), &index_values(before), &index_values(after));
    referral_counts::record_change(batch, Some(before), after);
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Finds the referral that holds a claim.
pub async fn find_claim_holder(store: &Store, account: AccountId, claim: &ReferralClaim) -> Result<Option<Referral>> {
    let Some(row) = store.get(&claim.key(account)).await? else { return Ok(None) };
    get(store, account, rows::parse_text(&row, "an invalid referral id in a claim")?).await
}

/// Counts the referrals of a partner that were created since a time, up to `at_most`.
pub async fn count_since(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    since: Timestamp,
    at_most: usize,
) -> Result<usize> {
    let (field, value) = by(ReferralIndex::Partner, partner.to_bytes());
    let prefix = key(Space::ReferralBy).account(account).u8(field).bytes(&value);
    let first = prefix.clone().id(ReferralId::new(since, 0).to_bytes()).build();
    rows::count(store, first..prefix.range().end, at_most).await
}

/// Filter of a referral list; all conditions must match.
#[derive(Debug, Clone, Default)]
pub struct ReferralFilter {
    /// Any of these; all statuses if empty.
    pub statuses: Vec<ReferralStatus>,
    /// Any of these; all sources if empty.
    pub sources: Vec<ReferralSource>,
    pub partner: Option<PartnerId>,
    /// Compared case-insensitively.
    pub email: Option<Address>,
    /// Inclusive.
    pub created_after: Option<Timestamp>,
    /// Exclusive.
    pub created_before: Option<Timestamp>,
}

impl ReferralFilter {
    fn passes(&self, referral: &Referral) -> bool {
        let is_same =
            |email: &Address| referral.email.as_ref().is_some_and(|stored| by_email(stored) == by_email(email));
        (self.statuses.is_empty() || self.statuses.contains(&referral.status))
            && (self.sources.is_empty() || self.sources.contains(&referral.source))
            && self.partner.is_none_or(|partner| referral.partner == partner)
            && self.email.as_ref().is_none_or(is_same)
            && self.created_after.is_none_or(|after| referral.created_at >= after)
            && self.created_before.is_none_or(|before| referral.created_at < before)
    }

    fn index_ranges(&self) -> Vec<IndexValue> {
        // The most selective index first.
        if let Some(email) = &self.email {
            return vec![by_email(email)];
        }
        if let Some(partner) = self.partner {
            return vec![by(ReferralIndex::Partner, partner.to_bytes())];
        }
        self.statuses.iter().map(|status| by(ReferralIndex::Status, status.word())).collect()
    }
}

/// Reads a page of an account's referrals.
pub async fn list(
    store: &Store,
    account: AccountId,
    filter: &ReferralFilter,
    wanted: ListPageRequest,
) -> Result<ListPage<Referral>> {
    let source = ListQuery { rows: Space::Referral, by: Space::ReferralBy, account, values: filter.index_ranges() };
    let wanted = wanted.created_between(filter.created_after, filter.created_before);
    listing::list(store, &source, wanted, &|referral| filter.passes(referral)).await
}

/// Reads a page of the referrals with a review in one of these statuses; in any if empty.
pub async fn list_reviews(
    store: &Store,
    account: AccountId,
    statuses: &[ReviewStatus],
    wanted: ListPageRequest,
) -> Result<ListPage<Referral>> {
    let selected = if statuses.is_empty() { &ReviewStatus::ALL[..] } else { statuses };
    let values = selected.iter().map(|status| by(ReferralIndex::Review, status.word())).collect();
    let source = ListQuery { rows: Space::Referral, by: Space::ReferralBy, account, values };
    listing::list(store, &source, wanted, &|_: &Referral| true).await
}
