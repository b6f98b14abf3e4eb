//! A slice of what is counted: whose events and visits they are, as what each counts, and what comes of it.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use mail::id::{AccountId, ProductEventId};
use mail::metric::Hour;
use mail::product_event::ProductEvent;
use mail::product_event::context::{Context, USER_CREATED};
use mail::product_event::conversion::{self, Conversion, ConversionKind};
use mail::product_event::funnel::UNKNOWN;
use mail::product_event::person::{Alias, VISIT};
use mail::product_event::standing::{Members, Standing, Whom};
use mail::product_event::visit::{Visit, is_visitor_id};
use store::engine::{Batch, Key, ReadError, Store};
use store::person::{People, PersonKey};
use store::product_event_count::{Additions, Counts};
use store::uncounted::{Happened, Uncounted};

use crate::entropy::Entropy;

/// Visitors of an account that are new on one day and remembered; those beyond are only counted.
const VISITORS_A_DAY_MAX: u64 = 100_000;

/// One thing that happened, as it counts.
struct One {
    account: AccountId,
    partition: u16,
    at: Timestamp,
    aliases: Vec<Alias>,
    what: What,
}

/// What happened.
enum What {
    Event(Box<Heard>),
    Visit(Box<Visit>),
}

/// An event, and what it comes to by itself.
struct Heard {
    event: ProductEvent,
    context: Context,
    standing: Standing,
}

/// What is counted together.
pub(super) struct Slice {
    ones: Vec<One>,
    people: People,
    /// Which of the conversions that are told of are recorded already.
    recorded: HashSet<Key>,
    /// New visitors of the days, before these.
    visitors: BTreeMap<(AccountId, Hour), u64>,
}

impl Slice {
    /// Reads all that is asked of what is to be counted.
    pub(super) async fn read(store: &Store, uncounted: &[Uncounted]) -> Result<Self, ReadError> {
        let ids: Vec<_> = uncounted
            .iter()
            .filter_map(|one| match one.happened {
                Happened::Event(id) => Some((one.account, id)),
                Happened::Visit(_) => None,
            })
            .collect();
        let mut events = store::product_event::get_many(store, &ids).await?.into_iter();
        let mut members = BTreeMap::new();
        for (account, _) in &ids {
            if !members.contains_key(account) {
                members.insert(*account, own_people(store, *account).await?);
            }
        }
        let none = Members::default();
        let mut ones = Vec::with_capacity(uncounted.len());
        for Uncounted { account, partition, happened, .. } in uncounted {
            ones.extend(match happened {
                // Forgotten before it was counted: there is nothing to count.
                Happened::Event(_) => {
                    let members = members.get(account).unwrap_or(&none);
                    events.next().flatten().map(|event| One::of_event(event, *partition, members))
                }
                Happened::Visit(visit) => Some(One::of_visit((*account, visit), *partition)),
            });
        }
        // Whichever partition they lie in: what was said first of somebody counts for what they do next.
        ones.sort_by_key(|one| one.at);
        let aliases =
            ones.iter().flat_map(|one| one.aliases.iter().map(|alias| (one.account, alias.clone())));
        let aliases: HashSet<_> = aliases.collect();
        let people = People::read(store, aliases.into_iter().collect()).await?;
        let keys: Vec<Key> = ones.iter().filter_map(One::conversion_key).collect();
        let there = store::conversion::recorded(store, &keys).await?;
        let recorded = keys.into_iter().zip(there).filter(|(_, there)| *there).map(|(key, _)| key).collect();
        let visitors = new_visitors(store, &ones).await?;
        Ok(Self { ones, people, recorded, visitors })
    }

