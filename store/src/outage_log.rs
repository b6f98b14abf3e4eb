//! Log macros for code that fails in a database outage, which the store logs itself.

/// Logs a failure at WARN, or at DEBUG while the database is unavailable, which the store itself logs once a minute.
/// The first argument is the store, the others are those of `tracing::warn!`.
#[macro_export]
macro_rules! warn_unless_away {
    ($store:expr, $($line:tt)+) => {
        if $store.is_away() { ::tracing::debug!($($line)+) } else { ::tracing::warn!($($line)+) }
    };
}

/// Like [`warn_unless_away!`], for failures that are otherwise the server's own fault: logs at ERROR, or at DEBUG while
/// the database is unavailable.
#[macro_export]
macro_rules! error_unless_away {
    ($store:expr, $($line:tt)+) => {
        if $store.is_away() { ::tracing::debug!($($line)+) } else { ::tracing::error!($($line)+) }
    };
}
