//! Billing: which of the operator's customers have a payment method on file, as the payment processor reports. Pure
//! functions.
//!
//! Reports arrive late, repeatedly and in any order, so a [`Payer`] merges them independent of order. A detached
//! payment method never becomes attached again (the processor does not allow it), a deleted customer stays deleted, and
//! of customer data the newest report wins.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::AccountId;

/// Maximum number of stored payment methods of a payer, far above real use. Detached ones are dropped first.
const METHODS_MAX: usize = 50;
/// Longest stored id of the payment processor in bytes.
pub const PROCESSOR_ID_BYTES_MAX: usize = 255;

/// The customer data at a time. The derived order makes the newest the greatest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BillingCustomer {
    pub at: Timestamp,
    /// True for a report of a change. It counts as newer than another report of the same second.
    pub is_change: bool,
    /// The account named in the customer's metadata.
    pub reference: Option<AccountId>,
    /// The customer's email address.
    pub email: Option<String>,
}

/// A report of the payment processor about a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BillingUpdate {
    /// The customer data, and the default payment method if there is one.
    Customer(BillingCustomer, Option<String>),
    /// A checkout of this account at this time.
    Checkout(Timestamp, AccountId),
    /// The id of a payment method that was attached.
    MethodAttached(String),
    /// The id of a payment method that was detached.
    MethodDetached(String),
    /// The customer was deleted with all payment methods.
    CustomerDeleted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentMethodState {
    Attached,
    Detached,
}

/// A customer of the operator at the payment processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Payer {
    pub customer: Option<BillingCustomer>,
    /// Time and account of the latest checkout.
    pub checkout: Option<(Timestamp, AccountId)>,
    /// States of the payment methods by the processor's id.
    pub methods: BTreeMap<String, PaymentMethodState>,
    /// True if the customer was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The account that it pays for, as last resolved.
    pub account: Option<AccountId>,
}

impl Payer {
    /// Merges a report.
    pub fn apply(&mut self, update: BillingUpdate) {
        match update {
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

    /// The accounts that the reports name, in order of precedence: metadata before checkout.
    pub fn referenced_accounts(&self) -> impl Iterator<Item = AccountId> {
        let by_metadata = self.customer.as_ref().and_then(|customer| customer.reference);
        by_metadata.into_iter().chain(self.checkout.map(|(_, account)| account))
    }

    /// Sets the state of a payment method, except that a detached one stays detached.
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

    /// True if a payment method is on file.
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

    fn apply_all(updates: &[BillingUpdate]) -> Payer {
        let mut payer = Payer::default();
        updates.iter().cloned().for_each(|update| payer.apply(update));
        payer
    }

    fn customer(second: i64, reference: Option<u128>, email: &str) -> BillingUpdate {
        let reference = reference.map(|number| AccountId::new(at(1), number));
        let customer =
            BillingCustomer { at: at(second), is_change: second > 1, reference, email: Some(email.to_owned()) };
        BillingUpdate::Customer(customer, None)
    }

    fn updates() -> Vec<BillingUpdate> {
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
        fn the_order_of_updates_does_not_matter(order in Just(updates()).prop_shuffle(), twice in any::<prop::sample::Index>()) {
            let mut order = order;
            order.push(order[twice.index(order.len())].clone());
            let payer = apply_all(&order);
            prop_assert_eq!(payer.referenced_accounts().collect::<Vec<_>>(), [AccountId::new(at(1), 2)]);
            prop_assert_eq!(payer, apply_all(&updates()));
        }
    }

    #[test]
    fn a_method_is_on_file_until_it_is_detached() {
        let (on, off) =
            (BillingUpdate::MethodAttached("pm_1".to_owned()), BillingUpdate::MethodDetached("pm_1".to_owned()));
        assert!(!apply_all(&[]).has_method());
        assert!(apply_all(std::slice::from_ref(&on)).has_method());
        assert!(!apply_all(&[on.clone(), off.clone()]).has_method() && !apply_all(&[off, on.clone()]).has_method());
        assert!(!apply_all(&[BillingUpdate::CustomerDeleted, on]).has_method());
        let BillingUpdate::Customer(customer, _) = customer(1, None, "a@example.com") else { return };
        assert!(apply_all(&[BillingUpdate::Customer(customer, Some("pm_3".to_owned()))]).has_method());
    }

    #[test]
    fn the_number_of_methods_is_bounded() {
        let mut payer = Payer::default();
        (0..1_000).for_each(|n| payer.apply(BillingUpdate::MethodDetached(format!("pm_{n}"))));
        payer.apply(BillingUpdate::MethodAttached("pm_last".to_owned()));
        assert!(payer.methods.len() == METHODS_MAX && payer.has_method());
        (0..1_000).for_each(|n| payer.apply(BillingUpdate::MethodAttached(format!("pm_more_{n}"))));
        assert_eq!(payer.methods.len(), METHODS_MAX);
    }
}
