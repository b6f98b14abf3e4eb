//! Portal sessions of partners: one row each under account and partner, at the key that the cookie names.

use jiff::Timestamp;
use model::affiliate::portal::{PortalSession, PortalToken};
use model::id::{AccountId, PartnerId, SessionId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

/// Maximum number of sessions of a partner; a new one ends the oldest.
pub const SESSIONS_MAX: usize = 20;

stored!(PortalSession);

fn key_of(account: AccountId, partner: PartnerId, id: SessionId) -> Key {
    key(Space::PortalSession).account(account).id(partner.to_bytes()).id(id.to_bytes()).build()
}

pub fn create(batch: &mut Batch, session: &PortalSession) {
    batch.put(key_of(session.account, session.partner, session.id), codec::encode(session));
}

pub fn delete(batch: &mut Batch, session: &PortalSession) {
    batch.delete(key_of(session.account, session.partner, session.id));
}

/// Reads the live session of a token. Only hashes are compared, so the comparison leaks no useful timing.
pub async fn get(store: &Store, token: &PortalToken, now: Timestamp) -> Result<Option<PortalSession>> {
    let found: Option<PortalSession> = rows::get(store, &key_of(token.account, token.owner, token.session)).await?;
    Ok(found.filter(|session| session.secret == token.hash() && session.is_live(now)))
}

/// Lists a partner's sessions, oldest first, including expired ones.
async fn list_by_partner(store: &Store, account: AccountId, partner: PartnerId) -> Result<Vec<PortalSession>> {
    let range = key(Space::PortalSession).account(account).id(partner.to_bytes()).range();
    // Nodes can create sessions concurrently and exceed the maximum, so read beyond it.
    rows::scan(store, range, ScanOrder::Ascending, 2 * SESSIONS_MAX).await
}

/// Deletes a partner's expired sessions, and the oldest ones so that one more fits in [`SESSIONS_MAX`].
pub async fn evict_oldest(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    partner: PartnerId,
    now: Timestamp,
) -> Result<()> {
    let (live, ended): (Vec<_>, Vec<_>) =
        list_by_partner(store, account, partner).await?.into_iter().partition(|session| session.is_live(now));
    let too_many = (live.len() + 1).saturating_sub(SESSIONS_MAX);
    ended.iter().chain(live.iter().take(too_many)).for_each(|session| delete(batch, session));
    Ok(())
}

/// Ends all sessions of a partner.
pub async fn delete_by_partner(store: &Store, batch: &mut Batch, account: AccountId, partner: PartnerId) -> Result<()> {
    list_by_partner(store, account, partner).await?.iter().for_each(|session| delete(batch, session));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_needs_its_token_and_the_oldest_is_evicted() {
        let store = Store::memory();
        let (account, partner) = (AccountId::from_bytes([1; 16]), PartnerId::from_bytes([2; 16]));
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut tokens = Vec::new();
        for n in 0..=SESSIONS_MAX {
            let now = at(i64::try_from(n).unwrap());
            let token = PortalToken::new(account, partner, SessionId::new(now, 1), [7; 32]);
            let mut batch = Batch::progress();
            evict_oldest(&store, &mut batch, account, partner, now).await.unwrap();
            create(&mut batch, &PortalSession::new(&token, now));
            store.commit(batch).await.unwrap();
            tokens.push(token);
        }
        let live = async |token: &PortalToken, second| get(&store, token, at(second)).await.unwrap().is_some();
        assert!(!live(&tokens[0], 30).await && live(&tokens[1], 30).await);
        let forged = PortalToken::new(account, partner, tokens[1].session, [8; 32]);
        assert!(!live(&forged, 30).await);
        assert!(!live(&tokens[1], 12 * 3600 + 1).await, "the session has expired");
        let mut batch = Batch::progress();
        delete_by_partner(&store, &mut batch, account, partner).await.unwrap();
        store.commit(batch).await.unwrap();
        assert!(!live(&tokens[1], 30).await);
    }
}
