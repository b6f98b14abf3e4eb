//! Jobs: what automations have to do beside the steps of runs, in slices that each are one commit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::event::Subject;
use crate::id::{AccountId, AutomationId, EventId, RunId};

/// A job. It lies in a partition, whose owner does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomationJob {
    /// Its id.
    pub id: EventId,
    /// Whose it is.
    pub account: AccountId,
    /// Whose owner does it.
    pub partition: u16,
    /// When.
    pub due: Timestamp,
    /// What is to be done.
    pub work: AutomationJobKind,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum AutomationJobKind {
    /// An event of ours happened, that some automation hears.
    Hear {
        /// What it is about.
        subject: Subject,
        /// Which.
        event: EventId,
    },
    /// A signal matched more runs than one commit changes: the others.
    Rest {
        /// The signal, sealed.
        signal: SealedBytes,
        /// Runs are to be cancelled; else they go on.
        cancels: bool,
        /// After which key, in each of the lists that it is looked for in.
        after: Vec<Option<SealedBytes>>,
    },
    /// The runs of an automation are cancelled that were made before.
    Cancel {
        /// Which.
        automation: AutomationId,
        /// Those before this one.
        before: RunId,
    },
    /// The runs of an automation go on that were held.
    Release {
        /// Which.
        automation: AutomationId,
    },
    /// An automation was deleted: so is all that it left.
    Forget {
        /// Which.
        automation: AutomationId,
    },
}

/// Bytes, written in base64.
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
