//! Self-referral guard: browsers (cookie `stx_vid`) and networks from which partners used the portal. A visitor who
//! follows a partner's link from one of them may be the partner.
//!
//! ```text
//! OwnVisitor · account · 1 · visitor · partner   ─►  time last seen
//! OwnVisitor · account · 2 · network · partner   ─►  time last seen
//! ```
//!
//! The portal writes both at each sign-in and refreshes the time. Rows that were not seen for [`BROWSER_RETENTION`] are
//! deleted.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use model::cidr::client_prefix;
use model::id::{AccountId, PartnerId};

use crate::codec;
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, Space, key};
use crate::rows;

/// How long before or after a partner's visit a network counts as the partner's own.
pub const NETWORK_WINDOW: SignedDuration = SignedDuration::from_hours(24);
/// How long a browser counts as the partner's own; equals the lifetime of its cookie.
pub const BROWSER_RETENTION: SignedDuration = SignedDuration::from_hours(396 * 24);

fn visitor_prefix(account: AccountId, visitor: &str) -> KeyBuilder {
    key(Space::SelfReferralGuard).account(account).u8(1).text(visitor)
}

fn network_prefix(account: AccountId, from: IpAddr) -> KeyBuilder {
    key(Space::SelfReferralGuard).account(account).u8(2).text(&client_prefix(from).to_string())
}

/// Records the browser and the network of a partner's sign-in to the portal.
pub fn record_portal_visit(
    batch: &mut Batch,
    account: AccountId,
    partner: PartnerId,
    visitor: Option<&str>,
    from: Option<IpAddr>,
    now: Timestamp,
) {
    let seen_at = now.as_second().to_string().into_bytes();
    let visitor = visitor.filter(|visitor| model::product_event::site_visit::is_visitor_id(visitor));
    let keys = [visitor.map(|id| visitor_prefix(account, id)), from.map(|from| network_prefix(account, from))];
    for at in keys.into_iter().flatten() {
        batch.put(at.id(partner.to_bytes()).build(), seen_at.clone());
    }
}

/// Returns whether a browser is the partner's own.
pub async fn is_own_browser(store: &Store, account: AccountId, partner: PartnerId, visitor: &str) -> Result<bool> {
    let at = visitor_prefix(account, visitor).id(partner.to_bytes()).build();
    Ok(store.get(&at).await?.is_some())
}

/// Returns whether a partner was seen in a network within [`NETWORK_WINDOW`] of a time.
pub async fn was_on_network(
    store: &Store,
    account: AccountId,
    partner: PartnerId,
    from: IpAddr,
    at: Timestamp,
) -> Result<bool> {
    let row = store.get(&network_prefix(account, from).id(partner.to_bytes()).build()).await?;
    let seen_at = row.map(|row| decode_seen_at(&row)).transpose()?;
    Ok(seen_at.is_some_and(|seen_at| at.duration_since(seen_at).abs() < NETWORK_WINDOW))
}

fn decode_seen_at(row: &Value) -> Result<Timestamp> {
    const INVALID: &str = "an invalid time in a self-referral guard";
    Timestamp::from_second(rows::parse_text(row, INVALID)?).map_err(|_| codec::damaged(INVALID))
}

/// Deletes rows that were last seen before `before`, scanning at most `limit` rows from a key on. Returns the key to
/// continue from if rows may remain. The commit conflicts if one of the rows is refreshed concurrently.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    from: Option<Key>,
    before: Timestamp,
    limit: usize,
) -> Result<Option<Key>> {
    let whole = key(Space::SelfReferralGuard).account(account).range();
    let rows = store.scan(from.unwrap_or(whole.start)..whole.end, ScanOrder::Ascending, limit).await?;
    let next = rows::next_page(&rows, limit);
    for (at, row) in rows {
        if decode_seen_at(&row)? < before {
            batch.remove(at, row);
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn browsers_match_for_their_retention_and_networks_for_a_day() {
        let (store, now) = (Store::memory(), Timestamp::from_second(1_700_000_000).unwrap());
        let (account, ada, bob) = (AccountId::new(now, 1), PartnerId::new(now, 1), PartnerId::new(now, 2));
        let (home, hours) = ("2001:db8::1".parse().unwrap(), SignedDuration::from_hours);
        let mut batch = Batch::progress();
        record_portal_visit(&mut batch, account, ada, Some("0123456789"), Some(home), now);
        record_portal_visit(&mut batch, account, ada, Some("short"), None, now);
        store.commit(batch).await.unwrap();
        assert!(is_own_browser(&store, account, ada, "0123456789").await.unwrap());
        assert!(!is_own_browser(&store, account, bob, "0123456789").await.unwrap());
        assert!(!is_own_browser(&store, account, ada, "short").await.unwrap());
        let same_network = "2001:db8::2".parse().unwrap();
        for (at, expected) in [(now, true), (now + hours(23), true), (now - hours(23), true), (now + hours(24), false)]
        {
            assert_eq!(was_on_network(&store, account, ada, same_network, at).await.unwrap(), expected, "{at}");
        }
        assert!(!was_on_network(&store, account, bob, home, now).await.unwrap());
        let mut batch = Batch::progress();
        let next = purge_before(&store, &mut batch, account, None, now + hours(1), 9).await.unwrap();
        store.commit(batch).await.unwrap();
        assert!(next.is_none() && !is_own_browser(&store, account, ada, "0123456789").await.unwrap());
    }
}
