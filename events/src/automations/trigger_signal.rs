//! A trigger signal: an event in the form that automations evaluate.

use jiff::Timestamp;
use model::automation::context::EventFacts;
use model::automation::person_key::{PersonIdentity, PersonKey};
use model::id::{AccountId, AutomationId, ProductEventId};
use model::received::AutoReplyContext;
use model::trigger_event::TriggerEvent;
use serde::{Deserialize, Serialize};

/// An event for automations. A sealed signal is stored in jobs that finish its effects later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TriggerSignal {
    pub(super) account: AccountId,
    /// The event's name, person and data.
    pub(super) facts: EventFacts,
    /// The event's id in text form.
    pub(super) source: String,
    pub(super) at: Timestamp,
    /// True if a machine, not a person, opened or clicked.
    pub(super) machine: bool,
    /// Automations whose email caused the event, directly or indirectly; the event starts none of them, which prevents
    /// loops.
    pub(super) lineage: Vec<AutomationId>,
    /// For a received email: the facts that decide whether and how it is answered automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answering: Option<AutoReplyContext>,
}

impl TriggerSignal {
    pub(super) fn from_product_event(signal: &TriggerEvent<'_>) -> Self {
        Self {
            account: signal.account,
            facts: EventFacts::from(signal),
            source: ProductEventId::from_bytes(signal.id).to_string(),
            at: signal.at,
            machine: false,
            lineage: Vec::new(),
            answering: None,
        }
    }

    /// Returns whether a person caused the event. An automatic reply, a bounce or mail with a forged author neither
    /// resumes nor cancels a run.
    pub(super) fn is_personal(&self) -> bool {
        self.answering.as_ref().is_none_or(AutoReplyContext::is_from_person)
    }

    /// Keys of the person whom the event is about: user id and email address, as far as present.
    pub(super) fn person_keys(&self) -> Vec<PersonKey> {
        self.identity().keys().into_iter().flatten().collect()
    }

    pub(super) fn identity(&self) -> PersonIdentity<'_> {
        PersonIdentity { user_id: self.facts.user_id.as_deref(), email: self.facts.email.as_deref() }
    }
}
