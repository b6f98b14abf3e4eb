//! Customer: contact, subscriptions, and the referral it belongs to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::affiliate::referral::ReferralActivity;
use model::id::ReferralId;
use serde::{Deserialize, Serialize};

use super::creation_flag::CreationFlag;
use super::lww_register::LwwRegister;
use crate::processor::{Customer, ReferralHint, ReferralMetadata, StateVersion, Subscription, SubscriptionStatus};

/// Maximum subscriptions stored per customer; beyond that, the ones that ended first are evicted, those with an
/// exclusion flag last.
const SUBSCRIPTIONS_MAX: usize = 200;

/// Fields of the processor's customer object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CustomerFields {
    email: Option<String>,
    marks: ReferralMetadata,
}

/// Fields of a subscription object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SubscriptionState {
    status: SubscriptionStatus,
    marks: ReferralMetadata,
    #[serde(default)]
    begun_at: Option<Timestamp>,
    #[serde(default)]
    over_at: Option<Timestamp>,
}

impl SubscriptionState {
    /// True if the subscription was active right after `time`.
    fn is_active_at(&self, time: Timestamp) -> bool {
        let is_over = self.status == SubscriptionStatus::Over && self.over_at.is_none_or(|over| over <= time);
        self.begun_at.is_none_or(|begun_at| begun_at <= time) && !is_over
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CustomerState {
    told: Option<LwwRegister<CustomerFields>>,
    /// Email from an invoice or checkout session.
    email: Option<LwwRegister<String>>,
    subscriptions: BTreeMap<String, Option<LwwRegister<SubscriptionState>>>,
    /// The exclusion flag that the customer was created with.
    #[serde(skip_serializing_if = "CreationFlag::is_empty")]
    creation_flag: CreationFlag,
    /// The exclusion flags that its subscriptions were created with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    subscription_flags: BTreeMap<String, CreationFlag>,
    /// Start of the first trial.
    tried_at: Option<Timestamp>,
    /// End of the subscription that ended last.
    left_at: Option<Timestamp>,
    /// Time of the first payment with a commissionable amount.
    first_paid_at: Option<Timestamp>,

    // Fields computed by the ledger.
    /// The referral that the customer belongs to.
    pub(crate) referral: Option<ReferralId>,
    /// Cursor of a recompute of all the customer's invoices; those up to this id are done. `None` if no recompute is
    /// running.
    pub(crate) going_through: Option<String>,
    /// Number of invoices in the customer's index. It changes with each new invoice, so that a concurrent scan of the
    /// index conflicts.
    pub(crate) listings: u64,
}

impl CustomerState {
    /// Merges the customer's own fields. Returns true if [`Self::was_excluded_at`] changed.
    pub(crate) fn apply(&mut self, customer: &Customer) -> bool {
        let before = self.creation_flag.period();
        self.creation_flag.record(customer.as_of, customer.created_at, customer.marks.excluded);
        let fields = CustomerFields { email: customer.email.clone(), marks: customer.marks.clone() };
        LwwRegister::merge(&mut self.told, customer.as_of, fields);
        self.creation_flag.period() != before
    }

    /// Merges an email from an invoice or session.
    pub(crate) fn apply_email(&mut self, as_of: StateVersion, email: Option<&str>) {
        if let Some(email) = email {
            LwwRegister::merge(&mut self.email, as_of, email.to_owned());
        }
    }

    /// Merges a subscription. Returns true if [`Self::was_excluded_at`] changed for its sales.
    pub(crate) fn apply_subscription(&mut self, subscription: &Subscription) -> bool {
        let Subscription { id, status, begun_at, over_at, marks, as_of, .. } = subscription;
        let before = self.subscription_flag(id).period();
        self.subscription_flags.entry(id.clone()).or_default().record(*as_of, *begun_at, marks.excluded);
        if *status == SubscriptionStatus::Trialing {
            let started_at = begun_at.unwrap_or(as_of.at);
            self.tried_at = Some(self.tried_at.map_or(started_at, |first| first.min(started_at)));
        }
        self.left_at = self.left_at.max(*over_at);
        let (begun_at, over_at) = (*begun_at, *over_at);
        let state = SubscriptionState { status: *status, marks: marks.clone(), begun_at, over_at };
        LwwRegister::merge(self.subscriptions.entry(id.clone()).or_default(), *as_of, state);
        if self.subscriptions.len() > SUBSCRIPTIONS_MAX {
            self.evict_oldest_subscription();
        }
        // After the eviction: a repetition of the fact must not report the change of an evicted subscription again.
        self.subscription_flag(id).period() != before
    }

    fn evict_oldest_subscription(&mut self) {
        let rank = |id: &str, state: &LwwRegister<SubscriptionState>| {
            let is_flagged = state.value.marks.excluded || self.subscription_flag(id).period().is_some();
            (is_flagged, state.value.status != SubscriptionStatus::Over, state.as_of)
        };
        let oldest = self.subscriptions.iter().min_by_key(|(id, state)| state.as_ref().map(|state| rank(id, state)));
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.subscriptions.remove(&id);
            self.subscription_flags.remove(&id);
        }
    }

    /// Records a payment with a commissionable amount.
    pub(crate) fn apply_payment(&mut self, paid_at: Timestamp) {
        self.first_paid_at = Some(self.first_paid_at.map_or(paid_at, |first| first.min(paid_at)));
    }

    /// Returns the customer's own email, else the newest one from an invoice or session.
    pub(crate) fn email(&self) -> Option<&str> {
        let own_email = self.told.as_ref().and_then(|fields| fields.value.email.as_deref());
        own_email.or(self.email.as_ref().map(|email| email.value.as_str()))
    }

    /// Returns referral hints: from the customer's metadata, then from the named subscription's, or all subscriptions'
    /// if `None`.
    pub(crate) fn hints(&self, subscription: Option<&str>) -> Vec<ReferralHint> {
        let own_hints = self.told.iter().flat_map(|state| &state.value.marks.hints);
        let subscription_hints =
            self.subscriptions.iter().filter(|(id, _)| subscription.is_none_or(|selected| selected == *id));
        let subscription_hints =
            subscription_hints.filter_map(|(_, state)| state.as_ref()).flat_map(|state| &state.value.marks.hints);
        own_hints.chain(subscription_hints).copied().collect()
    }

    /// True if the newest state excludes purchases by this subscription, or without one, from commissions.
    pub(crate) fn is_excluded(&self, subscription: Option<&str>) -> bool {
        let state = subscription.and_then(|id| self.subscriptions.get(id)?.as_ref());
        self.told.as_ref().is_some_and(|state| state.value.marks.excluded)
            || state.is_some_and(|state| state.value.marks.excluded)
    }

    /// True if the flag that the customer or this subscription was created with excludes a purchase paid at this time.
    pub(crate) fn was_excluded_at(&self, paid_at: Timestamp, subscription: Option<&str>) -> bool {
        self.creation_flag.excludes(paid_at)
            || subscription.is_some_and(|id| self.subscription_flag(id).excludes(paid_at))
    }

    fn subscription_flag(&self, id: &str) -> CreationFlag {
        self.subscription_flags.get(id).copied().unwrap_or_default()
    }

    /// True if the customer had paid before `time`.
    pub(crate) fn had_paid_before(&self, time: Timestamp) -> bool {
        self.first_paid_at.is_some_and(|first| first < time)
    }

    /// Computes trial start and end of subscription over all customers of a referral.
    pub(crate) fn summarize_subscriptions(customers: &[Self], activity: &mut ReferralActivity) {
        let states = || {
            customers.iter().flat_map(|customer| customer.subscriptions.values()).flatten().map(|state| &state.value)
        };
        let left = customers.iter().filter_map(|customer| customer.left_at);
        let ends: BTreeSet<Timestamp> = states().filter_map(|state| state.over_at).chain(left).collect();
        activity.tried_at = customers.iter().filter_map(|customer| customer.tried_at).min();
        activity.left_at = ends.into_iter().rev().find(|end| !states().any(|state| state.is_active_at(*end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(id: &str, at: i64) -> Subscription {
        let created_at = Timestamp::from_second(at).unwrap();
        Subscription {
            id: id.to_owned(),
            customer: Some("cus_1".to_owned()),
            status: SubscriptionStatus::Live,
            begun_at: Some(created_at),
            over_at: None,
            marks: ReferralMetadata { excluded: true, ..ReferralMetadata::default() },
            as_of: StateVersion::event("customer.subscription.created", created_at),
        }
    }

    #[test]
    fn a_repeated_subscription_changes_nothing_also_if_it_is_evicted() {
        let mut state = CustomerState::default();
        for number in 0..SUBSCRIPTIONS_MAX {
            assert!(state.apply_subscription(&flagged(&format!("sub_{number}"), 100)));
        }
        let before = state.clone();
        assert!(!state.apply_subscription(&flagged("sub_old", 50)), "it is evicted at once");
        assert!(!state.apply_subscription(&flagged("sub_0", 100)));
        assert_eq!(state, before);
        let newest = flagged("sub_new", 200);
        assert_eq!([state.apply_subscription(&newest), state.apply_subscription(&newest)], [true, false]);
        assert_eq!((state.subscriptions.len(), state.subscription_flags.len()), (SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_MAX));
    }

    #[test]
    fn flagged_subscriptions_are_evicted_last() {
        let mut state = CustomerState::default();
        let plain = |id: &str, at| Subscription { marks: ReferralMetadata::default(), ..flagged(id, at) };
        state.apply_subscription(&flagged("sub_flagged", 50));
        for number in 0..SUBSCRIPTIONS_MAX {
            state.apply_subscription(&plain(&format!("sub_{number}"), 100));
        }
        assert!(state.is_excluded(Some("sub_flagged")) && !state.apply_subscription(&flagged("sub_flagged", 50)));
        assert_eq!((state.subscriptions.len(), state.subscription_flags.len()), (SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_MAX));
        // The one that was evicted is evicted again.
        let before = state.clone();
        assert!(!state.apply_subscription(&plain("sub_0", 100)));
        assert_eq!(state, before);
    }
}
