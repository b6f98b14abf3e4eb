//! The `redacted!` macro: a `Debug` that prints a fixed text instead of a secret.

/// Implements `Debug` for a type that holds a secret.
#[macro_export]
macro_rules! redacted {
    ($secret:ty, $text:literal) => {
        impl std::fmt::Debug for $secret {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($text)
            }
        }
    };
}
