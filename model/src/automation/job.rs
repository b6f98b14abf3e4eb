//! Automation jobs: background work of automations other than the steps of runs. Each job is processed in slices of one
//! commit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::event::Subject;
use crate::id::{AccountId, AutomationId, EventId, RunId};

/// A job. It is stored in a partition and executed by the node that owns the partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomationJob {
    pub id: EventId,
    pub account: AccountId,
    /// The partition that the job is stored in.
    pub partition: u16,
    pub due: Timestamp,
    pub work: AutomationJobKind,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum AutomationJobKind {
    /// Match an event of the service itself with the triggers and waits of automations.
    Hear {
        /// Subject of the event.
        subject: Subject,
        event: EventId,
    },
    /// Process the remaining runs of a signal that matched more runs than fit into one commit.
    Rest {
        /// The signal, encrypted.
        signal: SealedBytes,
        /// True to cancel the matched runs, false to resume them.
        cancels: bool,
        /// Cursors: the last processed key of each index that is searched.
        after: Vec<Option<SealedBytes>>,
    },
    /// Cancel the existing runs of an automation.
    Cancel {
        automation: AutomationId,
        /// Only runs with a lower id are cancelled.
        before: RunId,
    },
    /// Resume the held runs of an automation that was activated again.
    Release { automation: AutomationId },
    /// Delete all data of a deleted automation.
    Forget { automation: AutomationId },
}

/// Encrypted bytes, serialized as base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedBytes(pub Vec<u8>);

impl Serialize for SealedBytes {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for SealedBytes {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(D::Error::custom)
    }
}
