//! Webhook events of the program, recorded in the commit of the change they report.

use jiff::Timestamp;
use mail::affiliate::program::AffiliateProgram;
use mail::event::{Event, EventKind, Subject};
use mail::id::{EventId, PartnerId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::engine::Batch;

use crate::service::AffiliateService;

/// Builds the data of an event.
pub(crate) struct EventBuilder<'a> {
    pub(crate) program: &'a AffiliateProgram,
    pub(crate) partner: PartnerId,
    particulars: Map<String, Value>,
}

impl<'a> EventBuilder<'a> {
    pub(crate) fn for_partner(program: &'a AffiliateProgram, partner: PartnerId) -> Self {
        Self { program, partner, particulars: Map::new() }
    }

    /// Adds an object as it is after the change, or an id.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, object: &impl Serialize) -> Self {
        // These types always serialize to JSON.
        self.particulars.insert(name.to_owned(), serde_json::to_value(object).unwrap_or_default());
        self
    }
}

impl EventBuilder<'_> {
    /// Adds the event to the commit of the change it reports.
    pub(crate) fn record(
        self,
        batch: &mut Batch,
        kind: EventKind,
        subject: impl Into<Subject>,
        id: EventId,
        now: Timestamp,
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
    /// Adds an event to the commit of the change it reports.
    pub(crate) fn record_event(
        &self,
        batch: &mut Batch,
        kind: EventKind,
        subject: impl Into<Subject>,
        builder: EventBuilder<'_>,
    ) {
        let now = self.now();
        builder.record(batch, kind, subject, EventId::new(now, self.random()), now);
    }
}
