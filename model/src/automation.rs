//! Automations: sequences of steps that an event in a customer's product starts for one person
//! (docs/AUTOMATIONS.md).
//!
//! ```text
//! JSON ─► read ─► AutomationDefinition (trigger + steps)     event ─► trigger? ─► AutomationRun ─► step, step, … ─►
//! ended
//! ```
//!
//! [`definition`] holds the customer's configuration. [`parse`] parses it and reports every error by field. [`time_span`] and
//! [`time_window`] are durations and times of day, [`condition`] evaluates conditions, and [`context`] holds the data that
//! references can use. [`run`] is the execution for one person: a state machine without access to the clock or the
//! store.

pub mod condition;
pub mod context;
pub mod definition;
pub mod job;
pub mod parse;
pub mod person_key;
pub mod run;
pub mod time_span;
pub mod time_window;

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, AutomationId};

pub use self::definition::AutomationDefinition;

/// Longest name of an automation in bytes.
pub const NAME_BYTES_MAX: usize = 200;
pub const STEPS_MAX: usize = 50;
/// Maximum number of automations of an account.
pub const AUTOMATIONS_MAX: usize = 1_000;
/// Maximum number of an account's active automations with the same trigger event: the runs that one commit can write.
pub const STARTED_MAX: usize = 50;
/// Maximum number of versions of an automation. Runs of any version may be in progress, so no version is deleted before
/// its automation.
pub const VERSIONS_MAX: u32 = 1_000;
/// Longest JSON text of a definition in bytes.
pub const DEFINITION_BYTES_MAX: usize = 512 << 10;

words! {
    AutomationStatus {
        Draft = "draft",
        /// Events start runs, and runs continue.
        Active = "active",
        /// No new runs; existing runs are held.
        Paused = "paused",
        /// Read-only.
        Archived = "archived",
    }
}

/// An automation. Its trigger and steps are in its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automation {
    pub id: AutomationId,
    pub account: AccountId,
    /// Display name.
    pub name: String,
    pub status: AutomationStatus,
    /// The version that new runs execute. Older versions are retained for the runs that execute them.
    pub version: u32,
    pub created_at: Timestamp,
    /// Time of the last change of any field.
    pub updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activated_at: Option<Timestamp>,
}

/// A version of an automation. It is immutable once a run can execute it.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationVersion {
    /// Version number, from 1.
    pub number: u32,
    pub definition: AutomationDefinition,
    pub created_at: Timestamp,
}

/// Number of runs of an automation by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCounts {
    /// Executing a step, or ready to.
    pub running: u64,
    /// Waiting for a time or an event.
    pub waiting: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
}
