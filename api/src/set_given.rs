//! `set_given`: applies a field that a change may leave out.

/// Sets a field, if the change gives its value.
pub(crate) fn set_given<T: Clone>(field: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}
