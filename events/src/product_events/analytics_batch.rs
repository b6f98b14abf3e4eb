//! A batch of pending product events and visits: their people, their counting status, and the rows that follow from
//! them.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use model::id::{AccountId, ProductEventId};
use model::metric::Hour;
use model::product_event::ProductEvent;
use model::product_event::conversion::{self, Conversion, ConversionKind};
use model::product_event::counting_status::{CountingStatus, EventPerson, InternalUsers};
use model::product_event::funnel::UNKNOWN;
use model::product_event::person::{PersonAlias, VISIT};
use model::product_event::signup_context::{SignupContext, USER_CREATED};
use model::product_event::site_visit::{SiteVisit, is_visitor_id};
use net::entropy::Entropy;
use store::engine::{Batch, Key, ReadError, Store};
use store::pending_analytics::{AnalyticsEvent, PendingAnalyticsEvent};
use store::person::{PersonCache, PersonId};
use store::product_event_count::{ProductEventCounts, ProductEventIncrements};

/// New visitors of an account stored per day; further ones are counted without a person row.
const NEW_VISITORS_PER_DAY_MAX: u64 = 100_000;

/// A product event or visit with the person's aliases.
struct Occurrence {
    account: AccountId,
    partition: u16,
    at: Timestamp,
    aliases: Vec<PersonAlias>,
    kind: OccurrenceKind,
}

enum OccurrenceKind {
    Event(Box<EventOccurrence>),
    Visit(Box<SiteVisit>),
}

/// An event with its sign-up context and its own counting status.
struct EventOccurrence {
    event: ProductEvent,
    context: SignupContext,
    standing: CountingStatus,
}

/// Occurrences that are aggregated in one commit.
pub(super) struct AnalyticsBatch {
    occurrences: Vec<Occurrence>,
    persons: PersonCache,
    /// Keys of the batch's conversions that are recorded already.
    recorded: HashSet<Key>,
    /// New visitors per account and day; starts with the stored counts.
    visitors: BTreeMap<(AccountId, Hour), u64>,
}

impl AnalyticsBatch {
    /// Reads the events and all rows that their aggregation depends on.
    pub(super) async fn load(store: &Store, uncounted: &[PendingAnalyticsEvent]) -> Result<Self, ReadError> {
        let ids: Vec<_> = uncounted
            .iter()
            .filter_map(|row| match row.happened {
                AnalyticsEvent::Event(id) => Some((row.account, id)),
                AnalyticsEvent::Visit(_) => None,
            })
            .collect();
        let mut events = store::product_event::get_many(store, &ids).await?.into_iter();
        let mut members = BTreeMap::new();
        for (account, _) in &ids {
            if !members.contains_key(account) {
                members.insert(*account, account_members(store, *account).await?);
            }
        }
        let none = InternalUsers::default();
        let mut occurrences = Vec::with_capacity(uncounted.len());
        for PendingAnalyticsEvent { account, partition, happened, .. } in uncounted {
            occurrences.extend(match happened {
                // The event was purged before it was aggregated: skip it.
                AnalyticsEvent::Event(_) => {
                    let members = members.get(account).unwrap_or(&none);
                    events.next().flatten().map(|event| Occurrence::from_event(event, *partition, members))
                }
                AnalyticsEvent::Visit(visit) => Some(Occurrence::from_visit(*account, visit, *partition)),
            });
        }
        // Order by time across partitions: an earlier event of a person affects how later ones count.
        occurrences.sort_by_key(|occurrence| occurrence.at);
        let aliases = occurrences
            .iter()
            .flat_map(|occurrence| occurrence.aliases.iter().map(|alias| (occurrence.account, alias.clone())));
        let aliases: HashSet<_> = aliases.collect();
        let persons = PersonCache::read(store, aliases.into_iter().collect()).await?;
        let keys: Vec<Key> = occurrences.iter().filter_map(Occurrence::conversion_key).collect();
        let are_recorded = store::conversion::are_recorded(store, &keys).await?;
        let recorded =
            keys.into_iter().zip(are_recorded).filter(|(_, are_recorded)| *are_recorded).map(|(key, _)| key).collect();
        let visitors = load_new_visitors(store, &occurrences).await?;
        Ok(Self { occurrences, persons, recorded, visitors })
    }

