//! The `section!` macro: a section of the configuration with the default of each key beside it.

/// Declares a section. A key without a default has that of its type.
macro_rules! section {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $key:ident: $kind:ty $(= $default:expr)?,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$each])* pub $key: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::config::section::section!(@default $($default)?),)* }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
}
pub(super) use section;
