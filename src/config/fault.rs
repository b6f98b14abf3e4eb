//! A problem of a value, at its section and key.

use super::explain::Key;

/// A problem, with its section and key.
pub(super) struct ConfigFault {
    /// Section; empty for a key at the top level.
    pub(super) section: &'static str,
    /// Index among sections of this name.
    pub(super) index: usize,
    /// Key; empty for the section as a whole.
    pub(super) key: &'static str,
    /// Description of the problem and its fix.
    pub(super) text: String,
}

impl ConfigFault {
    /// Returns the text, with the key and its section before it unless it names the key.
    pub(super) fn into_text(self) -> String {
        if self.key.is_empty() || self.text.contains(&format!("`{}", self.key)) {
            return self.text;
        }
        let key = Key { section: self.section.to_owned(), name: self.key.to_owned() };
        format!("{}: {}", key.text(), self.text)
    }
}

pub(super) fn config_fault(section: &'static str, key: &'static str, text: impl Into<String>) -> ConfigFault {
    ConfigFault { section, index: 0, key, text: text.into() }
}
