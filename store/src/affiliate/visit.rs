//! Visits by partner links: one row each, the current visit of a visitor or person, and an index by expiry.
//!
//! ```text
//! Visit    · account · visit            ─►  the visit
//! VisitBy  · account · 1 · visitor      ─►  the current visit
//! VisitBy  · account · 2 · address      ─►  the current visit of an identified person
//! VisitEnd · account · time · visit     ─►  (empty)
//! ```

use jiff::Timestamp;
use message::address::Address;
use model::affiliate::visit::PartnerVisit;
use model::id::{AccountId, VisitId};

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::rows;

// An update must not change the retention time.
account_rows!(PartnerVisit, VisitId, Visit, update);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisitorIdentity {
    /// The id in the browser's cookie.
    Visitor(String),
    /// Case-insensitive.
    Person(Address),
}

impl VisitorIdentity {
    fn key(&self, account: AccountId) -> Key {
        let (kind, text) = match self {
            Self::Visitor(visitor) => (1, visitor.clone()),
            Self::Person(email) => (2, email.to_string().to_lowercase()),
        };
        key(Space::VisitBy).account(account).u8(kind).text(&text).build()
    }
}

/// The current visit of a visitor with the row that names it.
#[derive(Debug, Clone, Default)]
pub struct StoredCurrentVisit {
    /// `None` if there is none or it was purged.
    pub visit: Option<PartnerVisit>,
    row: Option<Value>,
}

fn key_of_end(visit: &PartnerVisit) -> Key {
    key(Space::VisitEnd).account(visit.account).time(visit.retained_until()).id(visit.id.to_bytes()).build()
}

pub fn create(batch: &mut Batch, visit: &PartnerVisit) {
    batch.put_fresh(key_of(visit.account, visit.id), codec::encode(visit));
    batch.put_fresh(key_of_end(visit), Value::new());
}

/// Makes a visit the current one of a visitor. The commit conflicts if the current visit has changed since it was read.
pub fn set_current(
    batch: &mut Batch,
    account: AccountId,
    visitor: &VisitorIdentity,
    before: &StoredCurrentVisit,
    id: VisitId,
) {
    let at = visitor.key(account);
    batch.replace(at, before.row.clone(), id.to_string().into_bytes());
}

/// Finds the current visit of a visitor.
pub async fn find_current(store: &Store, account: AccountId, visitor: &VisitorIdentity) -> Result<StoredCurrentVisit> {
    let Some(row) = store.get(&visitor.key(account)).await? else { return Ok(StoredCurrentVisit::default()) };
    let id = read_id(&row)?;
    Ok(StoredCurrentVisit { visit: get(store, account, id).await?, row: Some(row) })
}

fn read_id(row: &Value) -> Result<VisitId> {
    rows::parse_text(row, "an invalid visit id")
}