    /// Writes what comes of it; conversions are to be exported as of `export`, if at all. Says how many
    /// conversions were recorded.
    pub(super) async fn book(
        mut self,
        store: &Store,
        entropy: &Entropy,
        export: Option<Timestamp>,
        batch: &mut Batch,
    ) -> Result<u64, ReadError> {
        let (mut additions, mut conversions) = (Additions::default(), 0);
        for one in std::mem::take(&mut self.ones) {
            let fresh = ProductEventId::new(one.at, entropy.id()).to_bytes();
            let heard = match &one.what {
                What::Visit(visit) => {
                    self.visit(&one, visit, fresh, &mut additions);
                    continue;
                }
                What::Event(heard) => heard,
            };
            let (source, standing) = self.person(&one, heard, fresh);
            let (mut counts, hour) = (counts_of(standing), Hour::of(one.at));
            if let Some(conversion) = self.conversion(&one, (heard, standing), source) {
                credit(&mut counts, conversion.kind);
                let mut credited = Counts::default();
                credit(&mut credited, conversion.kind);
                additions.source(
                    one.account,
                    conversion.source.as_deref().unwrap_or(UNKNOWN),
                    hour,
                    credited,
                );
                store::conversion::record(batch, &conversion);
                if let Some(now) = export.filter(|_| !conversion.clicks().is_empty()) {
                    store::conversion_export::create(batch, one.partition, &conversion, now);
                }
                conversions += 1;
            }
            additions.name(one.account, &heard.event.name, hour, counts);
        }
        self.people.write(batch);
        store::product_event_count::add(store, batch, &additions).await?;
        Ok(conversions)
    }

    fn visit(&mut self, one: &One, visit: &Visit, fresh: PersonKey, additions: &mut Additions) {
        let hour = Hour::of(one.at);
        let new = self.visitors.entry((one.account, hour.day())).or_default();
        let mut counts = Counts { count: 1, ..Counts::default() };
        if (self.people.knows(one.account, &one.aliases) || *new < VISITORS_A_DAY_MAX)
            && let Some(person) = self.people.find(one.account, &one.aliases, fresh)
        {
            if !person.marks.contains_key(VISIT) {
                counts.visitors = 1;
                *new += 1;
            }
            person.mark(VISIT, one.at);
            person.source.get_or_insert_with(|| visit.source.clone());
            person.last_source = Some(visit.source.clone());
            if person.standing == Standing::Excluded {
                counts = Counts { excluded: 1, ..Counts::default() };
            }
        }
        additions.source(one.account, &visit.source, hour, counts);
        additions.name(one.account, VISIT, hour, counts);
    }

    /// Remembers what a person did; says where they came from first, and as what it counts that they did it: of
    /// somebody who was known as a member once, nothing does.
    fn person(&mut self, one: &One, heard: &Heard, fresh: PersonKey) -> (Option<String>, Standing) {
        if one.aliases.is_empty() {
            return (None, heard.standing);
        }
        let Some(person) = self.people.find(one.account, &one.aliases, fresh) else {
            return (None, heard.standing);
        };
        person.mark(&heard.event.name, one.at);
        person.stand(heard.standing);
        let context = &heard.context;
        for (known, said) in
            [(&mut person.came_from, &context.came_from), (&mut person.signup_method, &context.signup_method)]
        {
            if known.is_none() {
                known.clone_from(said);
            }
        }
        (person.source.clone(), heard.standing.by(person.standing))
    }

    /// The conversion that an event tells of, if nothing told of it before.
    fn conversion(
        &mut self,
        one: &One,
        (heard, standing): (&Heard, Standing),
        source: Option<String>,
    ) -> Option<Conversion> {
        let Heard { event, context, .. } = heard;
        let (kind, subject) = heard.conversion(standing)?;
        if !self.recorded.insert(store::conversion::key_of(one.account, kind, &subject)) {
            return None;
        }
        Some(Conversion {
            event: event.id,
            account: one.account,
            kind,
            subject,
            user_id: event.user_id.clone(),
            email: address_of(event).map(str::to_owned),
            context: context.clone(),
            source,
            value: conversion::worth(&event.data),
            occurred_at: event.created_at,
        })
    }
}

