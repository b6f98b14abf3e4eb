//! The `words!` macro: an enum whose variants have fixed names in the API, in the store and in code.

/// Declares an enum from variants with their words. Generates serde names, `ALL`, `WORDS`, `as_str`, `from_word` and
/// `Display`.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All variants in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// All words in order of declaration.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The word of a variant.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The variant with this word; `None` for an unknown word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub use words;