/// Deletes an account's visits whose retention time has passed, scanning at most `limit` rows from a key on. Returns
/// the key to continue from if rows may remain. The commit conflicts if a visitor's current visit changes concurrently.
pub async fn purge_expired(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    now: Timestamp,
    limit: usize,
) -> Result<Option<Key>> {
    let whole = key(Space::VisitEnd).account(account).range();
    let end = key(Space::VisitEnd).account(account).time(now).build();
    let from = from.unwrap_or(whole.start);
    if from >= end {
        return Ok(None);
    }
    let rows = store.scan(from..end, ScanOrder::Ascending, limit).await?;
    let next = rows::next_page(&rows, limit);
    let mut keys = Vec::with_capacity(rows.len());
    for (at, _) in rows {
        let mut reader = KeyReader::new(Space::VisitEnd, &at)?;
        let id = reader.account().and_then(|_| reader.time()).and_then(|_| reader.id())?;
        keys.push(key_of(account, VisitId::from_bytes(id)));
        batch.delete(at);
    }
    let found = store.get_many(&keys).await?;
    let mut identity_keys = Vec::new();
    for (at, row) in keys.into_iter().zip(found) {
        let Some(row) = row else { continue };
        let visit: PartnerVisit = codec::decode(&row)?;
        batch.delete(at);
        let people = visit.people.into_iter().map(VisitorIdentity::Person);
        let all = visit.visitors.into_iter().map(VisitorIdentity::Visitor).chain(people);
        identity_keys.extend(all.map(|identity| (visit.id, identity.key(account))));
    }
    let keys: Vec<Key> = identity_keys.iter().map(|(_, at)| at.clone()).collect();
    for ((id, at), row) in identity_keys.into_iter().zip(store.get_many(&keys).await?) {
        if row.as_ref().map(read_id).transpose()? == Some(id) {
            batch.check(at.clone(), row);
            batch.delete(at);
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use model::affiliate::referral::FraudFlag;
    use model::id::{PartnerId, PartnerLinkId};

    use super::*;
    use jiff::SignedDuration;

    fn visit(account: AccountId, number: u128, at: Timestamp) -> PartnerVisit {
        PartnerVisit {
            id: VisitId::new(at, number),
            account,
            partner: PartnerId::new(at, 1),
            link: PartnerLinkId::new(at, 1),
            visitors: vec![format!("visitor-{number}")],
            sub_id: Some("june".to_owned()),
            from: Some("192.0.2.1".parse().unwrap()),
            flags: vec![FraudFlag::PaidClick],
            people: vec![format!("P{number}@example.com").parse().unwrap()],
            referrals: Vec::new(),
            clicked_at: at,
            expires_at: at.checked_add(SignedDuration::from_hours(24)).unwrap(),
        }
    }

    #[tokio::test]
    async fn visits_are_found_by_identity_and_purged_after_expiry() {
        let (store, at) = (Store::memory(), Timestamp::from_second(1_700_000_000).unwrap());
        let account = AccountId::new(at, 1);
        let mut batch = Batch::intake();
        for number in 1..=3 {
            let first = visit(account, number, at);
            create(&mut batch, &first);
            for visitor in
                [VisitorIdentity::Visitor(first.visitors[0].clone()), VisitorIdentity::Person(first.people[0].clone())]
            {
                set_current(&mut batch, account, &visitor, &StoredCurrentVisit::default(), first.id);
            }
        }
        store.commit(batch.clone()).await.unwrap();
        assert!(store.commit(batch).await.is_err(), "the visitor has a current visit");
        let visitor = VisitorIdentity::Person("p2@Example.com".parse().unwrap());
        let found = find_current(&store, account, &visitor).await.unwrap();
        assert_eq!(found.visit, Some(visit(account, 2, at)));
        // Visitor 2 has visited again since.
        let (visitor, later) =
            (VisitorIdentity::Visitor("visitor-2".to_owned()), at + SignedDuration::from_hours(24 * 20));
        let again = PartnerVisit { visitors: vec!["visitor-2".to_owned()], ..visit(account, 9, later) };
        let mut batch = Batch::intake();
        let before = find_current(&store, account, &visitor).await.unwrap();
        create(&mut batch, &again);
        set_current(&mut batch, account, &visitor, &before, again.id);
        store.commit(batch).await.unwrap();
        let now = at + SignedDuration::from_hours(24 * 32);
        let mut from = None;
        for is_live in [true, false] {
            let mut batch = Batch::progress();
            from = purge_expired(&store, &mut batch, account, from, now, 2).await.unwrap();
            store.commit(batch).await.unwrap();
            assert_eq!(from.is_some(), is_live);
        }
        assert_eq!(get(&store, account, visit(account, 2, at).id).await.unwrap(), None);
        assert_eq!(find_current(&store, account, &visitor).await.unwrap().visit, Some(again));
        let expired = find_current(&store, account, &VisitorIdentity::Visitor("visitor-1".to_owned())).await.unwrap();
        assert!(expired.visit.is_none() && expired.row.is_none());
    }
}
