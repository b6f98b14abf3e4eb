//! A slice of what is counted: whose events and visits they are, as what each counts, and what comes of it.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use mail::id::{AccountId, ProductEventId};
use mail::metric::Hour;
use mail::product_event::ProductEvent;
use mail::product_event::context::{SignupContext, USER_CREATED};
use mail::product_event::conversion::{self, Conversion, ConversionKind};
use mail::product_event::funnel::UNKNOWN;
use mail::product_event::person::{PersonAlias, VISIT};
use mail::product_event::standing::{CountingStatus, EventPerson, InternalUsers};
use mail::product_event::visit::{SiteVisit, is_visitor_id};
use store::engine::{Batch, Key, ReadError, Store};
use store::person::{PersonCache, PersonId};
use store::product_event_count::{ProductEventCounts, ProductEventIncrements};
use store::uncounted::{AnalyticsEvent, PendingAnalyticsEvent};

use crate::entropy::Entropy;

/// Visitors of an account that are new on one day and remembered; those beyond are only counted.
const NEW_VISITORS_PER_DAY_MAX: u64 = 100_000;

/// One thing that happened, as it counts.
struct Occurrence {
    account: AccountId,
    partition: u16,
    at: Timestamp,
    aliases: Vec<PersonAlias>,
    kind: OccurrenceKind,
}

/// What happened.
enum OccurrenceKind {
    Event(Box<EventOccurrence>),
    Visit(Box<SiteVisit>),
}

/// An event, and what it comes to by itself.
struct EventOccurrence {
    event: ProductEvent,
    context: SignupContext,
    standing: CountingStatus,
}

/// What is counted together.
pub(super) struct AnalyticsBatch {
    occurrences: Vec<Occurrence>,
    people: PersonCache,
    /// Which of the conversions that are told of are recorded already.
    recorded: HashSet<Key>,
    /// New visitors of the days, before these.
    visitors: BTreeMap<(AccountId, Hour), u64>,
}

