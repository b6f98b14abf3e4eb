//! Pools of source addresses: whose mail leaves from which, and what the operator has ordered about that.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Since when a pool's addresses are warmed up, where the operator has ordered another time than the configuration's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmUpOverride {
    /// The first day of it.
    Since(Date),
    /// They are warm.
    Over,
}
