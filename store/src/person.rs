//! People for analytics: one row each, an index by alias, and a key for the first time that a person did each named
//! event.
//!
//! ```text
//! Person · account · 1 · hash of an alias                     ─►  the person's 16-byte id
//! Person · account · 2 · person                               ─►  the person
//! Person · account · 3 · hash of a name · time · person       ─►  (empty): first occurrence
//! ```
//!
//! A person's id begins with the time they were first seen, so the oldest are scanned first. [`PersonCache`] holds a
//! subset in memory: it is read before events are counted and written back in the same commit, which checks every row
//! that was read.

use std::collections::HashMap;
use std::ops::Range;

use jiff::Timestamp;
use model::id::{AccountId, ProductEventId};
use model::product_event::person::{AnalyticsPerson, PersonAlias};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, Space, key};
use crate::product_event::hash;
use crate::rows::RowPages;

const BY_ALIAS: u8 = 1;
const ROW: u8 = 2;
const BY_MARK: u8 = 3;
/// Rows per read.
const PAGE_ROWS: usize = 500;

/// Id of a person, ordered by the time they were first seen.
pub type PersonId = [u8; 16];

stored!(AnalyticsPerson);

fn rows_of(account: AccountId, kind: u8) -> KeyBuilder {
    key(Space::Person).account(account).u8(kind)
}

fn alias_key(account: AccountId, alias: &PersonAlias) -> Key {
    rows_of(account, BY_ALIAS).fixed(hash(&alias.text())).build()
}

fn row_key(account: AccountId, person: PersonId) -> Key {
    rows_of(account, ROW).id(person).build()
}

fn mark_key(account: AccountId, name: &str, at: Timestamp, person: PersonId) -> Key {
    rows_of(account, BY_MARK).fixed(hash(name)).time(at).id(person).build()
}

#[derive(Debug, Clone, Default)]
struct CachedPerson {
    /// The row as it was read; `None` if there was none.
    row: Option<Value>,
    before: AnalyticsPerson,
    /// `None` if the person was merged into another one.
    after: Option<AnalyticsPerson>,
}

/// An alias with its row as it was read, and the person to whom it leads now.
#[derive(Debug, Clone, Default)]
struct CachedAlias {
    row: Option<Value>,
    person: Option<PersonId>,
}

/// People and aliases in memory.
#[derive(Debug, Default)]
pub struct PersonCache {
    aliases: HashMap<(AccountId, PersonAlias), CachedAlias>,
    people: HashMap<(AccountId, PersonId), CachedPerson>,
}

fn decode_person_id(row: &Value) -> Result<PersonId> {
    PersonId::try_from(row.as_ref()).map_err(codec::damaged)
}

impl PersonCache {
    /// Reads the people who have these aliases.
    pub async fn read(store: &Store, wanted: Vec<(AccountId, PersonAlias)>) -> Result<Self> {
        let keys: Vec<Key> = wanted.iter().map(|(account, alias)| alias_key(*account, alias)).collect();
        let mut people = Self::default();
        for (account_alias, row) in wanted.into_iter().zip(store.get_many(&keys).await?) {
            let person = row.as_ref().map(decode_person_id).transpose()?;
            if let Some(person) = person {
                people.people.entry((account_alias.0, person)).or_default();
            }
            people.aliases.insert(account_alias, CachedAlias { row, person });
        }
        let person_keys: Vec<(AccountId, PersonId)> = people.people.keys().copied().collect();
        let keys: Vec<Key> = person_keys.iter().map(|(account, person)| row_key(*account, *person)).collect();
        for (person_key, row) in person_keys.into_iter().zip(store.get_many(&keys).await?) {
            let Some(row) = row else {
                // The person was deleted but this alias was not: start a new person.
                people.people.remove(&person_key);
                let is_merged = |known: &&mut CachedAlias| known.person == Some(person_key.1);
                people.aliases.values_mut().filter(is_merged).for_each(|known| known.person = None);
                continue;
            };
            let person: AnalyticsPerson = codec::decode(&row)?;
            let cached = CachedPerson { row: Some(row), before: person.clone(), after: Some(person) };
            people.people.insert(person_key, cached);
        }
        Ok(people)
    }

    fn lookup(&self, account: AccountId, alias: &PersonAlias) -> Option<PersonId> {
        self.aliases.get(&(account, alias.clone())).and_then(|known| known.person)
    }

    /// Returns whether one of these aliases leads to a person.
    pub fn knows(&self, account: AccountId, aliases: &[PersonAlias]) -> bool {
        aliases.iter().any(|alias| self.lookup(account, alias).is_some())
    }

    fn person(&self, account: AccountId, id: PersonId) -> Option<&AnalyticsPerson> {
        self.people.get(&(account, id)).and_then(|cached| cached.after.as_ref())
    }

