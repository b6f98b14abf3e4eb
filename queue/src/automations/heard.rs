//! What was heard: a signal, from whom, and by what way.

use jiff::Timestamp;
use mail::automation::context::EventFacts;
use mail::automation::person::{self, PersonKey};
use mail::id::{AccountId, AutomationId, ProductEventId};
use mail::received::AutoReplyContext;
use mail::signal::TriggerEvent;
use serde::{Deserialize, Serialize};

/// A signal as automations take it; sealed, it is what is left of it to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TriggerSignal {
    /// Whose it is.
    pub(super) account: AccountId,
    /// What happened, and to whom.
    pub(super) facts: EventFacts,
    /// The event's id, as it is written.
    pub(super) source: String,
    /// When it happened.
    pub(super) at: Timestamp,
    /// A machine opened or clicked.
    pub(super) machine: bool,
    /// The automations whose mail it is about, and those whose mail led to that: none of them is started by it.
    pub(super) lineage: Vec<AutomationId>,
    /// Where an email came in: what an answer to it must heed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answering: Option<AutoReplyContext>,
}

impl TriggerSignal {
    /// A product event.
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

    /// Whether it counts as what a person did: a notice of absence, a bounce, a forged author is nothing that a run
    /// waits for, and nothing that ends one.
    pub(super) fn is_personal(&self) -> bool {
        self.answering.as_ref().is_none_or(AutoReplyContext::is_from_person)
    }

    /// The keys of the person that it is about.
    pub(super) fn person_keys(&self) -> Vec<PersonKey> {
        let user = self.facts.user_id.as_deref().map(person::user_key);
        user.into_iter().chain(self.facts.email.as_deref().map(person::email_key)).collect()
    }

    /// The user id and the address.
    pub(super) fn user_and_address(&self) -> (Option<&str>, Option<&str>) {
        (self.facts.user_id.as_deref(), self.facts.email.as_deref())
    }
}
