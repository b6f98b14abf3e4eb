//! Creates deliveries in the commit that dispatches an event: one per subscribed endpoint, and one for the partner
//! whose event it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use model::affiliate::postback;
use model::email::Email;
use model::event::{Event, Subject};
use model::id::{AccountId, DeliveryId, EventId, PartnerId, WebhookId};
use model::webhook::{EventDomain, Webhook};
use model::webhook_delivery::WebhookDelivery;
use model::webhook_payload;
use store::engine::{Batch, ReadError};
use store::webhook_delivery::{DueDelivery, EndpointQueueName};

use super::delivery_target::postback_endpoint_id;
use super::{WebhookSender, random_part};

/// Deliveries created per commit; the first event may exceed it.
const DELIVERIES_MAX: usize = 5_000;

/// Subscribers of a batch of events: endpoints by account, and partners with a postback URL.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    endpoints: HashMap<AccountId, Arc<Vec<Webhook>>>,
    /// True if the program shares customer email addresses with the partner.
    partners: HashMap<PartnerId, bool>,
}

impl Subscribers {
    /// Returns how many of the first events fit into one commit, assuming one delivery per endpoint.
    pub(crate) fn events_that_fit<'a>(&self, events: impl Iterator<Item = Option<&'a Event>>) -> usize {
        let mut sum = 0_usize;
        let endpoints = |event: &Event| {
            self.endpoints.get(&event.account).map_or(0, |endpoints| endpoints.len())
                + usize::from(self.subscribed_partner(event).is_some())
        };
        let fits = events.take_while(|event| {
            let first = sum == 0;
            sum += event.map_or(0, endpoints);
            first || sum <= DELIVERIES_MAX
        });
        fits.count()
    }

    /// Returns the partner that an event is sent to, and whether addresses are shared.
    fn subscribed_partner(&self, event: &Event) -> Option<(PartnerId, bool)> {
        let partner = postback::partner_for_event(event)?;
        self.partners.get(&partner).map(|shares_email| (partner, *shares_email))
    }
}

/// Created deliveries, used after the commit.
#[derive(Debug, Default)]
pub(crate) struct NewDeliveries {
    /// Partitions for which the commit must be fenced.
    pub(crate) partitions: BTreeSet<u16>,
    queues: BTreeSet<EndpointQueueName>,
    bodies: Vec<(EventId, Bytes)>,
    now: Timestamp,
}

impl NewDeliveries {
    fn add(&mut self, batch: &mut Batch, delivery: &WebhookDelivery, due: DueDelivery) {
        self.partitions.insert(due.queue.partition);
        self.queues.insert(due.queue);
        store::webhook_delivery::create(batch, delivery, &due);
    }
}

