//! Tracked rows of one kind of processor object.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use mail::id::AccountId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::affiliate::processor_state::{self, ProcessorObjectKind, StoredProcessorObject};
use store::engine::{Batch, ReadError, Store};

struct TrackedProcessorObject<T> {
    read: StoredProcessorObject<T>,
    now: T,
}

/// Rows of one kind, by the processor's id.
pub(super) struct RowSet<T> {
    kind: ProcessorObjectKind,
    rows: BTreeMap<String, TrackedProcessorObject<T>>,
}

impl<T: Serialize + DeserializeOwned + Default + Clone + PartialEq> RowSet<T> {
    pub(super) fn new(kind: ProcessorObjectKind) -> Self {
        Self { kind, rows: BTreeMap::new() }
    }

    /// Returns an object's state for reading and changing; reads it on first use.
    pub(super) async fn load(&mut self, store: &Store, account: AccountId, id: &str) -> Result<&mut T, ReadError> {
        match self.rows.entry(id.to_owned()) {
            Entry::Occupied(held) => Ok(&mut held.into_mut().now),
            Entry::Vacant(vacant) => {
                let read: StoredProcessorObject<T> = processor_state::get(store, account, self.kind, id).await?;
                let now = read.value.clone().unwrap_or_default();
                Ok(&mut vacant.insert(TrackedProcessorObject { read, now }).now)
            }
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&String, &T)> {
        self.rows.iter().map(|(id, sheet)| (id, &sheet.now))
    }

    /// Writes changed rows, and makes the commit depend on every loaded row being unchanged.
    pub(super) fn write(&self, batch: &mut Batch, account: AccountId) {
        for (id, TrackedProcessorObject { read, now }) in &self.rows {
            read.check_unchanged(batch, account, self.kind, id);
            let is_unchanged = match &read.value {
                Some(before) => before == now,
                None => *now == T::default(),
            };
            if !is_unchanged {
                StoredProcessorObject::put(batch, account, self.kind, id, now);
            }
        }
    }
}