    /// Resolves aliases, all of which were read, to one person. Uses the first matching person to whom an alias leads,
    /// or creates one with the id `fresh`. Other people to whom aliases lead are merged into that person, unless they
    /// are certainly different.
    pub fn resolve(
        &mut self,
        account: AccountId,
        aliases: &[PersonAlias],
        fresh: PersonId,
    ) -> Option<&mut AnalyticsPerson> {
        let fits = |id: &PersonId| {
            self.person(account, *id).is_some_and(|person| aliases.iter().all(|alias| person.accepts_alias(alias)))
        };
        let id = aliases.iter().filter_map(|alias| self.lookup(account, alias)).find(fits);
        let id = id.unwrap_or(fresh);
        let mut person = self.people.entry((account, id)).or_default().after.take().unwrap_or_default();
        for alias in aliases {
            match self.lookup(account, alias) {
                Some(other_id) if other_id == id => {}
                Some(other_id) => self.merge_into(account, &mut person, id, other_id),
                None if person.add_alias(alias) => self.point_alias_to(account, alias, id),
                None => {}
            }
        }
        let cached = self.people.entry((account, id)).or_default();
        cached.after = Some(person);
        cached.after.as_mut()
    }

    /// Merges the person `other_id` into `person`, if their aliases are compatible.
    fn merge_into(&mut self, account: AccountId, person: &mut AnalyticsPerson, id: PersonId, other_id: PersonId) {
        let Some(cached) = self.people.get_mut(&(account, other_id)) else { return };
        let same = |other: &mut AnalyticsPerson| other.aliases.iter().all(|alias| person.accepts_alias(alias));
        let Some(other) = cached.after.take_if(same) else { return };
        person.merge(&other);
        for alias in &other.aliases {
            self.point_alias_to(account, alias, id);
        }
    }

    fn point_alias_to(&mut self, account: AccountId, alias: &PersonAlias, id: PersonId) {
        match self.aliases.get_mut(&(account, alias.clone())) {
            Some(known) => known.person = Some(id),
            None => {
                // An alias of a merged person that was not itself read: point it to the merged person.
                let known = CachedAlias { row: None, person: Some(id) };
                self.aliases.insert((account, alias.clone()), known);
            }
        }
    }

    /// Writes all changes. The commit conflicts if a row has changed since it was read.
    pub fn write(self, batch: &mut Batch) {
        for ((account, alias), known) in self.aliases {
            let before = known.row.as_deref().and_then(|row| PersonId::try_from(row).ok());
            if let Some(person) = known.person.filter(|_| before != known.person) {
                let alias_key = alias_key(account, &alias);
                // An alias that was not read changes together with its person's row, which is checked.
                if known.row.is_some() {
                    batch.check(alias_key.clone(), known.row);
                }
                batch.put(alias_key, person.to_vec());
            }
        }
        for ((account, id), cached) in self.people {
            let CachedPerson { row, before, after } = cached;
            if after.as_ref() == Some(&before) || row.is_none() && after.is_none() {
                continue;
            }
            let row_key = row_key(account, id);
            batch.check(row_key.clone(), row);
            let marks = after.as_ref().map(|person| &person.marks);
            for (name, at) in &before.marks {
                if marks.and_then(|marks| marks.get(name)) != Some(at) {
                    batch.delete(mark_key(account, name, *at, id));
                }
            }
            for (name, at) in marks.into_iter().flatten() {
                if before.marks.get(name) != Some(at) {
                    batch.put(mark_key(account, name, *at, id), Vec::new());
                }
            }
            match after {
                Some(person) => batch.put(row_key, codec::encode(&person)),
                None => batch.delete(row_key),
            };
        }
    }
}