impl AnalyticsBatch {
    /// Reads all that is asked of what is to be counted.
    pub(super) async fn load(store: &Store, uncounted: &[PendingAnalyticsEvent]) -> Result<Self, ReadError> {
        let ids: Vec<_> = uncounted
            .iter()
            .filter_map(|one| match one.happened {
                AnalyticsEvent::Event(id) => Some((one.account, id)),
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
        let mut ones = Vec::with_capacity(uncounted.len());
        for PendingAnalyticsEvent { account, partition, happened, .. } in uncounted {
            ones.extend(match happened {
                // Forgotten before it was counted: there is nothing to count.
                AnalyticsEvent::Event(_) => {
                    let members = members.get(account).unwrap_or(&none);
                    events.next().flatten().map(|event| Occurrence::from_event(event, *partition, members))
                }
                AnalyticsEvent::Visit(visit) => Some(Occurrence::from_visit((*account, visit), *partition)),
            });
        }
        // Whichever partition they lie in: what was said first of somebody counts for what they do next.
        ones.sort_by_key(|one| one.at);
        let aliases = ones.iter().flat_map(|one| one.aliases.iter().map(|alias| (one.account, alias.clone())));
        let aliases: HashSet<_> = aliases.collect();
        let people = PersonCache::read(store, aliases.into_iter().collect()).await?;
        let keys: Vec<Key> = ones.iter().filter_map(Occurrence::conversion_key).collect();
        let there = store::conversion::are_recorded(store, &keys).await?;
        let recorded = keys.into_iter().zip(there).filter(|(_, there)| *there).map(|(key, _)| key).collect();
        let visitors = load_new_visitors(store, &ones).await?;
        Ok(Self { occurrences: ones, people, recorded, visitors })
    }

    /// Writes what comes of it; conversions are to be exported as of `export`, if at all. Says how many
    /// conversions were recorded.
    pub(super) async fn write(
        mut self,
        store: &Store,
        entropy: &Entropy,
        export: Option<Timestamp>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (mut additions, mut conversions) = (ProductEventIncrements::default(), 0);
        for one in std::mem::take(&mut self.occurrences) {
            let fresh = ProductEventId::new(one.at, entropy.unique_bits()).to_bytes();
            let heard = match &one.kind {
                OccurrenceKind::Visit(visit) => {
                    self.count_visit(&one, visit, fresh, &mut additions);
                    continue;
                }
                OccurrenceKind::Event(heard) => heard,
            };
            let (source, standing) = self.attribute_person(&one, heard, fresh);
            let (mut counts, hour) = (event_counts(standing), Hour::containing(one.at));
            if let Some(conversion) = self.new_conversion(&one, (heard, standing), source) {
                count_conversion(&mut counts, conversion.kind);
                let mut credited = ProductEventCounts::default();
                count_conversion(&mut credited, conversion.kind);
                additions.add_source(one.account, conversion.source.as_deref().unwrap_or(UNKNOWN), hour, credited);
                store::conversion::record(batch, &conversion);
                if let Some(now) = export.filter(|_| !conversion.ad_click_ids().is_empty()) {
                    store::conversion_export::enqueue(batch, one.partition, &conversion, now);
                }
                conversions += 1;
            }
            additions.add_name(one.account, &heard.event.name, hour, counts);
        }
        self.people.write(batch);
        store::product_event_count::add(store, batch, &additions).await?;
        Ok(conversions)
    }

    fn count_visit(
        &mut self,
        one: &Occurrence,
        visit: &SiteVisit,
        fresh: PersonId,
        additions: &mut ProductEventIncrements,
    ) {
        let hour = Hour::containing(one.at);
        let new = self.visitors.entry((one.account, hour.day())).or_default();
        let mut counts = ProductEventCounts { count: 1, ..ProductEventCounts::default() };
        if (self.people.knows(one.account, &one.aliases) || *new < NEW_VISITORS_PER_DAY_MAX)
            && let Some(person) = self.people.resolve(one.account, &one.aliases, fresh)
        {
            if !person.marks.contains_key(VISIT) {
                counts.visitors = 1;
                *new += 1;
            }
            person.mark(VISIT, one.at);
            person.source.get_or_insert_with(|| visit.source.clone());
            person.last_source = Some(visit.source.clone());
            if person.standing == CountingStatus::Excluded {
                counts = ProductEventCounts { excluded: 1, ..ProductEventCounts::default() };
            }
        }
        additions.add_source(one.account, &visit.source, hour, counts);
        additions.add_name(one.account, VISIT, hour, counts);
    }

    /// Remembers what a person did; says where they came from first, and as what it counts that they did it: of
    /// somebody who was known as a member once, nothing does.
    fn attribute_person(
        &mut self,
        one: &Occurrence,
        heard: &EventOccurrence,
        fresh: PersonId,
    ) -> (Option<String>, CountingStatus) {
        if one.aliases.is_empty() {
            return (None, heard.standing);
        }
        let Some(person) = self.people.resolve(one.account, &one.aliases, fresh) else {
            return (None, heard.standing);
        };
        person.mark(&heard.event.name, one.at);
        person.exclude_or_keep(heard.standing);
        let context = &heard.context;
        for (known, said) in
            [(&mut person.came_from, &context.came_from), (&mut person.signup_method, &context.signup_method)]
        {
            if known.is_none() {
                known.clone_from(said);
            }
        }
        (person.source.clone(), heard.standing.for_person(person.standing))
    }

    /// The conversion that an event tells of, if nothing told of it before.
    fn new_conversion(
        &mut self,
        one: &Occurrence,
        (heard, standing): (&EventOccurrence, CountingStatus),
        source: Option<String>,
    ) -> Option<Conversion> {
        let EventOccurrence { event, context, .. } = heard;
        let (kind, subject) = heard.conversion_subject(standing)?;
        if !self.recorded.insert(store::conversion::key_of(one.account, kind, &subject)) {
            return None;
        }
        Some(Conversion {
            event: event.id,
            account: one.account,
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
        let context = SignupContext::of(&event.data);
        let whom = EventPerson { email: event_address(&event), user_id: event.user_id.as_deref() };
        let standing = CountingStatus::classify(&event.name, whom, &context, members);
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

    fn from_visit((account, visit): (AccountId, &SiteVisit), partition: u16) -> Self {
        let aliases = vec![PersonAlias::Visitor(visit.visitor_id.clone())];
        Self { account, partition, at: visit.at, aliases, kind: OccurrenceKind::Visit(Box::new(visit.clone())) }
    }

    fn conversion_key(&self) -> Option<Key> {
        let OccurrenceKind::Event(heard) = &self.kind else { return None };
        let (kind, subject) = heard.conversion_subject(heard.standing)?;
        Some(store::conversion::key_of(self.account, kind, &subject))
    }
}

/// The address of whom an event is about: its own, or the one among its particulars.
fn event_address(event: &ProductEvent) -> Option<&str> {
    let address = event.email.as_deref().or_else(|| event.data["email"].as_str());
    address.filter(|address| address.len() <= mail::address::ADDRESS_BYTES_MAX)
}

/// What the person is known by whom an event is about.
fn event_aliases(event: &ProductEvent, context: &SignupContext) -> Vec<PersonAlias> {
    let signed_up = context.id.clone().filter(|_| event.name == USER_CREATED);
    let user = event.user_id.clone().or(signed_up).map(PersonAlias::User);
    let email = event_address(event).map(|email| PersonAlias::Email(email.trim().to_lowercase()));
    let visitor = context.visitor_id.clone().filter(|id| is_visitor_id(id)).map(PersonAlias::Visitor);
    [user, email, visitor].into_iter().flatten().collect()
}

/// As what an event is counted.
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

/// The addresses and ids of an account's own people: its users, and its owner.
async fn account_members(store: &Store, account: AccountId) -> Result<InternalUsers, ReadError> {
    let users = store::user::list(store, account).await?;
    let owner = store::account::get(store, account).await?;
    let users = users.into_iter().flat_map(|user| [user.email.to_string(), user.id.to_string()]);
    Ok(InternalUsers::new(users.chain(owner.map(|owner| owner.email.to_string()))))
}

/// How many new visitors the accounts have had on the days of these visits.
async fn load_new_visitors(store: &Store, ones: &[Occurrence]) -> Result<BTreeMap<(AccountId, Hour), u64>, ReadError> {
    let visits = ones.iter().filter(|one| matches!(one.kind, OccurrenceKind::Visit(_)));
    let mut days: BTreeMap<_, u64> = visits.map(|one| ((one.account, Hour::containing(one.at).day()), 0)).collect();
    for ((account, day), new) in &mut days {
        let range = *day..Hour(day.0 + 1);
        let rows = store::product_event_count::name_counts(store, (*account, VISIT), range, true, 1).await?;
        *new = rows.first().map_or(0, |(_, counts)| counts.visitors);
    }
    Ok(days)
}