impl WebhookSender {
    /// Loads the possible subscribers of these events, which belong to these accounts.
    pub(crate) async fn load_subscribers<'a>(
        &self,
        accounts: &[AccountId],
        events: impl Iterator<Item = &'a Event>,
    ) -> Result<Subscribers, ReadError> {
        let versions = store::webhook::list_versions(&self.services.store, accounts).await?;
        let mut audience = Subscribers::default();
        for (account, version) in accounts.iter().copied().zip(versions) {
            let endpoints = self.endpoints(&self.services.store, account, &version).await?;
            if endpoints.iter().any(|endpoint| endpoint.enabled) {
                audience.endpoints.insert(account, endpoints);
            }
        }
        audience.partners = self.partners_with_addresses(events).await?;
        Ok(audience)
    }

    /// Returns the partners of these events that have a postback URL.
    async fn partners_with_addresses<'a>(
        &self,
        events: impl Iterator<Item = &'a Event>,
    ) -> Result<HashMap<PartnerId, bool>, ReadError> {
        let mut by_account: BTreeMap<AccountId, BTreeSet<PartnerId>> = BTreeMap::new();
        for event in events {
            if let Some(partner) = postback::partner_for_event(event) {
                by_account.entry(event.account).or_default().insert(partner);
            }
        }
        let mut addressed = HashMap::new();
        for (account, partners) in by_account {
            let ids: Vec<PartnerId> = partners.into_iter().collect();
            let found = store::affiliate::partner::get_each(&self.services.store, account, &ids).await?;
            let with_address: Vec<PartnerId> = found
                .into_iter()
                .flatten()
                .filter(|partner| partner.postback_url.is_some())
                .map(|partner| partner.id)
                .collect();
            if with_address.is_empty() {
                continue;
            }
            let program = store::affiliate::program::get(&self.services.store, account).await?;
            let shares_email = program.is_some_and(|program| program.settings.share_customer_email);
            addressed.extend(with_address.into_iter().map(|partner| (partner, shares_email)));
        }
        Ok(addressed)
    }

    /// Adds the deliveries of events to the batch that dispatches them. `None` if this node owns no partition now.
    pub(crate) fn create_deliveries<'a>(
        &self,
        batch: &mut Batch,
        audience: &Subscribers,
        events: impl Iterator<Item = (&'a Event, Option<&'a Email>)>,
    ) -> Option<NewDeliveries> {
        let now = self.services.clock.now();
        let mut new_deliveries = NewDeliveries { now, ..NewDeliveries::default() };
        for (event, email) in events {
            let endpoints = audience.endpoints.get(&event.account);
            let subscribed =
                endpoints.map(|endpoints| subscribed_endpoints(endpoints, event, email)).unwrap_or_default();
            for endpoint in &subscribed {
                let due = self.new_due_delivery(endpoint.account, endpoint.id, now)?;
                new_deliveries.add(batch, &event_delivery(endpoint.id, event, &due), due);
            }
            if !subscribed.is_empty() {
                // Rendered once for all endpoints.
                new_deliveries
                    .bodies
                    .extend(webhook_payload::delivery_body(event, email).map(|body| (event.id, Bytes::from(body))));
                self.note_listener(now);
            }
            if let Some((partner, shares_email)) = audience.subscribed_partner(event) {
                let (webhook, body) = (postback_endpoint_id(partner), postback::postback_body(event, shares_email));
                let due = self.new_due_delivery(event.account, webhook, now)?;
                // The partner's view of the event is fixed now, and the same in every attempt.
                let delivery = WebhookDelivery { body, subject: None, ..event_delivery(webhook, event, &due) };
                new_deliveries.add(batch, &delivery, due);
                self.note_listener(now);
            }
        }
        Some(new_deliveries)
    }

    /// Returns a due key in an owned partition, for a delivery that is due now.
    pub(super) fn new_due_delivery(
        &self,
        account: AccountId,
        webhook: WebhookId,
        now: Timestamp,
    ) -> Option<DueDelivery> {
        let partition = self.services.leases.choose_by_hash(random_part(webhook))?;
        let queue_name = EndpointQueueName { partition, account, webhook };
        Some(DueDelivery {
            queue: queue_name,
            at: now,
            delivery: DeliveryId::new(now, self.services.entropy.unique_bits()),
        })
    }

    /// Enqueues committed deliveries for sending.
    pub(crate) fn deliveries_committed(&self, new_deliveries: NewDeliveries) {
        for (event, body) in new_deliveries.bodies {
            self.payloads.insert(event, body);
        }
        for queue_name in new_deliveries.queues {
            self.endpoint_queues.add(queue_name, new_deliveries.now);
        }
    }

    /// Wakes the stream subscribers of these accounts.
    pub(crate) fn wake_subscribers(&self, accounts: impl Iterator<Item = AccountId>) {
        if self.subscribers.wake(accounts) {
            self.note_listener(self.services.clock.now());
        }
    }
}

fn subscribed_endpoints<'a>(endpoints: &'a [Webhook], event: &Event, email: Option<&Email>) -> Vec<&'a Webhook> {
    let domain = match event.subject {
        Subject::Email(_) => email.and_then(|email| email.domain.as_ref()).map(|name| EventDomain::Name(name.as_str())),
        Subject::Domain(id) => Some(EventDomain::Id(id)),
        _ => event.detail.get("domain").and_then(|domain| domain.as_str()).map(EventDomain::Name),
    };
    let received_for = match event.subject {
        Subject::Received(_) => event.recipient.as_ref(),
        _ => None,
    };
    let is_subscribed = |endpoint: &&Webhook| {
        endpoint.enabled
            && endpoint.subscribes_to(event.kind)
            && endpoint.accepts_domain(domain)
            && received_for.is_none_or(|address| endpoint.accepts_received_for(address))
    };
    endpoints.iter().filter(is_subscribed).collect()
}

fn event_delivery(webhook: WebhookId, event: &Event, due: &DueDelivery) -> WebhookDelivery {
    let name = event.kind.name();
    let delivery = WebhookDelivery::new(due.delivery, event.account, webhook, event.id, name, due.at);
    WebhookDelivery { subject: Some(event.subject), ..delivery }
}