/// Calls `take` for each person who first did the named event within a time range. Returns false if there are more than
/// `limit`; not all were passed to `take` then.
pub async fn for_each_person_with_event(
    store: &Store,
    account: AccountId,
    name: &str,
    times: Range<Timestamp>,
    limit: usize,
    mut take: impl FnMut(&AnalyticsPerson),
) -> Result<bool> {
    let marks = || rows_of(account, BY_MARK).fixed(hash(name));
    let range = marks().time(times.start).build()..marks().time(times.end).build();
    let mut pages = RowPages::new(store, range, PAGE_ROWS);
    let mut count = 0;
    while let Some(page) = pages.next_page().await? {
        count += page.len();
        if count > limit {
            return Ok(false);
        }
        let ids = page.iter().filter_map(|(mark, _)| mark.last_chunk::<16>());
        let keys: Vec<Key> = ids.map(|id| row_key(account, *id)).collect();
        for row in store.get_many(&keys).await?.iter().flatten() {
            take(&codec::decode(row)?);
        }
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(true)
}

/// Deletes an account's people first seen before a time, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: Timestamp,
    limit: usize,
) -> Result<usize> {
    let end = ProductEventId::new(before, 0).to_bytes();
    let range = rows_of(account, ROW).build()..row_key(account, end);
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (row_key, row) in rows {
        let person: AnalyticsPerson = codec::decode(&row)?;
        let Some(id) = row_key.last_chunk::<16>().copied() else { continue };
        for alias in &person.aliases {
            batch.delete(alias_key(account, alias));
        }
        for (name, at) in &person.marks {
            batch.delete(mark_key(account, name, *at, id));
        }
        batch.remove(row_key, row);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::product_event::person::VISIT;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn person_id(second: i64, aliases: &[PersonAlias]) -> PersonId {
        let random = aliases.iter().fold(0, |sum, alias| sum ^ u128::from_be_bytes(hash(&alias.text())));
        ProductEventId::new(at(second), random).to_bytes()
    }

    struct World(Store, AccountId);

    impl World {
        /// Records that a person with these aliases did something.
        async fn record(&self, aliases: &[PersonAlias], name: &str, second: i64) {
            let wanted = aliases.iter().map(|alias| (self.1, alias.clone())).collect();
            let mut people = PersonCache::read(&self.0, wanted).await.unwrap();
            let person = people.resolve(self.1, aliases, person_id(second, aliases)).unwrap();
            person.mark(name, at(second));
            let mut batch = Batch::progress();
            people.write(&mut batch);
            self.0.commit(batch).await.unwrap();
        }

        async fn people_with_event(&self, name: &str) -> Vec<AnalyticsPerson> {
            let mut found = Vec::new();
            let all = for_each_person_with_event(&self.0, self.1, name, at(0)..at(1_000), 2_000, |person| {
                found.push(person.clone());
            });
            assert!(all.await.unwrap());
            found
        }
    }

    #[tokio::test]
    async fn visits_are_linked_to_users_and_users_stay_separate() {
        let world = World(Store::memory(), AccountId::new(at(0), 1));
        let (user, other) = (|| PersonAlias::User("u".into()), || PersonAlias::User("o".into()));
        let (visitor, email) = (|| PersonAlias::Visitor("v".into()), || PersonAlias::Email("e@x.example".into()));
        world.record(&[visitor()], VISIT, 1).await;
        world.record(&[email()], "asked", 2).await;
        // A sign-up links the visit and the address, which was a separate person before.
        world.record(&[user(), email(), visitor()], "user.created", 3).await;
        world.record(&[user()], "user.activated", 4).await;
        let created = world.people_with_event("user.created").await;
        assert_eq!(created.len(), 1);
        let names: Vec<&str> = created[0].marks.keys().map(String::as_str).collect();
        assert_eq!(names, ["asked", "user.activated", "user.created", VISIT]);
        assert_eq!(world.people_with_event(VISIT).await, created, "both are one person");
        // Another user of the same browser is a different person, and earlier visits keep their owner.
        world.record(&[other(), visitor()], "user.created", 5).await;
        world.record(&[visitor()], VISIT, 6).await;
        let created = world.people_with_event("user.created").await;
        assert_eq!(created.len(), 2);
        assert!(!created[1].marks.contains_key(VISIT));
        assert_eq!(world.people_with_event(VISIT).await.len(), 1);
        // Found by an alias that only the first person has.
        world.record(&[email()], "later", 7).await;
        assert_eq!(world.people_with_event("later").await[0].user(), Some(&user()));
        // A purge deletes all keys of a person.
        let mut batch = Batch::progress();
        assert_eq!(purge_before(&world.0, &mut batch, world.1, at(9), 99).await.unwrap(), 2);
        world.0.commit(batch).await.unwrap();
        assert!(world.0.scan(key(Space::Person).range(), ScanOrder::Ascending, 9).await.unwrap().is_empty());
        world.record(&[user()], "again", 8).await;
        assert_eq!(world.people_with_event("again").await.len(), 1);
    }

    #[tokio::test]
    async fn many_people_are_visited_page_by_page() {
        let world = World(Store::memory(), AccountId::new(at(0), 1));
        for n in 0..1_200 {
            world.record(&[PersonAlias::User(n.to_string())], "a", n % 900).await;
        }
        assert_eq!(world.people_with_event("a").await.len(), 1_200);
        let few = for_each_person_with_event(&world.0, world.1, "a", at(0)..at(900), 700, |_| {});
        assert!(!few.await.unwrap());
        let mut some = 0;
        for_each_person_with_event(&world.0, world.1, "a", at(100)..at(200), 700, |_| some += 1).await.unwrap();
        assert_eq!(some, 200);
    }
}
