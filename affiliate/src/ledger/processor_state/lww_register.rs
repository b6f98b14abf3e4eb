//! Last-writer-wins register.

use serde::{Deserialize, Serialize};

use crate::processor::StateVersion;

/// Keeps the value of the newest version. For equal versions, the value with the greater JSON text wins, so that the
/// result is deterministic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LwwRegister<T> {
    pub(super) as_of: StateVersion,
    pub(super) value: T,
}

impl<T: Serialize> LwwRegister<T> {
    /// Replaces the value if the new version is newer.
    pub(crate) fn merge(register: &mut Option<Self>, as_of: StateVersion, value: T) {
        let is_newer = register.as_ref().is_none_or(|register| {
            as_of > register.as_of || as_of == register.as_of && text(&value) > text(&register.value)
        });
        if is_newer {
            *register = Some(Self { as_of, value });
        }
    }
}

fn text<T: Serialize>(value: &T) -> String {
    // These types always serialize to JSON.
    serde_json::to_string(value).unwrap_or_default()
}
