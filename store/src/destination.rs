//! Destination overrides: one row for each destination that the operator changed, and a version row that every change
//! rewrites.
//!
//! ```text
//! Destination · 0            ─►  number of changes so far
//! Destination · kind · name  ─►  the overrides
//! ```

use model::destination::{Destination, DestinationOverrides};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::rows;

/// Maximum number of destinations with overrides.
pub const DESTINATIONS_MAX: usize = 10_000;

const VERSION: u8 = 0;
const DOMAIN: u8 = 1;
const MAIL_HOST: u8 = 2;

stored!(DestinationOverrides);

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

/// Value of the version row; differs after each change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationOrdersVersion(Option<Value>);

pub async fn current_version(store: &Store) -> Result<DestinationOrdersVersion> {
    Ok(DestinationOrdersVersion(store.get(&version_key()).await?))
}

/// Lists all overrides, at most [`DESTINATIONS_MAX`].
pub async fn list(store: &Store) -> Result<Vec<(Destination, DestinationOverrides)>> {
    let from = key(Space::Destination).u8(DOMAIN).build();
    let range = from..key(Space::Destination).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, DESTINATIONS_MAX).await?;
    let read = |(at, row): (Key, Value)| Ok((read_key(&at)?, codec::decode(&row)?));
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

/// Writes the overrides of a destination. The commit conflicts if any override changed since `version`.
pub fn put(
    batch: &mut Batch,
    version: &DestinationOrdersVersion,
    destination: &Destination,
    overrides: &DestinationOverrides,
) {
    rows::bump_version(batch, version_key(), version.0.as_ref());
    if overrides.is_empty() {
        batch.delete(key_of(destination));
    } else {
        batch.put(key_of(destination), codec::encode(overrides));
    }
}

#[cfg(test)]
mod tests {
    use model::destination::PaceOverride;

    use super::*;

    #[tokio::test]
    async fn overrides_are_written_and_deleted_by_version() {
        let store = Store::memory();
        let destination = Destination::MailHost("google.com".parse().unwrap());
        let pace = PaceOverride { connections_max: Some(3), messages_per_second: None };
        let overrides = DestinationOverrides { pace, ..DestinationOverrides::default() };
        let before = current_version(&store).await.unwrap();
        let mut batch = Batch::progress();
        put(&mut batch, &before, &destination, &overrides);
        store.commit(batch.clone()).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), [(destination.clone(), overrides)]);
        assert!(store.commit(batch).await.is_err(), "the version is outdated");

        let now = current_version(&store).await.unwrap();
        assert_ne!(now, before);
        let mut batch = Batch::progress();
        put(&mut batch, &now, &destination, &DestinationOverrides::default());
        store.commit(batch).await.unwrap();
        assert_eq!(list(&store).await.unwrap(), []);
        assert_ne!(current_version(&store).await.unwrap(), now);
    }
}
