//! Stored rows: helpers of their serde derives. A field that has its default is omitted, so that most rows are short
//! and a new field changes no old row.

pub use schema_derive::{omit_empty, omit_none};

/// Returns whether a field has its default, for serde's `skip_serializing_if`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Stores types as their text: `Display` writes it, `FromStr` reads it.
#[macro_export]
macro_rules! stored_as_text {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