    /// Adds the resulting rows to the batch. Conversions with an ad click id are enqueued for export at `export`, if it
    /// is set. Returns the number of conversions recorded.
    pub(super) async fn write(
        mut self,
        store: &Store,
        entropy: &Entropy,
        export: Option<Timestamp>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (mut additions, mut conversions) = (ProductEventIncrements::default(), 0);
        for occurrence in std::mem::take(&mut self.occurrences) {
            let new_person = ProductEventId::new(occurrence.at, entropy.unique_bits()).to_bytes();
            let product_event = match &occurrence.kind {
                OccurrenceKind::Visit(visit) => {
                    self.count_visit(&occurrence, visit, new_person, &mut additions);
                    continue;
                }
                OccurrenceKind::Event(product_event) => product_event,
            };
            let (source, standing) = self.attribute_person(&occurrence, product_event, new_person);
            let (mut counts, hour) = (event_counts(standing), Hour::containing(occurrence.at));
            if let Some(conversion) = self.new_conversion(&occurrence, product_event, standing, source) {
                count_conversion(&mut counts, conversion.kind);
                let mut credited = ProductEventCounts::default();
                count_conversion(&mut credited, conversion.kind);
                additions.add_source(
                    occurrence.account,
                    conversion.source.as_deref().unwrap_or(UNKNOWN),
                    hour,
                    credited,
                );
                store::conversion::record(batch, &conversion);
                if let Some(now) = export.filter(|_| !conversion.context.clicks.is_empty()) {
                    store::conversion_export::enqueue(batch, occurrence.partition, &conversion, now);
                }
                conversions += 1;
            }
            additions.add_name(occurrence.account, &product_event.event.name, hour, counts);
        }
        self.persons.write(batch);
        store::product_event_count::add(store, batch, &additions).await?;
        Ok(conversions)
    }

    fn count_visit(
        &mut self,
        occurrence: &Occurrence,
        visit: &SiteVisit,
        new_person: PersonId,
        additions: &mut ProductEventIncrements,
    ) {
        let hour = Hour::containing(occurrence.at);
        let new = self.visitors.entry((occurrence.account, hour.day())).or_default();
        let mut counts = ProductEventCounts { count: 1, ..ProductEventCounts::default() };
        if (self.persons.knows(occurrence.account, &occurrence.aliases) || *new < NEW_VISITORS_PER_DAY_MAX)
            && let Some(person) = self.persons.resolve(occurrence.account, &occurrence.aliases, new_person)
        {
            if !person.marks.contains_key(VISIT) {
                counts.visitors = 1;
                *new += 1;
            }
            person.mark(VISIT, occurrence.at);
            person.source.get_or_insert_with(|| visit.source.clone());
            person.last_source = Some(visit.source.clone());
            if person.standing == CountingStatus::Excluded {
                counts = ProductEventCounts { excluded: 1, ..ProductEventCounts::default() };
            }
        }
        additions.add_source(occurrence.account, &visit.source, hour, counts);
        additions.add_name(occurrence.account, VISIT, hour, counts);
    }

    /// Updates the person with the event. Returns the person's first source and the status with which the event counts.
    /// Events of a person who was ever classified as internal do not count.
    fn attribute_person(
        &mut self,
        occurrence: &Occurrence,
        product_event: &EventOccurrence,
        new_person: PersonId,
    ) -> (Option<String>, CountingStatus) {
        if occurrence.aliases.is_empty() {
            return (None, product_event.standing);
        }
        let Some(person) = self.persons.resolve(occurrence.account, &occurrence.aliases, new_person) else {
            return (None, product_event.standing);
        };
        person.mark(&product_event.event.name, occurrence.at);
        person.exclude_or_keep(product_event.standing);
        let context = &product_event.context;
        for (stored, reported) in
            [(&mut person.came_from, &context.came_from), (&mut person.signup_method, &context.signup_method)]
        {
            if stored.is_none() {
                stored.clone_from(reported);
            }
        }
        (person.source.clone(), product_event.standing.for_person(person.standing))
    }

    /// Returns the conversion of an event if it was not recorded before.
    fn new_conversion(
        &mut self,
        occurrence: &Occurrence,
        product_event: &EventOccurrence,
        standing: CountingStatus,
        source: Option<String>,
    ) -> Option<Conversion> {
        let EventOccurrence { event, context, .. } = product_event;
        let (kind, subject) = product_event.conversion_subject(standing)?;
        if !self.recorded.insert(store::conversion::key_of(occurrence.account, kind, &subject)) {
            return None;
        }
        Some(Conversion {
            event: event.id,
            account: occurrence.account,
            kind,
            subject,
            user_id: event.user_id.clone(),
            email: event_address(event).map(str::to_owned),
            context: context.clone(),
            source,
            value: conversion::monetary_value(&event.data),
            occurred_at: event.created_at,
        })
    }
}

