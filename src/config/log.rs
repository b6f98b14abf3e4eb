//! `[log]`: level and format of the log.

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use super::section::section;

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text: `2026-01-01T00:00:00Z INFO target: message key=value …`.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

section! {
    /// `[log]`
    #[derive(PartialEq, Eq)]
    LogSection in log {
        format: LogFormat,
        /// Minimum level, or levels by target, in the syntax of `RUST_LOG`, which takes precedence.
        level: String = "info".to_owned(),
        /// True: lines above DEBUG contain email addresses.
        @live addresses: bool,
    }
}

/// Parses `level` or `RUST_LOG`.
///
/// # Errors
/// The text names the invalid part.
pub fn filter(level: &str) -> Result<EnvFilter, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    // EnvFilter accepts an unknown level as a target, and would then log all lines of that target.
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let level: String = level.chars().filter(|character| !character.is_whitespace()).collect();
    if let Some(invalid) = level.split(',').find(|part| !part.contains('=') && !is_level(part)) {
        return Err(format!(
            "`{invalid}` is not a log level: use {}, or target=level (example: \"info,smtp=debug\")",
            LEVELS.join(", ")
        ));
    }
    // The resolver logs every broken signature at length, by which remote senders could fill the log.
    EnvFilter::try_new(format!("hickory_net=error,{level}")).map_err(|_| {
        let invalid = level.split(',').find(|part| EnvFilter::try_new(part).is_err()).unwrap_or(&level);
        format!(
            "`{invalid}` is not target=level with one of the levels {} (example: \"info,smtp=debug\")",
            LEVELS.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read() {
        for level in ["info", "WARN", "warn,queue=debug", "info, smtp=trace", "queue=debug"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for (level, word) in
            [("infoo", "infoo"), ("", ""), ("info,loud", "loud"), ("queue=loud", "queue=loud"), ("info,a[b=c", "a[b=c")]
        {
            let error = filter(level).unwrap_err();
            assert!(error.contains(word) && error.contains("(example: "), "{level}: {error}");
        }
    }
}
