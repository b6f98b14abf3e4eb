//! Log lines of whoever meets an outage of the database, which the store itself logs.

/// Logs a failure at WARN; at DEBUG while the database does not answer, which the store itself logs once a minute.
/// The first argument is the store, the others are those of `tracing::warn!`.
#[macro_export]
macro_rules! warn_unless_away {
    ($store:expr, $($line:tt)+) => {
        if $store.is_away() { ::tracing::debug!($($line)+) } else { ::tracing::warn!($($line)+) }
    };
}

/// As [`warn_unless_away!`], for failures that are the server's own fault otherwise: logs at ERROR, and at DEBUG while
/// the database does not answer.
#[macro_export]
macro_rules! error_unless_away {
    ($store:expr, $($line:tt)+) => {
        if $store.is_away() { ::tracing::debug!($($line)+) } else { ::tracing::error!($($line)+) }
    };
}