impl Heard {
    fn conversion(&self, standing: Standing) -> Option<(ConversionKind, String)> {
        let Self { event, context, .. } = self;
        conversion::told(&event.name, event.user_id.as_deref(), context, standing)
    }
}

impl One {
    fn of_event(event: ProductEvent, partition: u16, members: &Members) -> Self {
        let context = Context::of(&event.data);
        let whom = Whom { email: address_of(&event), user_id: event.user_id.as_deref() };
        let standing = Standing::of(&event.name, whom, &context, members);
        let aliases = aliases_of(&event, &context);
        let (account, at) = (event.account, event.created_at);
        Self {
            account,
            partition,
            at,
            aliases,
            what: What::Event(Box::new(Heard { event, context, standing })),
        }
    }

    fn of_visit((account, visit): (AccountId, &Visit), partition: u16) -> Self {
        let aliases = vec![Alias::Visitor(visit.visitor_id.clone())];
        Self { account, partition, at: visit.at, aliases, what: What::Visit(Box::new(visit.clone())) }
    }

    fn conversion_key(&self) -> Option<Key> {
        let What::Event(heard) = &self.what else { return None };
        let (kind, subject) = heard.conversion(heard.standing)?;
        Some(store::conversion::key_of(self.account, kind, &subject))
    }
}

/// The address of whom an event is about: its own, or the one among its particulars.
fn address_of(event: &ProductEvent) -> Option<&str> {
    let address = event.email.as_deref().or_else(|| event.data["email"].as_str());
    address.filter(|address| address.len() <= mail::address::ADDRESS_BYTES_MAX)
}

/// What the person is known by whom an event is about.
fn aliases_of(event: &ProductEvent, context: &Context) -> Vec<Alias> {
    let signed_up = context.id.clone().filter(|_| event.name == USER_CREATED);
    let user = event.user_id.clone().or(signed_up).map(Alias::User);
    let email = address_of(event).map(|email| Alias::Email(email.trim().to_lowercase()));
    let visitor = context.visitor_id.clone().filter(|id| is_visitor_id(id)).map(Alias::Visitor);
    [user, email, visitor].into_iter().flatten().collect()
}

/// As what an event is counted.
fn counts_of(standing: Standing) -> Counts {
    let none = Counts::default();
    match standing {
        Standing::Counted => Counts { count: 1, ..none },
        Standing::Seat => Counts { seats: 1, ..none },
        Standing::Excluded => Counts { excluded: 1, ..none },
    }
}

fn credit(counts: &mut Counts, kind: ConversionKind) {
    match kind {
        ConversionKind::SignUp => counts.sign_ups += 1,
        ConversionKind::Subscription => counts.subscriptions += 1,
    }
}

/// The addresses and ids of an account's own people: its users, and its owner.
async fn own_people(store: &Store, account: AccountId) -> Result<Members, ReadError> {
    let users = store::user::list(store, account).await?;
    let owner = store::account::get(store, account).await?;
    let users = users.into_iter().flat_map(|user| [user.email.to_string(), user.id.to_string()]);
    Ok(Members::new(users.chain(owner.map(|owner| owner.email.to_string()))))
}

/// How many new visitors the accounts have had on the days of these visits.
async fn new_visitors(store: &Store, ones: &[One]) -> Result<BTreeMap<(AccountId, Hour), u64>, ReadError> {
    let visits = ones.iter().filter(|one| matches!(one.what, What::Visit(_)));
    let mut days: BTreeMap<_, u64> = visits.map(|one| ((one.account, Hour::of(one.at).day()), 0)).collect();
    for ((account, day), new) in &mut days {
        let range = *day..Hour(day.0 + 1);
        let rows = store::product_event_count::of_name(store, (*account, VISIT), range, true, 1).await?;
        *new = rows.first().map_or(0, |(_, counts)| counts.visitors);
    }
    Ok(days)
}
