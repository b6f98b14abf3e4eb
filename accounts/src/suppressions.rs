//! Suppressions and subscription preferences: changes from customers, list imports and recipients.
//!
//! ```text
//! suppression causes (batch) ─► stored state ─► apply ─►[ suppressions + the caller's rows ]
//! recipient's preference     ─► stored state ─►[ suppression or opt-outs + contact.unsubscribed ]
//! ```
//!
//! Each change reads, decides and commits, and starts again if the commit conflicts. Suppressions that follow from a
//! delivery attempt are written in the outcome's own commit instead: see `outcome_writer.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use message::address::Address;
use model::email::Category;
use model::event::{Event, EventKind};
use model::id::{AccountId, EventId, OptOutId, SuppressionId};
use model::suppression::{
    OPTIONAL_CATEGORIES, OptOut, Suppression, SuppressionCause, SuppressionReason, SuppressionSource,
    SuppressionTarget, category_label,
};
use model::unsubscribe::{UnsubscribeScope, UnsubscribeToken};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::services::Services;
use queue::suppression_event::record_created;
use serde_json::json;
use store::engine::{Batch, CommitError, ReadError, Store, StoreError};
use store::suppression::StoredSuppression;
use store::task::PARTITIONS;
use tokio::sync::Notify;

/// Commits tried under contention; on each conflict another writer has made progress.
const COMMIT_TRIES_MAX: usize = 50;

/// Result of applying a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionResult {
    /// The suppression as stored now.
    pub suppression: Suppression,
    /// True if the cause created or changed the suppression; false if the stored one remains.
    pub is_new: bool,
    /// The suppression that was active before, if any.
    pub before: Option<Suppression>,
}

/// Adds rows to the same commit; receives the result of each cause.
pub type ExtendSuppressionCommit<'a> = dyn Fn(&[SuppressionResult], &mut Batch) + Send + Sync + 'a;

/// A recipient's subscription preferences; `None` leaves a value unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionPreferences {
    /// No mail at all from this account.
    pub unsubscribe_all: Option<bool>,
    /// Category `product`.
    pub product: Option<bool>,
    /// Category `newsletter`.
    pub newsletter: Option<bool>,
}

impl SubscriptionPreferences {
    /// The preference that an unsubscribe link of this scope expresses.
    #[must_use]
    pub fn unsubscribing_from(scope: UnsubscribeScope) -> Self {
        match scope {
            UnsubscribeScope::Category(Category::Product) => Self { product: Some(false), ..Self::default() },
            UnsubscribeScope::Category(Category::Newsletter) => Self { newsletter: Some(false), ..Self::default() },
            UnsubscribeScope::All | UnsubscribeScope::Category(Category::Transactional) => {
                Self { unsubscribe_all: Some(true), ..Self::default() }
            }
        }
    }

    fn for_category(self, category: Category) -> Option<bool> {
        match category {
            Category::Transactional => None,
            Category::Product => self.product,
            Category::Newsletter => self.newsletter,
        }
    }
}

/// Changes suppressions and opt-outs.
#[derive(Clone)]
pub struct SuppressionService {
    pub store: Store,
    pub clock: Clock,
    pub entropy: Entropy,
    /// Wakes the outbox dispatcher after an event was recorded.
    pub outbox_wakeup: Arc<Notify>,
}

/// A target's stored suppression and the new one, if it changes.
struct SuppressionChange {
    before: Option<StoredSuppression>,
    after: Option<Suppression>,
}

impl SuppressionChange {
    fn current(&self) -> Option<&Suppression> {
        self.after.as_ref().or(self.before.as_ref().map(|found| &found.suppression))
    }
}

