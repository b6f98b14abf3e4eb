//! What the operator has ordered about destinations: a row for each, and one that tells when any has changed.
//!
//! ```text
//! Destination · 0               how often something was ordered
//! Destination · kind · name     what is ordered
//! ```

use mail::destination::{Destination, DestinationOverrides, OperatorSuspension, PaceOverride, RouteOverride};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::row::{self, stored};

/// Destinations that something may be ordered about.
pub const DESTINATIONS_MAX: usize = 10_000;

const VERSION: u8 = 0;
const DOMAIN: u8 = 1;
const MAIL_HOST: u8 = 2;

#[derive(Serialize, Deserialize)]
#[serde(remote = "DestinationOverrides")]
struct StandingRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspension: Option<OperatorSuspension>,
    #[serde(default, skip_serializing_if = "PaceOverride::is_empty")]
    pace: PaceOverride,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<RouteOverride>,
}
stored!(DestinationOverrides as StandingRow);

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
pub struct DestinationOrdersVersion(Option<Value>);

/// Which version there is.
///
/// # Errors
/// The store cannot be read.
pub async fn current_version(store: &Store) -> Result<DestinationOrdersVersion, ReadError> {
    Ok(DestinationOrdersVersion(store.get(&version_key()).await?))
}

/// Everything that is ordered, at most [`DESTINATIONS_MAX`].
///
/// # Errors
/// The store cannot be read.
pub async fn list(store: &Store) -> Result<Vec<(Destination, DestinationOverrides)>, ReadError> {
    let from = key(Space::Destination).u8(DOMAIN).build();
    let range = from..key(Space::Destination).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, DESTINATIONS_MAX).await?;
    let read = |(at, row): (Key, Value)| Ok((read_key(&at).map_err(row::damaged)?, row::decode(&row)?));
    rows.into_iter().map(read).collect()
}

fn read_key(at: &Key) -> Result<Destination, KeyDecodeError> {
    let wrong = KeyDecodeError { part: "destination" };
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
pub fn put(
    batch: &mut Batch,
    version: &DestinationOrdersVersion,
    destination: &Destination,
    standing: &DestinationOverrides,
) {
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
        let pace = PaceOverride { connections_max: Some(3), messages_per_second: None };
        let standing = DestinationOverrides { pace, ..DestinationOverrides::default() };
        let before = current_version(&store).await.unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, &before, &destination, &standing);
        store.commit(batch.clone()).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), [(destination.clone(), standing)]);
        assert!(store.commit(batch).await.is_err(), "something was ordered meanwhile");

        let now = current_version(&store).await.unwrap();
        assert_ne!(now, before);
        let mut batch = Batch::progress();
        put(&mut batch, &now, &destination, &DestinationOverrides::default());
        store.commit(batch).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), []);
        assert_ne!(current_version(&store).await.unwrap(), now);
    }
}
