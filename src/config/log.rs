//! `[log]`: what the log says, and how.

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people: `2026-01-01T00:00:00Z INFO target: message key=value …`.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// How lines are written.
    pub format: LogFormat,
    /// From which level on, as `RUST_LOG` says it, which goes before: a level, or levels by target.
    pub level: String,
    /// Whether lines above DEBUG show email addresses.
    pub addresses: bool,
}

impl Default for LogSection {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned(), addresses: false }
    }
}

/// Reads what `level` and `RUST_LOG` say.
///
/// # Errors
/// What is wrong with it, in a sentence.
pub fn filter(level: &str) -> Result<EnvFilter, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    // EnvFilter takes a word that is no level for a target, whose lines are all shown.
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let level: String = level.chars().filter(|character| !character.is_whitespace()).collect();
    if let Some(wrong) = level.split(',').find(|part| !part.contains('=') && !is_level(part)) {
        return Err(format!("`{wrong}` is no level: use {}, or target=level", LEVELS.join(", ")));
    }
    // The resolver logs each answer with a broken signature at length, and strangers could fill the log with them.
    EnvFilter::try_new(format!("hickory_net=error,{level}")).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read() {
        for level in ["info", "WARN", "warn,queue=debug", "info, smtp=trace", "queue=debug"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for (level, word) in [("infoo", "infoo"), ("", ""), ("info,loud", "loud"), ("queue=loud", "")] {
            let error = filter(level).unwrap_err();
            assert!(error.contains(word), "{level}: {error}");
        }
    }
}