impl EventOccurrence {
    fn conversion_subject(&self, standing: CountingStatus) -> Option<(ConversionKind, String)> {
        let Self { event, context, .. } = self;
        conversion::conversion_of_event(&event.name, event.user_id.as_deref(), context, standing)
    }
}

impl Occurrence {
    fn from_event(event: ProductEvent, partition: u16, members: &InternalUsers) -> Self {
        let context = SignupContext::from_event_data(&event.data);
        let person = EventPerson { email: event_address(&event), user_id: event.user_id.as_deref() };
        let standing = CountingStatus::classify(&event.name, person, &context, members);
        let aliases = event_aliases(&event, &context);
        let (account, at) = (event.account, event.created_at);
        Self {
            account,
            partition,
            at,
            aliases,
            kind: OccurrenceKind::Event(Box::new(EventOccurrence { event, context, standing })),
        }
    }

    fn from_visit(account: AccountId, visit: &SiteVisit, partition: u16) -> Self {
        let aliases = vec![PersonAlias::Visitor(visit.visitor_id.clone())];
        Self { account, partition, at: visit.at, aliases, kind: OccurrenceKind::Visit(Box::new(visit.clone())) }
    }

    fn conversion_key(&self) -> Option<Key> {
        let OccurrenceKind::Event(product_event) = &self.kind else { return None };
        let (kind, subject) = product_event.conversion_subject(product_event.standing)?;
        Some(store::conversion::key_of(self.account, kind, &subject))
    }
}

/// Returns the address of the event's person: the event's own, or the one in its properties.
fn event_address(event: &ProductEvent) -> Option<&str> {
    let address = event.email.as_deref().or_else(|| event.data["email"].as_str());
    address.filter(|address| address.len() <= message::address::ADDRESS_BYTES_MAX)
}

fn event_aliases(event: &ProductEvent, context: &SignupContext) -> Vec<PersonAlias> {
    let signed_up = context.id.clone().filter(|_| event.name == USER_CREATED);
    let user = event.user_id.clone().or(signed_up).map(PersonAlias::User);
    let email = event_address(event).map(|email| PersonAlias::Email(email.trim().to_lowercase()));
    let visitor = context.visitor_id.clone().filter(|id| is_visitor_id(id)).map(PersonAlias::Visitor);
    [user, email, visitor].into_iter().flatten().collect()
}

/// Returns the counter increment of an event.
fn event_counts(standing: CountingStatus) -> ProductEventCounts {
    let none = ProductEventCounts::default();
    match standing {
        CountingStatus::Counted => ProductEventCounts { count: 1, ..none },
        CountingStatus::Seat => ProductEventCounts { seats: 1, ..none },
        CountingStatus::Excluded => ProductEventCounts { excluded: 1, ..none },
    }
}

fn count_conversion(counts: &mut ProductEventCounts, kind: ConversionKind) {
    match kind {
        ConversionKind::SignUp => counts.sign_ups += 1,
        ConversionKind::Subscription => counts.subscriptions += 1,
    }
}

/// Returns the addresses and ids of an account's own people: its users and its owner.
async fn account_members(store: &Store, account: AccountId) -> Result<InternalUsers, ReadError> {
    let users = store::user::list(store, account).await?;
    let owner = store::account::get(store, account).await?;
    let users = users.into_iter().flat_map(|user| [user.email.to_string(), user.id.to_string()]);
    Ok(InternalUsers::new(users.chain(owner.map(|owner| owner.email.to_string()))))
}

/// Returns the number of new visitors stored for the days of these visits.
async fn load_new_visitors(
    store: &Store,
    occurrences: &[Occurrence],
) -> Result<BTreeMap<(AccountId, Hour), u64>, ReadError> {
    let visits = occurrences.iter().filter(|occurrence| matches!(occurrence.kind, OccurrenceKind::Visit(_)));
    let mut days: BTreeMap<_, u64> =
        visits.map(|occurrence| ((occurrence.account, Hour::containing(occurrence.at).day()), 0)).collect();
    for ((account, day), new) in &mut days {
        let range = *day..Hour(day.0 + 1);
        let rows = store::product_event_count::name_counts(store, *account, VISIT, range, true, 1).await?;
        *new = rows.first().map_or(0, |(_, counts)| counts.visitors);
    }
    Ok(days)
}
