//! Payers: state of the operator's customers at the payment processor, and for each account the customers that have a
//! payment method on file for it.
//!
//! ```text
//! Payer · customer      ─►  the payer
//! PayersOf · account    ─►  the customers that pay for it
//! ```

use std::collections::BTreeSet;

use model::billing::Payer;
use model::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store, Value};
use crate::key::{Space, key};

stored!(Payer);

/// The customers that pay for an account, with a payment method on file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payers {
    /// Customer ids at the processor.
    pub customers: BTreeSet<String>,
}

stored!(Payers);

/// A value with the row it was read from. The commit of a change conflicts if the row has changed since.
#[derive(Debug, Clone)]
pub struct StoredBillingRecord<T> {
    /// The value, or the default if there is no row.
    pub noun: T,
    at: Key,
    row: Option<Value>,
}

impl<T> StoredBillingRecord<T> {
    fn replace(&self, batch: &mut Batch, row: Value) {
        batch.check(self.at.clone(), self.row.clone());
        batch.put(self.at.clone(), row);
    }
}

impl StoredBillingRecord<Payer> {
    /// Writes the new state of the customer.
    pub fn change(&self, batch: &mut Batch, after: &Payer) {
        self.replace(batch, codec::encode(after));
    }
}

impl StoredBillingRecord<Payers> {
    /// Writes the new set of customers.
    pub fn change(&self, batch: &mut Batch, after: &Payers) {
        self.replace(batch, codec::encode(after));
    }
}

async fn find<T: codec::RowCodec + Default>(store: &Store, at: Key) -> Result<StoredBillingRecord<T>> {
    let row = store.get(&at).await?;
    let noun = row.as_ref().map(|row| codec::decode(row)).transpose()?.unwrap_or_default();
    Ok(StoredBillingRecord { noun, at, row })
}

/// Reads the state of a customer of the operator at the payment processor.
pub async fn get_payer(store: &Store, customer: &str) -> Result<StoredBillingRecord<Payer>> {
    find(store, key(Space::Payer).text(customer).build()).await
}

/// Reads which customers pay for an account.
pub async fn get_payers(store: &Store, account: AccountId) -> Result<StoredBillingRecord<Payers>> {
    find(store, key(Space::PayersOf).account(account).build()).await
}
