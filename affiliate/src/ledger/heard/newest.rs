//! The newest account of something.

use serde::{Deserialize, Serialize};

use crate::processor::StateVersion;

/// What the newest account says. Of accounts of one moment it does not matter which is taken, but it is always the same
/// one: the one whose text is the greater.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LwwRegister<T> {
    as_of: StateVersion,
    value: T,
}

impl<T: Serialize> LwwRegister<T> {
    /// Hears an account.
    pub(crate) fn merge(known: &mut Option<Self>, as_of: StateVersion, value: T) {
        let is_newer = known
            .as_ref()
            .is_none_or(|known| as_of > known.as_of || as_of == known.as_of && text(&value) > text(&known.value));
        if is_newer {
            *known = Some(Self { as_of, value });
        }
    }

    /// What it says.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// As of when.
    pub(crate) fn as_of(&self) -> StateVersion {
        self.as_of
    }
}

fn text<T: Serialize>(value: &T) -> String {
    // Of types that JSON has: this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}
