//! What the operator has ordered about a destination: that it is left alone, how fast it is served, which way its mail
//! goes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Name;
use crate::smarthost_name::SmarthostName;

/// A destination, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// The recipients' domain.
    Domain(Name),
    /// The mail hosts of this name, or under it, whatever domains they serve.
    MailHost(Name),
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
pub struct Suspension {
    /// Since when.
    pub since: Timestamp,
    /// Until when; none is: until it is resumed.
    pub until: Option<Timestamp>,
    /// Why, in the operator's words.
    pub because: Option<String>,
}

impl Suspension {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// How fast a destination is served, where it is another pace than the configuration's; what is none stays as configured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct OrderedPace {
    /// Connections at most.
    pub connections_max: Option<u32>,
    /// Messages a second at most.
    pub messages_per_second: Option<f64>,
}

impl OrderedPace {
    /// Whether nothing is ordered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which way a destination's mail goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// To its own mail hosts, whatever the configuration says.
    MailHosts,
    /// To a smarthost.
    Smarthost(SmarthostName),
}

/// What is ordered about a destination. It holds until it is taken back, over restarts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// It is left alone.
    pub suspension: Option<Suspension>,
    /// How fast it is served.
    pub pace: OrderedPace,
    /// Which way its mail goes; for a recipients' domain alone.
    pub way: Option<Way>,
}

impl Standing {
    /// Whether nothing is ordered (any more).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
