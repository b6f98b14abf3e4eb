//! Automations: what follows, step by step, from what happens in a customer's product
//! (completions-email.md 2.12).
//!
//! ```text
//! JSON ─► read ─► Definition (trigger + steps)        signal ─► trigger? ─► Run ─► step, step, … ─► ended
//! ```
//!
//! [`definition`] is what a customer wrote and [`read`] reads it, telling all that is wrong by field; [`span`]
//! and [`window`] are its times, [`condition`] its questions, [`context`] what its references see. [`run`]
//! is one person's way through it, as moves of a value that knows no clock and no store.

pub mod condition;
pub mod context;
pub mod definition;
pub mod job;
pub mod person;
pub mod read;
pub mod run;
pub mod span;
pub mod window;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{AccountId, AutomationId};

pub use self::definition::AutomationDefinition;

/// An automation's name.
pub const NAME_BYTES_MAX: usize = 200;
/// Steps of an automation (completions-email.md 2.12).
pub const STEPS_MAX: usize = 50;
/// Automations of an account.
pub const AUTOMATIONS_MAX: usize = 1_000;
/// Active automations of an account that one event can start: what one commit can write.
pub const STARTED_MAX: usize = 50;
/// Versions of an automation; runs of each may be under way, so none is forgotten before the automation is.
pub const VERSIONS_MAX: u32 = 1_000;
/// A definition as JSON.
pub const DEFINITION_BYTES_MAX: usize = 512 << 10;

/// Where an automation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutomationStatus {
    /// Never activated.
    Draft,
    /// Events start runs, and runs go on.
    Active,
    /// No new runs; those that there are hold.
    Paused,
    /// Kept to be looked at.
    Archived,
}

impl AutomationStatus {
    /// All of them, as they are written.
    pub const WORDS: &'static [&'static str] = &["draft", "active", "paused", "archived"];

    /// The one that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "draft" => Some(Self::Draft),
            "active" => Some(Self::Active),
            "paused" => Some(Self::Paused),
            "archived" => Some(Self::Archived),
            _ => None,
        }
    }

    /// How it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Archived => "archived",
        }
    }
}

/// An automation. What it does stands in its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automation {
    /// Its id.
    pub id: AutomationId,
    /// Whose it is.
    pub account: AccountId,
    /// Its name, for people.
    pub name: String,
    /// Where it stands.
    pub status: AutomationStatus,
    /// The version that new runs follow; earlier ones are kept for the runs that follow them.
    pub version: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When anything of it was last changed.
    pub updated_at: Timestamp,
    /// When it was last activated.
    pub activated_at: Option<Timestamp>,
}

/// A version of an automation. Once a run could follow it, it never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct AutomationVersion {
    /// 1, 2, 3 …
    pub number: u32,
    /// What it does.
    pub definition: AutomationDefinition,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How many runs an automation has in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCounts {
    /// At a step, or about to be.
    pub running: u64,
    /// Waiting for a time or an event.
    pub waiting: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended by an error.
    pub failed: u64,
    /// Ended from outside.
    pub cancelled: u64,
}
