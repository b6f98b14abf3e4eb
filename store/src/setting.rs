//! Settings that the installation generates itself: byte strings by name.

use crate::engine::{Batch, CommitError, Key, Result, Store, StoreError, Value};
use crate::key::{Space, key};

fn key_of(name: &str) -> Key {
    key(Space::Meta).text(name).build()
}

pub async fn get(store: &Store, name: &str) -> Result<Option<Value>> {
    store.get(&key_of(name)).await
}

/// Writes a setting, unchecked.
pub async fn put(store: &Store, name: &str, value: Value) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.put(key_of(name), value);
    store.commit(batch).await
}

/// Replaces a setting, or deletes it if `after` is `None`. The commit conflicts if it is not equal to `before`.
///
/// # Errors
/// The store cannot be written, or the setting has changed since it was read.
pub async fn change(store: &Store, name: &str, before: Option<Value>, after: Option<Value>) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.check(key_of(name), before);
    match after {
        Some(after) => batch.put(key_of(name), after),
        None => batch.delete(key_of(name)),
    };
    store.commit(batch).await
}

pub async fn remove(store: &Store, name: &str) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.delete(key_of(name));
    store.commit(batch).await
}

/// Reads a setting, or creates it with `make` if it does not exist.
pub async fn get_or_create(store: &Store, name: &str, make: impl Fn() -> Value) -> Result<Value, StoreError> {
    loop {
        if let Some(found) = store.get(&key_of(name)).await? {
            return Ok(found);
        }
        let created = make();
        let mut batch = Batch::progress();
        batch.replace(key_of(name), None, created.clone());
        // On a conflict another node created it first: use that one.
        if store.try_commit(batch).await? {
            return Ok(created);
        }
    }
}
