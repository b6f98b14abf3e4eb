//! A customer: who it is, its subscriptions, and whose referral it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mail::affiliate::referral::ReferralActivity;
use mail::id::ReferralId;
use serde::{Deserialize, Serialize};

use super::LwwRegister;
use crate::processor::{Customer, ReferralHint, ReferralMetadata, StateVersion, Subscription, SubscriptionStatus};

/// Subscriptions that are kept of a customer; of those beyond, the ones that ended first are forgotten.
const SUBSCRIPTIONS_MAX: usize = 200;

/// What a customer's own object says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CustomerFields {
    email: Option<String>,
    marks: ReferralMetadata,
}

/// What a subscription's object says.
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
    /// Whether it went on at a time, after that.
    fn is_active_at(&self, time: Timestamp) -> bool {
        let is_over = self.status == SubscriptionStatus::Over && self.over_at.is_none_or(|over| over <= time);
        self.begun_at.is_none_or(|begun| begun <= time) && !is_over
    }
}

/// What is known of a customer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CustomerState {
    told: Option<LwwRegister<CustomerFields>>,
    /// An address that an invoice or a session names.
    email: Option<LwwRegister<String>>,
    subscriptions: BTreeMap<String, Option<LwwRegister<SubscriptionState>>>,
    /// When the first subscription began that was on trial.
    tried_at: Option<Timestamp>,
    /// When a subscription ended last.
    left_at: Option<Timestamp>,
    /// When the first invoice was paid that was worth anything.
    first_paid_at: Option<Timestamp>,

    // What the ledger made of it.
    /// The referral that it is.
    pub(crate) referral: Option<ReferralId>,
    /// All of its invoices are to be looked at anew; those up to this id are. It ends with the fact that began it.
    pub(crate) going_through: Option<String>,
    /// How many invoices are in its list: whoever goes through that list while one comes in has missed it, and finds this
    /// row another than it was.
    pub(crate) listings: u64,
}

impl CustomerState {
    /// Hears of the customer itself.
    pub(crate) fn apply(&mut self, customer: &Customer) {
        let told = CustomerFields { email: customer.email.clone(), marks: customer.marks.clone() };
        LwwRegister::merge(&mut self.told, customer.as_of, told);
    }

    /// Hears of an address elsewhere.
    pub(crate) fn apply_email(&mut self, as_of: StateVersion, email: Option<&str>) {
        if let Some(email) = email {
            LwwRegister::merge(&mut self.email, as_of, email.to_owned());
        }
    }

    /// Hears of a subscription.
    pub(crate) fn apply_subscription(&mut self, subscription: &Subscription) {
        let Subscription { id, status, begun_at, over_at, marks, as_of, .. } = subscription;
        if *status == SubscriptionStatus::Trialing {
            let began = begun_at.unwrap_or(as_of.at);
            self.tried_at = Some(self.tried_at.map_or(began, |first| first.min(began)));
        }
        self.left_at = self.left_at.max(*over_at);
        let (begun_at, over_at) = (*begun_at, *over_at);
        let told = SubscriptionState { status: *status, marks: marks.clone(), begun_at, over_at };
        LwwRegister::merge(self.subscriptions.entry(id.clone()).or_default(), *as_of, told);
        if self.subscriptions.len() > SUBSCRIPTIONS_MAX {
            self.evict_oldest_subscription();
        }
    }

    fn evict_oldest_subscription(&mut self) {
        let age =
            |told: &LwwRegister<SubscriptionState>| (told.value().status != SubscriptionStatus::Over, told.as_of());
        let oldest = self.subscriptions.iter().min_by_key(|(_, told)| told.as_ref().map(age));
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.subscriptions.remove(&id);
        }
    }

    /// Hears when an invoice was paid that was worth something.
    pub(crate) fn apply_payment(&mut self, paid_at: Timestamp) {
        self.first_paid_at = Some(self.first_paid_at.map_or(paid_at, |first| first.min(paid_at)));
    }

    /// The address: its own, else one that was named elsewhere.
    pub(crate) fn email(&self) -> Option<&str> {
        let own = self.told.as_ref().and_then(|told| told.value().email.as_deref());
        own.or(self.email.as_ref().map(|email| email.value().as_str()))
    }

    /// Who may have brought it: by its own metadata, then by those of its subscription, or of all of them.
    pub(crate) fn hints(&self, subscription: Option<&str>) -> Vec<ReferralHint> {
        let own = self.told.iter().flat_map(|told| &told.value().marks.hints);
        let theirs = self.subscriptions.iter().filter(|(id, _)| subscription.is_none_or(|named| named == *id));
        let theirs = theirs.filter_map(|(_, told)| told.as_ref()).flat_map(|told| &told.value().marks.hints);
        own.chain(theirs).copied().collect()
    }

    /// Whether what it buys by a subscription, or by none, is to earn nothing.
    pub(crate) fn is_excluded(&self, subscription: Option<&str>) -> bool {
        let told = subscription.and_then(|id| self.subscriptions.get(id)?.as_ref());
        self.told.as_ref().is_some_and(|told| told.value().marks.excluded)
            || told.is_some_and(|told| told.value().marks.excluded)
    }

    /// Whether it had paid by then.
    pub(crate) fn had_paid_before(&self, time: Timestamp) -> bool {
        self.first_paid_at.is_some_and(|first| first < time)
    }

    /// Writes what the subscriptions of a referral's customers mean for it.
    pub(crate) fn summarize_subscriptions(customers: &[Self], dealings: &mut ReferralActivity) {
        let told = || customers.iter().flat_map(|one| one.subscriptions.values()).flatten().map(LwwRegister::value);
        let left = customers.iter().filter_map(|one| one.left_at);
        let ends: BTreeSet<Timestamp> = told().filter_map(|one| one.over_at).chain(left).collect();
        dealings.tried_at = customers.iter().filter_map(|one| one.tried_at).min();
        dealings.left_at = ends.into_iter().rev().find(|end| !told().any(|one| one.is_active_at(*end)));
    }
}
