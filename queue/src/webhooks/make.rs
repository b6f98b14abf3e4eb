//! Making deliveries: in the commit that tells an event, one for each endpoint that asks for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use mail::delivery::{Delivery, DeliveryStatus};
use mail::email::Email;
use mail::event::{Event, Subject};
use mail::id::{AccountId, DeliveryId, EventId};
use mail::payload;
use mail::webhook::{AboutDomain, Webhook};
use store::delivery::{Due, LineName};
use store::engine::{Batch, ReadError};

use super::spread;
use crate::worker::Worker;

/// Deliveries made in one commit, but for those of its first event.
const DELIVERIES_MAX: usize = 5_000;

/// The endpoints of the accounts that events are about.
#[derive(Debug, Default)]
pub(crate) struct Audience(HashMap<AccountId, Arc<Vec<Webhook>>>);

impl Audience {
    /// How many of the first events may be told in one commit: each makes at most a delivery for each endpoint.
    pub(crate) fn room_for<'a>(&self, events: impl Iterator<Item = Option<&'a Event>>) -> usize {
        let mut sum = 0_usize;
        let endpoints = |event: &Event| self.0.get(&event.account).map_or(0, |endpoints| endpoints.len());
        let fits = events.take_while(|event| {
            let first = sum == 0;
            sum += event.map_or(0, endpoints);
            first || sum <= DELIVERIES_MAX
        });
        fits.count()
    }
}

/// What was made, once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The partitions that the commit must be fenced for.
    pub(crate) partitions: BTreeSet<u16>,
    lines: BTreeSet<LineName>,
    bodies: Vec<(EventId, Bytes)>,
    now: Timestamp,
}

impl Worker {
    /// Who may ask for the events of these accounts.
    pub(crate) async fn audience(&self, accounts: &[AccountId]) -> Result<Audience, ReadError> {
        let versions = store::webhook::versions(&self.store, accounts).await?;
        let mut audience = Audience::default();
        for (account, version) in accounts.iter().copied().zip(versions) {
            let endpoints = self.webhooks.endpoints(&self.store, account, &version).await?;
            if endpoints.iter().any(|endpoint| endpoint.enabled) {
                audience.0.insert(account, endpoints);
            }
        }
        Ok(audience)
    }

    /// Writes the deliveries of events into the batch that tells them. None: we have no partition for them now.
    pub(crate) fn make_deliveries<'a>(
        &self,
        batch: &mut Batch,
        audience: &Audience,
        events: impl Iterator<Item = (&'a Event, Option<&'a Email>)>,
    ) -> Option<Made> {
        let now = self.clock.now();
        let mut made = Made { now, ..Made::default() };
        for (event, email) in events {
            let Some(endpoints) = audience.0.get(&event.account) else { continue };
            let asking = asking(endpoints, event, email);
            for endpoint in &asking {
                let due = self.due(endpoint, now)?;
                made.partitions.insert(due.line.partition);
                made.lines.insert(due.line);
                store::delivery::create(batch, &of_event(endpoint, event, &due), &due);
            }
            if !asking.is_empty() {
                // Made once, however many get it.
                made.bodies.extend(payload::body_of(event, email).map(|body| (event.id, Bytes::from(body))));
                self.webhooks.listen(now);
            }
        }
        Some(made)
    }

    /// A delivery to an endpoint that is due now, in a partition of ours.
    pub(super) fn due(&self, endpoint: &Webhook, now: Timestamp) -> Option<Due> {
        let partition = self.leases.choose_by(spread(endpoint.id))?;
        let line = LineName { partition, account: endpoint.account, webhook: endpoint.id };
        Some(Due { line, at: now, delivery: DeliveryId::new(now, self.entropy.u128()) })
    }

    /// They are committed: they are sent.
    pub(crate) fn deliveries_made(&self, made: Made) {
        for (event, body) in made.bodies {
            self.webhooks.payloads.keep(event, body);
        }
        for line in made.lines {
            self.webhooks.lines.note(line, made.now);
        }
    }

    /// Events of these accounts were told: who follows them hears of it.
    pub(crate) fn wake_followers(&self, accounts: impl Iterator<Item = AccountId>) {
        if self.webhooks.followers.wake(accounts) {
            self.webhooks.listen(self.clock.now());
        }
    }
}

/// The endpoints that an event goes to.
fn asking<'a>(endpoints: &'a [Webhook], event: &Event, email: Option<&Email>) -> Vec<&'a Webhook> {
    let domain = match event.subject {
        Subject::Email(_) => {
            email.and_then(|email| email.domain.as_ref()).map(|name| AboutDomain::Name(name.as_str()))
        }
        Subject::Domain(id) => Some(AboutDomain::Id(id)),
        _ => event.detail.get("domain").and_then(|domain| domain.as_str()).map(AboutDomain::Name),
    };
    let received_for = match event.subject {
        Subject::Received(_) => event.recipient.as_ref(),
        _ => None,
    };
    let asks = |one: &&Webhook| {
        one.enabled
            && one.asks_for(event.kind)
            && one.covers(domain)
            && received_for.is_none_or(|address| one.routes(address))
    };
    endpoints.iter().filter(asks).collect()
}

fn of_event(endpoint: &Webhook, event: &Event, due: &Due) -> Delivery {
    Delivery {
        id: due.delivery,
        account: event.account,
        webhook: endpoint.id,
        event: event.id,
        kind: event.kind.name().to_owned(),
        subject: Some(event.subject),
        body: None,
        status: DeliveryStatus::Pending,
        attempts: 0,
        by_hand: false,
        next_attempt_at: Some(due.at),
        response_status: None,
        created_at: due.at,
        delivered_at: None,
    }
}
