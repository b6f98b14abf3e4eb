//! Webhook events of the program, recorded in the commit of the change they report.

use jiff::Timestamp;
use model::affiliate::commission::Commission;
use model::affiliate::payout::Payout;
use model::affiliate::program::AffiliateProgram;
use model::affiliate::referral::Referral;
use model::event::{Event, EventKind, Subject};
use model::id::{EventId, PartnerId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::engine::Batch;

use crate::api_objects::CommissionObject;
use crate::context::Context;

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
    /// Adds the event to the commit of the change it reports, with a new id and the current time.
    pub(crate) fn record_now(self, batch: &mut Batch, kind: EventKind, subject: impl Into<Subject>, context: &Context) {
        let now = context.now();
        self.record(batch, kind, subject, EventId::new(now, context.random()), now);
    }

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
        let event = Event::new(id, self.program.account, subject, kind, now, Value::Object(detail));
        store::event::record_in_any_partition(batch, &event);
    }
}

pub(crate) fn referral_event<'a>(program: &'a AffiliateProgram, referral: &Referral) -> EventBuilder<'a> {
    EventBuilder::for_partner(program, referral.partner).with("referral_id", &referral.id)
}

/// Builds the event of a line; includes `payout_id` if the line is in a payout.
pub(crate) fn commission_event<'a>(program: &'a AffiliateProgram, line: &Commission) -> EventBuilder<'a> {
    let builder = EventBuilder::for_partner(program, line.partner)
        .with("referral_id", &line.referral)
        .with("commission_id", &line.id)
        .with("commission", &CommissionObject::from(line));
    match line.status.payout() {
        Some(payout) => builder.with("payout_id", &payout),
        None => builder,
    }
}

/// Builds the event of a payout. It has only the id, by which a receiver fetches the current state.
pub(crate) fn payout_event<'a>(program: &'a AffiliateProgram, payout: &Payout) -> EventBuilder<'a> {
    EventBuilder::for_partner(program, payout.partner).with("payout_id", &payout.id)
}
