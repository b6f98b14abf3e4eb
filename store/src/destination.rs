//! What the operator has ordered about destinations: a row for each, and one that tells when any has changed.
//!
//! ```text
//! Destination · 0               how often something was ordered
//! Destination · kind · name     what is ordered
//! ```

use mail::destination::{Destination, OrderedPace, Standing, Suspension, Way};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyError, KeyReader, Space, key};
use crate::row::{self, stored};

/// Destinations that something may be ordered about.
pub const DESTINATIONS_MAX: usize = 10_000;

const VERSION: u8 = 0;
const DOMAIN: u8 = 1;
const MAIL_HOST: u8 = 2;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Standing")]
struct StandingRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspension: Option<Suspension>,
    #[serde(default, skip_serializing_if = "OrderedPace::is_empty")]
    pace: OrderedPace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<Way>,
}
stored!(Standing as StandingRow);

fn key_of(destination: &Destination) -> Key {
    let (kind, name) = match destination {
        Destination::Domain(name) => (DOMAIN, name),
        Destination::MailHost(name) => (MAIL_HOST, name),
    };
    key(Space::Destination).u8(kind).text(name.as_str()).build()
}

fn version_key() -> Key {
    key(Space::Destination).u8(VERSION).build()
}

/// Tells whether something was ordered since: it is another one then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version(Option<Value>);

/// Which version there is.
///
/// # Errors
/// The store cannot be read.
pub async fn version(store: &Store) -> Result<Version, ReadError> {
    Ok(Version(store.get(&version_key()).await?))
}

/// Everything that is ordered, at most [`DESTINATIONS_MAX`].
///
/// # Errors
/// The store cannot be read.
pub async fn all(store: &Store) -> Result<Vec<(Destination, Standing)>, ReadError> {
    let from = key(Space::Destination).u8(DOMAIN).build();
    let range = from..key(Space::Destination).range().end;
    let rows = store.scan(range, Order::Ascending, DESTINATIONS_MAX).await?;
    let read = |(at, row): (Key, Value)| Ok((read_key(&at).map_err(row::damaged)?, row::decode(&row)?));
    rows.into_iter().map(read).collect()
}

fn read_key(at: &Key) -> Result<Destination, KeyError> {
    let wrong = KeyError { part: "destination" };
    let mut reader = KeyReader::new(Space::Destination, at)?;
    let kind = reader.u8()?;
    let name = reader.text()?.parse().map_err(|_| wrong)?;
    match kind {
        DOMAIN => Ok(Destination::Domain(name)),
        MAIL_HOST => Ok(Destination::MailHost(name)),
        _ => Err(wrong),
    }
}

/// Writes what is ordered about a destination; the commit conflicts when something else was ordered since `version`.
pub fn put(batch: &mut Batch, version: &Version, destination: &Destination, standing: &Standing) {
    let count = version.0.as_deref().and_then(|row| std::str::from_utf8(row).ok()?.parse::<u64>().ok());
    batch.check(version_key(), version.0.clone());
    batch.put(version_key(), (count.unwrap_or(0) + 1).to_string().into_bytes());
    if standing.is_empty() {
        batch.delete(key_of(destination));
    } else {
        batch.put(key_of(destination), row::encode(standing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_are_kept_and_taken_back_one_after_the_other() {
        let store = Store::memory();
        let destination = Destination::MailHost("google.com".parse().unwrap());
        let pace = OrderedPace { connections_max: Some(3), messages_per_second: None };
        let standing = Standing { pace, ..Standing::default() };
        let before = version(&store).await.unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, &before, &destination, &standing);
        store.commit(batch.clone()).await.unwrap();
        assert_eq!(all(&store).await.unwrap(), [(destination.clone(), standing)]);
        assert!(store.commit(batch).await.is_err(), "something was ordered meanwhile");

        let now = version(&store).await.unwrap();
        assert_ne!(now, before);
        let mut batch = Batch::progress();
        put(&mut batch, &now, &destination, &Standing::default());
        store.commit(batch).await.unwrap();
        assert_eq!(all(&store).await.unwrap(), []);
        assert_ne!(version(&store).await.unwrap(), now);
    }
}
