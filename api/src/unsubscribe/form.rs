//! The fields of the form of preferences.

/// The hidden field of the page's form. A mail program's one-click POST lacks it; without this check it would clear
/// all preferences.
pub(super) const FORM: (&str, &str) = ("form", "preferences");

pub(super) const NOTHING: &str = "nothing";
