//! State of the payment processor's objects: one row each by the processor's id, and an index of invoices by customer.
//!
//! The value's type belongs to the caller. This module stores it, reads it back, and detects concurrent changes.

use model::id::AccountId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{self, SerdeRow};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};

/// Type of a processor object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProcessorObjectKind {
    Customer = 1,
    Invoice = 2,
    Charge = 3,
    /// Links an invoice to its charges.
    Payment = 4,
    /// A partner's own account at the processor.
    Account = 5,
}

/// A value with the row it was read from; empty if there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProcessorObject<T> {
    pub value: Option<T>,
    row: Option<Value>,
}

fn key_of(account: AccountId, kind: ProcessorObjectKind, id: &str) -> Key {
    key(Space::ProcessorState).account(account).u8(kind as u8).text(id).build()
}

pub async fn get<T: Serialize + DeserializeOwned>(
    store: &Store,
    account: AccountId,
    kind: ProcessorObjectKind,
    id: &str,
) -> Result<StoredProcessorObject<T>> {
    let row = store.get(&key_of(account, kind, id)).await?;
    let value = row.as_deref().map(codec::decode::<SerdeRow<T>>).transpose()?.map(|plain| plain.0);
    Ok(StoredProcessorObject { value, row })
}

impl<T: Serialize + DeserializeOwned + Clone> StoredProcessorObject<T> {
    /// Makes the commit conflict if the object's row has changed since it was read.
    pub fn check_unchanged(&self, batch: &mut Batch, account: AccountId, kind: ProcessorObjectKind, id: &str) {
        batch.check(key_of(account, kind, id), self.row.clone());
    }

    /// Writes the new state, without a check.
    pub fn put(batch: &mut Batch, account: AccountId, kind: ProcessorObjectKind, id: &str, value: &T) {
        batch.put(key_of(account, kind, id), codec::encode(&SerdeRow(value.clone())));
    }
}

fn invoice_key(account: AccountId, customer: &str, invoice: &str) -> Key {
    key(Space::ProcessorStateByCustomer).account(account).text(customer).text(invoice).build()
}

/// Adds an invoice to the customer's index.
pub fn link_invoice_to_customer(batch: &mut Batch, account: AccountId, customer: &str, invoice: &str) {
    batch.put(invoice_key(account, customer, invoice), Vec::new());
}

/// Lists a customer's invoices in id order, after one of them, at most `limit`.
pub async fn list_customer_invoices(
    store: &Store,
    account: AccountId,
    customer: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>> {
    let mut range = key(Space::ProcessorStateByCustomer).account(account).text(customer).range();
    if let Some(after) = after {
        range.start = crate::key::prefix_end(&invoice_key(account, customer, after));
    }
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let invoice = |(row_key, _): (Key, Value)| {
        let mut reader = KeyReader::new(Space::ProcessorStateByCustomer, &row_key)?;
        reader.id().and_then(|_| reader.text())?;
        Ok(reader.text()?)
    };
    rows.into_iter().map(invoice).collect()
}
