//! What the operator has ordered about a destination: that it is left alone, how fast it is served, which way its mail
//! goes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::DomainName;
use crate::given_name::SmarthostName;

/// Longest reason that is given for a suspension.
const REASON_CHARS_MAX: usize = 200;

/// Reads why something is ordered. Customers are shown it with their mail: one short line, and nothing in it that does
/// not show.
///
/// # Errors
/// What it must be.
pub fn parse_reason(text: &str) -> Result<String, String> {
    let is_hidden = |c: char| {
        // Line ends, and what turns the direction of what stands around it (UAX 9).
        c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text = text.trim();
    if text.is_empty() || text.chars().count() > REASON_CHARS_MAX || text.chars().any(is_hidden) {
        let must = "customers read it: one line of 1 to";
        return Err(format!("{must} {REASON_CHARS_MAX} characters, without control characters"));
    }
    Ok(text.to_owned())
}

/// A destination, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// The recipients' domain.
    Domain(DomainName),
    /// The mail hosts of this name, or under it, whatever domains they serve.
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

/// A destination is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorSuspension {
    /// Since when.
    pub since: Timestamp,
    /// Until when; none is: until it is resumed.
    pub until: Option<Timestamp>,
    /// Why, in the operator's words.
    pub because: Option<String>,
}

impl OperatorSuspension {
    /// Whether it holds.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// How fast a destination is served, where it is another pace than the configuration's; what is none stays as configured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PaceOverride {
    /// Connections at most.
    pub connections_max: Option<u32>,
    /// Messages a second at most.
    pub messages_per_second: Option<f64>,
}

impl PaceOverride {
    /// Whether nothing is ordered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which way a destination's mail goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteOverride {
    /// To its own mail hosts, whatever the configuration says.
    MailHosts,
    /// To a smarthost.
    Smarthost(SmarthostName),
}

/// What is ordered about a destination. It holds until it is taken back, over restarts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DestinationOverrides {
    /// It is left alone.
    pub suspension: Option<OperatorSuspension>,
    /// How fast it is served.
    pub pace: PaceOverride,
    /// Which way its mail goes; for a recipients' domain alone.
    pub way: Option<RouteOverride>,
}

impl DestinationOverrides {
    /// Whether nothing is ordered (any more).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_that_customers_can_read() {
        assert_eq!(parse_reason(" they asked us to ").as_deref(), Ok("they asked us to"));
        assert!(parse_reason(&"ü".repeat(REASON_CHARS_MAX)).is_ok());
        let long = "x".repeat(REASON_CHARS_MAX + 1);
        for text in ["", " ", "two\nlines", "\u{1b}[31mred", "a\0b", "\u{202e}backwards", long.as_str()] {
            assert!(parse_reason(text).is_err_and(|why| why.contains("1 to 200 characters")), "{text:?}");
        }
    }
}
