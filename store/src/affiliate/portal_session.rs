//! Sessions of partners: a row each, under the account and the partner, where the cookie says that it is.

use jiff::Timestamp;
use mail::affiliate::portal::{PortalSession, PortalToken};
use mail::id::{AccountId, PartnerId, SessionId};
use serde::{Deserialize as _, Serialize as _};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{Space, key};
use crate::row::{self, stored};

/// Sessions of a partner; a new one ends the oldest.
pub const SESSIONS_MAX: usize = 20;

stored!(PortalSession as PortalSession);

fn key_of(account: AccountId, partner: PartnerId, id: SessionId) -> Key {
    key(Space::PortalSession).account(account).id(partner.to_bytes()).id(id.to_bytes()).build()
}

/// Writes a new session.
pub fn create(batch: &mut Batch, session: &PortalSession) {
    batch.put(key_of(session.account, session.partner, session.id), row::encode(session));
}

/// Ends a session.
pub fn delete(batch: &mut Batch, session: &PortalSession) {
    batch.delete(key_of(session.account, session.partner, session.id));
}

/// The session of a token, if it has not ended. Hashes are compared: how much of two of them is the same tells nothing.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, token: &PortalToken, now: Timestamp) -> Result<Option<PortalSession>, ReadError> {
    let found = store.get(&key_of(token.account, token.who, token.session)).await?;
    let found: Option<PortalSession> = found.as_deref().map(row::decode).transpose()?;
    Ok(found.filter(|session| session.secret == token.hash() && session.is_live(now)))
}

/// A partner's sessions, oldest first; those that have ended may be among them.
async fn list_by_partner(
    store: &Store,
    (account, partner): (AccountId, PartnerId),
) -> Result<Vec<PortalSession>, ReadError> {
    let range = key(Space::PortalSession).account(account).id(partner.to_bytes()).range();
    // Two nodes may each have begun one at the same time: some more than there should be.
    let rows = store.scan(range, ScanOrder::Ascending, 2 * SESSIONS_MAX).await?;
    rows.iter().map(|(_, row)| row::decode(row)).collect()
}

/// Makes room for one more session of a partner: those that have ended go, and the oldest of too many.
///
/// # Errors
/// The store cannot be read.
pub async fn evict_oldest(
    store: &Store,
    batch: &mut Batch,
    of: (AccountId, PartnerId),
    now: Timestamp,
) -> Result<(), ReadError> {
    let (live, ended): (Vec<_>, Vec<_>) =
        list_by_partner(store, of).await?.into_iter().partition(|session| session.is_live(now));
    let too_many = (live.len() + 1).saturating_sub(SESSIONS_MAX);
    ended.iter().chain(live.iter().take(too_many)).for_each(|session| delete(batch, session));
    Ok(())
}

/// Ends all sessions of a partner.
///
/// # Errors
/// The store cannot be read.
pub async fn delete_by_partner(store: &Store, batch: &mut Batch, of: (AccountId, PartnerId)) -> Result<(), ReadError> {
    list_by_partner(store, of).await?.iter().for_each(|session| delete(batch, session));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_is_found_by_its_token_alone_and_makes_room_for_others() {
        let (store, of) = (Store::memory(), (AccountId::from_bytes([1; 16]), PartnerId::from_bytes([2; 16])));
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut tokens = Vec::new();
        for n in 0..=SESSIONS_MAX {
            let now = at(i64::try_from(n).unwrap());
            let token = PortalToken::new(of, SessionId::new(now, 1), [7; 32]);
            let mut batch = Batch::progress();
            evict_oldest(&store, &mut batch, of, now).await.unwrap();
            create(&mut batch, &PortalSession::new(&token, now));
            store.commit(batch).await.unwrap();
            tokens.push(token);
        }
        let live = async |token: &PortalToken, second| get(&store, token, at(second)).await.unwrap().is_some();
        assert!(!live(&tokens[0], 30).await && live(&tokens[1], 30).await);
        let forged = PortalToken::new(of, tokens[1].session, [8; 32]);
        assert!(!live(&forged, 30).await);
        assert!(!live(&tokens[1], 12 * 3600 + 1).await, "its time is over");
        let mut batch = Batch::progress();
        delete_by_partner(&store, &mut batch, of).await.unwrap();
        store.commit(batch).await.unwrap();
        assert!(!live(&tokens[1], 30).await);
    }
}