impl SuppressionService {
    #[must_use]
    pub fn new(services: &Services) -> Self {
        Self {
            store: services.store.clone(),
            clock: services.clock.clone(),
            entropy: services.entropy.clone(),
            outbox_wakeup: Arc::clone(&services.outbox_wakeup),
        }
    }

    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        Self {
            store: Store::memory(),
            clock: Clock::default(),
            entropy: Entropy::default(),
            outbox_wakeup: Arc::default(),
        }
    }

    /// Applies the causes in one commit and returns the result of each. `extend` adds rows to the commit.
    ///
    /// # Errors
    /// The store is unavailable, or concurrent changes did not end. A conflict on a row that `extend` checks is
    /// returned unchanged.
    pub async fn suppress(
        &self,
        account: AccountId,
        causes: &[SuppressionCause],
        extend: &ExtendSuppressionCommit<'_>,
    ) -> Result<Vec<SuppressionResult>, StoreError> {
        let targets: Vec<SuppressionTarget> = causes.iter().map(|cause| cause.target.clone()).collect();
        let mut tries_left = COMMIT_TRIES_MAX;
        loop {
            let found = store::suppression::get_many(&self.store, account, &targets).await?;
            let mut changes: HashMap<String, SuppressionChange> = HashMap::with_capacity(found.len());
            for (target, before) in targets.iter().zip(found) {
                // Two spellings of one address have one key; the row may be stored under the former key of either.
                let change = changes.entry(target.key()).or_insert(SuppressionChange { before: None, after: None });
                change.before = change.before.take().or(before);
            }
            let outcomes: Vec<SuppressionResult> =
                causes.iter().filter_map(|cause| self.evaluate(account, cause, &mut changes)).collect();
            let mut batch = Batch::progress();
            for change in changes.values() {
                if let Some(after) = &change.after {
                    store::suppression::put(&mut batch, change.before.as_ref(), after);
                    record_created(&mut batch, &self.clock, &self.entropy, change.before.as_ref(), after);
                }
            }
            extend(&outcomes, &mut batch);
            if batch.is_empty() || self.commit(batch, &mut tries_left).await? {
                // An event may have been recorded.
                self.outbox_wakeup.notify_one();
                return Ok(outcomes);
            }
        }
    }

    /// Returns for each cause what [`Self::suppress`] would do, without doing it: whether a suppression would be new or
    /// changed, and the reason of the one that exists.
    pub async fn forecast(
        &self,
        account: AccountId,
        causes: &[SuppressionCause],
    ) -> Result<Vec<SuppressionResult>, ReadError> {
        let targets: Vec<SuppressionTarget> = causes.iter().map(|cause| cause.target.clone()).collect();
        let found = store::suppression::get_many(&self.store, account, &targets).await?;
        let mut changes: HashMap<String, SuppressionChange> = HashMap::with_capacity(found.len());
        for (target, before) in targets.iter().zip(found) {
            changes.insert(target.key(), SuppressionChange { before, after: None });
        }
        Ok(causes.iter().filter_map(|cause| self.evaluate(account, cause, &mut changes)).collect())
    }

    /// Returns for each cause whether it would add a row: false for targets already suppressed, or named earlier in the
    /// list.
    pub async fn would_add(&self, account: AccountId, causes: &[SuppressionCause]) -> Result<Vec<bool>, ReadError> {
        let targets: Vec<SuppressionTarget> = causes.iter().map(|cause| cause.target.clone()).collect();
        let found = store::suppression::get_many(&self.store, account, &targets).await?;
        let mut named = HashSet::with_capacity(targets.len());
        Ok(targets.iter().zip(found).map(|(target, found)| named.insert(target.key()) && found.is_none()).collect())
    }

    fn evaluate(
        &self,
        account: AccountId,
        cause: &SuppressionCause,
        changes: &mut HashMap<String, SuppressionChange>,
    ) -> Option<SuppressionResult> {
        let now = self.clock.now();
        let change = changes.get_mut(&cause.target.key())?;
        let id = SuppressionId::new(now, self.entropy.unique_bits());
        let before = change.current().filter(|before| before.is_active(now)).cloned();
        let after = Suppression::apply_cause(change.current(), cause.clone(), account, id, now);
        let is_new = after.is_some();
        change.after = after.or(change.after.take());
        change.current().map(|suppression| SuppressionResult { suppression: suppression.clone(), is_new, before })
    }

    /// Records the opt-out of an address from a category. Returns true if the address had not opted out before.
    pub async fn opt_out(
        &self,
        account: AccountId,
        address: &Address,
        category: Category,
        source: SuppressionSource,
    ) -> Result<(OptOut, bool), StoreError> {
        let mut tries_left = COMMIT_TRIES_MAX;
        loop {
            let existing = store::opt_out::list_by_address(&self.store, account, address, &[category]).await?;
            if let Some(opt_out) = existing.into_iter().next() {
                return Ok((opt_out, false));
            }
            let mut opt_out = self.new_opt_out(account, address, category);
            opt_out.source = source;
            let mut batch = Batch::progress();
            store::opt_out::create(&mut batch, &opt_out);
            if self.commit(batch, &mut tries_left).await? {
                return Ok((opt_out, true));
            }
        }
    }

    fn new_opt_out(&self, account: AccountId, address: &Address, category: Category) -> OptOut {
        let now = self.clock.now();
        OptOut {
            id: OptOutId::new(now, self.entropy.unique_bits()),
            account,
            address: address.clone(),
            category,
            source: SuppressionSource::Recipient,
            email: None,
            created_at: now,
        }
    }

    /// Applies the preference of the recipient whom a link is bound to; repeating it changes nothing. A request to get
    /// mail again deletes only a suppression that an unsubscribe created.
    pub async fn apply_preference(
        &self,
        bound: &UnsubscribeToken,
        preferences: SubscriptionPreferences,
    ) -> Result<(), StoreError> {
        let UnsubscribeToken { account, address, .. } = bound;
        let target = SuppressionTarget::Address(address.clone());
        let mut tries_left = COMMIT_TRIES_MAX;
        loop {
            let suppression = store::suppression::get(&self.store, *account, &target).await?;
            let opt_outs =
                store::opt_out::list_by_address(&self.store, *account, address, &OPTIONAL_CATEGORIES).await?;
            let mut batch = Batch::progress();
            self.apply_all_mail(&mut batch, bound, suppression.as_ref(), preferences.unsubscribe_all);
            for category in OPTIONAL_CATEGORIES {
                let existing = opt_outs.iter().find(|opt_out| opt_out.category == category);
                self.apply_category(&mut batch, bound, category, existing, preferences.for_category(category)).await?;
            }
            if batch.is_empty() || self.commit(batch, &mut tries_left).await? {
                self.outbox_wakeup.notify_one();
                return Ok(());
            }
        }
    }

    fn apply_all_mail(
        &self,
        batch: &mut Batch,
        bound: &UnsubscribeToken,
        before: Option<&StoredSuppression>,
        nothing: Option<bool>,
    ) {
        let now = self.clock.now();
        let existing = before.map(|found| &found.suppression);
        match nothing {
            None => {}
            Some(true) => {
                let cause = SuppressionCause::new(
                    bound.address.clone(),
                    SuppressionReason::Unsubscribe,
                    SuppressionSource::Recipient,
                );
                let id = SuppressionId::new(now, self.entropy.unique_bits());
                let cause = cause.with_email(bound.email);
                if let Some(after) = Suppression::apply_cause(existing, cause, bound.account, id, now) {
                    store::suppression::put(batch, before, &after);
                    record_created(batch, &self.clock, &self.entropy, before, &after);
                    self.record_unsubscribed(batch, bound, &UnsubscribedFrom::All(after.id));
                }
            }
            Some(false) => {
                if let Some(found) = before.filter(|found| found.suppression.reason == SuppressionReason::Unsubscribe) {
                    self.delete_suppression(batch, found);
                }
            }
        }
    }

    async fn apply_category(
        &self,
        batch: &mut Batch,
        bound: &UnsubscribeToken,
        category: Category,
        existing: Option<&OptOut>,
        wanted: Option<bool>,
    ) -> Result<(), ReadError> {
        match (wanted, existing) {
            (Some(false), None) => {
                let mut opt_out = self.new_opt_out(bound.account, &bound.address, category);
                opt_out.email = Some(bound.email);
                store::opt_out::create(batch, &opt_out);
                self.record_unsubscribed(batch, bound, &UnsubscribedFrom::Category(category, opt_out.id));
            }
            (Some(true), Some(opt_out)) => store::opt_out::delete(&self.store, batch, opt_out).await?,
            _ => {}
        }
        Ok(())
    }

    /// Deletes a suppression and records `suppression.deleted`.
    pub fn delete_suppression(&self, batch: &mut Batch, found: &StoredSuppression) {
        let now = self.clock.now();
        store::suppression::delete(batch, found);
        let id = EventId::new(now, self.entropy.unique_bits());
        let event = found.suppression.event(EventKind::SuppressionDeleted, id, now);
        store::event::record_in_any_partition(batch, &event);
    }

    /// Records `contact.unsubscribed` under the email whose link was used.
    fn record_unsubscribed(&self, batch: &mut Batch, bound: &UnsubscribeToken, left: &UnsubscribedFrom) {
        let now: Timestamp = self.clock.now();
        let (scope, category, suppression, opt_out) = match left {
            UnsubscribedFrom::All(id) => ("all", None, Some(*id), None),
            UnsubscribedFrom::Category(category, id) => ("category", Some(*category), None, Some(*id)),
        };
        let event = Event {
            id: EventId::new(now, self.entropy.unique_bits()),
            account: bound.account,
            subject: bound.email.into(),
            kind: EventKind::Unsubscribed,
            recipient: Some(bound.address.clone()),
            created_at: now,
            detail: json!({
                "email": bound.address,
                "source": SuppressionSource::Recipient,
                "scope": scope,
                "category": category.map(Category::word),
                "category_label": category.map(category_label),
                "suppression_id": suppression,
                "category_opt_out_id": opt_out,
                "email_id": bound.email,
            }),
        };
        // Any partition will do; the id spreads the events over the nodes.
        let [.., last] = bound.email.to_bytes();
        store::event::record(batch, &event, u16::from(last) % PARTITIONS);
    }

    /// Commits. Returns false if a suppression or opt-out changed concurrently and tries are left.
    async fn commit(&self, batch: Batch, tries_left: &mut usize) -> Result<bool, StoreError> {
        match self.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { key })
                if *tries_left > 1
                    && (store::suppression::caused_conflict(&key) || store::opt_out::caused_conflict(&key)) =>
            {
                *tries_left -= 1;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

enum UnsubscribedFrom {
    All(SuppressionId),
    Category(Category, OptOutId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::EmailId;

    fn contacts() -> SuppressionService {
        SuppressionService::in_memory()
    }

    fn account() -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, 1)
    }

    fn bound(scope: UnsubscribeScope) -> UnsubscribeToken {
        let email = EmailId::new(Timestamp::UNIX_EPOCH, 2);
        UnsubscribeToken { account: account(), email, scope, address: "Ada@example.net".parse().unwrap() }
    }

    async fn standing(contacts: &SuppressionService) -> (Option<SuppressionReason>, Vec<Category>) {
        let targets = ["ada@example.net".parse().unwrap()];
        let now = contacts.clock.now();
        let standing_list =
            store::suppression::list_address_suppressions(&contacts.store, account(), &targets, now).await.unwrap();
        let standing = standing_list.into_iter().next().unwrap();
        (standing.suppression.map(|suppression| suppression.reason), standing.categories)
    }

    async fn events(contacts: &SuppressionService) -> Vec<serde_json::Value> {
        let email = bound(UnsubscribeScope::All).email;
        let events = store::event::list(&contacts.store, account(), email, 100).await.unwrap();
        events.into_iter().map(|event| event.detail).collect()
    }

    #[tokio::test]
    async fn a_recipient_opts_out_and_in_again() {
        let contacts = contacts();
        let scope = UnsubscribeScope::Category(Category::Newsletter);
        for _ in 0..2 {
            contacts.apply_preference(&bound(scope), SubscriptionPreferences::unsubscribing_from(scope)).await.unwrap();
        }
        assert_eq!(standing(&contacts).await, (None, vec![Category::Newsletter]));
        let details = events(&contacts).await;
        assert_eq!(details.len(), 1, "repeating it records no second event");
        assert_eq!(details[0].as_object().unwrap().len(), 8);
        assert_eq!((&details[0]["scope"], &details[0]["category"]), (&json!("category"), &json!("newsletter")));
        assert!(details[0]["suppression_id"].is_null() && details[0]["category_opt_out_id"].is_string());
        contacts
            .apply_preference(
                &bound(UnsubscribeScope::All),
                SubscriptionPreferences::unsubscribing_from(UnsubscribeScope::All),
            )
            .await
            .unwrap();
        assert_eq!(standing(&contacts).await.0, Some(SuppressionReason::Unsubscribe));
        let details = events(&contacts).await;
        assert!(details.iter().any(|details| details["scope"] == "all" && details["suppression_id"].is_string()));
        let back =
            SubscriptionPreferences { unsubscribe_all: Some(false), product: Some(true), newsletter: Some(true) };
        contacts.apply_preference(&bound(UnsubscribeScope::All), back).await.unwrap();
        assert_eq!(standing(&contacts).await, (None, vec![]));
    }

    #[tokio::test]
    async fn a_recipient_cannot_lift_other_suppressions() {
        for reason in [SuppressionReason::HardBounce, SuppressionReason::Complaint, SuppressionReason::Manual] {
            let contacts = contacts();
            let target: SuppressionTarget = "ada@example.net".parse().unwrap();
            let causes = [SuppressionCause::new(target, reason, SuppressionSource::System)];
            contacts.suppress(account(), &causes, &|_, _| {}).await.unwrap();
            let back = SubscriptionPreferences { unsubscribe_all: Some(false), ..SubscriptionPreferences::default() };
            contacts.apply_preference(&bound(UnsubscribeScope::All), back).await.unwrap();
            assert_eq!(standing(&contacts).await.0, Some(reason));
        }
    }

    #[tokio::test]
    async fn a_repeated_target_is_suppressed_once() {
        let contacts = contacts();
        let cause = |text: &str| {
            SuppressionCause::new(
                text.parse::<SuppressionTarget>().unwrap(),
                SuppressionReason::Manual,
                SuppressionSource::Api,
            )
        };
        let causes = [cause("a@example.net"), cause("A@example.net"), cause("@example.org")];
        let outcomes = contacts.suppress(account(), &causes, &|_, _| {}).await.unwrap();
        assert_eq!(outcomes.iter().map(|o| o.is_new).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(outcomes[0].suppression.id, outcomes[1].suppression.id);
    }

    #[tokio::test]
    async fn concurrent_suppressions_are_all_stored() {
        let contacts = contacts();
        let causes: Vec<SuppressionCause> = [
            SuppressionReason::SoftBounce,
            SuppressionReason::HardBounce,
            SuppressionReason::Complaint,
            SuppressionReason::Manual,
        ]
        .into_iter()
        .cycle()
        .take(20)
        .map(|reason| {
            SuppressionCause::new(
                "ada@example.net".parse::<SuppressionTarget>().unwrap(),
                reason,
                SuppressionSource::Api,
            )
        })
        .collect();
        let all = causes.iter().map(|cause| contacts.suppress(account(), std::slice::from_ref(cause), &|_, _| {}));
        for outcome in futures_util::future::join_all(all).await {
            outcome.unwrap();
        }
        assert_eq!(standing(&contacts).await.0, Some(SuppressionReason::Complaint));
    }
}
