//! The `section!` macro: a section of the configuration with the default of each key beside it, and whether a reload
//! applies the key.

/// Declares a section. A key without a default has that of its type. A section that is named by `in` has its keys in
/// `KEYS`: a reload (reload.rs) applies those that are marked `@live`, and the others require a restart.
macro_rules! section {
    ($(#[$about:meta])* $name:ident $(in $section:ident)? {
        $($(#[$each:meta])* $(@$reload:ident)? $key:ident: $kind:ty $(= $default:expr)?,)*
    }) => {
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

        $crate::config::section::section! { @keys $name [$($section)?] $(($key $($reload)?))* }
    };
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
    (@keys $name:ident [] $($key:tt)*) => {};
    (@keys $name:ident [$section:ident] $(($key:ident $($reload:ident)?))*) => {
        impl $name {
            /// The keys, for a reload.
            pub(crate) const KEYS: &[$crate::reload::ReloadKey] = &[$($crate::reload::ReloadKey {
                name: concat!(stringify!($section), ".", stringify!($key)),
                is_unchanged: |running, new| running.$section.$key == new.$section.$key,
                apply: $crate::config::section::section!(@apply $section $key $($reload)?),
            },)*];
        }
    };
    (@apply $section:ident $key:ident) => { |_, _| {} };
    (@apply $section:ident $key:ident live) => {
        |running, new| running.$section.$key.clone_from(&new.$section.$key)
    };
}
pub(super) use section;
