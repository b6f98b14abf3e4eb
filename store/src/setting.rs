//! Settings of the installation that it makes for itself: named bytes.

use crate::engine::{Batch, CommitError, Key, ReadError, Store, Value};
use crate::key::{Space, key};

fn key_of(name: &str) -> Key {
    key(Space::Meta).text(name).build()
}

/// Why a setting is neither read nor made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SettingError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// The setting of this name, if it was made.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, name: &str) -> Result<Option<Value>, ReadError> {
    store.get(&key_of(name)).await
}

/// Writes the setting of this name, whatever it was.
///
/// # Errors
/// The store cannot be written.
pub async fn put(store: &Store, name: &str, value: Value) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.put(key_of(name), value);
    store.commit(batch).await
}

/// Writes the setting of this name, or takes it away, if it is as it was read; else the commit conflicts.
///
/// # Errors
/// The store cannot be written, or somebody else was quicker.
pub async fn change(store: &Store, name: &str, before: Option<Value>, after: Option<Value>) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.check(key_of(name), before);
    match after {
        Some(after) => batch.put(key_of(name), after),
        None => batch.delete(key_of(name)),
    };
    store.commit(batch).await
}

/// Takes the setting of this name away.
///
/// # Errors
/// The store cannot be written.
pub async fn remove(store: &Store, name: &str) -> Result<(), CommitError> {
    let mut batch = Batch::progress();
    batch.delete(key_of(name));
    store.commit(batch).await
}

/// The setting of this name; made by `make` and written if there is none.
///
/// # Errors
/// [`SettingError`].
pub async fn get_or_create(store: &Store, name: &str, make: impl Fn() -> Value) -> Result<Value, SettingError> {
    loop {
        if let Some(found) = store.get(&key_of(name)).await? {
            return Ok(found);
        }
        let made = make();
        let mut batch = Batch::progress();
        batch.check(key_of(name), None).put(key_of(name), made.clone());
        match store.commit(batch).await {
            Ok(()) => return Ok(made),
            // Another node was quicker: its setting counts.
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
