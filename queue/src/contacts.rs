//! Contacts: what becomes of an address by what customers, lists and recipients say about it.
//!
//! ```text
//! grounds, many at once ─► what stands ─► follow ─►[ suppressions + whatever goes with them ]
//! a recipient's wish    ─► what stands ─►[ suppression or opt-outs + contact.unsubscribed ]
//! ```
//!
//! Read, decide, write, and from the start again when somebody else wrote in between. (What an attempt's
//! end says is written in the settlement's own commit: see [`crate::settle`].)

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use mail::address::Address;
use mail::email::Category;
use mail::event::{Event, EventKind};
use mail::id::{AccountId, EventId, OptOutId, SuppressionId};
use mail::suppression::{
    Grounds, OPTIONAL, OptOut, Reason, Source, Suppression, Target, category_label, category_word,
};
use mail::unsubscribe::{Bound, Scope};
use serde_json::json;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::suppression::Found;
use store::task::PARTITIONS;
use thiserror::Error;

use crate::clock::Clock;
use crate::entropy::Entropy;

/// How often is begun again when others write at the same time: each time one of them got on.
const TRIES_MAX: usize = 50;

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum ContactsError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written, or somebody else kept changing the same.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What came of grounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppressed {
    /// The suppression as it stands.
    pub suppression: Suppression,
    /// The grounds made it so; else it stood there and stays.
    pub is_new: bool,
    /// The suppression that held before, if one did.
    pub before: Option<Suppression>,
}

/// Writes something in the same commit, told what came of the grounds.
pub type Also<'a> = dyn Fn(&[Suppressed], &mut Batch) + Send + Sync + 'a;

/// What a recipient wants; what is not said stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// Nothing at all, from this account.
    pub nothing: Option<bool>,
    /// News about the product.
    pub product: Option<bool>,
    /// Newsletters.
    pub newsletter: Option<bool>,
}

impl Wish {
    /// To get no more of what a link unsubscribes from.
    #[must_use]
    pub fn to_leave(scope: Scope) -> Self {
        match scope {
            Scope::Category(Category::Product) => Self { product: Some(false), ..Self::default() },
            Scope::Category(Category::Newsletter) => Self { newsletter: Some(false), ..Self::default() },
            Scope::All | Scope::Category(Category::Transactional) => {
                Self { nothing: Some(true), ..Self::default() }
            }
        }
    }

    fn of(self, category: Category) -> Option<bool> {
        match category {
            Category::Transactional => None,
            Category::Product => self.product,
            Category::Newsletter => self.newsletter,
        }
    }
}

/// Changes what is known of addresses.
#[derive(Clone)]
pub struct Contacts {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
}

/// An address that is being looked at: what stood there, and what is to stand there.
struct Place {
    before: Option<Found>,
    after: Option<Suppression>,
}

impl Place {
    fn stands(&self) -> Option<&Suppression> {
        self.after.as_ref().or(self.before.as_ref().map(|found| &found.suppression))
    }
}

impl Contacts {
    /// Suppresses whom these grounds are about, in one commit, and says of each what came of it. Writes
    /// something more in the same commit.
    ///
    /// # Errors
    /// [`ContactsError`]; a conflict about what `also` checks comes back as it is.
    pub async fn suppress(
        &self,
        account: AccountId,
        grounds: &[Grounds],
        also: &Also<'_>,
    ) -> Result<Vec<Suppressed>, ContactsError> {
        let targets: Vec<Target> = grounds.iter().map(|grounds| grounds.target.clone()).collect();
        let mut tries = TRIES_MAX;
        loop {
            let found = store::suppression::get_many(&self.store, account, &targets).await?;
            let mut places: HashMap<String, Place> = HashMap::with_capacity(found.len());
            for (target, before) in targets.iter().zip(found) {
                places.insert(target.key(), Place { before, after: None });
            }
            let outcomes: Vec<Suppressed> =
                grounds.iter().filter_map(|one| self.weigh(account, one, &mut places)).collect();
            let mut batch = Batch::progress();
            for place in places.values() {
                if let Some(after) = &place.after {
                    store::suppression::put(&mut batch, place.before.as_ref(), after);
                    self.tell_created(&mut batch, place.before.as_ref(), after);
                }
            }
            also(&outcomes, &mut batch);
            if batch.is_empty() || self.commit(batch, &mut tries).await? {
                return Ok(outcomes);
            }
        }
    }

