//! What partners have used themselves: browsers (the cookie `stx_vid`) and networks from which they were in the portal.
//! Who comes by a partner's link with one of them is perhaps the partner.
//!
//! ```text
//! OwnVisitor · account · 1 · visitor · partner   ─►  when it was seen last
//! OwnVisitor · account · 2 · network · partner   ─►  the same
//! ```
//!
//! What the portal writes with each sign-in; a row that is written anew says when it was seen last. Both are forgotten
//! when they were not seen for long ([`KEPT`]).

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use mail::id::{AccountId, PartnerId};
use mail::network::client_prefix;

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, Space, key, successor};
use crate::row;

/// A network says something for so long after the partner was seen there …
pub const NETWORK_WINDOW: SignedDuration = SignedDuration::from_hours(24);
/// … and a browser for so long, which is what its cookie lasts.
pub const BROWSER_RETENTION: SignedDuration = SignedDuration::from_hours(396 * 24);

fn visitor_prefix(account: AccountId, visitor: &str) -> KeyBuilder {
    key(Space::SelfReferralGuard).account(account).u8(1).text(visitor)
}

fn network_prefix(account: AccountId, from: IpAddr) -> KeyBuilder {
    key(Space::SelfReferralGuard).account(account).u8(2).text(&client_prefix(from).to_string())
}

/// Notes by what browser and from where a partner was in the portal.
pub fn record_portal_visit(
    batch: &mut Batch,
    (account, partner): (AccountId, PartnerId),
    (visitor, from): (Option<&str>, Option<IpAddr>),
    now: Timestamp,
) {
    let seen = now.as_second().to_string().into_bytes();
    let visitor = visitor.filter(|visitor| mail::product_event::visit::is_visitor_id(visitor));
    let keys = [visitor.map(|id| visitor_prefix(account, id)), from.map(|from| network_prefix(account, from))];
    for at in keys.into_iter().flatten() {
        batch.put(at.id(partner.to_bytes()).build(), seen.clone());
    }
}

/// Whether a browser is a partner's own.
///
/// # Errors
/// The store cannot be read.
pub async fn is_own_browser(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
    visitor: &str,
) -> Result<bool, ReadError> {
    let at = visitor_prefix(account, visitor).id(partner.to_bytes()).build();
    Ok(store.get(&at).await?.is_some())
}

/// Whether a partner was seen in a network within a day of a time, before or after it.
///
/// # Errors
/// The store cannot be read.
pub async fn was_on_network(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
    from: IpAddr,
    at: Timestamp,
) -> Result<bool, ReadError> {
    let row = store.get(&network_prefix(account, from).id(partner.to_bytes()).build()).await?;
    let seen = row.map(|row| decode_seen_at(&row)).transpose()?;
    Ok(seen.is_some_and(|seen| at.duration_since(seen).abs() < NETWORK_WINDOW))
}

fn decode_seen_at(row: &Value) -> Result<Timestamp, ReadError> {
    let second = std::str::from_utf8(row).ok().and_then(|text| text.parse().ok());
    let seen = second.and_then(|second| Timestamp::from_second(second).ok());
    seen.ok_or_else(|| row::damaged("when a partner was seen"))
}

/// Forgets what was not seen since a time, of at most `limit` rows from a key on. Where to go on, if there may be more.
/// The commit conflicts when one is seen this very moment.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    (account, from): (AccountId, Option<Key>),
    before: Timestamp,
    limit: usize,
) -> Result<Option<Key>, ReadError> {
    let whole = key(Space::SelfReferralGuard).account(account).range();
    let rows = store.scan(from.unwrap_or(whole.start)..whole.end, ScanOrder::Ascending, limit).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|(at, _)| successor(at));
    for (at, row) in rows {
        if decode_seen_at(&row)? < before {
            batch.check(at.clone(), Some(row));
            batch.delete(at);
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn browsers_are_known_for_long_and_networks_for_a_day() {
        let (store, now) = (Store::memory(), Timestamp::from_second(1_700_000_000).unwrap());
        let (account, ada, bob) = (AccountId::new(now, 1), PartnerId::new(now, 1), PartnerId::new(now, 2));
        let (home, hours) = ("2001:db8::1".parse().unwrap(), SignedDuration::from_hours);
        let mut batch = Batch::progress();
        record_portal_visit(&mut batch, (account, ada), (Some("0123456789"), Some(home)), now);
        record_portal_visit(&mut batch, (account, ada), (Some("short"), None), now);
        store.commit(batch).await.unwrap();
        assert!(is_own_browser(&store, (account, ada), "0123456789").await.unwrap());
        assert!(!is_own_browser(&store, (account, bob), "0123456789").await.unwrap());
        assert!(!is_own_browser(&store, (account, ada), "short").await.unwrap());
        let neighbour = "2001:db8::2".parse().unwrap();
        for (at, is) in [(now, true), (now + hours(23), true), (now - hours(23), true), (now + hours(24), false)] {
            assert_eq!(was_on_network(&store, (account, ada), neighbour, at).await.unwrap(), is, "{at}");
        }
        assert!(!was_on_network(&store, (account, bob), home, now).await.unwrap());
        let mut batch = Batch::progress();
        let next = purge_before(&store, &mut batch, (account, None), now + hours(1), 9).await.unwrap();
        store.commit(batch).await.unwrap();
        assert!(next.is_none() && !is_own_browser(&store, (account, ada), "0123456789").await.unwrap());
    }
}
