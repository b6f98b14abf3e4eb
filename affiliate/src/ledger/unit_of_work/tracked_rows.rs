//! Rows of one kind in a unit of work, each read once and then changed in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;

use model::id::AccountId;
use store::engine::{ReadError, Store};

/// The account whose rows are read, and their store.
#[derive(Clone)]
pub(super) struct RowSource {
    pub(super) store: Store,
    pub(super) account: AccountId,
}

/// A row as it was read, and with its changes.
pub(super) struct TrackedRow<T> {
    /// `None` for a new row.
    pub(super) before: Option<T>,
    pub(super) now: T,
}

impl<T: PartialEq> TrackedRow<T> {
    pub(super) fn is_changed(&self) -> bool {
        self.before.as_ref() != Some(&self.now)
    }
}

/// Rows by id. A row that was looked up and does not exist is remembered as well.
pub(super) struct TrackedRows<K, T>(BTreeMap<K, Option<TrackedRow<T>>>);

impl<K, T> Default for TrackedRows<K, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, T: Clone> TrackedRows<K, T> {
    /// Returns the row for reading and changing; reads it on first use. `None` if it does not exist.
    pub(super) async fn load(
        &mut self,
        id: K,
        read: impl Future<Output = Result<Option<T>, ReadError>>,
    ) -> Result<Option<&mut T>, ReadError> {
        let entry = match self.0.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let found = read.await?;
                entry.insert(found.map(|found| TrackedRow { before: Some(found.clone()), now: found }))
            }
        };
        Ok(entry.as_mut().map(|row| &mut row.now))
    }

    /// Tracks a row that was read before, or a new one.
    pub(super) fn insert(&mut self, id: K, before: Option<T>, now: T) {
        self.0.insert(id, Some(TrackedRow { before, now }));
    }

    pub(super) fn contains(&self, id: &K) -> bool {
        self.0.contains_key(id)
    }

    /// Returns the row with its changes, if it was read and exists.
    pub(super) fn get(&self, id: &K) -> Option<&T> {
        self.0.get(id)?.as_ref().map(|row| &row.now)
    }

    pub(super) fn get_mut(&mut self, id: &K) -> Option<&mut T> {
        self.0.get_mut(id)?.as_mut().map(|row| &mut row.now)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &TrackedRow<T>> {
        self.0.values().flatten()
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut TrackedRow<T>> {
        self.0.values_mut().flatten()
    }
}
