//! Stored rows: a field that has its default is omitted, so that most rows are short and a new field changes no old row.

/// Returns whether a field has its default, for serde's `skip_serializing_if`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
