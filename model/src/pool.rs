//! The operator's override of the warm-up of a pool of source addresses.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Replaces the configured start of a pool's warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmUpOverride {
    /// First day of the warm-up.
    Since(Date),
    /// The warm-up is finished.
    Over,
}
