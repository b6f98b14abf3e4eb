//! Bounds of the entries that the state of an object holds.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// Maximum entries of one kind per object, e.g. refunds of a charge.
const THINGS_MAX: usize = 500;

/// An object has more entries of a kind than are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("more than {THINGS_MAX} {0}")]
pub struct TooManyEntries(pub &'static str);

/// Returns the entry of a bounded map, creating it if needed.
pub(super) fn bounded_entry<'a, T: Default>(
    map: &'a mut BTreeMap<String, T>,
    id: &str,
    description: &'static str,
) -> Result<&'a mut T, TooManyEntries> {
    if map.len() >= THINGS_MAX && !map.contains_key(id) {
        return Err(TooManyEntries(description));
    }
    Ok(map.entry(id.to_owned()).or_default())
}

pub(super) fn bounded_insert(
    set: &mut BTreeSet<String>,
    id: &str,
    description: &'static str,
) -> Result<(), TooManyEntries> {
    if set.len() >= THINGS_MAX && !set.contains(id) {
        return Err(TooManyEntries(description));
    }
    set.insert(id.to_owned());
    Ok(())
}
