//! Destination overrides: the operator's suspension, pace and route for a recipient domain or for mail hosts.

use std::fmt;

use jiff::Timestamp;
use message::address::DomainName;
use serde::{Deserialize, Serialize};

use crate::slug::SmarthostName;

/// Longest reason of a suspension, in characters.
const REASON_CHARS_MAX: usize = 200;

/// Parses the reason of an override. Customers see it with their email, so it must be one short line of visible
/// characters.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_reason(text: &str) -> Result<String, String> {
    let is_hidden = |c: char| {
        // Includes line separators and bidirectional controls (UAX 9).
        c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text = text.trim();
    if text.is_empty() || text.chars().count() > REASON_CHARS_MAX || text.chars().any(is_hidden) {
        return Err(format!(
            "must be one line of 1 to {REASON_CHARS_MAX} characters without control characters, because customers see it"
        ));
    }
    Ok(text.to_owned())
}

/// A destination in an override.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// A recipient domain.
    Domain(DomainName),
    /// All mail hosts with this name or below it, for any recipient domain.
    MailHost(DomainName),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => write!(f, "{name}"),
            Self::MailHost(name) => write!(f, "mail hosts under {name}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorSuspension {
    pub since: Timestamp,
    /// `None` suspends it until the operator resumes it.
    pub until: Option<Timestamp>,
    /// The operator's reason.
    pub because: Option<String>,
}

impl OperatorSuspension {
    /// True if the suspension has not ended.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Limits that replace the configured pace; `None` keeps the configured value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PaceOverride {
    pub connections_max: Option<u32>,
    /// Maximum number of messages per second.
    pub messages_per_second: Option<f64>,
}

impl PaceOverride {
    /// True if nothing is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A route that replaces the configured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteOverride {
    /// Direct delivery to the domain's mail hosts.
    MailHosts,
    /// Delivery to a smarthost.
    Smarthost(SmarthostName),
}

/// The overrides of a destination. They are stored until the operator removes them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DestinationOverrides {
    /// Set while the destination is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<OperatorSuspension>,
    #[serde(default, skip_serializing_if = "PaceOverride::is_empty")]
    pub pace: PaceOverride,
    /// The route; only for a recipient domain.
    #[serde(rename = "way", skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteOverride>,
}

impl DestinationOverrides {
    /// True if nothing is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_visible_line() {
        assert_eq!(parse_reason(" they asked us to ").as_deref(), Ok("they asked us to"));
        assert!(parse_reason(&"ü".repeat(REASON_CHARS_MAX)).is_ok());
        let long = "x".repeat(REASON_CHARS_MAX + 1);
        for text in ["", " ", "two\nlines", "\u{1b}[31mred", "a\0b", "\u{202e}backwards", long.as_str()] {
            assert!(parse_reason(text).is_err_and(|why| why.contains("1 to 200 characters")), "{text:?}");
        }
    }
}
