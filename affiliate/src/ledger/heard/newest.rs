//! The newest account of something.

use serde::{Deserialize, Serialize};

use crate::processor::AsOf;

/// What the newest account says. Of accounts of one moment it does not matter which is taken, but it is always the same
/// one: the one whose text is the greater.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Newest<T> {
    as_of: AsOf,
    value: T,
}

impl<T: Serialize> Newest<T> {
    /// Hears an account.
    pub(crate) fn hear(known: &mut Option<Self>, as_of: AsOf, value: T) {
        let is_newer = known.as_ref().is_none_or(|known| {
            as_of > known.as_of || as_of == known.as_of && text(&value) > text(&known.value)
        });
        if is_newer {
            *known = Some(Self { as_of, value });
        }
    }

    /// What it says.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// As of when.
    pub(crate) fn as_of(&self) -> AsOf {
        self.as_of
    }
}

fn text<T: Serialize>(value: &T) -> String {
    // Of types that JSON has: this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}
