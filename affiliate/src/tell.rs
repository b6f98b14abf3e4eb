//! What is told of the program: each change's event, in the change's own commit (affiliate-api.md, "Events").

use jiff::Timestamp;
use mail::affiliate::program::AffiliateProgram;
use mail::event::{Event, EventKind, Subject};
use mail::id::{EventId, PartnerId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::engine::Batch;

use crate::office::AffiliateService;

/// What an event says beside who it is about.
pub(crate) struct EventBuilder<'a> {
    /// The program.
    pub(crate) program: &'a AffiliateProgram,
    /// The partner whom it is about.
    pub(crate) partner: PartnerId,
    particulars: Map<String, Value>,
}

impl<'a> EventBuilder<'a> {
    /// About a partner.
    pub(crate) fn for_partner(program: &'a AffiliateProgram, partner: PartnerId) -> Self {
        Self { program, partner, particulars: Map::new() }
    }

    /// With an object as it is after the change, or with an id.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, object: &impl Serialize) -> Self {
        // Of types that JSON has: this does not fail.
        self.particulars.insert(name.to_owned(), serde_json::to_value(object).unwrap_or_default());
        self
    }
}

impl EventBuilder<'_> {
    /// Puts the event into the commit that makes it true.
    pub(crate) fn record(
        self,
        batch: &mut Batch,
        kind: EventKind,
        subject: impl Into<Subject>,
        (id, now): (EventId, Timestamp),
    ) {
        let mut detail = Map::new();
        detail.insert("program_id".to_owned(), json!(self.program.id));
        detail.insert("affiliate_id".to_owned(), json!(self.partner));
        detail.extend(self.particulars);
        let event = Event {
            id,
            account: self.program.account,
            subject: subject.into(),
            kind,
            recipient: None,
            created_at: now,
            detail: Value::Object(detail),
        };
        store::event::record_in_any_partition(batch, &event);
    }
}

impl AffiliateService {
    /// Puts an event into the commit that makes it true.
    pub(crate) fn record_event(
        &self,
        batch: &mut Batch,
        kind: EventKind,
        subject: impl Into<Subject>,
        telling: EventBuilder<'_>,
    ) {
        let now = self.now();
        telling.record(batch, kind, subject, (EventId::new(now, self.random()), now));
    }
}
