//! The `words!` macro: an enum whose variants have fixed words in the API, in the store and in code.

/// Declares an enum from variants with their words and, after `as`, their stored numbers. Generates serde names, `ALL`,
/// `WORDS`, `word`, `from_word` and `Display`.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident {
        $($(#[$each:meta])* $variant:ident = $word:literal $(as $number:literal)?,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant $(= $number)?,)*
        }

        impl $name {
            /// All variants in order of declaration.
            pub const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant,)*];
            /// All words in order of declaration.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