    /// Which of these grounds would each add a row: the others are about what is suppressed already, or named before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn adds(&self, account: AccountId, grounds: &[Grounds]) -> Result<Vec<bool>, ReadError> {
        let targets: Vec<Target> = grounds.iter().map(|grounds| grounds.target.clone()).collect();
        let found = store::suppression::get_many(&self.store, account, &targets).await?;
        let mut named = HashSet::with_capacity(targets.len());
        Ok(targets
            .iter()
            .zip(found)
            .map(|(target, found)| named.insert(target.key()) && found.is_none())
            .collect())
    }

    fn weigh(
        &self,
        account: AccountId,
        grounds: &Grounds,
        places: &mut HashMap<String, Place>,
    ) -> Option<Suppressed> {
        let now = self.clock.now();
        let place = places.get_mut(&grounds.target.key())?;
        let id = SuppressionId::new(now, self.entropy.id());
        let before = place.stands().filter(|before| before.holds(now)).cloned();
        let after = Suppression::follow(place.stands(), grounds.clone(), account, id, now);
        let is_new = after.is_some();
        place.after = after.or(place.after.take());
        place.stands().map(|suppression| Suppressed { suppression: suppression.clone(), is_new, before })
    }

    /// Lets an address opt out of a category; says whether it had not before.
    ///
    /// # Errors
    /// [`ContactsError`].
    pub async fn opt_out(
        &self,
        account: AccountId,
        address: &Address,
        category: Category,
        source: Source,
    ) -> Result<(OptOut, bool), ContactsError> {
        let mut tries = TRIES_MAX;
        loop {
            let stands = store::opt_out::of_address(&self.store, account, address, &[category]).await?;
            if let Some(opt_out) = stands.into_iter().next() {
                return Ok((opt_out, false));
            }
            let mut opt_out = self.new_opt_out(account, address, category);
            opt_out.source = source;
            let mut batch = Batch::progress();
            store::opt_out::create(&mut batch, &opt_out);
            if self.commit(batch, &mut tries).await? {
                return Ok((opt_out, true));
            }
        }
    }

    fn new_opt_out(&self, account: AccountId, address: &Address, category: Category) -> OptOut {
        let now = self.clock.now();
        OptOut {
            id: OptOutId::new(now, self.entropy.id()),
            account,
            address: address.clone(),
            category,
            source: Source::Recipient,
            email: None,
            created_at: now,
        }
    }

    /// Does what the recipient whom a link is bound to wants. Done already, it changes nothing. A wish to
    /// get mail again ends their own suppression, and nobody else's.
    ///
    /// # Errors
    /// [`ContactsError`].
    pub async fn heed(&self, bound: &Bound, wish: Wish) -> Result<(), ContactsError> {
        let Bound { account, address, .. } = bound;
        let target = Target::Address(address.clone());
        let mut tries = TRIES_MAX;
        loop {
            let suppression = store::suppression::get(&self.store, *account, &target).await?;
            let opt_outs = store::opt_out::of_address(&self.store, *account, address, &OPTIONAL).await?;
            let mut batch = Batch::progress();
            self.heed_all(&mut batch, bound, suppression.as_ref(), wish.nothing);
            for category in OPTIONAL {
                let stands = opt_outs.iter().find(|opt_out| opt_out.category == category);
                self.heed_category(&mut batch, bound, (category, stands), wish.of(category));
            }
            if batch.is_empty() || self.commit(batch, &mut tries).await? {
                return Ok(());
            }
        }
    }

    fn heed_all(&self, batch: &mut Batch, bound: &Bound, before: Option<&Found>, nothing: Option<bool>) {
        let now = self.clock.now();
        let stands = before.map(|found| &found.suppression);
        match nothing {
            None => {}
            Some(true) => {
                let grounds = Grounds::new(bound.address.clone(), Reason::Unsubscribe, Source::Recipient);
                let id = SuppressionId::new(now, self.entropy.id());
                let grounds = grounds.of_email(bound.email);
                if let Some(after) = Suppression::follow(stands, grounds, bound.account, id, now) {
                    store::suppression::put(batch, before, &after);
                    self.tell_created(batch, before, &after);
                    self.tell(batch, bound, &Left::All(after.id));
                }
            }
            Some(false) => {
                if let Some(found) = before.filter(|found| found.suppression.reason == Reason::Unsubscribe) {
                    self.release(batch, found);
                }
            }
        }
    }

    fn heed_category(
        &self,
        batch: &mut Batch,
        bound: &Bound,
        (category, stands): (Category, Option<&OptOut>),
        wanted: Option<bool>,
    ) {
        match (wanted, stands) {
            (Some(false), None) => {
                let mut opt_out = self.new_opt_out(bound.account, &bound.address, category);
                opt_out.email = Some(bound.email);
                store::opt_out::create(batch, &opt_out);
                self.tell(batch, bound, &Left::Category(category, opt_out.id));
            }
            (Some(true), Some(opt_out)) => store::opt_out::delete(batch, opt_out),
            _ => {}
        }
    }

    /// Takes a suppression away, and records `suppression.deleted`.
    pub fn release(&self, batch: &mut Batch, found: &Found) {
        let now = self.clock.now();
        store::suppression::delete(batch, found);
        let id = EventId::new(now, self.entropy.id());
        let event = found.suppression.event(EventKind::SuppressionDeleted, id, now);
        store::event::record_anywhere(batch, &event);
    }

    /// Records `suppression.created`, where one is new.
    pub(crate) fn tell_created(&self, batch: &mut Batch, before: Option<&Found>, after: &Suppression) {
        let now = self.clock.now();
        if after.is_new_beside(before.map(|found| &found.suppression), now) {
            let id = EventId::new(now, self.entropy.id());
            store::event::record_anywhere(batch, &after.event(EventKind::SuppressionCreated, id, now));
        }
    }

    /// Records `contact.unsubscribed` (email-api.md, "Delivery envelope"), under the email whose link it was.
    fn tell(&self, batch: &mut Batch, bound: &Bound, left: &Left) {
        let now: Timestamp = self.clock.now();
        let (scope, category, suppression, opt_out) = match left {
            Left::All(id) => ("all", None, Some(*id), None),
            Left::Category(category, id) => ("category", Some(*category), None, Some(*id)),
        };
        let event = Event {
            id: EventId::new(now, self.entropy.id()),
            account: bound.account,
            subject: bound.email.into(),
            kind: EventKind::Unsubscribed,
            recipient: Some(bound.address.clone()),
            created_at: now,
            detail: json!({
                "email": bound.address,
                "source": Source::Recipient,
                "scope": scope,
                "category": category.map(category_word),
                "category_label": category.map(category_label),
                "suppression_id": suppression,
                "category_opt_out_id": opt_out,
                "email_id": bound.email,
            }),
        };
        // Who tells it does not matter, as long as not one node tells all.
        let [.., last] = bound.email.to_bytes();
        store::event::record(batch, &event, u16::from(last) % PARTITIONS);
    }

    /// Commits; false when somebody changed a suppression or an opt-out first, and tries are left.
    async fn commit(&self, batch: Batch, tries: &mut usize) -> Result<bool, ContactsError> {
        match self.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { key })
                if *tries > 1
                    && (store::suppression::is_about_one(&key) || store::opt_out::is_about_one(&key)) =>
            {
                *tries -= 1;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What a recipient left.
enum Left {
    All(SuppressionId),
    Category(Category, OptOutId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::id::EmailId;

    fn contacts() -> Contacts {
        Contacts { store: Store::memory(), clock: Clock::default(), entropy: Entropy::default() }
    }

    fn account() -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, 1)
    }

    fn bound(scope: Scope) -> Bound {
        let email = EmailId::new(Timestamp::UNIX_EPOCH, 2);
        Bound { account: account(), email, scope, address: "Ada@example.net".parse().unwrap() }
    }

    async fn standing(contacts: &Contacts) -> (Option<Reason>, Vec<Category>) {
        let targets = ["ada@example.net".parse().unwrap()];
        let now = contacts.clock.now();
        let standings =
            store::suppression::standings(&contacts.store, account(), &targets, now).await.unwrap();
        let standing = standings.into_iter().next().unwrap();
        (standing.suppression.map(|suppression| suppression.reason), standing.categories)
    }

    async fn events(contacts: &Contacts) -> Vec<serde_json::Value> {
        let email = bound(Scope::All).email;
        let events = store::event::list(&contacts.store, account(), email, 100).await.unwrap();
        events.into_iter().map(|event| event.detail).collect()
    }

    #[tokio::test]
    async fn a_recipient_leaves_and_comes_back() {
        let contacts = contacts();
        let scope = Scope::Category(Category::Newsletter);
        for _ in 0..2 {
            contacts.heed(&bound(scope), Wish::to_leave(scope)).await.unwrap();
        }
        assert_eq!(standing(&contacts).await, (None, vec![Category::Newsletter]));
        let told = events(&contacts).await;
        assert_eq!(told.len(), 1, "done again, nothing happens");
        assert_eq!(told[0].as_object().unwrap().len(), 8);
        assert_eq!((&told[0]["scope"], &told[0]["category"]), (&json!("category"), &json!("newsletter")));
        assert!(told[0]["suppression_id"].is_null() && told[0]["category_opt_out_id"].is_string());
        contacts.heed(&bound(Scope::All), Wish::to_leave(Scope::All)).await.unwrap();
        assert_eq!(standing(&contacts).await.0, Some(Reason::Unsubscribe));
        let told = events(&contacts).await;
        assert!(told.iter().any(|told| told["scope"] == "all" && told["suppression_id"].is_string()));
        let back = Wish { nothing: Some(false), product: Some(true), newsletter: Some(true) };
        contacts.heed(&bound(Scope::All), back).await.unwrap();
        assert_eq!(standing(&contacts).await, (None, vec![]));
    }

    #[tokio::test]
    async fn nobody_frees_themselves_of_a_bounce_or_a_complaint() {
        for reason in [Reason::HardBounce, Reason::Complaint, Reason::Manual] {
            let contacts = contacts();
            let target: Target = "ada@example.net".parse().unwrap();
            let grounds = [Grounds::new(target, reason, Source::System)];
            contacts.suppress(account(), &grounds, &|_, _| {}).await.unwrap();
            let back = Wish { nothing: Some(false), ..Wish::default() };
            contacts.heed(&bound(Scope::All), back).await.unwrap();
            assert_eq!(standing(&contacts).await.0, Some(reason));
        }
    }

    #[tokio::test]
    async fn one_that_is_named_twice_is_suppressed_once() {
        let contacts = contacts();
        let of = |text: &str| Grounds::new(text.parse::<Target>().unwrap(), Reason::Manual, Source::Api);
        let grounds = [of("a@example.net"), of("A@example.net"), of("@example.org")];
        let outcomes = contacts.suppress(account(), &grounds, &|_, _| {}).await.unwrap();
        assert_eq!(outcomes.iter().map(|o| o.is_new).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(outcomes[0].suppression.id, outcomes[1].suppression.id);
    }

    #[tokio::test]
    async fn all_who_come_at_once_are_booked() {
        let contacts = contacts();
        let grounds: Vec<Grounds> =
            [Reason::SoftBounce, Reason::HardBounce, Reason::Complaint, Reason::Manual]
                .into_iter()
                .cycle()
                .take(20)
                .map(|reason| Grounds::new("ada@example.net".parse::<Target>().unwrap(), reason, Source::Api))
                .collect();
        let all =
            grounds.iter().map(|one| contacts.suppress(account(), std::slice::from_ref(one), &|_, _| {}));
        for outcome in futures_util::future::join_all(all).await {
            outcome.unwrap();
        }
        assert_eq!(standing(&contacts).await.0, Some(Reason::Complaint));
    }
}
