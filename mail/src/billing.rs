//! Billing: which of the operator's customers have a payment method on file, as the operator's payment processor tells.
//! Pure.
//!
//! What it tells comes late, twice and in any order. So a payer is what all of it adds up to: a payment method that was
//! taken off never comes back (it cannot be put on again), a customer who is gone is gone for good, and of what a customer
//! is like the newest word counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::AccountId;

/// Payment methods remembered of one payer. Nobody has so many; those that were taken off are forgotten first.
const METHODS_MAX: usize = 50;
/// The longest id of the processor's that is remembered.
pub const PROCESSOR_ID_BYTES_MAX: usize = 255;

/// What a customer is like, as of a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BillingCustomer {
    /// When that was.
    pub at: Timestamp,
    /// It was told of a change: of two of one second that one is the newer.
    pub is_change: bool,
    /// The account that the operator's own words name.
    pub reference: Option<AccountId>,
    /// The address of the customer.
    pub email: Option<String>,
}

/// Something that the processor tells of a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BillingUpdate {
    /// What the customer is like, and what is charged unless something else is said.
    Customer(BillingCustomer, Option<String>),
    /// This account's owner has checked out then.
    Checkout(Timestamp, AccountId),
    /// A payment method was put on file.
    MethodAttached(String),
    /// A payment method was taken off.
    MethodDetached(String),
    /// The customer is gone, with all payment methods.
    CustomerDeleted,
}

/// Whether a payment method is on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentMethodState {
    /// It is.
    Attached,
    /// It was.
    Detached,
}

/// A customer of the operator's at the payment processor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Payer {
    /// What it is like.
    pub customer: Option<BillingCustomer>,
    /// When it last checked out, and for which account.
    pub checkout: Option<(Timestamp, AccountId)>,
    /// Its payment methods, by the processor's ids.
    pub methods: BTreeMap<String, PaymentMethodState>,
    /// It is gone.
    pub gone: bool,
    /// The account that it pays for, when it was last looked for.
    pub account: Option<AccountId>,
}

impl Payer {
    /// Takes in what was told.
    pub fn apply(&mut self, told: BillingUpdate) {
        match told {
            BillingUpdate::Customer(customer, default_method) => {
                if let Some(method) = default_method {
                    self.set_method_state(method, PaymentMethodState::Attached);
                }
                self.customer = self.customer.take().max(Some(customer));
            }
            BillingUpdate::Checkout(at, account) => self.checkout = self.checkout.max(Some((at, account))),
            BillingUpdate::MethodAttached(method) => self.set_method_state(method, PaymentMethodState::Attached),
            BillingUpdate::MethodDetached(method) => self.set_method_state(method, PaymentMethodState::Detached),
            BillingUpdate::CustomerDeleted => self.gone = true,
        }
    }

    /// The accounts that are named for it, what counts more first.
    pub fn referenced_accounts(&self) -> impl Iterator<Item = AccountId> {
        let by_metadata = self.customer.as_ref().and_then(|customer| customer.reference);
        by_metadata.into_iter().chain(self.checkout.map(|(_, account)| account))
    }

    /// A payment method that was taken off stays off.
    fn set_method_state(&mut self, id: String, method: PaymentMethodState) {
        if self.methods.get(&id) == Some(&PaymentMethodState::Detached) {
            return;
        }
        if self.methods.len() >= METHODS_MAX && !self.methods.contains_key(&id) {
            let off = self.methods.iter().find(|(_, method)| **method == PaymentMethodState::Detached);
            let Some(off) = off.map(|(id, _)| id.clone()) else { return };
            self.methods.remove(&off);
        }
        self.methods.insert(id, method);
    }

    /// Whether a payment method is on file.
    #[must_use]
    pub fn has_method(&self) -> bool {
        !self.gone && self.methods.values().any(|method| *method == PaymentMethodState::Attached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn heard(told: &[BillingUpdate]) -> Payer {
        let mut payer = Payer::default();
        told.iter().cloned().for_each(|told| payer.apply(told));
        payer
    }

    fn customer(second: i64, reference: Option<u128>, email: &str) -> BillingUpdate {
        let reference = reference.map(|number| AccountId::new(at(1), number));
        let customer =
            BillingCustomer { at: at(second), is_change: second > 1, reference, email: Some(email.to_owned()) };
        BillingUpdate::Customer(customer, None)
    }

    fn story() -> Vec<BillingUpdate> {
        let card = || "pm_1".to_owned();
        vec![
            customer(1, Some(3), "old@example.com"),
            BillingUpdate::MethodAttached(card()),
            BillingUpdate::MethodDetached(card()),
            BillingUpdate::MethodAttached("pm_2".to_owned()),
            customer(2, None, "new@example.com"),
            customer(2, None, "newer@example.com"),
            BillingUpdate::Checkout(at(1), AccountId::new(at(1), 1)),
            BillingUpdate::Checkout(at(2), AccountId::new(at(1), 2)),
        ]
    }

    proptest! {
        #[test]
        fn any_order_comes_to_the_same(order in Just(story()).prop_shuffle(), twice in any::<prop::sample::Index>()) {
            let mut order = order;
            order.push(order[twice.index(order.len())].clone());
            let payer = heard(&order);
            prop_assert_eq!(payer.referenced_accounts().collect::<Vec<_>>(), [AccountId::new(at(1), 2)]);
            prop_assert_eq!(payer, heard(&story()));
        }
    }

    #[test]
    fn a_method_is_on_file_until_it_is_taken_off() {
        let (on, off) =
            (BillingUpdate::MethodAttached("pm_1".to_owned()), BillingUpdate::MethodDetached("pm_1".to_owned()));
        assert!(!heard(&[]).has_method());
        assert!(heard(std::slice::from_ref(&on)).has_method());
        assert!(!heard(&[on.clone(), off.clone()]).has_method() && !heard(&[off, on.clone()]).has_method());
        assert!(!heard(&[BillingUpdate::CustomerDeleted, on]).has_method());
        let BillingUpdate::Customer(customer, _) = customer(1, None, "a@example.com") else { return };
        assert!(heard(&[BillingUpdate::Customer(customer, Some("pm_3".to_owned()))]).has_method());
    }

    #[test]
    fn so_many_methods_and_no_more() {
        let mut payer = Payer::default();
        (0..1_000).for_each(|n| payer.apply(BillingUpdate::MethodDetached(format!("pm_{n}"))));
        payer.apply(BillingUpdate::MethodAttached("pm_last".to_owned()));
        assert!(payer.methods.len() == METHODS_MAX && payer.has_method());
        (0..1_000).for_each(|n| payer.apply(BillingUpdate::MethodAttached(format!("pm_more_{n}"))));
        assert_eq!(payer.methods.len(), METHODS_MAX);
    }
}
